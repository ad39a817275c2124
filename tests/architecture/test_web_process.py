"""The web process starts and serves without torch, triton, the suite or the judge."""

import json
import subprocess
import sys

PROGRAM = """
import json, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "kbx_site.settings.test"
from kbx_site.wsgi import application
from django.core.management import call_command
from django.test import Client
from django.conf import settings
settings.DATABASES["default"]["NAME"] = ":memory:"
call_command("migrate", verbosity=0)
codes = [Client().get(path, headers={"host": "localhost"}).status_code
         for path in ("/", "/leaderboard/", "/tasks/", "/submissions/new/", "/admin/login/",
                      "/readyz", "/metrics")]
heavy = [name for name in ("torch", "triton", "benchmark.suite", "runner.engine", "numpy")
         if name in sys.modules]
print(json.dumps({"codes": codes, "heavy": heavy}))
"""


def test_serving_pages_imports_neither_torch_nor_the_suite() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found == {"codes": [200] * 7, "heavy": []}
