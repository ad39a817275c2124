"""A judge job end to end with a GPU host: from an upload to the leaderboard, as a site does it.

    python benchmarks/gpu_host.py [--device auto|cpu|cuda:0] [--plain 8] [--out FOLDER]

Starts on one machine, each as its own processes: PostgreSQL and Redis with passwords, gunicorn with
the production settings over TLS, the site's worker, and `kbx worker` as a GPU host would start it,
with the broker's address and nothing else of the site. Then a researcher signs up, makes a key,
sends plain kernels by `kbx submit` and cautionary ones by the form; when all are judged, public
pages and the API are read, and the host is drained by SIGTERM. What must hold is checked; the exit
status is 1 where something doesn't. No network is needed, nothing is installed; run it as root, as
GPU hosts run.

`--device cpu` is Triton's interpreter: the same way, correctness only. `--postgres-bin` and
`--redis-server` name programs that are not where Debian has them. Writes `gpu-host.{md,json}`.
"""

import argparse
import html
import json
import os
import platform
import re
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import psycopg2
import records
from servers import (
    Server,
    below,
    certificate,
    database_server,
    free_port,
    processor,
    redis_server,
)

from runner.processes import Child, adopt, end_orphans, stop_all
from runner.site_client import packed

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "samples"
# One a category, those first that are soon judged on a GPU.
PLAIN = (
    "Activation/relu", "Loss/mse_loss", "Fusion/fused_add_gelu", "Optimizer/sgd_step",
    "Reduce/mean", "Index/scatter", "Math/abs", "Pooling/avg_pool1d",
    "Normalization/normalized_cosine_similarity", "MatrixMultiply/matmul_fp16",
    "SpatialOps/interpolate", "Quantization/matmul_w8a8",
)  # fmt: skip
# Each is named after its verdict. Not here: a timeout takes its two minutes.
CAUTIONARY = (
    "load-error/floor", "forbidden/trunc", "call-error/cos", "wrong-shape/sum",
    "wrong-dtype/sigmoid", "wrong-values/selu", "non-finite/tanh", "input-mutated/relu",
    "forbidden/reciprocal", "crashed/erf",
)  # fmt: skip
PLAIN_METHOD, CAUTIONARY_METHOD = "Plain Triton", "Cautionary examples"
RESEARCHER, HOST = "researcher", "gpu-host-1"
POLL_SECONDS = 0.5
JOBS = 8  # in hand on a board: others compile while one is timed
LOG_LINES = 60
SPARE_SECONDS = 15  # of the limit, for pages and draining where not all was judged in time
OF_A_SITE = ("KBX_", "DJANGO_", "DATABASE_URL")  # how its variables begin


class Fault(Exception):  # noqa: N818  it is the site's, or ours
    """Something that must hold does not, and what follows needs it."""


@dataclass
class Watch:
    """Seconds since the start, told with every line, and the limit for all of it."""

    limit: float
    began: float = field(default_factory=time.monotonic)
    marks: dict[str, float] = field(default_factory=dict)

    @property
    def now(self) -> float:
        return time.monotonic() - self.began

    def say(self, words: str) -> None:
        print(f"{self.now:6.1f} s  {words}", flush=True)

    def mark(self, name: str) -> None:
        self.marks[name] = round(self.now, 1)
        self.say(name)

    def until(self, what: str, spare: float = 0) -> Iterator[None]:
        """A turn each half a second, until whoever asks has what it wants or the limit is over,
        less what is spared of it for what follows.
        """
        while self.now < self.limit - spare:
            yield
            time.sleep(POLL_SECONDS)
        raise Fault(f"{what}: not within the limit of {self.limit:g} s")


@dataclass
class Checks:
    """What must hold, and whether it does."""

    watch: Watch
    rows: list[dict[str, Any]] = field(default_factory=list)

    def expect(self, what: str, holds: object, found: object = "") -> None:
        self.rows.append({"what": what, "holds": bool(holds), "found": str(found)[:300]})
        if not holds:
            self.watch.say(f"DOES NOT HOLD: {what}: {found or 'no'}")

    @property
    def failed(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if not row["holds"]]


# -- the processes --


@dataclass
class Site:
    """All that runs, by name."""

    folder: Path
    chosen: argparse.Namespace
    watch: Watch
    children: dict[str, Child] = field(default_factory=dict)
    database: Server = field(init=False)
    broker: Server = field(init=False)
    port: int = field(default_factory=free_port)
    secrets: tuple[str, str] = field(
        default_factory=lambda: (secrets.token_hex(16), secrets.token_hex(16))
    )

    def start_servers(self) -> None:
        in_database, in_broker = self.secrets
        self.database = database_server(self.folder, self.chosen.postgres_bin, in_database)
        self.broker = redis_server(self.folder, self.chosen.redis_server, in_broker)
        for server in (self.database, self.broker):
            server.start()
            assert server.child is not None
            self.children[server.name] = server.child
        self.certificate, self.key = certificate(self.folder)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def database_url(self) -> str:
        return f"postgresql://kbx:{self.secrets[0]}@127.0.0.1:{self.database.port}/postgres"

    @property
    def broker_url(self) -> str:
        return f"redis://:{self.secrets[1]}@127.0.0.1:{self.broker.port}/0"

    @property
    def bare(self) -> dict[str, str]:
        """This process's environment without anything of a site in it."""
        kept = {name: v for name, v in os.environ.items() if not name.startswith(OF_A_SITE)}
        search = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        return kept | {"PYTHONPATH": ":".join(search), "PYTHONUNBUFFERED": "1"}

    @cached_property
    def environment(self) -> dict[str, str]:
        """The site's, as in `.env.example`."""
        return self.bare | {
            "DJANGO_SETTINGS_MODULE": "kbx_site.settings.production",
            "DATABASE_URL": self.database_url,
            "KBX_BROKER_URL": self.broker_url,
            "KBX_STATE_DIR": str(self.folder / "site"),
            "KBX_SECRET_KEY": secrets.token_urlsafe(60),
            "KBX_ALLOWED_HOSTS": "127.0.0.1",
            "KBX_SITE_URL": self.url,
            "KBX_SIGNUP": "1",  # no mail here, so nobody's address is verified
            "KBX_BIND": f"127.0.0.1:{self.port}",
            "KBX_WEB_WORKERS": "2",
        }

    @property
    def hosts(self) -> dict[str, str]:
        """What a GPU host gets: the broker's address. A folder and a name, as another machine."""
        return self.bare | {
            "KBX_BROKER_URL": self.broker_url,
            "KBX_STATE_DIR": str(self.folder / HOST),
            "KBX_HOST_NAME": HOST,
        }

    @property
    def researchers(self) -> dict[str, str]:
        """On a laptop that knows the certificate."""
        return self.bare | {"SSL_CERT_FILE": str(self.certificate), "HOME": str(self.folder)}

    def start(self, name: str, environment: dict[str, str], *module: str) -> Child:
        command = [sys.executable, "-m", *module]
        self.children[name] = Child(name, command, environment, self.folder / f"{name}.log")
        return self.children[name]

    def start_host(self) -> None:
        device = self.chosen.spec
        words = "cpu" if device["kind"] == "cpu" else f"cuda:{device['index']}"
        options = ("--devices", words, "--jobs", str(self.chosen.jobs))
        self.start("gpu-host", self.hosts, "runner", "worker", *options)

    def start_worker(self) -> None:
        options = ("--site-queue", "--no-devices")
        self.start("site-worker", self.environment, "runner", "worker", *options)

    def start_web(self) -> None:
        tls = ["--certfile", str(self.certificate), "--keyfile", str(self.key)]
        config = ["-c", str(ROOT / "deploy" / "gunicorn.conf.py"), "--chdir", str(ROOT)]
        self.start("web", self.environment, "gunicorn", *config, *tls, "kbx_site.wsgi")

    def manage(self, *arguments: str) -> Child:
        """A command of the runbook, on its way."""
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        name = arguments[0]
        child = Child(name, command, self.environment, self.folder / f"{name}.log")
        self.children[name] = child
        return child

    def ended_well(self, *children: Child) -> None:
        for child in children:
            for _ in self.watch.until(child.name):
                if not child.is_alive:
                    break
            if child.process.returncode:
                raise Fault(f"{child.name} ended with {child.process.returncode}")

    def alive(self) -> None:
        """Raises Fault where a process that must stay is gone."""
        for name in ("database", "redis", "web", "site-worker", "gpu-host"):
            if name in self.children and not self.children[name].is_alive:
                raise Fault(f"{name} ended with {self.children[name].process.returncode}")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(psycopg2.connect(self.database_url)) as connection:
            cursor = connection.cursor()
            cursor.execute(query)
            return list(cursor.fetchall())

    def processes(self) -> dict[str, dict[str, Any]]:
        """Each part with the number of its processes, and what of a site it has been told."""
        told = {"gpu-host": self.hosts, "web": self.environment, "site-worker": self.environment}
        found = {}
        for name, child in self.children.items():
            if child.is_alive:
                words = (
                    " ".join(child.arguments)
                    .replace(f"{ROOT}/", "")
                    .replace(sys.executable, "python")
                )
                for secret in self.secrets:
                    words = words.replace(secret, "...")
                found[name] = {
                    "command": words.replace(str(self.folder), "FOLDER"),
                    "processes": 1 + len(list(below(child.process.pid))),
                    "variables": sorted(v for v in told.get(name, {}) if v.startswith(OF_A_SITE)),
                }
        return found

    def end(self) -> None:
        servers = {"database", "redis"}
        stop_all([child for name, child in self.children.items() if name not in servers], 5)
        stop_all(
            [child for name, child in self.children.items() if name in servers], 3, [signal.SIGINT]
        )
        end_orphans()

    def tell_logs(self) -> None:
        for log in sorted(self.folder.glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
            print(f"---- {log.stem}, last {len(lines)} lines", *lines, sep="\n", flush=True)


def the_device(site: Site) -> dict[str, Any]:
    """What `kbx worker --list` says of the device that was asked for."""
    command = [sys.executable, "-m", "runner", "worker", "--list"]
    ran = subprocess.run(command, env=site.bare, capture_output=True, text=True, check=True)
    devices = [json.loads(line) for line in ran.stdout.splitlines()]
    asked = site.chosen.device
    for device in devices:
        name = "cpu" if device["kind"] == "cpu" else f"cuda:{device['index']}"
        if asked in ("auto", name):
            return dict(device)
    raise SystemExit(f"no device {asked!r} here, only {devices}")


def bring_up(site: Site) -> None:
    """As the runbook says; the GPU host comes once there is a broker, and waits for the site."""
    watch = site.watch
    site.start_servers()
    watch.mark("database and broker answer")
    site.start_host()
    files = site.manage("collectstatic", "--no-input", "--verbosity", "0")
    site.ended_well(site.manage("migrate", "--no-input", "--verbosity", "0"))
    watch.mark("migrated")
    site.ended_well(site.manage("sync_tasks"))
    watch.mark("tasks are there")
    site.start_worker()
    site.ended_well(files)
    watch.mark("static files collected")
    site.start_web()
    for name in ("collectstatic", "migrate", "sync_tasks"):
        del site.children[name]


# -- whoever uses it --


@dataclass
class Visitor:
    """A browser, with cookies; forms are sent as it would send them."""

    site: Site
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        trusted = ssl.create_default_context(cafile=str(self.site.certificate))
        retries = httpx.HTTPTransport(retries=3, verify=trusted)
        self.http = httpx.Client(base_url=self.site.url, transport=retries, timeout=60)

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.http.get(path, params=query or None)

    def json(self, path: str, **query: Any) -> Any:
        answer = self.get(f"/api/v1/{path}", **query)
        if answer.status_code != 200:
            raise Fault(f"GET {answer.url}: {answer.status_code} {answer.text[:300]}")
        return answer.json()

    def send(self, path: str, fields: dict[str, str], **files: tuple[str, bytes]) -> httpx.Response:
        """A form of the page at `path`, or one whose page was read before."""
        if "csrftoken" not in self.http.cookies:
            self.get(path)
        token = {"csrfmiddlewaretoken": self.http.cookies["csrftoken"]}
        headers = {"Referer": f"{self.site.url}{path}"}
        answer = self.http.post(path, data=fields | token, files=files or None, headers=headers)
        if answer.status_code not in (200, 302):
            raise Fault(f"POST {path}: {answer.status_code} {said(answer.text)}")
        return answer


def said(page: str) -> str:
    """A page's words, its errors first."""
    errors = re.findall(r"errorlist[^>]*>(.*?)</ul>", page, re.S) or [page]
    return " ".join(re.sub(r"<[^>]*>", " ", html.unescape(" ".join(errors))).split())[:400]


def sign_up(visitor: Visitor) -> str:
    """An account, signed in; an API key of it, read from the one page that shows it."""
    answer = visitor.send(
        "/accounts/signup/",
        {"email": "researcher@example.org", "username": RESEARCHER,
         "password1": secrets.token_urlsafe(16)},
    )  # fmt: skip
    if answer.status_code != 302:
        raise Fault(f"nobody could sign up: {said(answer.text)}")
    visitor.get("/me/")
    made = visitor.send("/me/keys/", {"name": "laptop", "scopes": "read submit", "days": "90"})
    found = re.search(r"data-key>(kbx_[^<]+)<", made.text)
    if not found:
        raise Fault(f"no API key was made: {said(made.text)}")
    return found[1]


@dataclass
class Sent:
    """A submission: what it must come to, when it was begun, and its uuid once it is there."""

    method: str
    way: str
    expected: dict[str, str]  # verdict by task
    begun: datetime
    uuid: str = ""

    @property
    def slug(self) -> str:
        return self.method.lower().replace(" ", "-")


def gathered(folder: Path, kind: str, names: Sequence[str]) -> Path:
    """A folder with copies of these samples, as a researcher has one."""
    for name in names:
        target = folder / kind / f"{name}.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SAMPLES / kind / f"{name}.py", target)
    return folder / kind


def send_by_command(site: Site, key: str) -> Sent:
    """`kbx submit` of a folder, with the key in the environment."""
    names = PLAIN[: site.chosen.plain]
    folder = gathered(site.folder, "plain", names)
    expected = {Path(name).name: "passed" for name in names}
    sent = Sent(PLAIN_METHOD, "kbx submit", expected, datetime.now(UTC))
    options = ["--method", sent.method, "--kind", "human", "--site", site.url]
    command = [sys.executable, "-m", "runner", "submit", str(folder), *options]
    ran = subprocess.run(
        command, env=site.researchers | {"KBX_TOKEN": key}, capture_output=True, text=True
    )
    if ran.returncode:
        raise Fault(f"kbx submit ended with {ran.returncode}: {ran.stderr[-1000:]}")
    sent.uuid = ran.stdout.partition(":")[0]
    site.watch.say(f"kbx submit: {ran.stdout.splitlines()[0]}")
    return sent


def send_by_form(site: Site, visitor: Visitor) -> Sent:
    """The page, what it found in the upload, and the button."""
    names = CAUTIONARY[: site.chosen.cautionary]
    folder = gathered(site.folder, "verdicts", names)
    expected = {Path(name).name: Path(name).parent.name for name in names}
    sent = Sent(CAUTIONARY_METHOD, "form", expected, datetime.now(UTC))
    visitor.get("/submissions/new/")
    fields = {"method": sent.method, "kind": "human", "label": "first", "visibility": "public",
              "source_visibility": "shown"}  # fmt: skip
    found = visitor.send("/submissions/new/", fields, file=packed(folder))
    if found.status_code != 302:
        raise Fault(f"the upload was not taken: {said(found.text)}")
    draft = found.headers["location"]
    visitor.get(draft)
    confirmed = visitor.send(f"{draft}confirm/", {})
    if confirmed.status_code != 302:
        raise Fault(f"the draft could not be confirmed: {said(confirmed.text)}")
    sent.uuid = confirmed.headers["location"].strip("/").rpartition("/")[2]
    site.watch.say(f"form: {sent.uuid}")
    return sent


def follow(site: Site, sents: list[Sent], key: str, checks: Checks) -> list[list[str]]:
    """`kbx status --watch` of each until all are judged; what they printed."""
    environment = site.researchers | {"KBX_TOKEN": key}
    words = ("--watch", "--site", site.url)
    watchers = [
        site.start(f"status-{sent.slug}", environment, "runner", "status", sent.uuid, *words)
        for sent in sents
    ]
    told = [0 for _ in watchers]
    try:
        for _ in site.watch.until("all verdicts", SPARE_SECONDS):
            site.alive()
            for at, watcher in enumerate(watchers):
                for line in printed(watcher)[told[at] :]:
                    site.watch.say(f"{watcher.name}: {line}")
                    told[at] += 1
            if not any(watcher.is_alive for watcher in watchers):
                break
        site.ended_well(*watchers)
        site.watch.mark("judged")
    except Fault as late:
        checks.expect(str(late), False)
    return [printed(watcher) for watcher in watchers]


def printed(child: Child) -> list[str]:
    assert child.log is not None
    return child.log.read_text(errors="replace").splitlines()


# -- what came of it --


def results(visitor: Visitor, sents: list[Sent]) -> list[dict[str, Any]]:
    """A row a candidate, of what the API says about it and about its run."""
    rows = []
    for sent in sents:
        for candidate in visitor.json(f"submissions/{sent.uuid}/candidates/"):
            [outcome] = candidate["outcomes"]  # one GPU judges here
            run = visitor.json(f"runs/{outcome['run']}/")["run"] if outcome["run"] else None
            rows.append(result(sent, candidate["task"], outcome, run))
    return sorted(rows, key=lambda row: row["seconds_from_upload"] or 0)


def result(
    sent: Sent, task: str, outcome: dict[str, Any], run: dict[str, Any] | None
) -> dict[str, Any]:
    run = run or {}
    ended = datetime.fromisoformat(run["created_at"]) if run else None
    return {
        "task": task,
        "sent_by": sent.way,
        "expected": sent.expected[task],
        "state": outcome["state"],
        "verdict": outcome["verdict"],
        "speedup": run.get("speedup"),
        "cases": len(run.get("cases", ())),
        "judge_seconds": (run.get("seconds") or {}).get("total"),
        "seconds_from_upload": round((ended - sent.begun).total_seconds(), 1) if ended else None,
        "run": outcome["run"],
        "gpu": run.get("gpu"),
        "judge_version": run.get("judge_version"),
        "environment": run.get("environment", {}),
        "reason": outcome["reason"],
    }


def check_runs(checks: Checks, rows: list[dict[str, Any]], spec: dict[str, Any]) -> None:
    """Verdicts, times and environments."""
    for row in rows:
        name = f"{row['task']} ({row['sent_by']})"
        checks.expect(f"{name}: {row['expected']}", row["verdict"] == row["expected"],
                      f"{row['state']} {row['verdict']} {row['reason']}")  # fmt: skip
        if not row["run"]:
            continue
        is_timed = timed_as_due(row, spec)
        checks.expect(f"{name}: is timed where it should be", is_timed, row["speedup"])
        here = row["environment"]
        names = ("python", "torch", "triton", "platform")
        checks.expect(f"{name}: versions stand in the run's environment",
                      row["judge_version"] and all(here.get(one) for one in names),
                      [here.get(one) for one in names])  # fmt: skip
        walls = [here.get(one) for one in ("walls minimum", "trusted candidates")]
        checks.expect(f"{name}: on this device", here.get("device name") == spec["name"],
                      here.get("device name"))  # fmt: skip
        checks.expect(f"{name}: behind walls", walls == ["yes", "no"], walls)


def timed_as_due(row: dict[str, Any], spec: dict[str, Any]) -> bool:
    """A speedup with its interval for what passed on a GPU, and for nothing else."""
    found = row["speedup"]
    if row["expected"] != "passed" or spec["kind"] == "cpu":
        return found is None
    return found is not None and 0 < found["low"] <= found["value"] <= found["high"]


def check_database(checks: Checks, site: Site, rows: list[dict[str, Any]]) -> None:
    """One job and one run a candidate, in the first attempt; the board, as its host told it."""
    [counts] = site.rows(
        "SELECT (SELECT COUNT(*) FROM benchmark_candidate), (SELECT COUNT(*) FROM runner_job"
        " WHERE state = 'done' AND attempt = 1), (SELECT COUNT(*) FROM benchmark_run)"
    )
    checks.expect("a job and a run a candidate, in the first attempt",
                  counts == (len(rows),) * 3, counts)  # fmt: skip
    boards = site.rows(
        "SELECT gpu.slug, device.host, device.state FROM runner_device device"
        " JOIN benchmark_gpu gpu ON gpu.id = device.gpu_id"
    )
    there = [(site.chosen.spec["gpu"], HOST, "serving")]
    checks.expect("the board registered itself, under its name and host", boards == there, boards)


def check_pages(checks: Checks, site: Site, sents: list[Sent], rows: list[dict[str, Any]]) -> None:
    """As a visitor without an account reads them, HTML and API."""
    visitor, slug = Visitor(site), site.chosen.spec["gpu"]
    [gpu] = [one for one in visitor.json("gpus/") if one["slug"] == slug]
    checks.expect("the API's GPU has all runs", gpu["runs"] == len(rows), gpu)
    board = visitor.json("leaderboard/", gpu=slug)
    standings = {one["method"]["slug"]: one for one in board["standings"]}
    for sent in sents:
        passed = sum(verdict == "passed" for verdict in sent.expected.values())
        standing = standings.get(sent.slug)
        checks.expect(f"{sent.method} stands on the leaderboard of {gpu['name']}",
                      standing and standing["funnel"]["correct"] == passed
                      and standing["funnel"]["judged"] == len(sent.expected),
                      standing or board["unranked"])  # fmt: skip
    words = {
        "/": [PLAIN_METHOD],
        f"/leaderboard/?gpu={slug}": [gpu["name"], *(sent.method for sent in sents)],
        f"/charts/{'speedups' if gpu['can_time'] else 'verdicts'}.json?gpu={slug}": ['"data"'],
        "/queue/": [gpu["name"]],
        "/changes/": [PLAIN_METHOD],
        "/tasks/relu/": [PLAIN_METHOD],
        f"/data/v1/runs.csv?gpu={slug}": [sent.slug for sent in sents],
        "/static/css/site.css": [],
        **{f"/methods/{sent.slug}/": [sent.method, gpu["name"]] for sent in sents},
        **{f"/submissions/{sent.uuid}/": list(sent.expected) for sent in sents},
        **{
            f"/runs/{row['run']}/": [row["task"], row["verdict"], gpu["name"]]
            for row in rows
            if row["run"]
        },
    }
    for path, wanted in words.items():
        answer = visitor.get(path)
        missing = [word for word in wanted if word not in html.unescape(answer.text)]
        found = f"{answer.status_code}, not in it: {missing}"
        checks.expect(f"GET {path}", answer.status_code == 200 and not missing, found)
    checks.expect("a page's style has a hashed name and is there", style_is_there(visitor))
    ready = visitor.get("/readyz").json()
    checks.expect(
        "/readyz is well", ready.pop("ready") is True and set(ready.values()) == {"ok"}, ready
    )


def style_is_there(visitor: Visitor) -> bool:
    found = re.search(r'href="(/static/css/site\.[0-9a-f]{12}\.css)"', visitor.get("/").text)
    return bool(found) and visitor.get(found[1]).status_code == 200


def drain(checks: Checks, site: Site, visitor: Visitor) -> None:
    """SIGTERM: it ends well, and the site says that it is gone."""
    host, began = site.children["gpu-host"], time.monotonic()
    host.signal(signal.SIGTERM)
    for _ in site.watch.until("drained"):
        if not host.is_alive:
            break
    seconds = round(time.monotonic() - began, 1)
    status = host.process.returncode
    checks.expect("the drained host ends with 0", status == 0, f"{status} after {seconds} s")
    query = "SELECT state FROM runner_device"
    for _ in site.watch.until("the board is gone"):
        if site.rows(query) == [("gone",)]:
            break
    checks.expect("the site knows that the board is gone", site.rows(query) == [("gone",)])
    slug = site.chosen.spec["gpu"]
    [line] = [one for one in visitor.json("queue/") if one["gpu"] == slug]
    checks.expect("/queue/ shows no board of it", line["serving"] == line["devices"] == 0, line)
    site.watch.mark("drained")


def play(site: Site, checks: Checks, found: dict[str, Any]) -> None:
    """All of it. `found` gets what stands in the record, as soon as it is known."""
    watch, slug = site.watch, site.chosen.spec["gpu"]
    bring_up(site)
    visitor = Visitor(site)
    wait(site, lambda: is_ready(visitor), "the site is ready")
    wait(site, lambda: is_serving(visitor, slug), "the board takes jobs")
    site.ended_well(site.manage("judge_on", slug))
    key = sign_up(visitor)
    watch.mark("a researcher has a key")
    sents = [send_by_command(site, key), send_by_form(site, visitor)]
    watch.mark("submitted")
    lines = follow(site, sents, key, checks)
    rows = results(visitor, sents)
    found |= {"processes": site.processes(), "runs": rows, "status_lines": lines}
    [[found["postgresql"]]] = site.rows("SHOW server_version")
    check_runs(checks, rows, site.chosen.spec)
    check_database(checks, site, rows)
    check_pages(checks, site, sents, rows)
    watch.mark("pages read")
    drain(checks, site, visitor)


def wait(site: Site, holds: Callable[[], bool], what: str) -> None:
    for _ in site.watch.until(what):
        site.alive()
        if holds():
            break
    site.watch.mark(what)


def is_ready(visitor: Visitor) -> bool:
    try:
        return bool(visitor.get("/readyz").json()["ready"])
    except httpx.TransportError:
        return False


def is_serving(visitor: Visitor, slug: str) -> bool:
    """Whether the queue names a board of this GPU that takes jobs."""
    return any(line["gpu"] == slug and line["serving"] for line in visitor.json("queue/"))


# -- the record --


def recorded(site: Site, found: dict[str, Any], checks: Checks) -> dict[str, Any]:
    """The bare figures. What all runs share of their environment stands once."""
    rows, spec = found["runs"], site.chosen.spec
    environments = [row.pop("environment") for row in rows]
    ended = [row["seconds_from_upload"] for row in rows if row["seconds_from_upload"] is not None]
    chosen = site.chosen
    first = next(filter(None, environments), {})  # in the words of the run's page
    drivers = (one.get("clocks before driver") for one in environments)
    packages = ("django", "celery", "kombu", "gunicorn", "psycopg2-binary", "plotly")
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "command": f"python benchmarks/gpu_host.py --device {chosen.device} --plain {chosen.plain} "
        f"--cautionary {chosen.cautionary} --jobs {chosen.jobs}",
        "device": spec["gpu"],
        "environment": {"gpu": spec["name"], "architecture": spec["architecture"]}
        | {"driver": next(filter(None, drivers), None)}
        | {name: first.get(name) for name in ("python", "torch", "triton", "cuda", "platform")}
        | {"processor": processor(), "cores": os.cpu_count(), "postgresql": found["postgresql"]}
        | {"redis": redis_version(chosen.redis_server)}
        | {name: version(name) for name in packages},
        "walls": [name for name, on in first.items() if name.startswith("walls ") and on == "yes"],
        "marks": site.watch.marks,
        "seconds_to_first_verdict": min(ended, default=None),
        "seconds_to_last_verdict": max(ended, default=None),
        "candidates": len(rows),
        "processes": found["processes"],
        "runs": rows,
        "status_lines": found["status_lines"],
        "checks": len(checks.rows),
        "failed_checks": checks.failed,
    }


def redis_version(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True)
    found = re.search(r"v=(\S+)", done.stdout)
    return found[1] if found else "?"


def text(bare: dict[str, Any]) -> str:
    """The record to read."""
    here = bare["environment"]
    failed = [f"- {row['what']}: {row['found'] or 'no'}" for row in bare["failed_checks"]]
    parts = [
        "# From an upload to the leaderboard, with a GPU host",
        "",
        f"Date: {bare['date']}. {records.hardware(here)} {here['processor']}, {here['cores']} "
        f"cores. Django {here['django']}, gunicorn {here['gunicorn']}, Celery {here['celery']}, "
        f"PostgreSQL {here['postgresql']}, Redis {here['redis']}.",
        "",
        "```",
        bare["command"],
        "```",
        "",
        f"{bare['candidates']} candidates. From the upload to the first verdict "
        f"{bare['seconds_to_first_verdict']} s, to the last {bare['seconds_to_last_verdict']} s. "
        f"{bare['checks']} checks, {len(failed)} failed.",
        *failed,
        "",
        "| task | sent by | verdict | speedup | judged in, s | after the upload, s |",
        "|---|---|---|---:|---:|---:|",
        *map(line, bare["runs"]),
        "",
        "Speedup: PyTorch's time / the kernel's, with its 95 % interval. Judged in: the host's "
        "seconds for that candidate, with as many in hand at once as `--jobs` says.",
        "",
        "| process | with all below it | command | variables of a site that it gets |",
        "|---|---:|---|---|",
        *(part(name, one) for name, one in bare["processes"].items()),
        "",
        "| after, s | what |",
        "|---:|---|",
        *(f"| {seconds} | {what} |" for what, seconds in bare["marks"].items()),
        "",
        NOTES,
    ]
    return "\n".join(parts)


def part(name: str, one: dict[str, Any]) -> str:
    told = ", ".join(one["variables"]) or "-"
    return f"| {name} | {one['processes']} | `{one['command']}` | {told} |"


NOTES = """\
All of it is on one machine: the network between site and GPU host is the loopback interface. The
site is empty before, so its pages are small; its certificate is its own. Servers are PostgreSQL and
Redis with passwords, the site's settings are production's, and candidates are behind walls. The
GPU host has its own folder and of the site only the broker's address.
"""


def line(row: dict[str, Any]) -> str:
    speed = row["speedup"]
    told = f"{speed['value']:.3f}x [{speed['low']:.3f}, {speed['high']:.3f}]" if speed else "-"
    return (
        f"| {row['task']} | {row['sent_by']} | {row['verdict'] or row['state']} | {told} "
        f"| {row['judge_seconds'] or '-'} | {row['seconds_from_upload'] or '-'} |"
    )


def main() -> None:
    chosen = options()
    adopt()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit("stopped"))  # ends what was started
    watch = Watch(chosen.limit)
    folder = Path(tempfile.mkdtemp(prefix="kbx-gpu-host-"))
    folder.chmod(0o755)
    site, checks, found = Site(folder, chosen, watch), Checks(watch), dict[str, Any]()
    try:
        chosen.spec = the_device(site)
        chosen.jobs = chosen.jobs or (1 if chosen.spec["kind"] == "cpu" else JOBS)
        watch.mark(f"Python {platform.python_version()}, {chosen.spec['name']}")
        play(site, checks, found)
    except Fault as fault:
        checks.expect(f"it goes on: {fault}", False)
    finally:
        if checks.failed or "runs" not in found:
            site.tell_logs()
        site.end()
    if "runs" in found:
        bare = recorded(site, found, checks)
        records.write("gpu-host", bare, text(bare), chosen.out)
        watch.say(
            f"{len(checks.rows)} checks, {len(checks.failed)} failed; {chosen.out}/gpu-host.md"
        )
    shutil.rmtree(folder)
    sys.exit(1 if checks.failed else 0)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto", help="auto: the first GPU, else cpu")
    parser.add_argument(
        "--plain", type=int, default=8, help=f"kernels by kbx submit, up to {len(PLAIN)}"
    )
    parser.add_argument("--cautionary", type=int, default=len(CAUTIONARY), help="by the form")
    parser.add_argument(
        "--jobs", type=int, help=f"that the worker has in hand; default: {JOBS}, on the CPU 1"
    )
    parser.add_argument("--limit", type=float, default=600, help="seconds for all of it")
    parser.add_argument("--postgres-bin", type=Path, help="folder of initdb and postgres")
    parser.add_argument("--redis-server", default="redis-server", help="that program")
    parser.add_argument("--out", type=Path, default=records.FOLDER, help="folder of the record")
    return parser.parse_args()


if __name__ == "__main__":
    main()
