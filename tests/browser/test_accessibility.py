"""What a machine can tell of accessibility: axe-core on every page, in both themes; and numbers for
those who have no JavaScript.
"""

import pytest
from axe_playwright_python.sync_playwright import Axe

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

GRAVE = ("serious", "critical")
RULES = {"resultTypes": ["violations"]}
PAGES = [
    *("/", "/leaderboard/", "/leaderboard/?category=math", "/categories/", "/categories/math/"),
    *("/tasks/", "/tasks/relu/", "/methods/alpha/", "/compare/", "/compare/?m=alpha&m=beta"),
    *("/portability/", "/rounds/", "/rounds/alpha/", "/findings/", "/findings/published/"),
    *("/queue/", "/about/metrics/", "/submissions/new/", "/runs/{run}/"),
]
# Pages whose numbers a visitor without JavaScript must see, and one of those numbers.
NUMBERS = {
    "/": "2 of 2",
    "/leaderboard/": "1.67x",
    "/categories/": "1/1",
    "/tasks/relu/": "2.00x",
    "/methods/alpha/": "2/2",
    "/compare/?m=alpha&m=beta": "1.82x",
    "/portability/": "0.500x",
    "/rounds/alpha/": "1.55x",
    "/findings/": "1 of 4",
    "/runs/{run}/": "2.00x",
}


@pytest.fixture
def run(make):
    """Two methods on two GPUs, one of them in two rounds."""
    h200, a100 = make.gpu(), make.gpu("a100")
    relu, add = make.task(), make.task("add", "math")
    alpha = make.submission(make.method("alpha"), "alpha")
    beta = make.submission(make.method("beta"), "beta")
    run = make.run(alpha, relu, h200, speedup=2.0)
    make.measurement(run, 0, speedup=2.0)
    make.run(alpha, add, h200, speedup=1.2)
    make.run(alpha, add, h200, round=1, speedup=1.4)
    make.run(alpha, relu, a100, speedup=0.5)
    make.run(beta, relu, h200, speedup=1.1)
    make.run(beta, add, h200, verdict="wrong-values", stage="check")
    return run


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(live_server, run, page, theme):
    found = {}
    page.emulate_media(color_scheme=theme)
    for path in PAGES:
        page.goto(live_server.url + path.format(run=run.uuid))
        page.wait_for_load_state("networkidle")
        report = Axe().run(page, options=RULES).response
        grave = [one for one in report["violations"] if one["impact"] in GRAVE]
        if grave:
            found[path] = [
                (one["id"], [node["target"] for node in one["nodes"]][:4]) for one in grave
            ]
    assert found == {}


def test_no_page_needs_javascript_for_its_numbers(live_server, run, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    missing = []
    for path, number in NUMBERS.items():
        page.goto(live_server.url + path.format(run=run.uuid))
        if number not in page.locator("main").inner_text():
            missing.append((path, number))
    context.close()
    assert missing == []
