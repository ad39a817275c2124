"""What gunicorn serves: `gunicorn kbx_site.wsgi`. Settings default to the embedded ones."""

import gc
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbx_site.settings.development")
application = get_wsgi_application()
gc.freeze()  # what is loaded by now stays: no slow page has to look for garbage in it
