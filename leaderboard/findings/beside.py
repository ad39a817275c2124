"""A live figure beside the one that a paper prints and the one that its own counts give."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from leaderboard.figures import MISSING, figure
from leaderboard.findings import shares
from leaderboard.findings.attribution import (
    BOTH,
    CATEGORY,
    CELLS,
    METHOD,
    NONE,
    Absent,
    Attribution,
    attribute,
)
from leaderboard.findings.published import COMPILED, CORRECT, Count, Published
from leaderboard.sentences import p_text

MODELS = {
    METHOD: "Method alone",
    CATEGORY: "Category alone",
    BOTH: "Both",
    CELLS: "Both, with interaction",
}
Fit = Attribution | Absent


@dataclass(frozen=True, slots=True)
class Row:
    """A figure by source: `here`, as `printed`, and recomputed from the counts, one each fit."""

    name: str
    here: str
    printed: str
    recomputed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Endings:
    """Shares of a category's candidates in the paper, over the methods that its analyses keep."""

    tries: int
    uncompiled: float
    wrong: float
    correct: float


def recomputed(paper: Published | None, outcome: str) -> tuple[tuple[str, Fit], ...]:
    """(whose, fit): the paper's counts through the code that the site's own go through, without
    and with the methods that it leaves out.
    """
    if paper is None:
        return ()
    groups = [paper.kept, paper.methods] if paper.excluded else [paper.methods]
    return tuple(
        (f"paper, {len(names)} methods", attribute(paper.tallies(outcome, names)))
        for names in groups
    )


def explained(live: Fit, paper: Published | None) -> tuple[Row, ...]:
    """All figures of the attribution of correctness."""
    return tuple(_rows(live, paper, CORRECT, PRINTED, (*COUNTS, *SHARES, *TESTS, *PRICES)))


def explained_of_calls(live: Fit, paper: Published | None) -> tuple[Row, ...]:
    """The same question of what compiles and runs, shares only."""
    return tuple(_rows(live, paper, COMPILED, PRINTED_OF_CALLS, (*COUNTS, *SHARES)))


def _rows(
    live: Fit, paper: Published | None, outcome: str, printed: dict[str, str], lines: tuple
) -> Iterator[Row]:
    figures = paper.figures if paper else {}
    fits = [fit for _, fit in recomputed(paper, outcome)]
    for name, read in lines:
        value = figures.get(printed.get(name, ""))
        unit = " %" if name in MODELS.values() else ""
        yield Row(
            name,
            here=_read(read, live),
            printed=MISSING if value is None else f"{value:g}{unit}",
            recomputed=tuple(_read(read, fit) for fit in fits),
        )


Read = Callable[[Attribution], str]


def _read(read: Read, fit: Fit) -> str:
    return read(fit) if isinstance(fit, Attribution) else MISSING


def _share(model: str) -> Read:
    def read(fit: Attribution) -> str:
        found = fit.model(model)
        return f"{figure(100 * found.explained)} % ({found.df} df)" if found else MISSING

    return read


def _ratio(added: str, to: str) -> Read:
    def read(fit: Attribution) -> str:
        step = fit.step(added, to)
        return f"{figure(step.ratio)} ({step.df} df, {p_text(step.p)})" if step else MISSING

    return read


def _bic(model: str) -> Read:
    def read(fit: Attribution) -> str:
        found = fit.model(model)
        if found is None:
            return MISSING
        return f"{found.bic:,.1f}" + (", lowest" if found is fit.preferred else "")

    return read


COUNTS = (
    ("Candidates", lambda fit: f"{fit.trials:,}"),
    ("Succeeded", lambda fit: f"{fit.successes:,}"),
)
SHARES = (
    *((name, _share(model)) for model, name in MODELS.items()),
    (
        "A factor without meaning, by chance",
        lambda fit: f"{figure(100 / fit.null_deviance)} % a df",
    ),
)
TESTS = (
    ("Likelihood ratio: category on top of method", _ratio(CATEGORY, METHOD)),
    ("Likelihood ratio: method on top of category", _ratio(METHOD, CATEGORY)),
    ("Likelihood ratio: interaction on top of both", _ratio(CELLS, BOTH)),
)
PRICES = (
    ("BIC: one rate for all", _bic(NONE)),
    *((f"BIC: {name[0].lower()}{name[1:]}", _bic(model)) for model, name in MODELS.items()),
)
PRINTED = {
    MODELS[METHOD]: "explained_correct_method",
    MODELS[CATEGORY]: "explained_correct_category",
    TESTS[0][0]: "ratio_category_on_method",
    TESTS[1][0]: "ratio_method_on_category",
}
PRINTED_OF_CALLS = {
    MODELS[METHOD]: "explained_compiled_method",
    MODELS[CATEGORY]: "explained_compiled_category",
}


def slower_by_gpu(paper: Published | None) -> tuple[tuple[str, float], ...]:
    """(GPU, share of correct kernels slower than eager): each method weighs what it solves."""
    table = paper.table("slower") if paper else None
    if paper is None or table is None or table.columns[1:] != paper.kept:
        return ()
    solved = [paper.total(CORRECT, name) for name in paper.kept]
    return tuple(
        (str(gpu), share)
        for gpu, *row in table.rows
        if all(isinstance(value, int | float) for value in row)
        and (share := shares.pooled([float(value or 0) for value in row], solved)) is not None
    )


def endings(paper: Published | None) -> dict[str, Endings]:
    """By the category's label."""
    if paper is None:
        return {}
    return {count.label: _endings(paper, count) for count in paper.counts if count.tasks}


def _endings(paper: Published, count: Count) -> Endings:
    columns = [paper.methods.index(name) for name in paper.kept]
    tries = count.tasks * len(columns)
    compiled = sum(count.compiled[i] for i in columns)
    correct = sum(count.correct[i] for i in columns)
    return Endings(tries, 1 - compiled / tries, (compiled - correct) / tries, correct / tries)


def scores(paper: Published | None) -> tuple[tuple[str, float], ...]:
    """(method, hardware score in percent) of those that have a speedup."""
    table = paper.table("overall") if paper else None
    if table is None or "score, %" not in table.columns:
        return ()
    column = table.columns.index("score, %")
    pairs = ((str(row[0]), row[column]) for row in table.rows)
    return tuple(
        (name, float(value)) for name, value in pairs if isinstance(value, int | float) and value
    )


def totals(paper: Published | None) -> tuple[tuple[str, int, int, int], ...]:
    """(method, compiled, correct, tasks) as the counts add up."""
    if paper is None:
        return ()
    return tuple(
        (name, paper.total(COMPILED, name), paper.total(CORRECT, name), paper.tasks)
        for name in paper.methods
    )


def commonest_failure(paper: Published | None) -> str:
    """The more frequent of the two failures that a paper knows; empty without counts."""
    found = endings(paper).values()
    tries = sum(category.tries for category in found)
    if not tries:
        return ""
    uncompiled = sum(category.tries * category.uncompiled for category in found)
    wrong = sum(category.tries * category.wrong for category in found)
    word, count = ("not compiled", uncompiled) if uncompiled > wrong else ("wrong", wrong)
    return f"{word}, {round(count)} of {tries}"
