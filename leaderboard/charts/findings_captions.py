"""What stands below a chart of the findings: n, denominator, and how the numbers come about."""

from leaderboard.figures import figure
from leaderboard.findings.attribution import Absent
from leaderboard.selectors.findings import Findings, Roofline

TERA = 1e12


def explained(found: Findings) -> str:
    fit = found.correct
    if isinstance(fit, Absent):
        return fit.reason
    methods, categories = (
        _count(fit.methods, "method"),
        _count(fit.categories, "category", "categories"),
    )
    return (
        f"n = {fit.trials:,} judged candidates, one a method and task: {methods} in {categories}."
        " Share of the deviance from one rate for all that a logistic model takes away."
        + _left_out(found)
    )


def slower(found: Findings) -> str:
    return (
        f"n = {_count(found.pooled.timed, 'correct and timed kernel')}; the number in a bar is its"
        " kernels. Baseline PyTorch eager. Even: within 5 % of 1.0x either way."
    )


def endings(found: Findings) -> str:
    return (
        f"n = {_count(found.judged, 'judged candidate')}, one a method and task; the denominator,"
        " in brackets, is the category's judged candidates; the number in a bar is its candidates."
        + _left_out(found)
    )


def roofline(found: Roofline) -> str:
    """How a share is computed, from what, and how many lie above the roof."""
    if found.bandwidth is None:
        return "No timed kernel, or no bandwidth to measure it by."
    text = (
        f"n = {_count(len(found.best), 'task')} with a correct, timed kernel; of each task the"
        " kernel that comes closest. Share: the least time that the board needs, the longer of"
        " bytes / bandwidth and FLOPs / peak of the dtype, over the time; geometric mean over timed"
        f" cases. {_bandwidth(found)} Peaks: {found.peak_source or 'none known'}."
    )
    if found.above:
        text += (
            f" {_count(found.above, 'kernel')} of {len(found.kernels)} above the roof, as can"
            " happen where data stay in the L2 cache, which the model doesn't know."
        )
    return text


def _bandwidth(found: Roofline) -> str:
    sheet = f"{figure((found.peak_bandwidth or 0) / TERA)} TB/s by its data sheet"
    rate = f"{figure((found.bandwidth or 0) / TERA)} TB/s"
    if not found.measured:
        return f"Bandwidth: {sheet}; no run recorded a measured one."
    text = f"Bandwidth: {rate}, a copy measured on the board at each run (median)"
    if found.peak_bandwidth:
        text += f"; {sheet}"
    rest = len(found.kernels) - found.measured
    return f"{text}{f', which {rest} kernels without one are measured by' if rest else ''}."


def _left_out(found: Findings) -> str:
    parts = []
    if found.missing:
        parts.append(f"{found.missing:,} pairs of method and task without a candidate")
    if found.held:
        parts.append(f"{found.held:,} results that are held back or of an earlier task version")
    return f" Left out: {' and '.join(parts)}." if parts else ""


def _count(number: int, word: str, plural: str = "") -> str:
    return f"{number:,} {word if number == 1 else plural or word + 's'}"
