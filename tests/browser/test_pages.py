"""What only a browser can tell: navigation, uploads, charts under the CSP, themes, widths."""

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

KERNEL = "import triton\n\n@triton.jit\ndef k(x):\n    pass\n\ndef relu(input):\n    return input\n"


@pytest.fixture
def board(make):
    """Two methods on two GPUs, one of them named like markup."""
    h200, a100 = make.gpu(), make.gpu("a100")
    relu, add = make.task(), make.task("add", "math")
    alpha = make.submission(make.method("alpha"), "alpha")
    beta = make.submission(make.method("beta", name="Beta <img src=x onerror=alert(1)>"), "beta")
    run = make.run(alpha, relu, h200, speedup=2.0)
    make.measurement(run, 0, speedup=2.0)
    make.run(alpha, add, h200, speedup=1.2)
    make.run(alpha, relu, a100, speedup=0.5)
    make.run(beta, relu, h200, speedup=1.1)
    return run


def test_from_home_over_a_filter_to_a_run(live_server, board, page):
    page.goto(live_server.url)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Alpha solves 2 of 2")
    page.get_by_role("link", name="Full leaderboard").click()
    page.wait_for_load_state()
    page.get_by_label("GPU").select_option("a100")
    expect(page.locator("#board h2").first).to_have_text("A100")
    assert "gpu=a100" in page.url
    page.get_by_role("link", name="Tasks", exact=True).click()
    page.get_by_role("link", name="relu", exact=True).click()
    page.locator("table").first.get_by_role("link", name="fast").first.click()
    expect(page.get_by_text("kbx evaluate relu.py")).to_be_visible()
    assert "/runs/" in page.url


def test_charts_draw_under_the_csp_with_names_as_text(live_server, board, page):
    page.goto(f"{live_server.url}/leaderboard/")
    charts = page.locator("[data-chart-url]")
    drawn = page.locator('[data-chart-url][data-drawn="yes"]')
    expect(drawn).to_have_count(charts.count(), timeout=30_000)
    assert charts.count() == 4
    expect(drawn.first.locator("svg").first).to_be_visible()
    assert page.locator("[data-chart-url] img").count() == 0
    expect(drawn.first).to_contain_text("Beta <img")


def test_a_filtered_board_draws_its_own_charts(live_server, board, page):
    page.goto(f"{live_server.url}/leaderboard/")
    page.get_by_label("Category").select_option("math")
    expect(page.locator("#board h2").first).to_contain_text("Math")
    expect(page.locator('[data-drawn="yes"]')).to_have_count(4, timeout=30_000)


def test_numbers_are_there_without_javascript(live_server, board, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{live_server.url}/leaderboard/?gpu=a100")
    expect(page.get_by_text("0.500x").first).to_be_visible()
    page.get_by_label("GPU").select_option("h200")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#board h2").first).to_have_text("H200")
    page.locator("summary").first.click()
    expect(page.locator("details table").first).to_contain_text("median")
    context.close()


def test_the_form_takes_a_file_and_shows_its_progress(live_server, make, page, tmp_path):
    make.task()
    kernel = tmp_path / "relu.py"
    kernel.write_text(KERNEL)
    page.goto(f"{live_server.url}/submissions/new/")
    page.get_by_label("Method", exact=True).fill("My model")
    page.get_by_label("Label").fill("first")
    page.get_by_label("File", exact=True).set_input_files(kernel)
    page.get_by_role("button", name="Check this upload").click()
    page.get_by_role("button", name="Submit 1 candidate").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("first")
    expect(page.get_by_role("link", name="relu", exact=True)).to_be_visible()


def test_the_admin_does_not_confuse_the_theme(live_server, board, page):
    page.emulate_media(color_scheme="dark")
    page.goto(f"{live_server.url}/admin/")
    page.goto(live_server.url)
    page.get_by_role("button", name="Light").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_the_theme_is_kept(live_server, board, page):
    page.goto(live_server.url)
    page.get_by_role("button", name="Dark").click()
    page.goto(f"{live_server.url}/leaderboard/")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("button", name="Light")).to_be_visible()


def test_the_keyboard_reaches_the_content_first(live_server, board, page):
    page.goto(live_server.url)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


PAGES = ["/", "/leaderboard/", "/categories/", "/tasks/", "/tasks/relu/", "/methods/alpha/"]
PAGES += ["/about/metrics/", "/submissions/new/", "/queue/"]


@pytest.mark.parametrize("path", PAGES)
def test_nothing_is_wider_than_a_phone(live_server, board, page, path):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(live_server.url + path)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
