"""One machine, nothing to install: SQLite and Celery's filesystem broker. What `make demo` runs."""

from kbx_site import env
from kbx_site.settings.base import *  # noqa: F403  settings are layered by import, as Django does it

DEBUG = env.flag("KBX_DEBUG", False)
# Known to everybody, so this module refuses to serve anything but the loopback interface.
SECRET_KEY = env.text("KBX_SECRET_KEY", "development-only-and-public")
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]

KBX_OPEN_SUBMISSIONS = True  # whoever reaches the loopback interface owns the machine anyway

# Static files come straight from where they are written: there is no collectstatic step here.
WHITENOISE_USE_FINDERS = True
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # noqa: F405

KBX_SLOW_QUERY_MS = env.integer("KBX_SLOW_QUERY_MS", 100, least=0)
KBX_METRICS_ALLOW = env.words("KBX_METRICS_ALLOW", "127.0.0.1,::1")
