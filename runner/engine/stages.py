"""The stages of a judgement, in order. Each raises Verdict when the candidate fails it, and returns
when it passes.
"""

from collections.abc import Callable

from benchmark import vocabulary as words
from runner.engine import profiling, proof, timing
from runner.engine.model import Declined
from runner.engine.trial import Answer, Trial, Verdict

SUPPRESSED_CASES = 2
ENDS = (words.CRASHED, words.TIMEOUT, words.OUT_OF_MEMORY)  # after which nothing can be asked
EVERY = 3  # each third case gets three calls: another seed, a held output, the same addresses


def load(trial: Trial) -> None:
    """Import the source in the candidate's process; parsing came before."""
    assert trial.source is not None
    reply = trial.ask({"op": "load", "source": trial.source.text, "entry": trial.source.entry})
    observed = proof.read_observed("import", 0, reply.get("observed"))
    if "torch.compile" in observed.events:
        raise Verdict(
            words.FORBIDDEN,
            "torch.compile was called at import: its kernels are not the candidate's",
        )


def call(trial: Trial) -> None:
    """One call on the first case: does it run at all? Its answer is judged in the next stage."""
    case = first_case(trial)
    try:
        trial.challenge(case, note=False)
    except Verdict as verdict:
        trial.result(case).fail(verdict.verdict, str(verdict))
        raise


def first_case(trial: Trial) -> dict:
    """The case for the first call: small, so that compiling is most of it."""
    return (trial.contract.judgeable("small") or trial.contract.judgeable("timed"))[0]


def check(trial: Trial) -> None:
    """Every case that this device can judge, on fresh secret seeds. The first failure is the
    verdict; the other small cases are shown, the large ones are not run any more.
    """
    cases = trial.contract.judgeable("small") + trial.contract.judgeable("timed")
    failure: Verdict | None = None
    for index, case in enumerate(cases):
        if failure and case["kind"] == "timed":
            break
        trial.progress("check", index, len(cases))
        try:
            check_case(trial, case, thorough=index % EVERY == 0)
        except Verdict as verdict:
            trial.result(case).fail(verdict.verdict, str(verdict))
            failure = failure or Verdict(verdict.verdict, f"case {case['case']}: {verdict}")
    if failure:
        raise failure


def check_case(trial: Trial, case: dict, thorough: bool) -> None:
    """One fresh call; a thorough check adds a held output, other numbers at the same addresses, and
    a third seed.
    """
    first = _checked(trial, trial.challenge(case))
    if not thorough or case["kind"] != "small":
        return
    _checked(trial, trial.challenge(case))
    if not case["may_mutate"]:
        check_held(trial, first)
    _checked(trial, trial.challenge(case, reuse=True))


def check_held(trial: Trial, first: Answer) -> None:
    """The output of the call before the last one must still be right."""
    reply = trial.ask({"op": "held"})
    outputs = reply.get("outputs")
    if not isinstance(outputs, list) or len(outputs) != trial.contract.draws:
        raise Verdict(words.CRASHED, "the process no longer has the output that it returned")
    found = trial.compare(Answer(first.case, first.seed, outputs, None, first.observed, 0.0))
    if found["verdict"] != words.PASSED:
        raise Verdict(
            found["verdict"],
            f"an output changed after it was returned, during the next call: {found['detail']}",
        )


def _checked(trial: Trial, answer: Answer) -> Answer:
    found = trial.compare(answer)
    trial.result(answer.case).note(found)
    if found["verdict"] != words.PASSED:
        raise Verdict(found["verdict"], found["detail"])
    return answer


def prove(trial: Trial) -> None:
    """The answers came from the candidate's own kernels: by what was observed, and by switching
    them off.
    """
    trial.require_open_eyes()
    copies = {case["case"] for case in trial.contract.cases if case["copies"]}
    working = [one for one in trial.observed if one.case not in copies]
    reason = proof.forbidden(working, trial.contract.delegates, _baselines(trial))
    if reason:
        raise Verdict(words.FORBIDDEN, reason)
    suppress(trial)
    trial.require_open_eyes()
    beside = proof.torch_arithmetic(trial.observed)
    if beside:
        trial.report.add("torch-arithmetic", beside, "proof")
    _note_events(trial)
    _note_delegation(trial)
    if trial.device.kind == "cuda":
        profiling.prove_by_time(trial)
        profiling.describe_kernels(trial)


def _baselines(trial: Trial) -> dict[str, proof.Baseline]:
    found = {}
    names = {one.case for one in trial.observed if one.full_size_compute()}
    for case in trial.contract.cases:
        if case["case"] in names:
            message = {
                "op": "operators",
                "task": trial.contract.name,
                "case": case["case"],
                "seed": 1,
            }
            with trial.its_turn():
                reply = trial.referee.ask(message, 600.0)
            found[case["case"]] = proof.Baseline(
                tuple((name, size) for name, size in reply["operators"]),
                max(reply["bytes"], int(case["bytes"] or 0)),
            )
    return found


def suppress(trial: Trial) -> None:
    """With the kernels switched off the answer must go wrong; right answers on every tried case
    betray a decoy.
    """
    sizes = {one.case: one.largest for one in trial.observed}
    cases = [case for case in trial.contract.judgeable("small") if sizes.get(case["case"])]
    cases = sorted(cases, key=lambda case: -sizes[case["case"]])[:SUPPRESSED_CASES]
    if cases and all(_right_without_kernels(trial, case) for case in cases):
        raise Verdict(
            words.FORBIDDEN,
            "with its kernels switched off the answer stayed right: they are decoys",
        )


def _right_without_kernels(trial: Trial, case: dict) -> bool:
    before = [*trial.report.findings]
    try:
        answer = trial.challenge(case, suppress=True, note=False)
    except Verdict:
        trial.report.forget_tracebacks(before)
        return False
    return bool(trial.compare(answer)["verdict"] == words.PASSED)


def _note_events(trial: Trial) -> None:
    if "autotune" in trial.events:
        trial.report.add(
            "autotune",
            "no clock on this device: the autotuner took its first configuration",
            "proof",
        )
    if "thread" in trial.events:
        trial.report.add("threads", "the candidate starts threads", "proof")


def _note_delegation(trial: Trial) -> None:
    if not trial.contract.delegates:
        return
    used = sorted(
        {
            op.name
            for one in trial.observed
            for op in one.operators
            if proof.is_delegated(op.name, trial.contract.delegates)
        }
    )
    if used:
        trial.report.add(
            "delegated", f"the contract allows it, and a library did: {', '.join(used)}", "proof"
        )


def try_beyond(trial: Trial) -> None:
    """Call a candidate that passed on what the published contract doesn't ask, and say where it
    fails. It decides nothing, not even if the process ends: hence after everything else.
    """
    if "check" not in trial.options.stages:
        return
    message = {"op": "beyond", "task": trial.contract.name}
    cases = [case for case in trial.referee.ask(message, 120.0)["cases"] if case["judgeable"]]
    reached, before, failed = trial.report.stage, [*trial.report.findings], []
    for case in cases:
        verdict = _verdict_beyond(trial, case)
        if verdict:
            failed.append(f"{case['case']} ({case['shape']}): {verdict.verdict}, {verdict}"[:300])
        if verdict and verdict.verdict in ENDS:
            break
    trial.report.stage = reached
    trial.report.forget_tracebacks(before)
    if failed:
        text = "beyond the published contract, without effect on the verdict: "
        trial.report.add("beyond-contract", (text + "; ".join(failed))[:2000], "check")


def _verdict_beyond(trial: Trial, case: dict) -> Verdict | None:
    try:
        with trial.stage("check"):
            found = trial.compare(trial.challenge(case, note=False))
    except Verdict as verdict:
        return verdict
    except Declined:  # nothing can be said about it here
        return None
    return None if found["verdict"] == words.PASSED else Verdict(found["verdict"], found["detail"])


def time(trial: Trial) -> None:
    """Only on a board: paired times against PyTorch. See `timing`. The trial has to catch up."""
    timing.measure(trial)
    trial.require_open_eyes()


STAGES: dict[str, Callable[[Trial], None]] = {
    "load": load,
    "call": call,
    "check": check,
    "proof": prove,
}
