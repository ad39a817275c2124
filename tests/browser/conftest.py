"""A real Chromium against a live server. What a page says on the console fails its test."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

# Playwright's loop runs in the test's thread, where Django would refuse to query.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, CHROMIUM)))
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh visitor; after the test its page must have logged no error."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if is_bad(message) else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    # A request still under way would read a database that the test has given back.
    page.wait_for_load_state("networkidle")
    context.close()
    assert said == []


def is_bad(message) -> bool:
    return message.type in ("error", "warning")


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    """Boards kept by an earlier test are of another database."""
    from leaderboard import kept

    kept.forget()
