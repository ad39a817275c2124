"""Between the timed blocks, once a candidate and unannounced: its kernels are switched off, and the
answer of a timed call must go wrong.

Whoever lets a library work in the timed calls only is right without its kernels. Nothing in the
call says that it is one of these: it is timed like all others, and its time is thrown away.

Without its kernels an honest candidate returns what lay in memory, such as its answer to a call
before. Of a single number, as a mean of millions is, that can be right by chance: so one look
accuses nobody.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmark import vocabulary as words
from runner.engine.trial import Answer, Trial, Verdict

if TYPE_CHECKING:
    from runner.engine.timing import Samples

SAMPLES = 2  # one of them counts
# A mean of 2^26 numbers differs from the next one by about 1e-4 of the numbers' spread and may be
# wrong by 1e-6 of it: right by chance once in a hundred looks.
LOOKS = 3


def pick(trial: Trial, cases: list[dict]) -> str:
    """The case to look at, or "" where nobody asks whose work it is, or the answer does not say: by
    chance, or allowed to others.
    """
    asked = "proof" in trial.options.stages
    if not asked or trial.contract.draws != 1 or trial.contract.delegates or not cases:
        return ""
    name: str = trial.seeds.choice(cases)["case"]
    return name


def look(trial: Trial, case: dict, run: Callable[[int, int], "Samples"]) -> None:
    """Short blocks without the candidate's kernels, by `run(samples, keep)`; raises the verdict
    `forbidden` when the answers of all are right for their own arguments.
    """
    if all(_works_without_kernels(trial, case, run) for _ in range(LOOKS)):
        detail = "in timed calls the answer stayed right with its kernels switched off"
        trial.result(case).fail(words.FORBIDDEN, detail)
        raise Verdict(words.FORBIDDEN, f"case {case['case']}: {detail}")


def _works_without_kernels(trial: Trial, case: dict, run: Callable[[int, int], "Samples"]) -> bool:
    keep = trial.seeds.randrange(SAMPLES)
    before = [*trial.report.findings]
    try:
        block = run(SAMPLES, keep)
    except Verdict:
        trial.report.forget_tracebacks(before)
        return False  # it fails without its kernels: they matter
    return _is_made_for(trial, case, block, keep)


def _is_made_for(trial: Trial, case: dict, block: "Samples", keep: int) -> bool:
    """Is the answer right for its own arguments and no others? One that is right for any was merely
    left in memory.
    """
    outputs = block.reply.get("outputs")
    if not isinstance(outputs, list) or len(outputs) != 1:
        return False
    own = _is_right(trial, case, block, block.seeds[keep])
    return own and not _is_right(trial, case, block, trial.new_seed())


def _is_right(trial: Trial, case: dict, block: "Samples", seed: int) -> bool:
    observed = trial.nothing_observed(case)
    answer = Answer(case, seed, block.reply["outputs"], block.reply.get("after"), observed, 0.0)
    return bool(trial.compare(answer)["verdict"] == words.PASSED)
