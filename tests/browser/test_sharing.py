"""Data, changes, API documents and embeds in a browser: under the CSP, and framed by others."""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SHOTS = os.environ.get("KBX_SHOTS")  # a folder: pictures of the pages are left there
LONG = "A method with a rather long name that goes on and on, version 2026-11-30"


@pytest.fixture
def results(make, settings, tmp_path):
    settings.STATE_DIR = tmp_path
    h200 = make.gpu()
    relu, gelu = make.task(), make.task("gelu")
    for slug, name, speedup in (("alpha", LONG, 2.0), ("beta", "Beta <i>", 0.5)):
        entry = make.submission(make.method(slug, name=name), f"{slug}-set")
        make.measurement(make.run(entry, relu, h200, speedup=speedup), 0, speedup=speedup)
        make.run(entry, gelu, h200, verdict="wrong-values", stage="check")
    from benchmark.models import Board

    Board.bump()


def shot(page, name: str) -> None:
    if SHOTS:
        for width in (360, 820, 1400):
            for theme in ("light", "dark"):
                page.set_viewport_size({"width": width, "height": 900})
                page.emulate_media(color_scheme=theme)
                page.screenshot(path=Path(SHOTS) / f"{name}-{width}-{theme}.png", full_page=True)


@pytest.mark.parametrize("path", ["data", "changes", "embed/standings"])
def test_pages_fit_a_phone(live_server, results, page, path):
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"{live_server.url}/{path}/")
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 360
    shot(page, path.replace("/", "-"))


def test_the_api_can_be_read_and_tried_under_the_csp(live_server, results, page):
    page.goto(f"{live_server.url}/api/v1/docs/")
    expect(page.locator("#operations-boards-leaderboard")).to_be_visible(timeout=60_000)
    page.locator("#operations-boards-leaderboard .opblock-summary-control").click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()
    expect(page.locator(".live-responses-table tbody .response-col_status").first).to_contain_text(
        "200"
    )
    shot(page, "docs")


@pytest.fixture
def blog(live_server):
    """Somebody else's page, at an origin of its own, with an embed in it."""

    class Post(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = (
                f'<link rel="icon" href="data:,"><iframe src="{live_server.url}/embed/verdicts/">'
            )
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Post) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_others_may_frame_an_embed_and_its_chart_draws(live_server, results, page, blog):
    page.goto(blog)
    chart = page.frame_locator("iframe").locator('[data-chart-url][data-drawn="yes"]')
    expect(chart).to_be_visible(timeout=60_000)
    shot(page, "embed-framed")
