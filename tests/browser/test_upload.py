"""A newcomer's walk with real processes: sign up, upload, check, confirm, watch, read, publish,
compare, withdraw. In Chromium, and once more by `kbx` with a key made there.
"""

import io
import os
import re
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from runner.processes import Child, stop_all

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 150_000  # milliseconds; only a broken system needs them
RELU = (ROOT / "samples/plain/Activation/relu.py").read_text()
WRONG = RELU.replace("def relu(", "def original(") + (
    "\n\ndef gelu(input, approximate='none'):\n    return original(input) * 2 + 1\n"
)


@dataclass
class Site:
    """A web process, the worker that writes results down, and one interpreter."""

    folder: Path
    children: list[Child] = field(default_factory=list)

    def __post_init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "kbx_site.settings.development",
            "KBX_STATE_DIR": str(self.folder),
            "KBX_BROKER_URL": "filesystem://localhost//",
            "DATABASE_URL": f"sqlite:///{self.folder / 'kbx.sqlite3'}",
            "KBX_TRUST_CANDIDATES": "1",
            "KBX_SWEEP_SECONDS": "1",
            "PYTHONPATH": str(ROOT),
        }

    def manage(self, *arguments: str) -> None:
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]

    def start(self, name: str, *module: str) -> None:
        command = [sys.executable, "-m", *module]
        log = self.folder / f"{name}.log"
        self.children.append(Child(name, command, self.environment, log=log))

    def start_all(self) -> None:
        bind = ["--bind", f"127.0.0.1:{self.port}", "--threads", "4", "--chdir", str(ROOT)]
        self.start("web", "gunicorn", "kbx_site.wsgi", *bind)
        self.start("site", "runner", "worker", "--no-devices", "--site-queue")
        self.start("board", "runner", "worker", "--devices", "cpu")
        retries = httpx.Client(transport=httpx.HTTPTransport(retries=10), timeout=60)
        assert retries.get(f"{self.url}/readyz").json()["ready"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("site"))
    site.manage("migrate", "-v0")
    site.manage("sync_tasks")
    site.manage("judge_on", "cpu-interpreter")
    plain = ["samples/plain/Activation/relu.py", "--method", "Plain", "--kind", "human"]
    site.manage("import_submission", str(ROOT / plain[0]), *plain[1:])
    try:
        site.start_all()
        yield site
    finally:
        stop_all(site.children[::-1], 10)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """One that passes, one that is wrong, a name that nobody knows, and what is no kernel."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("mine/Activation/relu.py", RELU)
        packed.writestr("mine/Activation/gelu.py", WRONG)
        packed.writestr("mine/Activation/geluu.py", WRONG.replace("def gelu", "def geluu"))
        packed.writestr("mine/notes.txt", "hello")
    path = tmp_path / "mine.zip"
    path.write_bytes(buffer.getvalue())
    return path


def looked_at(page: Page, name: str) -> None:
    """No page of the walk is wider than a phone; with KBX_SHOTS it leaves pictures there."""
    usual = page.viewport_size
    for width in (360, 820, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width, name
        for theme in ("light", "dark") if "KBX_SHOTS" in os.environ else ():
            page.emulate_media(color_scheme=theme)
            shot = Path(os.environ["KBX_SHOTS"]) / f"{name}-{width}-{theme}.png"
            page.screenshot(path=shot, full_page=True)
    page.set_viewport_size(usual)


def sign_up(page: Page, site: Site, name: str) -> None:
    page.goto(f"{site.url}/accounts/signup/")
    page.locator("[name=email]").fill(f"{name}@example.org")
    page.locator("[name=username]").fill(name)
    page.locator("[name=password1]").fill("a long enough phrase")
    page.get_by_role("button", name="Sign up").click()
    page.wait_for_load_state()


def send(page: Page, site: Site, archive: Path) -> None:
    page.goto(f"{site.url}/submissions/new/")
    page.get_by_label("Method", exact=True).fill("My model 1.0")
    page.get_by_label("Label", exact=True).fill("temperature 0.7")
    page.get_by_label("Visibility").select_option("private")
    page.get_by_label("File", exact=True).set_input_files(archive)
    looked_at(page, "form")
    page.get_by_role("button", name="Check this upload").click()


def compare(page: Page, site: Site) -> None:
    """With another method that was judged meanwhile, from the comparison's own form."""
    page.goto(f"{site.url}/compare/?gpu=cpu-interpreter")
    page.get_by_label("Method A").select_option("my-model-1-0")
    page.get_by_label("Method B").select_option("plain")
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("My model 1.0")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Plain")
    looked_at(page, "compared")


@pytest.mark.timeout(600)
def test_a_newcomers_walk_from_signing_up_to_withdrawing(
    site: Site, page: Page, archive: Path
) -> None:
    sign_up(page, site, "newcomer")
    send(page, site, archive)

    expect(page.get_by_text("Nothing is submitted yet.")).to_be_visible()
    plan = page.get_by_role("region", name="Plan")
    expect(plan.get_by_role("row")).to_have_count(3)
    expect(page.get_by_text("did you mean gelu")).to_be_visible()
    expect(page.get_by_text("not a kind of file that is read")).to_be_visible()
    looked_at(page, "draft")
    draft = page.url
    page.get_by_role("button", name="Submit 2 candidates").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("temperature 0.7")
    submission = page.url
    looked_at(page, "judging")
    assert httpx.get(submission).status_code == 404  # private
    done = page.get_by_role("heading", name="Judged", exact=True)
    expect(done).to_be_visible(timeout=PATIENCE)  # by htmx, without a reload
    table = page.get_by_role("region", name="Candidates by GPU")
    expect(table.get_by_role("link", name="passed")).to_be_visible()
    expect(table.get_by_role("link", name="wrong-values")).to_be_visible()
    looked_at(page, "judged")
    page.goto(draft)
    expect(page).to_have_url(submission)  # confirmed once and for all

    page.get_by_role("region", name="Candidates by GPU").get_by_text("wrong-values").click()
    expect(page.get_by_text("This submission is private")).to_be_visible()
    expect(page.get_by_role("region", name="Source")).to_contain_text("def gelu")
    run = page.url
    assert httpx.get(run).status_code == 404

    page.goto(submission)
    page.get_by_label("Visibility").select_option("public")
    page.get_by_label("Sources").select_option("hidden")
    page.get_by_role("button", name="Change who sees it").click()
    expect(page.get_by_role("status")).to_contain_text("now public, sources hidden")
    looked_at(page, "public")
    seen = httpx.get(run)
    assert seen.status_code == 200
    assert "def gelu" not in seen.text
    board = f"{site.url}/leaderboard/?gpu=cpu-interpreter"
    assert "My model 1.0" in httpx.get(board).text

    compare(page, site)
    page.goto(submission)
    page.get_by_label("Yes, withdraw it for good").check()
    page.get_by_role("button", name="Withdraw this submission").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Withdrawn")
    assert "My model 1.0" not in httpx.get(board).text
    assert httpx.get(run).status_code == 410


def kbx(site: Site, *arguments: str, key: str = "") -> str:
    """What the command printed, in a home of its own, without a terminal."""
    environment = site.environment | {"XDG_CONFIG_HOME": str(site.folder / "config")}
    done = subprocess.run(
        [sys.executable, "-m", "runner", *arguments, "--site", site.url],
        env=environment, capture_output=True, text=True, input=key, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.mark.timeout(600)
def test_the_same_walk_by_kbx_with_a_key(site: Site, page: Page, archive: Path) -> None:
    sign_up(page, site, "programmer")
    page.goto(f"{site.url}/me/")
    page.get_by_label("What it is for").fill("laptop")
    page.get_by_role("button", name="Make a key").click()
    key = page.locator("[data-key]").inner_text().strip()
    assert "signed in as programmer" in kbx(site, "login", "--stdin", key=key)

    asked = ["submit", str(archive), "--method", "My model 1.0", "--visibility", "private"]
    dry = kbx(site, *asked, "--dry-run")
    assert "did you mean gelu" in dry
    assert "nothing was submitted" in dry
    sent = kbx(site, *asked, "--yes")
    uuid = re.search(r"/submissions/([0-9a-f-]{36})/", sent)[1]
    watched = kbx(site, "status", uuid, "--watch")
    assert "2/2 judged (1 passed, 1 wrong-values)" in watched.splitlines()[-1]

    api = httpx.Client(base_url=f"{site.url}/api/v1/submissions/{uuid}/")
    assert api.get("").status_code == 404  # private
    api.headers["Authorization"] = f"Bearer {key}"
    rows = api.get("candidates/").json()
    assert {row["task"]: row["outcomes"][0]["verdict"] for row in rows} == {
        "relu": "passed",
        "gelu": "wrong-values",
    }
    assert api.post("withdraw/").json()["withdrawn_at"]
    assert api.get("candidates/").status_code == 410
