"""Settings of the test suite: like development, with cheap password hashing."""

from kbx_site.settings.development import *  # noqa: F403  settings are layered by import

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
