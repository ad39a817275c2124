"""Checks: how an output is compared with the truth. Frozen dataclasses, so that they enter the
digest by value.

Every comparison is written as `not (error <= limit)`: NaN fails. Nothing here trusts the
candidate's tensors beyond their bytes; type, dtype, device and shape are compared first, exactly.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from benchmark import vocabulary
from benchmark.suite.spec import Arguments, Comparison, Trial, strict_precision
from benchmark.suite.trees import copied, leaves, tensors, upcast, widened

CHUNK = 1 << 22  # elements compared at a time: bounds the float64 temporaries at 32 MB each
HALVES = (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
FALSE_ALARM = 1e-9  # of a random operator's whole judgement: one honest candidate in a billion


class Check(Protocol):
    """Judges a trial and says its rule in one sentence."""

    def judge(self, trial: Trial) -> Comparison: ...

    def describe(self) -> str: ...


@dataclass(frozen=True)
class Leaf:
    """One expected value: its place, PyTorch's own (dtype and shape), the truth, and the magnitude
    or None.
    """

    place: str
    native: Any
    truth: Any
    magnitude: torch.Tensor | None = None


@dataclass(frozen=True)
class Sizes:
    """Magnitudes of the outputs, and of arguments that the call changes and does not return, by
    place ("argument[1]").
    """

    output: Any
    arguments: dict[str, torch.Tensor]


@dataclass(frozen=True)
class Finding:
    """How one leaf compares; `error` is the worst element's."""

    error: float
    reference_error: float
    limit: float
    detail: str
    finite: bool = True

    @property
    def passed(self) -> bool:
        return self.error <= self.limit


@dataclass(frozen=True)
class Close:
    """Element error against float64 truth, in roundings.

    One unit at element i is eps(dtype) |t_i| + eps(arithmetic) magnitude_i + the smallest normal
    number, where arithmetic is float32 for narrower dtypes and `magnitude(*args, **kwargs)`,
    computed in float64, is what the sum or difference behind the element is made of (sum |A||B|
    for a dot product): rounding errors scale with it, not with the result. The limit is `k` times
    PyTorch's own worst error in the same unit plus `floor`, at most `cap`, so that a reference
    that is itself bad can't open the gate. Half dtypes, computed in float32 and rounded once, get
    floor / 4 and cap / 16: bfloat16 inside a float16 kernel is off by four units and fails.
    `narrow_intermediates` counts the magnitude in eps(dtype): for chains whose PyTorch form rounds
    in between. `written(*args, **kwargs)` returns magnitudes of what the call writes into its
    arguments and doesn't return, by place: `{"argument[2]": ...}`.
    """

    k: float = 4.0
    floor: float = 4.0
    cap: float = 256.0
    magnitude: Callable[..., Any] | None = None
    narrow_intermediates: bool = False
    written: Callable[..., dict[str, torch.Tensor]] | None = None

    def judge(self, trial: Trial) -> Comparison:
        expected = expectations(trial, self.magnitude)
        if self.written is not None:
            wide = upcast(trial.arguments)
            with strict_precision():
                sizes = self.written(*wide.args, **wide.kwargs)
            for place, size in sizes.items():
                expected[place] = dataclasses.replace(expected[place], magnitude=size)
        return _verdict(expected, _answers(trial), self._finding, "roundings")

    def describe(self) -> str:
        base = "the result" if self.magnitude is None else "the result and of the terms behind it"
        return (
            f"Each element's error against float64 is at most {self.k:g} times PyTorch's own worst "
            f"error plus {self.floor:g} roundings of {base} (half dtypes: {self.floor / 4:g}); "
            "float32 means float32, TF32 does not pass. Integers are exact."
        )

    def _finding(self, leaf: Leaf, got: Any) -> Finding:
        if not floating(leaf.native):
            return _exact_finding(leaf, got)
        own = max((worst for worst, *_ in self.errors(leaf, leaf.native)), default=0.0)
        limit = self.limit(own, leaf.native.dtype)
        return _worst(leaf, got, own, limit, self.errors(leaf, got, limit))

    def limit(self, own: float, dtype: torch.dtype) -> float:
        """The tolerance in units, from PyTorch's own worst error."""
        half = dtype in HALVES
        floor, cap = (self.floor / 4, self.cap / 16) if half else (self.floor, self.cap)
        return min(self.k * own + floor, cap)

    def unit(self, truth: torch.Tensor, magnitude: torch.Tensor | None, dtype: torch.dtype) -> Any:
        """The size of one unit at each element, float64."""
        info = torch.finfo(dtype)
        smallest = info.smallest_normal
        unit = (
            truth.abs().mul_(info.eps).add_(smallest if smallest < 1e-30 else smallest * info.eps)
        )
        if magnitude is None:
            return unit
        narrow = self.narrow_intermediates or dtype not in HALVES
        inner = info.eps if narrow else torch.finfo(torch.float32).eps
        return unit.add_(magnitude.double(), alpha=inner)

    def errors(self, leaf: Leaf, got: torch.Tensor, limit: float = math.inf) -> Iterator[Any]:
        """Chunk by chunk: worst error, its flat index, elements above the limit, elements wrongly
        non-finite.
        """
        dtype = leaf.native.dtype
        truth, got = leaf.truth.reshape(-1), got.reshape(-1)
        magnitude = None
        if leaf.magnitude is not None:
            magnitude = leaf.magnitude.broadcast_to(leaf.truth.shape).reshape(-1)
        for start in range(0, truth.numel(), CHUNK):
            part = slice(start, start + CHUNK)
            t, a = truth[part], got[part].to(widened(dtype))
            u = self.unit(t, None if magnitude is None else magnitude[part], dtype)
            yield _chunk_errors(t, a, u, dtype, limit, start)


@dataclass(frozen=True)
class _Added:
    """A magnitude and, `weight` times, what is `rounded` before the end: in the same unit."""

    magnitude: Callable[..., Any]
    rounded: Callable[..., torch.Tensor]
    weight: float

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.magnitude(*args, **kwargs) + self.weight * self.rounded(*args, **kwargs)


@dataclass(frozen=True)
class RoundedBetween(Close):
    """`Close` for a convolution with a bias, and for what follows it.

    On a GPU PyTorch rounds a convolution to float16 before it adds the bias: where the two cancel,
    eps(float16) of the convolution is left, which is not of the size of the result. In half dtypes
    one unit holds eps(dtype) `rounded(*args, **kwargs)` too: the size, in float64, of what is
    rounded in between, times the slope of what follows. Arithmetic in a narrower dtype fails still:
    what it leaves is eps(narrower) of the sum |x||w|. In float32 the magnitude holds it already.
    """

    rounded: Callable[..., torch.Tensor] | None = None

    def judge(self, trial: Trial) -> Comparison:
        return self.of(getattr(torch, trial.case.dtype)).judge(trial)

    def of(self, dtype: torch.dtype) -> Close:
        """The check for inputs of this dtype."""
        magnitude = self.magnitude
        if dtype in HALVES:
            assert magnitude is not None
            assert self.rounded is not None
            # Close counts magnitudes in eps(float32)
            weight = torch.finfo(dtype).eps / torch.finfo(torch.float32).eps
            magnitude = _Added(magnitude, self.rounded, weight)
        return Close(self.k, self.floor, self.cap, magnitude)

    def describe(self) -> str:
        return super().describe() + (
            " In half dtypes the convolution may be rounded once more, before the bias is added."
        )


@dataclass(frozen=True)
class Exact:
    """Every element equals the truth rounded to the output's dtype; NaN and infinities where the
    truth has them.
    """

    def judge(self, trial: Trial) -> Comparison:
        return _verdict(expectations(trial), _answers(trial), _exact_finding, "elements off")

    def describe(self) -> str:
        return "Every element equals the exact answer, rounded to the output's dtype."


@dataclass(frozen=True)
class Attains(Close):
    """Values and the indices where they are found, of a score that rounding can tie: any index
    will do whose score in float64 is the value, within the value's own tolerance.

    `scores(*args, **kwargs)` is called on float64 copies and has the reduced dimension last.
    """

    scores: Callable[..., torch.Tensor] | None = None

    def judge(self, trial: Trial) -> Comparison:
        assert self.scores is not None
        expected = expectations(trial, self.magnitude)
        wide = upcast(trial.arguments)
        value = next(leaf for leaf in expected.values() if floating(leaf.native))
        finding = _Attained(self, value, self.scores(*wide.args, **wide.kwargs))
        return _verdict(expected, _answers(trial), finding, "roundings")

    def describe(self) -> str:
        return super().describe().removesuffix(" Integers are exact.") + (
            " Any index is right at which the value is attained within its tolerance."
        )


@dataclass(frozen=True)
class _Attained:
    """Judges values as `close` does, and the indices of a pair by the scores there."""

    close: Close
    value: Leaf
    scores: torch.Tensor

    def __call__(self, leaf: Leaf, got: Any) -> Finding:
        if floating(leaf.native):
            return self.close._finding(leaf, got)
        size = self.scores.shape[-1]
        if bool(((got < 0) | (got >= size)).any()):
            return Finding(math.inf, 0.0, 0.0, f"an index outside [0, {size})")
        rows = self.scores.reshape(-1, size)
        attained = rows.gather(1, got.reshape(-1, 1)).reshape(self.value.truth.shape)
        return self.close._finding(self.value, attained)


@dataclass(frozen=True)
class Residual:
    """A claim about the outputs: `got` should equal `wanted`, batch by batch, with errors of the
    size of `scale`.

    Tensors are (..., m, n) in float64. `scale` None: the largest |wanted| of each matrix. `exact`:
    no rounding allowed (zeros of a triangle).
    """

    name: str
    got: torch.Tensor
    wanted: torch.Tensor
    scale: torch.Tensor | None = None
    exact: bool = False


@dataclass(frozen=True)
class Rebuilds:
    """Factorizations: not unique, so judged by what they rebuild and by their structure.

    `residuals(arguments, outputs)` gets both in float64 and returns the claims. One unit is
    eps(dtype) x the largest entry of the matrix that should come out; the limit is `k` times
    PyTorch's own worst plus `floor`.
    """

    residuals: Callable[[Arguments, Any], tuple[Residual, ...]]
    k: float = 8.0
    floor: float = 16.0
    cap: float = 1024.0

    def judge(self, trial: Trial) -> Comparison:
        native = _native(trial)[1]
        answers = _answers(trial)
        wrong = _wrong_form(dict(_named(native)), answers)
        if wrong:
            return wrong
        wide = upcast(trial.arguments)
        eps = max(torch.finfo(t.dtype).eps for t in tensors(native) if floating(t))
        own = max(_residual_error(r, eps) for r in self.residuals(wide, upcast(native)))
        limit = min(self.k * own + self.floor, self.cap)
        found = [(_residual_error(r, eps), r) for r in self._all_residuals(trial, wide)]
        error, worst = max(found, key=lambda pair: math.inf if math.isnan(pair[0]) else pair[0])
        if error <= limit:
            return Comparison(vocabulary.PASSED, error, own, limit, "roundings of the matrix")
        finite = all(bool(torch.isfinite(t).all()) for t in tensors(answers) if floating(t))
        verdict = vocabulary.WRONG_VALUES if finite else vocabulary.NON_FINITE
        detail = f"{worst.name}: off by {error:.3g} roundings of the matrix, allowed {limit:.3g}"
        shown = error if math.isfinite(error) else None
        return Comparison(verdict, shown, own, limit, "roundings of the matrix", detail)

    def _all_residuals(self, trial: Trial, wide: Arguments) -> Iterator[Residual]:
        for output in trial.outputs:
            yield from self.residuals(wide, upcast(output))
        if trial.task.may_mutate(trial.case) and trial.mutated is not None:
            out = trial.mutated.kwargs.get("out")
            if out is not None:
                yield from self.residuals(wide, upcast(out))

    def describe(self) -> str:
        return (
            "The factors must have their structure and rebuild the matrix, with an error of at "
            f"most {self.k:g} times PyTorch's own plus {self.floor:g} roundings of its "
            "largest entry."
        )


class Law(Protocol):
    """A distribution on the real line: `cdf(x)` elementwise in float64, support [low, high], mean,
    deviation.
    """

    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def open_above(self) -> bool: ...
    @property
    def mean(self) -> float: ...
    @property
    def deviation(self) -> float: ...

    def cdf(self, x: torch.Tensor) -> torch.Tensor: ...


@dataclass(frozen=True)
class Uniform:
    """Uniform on [low, high)."""

    low: float = 0.0
    high: float = 1.0
    open_above: bool = True

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2

    @property
    def deviation(self) -> float:
        return (self.high - self.low) / math.sqrt(12)

    def cdf(self, x: torch.Tensor) -> torch.Tensor:
        return ((x - self.low) / (self.high - self.low)).clamp(0, 1)


@dataclass(frozen=True)
class Normal:
    """Normal with this mean and deviation."""

    mean: float = 0.0
    deviation: float = 1.0
    low: float = -math.inf
    high: float = math.inf
    open_above: bool = False

    def cdf(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.ndtr((x - self.mean) / self.deviation)


@dataclass(frozen=True)
class SameDistribution:
    """Random outputs: exact form and range, then mean, distribution (Kolmogorov-Smirnov) and
    independence.

    The draws of a trial are pooled. Each of the tests fails an honest candidate with probability
    `alpha` / tests. For float dtypes with coarse values the distribution test allows one
    eps(dtype).
    """

    law: Law
    alpha: float = FALSE_ALARM

    def judge(self, trial: Trial) -> Comparison:
        native = _native(trial)[1]
        wrong = _wrong_form(dict(_named(native)), _answers(trial))
        if wrong:
            return wrong
        draws = [torch.cat([t.reshape(-1) for t in tensors(output)]) for output in trial.outputs]
        eps = torch.finfo(draws[0].dtype).eps
        wide = self.numbers(trial, draws)
        outside = sum(int(self._outside(draw)) for draw in wide)
        if outside:
            finite = all(bool(torch.isfinite(draw).all()) for draw in wide)
            verdict = vocabulary.WRONG_VALUES if finite else vocabulary.NON_FINITE
            return Comparison(verdict, detail=f"{outside} values outside {self._range()}")
        return self._statistics(wide, eps)

    def numbers(self, trial: Trial, draws: list[torch.Tensor]) -> list[torch.Tensor]:
        """What ought to follow the law: the outputs, flat, in float64. Operators whose law differs
        from element to element bring it to a common one here.
        """
        return [draw.double() for draw in draws]

    def describe(self) -> str:
        return (
            f"Shape, dtype and range {self._range()} are exact; mean, extremes, distribution "
            "(Kolmogorov-Smirnov) and the independence of neighbours and calls are tested so that "
            f"chance fails one honest kernel in {1 / self.alpha:,.0f}."
        )

    def _range(self) -> str:
        return f"[{self.law.low:g}, {self.law.high:g}{')' if self.law.open_above else ']'}"

    def _outside(self, draw: torch.Tensor) -> torch.Tensor:
        below_top = draw < self.law.high if self.law.open_above else draw <= self.law.high
        return (~((draw >= self.law.low) & below_top)).sum()

    def _statistics(self, draws: list[torch.Tensor], eps: float) -> Comparison:
        """The worst of all tests, each as a fraction of its critical value."""
        tests = dict(self._tests(draws, eps))
        name, worst = max(tests.items(), key=lambda item: item[1])
        unit = "of the critical value"
        if worst <= 1:
            return Comparison(vocabulary.PASSED, worst, None, 1.0, unit)
        detail = f"{name} is {worst:.3g} times its critical value (false alarm {self.alpha:g})"
        return Comparison(vocabulary.WRONG_VALUES, worst, None, 1.0, unit, detail)

    def _tests(self, draws: list[torch.Tensor], eps: float) -> Iterator[tuple[str, float]]:
        share = self.alpha / (6 + len(draws))
        z = float(-torch.special.ndtri(torch.tensor(share / 2, dtype=torch.float64)))
        pooled = torch.cat(draws)
        n = pooled.numel()
        yield (
            "distribution",
            self._kolmogorov(pooled) / (math.sqrt(math.log(2 / share) / 2 / n) + eps),
        )
        standard = [(draw - self.law.mean) / self.law.deviation for draw in draws]
        cdf = self.law.cdf(torch.stack((pooled.min(), pooled.max()))).tolist()
        yield "smallest value", _extreme(1 - cdf[0] + eps, n, share)
        yield "largest value", _extreme(cdf[1] + eps, n, share)
        mean = float(torch.cat(standard).mean().abs())
        yield "mean", mean / (z / math.sqrt(n) + eps)
        for first, second in itertools.pairwise(standard):
            yield "correlation between calls", _correlation(first, second, z)
        yield "correlation of neighbours", _correlation(standard[0][1:], standard[0][:-1], z)

    def _kolmogorov(self, pooled: torch.Tensor) -> float:
        values, n = pooled.sort().values, pooled.numel()
        cdf = self.law.cdf(values)
        steps = torch.arange(n + 1, dtype=torch.float64, device=values.device) / n
        return float(torch.maximum((cdf - steps[:-1]).max(), (steps[1:] - cdf).max()))


@dataclass(frozen=True)
class Mixture:
    """Random operators that choose elementwise between a few answers, dropout above all.

    `branches(*args, **kwargs)`, run on float64 copies, returns pairs (probability, truth): each
    output element must be one of the truths, within `close`, each as often as its probability
    says, by chance independent of the place and of the call. Elements at which the branches agree
    count for no branch.
    """

    branches: Callable[..., tuple[tuple[float, torch.Tensor], ...]]
    close: Close = Close()
    alpha: float = FALSE_ALARM

    def judge(self, trial: Trial) -> Comparison:
        native = _native(trial)[1]
        wrong = _wrong_form(dict(_named(native)), _answers(trial))
        if wrong:
            return wrong
        with strict_precision():
            wide = upcast(trial.arguments)
            branches = self.branches(*wide.args, **wide.kwargs)
            size = self.close.magnitude
            magnitude = None if size is None else size(*wide.args, **wide.kwargs)
        return self._judge(branches, magnitude, trial.outputs, native.dtype)

    def describe(self) -> str:
        return (
            "Each element must be one of the answers that chance may choose, as often as its "
            f"probability says, independently of place and call (false alarm {self.alpha:g}); "
            + self.close.describe()
        )

    def _judge(
        self, branches: Any, magnitude: Any, outputs: list[torch.Tensor], dtype: torch.dtype
    ) -> Comparison:
        limit = self.close.limit(
            1.0, dtype
        )  # PyTorch's own draw is another: one rounding stands for it
        units = [self.close.unit(truth, magnitude, dtype) for _, truth in branches]
        reach = limit * torch.stack(units).amax(0)
        hits = [[(o.double() - t).abs() <= reach for _, t in branches] for o in outputs]
        for index, per_branch in enumerate(hits):
            missed = ~torch.stack(per_branch).any(0)
            if bool(missed.any()):
                return self._missed(outputs[index], missed, index)
        return self._rates(branches, hits)

    def _missed(self, output: torch.Tensor, missed: torch.Tensor, draw: int) -> Comparison:
        finite = bool(torch.isfinite(output[missed]).all())
        verdict = vocabulary.WRONG_VALUES if finite else vocabulary.NON_FINITE
        flat = int(missed.reshape(-1).int().argmax())
        place = _place(flat, missed.shape)
        got = output.reshape(-1)[flat].item()
        detail = (
            f"draw {draw}: {int(missed.sum())} of {missed.numel()} elements are none of the "
            f"possible answers, first at {place}: got {got:.6g}"
        )
        return Comparison(verdict, unit="roundings", detail=detail)

    def _rates(self, branches: Any, hits: list[list[torch.Tensor]]) -> Comparison:
        z = float(-torch.special.ndtri(torch.tensor(self.alpha / 8, dtype=torch.float64)))
        probability = branches[0][0]
        spread = math.sqrt(probability * (1 - probability)) or 1.0
        clear = [torch.stack(per_branch).sum(0) == 1 for per_branch in hits]
        chosen = [(h[0].double() - probability) / spread for h in hits]
        pooled = torch.cat([c[m] for c, m in zip(chosen, clear, strict=True)])
        scores = {"share of the branches": _score(pooled, z)}
        for (a, am), (b, bm) in itertools.pairwise(zip(chosen, clear, strict=True)):
            score = _score((a * b)[am & bm], z)
            scores["correlation between calls"] = max(
                score, scores.get("correlation between calls", 0.0)
            )
        first = chosen[0][clear[0]]
        scores["correlation of neighbours"] = _score(first[1:] * first[:-1], z)
        name, worst = max(scores.items(), key=lambda item: item[1])
        if not 0 < probability < 1 or worst <= 1:
            return Comparison(vocabulary.PASSED, worst, None, 1.0, "of the critical value")
        detail = f"{name} is {worst:.3g} times its critical value (false alarm {self.alpha:g})"
        return Comparison(
            vocabulary.WRONG_VALUES, worst, None, 1.0, "of the critical value", detail
        )


def _extreme(reached: float, n: int, share: float) -> float:
    """-log P(no value of n beyond this quantile) over -log(share): above 1 the tail is missing."""
    return max(0.0, n * -math.log(min(reached, 1.0)) / -math.log(share))


def _score(standard: torch.Tensor, z: float) -> float:
    """|mean| of standardized values over its critical value; the 3/n term covers the skew of small
    samples.
    """
    n = standard.numel()
    if n < 16:
        return 0.0
    return float(standard.mean().abs()) / (z / math.sqrt(n) + 3 * z / n)


def _correlation(first: torch.Tensor, second: torch.Tensor, z: float) -> float:
    """|correlation| of two standardized samples as a fraction of its critical value; 0 below 16
    pairs.
    """
    return _score(first * second, z)


def _native(trial: Trial) -> tuple[Arguments, Any]:
    """PyTorch's own answer in the case's dtype, and the arguments after it."""
    arguments = copied(trial.arguments)
    return arguments, trial.task.reference(arguments)


def expectations(trial: Trial, magnitude: Callable[..., Any] | None = None) -> dict[str, Leaf]:
    """What each place must hold: the outputs and, where the call writes in place, the arguments
    after it.
    """
    native_arguments, native = _native(trial)
    wide = upcast(trial.arguments)
    truth = trial.task.truth(wide)
    sizes: dict[str, Any] = {}
    if magnitude is not None:
        again = upcast(trial.arguments)
        with strict_precision():
            size = magnitude(*again.args, **again.kwargs)
        changed = size.arguments if isinstance(size, Sizes) else {}
        sizes = dict(_named(size.output if isinstance(size, Sizes) else size)) | changed
        del again
    truths = dict(_named(truth))
    expected = {
        place: Leaf(place, leaf, truths[place], sizes.get(place)) for place, leaf in _named(native)
    }
    if not trial.task.may_mutate(trial.case):
        return expected
    sizes_by_truth = {id(leaf.truth): leaf.magnitude for leaf in expected.values()}
    truths = dict(leaves(wide, "argument"))
    for place, leaf in leaves(native_arguments, "argument"):
        if isinstance(leaf, torch.Tensor) and place not in trial.task.free_places:
            size = sizes_by_truth.get(id(truths[place]), sizes.get(place))
            expected[place] = Leaf(place, leaf, truths[place], size)
    return expected


def _named(output: Any) -> Iterator[tuple[str, Any]]:
    yield from leaves(output, "output")


def _answers(trial: Trial) -> dict[str, Any]:
    """The candidate's values by place: several draws must all be right, so later ones get their
    own prefix.
    """
    found: dict[str, Any] = {}
    for draw, output in enumerate(trial.outputs):
        prefix = f"draw {draw} " if draw else ""
        found |= {prefix + place: leaf for place, leaf in _named(output)}
    if trial.mutated is not None and trial.task.may_mutate(trial.case):
        free = trial.task.free_places
        found |= {
            place: leaf
            for place, leaf in leaves(trial.mutated, "argument")
            if isinstance(leaf, torch.Tensor) and place not in free
        }
    return found


def _bare(place: str) -> str:
    """The place without its draw: all draws answer to the same expectation."""
    return place.split(" ", 2)[2] if place.startswith("draw ") else place


def _wrong_form(expected: dict[str, Any], answers: dict[str, Any]) -> Comparison | None:
    """The first difference in structure, type, device, dtype or shape; None when there is none."""
    outputs = {bare for bare in map(_bare, answers) if bare.startswith("output")}
    wanted = {place for place in expected if place.startswith("output")}
    if outputs != wanted:
        detail = f"returned {_counted(outputs)}, expected {_counted(wanted)}"
        return Comparison(vocabulary.WRONG_SHAPE, detail=detail)
    for place, got in answers.items():
        if _bare(place) not in expected:
            continue
        problem = _form_problem(place, expected[_bare(place)], got)
        if problem:
            return problem
    return None


def _counted(places: set[str]) -> str:
    return ", ".join(sorted(places)) or "nothing"


def _form_problem(place: str, wanted: Any, got: Any) -> Comparison | None:
    if not isinstance(wanted, torch.Tensor):
        if type(got) is type(wanted):
            return None
        detail = f"{place}: a {type(got).__name__}, expected a {type(wanted).__name__}"
        return Comparison(vocabulary.WRONG_DTYPE, detail=detail)
    if type(got) is not torch.Tensor:
        detail = f"{place}: a {type(got).__name__}, expected a torch.Tensor"
        return Comparison(vocabulary.WRONG_DTYPE, detail=detail)
    if got.layout != torch.strided or got.device.type != wanted.device.type:
        detail = f"{place}: {got.layout} on {got.device.type}, expected {wanted.device.type}"
        return Comparison(vocabulary.WRONG_DTYPE, detail=detail)
    if got.dtype != wanted.dtype:
        detail = f"{place}: {_word(got.dtype)}, expected {_word(wanted.dtype)}"
        return Comparison(vocabulary.WRONG_DTYPE, detail=detail)
    if got.shape != wanted.shape:
        detail = f"{place}: shape {list(got.shape)}, expected {list(wanted.shape)}"
        return Comparison(vocabulary.WRONG_SHAPE, detail=detail)
    return None


def _word(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _verdict(
    expected: dict[str, Leaf],
    answers: dict[str, Any],
    find: Callable[[Leaf, Any], Finding],
    unit: str,
) -> Comparison:
    wrong = _wrong_form({place: leaf.native for place, leaf in expected.items()}, answers)
    if wrong:
        return wrong
    found = {place: find(expected[_bare(place)], got) for place, got in answers.items()}
    place = max(found, key=lambda name: _share(found[name]))
    worst = found[place]
    shown = worst.error if math.isfinite(worst.error) else None
    own = worst.reference_error if math.isfinite(worst.reference_error) else None
    if worst.passed:
        return Comparison(vocabulary.PASSED, shown, own, worst.limit, unit)
    verdict = vocabulary.WRONG_VALUES if worst.finite else vocabulary.NON_FINITE
    return Comparison(verdict, shown, own, worst.limit, unit, f"{place}: {worst.detail}")


def _share(finding: Finding) -> float:
    """Its error as a share of its limit: above 1 it fails, NaN and a missed exactness are
    infinite.
    """
    if finding.passed:
        return finding.error / finding.limit if finding.limit else 0.0
    return finding.error / finding.limit if finding.limit and finding.error > 0 else math.inf


def floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _rounded(truth: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The truth as the output's dtype would hold it, back in float64: says where it overflows."""
    return truth.to(dtype).to(widened(dtype))


def _chunk_errors(
    t: torch.Tensor, a: torch.Tensor, u: torch.Tensor, dtype: torch.dtype, limit: float, start: int
) -> tuple[float, int, int, int]:
    rounded = _rounded(t, dtype)
    finite = torch.isfinite(rounded)
    errors = (a - t).abs().div_(u)
    same = (a == rounded) | (torch.isnan(a) & torch.isnan(rounded))
    errors = torch.where(finite, errors, torch.where(same, 0.0, math.inf))
    errors = errors.nan_to_num(nan=math.inf, posinf=math.inf)
    worst = int(errors.argmax())
    bad = int((~(errors <= limit)).sum())
    wild = int((finite & ~torch.isfinite(a)).sum())
    return float(errors[worst]), start + worst, bad, wild


def _worst(leaf: Leaf, got: Any, own: float, limit: float, chunks: Iterator[Any]) -> Finding:
    """Gather the chunks; the detail names the worst element."""
    error, index, bad, wild = 0.0, 0, 0, 0
    for chunk_error, chunk_index, chunk_bad, chunk_wild in chunks:
        if chunk_error > error:
            error, index = chunk_error, chunk_index
        bad, wild = bad + chunk_bad, wild + chunk_wild
    if error <= limit:
        return Finding(error, own, limit, "")
    value, truth = got.reshape(-1)[index].item(), leaf.truth.reshape(-1)[index].item()
    detail = (
        f"{bad} of {leaf.truth.numel()} elements off; worst at {_place(index, leaf.truth.shape)}: "
        f"got {value:.8g}, expected {truth:.8g}: {error:.3g} roundings, allowed {limit:.3g}"
    )
    return Finding(error, own, limit, detail, finite=wild == 0)


def _place(flat: int, shape: torch.Size) -> list[int]:
    place = []
    for size in reversed(shape):
        place.append(flat % size)
        flat //= size
    return place[::-1]


def _exact_finding(leaf: Leaf, got: Any) -> Finding:
    """Equality with the truth in the output's dtype; the error is the number of elements off."""
    if not isinstance(leaf.native, torch.Tensor):
        off = 0.0 if _same_scalar(got, leaf) else 1.0
        return Finding(off, 0.0, 0.0, f"got {got!r}, expected {leaf.native!r}")
    off, index, wild = 0, -1, 0
    for start in range(0, leaf.truth.numel(), CHUNK):
        part = slice(start, start + CHUNK)
        wrong, missing = _exact_chunk(leaf, got, part)
        if index < 0 and bool(wrong.any()):
            index = start + int(wrong.int().argmax())
        off, wild = off + int(wrong.sum()), wild + missing
    if not off:
        return Finding(0.0, 0.0, 0.0, "")
    value, truth = got.reshape(-1)[index].item(), leaf.truth.reshape(-1)[index].item()
    detail = (
        f"{off} of {leaf.truth.numel()} elements off; first at {_place(index, leaf.truth.shape)}: "
        f"got {value!r}, expected {truth!r}"
    )
    return Finding(float(off), 0.0, 0.0, detail, finite=wild == 0)


def _exact_chunk(leaf: Leaf, got: torch.Tensor, part: slice) -> tuple[torch.Tensor, int]:
    """Which elements of the part differ, and how many are non-finite where the truth is finite."""
    wanted = leaf.truth.reshape(-1)[part].to(leaf.native.dtype)
    given = got.reshape(-1)[part]
    if not floating(given):
        return wanted != given, 0
    both_nan = torch.isnan(wanted) & torch.isnan(given)
    missing = int((torch.isfinite(wanted) & ~torch.isfinite(given)).sum())
    return ~((wanted == given) | both_nan), missing


def _same_scalar(got: Any, leaf: Leaf) -> bool:
    if isinstance(leaf.native, float):
        return math.isclose(
            got, leaf.truth, rel_tol=1e-6
        )  # a float32 value read out as Python float
    return bool(got == leaf.native)


def _residual_error(residual: Residual, eps: float) -> float:
    """The worst entry's error in units of eps x scale; infinite where not finite or not exact as
    asked.
    """
    if residual.got.numel() == 0:
        return 0.0
    gap = (residual.got - residual.wanted).abs()
    if residual.exact:
        return 0.0 if bool((gap == 0).all()) else math.inf
    scale = residual.scale
    if scale is None:
        scale = residual.wanted.abs().amax((-2, -1), keepdim=True)
    worst = float((gap / (eps * scale + torch.finfo(torch.float64).tiny)).max())
    return math.inf if math.isnan(worst) else worst
