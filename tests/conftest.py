"""What every test shares: which ones need a GPU, a browser or servers, and when that is missing."""

import os
import shutil
import sys
from types import ModuleType

import hypothesis
import pytest

# CI tries the same examples each time, so that a change is blamed for its own faults only;
# everybody else tries new ones and finds the old faults.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.register_profile("new", deadline=None)
hypothesis.settings.load_profile("same" if os.environ.get("CI") else "new")

REQUIRED = set(filter(None, os.environ.get("KBX_REQUIRE", "").split(",")))


def has_browser() -> bool:
    return any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))


def has_servers() -> bool:
    return {"KBX_TEST_DATABASE_URL", "KBX_TEST_BROKER_URL"} <= set(os.environ)


def has_gpu() -> bool:
    return shutil.which("nvidia-smi") is not None


NEEDS = {
    "browser": (has_browser, "no Chromium on this machine: apt-get install chromium"),
    "servers": (has_servers, "KBX_TEST_DATABASE_URL and KBX_TEST_BROKER_URL are not set"),
    "gpu": (has_gpu, "no NVIDIA GPU on this machine"),
}


@pytest.fixture(scope="session")
def make() -> ModuleType:
    """Rows as the pages' tests make them. Not before Django is set up."""
    from tests.leaderboard import factories

    return factories


@pytest.fixture(autouse=True)
def _no_boards_from_other_tests() -> None:
    """Boards are kept in the process by the site's generation; each test's database restarts it."""
    if "leaderboard.kept" in sys.modules:
        sys.modules["leaderboard.kept"].forget()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what can't run here, unless KBX_REQUIRE names it: then it fails by itself."""
    for mark, (present, reason) in NEEDS.items():
        if mark in REQUIRED or present():
            continue
        for item in items:
            if item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=reason))
