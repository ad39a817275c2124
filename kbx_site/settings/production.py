"""A public site: everything from the environment, and no start with an insecure value.

Needs DATABASE_URL (PostgreSQL), KBX_BROKER_URL (Redis or RabbitMQ), KBX_SECRET_KEY and
KBX_ALLOWED_HOSTS; `.env.example` describes each. All that is wrong is said at once.
"""

from collections.abc import Callable, Iterator
from itertools import chain

from kbx_site import env

env.gather()

from kbx_site.settings import insecure  # noqa: E402  what follows reads the environment
from kbx_site.settings.base import *  # noqa: E402, F403  settings are layered by import
from kbx_site.settings.base import (  # noqa: E402  as above
    CACHES,
    KBX_METRICS_ALLOW,
    KBX_METRICS_TOKEN,
    MAIL_URL,
    REST_FRAMEWORK,
    STORAGES,
)


def checked(name: str, faults: Callable[[str], Iterator[str]]) -> str:
    """A variable that a public site needs, looked at; where it is missing, that is the fault."""
    value = env.text(name)
    for fault in faults(value) if value else ():
        env.refuse(fault)
    return value


def trusted_origins(hosts: list[str]) -> list[str]:
    """Where forms may come from: the hosts over HTTPS; ".x.org" means x.org and all below it."""
    wide = [f"https://*{host}" for host in hosts if host.startswith(".")]
    return [f"https://{host.lstrip('.')}" for host in hosts] + wide


checked("DATABASE_URL", insecure.database)
checked("KBX_BROKER_URL", insecure.broker)
SECRET_KEY = checked("KBX_SECRET_KEY", lambda key: insecure.signing_key("KBX_SECRET_KEY", key))
# Earlier keys, for a while after a new one: who is signed in stays so.
SECRET_KEY_FALLBACKS = env.words("KBX_SECRET_KEY_FALLBACKS")
ALLOWED_HOSTS = env.words("KBX_ALLOWED_HOSTS")
SITE_URL = env.text("KBX_SITE_URL", "")
for found in chain(
    *(insecure.signing_key("KBX_SECRET_KEY_FALLBACKS", key) for key in SECRET_KEY_FALLBACKS),
    insecure.hosts(ALLOWED_HOSTS),
    insecure.origin("KBX_SITE_URL", SITE_URL) if SITE_URL else (),
    insecure.metrics(KBX_METRICS_TOKEN, KBX_METRICS_ALLOW),
):
    env.refuse(found)
if env.flag("KBX_DEBUG", False):
    env.refuse(
        "KBX_DEBUG=1 shows sources and settings to visitors: remove it, or use "
        "DJANGO_SETTINGS_MODULE=kbx_site.settings.development on your own machine"
    )
BEHIND_PROXY = env.flag("KBX_BEHIND_PROXY", False)
SECURE_HSTS_SECONDS = env.integer("KBX_HSTS_SECONDS", 365 * 24 * 3600, least=0)
# Where no mail can be sent, nobody's address can be verified: strangers may sign up if told so.
KBX_SIGNUP = env.flag("KBX_SIGNUP", bool(MAIL_URL))
env.tell()

DEBUG = False
CSRF_TRUSTED_ORIGINS = trusted_origins(ALLOWED_HOSTS)
# Only behind a proxy that sets the headers itself; else a visitor could claim HTTPS.
if BEHIND_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    REST_FRAMEWORK = {**REST_FRAMEWORK, "NUM_PROXIES": 1}
    ALLAUTH_TRUSTED_PROXY_COUNT = 1
SECURE_SSL_REDIRECT = True
# Probes and Prometheus may speak plain HTTP inside the cluster.
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]
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
