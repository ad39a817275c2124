"""Random numbers whose law differs from element to element."""

from dataclasses import dataclass

import torch

from benchmark.suite.checks import SameDistribution, Uniform
from benchmark.suite.cost import per_element
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments, Case, Trial

mathematics = category("Math")
BELOW_ONE = 1 - 2.0**-53


@dataclass(frozen=True)
class BinomialCounts(SameDistribution):
    """Counts of successes, each element with its own number of trials and chance.

    A count k becomes P(X < k) + v P(X = k), v a number of ours uniform on [0, 1): uniform on [0, 1)
    where, and only where, the counts follow their laws.
    """

    def numbers(self, trial: Trial, draws: list[torch.Tensor]) -> list[torch.Tensor]:
        """The counts as such quantiles; 2, which the law excludes, where no such count exists."""
        trials, chance = counts_and_chances(*trial.arguments.args, **trial.arguments.kwargs)
        trials, chance = (t.double().reshape(-1) for t in (trials, chance))
        source = torch.Generator(chance.device).manual_seed(len(draws))
        return [_quantiles(draw.double(), trials, chance, source) for draw in draws]

    def describe(self) -> str:
        return (
            "Shape and dtype are exact, counts are whole numbers from 0 to total_count; turned "
            "into quantiles by their own laws, their mean, extremes, distribution "
            "(Kolmogorov-Smirnov) and independence of neighbours and calls are tested so that "
            f"chance fails one honest kernel in {1 / self.alpha:,.0f}."
        )

    def _range(self) -> str:
        return "the counts from 0 to total_count"


def _quantiles(
    counts: torch.Tensor, trials: torch.Tensor, chance: torch.Tensor, source: torch.Generator
) -> torch.Tensor:
    """P(X < k) + v P(X = k) for each count k."""
    below, here = torch.zeros_like(chance), torch.zeros_like(chance)
    mass, odds = (1 - chance) ** trials, chance / (1 - chance)
    for k in range(int(trials.max()) + 1):
        below = torch.where(counts > k, below + mass, below)
        here = torch.where(counts == k, mass, here)
        mass = mass * (trials - k).clamp(min=0) / (k + 1) * odds
    v = torch.rand(chance.shape, generator=source, dtype=torch.float64, device=chance.device)
    return torch.where(here > 0, (below + v * here).clamp(max=BELOW_ONE), 2.0)


def counts_and_chances(input, other, total_count, probs=None, logits=None):
    """The number of trials and the chance of each element, of one shape."""
    chance = torch.sigmoid(logits) if probs is None else probs
    return torch.broadcast_tensors(total_count.to(chance.dtype), chance)


def trials_and_chances(make: Maker) -> Arguments:
    """Two int32 tensors, `trials` trials for all or (`each`) up to that many, and probabilities
    from 0.05 to 0.95 or (`logits`) their logits.
    """
    shape, options = make.case.shape, make.case.options
    bits = [make.tensor(*shape, dtype=torch.int32) for _ in range(2)]
    most = options["trials"]
    each = make.randint(1, most + 1, *shape).to(make.dtype)
    count = each if options.get("each") else torch.full((), float(most), device=make.device)
    chance = make.unit(*shape).mul_(0.9).add_(0.05)
    chances = {"logits": torch.logit(chance)} if options.get("logits") else {"probs": chance}
    return Arguments((*bits, count), chances)


def sampled_bytes(case: Case) -> float:
    """Chances are read and counts written, 4 bytes each; numbers of trials where they differ."""
    return per_element(12 if case.options.get("each") else 8)(case)


@mathematics(
    "bitwise_and_binomial",
    inputs=trials_and_chances,
    cases=(
        with_options(small("one", "unit", n=1), trials=5),
        with_options(small("odd", "unit", rows=37, columns=53), trials=10),
        with_options(small("logits", "unit", n=4099), trials=4, logits=True),
        with_options(small("each", "unit", rows=64, columns=96), trials=8, each=True),
        with_options(small("tiles", "unit", rows=64, columns=64), trials=1),
        with_options(
            small("transposed", "unit", layout="transposed", rows=33, columns=96),
            trials=7,
            each=True,
            logits=True,
        ),
        with_options(timed("large", "unit", rows=4096, columns=8192), trials=10),
        with_options(timed("logits", "unit", rows=4096, columns=8192), trials=4, logits=True),
        with_options(timed("each", "unit", rows=4099, columns=8191), trials=8, each=True),
    ),
    check=BinomialCounts(Uniform()),
    flops=per_element(10),
    bytes=sampled_bytes,
    draws=3,
    differences=(
        "the conjunction of `input` and `other` reaches no output, as published, so it needn't be "
        "computed",
        "judged by law: the published test compared the counts with those of torch's own stream of "
        "random numbers, which no kernel reproduces",
    ),
)
def bitwise_and_binomial(
    input: torch.Tensor,
    other: torch.Tensor,
    total_count: torch.Tensor,
    probs=None,
    logits=None,
):
    """Random counts, binomially distributed: how many of `total_count` trials succeed, each with
    the chance `probs`, or sigmoid(`logits`). Output: the shape that `total_count` (0-dimensional,
    or one number an element) and the chances broadcast to, in the dtype of the chances; each call
    draws new ones. `input` and `other`, int32, have no influence.
    """
    chance = torch.sigmoid(logits) if probs is None else probs
    count, chance = torch.broadcast_tensors(total_count.to(chance.dtype), chance)
    return torch.binomial(count, chance)
