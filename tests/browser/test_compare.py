"""Comparisons in a browser: choosing by ticks and by form, the pictures, the widths."""

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PAIR = "/compare/?m=alpha&m=beta&gpu=h200"


@pytest.fixture
def pair(make):
    """Eight tasks: alpha twice as fast on seven, beta alone solves the eighth."""
    h200 = make.gpu()
    make.gpu("a100")
    alpha = make.submission(make.method("alpha", name="Alpha " + "with a long name " * 4))
    beta = make.submission(make.method("beta", name="Beta <img src=x onerror=alert(1)>"))
    for i in range(8):
        task = make.task(f"a_task_with_a_rather_long_name_{i}")
        if i:
            make.run(alpha, task, h200, speedup=2.0 + i / 10)
        else:
            make.run(alpha, task, h200, verdict="timeout", stage="call")
        make.run(beta, task, h200, speedup=1.0 + i / 10)


def test_ticked_rows_lead_to_their_comparison(live_server, pair, page):
    page.goto(f"{live_server.url}/leaderboard/")
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Compare the ticked methods").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("against")
    assert "m=beta&m=alpha" in page.url or "m=alpha&m=beta" in page.url
    expect(page.locator(".verdict")).to_contain_text("sign test p = 0.016")


def test_the_pictures_draw_with_names_as_text(live_server, pair, page):
    page.goto(live_server.url + PAIR)
    drawn = page.locator('[data-chart-url][data-drawn="yes"]')
    expect(drawn).to_have_count(2, timeout=30_000)
    assert page.locator("[data-chart-url] img").count() == 0
    expect(drawn.first).to_contain_text("Beta <img")


def test_swapping_keeps_the_choice(live_server, pair, page):
    page.goto(live_server.url + PAIR)
    page.get_by_role("link", name="Swap A and B").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Beta")
    assert "m=beta&m=alpha&gpu=h200" in page.url


def test_choosing_works_without_javascript(live_server, pair, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{live_server.url}/compare/")
    page.get_by_label("Method A").select_option("alpha")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Compare Alpha")
    page.get_by_role("link", name="Beta").click()
    expect(page.locator(".verdict")).to_contain_text("Beta <img src=x onerror=alert(1)> solves 1")
    page.get_by_text("Table of all 7 pairs").click()
    expect(page.get_by_role("region", name="All pairs")).to_contain_text("2.70x")
    context.close()


@pytest.mark.parametrize("path", ["/compare/", "/compare/?m=alpha", PAIR])
def test_nothing_is_wider_than_a_phone(live_server, pair, page, path):
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(live_server.url + path)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
