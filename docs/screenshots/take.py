"""Take the pictures of this folder from a running site: `make demo`, and in another terminal

    .venv/bin/python docs/screenshots/take.py [http://127.0.0.1:8000]

Needs a Chromium on the PATH. What a page shows first is taken, not its whole length: each picture
answers what a visitor understands at once. The folder stays under 3 MB.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

FOLDER = Path(__file__).resolve().parent
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
MOST_BYTES = 3 << 20
WIDE, TABLET, PHONE = (1280, 1000), (820, 1180), (390, 844)
# name -> path, or a link to follow from the page before it
PAGES = {
    "home": "/",
    "leaderboard": "/leaderboard/",
    "categories": "/categories/",
    "category": "/categories/math/",
    "tasks": "/tasks/",
    "task": "/tasks/softmax/",
    "portability": "/portability/",
    "rounds": "/rounds/",
    "findings": "/findings/",
    "published": "/findings/published/",
    "queue": "/queue/",
    "metrics": "/about/metrics/",
    "submit": "/submissions/new/",
}
ELSEWHERE = {  # other widths and the dark theme, of the pages that have most to lose
    ("home", "phone", "light"): PHONE,
    ("leaderboard", "phone", "dark"): PHONE,
    ("home", "tablet", "dark"): TABLET,
    ("findings", "tablet", "light"): TABLET,
}


def main() -> None:
    site = (sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000").rstrip("/")
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        sys.exit(f"no Chromium on the PATH: install one of {', '.join(CHROMIUM)}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        take_all(browser, site)
        browser.close()
    total = sum(picture.stat().st_size for picture in FOLDER.glob("*.png"))
    print(f"{FOLDER}: {total / 1024:.0f} KiB")
    if total > MOST_BYTES:
        sys.exit(f"more than {MOST_BYTES >> 20} MB: take fewer or smaller pictures")


def take_all(browser: Browser, site: str) -> None:
    page = visitor(browser, WIDE, "light")
    for name, path in PAGES.items():
        take(page, site + path, name)
    for name, selector in (("method", ".standings th a"), ("run", "a[href^='/runs/']")):
        page.goto(f"{site}/leaderboard/" if name == "method" else f"{site}/tasks/softmax/")
        follow(page, site, name, selector)
    rounds = page.goto(f"{site}/rounds/") and page.locator("main a[href^='/rounds/']")
    if rounds and rounds.count():
        take(page, site + str(rounds.first.get_attribute("href")), "rounds-method")
    compare_first_two(page, site)
    for (name, width, theme), size in ELSEWHERE.items():
        take(visitor(browser, size, theme), site + PAGES[name], f"{name}-{width}-{theme}")


def visitor(browser: Browser, size: tuple[int, int], theme: str) -> Page:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=theme,  # type: ignore[arg-type]
    )
    return context.new_page()


def follow(page: Page, site: str, name: str, selector: str) -> None:
    """The first link that the selector finds on the page; nothing where there is none."""
    links = page.locator(selector)
    if links.count():
        take(page, site + str(links.first.get_attribute("href")), name)


def compare_first_two(page: Page, site: str) -> None:
    page.goto(f"{site}/leaderboard/")
    slugs = [
        str(link.get_attribute("href")).split("/")[2]
        for link in page.locator(".standings th a").all()[:2]
    ]
    if len(slugs) == 2:
        take(page, f"{site}/compare/?m={slugs[0]}&m={slugs[1]}", "compare")


def take(page: Page, url: str, name: str) -> None:
    page.goto(url)
    page.wait_for_load_state("networkidle")
    charts = page.locator("[data-chart-url]").count()
    page.wait_for_function(
        "count => document.querySelectorAll('[data-drawn=\"yes\"]').length >= count", arg=charts
    )
    page.screenshot(path=FOLDER / f"{name}.png")
    print(name, url)


if __name__ == "__main__":
    main()
