"""New records are held for review: a new first place on a GPU's board, or a speedup at least twice
the former best on that task and GPU.

A run that is held has an audit that says so, like any verdict: shown, not ranked, until a moderator
says clean. Two kinds of runs are exempt: those on devices that can't time, whose boards hold no
speedups; and recorded results, because these are files of our own repository that were looked at
before they came into it, with methods and sources known, and are loaded by an operator's command.
"""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Avg, Count, F, Max, Q, QuerySet
from django.db.models.functions import Ln

from benchmark import aggregates, vocabulary
from benchmark.models import Audit, Board, CountingRun, Gpu, Run, Submission, Task

RECORD_RATIO = 2.0  # times the former best; what honest work gains in one step is mostly less
ESTABLISHED = 0.5  # a first place is one once its method was judged on this share of the tasks

TRUSTED = Q(audit=vocabulary.CLEAN) | Q(audit="", is_suspect=False)
JUDGED = TRUSTED | Q(audit=vocabulary.CHEAT)


@dataclass(frozen=True, slots=True)
class First:
    """Who stands first on a GPU's board, by id; several where equal. Empty: nobody yet."""

    methods: frozenset[int]


def first(gpu: Gpu) -> First:
    """By tasks solved, then by geometric mean of speedups, as the board ranks.

    Nobody while the one with the most was judged on less than half of the tasks: on a GPU that
    starts, or is being filled, every other run would be a new first place.
    """
    tasks = Task.objects.judged_on(gpu)
    solved = Q(verdict=vocabulary.PASSED) & TRUSTED
    rows = (
        _counting(gpu)
        .filter(JUDGED, is_final=True, task__in=tasks)
        .values("method_id")
        .annotate(
            judged=Count("pk"),
            solved=Count("pk", filter=solved),
            mean=Avg(Ln("speedup"), filter=solved & Q(speedup__isnull=False)),
        )
    )
    # Rounded, because a sum of floats depends on the order in which the database reads.
    standings = {
        row["method_id"]: (row["solved"], round(row["mean"] or 0.0, 9), row["judged"])
        for row in rows
        if row["solved"]
    }
    if not standings:
        return First(frozenset())
    best = max((solved, mean) for solved, mean, _ in standings.values())
    leaders = {method for method, row in standings.items() if row[:2] == best}
    enough = ESTABLISHED * tasks.count()
    settled = any(standings[method][2] >= enough for method in leaders)
    return First(frozenset(leaders) if settled else frozenset())


def best_speedup(task: Task, gpu: Gpu, *, beside: Run) -> float | None:
    """The best that counts on the task and GPU in any round, beside this run's own."""
    rows = _counting(gpu).filter(TRUSTED, task=task, verdict=vocabulary.PASSED)
    best: float | None = rows.exclude(run=beside).aggregate(best=Max("speedup"))["best"]
    return best


@dataclass(frozen=True, slots=True)
class Former:
    """What stood before a run counted."""

    first: First
    best: float | None


def former(run: Run) -> Former:
    """To be asked after the run is stored and before the derived tables know of it."""
    if not _can_be_record(run):
        return Former(First(frozenset()), None)
    best = best_speedup(run.candidate.task, run.gpu, beside=run)
    return Former(first(run.gpu), best)


def hold(run: Run, before: Former) -> Audit | None:
    """Hold the run when it is a record. After the derived tables know of it, in its transaction."""
    if not _can_be_record(run):
        return None
    reason = _faster(run, before.best) or _overtaken(run, before.first)
    return _hold(run, reason) if reason else None


@transaction.atomic
def change_visibility(submission: Submission, visibility: str) -> int:
    """Show the submission to others, or to nobody. Returns how many of its runs are held.

    What becomes public may be a new first place as well: then all of its runs on that GPU are held.
    """
    Board.lock()
    gpus = list(Gpu.objects.filter(can_time=True, runs__candidate__submission=submission))
    before = {gpu: first(gpu) for gpu in set(gpus)}
    was_public = submission.visibility == vocabulary.PUBLIC
    submission.visibility = visibility
    submission.save(update_fields=["visibility"])
    Board.bump()
    aggregates.refresh_submission(submission)
    if visibility != vocabulary.PUBLIC or was_public or submission.recorded:
        return 0
    return sum(_hold_all(submission, gpu, former) for gpu, former in before.items())


def _hold_all(submission: Submission, gpu: Gpu, former: First) -> int:
    if not _is_new(submission.method_id, former, gpu):
        return 0
    counting = _counting(gpu).filter(TRUSTED, submission=submission, verdict=vocabulary.PASSED)
    # A moderator's word on a run stands: it was looked at.
    runs = Run.objects.filter(pk__in=counting.filter(audit="").values("pk"))
    reason = f"New first place on {gpu.name} by becoming public"
    return len([_hold(run, reason) for run in runs])


def _counting(gpu: Gpu) -> QuerySet[CountingRun]:
    """What counts on the GPU's board of judgements made here, against tasks as they are now."""
    listed = Submission.objects.listed()
    return CountingRun.objects.filter(
        gpu=gpu,
        origin=vocabulary.MEASURED,
        submission__in=listed,
        task_digest=F("task__digest"),
    ).order_by()


def _can_be_record(run: Run) -> bool:
    return (
        run.verdict == vocabulary.PASSED
        and run.origin == vocabulary.MEASURED
        and run.gpu.can_time
        and not run.is_suspect  # waits for a moderator anyhow
        and not run.candidate.submission.recorded
    )


def _faster(run: Run, best: float | None) -> str:
    if run.speedup is None or best is None or run.speedup < RECORD_RATIO * best:
        return ""
    where = f"{run.candidate.task.slug}, {run.gpu.name}"
    return f"New record on {where}: {run.speedup:.3g}x, where the former best is {best:.3g}x"


def _overtaken(run: Run, before: First) -> str:
    if not _is_new(run.candidate.submission.method_id, before, run.gpu):
        return ""
    return f"New first place on {run.gpu.name}: this run brings the method there"


def _is_new(method: int, before: First, gpu: Gpu) -> bool:
    """Somebody else stood first, and now the method does."""
    if not before.methods or method in before.methods:
        return False
    return method in first(gpu).methods


def _hold(run: Run, reason: str) -> Audit:
    words = f"{reason}. Not ranked until a moderator has looked at it."
    return Audit.objects.create(run=run, verdict=vocabulary.HELD, reason=words)
