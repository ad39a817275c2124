"""Portability and rounds in a browser: pictures under the CSP, switches without JavaScript."""

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def boards(make):
    """A method with two rounds on two GPUs and the interpreter, its name like markup."""
    h200, a100, cpu = make.gpu(), make.gpu("a100", architecture="sm_80"), make.interpreter()
    tasks = [make.task(), make.task("gelu"), make.task("a_task_with_quite_a_long_name", "math")]
    name = "Beta with a long name <img src=x onerror=alert(1)>"
    beta = make.submission(make.method("beta", name=name), "beta")
    wrong = {"verdict": "wrong-values", "stage": "check"}
    for gpu, factor in ((h200, 1.0), (a100, 0.5)):
        make.run(beta, tasks[0], gpu, speedup=2.0 * factor)
        make.run(beta, tasks[1], gpu, **wrong)
        make.run(beta, tasks[1], gpu, speedup=0.7 * factor, round=1)
        make.run(beta, tasks[2], gpu, speedup=3.0 * factor)
    make.run(beta, tasks[2], a100, **wrong)
    make.run(beta, tasks[0], cpu)


def test_pictures_draw_under_the_csp(live_server, boards, page):
    for path, count in (("/portability/", 1), ("/rounds/beta/", 2)):
        page.goto(live_server.url + path)
        drawn = page.locator('[data-chart-url][data-drawn="yes"]')
        expect(drawn).to_have_count(count, timeout=30_000)
        assert page.locator("main img").count() == 0


def test_from_the_method_to_its_rounds_and_a_run(live_server, boards, page):
    page.goto(f"{live_server.url}/methods/beta/")
    page.get_by_role("link", name="What its rounds rescued").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("round by round")
    expect(page.get_by_text("1 rescued: failed before")).to_be_visible()
    rescued = page.get_by_role("region", name="rescued tasks")
    rescued.get_by_role("link", name="slow").click()
    assert "/runs/" in page.url


def test_scale_and_devices_are_chosen_without_javascript(live_server, boards, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{live_server.url}/portability/")
    page.get_by_role("link", name="share of the method's own best GPU").click()
    expect(page.locator("#speedup table")).to_contain_text("best")
    page.get_by_label("CPU interpreter").uncheck()
    page.get_by_role("button", name="Compare these").click()
    assert "scale=relative" in page.url
    assert "cpu-interpreter" not in page.url
    expect(page.locator("#pairs tbody tr")).to_have_count(1)
    page.locator("#ratios summary").first.click()
    expect(page.locator("#ratios details table")).to_contain_text("2.00")
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/portability/", "/rounds/", "/rounds/beta/"])
def test_nothing_is_wider_than_a_phone(live_server, boards, page, path, theme):
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(live_server.url + path)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
