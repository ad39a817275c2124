"""Settings of the test suite: like development, with cheap password hashing."""

import atexit
import os
import shutil
import tempfile
from typing import Any

# The broker's folders and the database of a test run are its own, and go with it.
os.environ["KBX_STATE_DIR"] = tempfile.mkdtemp(prefix="kbx-test-")
atexit.register(shutil.rmtree, os.environ["KBX_STATE_DIR"], ignore_errors=True)

from kbx_site.settings.development import *  # noqa: E402, F403  layered by import

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# One throttle for a whole test run would make its tests depend on one another.
UNLIMITED: dict[str, Any] = {"DEFAULT_THROTTLE_RATES": dict.fromkeys(THROTTLES)}  # noqa: F405  as above
REST_FRAMEWORK = {**REST_FRAMEWORK, **UNLIMITED}  # noqa: F405  as above
