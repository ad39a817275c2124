"""The same site for an ASGI server. Settings default to the embedded ones."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbx_site.settings.development")
application = get_asgi_application()
