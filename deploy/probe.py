"""Asks the web process of this machine whether it is ready, for Docker's health check.

Standard library only. Ends with 0 when /readyz answers 200, else with 1 and what it said.
"""

import os
import sys
import urllib.error
import urllib.request


def main() -> int:
    # The site answers to its own names only, and a probe stands behind no proxy.
    host = os.environ.get("KBX_ALLOWED_HOSTS", "localhost").split(",")[0].strip().lstrip(".")
    port = os.environ.get("KBX_BIND", "127.0.0.1:8000").rpartition(":")[2]
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/readyz", headers={"Host": host})
    try:
        with urllib.request.urlopen(asked, timeout=10) as answer:  # noqa: S310  as above
            return 0 if answer.status == 200 else 1
    except urllib.error.HTTPError as error:
        sys.stderr.write(error.read(500).decode(errors="replace") + "\n")
    except OSError as error:
        sys.stderr.write(f"{error}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
