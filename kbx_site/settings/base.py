"""What every installation shares. What differs is read from the environment (`.env.example`)."""

from pathlib import Path

import dj_database_url
import plotly
from dj_database_url import DBConfig

from kbx_site import env, logs
from kbx_site.settings.accounts import *  # noqa: F403  settings are layered by import
from kbx_site.settings.accounts import ALLAUTH_APPS, FORM_TARGETS
from kbx_site.settings.api import *  # noqa: F403  settings are layered by import
from kbx_site.settings.api import API, API_APPS, THROTTLES
from runner.intake.limits import MAX_UPLOAD_BYTES

BASE_DIR = Path(__file__).resolve().parents[2]
STATE_DIR = Path(env.text("KBX_STATE_DIR", str(BASE_DIR / "var")))

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    *ALLAUTH_APPS,
    "csp",
    "django_filters",
    "django_htmx",
    "rest_framework",
    "benchmark",
    "leaderboard",
    "runner",
    *API_APPS,
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "kbx_site.requests.Noted",  # static files are nobody's visit
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "kbx_site.urls"
WSGI_APPLICATION = "kbx_site.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]


def database() -> DBConfig:
    """Of DATABASE_URL. Its error doesn't repeat the value: a password may be in it."""
    url = env.text("DATABASE_URL", f"sqlite:///{STATE_DIR / 'kbx.sqlite3'}")
    try:
        return dj_database_url.parse(url, conn_max_age=60, conn_health_checks=True)
    except ValueError:
        env.refuse(
            "DATABASE_URL can't be read: postgresql://user:password@host:5432/name, with special "
            "characters of the password as %XX"
        )
        return DBConfig()


DATABASES = {"default": database()}
if DATABASES["default"].get("ENGINE") == "django.db.backends.sqlite3":
    # WAL lets pages be read while a report is written; IMMEDIATE takes the write lock up front, so
    # that two writers wait for one another instead of failing half-way.
    STATE_DIR.mkdir(parents=True, exist_ok=True)
    DATABASES["default"]["OPTIONS"] = {
        "timeout": 30,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
STATIC_URL = "static/"
STATIC_ROOT = Path(env.text("KBX_STATIC_ROOT", str(STATE_DIR / "static")))
STATICFILES_DIRS = [
    BASE_DIR / "static",
    # Served out of the installed package, so that plotly's Python and JavaScript can't drift apart.
    ("vendor", Path(plotly.__file__).parent / "package_data"),
]

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        # plotly writes style attributes; no untrusted text reaches a style.
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": FORM_TARGETS,
        "frame-ancestors": ["'none'"],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"

LOGGING = logs.settings()
# Queries that take as long are logged with their request's id; 0: none.
KBX_SLOW_QUERY_MS = env.integer("KBX_SLOW_QUERY_MS", 0, least=0)

# Who may read /metrics: who sends the token, or asks from one of the networks. Nobody by default.
KBX_METRICS_TOKEN = env.text("KBX_METRICS_TOKEN", "")
KBX_METRICS_ALLOW = env.words("KBX_METRICS_ALLOW")

if SENTRY_DSN := env.text("KBX_SENTRY_DSN", ""):
    from kbx_site import reporting

    try:
        reporting.start(SENTRY_DSN, env.text("KBX_SENTRY_ENVIRONMENT", "production"))
    except ValueError:  # without the value: a DSN is a key
        env.refuse("KBX_SENTRY_DSN can't be read: copy it whole from the project's settings.")

# What throttles count: in each web process for itself here, for all of them in production.
MEMORY = "django.core.cache.backends.locmem.LocMemCache"
CACHES = {
    "default": {"BACKEND": MEMORY},
    "memory": {"BACKEND": MEMORY, "LOCATION": "memory", "OPTIONS": {"MAX_ENTRIES": 10_000}},
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "runner.accounts.authentication.ApiKeyAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticatedOrReadOnly"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [
        "rest_framework.parsers.JSONParser",
        "rest_framework.parsers.MultiPartParser",
    ],
    "DEFAULT_THROTTLE_RATES": THROTTLES,
    # X-Forwarded-For is anybody's to write: believed only as far as proxies of ours wrote it.
    "NUM_PROXIES": 0,
    **API,
}

# Strangers may submit only where a site says so; the one-machine settings do.
KBX_OPEN_SUBMISSIONS = False
# An upload may be pasted or a file; it is parsed in memory and never stored as a file.
DATA_UPLOAD_MAX_MEMORY_SIZE = FILE_UPLOAD_MAX_MEMORY_SIZE = MAX_UPLOAD_BYTES

# How jobs travel: runner.dispatch. Seconds and counts; the tests shorten them.
KBX_DISPATCH_WINDOW = env.integer("KBX_DISPATCH_WINDOW", 4)
KBX_QUEUE_LEASE = env.integer("KBX_QUEUE_LEASE", 120)
KBX_RUN_LEASE = env.integer("KBX_RUN_LEASE", 60)
KBX_RETRY_SECONDS = env.integer("KBX_RETRY_SECONDS", 10)
KBX_MAX_ATTEMPTS = env.integer("KBX_MAX_ATTEMPTS", 3)
