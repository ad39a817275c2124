"""What a comparison says, in sentences: which differences can be told, and which can't."""

import math
from dataclasses import dataclass

from benchmark import vocabulary
from leaderboard.comparison import Comparison, Speed
from leaderboard.figures import Interval, figure
from leaderboard.statistics.paired import LEVEL

WIDTH = f"{100 * vocabulary.NEUTRAL_BAND:g} %"
BAND = 1 + vocabulary.NEUTRAL_BAND


@dataclass(frozen=True, slots=True)
class Lead:
    """Who is ahead in the mean, and by how much; `ratio` is above 1."""

    ahead: str
    behind: str
    ratio: Interval


def p_text(p: float) -> str:
    """Two significant digits; what is smaller than 0.001 says only that."""
    return "p < 0.001" if p < 0.001 else f"p = {p:#.2g}"


def correctness(c: Comparison) -> str:
    """Who solves more, on the tasks that were judged for both."""
    if not c.shared:
        return "No task was judged for both, so they can't be compared."
    if c.shared == c.tasks:
        lead, of = "", f" of {_tasks(c.tasks)}"
    else:
        lead, of = f"On the {c.shared} of {_tasks(c.tasks)} judged for both, ", ""
    first, second = c.solved_of_shared
    if first == second:
        return lead + _equal(c, of)
    more, fewer = c.first.name, c.second.name
    if first < second:
        more, fewer = fewer, more
    lead += f"{more} solves {abs(first - second)} more{of} than {fewer}"
    counts = f"{max(first, second)} against {min(first, second)}"
    test = f"McNemar {p_text(c.mcnemar.p)}"
    if c.mcnemar.is_told:
        return f"{lead} ({counts}; {test})."
    return f"{lead} ({counts}), too little to tell them apart ({test})."


def speed(c: Comparison) -> str:
    """Who is faster, on the tasks that both solved and that were timed."""
    if not c.choice.gpu.can_time:
        return f"Speed is not compared: {c.choice.gpu.name} judges correctness only."
    ratio = c.speed.ratio
    if ratio is None:
        return "No task was solved and timed for both, so nothing can be said about speed."
    ahead, behind = c.first.name, c.second.name
    if ratio.value < 1:
        ahead, behind = behind, ahead
        ratio = Interval(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)
    if c.speed.is_few:
        return (
            f"Both solve only {_tasks(c.speed.pairs)} that were timed, too few to tell who is "
            f"faster: {ahead} is {figure(ratio.value)}x as fast as {behind} there."
        )
    opening = f"On the {_tasks(c.speed.pairs)} that both solve and that were timed, "
    return opening + _faster(c.speed, Lead(ahead, behind, ratio))


def multiplicity(ranked: int) -> str:
    """What the p values of one pair don't say, on a board of `ranked` methods."""
    text = "Each p value is for this pair only."
    pairs = ranked * (ranked - 1) // 2
    if pairs < 2:
        return text
    return (
        f"{text} The board's {ranked} ranked methods make {pairs} pairs: who picks the most "
        f"different of them should ask for p < {_one_digit(LEVEL / pairs)} instead of {LEVEL} "
        "(Bonferroni)."
    )


def _equal(c: Comparison, of: str) -> str:
    solved, apart = c.solved_of_shared[0], c.mcnemar.only_first
    names = f"{c.first.name} and {c.second.name}"
    counted = f"{solved}{of}" if of else _tasks(solved)
    if not solved:
        return f"{names} solve none{of}."
    if not apart:
        return f"{names} solve the same {counted}."
    return (
        f"{names} both solve {counted} and can't be told apart by that: each solves {apart} that "
        "the other does not."
    )


def _faster(speed: Speed, lead: Lead) -> str:
    fast = f"{lead.ahead} is {lead.ratio.ratio} as fast as {lead.behind}"
    sign = _sign(speed, lead)
    if lead.ratio.low >= 1 / BAND and lead.ratio.high <= BAND:
        return f"they are equally fast to within {WIDTH}: {fast} ({sign})."
    if not speed.is_clear and not speed.sign.is_told:
        return f"they can't be told apart in speed: {fast} ({sign})."
    if not speed.agrees:
        return f"who is faster can't be told, as mean and tasks disagree: {fast}, but {sign}."
    if not (speed.is_clear and speed.sign.is_told):
        why = "only one of mean and tasks says so"
        return f"who is faster can't be told, as {why}: {fast} ({sign})."
    if lead.ratio.value <= BAND:
        return f"{fast}: steadily, but by less than the {WIDTH} from which one is faster ({sign})."
    return f"{fast} ({sign})."


def _sign(speed: Speed, lead: Lead) -> str:
    sign = speed.sign
    if not sign.decided:
        return f"no task differs by more than {WIDTH}"
    most = max(sign.ahead, sign.behind)
    who = "ahead" if speed.agrees else f"{lead.behind} is ahead"
    if sign.ahead == sign.behind:
        who = "each is ahead"
    return (
        f"{who} on {most} of the {sign.decided} tasks that differ by more than {WIDTH}, "
        f"sign test {p_text(sign.p)}"
    )


def _one_digit(p: float) -> str:
    """Without an exponent, however small."""
    return f"{p:.{-math.floor(math.log10(p))}f}"


def _tasks(count: int) -> str:
    return f"{count} task{_s(count)}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
