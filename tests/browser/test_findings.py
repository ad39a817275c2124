"""The findings in a browser: charts under the CSP, numbers without JavaScript, a phone's width."""

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def results(make):
    """Two methods, two categories, one kernel under the roofline, one method named like markup."""
    h200 = make.gpu(peak_bandwidth=4.8e12, peak_flops={"float32": 66.9e12})
    relu, add = make.task(), make.task("add", "math")
    alpha = make.submission(make.method("alpha"), "alpha")
    beta = make.submission(make.method("beta", name="Beta <img src=x onerror=alert(1)>"), "beta")
    run = make.run(alpha, relu, h200, speedup=2.0)
    make.measurement(run, 0, speedup=2.0, bytes=1e8, flops=1e7)
    make.run(alpha, add, h200, verdict="wrong-values", stage="check")
    make.run(beta, relu, h200, speedup=0.5)
    make.run(beta, add, h200, verdict="call-error", stage="call")
    return h200


def test_the_charts_draw_with_names_as_text(live_server, results, page):
    page.goto(f"{live_server.url}/findings/")
    expect(page.locator('[data-chart-url][data-drawn="yes"]')).to_have_count(4, timeout=30_000)
    assert page.locator("[data-chart-url] img").count() == 0


def test_the_answers_stand_there_without_javascript(live_server, results, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{live_server.url}/findings/")
    expect(page.get_by_text("1 of 2 correct kernels are slower")).to_be_visible()
    expect(page.get_by_role("cell", name="10.2 % (14 df)").first).to_be_visible()
    page.get_by_role("link", name="KernelBench-X paper").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Published figures")
    expect(page.get_by_role("cell", name="64.2").first).to_be_visible()
    context.close()


@pytest.mark.parametrize("path", ["/findings/", "/findings/published/"])
def test_a_phone_scrolls_down_only(live_server, results, page, path):
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"{live_server.url}{path}")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
