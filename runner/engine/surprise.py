"""Between the timed blocks, once a candidate and unannounced: its kernels are switched off, and the
answer of a timed call must go wrong.

Whoever lets a library work in the timed calls only is right without its kernels. Nothing in the
call says that it is one of these: it is timed like all others, and its time is thrown away.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmark import vocabulary as words
from runner.engine.trial import Answer, Trial, Verdict

if TYPE_CHECKING:
    from runner.engine.timing import Samples

SAMPLES = 3


def pick(trial: Trial, cases: list[dict]) -> str:
    """The case to look at, or "" where the answer says nothing: by chance, or allowed to others."""
    if trial.contract.draws != 1 or trial.contract.delegates or not cases:
        return ""
    name: str = trial.seeds.choice(cases)["case"]
    return name


def look(trial: Trial, case: dict, run: Callable[[int, int], "Samples"]) -> None:
    """One short block without the candidate's kernels, by `run(samples, keep)`; raises the verdict
    `forbidden` when an answer is right all the same.
    """
    keep = trial.seeds.randrange(SAMPLES)
    before = [*trial.report.findings]
    try:
        block = run(SAMPLES, keep)
    except Verdict:
        trial.report.forget_tracebacks(before)
        return  # it fails without its kernels: they matter
    require_wrong(trial, case, block, keep)


def require_wrong(trial: Trial, case: dict, block: "Samples", keep: int) -> None:
    """An answer that is right for its own arguments and no others was made without the kernels.
    One that is right for any was merely left in memory.
    """
    outputs = block.reply.get("outputs")
    if not isinstance(outputs, list) or len(outputs) != 1:
        return
    if not _is_right(trial, case, block, block.seeds[keep]):
        return
    if _is_right(trial, case, block, trial.new_seed()):
        return
    detail = "in timed calls the answer stayed right with its kernels switched off"
    trial.result(case).fail(words.FORBIDDEN, detail)
    raise Verdict(words.FORBIDDEN, f"case {case['case']}: {detail}")


def _is_right(trial: Trial, case: dict, block: "Samples", seed: int) -> bool:
    observed = trial.nothing_observed(case)
    answer = Answer(case, seed, block.reply["outputs"], block.reply.get("after"), observed, 0.0)
    return bool(trial.compare(answer)["verdict"] == words.PASSED)
