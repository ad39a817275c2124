"""What boards, heat maps and distributions are built from: GPUs, tasks, methods and results."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import F, OuterRef, Q, QuerySet, Subquery, Sum, TextField
from django.db.models.functions import Cast

from benchmark import vocabulary
from benchmark.models import (
    Audit,
    CountingRun,
    Gpu,
    Method,
    Run,
    RunTally,
    Submission,
    Task,
)
from leaderboard.figures import interval, verdict_word
from leaderboard.filters import Choice
from leaderboard.rows import (
    COUNTED,
    HELD,
    REJECTED,
    STALE,
    SUSPECT,
    GpuRow,
    MethodRow,
    Recorded,
    Result,
    RunLine,
    TaskRow,
)

IGNORED = "ignored"  # an audit took the run out: our bug, or withdrawn
NEWEST_AUDIT = Subquery(
    Audit.objects.filter(run=OuterRef("pk")).order_by("-created_at", "-id").values("verdict")[:1]
)

AUDITED = {
    vocabulary.CLEAN: COUNTED,
    vocabulary.SUSPECT: SUSPECT,
    vocabulary.HELD: HELD,
    vocabulary.CHEAT: REJECTED,
    vocabulary.JUDGE_BUG: IGNORED,
    vocabulary.WITHDRAWN: IGNORED,
}

# `state_of` for the database: derived rows that count, and that are judged.
CURRENT = Q(task_digest=F("task__digest"))
COUNTS = CURRENT & (Q(audit=vocabulary.CLEAN) | Q(audit="", is_suspect=False))
JUDGED = COUNTS | CURRENT & Q(audit=vocabulary.CHEAT)

RESULT_FIELDS = (
    "gpu_id",
    "method_id",
    "task_id",
    "round",
    "key",
    "verdict",
    "stage",
    "speedup",
    "speedup_low",
    "speedup_high",
    "is_suspect",
    "audit",
    "task_digest",
    "submission_id",
)

METHOD_FIELDS = ("slug", "name", "kind", "organisation")


@dataclass(frozen=True, slots=True)
class BoardData:
    """Everything a choice's pages need. `results` by (method, task), restricted to `tasks`; `memo`
    holds what was worked out of them and is asked for again, by name.
    """

    choice: Choice
    tasks: tuple[TaskRow, ...]
    methods: tuple[MethodRow, ...]
    results: dict[tuple[int, int], Result]
    recorded: tuple[Recorded, ...] = ()
    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Scene:
    """What boards are made of beside results: tasks with their present digests, methods by name,
    what recorded submissions say of themselves, and the submissions that lists may name.
    """

    tasks: tuple[tuple[TaskRow, str], ...]
    methods: tuple[MethodRow, ...]
    recorded: tuple[tuple[int, dict], ...]
    listed: frozenset[int]

    @property
    def digests(self) -> dict[int, str]:
        return {task.id: digest for task, digest in self.tasks}


def gpus() -> tuple[GpuRow, ...]:
    """GPUs with listed results or in service, the default first: one that times, most results."""
    tallies = RunTally.objects.filter(submission__in=Submission.objects.listed())
    sums = tallies.order_by().values_list("gpu_id").annotate(Sum("runs"))
    runs: dict[int, int] = dict(sums)
    rows = [
        GpuRow(gpu.pk, gpu.slug, gpu.name, gpu.architecture, gpu.can_time, runs.get(gpu.pk, 0))
        for gpu in Gpu.objects.all()
        if gpu.is_judging or runs.get(gpu.pk)
    ]
    return tuple(
        sorted(rows, key=lambda gpu: (not gpu.runs, not gpu.can_time, -gpu.runs, gpu.name))
    )


def board_data(choice: Choice) -> BoardData:
    """Three queries: tasks, submissions with their methods, and the runs that count."""
    now = scene()
    return assemble(choice, now, results(choice.gpu, choice.lane, choice.round, now.digests))


def scene() -> Scene:
    """Two queries."""
    tasks = tuple(_tasks())
    methods, recorded, listed = _entered()
    return Scene(tasks, methods, recorded, listed)


def results(
    gpu: GpuRow, lane: str, round: int | None, digests: Mapping[int, str]
) -> tuple[Result, ...]:
    """What counts on the GPU, of the tasks in `digests`. One query."""
    counting = in_round(listed_counting().filter(gpu=gpu.id, origin=lane), round)
    found = results_of(counting, digests, gpu.can_time)
    return tuple(result for result in found if result.task in digests)


def assemble(choice: Choice, scene: Scene, found: Iterable[Result]) -> BoardData:
    """The choice's part. A submission that is hidden by now stays out whatever was read before."""
    tasks = chosen_tasks(choice, scene)
    chosen = {task.id for task in tasks}
    kept = {
        (result.method, result.task): result
        for result in found
        if result.task in chosen and result.submission in scene.listed
    }
    shares = Counter(result.submission for result in kept.values())
    recorded = tuple(_shares(dict(scene.recorded), shares)) if scene.recorded else ()
    return BoardData(choice, tasks, scene.methods, kept, recorded)


def chosen_tasks(choice: Choice, scene: Scene) -> tuple[TaskRow, ...]:
    """Those that the choice's board ranks by, by slug."""
    return tuple(task for task, _ in scene.tasks if _is_chosen(task, choice))


def listed_counting() -> QuerySet[CountingRun]:
    """Runs that count, of submissions that lists may name. What is hidden stays hidden even where
    a derived row was left behind.
    """
    return CountingRun.objects.filter(submission__in=Submission.objects.listed()).order_by()


def in_round(counting: QuerySet[CountingRun], round: int | None) -> QuerySet[CountingRun]:
    """Those of the round; without one the final ones."""
    return counting.filter(is_final=True) if round is None else counting.filter(round=round)


def results_of(
    counting: QuerySet[CountingRun], digests: Mapping[int, str], can_time: bool
) -> list[Result]:
    """Of one device's rows. `digests`: the tasks' present ones, by which a result is stale."""
    return [_result(row, digests, can_time) for row in _rows(counting)]


def results_by_gpu(
    counting: QuerySet[CountingRun], digests: Mapping[int, str], timing: Collection[int]
) -> Iterable[tuple[int, Result]]:
    """(GPU, result) for each row, as `results_of`. `timing`: the ids of the GPUs that can time."""
    for row in _rows(counting):
        yield row[0], _result(row, digests, row[0] in timing)


def _rows(counting: QuerySet[CountingRun]) -> Iterable[tuple[Any, ...]]:
    rows = counting.annotate(key=Cast("uuid", TextField())).values_list(*RESULT_FIELDS)
    return rows.iterator(chunk_size=5000)


def _result(row: tuple[Any, ...], digests: Mapping[int, str], is_timed: bool) -> Result:
    """Of the `RESULT_FIELDS`."""
    # In one go: rows are cut up by the thousand.
    (_, method, task, round, key, verdict, stage, value, low, high, is_suspect, audit, digest,
     submission) = row  # fmt: skip
    state = state_of(digest == digests.get(task), is_suspect, audit or None)
    speedup = interval(value, low, high) if is_timed else None
    return Result(method, task, round, key, verdict, stage, speedup, state, submission)


def latest_runs(limit: int) -> tuple[RunLine, ...]:
    """The newest listed runs measured here of tasks that are judged, whatever their verdict."""
    runs = (
        Run.objects.listed()
        .measured()
        .filter(candidate__task__in=Task.objects.current())
        .select_related("candidate__task", "candidate__submission__method", "gpu")
        .annotate(newest_audit=NEWEST_AUDIT)
        .defer("log_tail", "environment", "kernels", "findings")
        .order_by("-created_at", "-id")[:limit]
    )
    return tuple(run_line(run, run.newest_audit) for run in runs)


def run_line(run: Run, audit: str | None) -> RunLine:
    """A line of a list. What is held back, rejected or stale shows that word and no speedup."""
    speedup = interval(run.speedup, run.speedup_low, run.speedup_high)
    state = state_of(run.task_digest == run.candidate.task.digest, run.is_suspect, audit)
    if state != COUNTED or not run.gpu.can_time:
        speedup = None
    word = verdict_word(run.verdict, speedup.value if speedup else None)
    return RunLine(
        uuid=run.uuid,
        task=run.candidate.task.slug,
        method=run.candidate.submission.method.name,
        method_slug=run.candidate.submission.method.slug,
        gpu=run.gpu.name,
        verdict=run.verdict,
        word=word if state == COUNTED else state,
        speedup=speedup,
        round=run.candidate.round,
        created_at=run.created_at,
    )


def _tasks() -> Iterable[tuple[TaskRow, str]]:
    """Tasks that are judged and ranked, with their present digests."""
    fields = ("id", "slug", "category", "difficulty", "dtypes", "interpretable", "not_on", "digest")
    for id, slug, category, difficulty, dtypes, interpretable, not_on, digest in (
        Task.objects.current().order_by("slug").values_list(*fields)
    ):
        facts = (id, slug, category, difficulty, tuple(dtypes), interpretable)
        yield TaskRow(*facts, tuple(sorted(not_on))), digest


def _entered() -> tuple[tuple[MethodRow, ...], tuple[tuple[int, dict], ...], frozenset[int]]:
    """Methods with a listed submission by name, what is said of recorded submissions, all listed
    ones.
    """
    submissions = Submission.objects.listed().order_by("method__name", "method_id")
    methods, recorded, listed = {}, [], set()
    for id, facts, method, slug, name, kind, organisation in submissions.values_list(
        "id", "recorded", "method_id", *(f"method__{f}" for f in METHOD_FIELDS)
    ):
        methods[method] = MethodRow(method, slug, name, vocabulary.METHOD_KINDS[kind], organisation)
        listed.add(id)
        if facts:
            recorded.append((id, facts))
    return tuple(methods.values()), tuple(recorded), frozenset(listed)


def _shares(recorded: Mapping[int, dict], shares: Mapping[int, int]) -> Iterable[Recorded]:
    """How many results come from recordings of each date, hardware and judge."""
    sums: Counter[Recorded] = Counter()
    for submission, facts in recorded.items():
        sums[replace(recorded_row(facts), predictions="")] += shares.get(submission, 0)
    for row, results in sums.items():
        if results:
            yield replace(row, results=results)


def recorded_row(facts: Mapping[str, Any], round: int | None = None) -> Recorded:
    """What a recorded submission says of itself, as pages show it."""
    names = ("date", "hardware", "judge", "predictions")
    date, hardware, judge, predictions = (str(facts.get(name, "")) for name in names)
    rounds = facts.get("rounds") or {}
    return Recorded(date, hardware, judge, predictions, str(rounds.get(str(round), "")))


def recorded_rounds(facts: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
    """What a recording says of each of its rounds, in their order."""
    rounds = (facts or {}).get("rounds") or {}
    return tuple((number, str(rounds[number])) for number in sorted(rounds, key=int))


def method_row(method: Method) -> MethodRow:
    return MethodRow(
        method.pk,
        method.slug,
        method.name,
        vocabulary.METHOD_KINDS[method.kind],
        method.organisation,
    )


def _is_chosen(task: TaskRow, choice: Choice) -> bool:
    return (
        (not choice.category or task.category == choice.category)
        and (not choice.dtype or choice.dtype in task.dtypes)
        and (choice.difficulty is None or task.difficulty == choice.difficulty)
        and task.applies_to(choice.gpu)
    )


def state_of(is_current: bool, is_suspect: bool, audit: str | None) -> str:
    """What becomes of a run: an audit outweighs the judge's own suspicion."""
    if not is_current:
        return STALE
    if audit is not None:
        return AUDITED[audit]
    return SUSPECT if is_suspect else COUNTED
