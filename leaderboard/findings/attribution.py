"""How much of correctness category and method explain: logistic models of counts by cell.

A candidate is correct or not; a cell is a method's candidates in a category. Four models are fitted
by statsmodels: none, method, category, both, each on cells added up as far as it tells them apart.
Its deviance is measured from the model that gives each of these its own probability; with that
model's own deviance from the single candidates added, shares are those of a model with one row per
candidate. The cells' own probabilities are the model with the interaction.

Where nobody, or everybody, is correct throughout a category or a method, its coefficient has no
finite estimate. The deviance has a limit all the same, and that is what is given; degrees of
freedom count such a coefficient like any other.

statsmodels takes a second and 100 MB to import: that happens when a model is first fitted in a
process, not when the site starts. Fits are kept by what they were fitted to.
"""

import math
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

KEPT = 64  # fits of a few milliseconds each, a few KB
SMALL_CELL = 5  # candidates; below it a likelihood ratio follows its distribution only roughly
NONE, METHOD, CATEGORY, BOTH, CELLS = "none", "method", "category", "both", "interaction"


@dataclass(frozen=True, slots=True)
class Tally:
    """A method's candidates in a category: `successes` of `trials`."""

    category: str
    method: str
    successes: int
    trials: int


@dataclass(frozen=True, slots=True)
class Model:
    """A fit. `df`: parameters beyond the mean. `explained` and `chance` are shares of the null
    deviance; `chance` is what as many parameters without any meaning explain on average.
    """

    name: str
    df: int
    deviance: float
    explained: float
    chance: float
    bic: float

    @property
    def per_df(self) -> float:
        return self.explained / self.df if self.df else 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """What a factor adds to a smaller model: the likelihood ratio with its degrees of freedom."""

    added: str
    to: str
    ratio: float
    df: int
    p: float


@dataclass(frozen=True, slots=True)
class Attribution:
    """`models` from the smallest on; `edges` are factors whose candidates all ended alike."""

    trials: int
    successes: int
    categories: int
    methods: int
    cells: int
    small_cells: int
    null_deviance: float
    models: tuple[Model, ...]
    steps: tuple[Step, ...]
    edges: tuple[str, ...]
    missing: tuple[str, ...]

    def model(self, name: str) -> Model | None:
        return next((model for model in self.models if model.name == name), None)

    def step(self, added: str, to: str) -> Step | None:
        return next((step for step in self.steps if (step.added, step.to) == (added, to)), None)

    @property
    def method(self) -> Model | None:
        return self.model(METHOD)

    @property
    def category(self) -> Model | None:
        return self.model(CATEGORY)

    @property
    def both(self) -> Model | None:
        return self.model(BOTH)

    @property
    def interaction(self) -> Model | None:
        return self.model(CELLS)

    @property
    def preferred(self) -> Model:
        """By BIC: the least of deviance and a price per parameter."""
        return min(self.models, key=lambda model: model.bic)


@dataclass(frozen=True, slots=True)
class Absent:
    """Why there is no answer, as a sentence."""

    reason: str


@lru_cache(maxsize=KEPT)
def attribute(tallies: tuple[Tally, ...]) -> Attribution | Absent:
    cells = tuple(tally for tally in tallies if tally.trials)
    trials = sum(cell.trials for cell in cells)
    successes = sum(cell.successes for cell in cells)
    categories, methods = _levels(cells)
    if not trials:
        return Absent("No candidate has been judged in this selection.")
    if successes in (0, trials):
        alike = "none" if not successes else "each"
        return Absent(f"Of {trials} candidates {alike} succeeded: there is nothing to explain.")
    if len(categories) < 2 and len(methods) < 2:
        return Absent("There is one method and one category: neither can explain a difference.")
    return _attribution(cells, categories, methods)


def _attribution(
    cells: tuple[Tally, ...], categories: list[str], methods: list[str]
) -> Attribution | Absent:
    fits = _fits(cells, categories, methods)
    if fits is None:
        return Absent("The fit did not settle on these counts, so no figure of it is shown.")
    trials = sum(cell.trials for cell in cells)
    return Attribution(
        trials=trials,
        successes=sum(cell.successes for cell in cells),
        categories=len(categories),
        methods=len(methods),
        cells=len(cells),
        small_cells=sum(cell.trials < SMALL_CELL for cell in cells),
        null_deviance=fits[NONE][0],
        models=tuple(_model(name, fits, trials) for name in fits),
        steps=tuple(_steps(fits)),
        edges=(*_edges(cells, "category"), *_edges(cells, "method")),
        missing=tuple(_missing(categories, methods)),
    )


def _levels(cells: Iterable[Tally]) -> tuple[list[str], list[str]]:
    cells = tuple(cells)
    return sorted({cell.category for cell in cells}), sorted({cell.method for cell in cells})


Fits = dict[str, tuple[float, int]]  # by model: deviance of the candidates, parameters


def _fits(cells: Sequence[Tally], categories: list[str], methods: list[str]) -> Fits | None:
    """None where a fit didn't converge. Factors with one level have no model of their own."""
    rows: dict[str, tuple[Tally, ...]] = {NONE: _summed(cells, lambda cell: ("", ""))}
    if len(methods) > 1:
        rows[METHOD] = _summed(cells, lambda cell: ("", cell.method))
    if len(categories) > 1:
        rows[CATEGORY] = _summed(cells, lambda cell: (cell.category, ""))
    if len(rows) == 3:
        rows[BOTH] = tuple(cells)
    fits: Fits = {}
    for name, tallies in rows.items():
        fitted = _fit(tallies)
        if fitted is None:
            return None
        fits[name] = fitted
    if BOTH in fits and len(cells) > fits[BOTH][1]:
        fits[CELLS] = (_deviance_of_cells(cells), len(cells))
    return fits


def _summed(cells: Iterable[Tally], key: Callable[[Tally], tuple[str, str]]) -> tuple[Tally, ...]:
    """Cells added up by `key`, their (category, method) as far as a model tells them apart."""
    sums: dict[tuple[str, str], list[int]] = {}
    for cell in cells:
        entry = sums.setdefault(key(cell), [0, 0])
        entry[0] += cell.successes
        entry[1] += cell.trials
    return tuple(Tally(*levels, *entry) for levels, entry in sums.items())


def _fit(rows: tuple[Tally, ...]) -> tuple[float, int] | None:
    """(deviance of the candidates, parameters) of a binomial GLM with logit link on the rows'
    category and method, whose levels may be one. None where it didn't converge.

    What ended alike throughout a category or a method adds nothing to the deviance in the limit,
    so it is left out of the fit, which then has no infinite coefficient to run after.
    """
    GLM, Binomial, matrix_rank = _library()
    parameters = int(matrix_rank(_design(rows)))
    mixed = _mixed(rows)
    if not mixed:
        return 0.0, parameters
    outcomes = [[row.successes, row.trials - row.successes] for row in mixed]
    with warnings.catch_warnings():
        # Of separation, rank and residual degrees of freedom: small tables have all three, and
        # convergence and rank are looked at here.
        warnings.simplefilter("ignore")
        fitted = GLM(outcomes, _design(mixed), family=Binomial()).fit()
    if not fitted.converged:
        return None
    return _deviance_of_cells(mixed) + float(fitted.deviance), parameters


def _library() -> tuple[Any, Any, Any]:
    """What statsmodels and numpy do here, imported late: see the module's docstring."""
    # Read when BLAS is loaded: several threads take longer to find one another than one takes to
    # solve systems of this size, and other web processes want the cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from numpy.linalg import matrix_rank
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_linear_model import GLM

    return GLM, Binomial, matrix_rank


def _design(rows: Sequence[Tally]) -> list[list[float]]:
    """A column for each category, and for each method but the first."""
    categories, methods = _levels(rows)
    return [
        [float(row.category == name) for name in categories]
        + [float(row.method == name) for name in methods[1:]]
        for row in rows
    ]


def _mixed(rows: tuple[Tally, ...]) -> tuple[Tally, ...]:
    """Without categories and methods that ended alike, or do so once others are gone."""
    alike = {factor: set(_edges(rows, factor)) for factor in ("category", "method")}
    left = tuple(
        row
        for row in rows
        if row.category not in alike["category"] and row.method not in alike["method"]
    )
    return left if len(left) == len(rows) else _mixed(left)


def _deviance_of_cells(cells: Iterable[Tally]) -> float:
    """-2 log likelihood of the candidates where each cell has its own probability."""
    return -2 * math.fsum(
        count * math.log(count / cell.trials)
        for cell in cells
        for count in (cell.successes, cell.trials - cell.successes)
        if count
    )


def _model(name: str, fits: Fits, trials: int) -> Model:
    deviance, parameters = fits[name]
    null = fits[NONE][0]
    return Model(
        name=name,
        df=parameters - 1,
        deviance=deviance,
        explained=1 - deviance / null,
        chance=(parameters - 1) / null,
        bic=deviance + parameters * math.log(trials),
    )


STEPS = ((METHOD, NONE), (CATEGORY, NONE), (CATEGORY, METHOD), (METHOD, CATEGORY), (CELLS, BOTH))


def _steps(fits: Fits) -> Iterable[Step]:
    for added, to in STEPS:
        larger = added if to in (NONE, BOTH) else BOTH
        if larger in fits and to in fits:
            ratio = max(0.0, fits[to][0] - fits[larger][0])
            df = fits[larger][1] - fits[to][1]
            if df:
                yield Step(added, to, ratio, df, _tail(ratio, df))


def _tail(ratio: float, df: int) -> float:
    """Probability of a chi-squared value above `ratio`."""
    from scipy.special import chdtrc  # not at the top: comes with statsmodels, and as late

    return float(chdtrc(df, ratio))


def _edges(cells: Iterable[Tally], factor: str) -> list[str]:
    sums: dict[str, list[int]] = {}
    for cell in cells:
        entry = sums.setdefault(getattr(cell, factor), [0, 0])
        entry[0] += cell.successes
        entry[1] += cell.trials
    return sorted(name for name, (won, of) in sums.items() if won in (0, of))


def _missing(categories: Sequence[str], methods: Sequence[str]) -> Iterable[str]:
    if len(methods) < 2:
        yield "Only one method is judged here: what the choice of a method explains can't be asked."
    if len(categories) < 2:
        yield "Only one category is chosen: what the category explains can't be asked."
