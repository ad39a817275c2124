#!/usr/bin/env python
"""Django's command line; settings default to the embedded, one-machine ones."""

import os
import sys

from django.core.management import execute_from_command_line

from kbx_site.env import Misconfigured

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbx_site.settings.development")
    try:
        execute_from_command_line(sys.argv)
    except Misconfigured as error:
        sys.exit(str(error))
