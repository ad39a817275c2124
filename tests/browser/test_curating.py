"""An administrator's walk in a browser: a draft is looked over, proven and published; a run is
rejected, and everybody sees the ranking without it, and why.
"""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management import call_command
from playwright.sync_api import Page, expect

from benchmark import vocabulary
from benchmark.models import Board, Task

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ROOT = Path(__file__).resolve().parents[2]
SHOTS = os.environ.get("KBX_SHOTS")  # a folder: pictures of the pages are left there
PASSWORD = "long-enough-to-pass"
REASON = "It keeps its answers from the check and returns them when it is timed."


@pytest.fixture
def site(make: Any, settings: Any, tmp_path: Path) -> SimpleNamespace:
    """Two tasks; alpha is faster on one than beta. The suite's others come in as drafts."""
    settings.STATE_DIR = tmp_path
    cache.clear()
    h200, relu = make.gpu(), make.task()
    runs = [
        make.run(make.submission(make.method(name)), relu, h200, speedup=speed)
        for name, speed in (("alpha", 3.0), ("beta", 1.5))
    ]
    Board.bump()
    call_command("sync_tasks", verbosity=0)
    Task.objects.filter(pk=relu.pk).update(digest=runs[0].task_digest)  # as it was judged
    User.objects.create_superuser("ann", "ann@example.org", PASSWORD)
    return SimpleNamespace(fast=runs[0])


def shot(page: Page, name: str) -> None:
    for width in (360, 1400) if SHOTS else ():
        page.set_viewport_size({"width": width, "height": 900})
        page.screenshot(path=Path(SHOTS or "") / f"{name}-{width}.png", full_page=True)


def sign_in(page: Page, url: str) -> None:
    page.goto(f"{url}/admin/")
    page.locator("[name=username]").fill("ann")
    page.locator("[name=password]").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()


def ranked(url: str) -> list[str]:
    found = httpx.get(f"{url}/api/v1/leaderboard/?gpu=h200", timeout=30).json()
    return [row["method"]["slug"] for row in found["standings"]]


def test_a_draft_is_looked_over_proven_and_published(
    page: Page, live_server: Any, site: SimpleNamespace
) -> None:
    url = live_server.url
    assert httpx.get(f"{url}/tasks/gelu/").status_code == 404
    sign_in(page, url)
    page.get_by_role("link", name="Draft tasks").click()
    page.locator("[name=q]").fill("gelu")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="gelu", exact=True).click()
    contract = page.locator("#content")
    for what in ("draft", "Digest history", "def gelu", "@triton.jit"):
        expect(contract).to_contain_text(what)
    shot(page, "admin-draft")
    page.get_by_role("button", name="Publish…").click()
    expect(contract).to_contain_text("kbx prove --task gelu")
    proof = [sys.executable, "-m", "runner", "prove", "--task", "gelu", "--seed", "1"]
    done = subprocess.run(proof, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    page.get_by_label("Reason").fill("Looked over; kbx prove accepts it and kills every mutant.")
    shot(page, "admin-publish")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("1 task published.")).to_be_visible()
    assert httpx.get(f"{url}/tasks/gelu/").status_code == 200
    page.goto(f"{url}/admin/benchmark/task/{Task.objects.get(slug='gelu').pk}/history/")
    expect(page.locator("#content")).to_contain_text("kills every mutant")


def test_a_run_is_rejected_and_the_ranking_and_its_page_say_so(
    page: Page, live_server: Any, site: SimpleNamespace
) -> None:
    url = live_server.url
    assert ranked(url) == ["alpha", "beta"]
    sign_in(page, url)
    page.goto(f"{url}/admin/benchmark/run/")
    page.locator("[name=q]").fill("alpha")
    page.get_by_role("button", name="Search").click()
    page.locator("#result_list tbody th a").click()
    shot(page, "admin-run")
    page.get_by_role("button", name="Give a verdict…").click()
    page.get_by_role("radio", name=f"{vocabulary.CHEAT}:").check()
    page.get_by_label("Reason", exact=False).fill(REASON)
    shot(page, "admin-verdict")
    page.get_by_role("button", name="Append the verdict").click()
    expect(page.get_by_text("1 runs are cheat now.")).to_be_visible()
    assert ranked(url) == ["beta", "alpha"]
    page.goto(f"{url}{site.fast.get_absolute_url()}")
    expect(page.get_by_text(REASON)).to_be_visible()
    shot(page, "rejected-run")
    assert REASON in httpx.get(f"{url}/feed.atom").text
