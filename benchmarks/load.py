"""Load the site as a public one runs: many readers at once, and 50 uploads in parallel.

    python benchmarks/load.py [--scale 1] [--scale 10] [--seconds 20] [--database-url URL] [--try]

Starts PostgreSQL and Redis (Debian's, on free ports), seeds the database, and starts gunicorn with
`deploy/gunicorn.conf.py` and the production settings, behind nothing: the load tool says what a
proxy would. Only the limit on reads per address is lifted, because all readers have one address
here. The load tool is `hey` (apt install hey): `--clients` connections that ask again as soon as
they are answered, one page at a time, each for `--seconds`, the bare view (`/healthz`: the same
middleware, no template, no query) before and after, so that each page's figures are ratios too.

At scale 10 the runs are grown tenfold as in site_budgets.py, or were before in the database of
`--grown-database-url`. `busy` asks while a result lands every
second on the board that is shown. Then 50 accounts upload at once over the API: whole sets, drafts
that are confirmed, the same set twice, broken files, and one beyond its account's quota. Every
answer is told apart as accepted or refused with a reason, and counted against the database.

Writes `docs/measurements/load.{md,json}`; with `--try` (a small database, 3 seconds) nothing.
"""

import argparse
import csv
import io
import json
import os
import platform
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import records
import site_budgets as budgets

ROOT = budgets.ROOT
BARE = budgets.BARE
PROXY = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.1"}
PAGES = {
    "home": "/",
    "leaderboard": "/leaderboard/",
    "a task": "/tasks/relu/",
    "a run": "",
    "chart JSON": "/charts/speedups.json",
    "API: leaderboard": "/api/v1/leaderboard/",
    "API: a run": "",
}
BUSY = ("leaderboard", "home")  # also asked while results land
UPLOADS, ROUNDS = 50, 3
QUOTA = 600  # judgements an account may ask for in a day here: one whole set
SETTINGS = """
from kbx_site.settings.production import *
from kbx_site.settings.production import REST_FRAMEWORK
RATES = {**REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"], "reads": None}
REST_FRAMEWORK = {**REST_FRAMEWORK, "DEFAULT_THROTTLE_RATES": RATES}
"""


@dataclass
class Loaded:
    """A page under load. Times in ms; the ratios are of requests/s and medians to the bare view's
    in the minutes around."""

    page: str
    url: str
    requests: int
    failed: int
    per_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    bare_per_second: float
    bare_p50_ms: float
    ratio_per_second: float
    ratio_p50: float


@dataclass(frozen=True)
class Asked:
    """What the load tool saw: seconds of each answered request, and answers that were no 200."""

    times: list[float]
    failed: int
    seconds: float

    def ms(self, share: int) -> float:
        return round(1000 * budgets.percentile(self.times, share), 2)

    @property
    def per_second(self) -> float:
        return round(len(self.times) / self.seconds, 1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=int, choices=(1, 10), action="append", default=[])
    parser.add_argument("--seconds", type=int, default=20, help="of each page")
    parser.add_argument("--clients", type=int, default=8, help="connections at once")
    parser.add_argument("--database-url", help="of an empty or seeded database of its own")
    parser.add_argument("--grown-database-url", help="of one that was grown before, for scale 10")
    parser.add_argument("--nice", type=int, default=0, help="of all that is started; root: below 0")
    parser.add_argument("--try", action="store_true", dest="is_try", help="small, and no record")
    parser.add_argument("--note", action="append", default=[], help="a paragraph for the record")
    chosen = parser.parse_args()
    chosen.scale = sorted(set(chosen.scale)) or [1]
    if chosen.is_try:
        chosen.seconds = 3
    os.nice(chosen.nice)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is stopped, too
    for tool in ("hey", "redis-server"):
        if shutil.which(tool) is None:
            raise SystemExit(f"{tool} is not there: apt install {tool}")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kbx-load-")))
        folder.chmod(0o755)
        url = stack.enter_context(budgets.database(chosen.database_url, folder))
        prepare(url, stack.enter_context(redis(folder)), folder, chosen.is_try)
        sizes = [measured(scale, chosen, folder) for scale in chosen.scale]
        said = uploads(folder)
        if chosen.is_try:
            print(json.dumps({"sizes": sizes, "uploads": said}, indent=1))
        else:
            write(sizes, said, chosen)


def tell(line: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {line}", flush=True)


# -- the site --


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    port = budgets.free_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", str(folder)]
    process = subprocess.Popen([*command, "--loglevel", "warning"], stdout=subprocess.DEVNULL)
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait()


def prepare(database: str, broker: str, folder: Path, is_try: bool) -> None:
    """This process and its children are the site; it gets tables, tasks and synthetic results."""
    (folder / "load_settings.py").write_text(SETTINGS)
    os.environ.update(
        DATABASE_URL=database,
        KBX_BROKER_URL=broker,
        DJANGO_SETTINGS_MODULE="load_settings",
        PYTHONPATH=f"{folder}:{ROOT}",
        KBX_STATE_DIR=str(folder / "state"),
        KBX_SECRET_KEY=secrets.token_urlsafe(60),
        KBX_ALLOWED_HOSTS="127.0.0.1",
        KBX_BEHIND_PROXY="1",
        KBX_LOG_LEVEL="ERROR",
        KBX_QUOTA_PER_DAY=str(QUOTA),
    )
    sys.path[:0] = [str(folder), str(ROOT)]
    for command in (("migrate", "--verbosity", "0"), ("createcachetable",)):
        budgets.manage(*command)
    budgets.manage("collectstatic", "--noinput", "--verbosity", "0")
    import django

    django.setup()
    from benchmark.models import Run

    if not Run.objects.exists():
        budgets.manage("sync_tasks")
        small = ("--methods", "4", "--gpus", "2", "--rounds", "2") if is_try else ()
        start = time.monotonic()
        budgets.manage("seed", *small)
        tell(f"seeded in {time.monotonic() - start:.0f} s")


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """gunicorn as deployed: as many processes and threads as the configuration says."""
    port = budgets.free_port()
    command = [sys.executable, "-m", "gunicorn", "-c", str(ROOT / "deploy" / "gunicorn.conf.py")]
    environment = {**os.environ, "KBX_BIND": f"127.0.0.1:{port}"}
    process = subprocess.Popen([*command, "kbx_site.wsgi"], cwd=ROOT, env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        with httpx.Client(transport=httpx.HTTPTransport(retries=20), timeout=60) as client:
            client.get(f"{address}/readyz", headers=PROXY)
            for _ in range(40):  # until each process has imported what it serves
                client.get(f"{address}/leaderboard/", headers=PROXY).raise_for_status()
        yield address
    finally:
        process.terminate()
        process.wait()


# -- readers --


def measured(scale: int, chosen: argparse.Namespace, folder: Path) -> dict:
    from benchmark.models import Run

    if scale == 10 and chosen.grown_database_url:
        budgets.use(chosen.grown_database_url)
        budgets.manage("createcachetable")
    if scale == 10 and not grown():
        tell("growing the runs tenfold")
        budgets.grow()
    rows = Run.objects.count()
    run = budgets.a_run().split("/")[2]
    urls = {**PAGES, "a run": f"/runs/{run}/", "API: a run": f"/api/v1/runs/{run}/"}
    tell(f"{rows:,} runs, {len(urls) + len(BUSY)} pages of {chosen.seconds} s and the bare view")
    pages, start = [], os.getloadavg()[0]
    with server(folder) as site:
        for name, url in urls.items():
            pages.append(loaded(site, name, url, chosen))
        with landing():
            pages += [loaded(site, f"{name}, busy", urls[name], chosen) for name in BUSY]
    load = [start, os.getloadavg()[0]]
    return {"scale": scale, "runs": rows, "load_average": load, "pages": [*map(asdict, pages)]}


def grown() -> bool:
    from django.db.models import Max

    from benchmark.models import Candidate

    return (Candidate.objects.aggregate(most=Max("round"))["most"] or 0) >= 10


def loaded(site: str, name: str, url: str, chosen: argparse.Namespace) -> Loaded:
    """A third of the time goes to the bare view, half of it before and half after."""
    aside = max(1, chosen.seconds // 6)
    before = ask(site + BARE, aside, chosen.clients)
    found = ask(site + url, chosen.seconds, chosen.clients)
    after = ask(site + BARE, aside, chosen.clients)
    bare = Asked(before.times + after.times, 0, before.seconds + after.seconds)
    page = Loaded(
        page=name,
        url=url.replace(url.split("/")[-2], "<uuid>") if "run" in name else url,
        requests=len(found.times),
        failed=found.failed,
        per_second=found.per_second,
        p50_ms=found.ms(50),
        p95_ms=found.ms(95),
        p99_ms=found.ms(99),
        bare_per_second=bare.per_second,
        bare_p50_ms=bare.ms(50),
        ratio_per_second=round(found.per_second / bare.per_second, 3),
        ratio_p50=round(found.ms(50) / bare.ms(50), 2),
    )
    tell(
        f"{name}: {page.per_second:g}/s, p50 {page.p50_ms:g} p95 {page.p95_ms:g} "
        f"p99 {page.p99_ms:g} ms, {page.failed} failed; bare {page.bare_per_second:g}/s"
    )
    return page


def ask(url: str, seconds: int, clients: int) -> Asked:
    headers = [part for name, value in PROXY.items() for part in ("-H", f"{name}: {value}")]
    command = ["hey", "-z", f"{seconds}s", "-c", str(clients), "-o", "csv", *headers, url]
    start = time.monotonic()
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    took = time.monotonic() - start
    rows = list(csv.DictReader(io.StringIO(ran.stdout)))
    times = [float(row["response-time"]) for row in rows if row["status-code"] == "200"]
    if not times:
        raise SystemExit(f"{url}: no request was answered with 200\n{ran.stdout[:300]}")
    return Asked(times, len(rows) - len(times), min(took, seconds + 1))


@contextmanager
def landing() -> Iterator[None]:
    """Once a second, what a result on the first GPU changes for readers."""
    ended = threading.Event()

    def land() -> None:
        from django.db import connection

        while not ended.wait(1):
            budgets.bump()
        connection.close()

    thread = threading.Thread(target=land)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# -- writers --


@dataclass(frozen=True)
class Upload:
    """What an account sends. `expects`: accepted, or refused."""

    kind: str
    number: int
    key: str
    file: tuple[str, bytes]
    is_draft: bool
    expects: str

    @property
    def form(self) -> dict[str, str]:
        return {"method": f"Load {self.number:02}", "label": "all at once"}


def uploads(folder: Path) -> dict:
    """50 at once. Raises SystemExit where one was lost, stored twice, or answered unclearly."""
    from benchmark.models import Candidate, Gpu, Submission
    from runner.models import Job

    gpu = Gpu.objects.filter(slug__startswith="synthetic").order_by("id").first()
    Gpu.objects.filter(pk=gpu.pk).update(is_judging=True)
    sent = list(planned())
    before = Submission.objects.count(), Candidate.objects.count(), Job.objects.count()
    with server(folder) as site:
        tell(f"{len(sent)} uploads at once")
        start = time.monotonic()
        with ThreadPoolExecutor(len(sent)) as pool:
            answers = list(pool.map(lambda upload: send(site, upload), sent))
        took = time.monotonic() - start
    Gpu.objects.filter(pk=gpu.pk).update(is_judging=False)
    after = Submission.objects.count(), Candidate.objects.count(), Job.objects.count()
    stored = [new - old for new, old in zip(after, before, strict=True)]
    accepted = [answer for answer in answers if answer["outcome"] == "accepted"]
    unclear = [a for a in answers if a["outcome"] == "unclear" or a["outcome"] != a["expects"]]
    distinct = {answer["submission"] for answer in accepted}
    found = {
        "uploads": len(sent),
        "by_kind": {
            kind: dict(Counter(a["outcome"] for a in answers if a["kind"] == kind))
            for kind in sorted({upload.kind for upload in sent})
        },
        "accepted": len(accepted),
        "refused": sum(answer["outcome"] == "refused" for answer in answers),
        "unclear": len(unclear),
        "submissions_named": len(distinct),
        "submissions_stored": stored[0],
        "candidates_stored": stored[1],
        "jobs_stored": stored[2],
        "lost": len(distinct) - stored[0],
        "seconds": round(took, 1),
        "accepted_p50_s": round(budgets.percentile([a["seconds"] for a in accepted], 50), 2),
        "accepted_p95_s": round(budgets.percentile([a["seconds"] for a in accepted], 95), 2),
        "reasons": sorted({a["reason"] for a in answers if a["outcome"] == "refused"}),
    }
    tell(json.dumps(found))
    whole = sum(len(lines()) for _ in distinct)
    if unclear or found["lost"] or stored[1] != whole:
        raise SystemExit(f"lost, doubled or unclear: {unclear[:3]}, {stored[1]} of {whole}")
    return found


def planned() -> Iterator[Upload]:
    """38 whole sets, half of them as drafts; 4 sent twice; 2 broken, 2 beyond the quota."""
    whole = "\n".join(lines()).encode()
    for number in range(38):
        yield Upload("whole set", number, account(number), ("p.jsonl", whole), number % 2 == 1,
                     "accepted")  # fmt: skip
    for number in range(38, 42):
        key = account(number)
        for _ in range(2):
            yield Upload("same set twice", number, key, ("p.jsonl", whole), False, "accepted")
    broken = {42: b"\x00\x01 no text", 43: b'{"file": "nothing.py", "predict": "x = 1"}'}
    for number, content in broken.items():
        yield Upload("broken", number, account(number), ("p.jsonl", content), False, "refused")
    for number in (44, 45):
        more = "\n".join([*lines(), *lines(first=ROUNDS)]).encode()
        yield Upload("beyond the quota", number, account(number), ("p.jsonl", more), False,
                     "refused")  # fmt: skip


def account(number: int) -> str:
    """A key of a new account."""
    from django.contrib.auth.models import User

    from runner.accounts import keys

    user = User.objects.create_user(f"load-{number}-{secrets.token_hex(4)}")
    return keys.make(user, "load").secret


def lines(first: int = 0) -> list[str]:
    """Three rounds of all tasks, as KernelBench-X's predictions: our own plain kernels."""
    sources = {path.stem: path for path in sorted((ROOT / "samples" / "plain").rglob("*.py"))}
    return [
        json.dumps({"file": path.name, "predict": f"# {number}\n{path.read_text()}"}
                   | {"round": number})
        for number in range(first, first + ROUNDS)
        for path in sources.values()
    ]  # fmt: skip


def send(site: str, upload: Upload) -> dict:
    headers = {**PROXY, "Authorization": f"Bearer {upload.key}"}
    start = time.monotonic()
    with httpx.Client(base_url=f"{site}/api/v1", headers=headers, timeout=900) as client:
        address = "/drafts/" if upload.is_draft else "/submissions/"
        answer = client.post(address, data=upload.form, files={"file": upload.file})
        if upload.is_draft and answer.status_code == 201:
            answer = client.post(f"/drafts/{answer.json()['uuid']}/confirm/", json={})
    return {
        "kind": upload.kind,
        "expects": upload.expects,
        "seconds": time.monotonic() - start,
        **outcome(answer),
    }


def outcome(answer: httpx.Response) -> dict:
    """Accepted with a submission's name, refused with a reason and a remedy, or unclear."""
    try:
        said = answer.json()
    except ValueError:
        said = {}
    if answer.status_code in (200, 201) and said.get("uuid"):
        return {"outcome": "accepted", "submission": said["uuid"]}
    told = said.get("error", said)
    if 400 <= answer.status_code < 500 and told:
        reason = str(told.get("reason") or told.get("detail") or told)[:120]
        return {"outcome": "refused", "reason": f"{answer.status_code}: {reason}"}
    return {"outcome": "unclear", "reason": f"{answer.status_code}: {answer.text[:200]}"}


# -- the record --


def write(sizes: list[dict], said: dict, chosen: argparse.Namespace) -> None:
    import django
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        postgres = cursor.fetchone()[0].split()[0]
    scales = "".join(f" --scale {scale}" for scale in chosen.scale)
    nice = f" --nice {chosen.nice}" if chosen.nice else ""
    bare = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "environment": {
            "processor": budgets.processor(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "django": django.get_version(),
            "postgresql": postgres,
            "load_tool": "hey",
            "clients": chosen.clients,
        },
        "commands": [f"python benchmarks/load.py{scales} --seconds {chosen.seconds}{nice}"],
        "sizes": sizes,
        "uploads": said,
    }
    records.write("load", bare, text(bare, chosen.note))


def text(bare: dict, notes: list[str]) -> str:
    found = bare["environment"]
    parts = [
        "# The site under load",
        "",
        f"Date: {bare['date']}. Hardware: {found['processor']}, {found['cores']} cores, with the "
        f"load tool, PostgreSQL and Redis on the same machine. Python {found['python']}, Django "
        f"{found['django']}, PostgreSQL {found['postgresql']}, gunicorn as in "
        f"`deploy/gunicorn.conf.py`; `hey` with {found['clients']} connections, each page alone.",
        "",
        "```",
        *bare["commands"],
        "```",
    ]
    for size in bare["sizes"]:
        parts += ["", *table(size)]
    if len(bare["sizes"]) > 1:
        parts += ["", *growth(*bare["sizes"])]
    parts += ["", *uploads_text(bare["uploads"])]
    for note in notes:
        parts += ["", note]
    return "\n".join(parts) + "\n"


def table(size: dict) -> list[str]:
    low, high = sorted(size["load_average"])
    rows = [
        f"## {size['runs']:,} runs",
        "",
        f"Load average {low:.1f} to {high:.1f}. Times in ms. Busy: a result lands every second on "
        "the board that is shown. Ratios: to the bare view in the seconds before and after.",
        "",
        "| page | requests | failed | per s | p50 | p95 | p99 | bare per s | bare p50 | share of "
        "bare per s | p50 / bare p50 |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    return rows + [
        f"| {page['page']} | {page['requests']:,} | {page['failed']} | {page['per_second']:g} "
        f"| {page['p50_ms']:.1f} | {page['p95_ms']:.1f} | {page['p99_ms']:.1f} "
        f"| {page['bare_per_second']:g} | {page['bare_p50_ms']:.1f} "
        f"| {page['ratio_per_second']:.2f} | {page['ratio_p50']:.1f} |"
        for page in size["pages"]
    ]


def growth(small: dict, large: dict) -> list[str]:
    """What more rows cost each page, by its share of what the bare view did around it."""
    rows = [
        f"## {large['runs'] / small['runs']:.0f} times the runs",
        "",
        "Each relative to the bare view of its own seconds.",
        "",
        f"| page | share of bare per s, {small['runs']:,} runs | {large['runs']:,} runs | ratio "
        f"| p50 / bare p50, {small['runs']:,} runs | {large['runs']:,} runs |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    return rows + [
        f"| {before['page']} | {before['ratio_per_second']:.2f} | {after['ratio_per_second']:.2f} "
        f"| {after['ratio_per_second'] / before['ratio_per_second']:.2f} "
        f"| {before['ratio_p50']:.1f} | {after['ratio_p50']:.1f} |"
        for before, after in zip(small["pages"], large["pages"], strict=True)
    ]


def uploads_text(said: dict) -> list[str]:
    rows = [
        f"## {said['uploads']} uploads at once",
        "",
        f"Of 3 x 176 candidates each, over the API, half of the whole sets as drafts that are then "
        f"confirmed. {said['accepted']} accepted, {said['refused']} refused with a reason, "
        f"{said['unclear']} unclear, {said['lost']} lost, in {said['seconds']} s; an accepted one "
        f"took {said['accepted_p50_s']} s at the median, {said['accepted_p95_s']} s at p95. In the "
        f"database: {said['submissions_stored']} submissions for {said['submissions_named']} named "
        f"in answers, {said['candidates_stored']:,} candidates, {said['jobs_stored']:,} jobs.",
        "",
        "| sent | accepted | refused |",
        "|---|---:|---:|",
    ]
    rows += [
        f"| {kind} | {count.get('accepted', 0)} | {count.get('refused', 0)} |"
        for kind, count in said["by_kind"].items()
    ]
    return [*rows, "", "Refusals said:", "", *(f"- {reason}" for reason in said["reasons"])]


if __name__ == "__main__":
    main()
