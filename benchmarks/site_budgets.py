"""Measure the site's pages on PostgreSQL with seeded data, beside a bare Django view.

    python benchmarks/site_budgets.py [--tenfold] [--database-url URL] [--requests N]

Starts PostgreSQL (Debian's, on a free port) unless a database is given, seeds it, starts gunicorn
with one worker, and asks every page in turn with the bare view (`/healthz`: the same middleware, no
template and no query), so that noise falls on both. Warm: nothing changed since the last request.
Cold: before each request the board's generation was raised and the first GPU's results marked as
changed, as a new result does: no answer is kept then, and that GPU's board is made anew. Times are
from a client on the same machine, so they contain HTTP. Writes
`docs/measurements/site-budgets.{md,json}`.

Other work on the machine makes every wall time longer, so the processor time that the web process
itself spent on a request is measured beside it, and `--first` (root, the database on this machine)
lets client, server and database go before everything else while they are measured.

`--tenfold` then grows the runs tenfold, in ten times as many rounds (copied by the database,
without measurements, which these pages do not read), and measures again.
"""

import argparse
import gzip
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import records

ROOT = Path(__file__).resolve().parents[1]
BARE = "/healthz"
COLD_REQUESTS = 10
# Pages with their budgets: warm and cold p95 in ms, queries, gzipped KB. None: measured only.
PAGES = {
    "home": ("/", 50, 300, 8, 60),
    "leaderboard": ("/leaderboard/", 50, 300, 8, 60),
    "leaderboard of a category": ("/leaderboard/?category=fusion", 50, 300, 8, 60),
    "leaderboard of a round": ("/leaderboard/?round=0", 50, 300, 8, 60),
    "categories": ("/categories/", 50, 300, None, 60),
    "a category": ("/categories/fusion/", 50, 300, None, 60),
    "tasks": ("/tasks/", 50, 300, None, 60),
    "a task": ("/tasks/relu/", 50, 300, None, 60),
    "a method": ("/methods/synthetic-025/", 50, 300, None, 60),
    "a run": ("", 50, 300, None, 60),
    "a comparison": ("/compare/?m=synthetic-025&m=synthetic-026", 50, 300, None, 60),
    "portability": ("/portability/", 50, 300, None, 60),
    "rounds of a method": ("/rounds/synthetic-025/", 50, 300, None, 60),
    "findings": ("/findings/", 50, 300, None, 60),
    "chart: correctness": ("/charts/correctness.json", 50, 300, None, 150),
    "chart: speedups": ("/charts/speedups.json", 50, 300, None, 150),
    "chart: verdicts": ("/charts/verdicts.json", 50, 300, None, 150),
    "chart: pareto": ("/charts/pareto.json", 50, 300, None, 150),
}
MOST_SLOWER = 1.5  # at ten times the rows


@dataclass
class Measured:
    """One page. Times in ms; `ratio_to_bare_view` of medians; sizes in KB of 1,024 bytes."""

    page: str
    url: str
    rows: int
    queries: int
    queries_cold: int
    p50_ms: float
    p95_ms: float
    cold_p50_ms: float
    cold_p95_ms: float
    cpu_ms: float
    cold_cpu_ms: float
    not_modified_p50_ms: float | None
    bare_p50_ms: float
    ratio_to_bare_view: float
    gzipped_kb: float
    over_budget: list[str]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database-url", help="of an empty or seeded database of its own")
    parser.add_argument("--tenfold", action="store_true")
    parser.add_argument("--grown-database-url", help="of one that was grown before: --tenfold uses")
    parser.add_argument("--first", action="store_true", help="real-time scheduling")
    parser.add_argument("--requests", type=int, default=50, help="a page, warm")
    parser.add_argument("--note", action="append", default=[], help="a paragraph for the record")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kbx-budgets-") as folder:
        Path(folder).chmod(0o755)
        with database(chosen.database_url, Path(folder)) as url:
            prepare(url, Path(folder))
            sizes = [measured_site(chosen)]
            if chosen.tenfold:
                if chosen.grown_database_url:
                    use(chosen.grown_database_url)
                else:
                    grow()
                sizes.append(measured_site(chosen))
            write(sizes, chosen)


# -- the site --


@contextmanager
def database(given: str | None, folder: Path) -> Iterator[str]:
    """A PostgreSQL of our own that ends with us, or the one that was given."""
    if given:
        yield given
        return
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    data, port = folder / "pg", free_port()
    data.mkdir()
    shutil.chown(data, "postgres")
    as_postgres = ["runuser", "-u", "postgres", "--"]
    options = f"-p {port} -k {data} -c listen_addresses=127.0.0.1 -c max_wal_size=4GB"
    control = [*as_postgres, str(binaries / "pg_ctl"), "-D", str(data), "-w"]
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    initdb = [str(binaries / "initdb"), "-D", str(data), "-A", "trust", "-E", "UTF8"]
    subprocess.run([*as_postgres, *initdb], **quiet)
    subprocess.run([*control, "-l", str(data / "log"), "-o", options, "start"], **quiet)
    try:
        createdb = [str(binaries / "createdb"), "-h", "127.0.0.1", "-p", str(port), "kbx"]
        subprocess.run([*as_postgres, *createdb], **quiet)
        yield f"postgres://postgres@127.0.0.1:{port}/kbx"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], stdout=subprocess.DEVNULL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def prepare(url: str, folder: Path) -> None:
    """This process and its children use the database; it gets tables, tasks, synthetic results."""
    os.environ.update(
        DATABASE_URL=url,
        DJANGO_SETTINGS_MODULE="kbx_site.settings.development",
        KBX_STATE_DIR=str(folder / "state"),
        KBX_LOG_LEVEL="WARNING",
        KBX_SLOW_QUERY_MS="0",  # the log of slow queries is for development, and takes time itself
    )
    sys.path.insert(0, str(ROOT))
    manage("migrate", "--verbosity", "0")
    import django

    django.setup()
    from benchmark.models import Run

    if not Run.objects.exists():
        manage("sync_tasks")
        manage("seed")


def use(url: str) -> None:
    """Turn to another database that is ready. What was kept is of one with equal generations."""
    import dj_database_url
    from django.db import connection

    from leaderboard import kept

    os.environ["DATABASE_URL"] = url
    manage("migrate", "--verbosity", "0")
    connection.close()
    connection.settings_dict.update(dj_database_url.parse(url))
    kept.forget()


def manage(*arguments: str) -> None:
    subprocess.run([sys.executable, str(ROOT / "manage.py"), *arguments], check=True, cwd=ROOT)


@dataclass(frozen=True)
class Server:
    client: httpx.Client
    worker: int  # process id

    def cpu_ms(self) -> float:
        """Processor time of the web process since it started."""
        fields = Path(f"/proc/{self.worker}/stat").read_text().rpartition(")")[2].split()
        return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def server() -> Iterator[Server]:
    """gunicorn as the demo starts it, with one worker so that every request meets the same one."""
    port = free_port()
    command = [
        sys.executable, "-m", "gunicorn", "kbx_site.wsgi", "--chdir", str(ROOT), "--bind",
        f"127.0.0.1:{port}", "--workers", "1", "--threads", "4", "--log-level", "warning",
    ]  # fmt: skip
    process = subprocess.Popen(command)
    try:
        retrying = httpx.HTTPTransport(retries=10)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", transport=retrying) as client:
            client.timeout = 60
            client.get("/readyz").raise_for_status()
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            yield Server(client, int(children.split()[0]))
    finally:
        process.terminate()
        process.wait()


# -- measuring --


def measured_site(chosen: argparse.Namespace) -> dict:
    from benchmark.models import CountingRun, Measurement, Run

    rows = {
        "runs": Run.objects.count(),
        "measurements": Measurement.objects.count(),
        "counting_runs": CountingRun.objects.count(),
    }
    urls = {name: budget[0] or a_run() for name, budget in PAGES.items()}
    load = os.getloadavg()[0]
    pages = []
    if chosen.first:
        schedule(0, os.SCHED_RR, 5)
    with server() as site:
        for name, url in urls.items():
            if chosen.first:
                let_database_go_first(site.client, url)
            pages.append(measure(site, name, url, rows["runs"], chosen.requests))
    if chosen.first:
        schedule(0, os.SCHED_OTHER, 0)
    found = {**rows, "load_average": [load, os.getloadavg()[0]]}
    return found | {"pages": [asdict(page) for page in pages]}


def schedule(process: int, policy: int, priority: int) -> None:
    os.sched_setscheduler(process, policy, os.sched_param(priority))


def let_database_go_first(client: httpx.Client, url: str) -> None:
    """The connections of server and client: asked for often enough that each thread has one."""
    from django.db import connection

    for _ in range(12):
        client.get(url)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        for (process,) in cursor.fetchall():
            schedule(process, os.SCHED_RR, 5)


def a_run() -> str:
    from benchmark.models import Run

    run = Run.objects.filter(verdict="passed", measurements__isnull=False).order_by("id").first()
    return f"/runs/{run.uuid}/"


def measure(site: Server, name: str, url: str, rows: int, requests: int) -> Measured:
    client, start = site.client, site.cpu_ms()
    cold = [timed(client, url, is_cold=True) for _ in range(COLD_REQUESTS)]
    cold_cpu = (site.cpu_ms() - start) / COLD_REQUESTS
    first = client.get(url).raise_for_status()
    start = site.cpu_ms()
    pairs = [(timed(client, url), timed(client, BARE)) for _ in range(requests)]
    both_cpu, start = site.cpu_ms() - start, site.cpu_ms()
    for _ in pairs:
        timed(client, BARE)
    warm_cpu = max(0.0, both_cpu - (site.cpu_ms() - start)) / requests
    warm, bare = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    etag, unchanged = first.headers.get("ETag"), None
    if etag:
        again = {"If-None-Match": etag}
        unchanged = statistics.median(timed(client, url, again, 304) for _ in range(20))
    bare_p50 = statistics.median(bare)
    page = Measured(
        page=name,
        url="/runs/<uuid>/" if url.startswith("/runs/") else url,
        rows=rows,
        queries=queries(url),
        queries_cold=queries(url, is_cold=True),
        p50_ms=round(statistics.median(warm), 2),
        p95_ms=round(percentile(warm, 95), 2),
        cold_p50_ms=round(statistics.median(cold), 1),
        cold_p95_ms=round(percentile(cold, 95), 1),
        cpu_ms=round(warm_cpu, 2),
        cold_cpu_ms=round(cold_cpu, 1),
        not_modified_p50_ms=None if unchanged is None else round(unchanged, 2),
        bare_p50_ms=round(bare_p50, 2),
        ratio_to_bare_view=round(statistics.median(warm) / bare_p50, 1),
        gzipped_kb=round(len(gzip.compress(first.content, 6)) / 1024, 1),
        over_budget=[],
    )
    page.over_budget = over_budget(page)
    print(f"{name}: {page.p50_ms} ms, cold {page.cold_p50_ms} ms, {page.over_budget}", flush=True)
    return page


def timed(
    client: httpx.Client,
    url: str,
    headers: dict | None = None,
    status: int = 200,
    is_cold: bool = False,
) -> float:
    """ms until the whole answer is there."""
    if is_cold:
        bump()
    start = time.perf_counter()
    response = client.get(url, headers=headers)
    took = 1000 * (time.perf_counter() - start)
    if response.status_code != status:
        raise SystemExit(f"{url}: {response.status_code}, not {status}")
    return took


def bump() -> None:
    """As a result does that lands on the first GPU, whose board most pages show."""
    from django.db import transaction

    from benchmark.models import Board
    from leaderboard.selectors import board

    with transaction.atomic():
        Board.bump()
        Board.touch([(board.gpus()[0].id, "measured")])


def queries(url: str, is_cold: bool = False) -> int:
    """Of one request, asked in this process."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client(headers={"host": "127.0.0.1"})
    client.get(url)
    if is_cold:
        bump()
    with CaptureQueriesContext(connection) as captured:
        client.get(url)
    return len(captured)


def percentile(values: list[float], share: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[share - 1]


def over_budget(page: Measured) -> list[str]:
    _, warm, cold, most_queries, kilobytes = PAGES[page.page]
    limits = {
        "warm p95": (page.p95_ms, warm),
        "cold p95": (page.cold_p95_ms, cold),
        "queries": (max(page.queries, page.queries_cold), most_queries),
        "gzipped": (page.gzipped_kb, kilobytes),
    }
    return [
        f"{name} {value:g} > {limit}"
        for name, (value, limit) in limits.items()
        if limit is not None and value > limit
    ]


# -- ten times the rows --

GROWTH = 10
GROW = (
    """INSERT INTO benchmark_candidate (submission_id, task_id, round, source_id, place)
    SELECT submission_id, task_id, round + {rounds} * k, source_id, ''
    FROM benchmark_candidate, generate_series(1, {more}) k WHERE round < {rounds}""",
    """INSERT INTO benchmark_run (uuid, candidate_id, gpu_id, origin, task_digest, judge_version,
      verdict, stage, detail, speedup, speedup_low, speedup_high, is_suspect, findings, kernels,
      seconds, environment, log_tail, peak_memory_bytes, created_at)
    SELECT gen_random_uuid(), later.id, gpu_id, origin, task_digest, judge_version, verdict, stage,
      detail, speedup, speedup_low, speedup_high, is_suspect, findings, kernels, seconds,
      environment, log_tail, peak_memory_bytes, r.created_at
    FROM benchmark_run r JOIN benchmark_candidate c ON c.id = r.candidate_id
    JOIN benchmark_candidate later ON later.submission_id = c.submission_id
      AND later.task_id = c.task_id AND later.round % {rounds} = c.round
      AND later.round >= {rounds}
    WHERE c.round < {rounds}""",
    "UPDATE benchmark_countingrun SET is_final = false WHERE is_final",
    """INSERT INTO benchmark_countingrun (run_id, uuid, submission_id, method_id, task_id, gpu_id,
      origin, round, is_final, verdict, stage, speedup, speedup_low, speedup_high, task_digest,
      is_suspect, audit)
    SELECT r.id, r.uuid, c.submission_id, s.method_id, c.task_id, r.gpu_id, r.origin, c.round,
      c.round = {rounds} * {growth} - 1, r.verdict, r.stage, r.speedup, r.speedup_low,
      r.speedup_high, r.task_digest, r.is_suspect, ''
    FROM benchmark_run r JOIN benchmark_candidate c ON c.id = r.candidate_id
    JOIN benchmark_submission s ON s.id = c.submission_id
    WHERE c.round >= {rounds}""",
    "UPDATE benchmark_runtally SET runs = runs * {growth}",
)


def grow() -> None:
    """Ten times as many rounds. Every run of theirs counts in its round, so the derived tables are
    written likewise; one method is compared with its facts to be sure.
    """
    from django.db import connection, transaction
    from django.db.models import Max

    from benchmark import aggregates
    from benchmark.models import Candidate, Method

    rounds = (Candidate.objects.aggregate(Max("round"))["round__max"] or 0) + 1
    start = time.monotonic()
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in GROW:
            cursor.execute(statement.format(rounds=rounds, more=GROWTH - 1, growth=GROWTH))
            print(f"{cursor.rowcount:,} rows, {time.monotonic() - start:.0f} s", flush=True)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    drift = aggregates.compare(Method.objects.order_by("id").first())
    if drift:
        raise SystemExit(f"the derived tables were grown wrongly: {drift}")
    print(f"grown after {time.monotonic() - start:.0f} s", flush=True)


# -- the record --


def write(sizes: list[dict], chosen: argparse.Namespace) -> None:
    import django
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        postgres = cursor.fetchone()[0].split()[0]
    bare = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "environment": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "django": django.get_version(),
            "postgresql": postgres,
        },
        "commands": [
            "python benchmarks/site_budgets.py"
            + " --tenfold" * chosen.tenfold
            + " --first" * chosen.first
        ],
        "sizes": sizes,
    }
    records.write("site-budgets", bare, text(bare, chosen.note))


def processor() -> str:
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return names[0] if names else platform.machine()


def text(bare: dict, notes: list[str]) -> str:
    found = bare["environment"]
    lines = [
        "# Pages against their budgets",
        "",
        f"Date: {bare['date']}. Hardware: {found['processor']}, {found['cores']} cores, shared "
        f"with other work. Python {found['python']}, Django {found['django']}, PostgreSQL "
        f"{found['postgresql']}, gunicorn with one worker; client and database on the same "
        "machine.",
        "",
        "```",
        *bare["commands"],
        "```",
    ]
    for size in bare["sizes"]:
        lines += ["", *size_table(size)]
    if len(bare["sizes"]) > 1:
        lines += ["", *growth_table(*bare["sizes"])]
    for note in notes:
        lines += ["", note]
    return "\n".join(lines) + "\n"


def size_table(size: dict) -> list[str]:
    low, high = sorted(size["load_average"])
    lines = [
        f"## {size['runs']:,} runs, {size['measurements']:,} measurements",
        "",
        f"Load average {low:.1f} to {high:.1f}. Times in ms; warm: nothing changed since; cold: "
        "the first request after a change; CPU: the web process's own processor time; 304: nothing "
        "changed and the visitor says so. The ratio is of warm medians to the bare view's.",
        "",
        "| page | queries, warm/cold | warm p50 | warm p95 | warm CPU | cold p50 | cold p95 "
        "| cold CPU | 304 p50 | bare p50 | ratio | gzipped KB | over budget |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for page in size["pages"]:
        unchanged = page["not_modified_p50_ms"]
        lines.append(
            f"| {page['page']} | {page['queries']}/{page['queries_cold']} | {page['p50_ms']:.1f} "
            f"| {page['p95_ms']:.1f} | {page['cpu_ms']:.1f} | {page['cold_p50_ms']:.0f} "
            f"| {page['cold_p95_ms']:.0f} | {page['cold_cpu_ms']:.0f} "
            f"| {'' if unchanged is None else f'{unchanged:.1f}'} | {page['bare_p50_ms']:.1f} "
            f"| {page['ratio_to_bare_view']:.1f} | {page['gzipped_kb']:.1f} "
            f"| {'; '.join(page['over_budget'])} |"
        )
    return lines


def growth_table(small: dict, large: dict) -> list[str]:
    """How much slower the same page is with more rows, by medians over the bare view's."""
    times = large["runs"] / small["runs"]
    lines = [
        f"## {times:.0f} times the rows",
        "",
        f"Medians at {large['runs']:,} runs over those at {small['runs']:,}, each relative to the "
        f"bare view of its own minutes; at most {MOST_SLOWER} is wanted.",
        "",
        "| page | warm | cold | cold, CPU alone |",
        "|---|---:|---:|---:|",
    ]
    for before, after in zip(small["pages"], large["pages"], strict=True):
        drift = after["bare_p50_ms"] / before["bare_p50_ms"]
        warm = after["p50_ms"] / before["p50_ms"] / drift
        cold = after["cold_p50_ms"] / before["cold_p50_ms"] / drift
        cpu = after["cold_cpu_ms"] / before["cold_cpu_ms"] if before["cold_cpu_ms"] else 0
        lines.append(f"| {before['page']} | {warm:.2f} | {cold:.2f} | {cpu:.2f} |")
    return lines


if __name__ == "__main__":
    main()
