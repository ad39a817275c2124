"""Take the pictures of this folder from a running site, and check what they show.

    .venv/bin/kbx demo --port 8431    # recorded results and our samples: wait until all are judged
    .venv/bin/python docs/screenshots/take.py http://127.0.0.1:8431

Needs a Chromium on the PATH. What a page shows first is taken, not its whole length: a
picture answers what a visitor understands at once. Colours are reduced to a palette, so that the
folder stays under 3 MB. A page that is wider than its window, or says an error on the console, ends
this with a message.
"""

import io
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

FOLDER = Path(__file__).resolve().parent
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
MOST_BYTES = 3 << 20
COLOURS = 128  # of a picture's palette: text on plain paper and a few fills need no more
SIZES = {"desktop": (1280, 960), "tablet": (820, 1100), "phone": (390, 844)}
# name -> path; or (page, selector): the first link that the selector finds there
PAGES: dict[str, str | tuple[str, str]] = {
    "home": "/",
    "leaderboard": "/leaderboard/",
    "leaderboard-interpreter": "/leaderboard/?gpu=cpu-interpreter",
    "categories": "/categories/",
    "category": "/categories/math/",
    "tasks": "/tasks/",
    "task": "/tasks/sqrt_exp/",
    "method": ("/leaderboard/", ".standings th a"),
    "compare-choose": "/compare/",
    "compare": ("/compare/", "main a[href*='m=']"),
    "portability": "/portability/",
    "rounds": "/rounds/",
    "rounds-method": ("/rounds/", "main th a[href^='/rounds/']"),
    "findings": "/findings/",
    "published": "/findings/published/",
    "run": ("/tasks/sqrt_exp/", "td:has(.fast) a[href^='/runs/']"),
    "run-interpreter": ("/", ".latest tr:has-text('ours') a[href^='/runs/']"),
    "submit": "/submissions/new/",
    "queue": "/queue/",
    "changes": "/changes/",
    "data": "/data/",
    "metrics": "/about/metrics/",
    "embed": "/embed/standings/",
    "api": "/api/v1/docs/",
    "not-found": "/tasks/softmx/",
}
ALL, MAIN = tuple(PAGES), ("home", "leaderboard", "task", "compare", "portability", "findings")
ELSEWHERE = (("phone", "light", MAIN), ("desktop", "dark", MAIN), ("phone", "dark", ("home",)))
ELSEWHERE += (("tablet", "light", ("leaderboard",)),)


@dataclass(frozen=True)
class Look:
    size: str
    theme: str

    @property
    def tail(self) -> str:
        """What a picture's name ends with; nothing for the usual look."""
        parts = (self.size * (self.size != "desktop"), self.theme * (self.theme != "light"))
        return "".join(f"-{part}" for part in parts if part)


def main() -> None:
    site = (sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000").rstrip("/")
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        sys.exit(f"no Chromium on the PATH: install one of {', '.join(CHROMIUM)}")
    for old in FOLDER.glob("*.png"):
        old.unlink()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        faults = take(browser, site, Look("desktop", "light"), ALL)
        for size, theme, names in ELSEWHERE:
            faults += take(browser, site, Look(size, theme), names)
        browser.close()
    total = sum(picture.stat().st_size for picture in FOLDER.glob("*.png"))
    print(f"{FOLDER}: {total / 1024:.0f} KiB")
    if total > MOST_BYTES:
        faults.append(f"more than {MOST_BYTES >> 20} MB: take fewer or smaller pictures")
    if faults:
        sys.exit("\n".join(faults))


def take(browser: Browser, site: str, look: Look, names: tuple[str, ...]) -> list[str]:
    """Writes the pictures; what is wrong with the pages."""
    width, height = SIZES[look.size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=look.theme,  # type: ignore[arg-type]  # one of its words
        reduced_motion="reduce",
    )
    page, faults = context.new_page(), list[str]()
    page.set_default_timeout(90_000)
    page.on("pageerror", lambda error: faults.append(f"{page.url}: {error}"))
    for name in names:
        url = address(page, site, PAGES[name])
        if url is None:
            print(f"{name}: nothing to show")
            continue
        visit(page, url)
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        if wide > 0 and name != "api":
            faults.append(f"{url} at {width}: {wide} px wider than the window")
        save(page.screenshot(), FOLDER / f"{name}{look.tail}.png")
        print(f"{name}{look.tail} {url}", flush=True)
    context.close()
    return faults


def address(page: Page, site: str, of: str | tuple[str, str]) -> str | None:
    if isinstance(of, str):
        return site + of
    start, selector = of
    page.goto(site + start)
    links = page.locator(selector)
    return urljoin(site + start, str(links.first.get_attribute("href"))) if links.count() else None


def visit(page: Page, url: str) -> None:
    """Until every chart in it is drawn."""
    page.goto(url)
    page.wait_for_load_state("networkidle")
    charts = page.locator("[data-chart-url]").count()
    page.wait_for_function(
        "count => document.querySelectorAll('[data-drawn=yes]').length >= count", arg=charts
    )


def save(picture: bytes, path: Path) -> None:
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    flat = image.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    flat.save(path, optimize=True)


if __name__ == "__main__":
    main()
