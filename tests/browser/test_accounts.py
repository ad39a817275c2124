"""A newcomer's account in a real browser: in, a key, out; with and without JavaScript."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.core.cache import cache
from playwright.sync_api import Browser, Page, expect

from benchmark.models import Draft

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PASSWORD = "long-enough-to-pass"


@pytest.fixture(autouse=True)
def _nothing_counted() -> None:
    cache.clear()


@pytest.fixture
def plain(browser: Browser) -> Iterator[Page]:
    """A visitor without JavaScript."""
    context = browser.new_context(java_script_enabled=False)
    yield context.new_page()
    context.close()


def sign_up(page: Page, site: str) -> None:
    page.goto(f"{site}/")
    page.get_by_role("link", name="Sign in").click()
    page.get_by_role("link", name="Sign up").click()
    page.get_by_label("Email").fill("ada@example.org")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign up").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("ada")


def walk(page: Page, site: str, make: Any) -> None:
    make.gpu()
    sign_up(page, site)
    expect(page.get_by_role("region", name="Quota of today")).to_contain_text("1,000")
    page.get_by_label("What it is for").fill("laptop")
    page.get_by_role("button", name="Make a key").click()
    secret = page.locator("[data-key]").inner_text().strip()
    asked = {"headers": {"Authorization": f"Bearer {secret}"}, "timeout": 30}
    assert httpx.get(f"{site}/api/v1/me/", **asked).json()["username"] == "ada"
    page.get_by_role("link", name="I have copied it").click()
    assert secret not in page.content()
    page.get_by_role("button", name="Revoke laptop").click()
    expect(page.get_by_role("region", name="Your API keys")).to_contain_text("revoked")
    assert httpx.get(f"{site}/api/v1/me/", **asked).status_code == 401
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("link", name="Sign in")).to_be_visible()
    page.goto(f"{site}/me/")
    page.get_by_label("Login").fill("ada@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("ada")


def test_a_newcomer_makes_an_account_a_key_and_leaves(
    page: Page, live_server: Any, make: Any
) -> None:
    walk(page, live_server.url, make)


def test_the_same_without_javascript(plain: Page, live_server: Any, make: Any) -> None:
    walk(plain, live_server.url, make)


@pytest.mark.parametrize("width", [360, 820, 1400])
def test_no_page_of_an_account_is_wider_than_its_window(
    page: Page, live_server: Any, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for path in ("login/", "signup/", "password/reset/"):
        page.goto(f"{live_server.url}/accounts/{path}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    user = User.objects.create_user("a" * 39, f"{'b' * 60}@example.org", PASSWORD)
    Draft.objects.create(
        created_by=user, method="m" * 120, kind="model", label="l" * 80, filename="f" * 200,
        visibility="private",
    )  # fmt: skip
    page.goto(f"{live_server.url}/accounts/login/")
    page.get_by_label("Login").fill("a" * 39)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    for path in ("/me/", "/accounts/email/", "/accounts/password/change/", "/accounts/logout/"):
        page.goto(f"{live_server.url}{path}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_the_pages_of_accounts(
    page: Page, live_server: Any, make: Any, theme: str
) -> None:
    page.emulate_media(color_scheme=theme)
    make.gpu()
    found = {}

    def look(path: str) -> None:
        page.goto(f"{live_server.url}{path}")
        report = Axe().run(page, options={"resultTypes": ["violations"]}).response
        grave = [v["id"] for v in report["violations"] if v["impact"] in ("serious", "critical")]
        found.update({path: grave} if grave else {})

    for path in ("login/", "signup/", "password/reset/", "password/reset/done/", "confirm-email/"):
        look(f"/accounts/{path}")
    sign_up(page, live_server.url)
    page.get_by_label("What it is for").fill("laptop")
    page.get_by_role("button", name="Make a key").click()
    for path in ("/me/", "/accounts/email/", "/accounts/password/change/", "/accounts/logout/"):
        look(path)
    assert found == {}
