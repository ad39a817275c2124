"""A public site: everything from the environment, and no start with an insecure value.

Needs DATABASE_URL (PostgreSQL), KBX_BROKER_URL (Redis or RabbitMQ), KBX_SECRET_KEY and
KBX_ALLOWED_HOSTS; `.env.example` describes each.
"""

from kbx_site import env
from kbx_site.settings.base import *  # noqa: F403  settings are layered by import, as Django does it
from kbx_site.settings.base import CACHES, DATABASES, MAIL_URL, REST_FRAMEWORK, STORAGES

SHORTEST_SECRET = 50  # characters; what `check --deploy` asks for too
KNOWN_SECRETS = ("development-only", "django-insecure", "change-me", "changeme")


def secret_key() -> str:
    """The signing key: long, and not one that everybody can read in a repository."""
    key = env.text("KBX_SECRET_KEY")
    if len(key) < SHORTEST_SECRET or len(set(key)) < 5 or key.startswith(KNOWN_SECRETS):
        raise env.Misconfigured(
            f"KBX_SECRET_KEY is weak: set {SHORTEST_SECRET} or more random characters, for example "
            'from: python -c "import secrets; print(secrets.token_urlsafe(50))"'
        )
    return key


def allowed_hosts() -> list[str]:
    hosts = env.words("KBX_ALLOWED_HOSTS")
    if not hosts or "*" in hosts:
        raise env.Misconfigured(
            "KBX_ALLOWED_HOSTS must name the site's hosts, comma-separated and without '*', for "
            "example KBX_ALLOWED_HOSTS=kernelbench.example.org"
        )
    for host in hosts:
        if "/" in host or (":" in host and not host.startswith("[")):
            raise env.Misconfigured(
                f"KBX_ALLOWED_HOSTS: {host!r} is no host name: leave https:// and the port out"
            )
    return hosts


def trusted_origins(hosts: list[str]) -> list[str]:
    """Where forms may come from: the hosts over HTTPS; ".x.org" means x.org and all below it."""
    wide = [f"https://*{host}" for host in hosts if host.startswith(".")]
    return [f"https://{host.lstrip('.')}" for host in hosts] + wide


def refuse_embedded_services() -> None:
    """SQLite and the filesystem broker serve one machine; a public site has several processes."""
    env.text("DATABASE_URL")
    if DATABASES["default"]["ENGINE"] != "django.db.backends.postgresql":
        raise env.Misconfigured(
            "DATABASE_URL must be PostgreSQL: postgresql://user:password@host:5432/name"
        )
    if not env.text("KBX_BROKER_URL").startswith(("redis://", "rediss://", "amqp://", "amqps://")):
        raise env.Misconfigured(
            "KBX_BROKER_URL must be Redis or RabbitMQ: redis://host:6379/0 or amqp://user:pw@host//"
        )


refuse_embedded_services()
DEBUG = False
SECRET_KEY = secret_key()
ALLOWED_HOSTS = allowed_hosts()
CSRF_TRUSTED_ORIGINS = trusted_origins(ALLOWED_HOSTS)

# Only behind a proxy that sets the header itself; else a visitor could claim HTTPS.
if env.flag("KBX_BEHIND_PROXY", False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    REST_FRAMEWORK = {**REST_FRAMEWORK, "NUM_PROXIES": 1}
    ALLAUTH_TRUSTED_PROXY_COUNT = 1
SECURE_SSL_REDIRECT = True
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz)$"]  # probes speak plain HTTP inside the cluster
SECURE_HSTS_SECONDS = env.integer("KBX_HSTS_SECONDS", 365 * 24 * 3600, least=0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True

STORAGES = {
    **STORAGES,
    # Names carry a hash and files a compressed twin: cached for ever, sent small.
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
# Uploads, sign-ups and sign-ins count for all web processes together: in the database, which only
# the site writes to.
CACHES = {
    **CACHES,
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "kbx_cache",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    },
}
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https"
# Where no mail can be sent, nobody's address can be verified: strangers may sign up if told so.
KBX_SIGNUP = env.flag("KBX_SIGNUP", bool(MAIL_URL))
