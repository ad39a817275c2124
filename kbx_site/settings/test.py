"""Settings of the test suite: like development, with cheap password hashing."""

from kbx_site.settings.development import *  # noqa: F403  settings are layered by import

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# One throttle for a whole test run would make its tests depend on one another.
REST_FRAMEWORK = {**REST_FRAMEWORK, "DEFAULT_THROTTLE_RATES": {"submissions": None}}  # noqa: F405
