"""The tables that are given out, column by column. Their version changes when a column goes away
or means something else; a new column at the end does not change it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from leaderboard.exports import rows
from leaderboard.exports.selection import Selection

VERSION = 1
TEXT, INTEGER, NUMBER, FLAG = "text", "integer", "number", "flag"
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """`rows` yields tuples in the order of `columns`; None is not measured, or not applicable."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Callable[[Selection], Iterable[Row]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


PLACE = (
    Column("gpu", TEXT, "slug of the GPU"),
    Column("method", TEXT, "slug of the method"),
    Column("task", TEXT, "slug of the task"),
    Column("category", TEXT, "the task's category"),
    Column("round", INTEGER, "round of the candidate, from 0"),
    Column("lane", TEXT, "measured, claimed or published: never to be mixed"),
    Column("run", TEXT, "uuid: /runs/<uuid>/"),
)
SPEED = (
    Column("speedup", NUMBER, "reference time / candidate time on the same board"),
    Column("speedup_low", NUMBER, "low end of its 95 % interval"),
    Column("speedup_high", NUMBER, "high end of its 95 % interval"),
)

RUNS = Dataset(
    "runs",
    "The run that counts for each method, task and GPU",
    (
        *PLACE,
        Column("submission", TEXT, "uuid: /submissions/<uuid>/"),
        Column("difficulty", INTEGER, "the task's, 1 to 5"),
        Column("state", TEXT, "counted, or why not: stale, suspect, rejected, ..."),
        Column("verdict", TEXT, "how the judgement ended"),
        Column("stage", TEXT, "the stage that decided"),
        *SPEED,
        Column("baseline", TEXT, "what the speedup is over; empty where nothing is timed"),
        Column("task_digest", TEXT, "of the task that was judged against"),
        Column("judge_version", TEXT, "of the judge"),
        Column("source_sha256", TEXT, "of the candidate's source"),
        Column("peak_memory_bytes", INTEGER, "device memory at its highest"),
        Column("judged_at", TEXT, "UTC, ISO 8601"),
    ),
    rows.runs,
)

CASES = Dataset(
    "cases",
    "Every case of the runs that count",
    (
        *PLACE,
        Column("case", TEXT, "name of the case"),
        Column("kind", TEXT, "small or timed"),
        Column("shape", TEXT, "sizes and options"),
        Column("dtype", TEXT, "dtype that the case is about"),
        Column("family", TEXT, "spread of the inputs"),
        Column("state", TEXT, "passed, failed, not-run or not-judgeable"),
        Column("error", NUMBER, "the candidate's worst, in `unit`"),
        Column("reference_error", NUMBER, "PyTorch's own, in `unit`"),
        Column("tolerance", NUMBER, "the limit, in `unit`"),
        Column("unit", TEXT, "of the three errors"),
        Column("candidate_ms", NUMBER, "milliseconds"),
        Column("candidate_ms_low", NUMBER, "low end of its 95 % interval"),
        Column("candidate_ms_high", NUMBER, "high end of its 95 % interval"),
        Column("reference_ms", NUMBER, "PyTorch eager, milliseconds"),
        Column("reference_ms_low", NUMBER, "low end of its 95 % interval"),
        Column("reference_ms_high", NUMBER, "high end of its 95 % interval"),
        *SPEED,
        Column("flops", NUMBER, "FLOP by the task's cost model"),
        Column("bytes", NUMBER, "bytes by the task's cost model"),
        Column("own_share", NUMBER, "device time in the candidate's own kernels, 0 to 1"),
        Column("samples", INTEGER, "timed calls"),
    ),
    rows.cases,
)

TASKS = Dataset(
    "tasks",
    "The tasks, and how many methods solve each on each GPU",
    (
        Column("gpu", TEXT, "slug of the GPU"),
        Column("task", TEXT, "slug of the task"),
        Column("category", TEXT, "its category"),
        Column("difficulty", INTEGER, "1 to 5"),
        Column("dtypes", TEXT, "separated by spaces"),
        Column("interpretable", FLAG, "judgeable without a GPU"),
        Column("signature", TEXT, "as published"),
        Column("tolerance", TEXT, "in words"),
        Column("digest", TEXT, "of code, cases and tolerances"),
        Column("lane", TEXT, "of the results that are counted"),
        Column("judged", INTEGER, "methods with a result that counts"),
        Column("solved", INTEGER, "of these, those that solve it"),
        Column("best_method", TEXT, "the fastest one's slug"),
        Column("best_run", TEXT, "its run"),
        *SPEED,
    ),
    rows.tasks,
)

METHODS = Dataset(
    "methods",
    "The rankings: each method's place on each GPU",
    (
        Column("gpu", TEXT, "slug of the GPU"),
        Column("method", TEXT, "slug of the method"),
        Column("name", TEXT, "its name"),
        Column("kind", TEXT, "language model, agent, compiler or human"),
        Column("organisation", TEXT, "whose it is"),
        Column("lane", TEXT, "measured, claimed or published"),
        Column("rank", INTEGER, "empty where it is not ranked"),
        Column("rank_low", INTEGER, "low end of its 95 % interval"),
        Column("rank_high", INTEGER, "high end of its 95 % interval"),
        Column("tie_group", INTEGER, "methods of one group can't be told apart from its first"),
        Column("tasks", INTEGER, "denominator"),
        Column("judged", INTEGER, "tasks with a candidate that was judged"),
        Column("loaded", INTEGER, "tasks whose candidate could be imported"),
        Column("called", INTEGER, "tasks whose first call returned"),
        Column("correct", INTEGER, "tasks solved"),
        Column("faster", INTEGER, "tasks solved above 1.05x"),
        Column("timed", INTEGER, "tasks behind the speedup"),
        *SPEED,
        Column("baseline", TEXT, "what the speedup is over; empty where nothing is timed"),
        Column("reason", TEXT, "why it is not ranked"),
    ),
    rows.methods,
)

DATASETS = {one.name: one for one in (RUNS, CASES, TASKS, METHODS)}
