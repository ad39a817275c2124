"""The stage `time`: blocks of PyTorch in the referee against blocks of the candidate, on a board of
their own.

The supervisor passes the token: a block runs here or there, never on both sides. It hands out each
sample's seed when the call before has been queued, keeps random outputs for the referee, and has a
clock of its own for an outer bound.
"""

import functools
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmark import vocabulary as words
from runner.engine import crosschecks, figures, physics, protocol, surprise
from runner.engine.baselines import Alone
from runner.engine.clocks import unsteady
from runner.engine.figures import Interval, Pair
from runner.engine.model import BoardFailure, JudgeFailure
from runner.engine.profiling import profile, require_own
from runner.engine.protocol import FAILED, MOST_SPIN, NEXT, SEED, Channel
from runner.engine.trial import Answer, Trial, Verdict
from runner.engine.workers import Ended, Worker

FROM_IDLE, STILL_WARM = 0.3, 0.01  # seconds of heating
WARM_SAMPLES = (2, 3)  # in a first and a second block
WARM_SPIN = 300.0  # microseconds
# Of a call that waits for the board, and so can't be queued ahead: what may come before that.
BEFORE_WAITING_MS = 1.0
LONG_MS = 20.0  # a call for which the first block is warm-up enough
# From ms a call on: samples a block. Longer calls scatter less, and their arguments take longer to
# draw than the calls themselves.
FEWER_SAMPLES = ((20.0, 1), (8.0, 2), (2.0, 4), (0.03, 5))
CASE_SECONDS = 1.5  # after these a case gets no more blocks than it needs at least
MORE_SECONDS = 16.0  # ... but for so long where its speedup could not be stated otherwise
BLOCKS_A_STEP = 4  # ABBA: two pairs
SIDES = ("PyTorch", "the candidate")
# Outputs a case: one of the first block, and one that nobody can foresee, if any.
MOST_VERIFIED, AGAIN = 2, 0.3
BLOCK_SECONDS = 120.0
COMPILED_BLOCKS, COMPILE_SECONDS = 6, 600.0  # of the second baseline
MOST_LEFT_OUT = 8  # times four blocks
STATABLE = 0.1  # half-width of an interval that still says something about the kernel


@dataclass
class Samples:
    """One block: ms between the events and ms that the host took to queue the call, by sample; and
    the seeds.
    """

    times: tuple[float, ...]
    queued: tuple[float, ...]
    seeds: tuple[int, ...]
    reply: dict

    @property
    def median(self) -> float:
        """The block's time in ms."""
        return median(self.times)


@dataclass(frozen=True)
class Plan:
    """Of a case's blocks: the spin in microseconds, the samples, and the sides whose host takes
    longer to queue a call than that, so that its time is in the call's.
    """

    spin: float
    samples: int
    unhidden: tuple[str, ...] = ()


@dataclass
class CaseTimes:
    """The pairs of one case as they come in; `unhidden` as in its plan."""

    pairs: list[Pair] = field(default_factory=list)
    unhidden: tuple[str, ...] = ()
    verified: int = 0
    left_out: int = 0  # times four blocks, for the board's sake

    @functools.cached_property
    def ratio(self) -> Interval:
        """The case's speedup, once all pairs are there: resampling takes its time."""
        return figures.speedup_of([self.pairs])


def measure(trial: Trial) -> None:
    """Time every timed case; raises Verdict for impossible times. Outputs are judged, and what the
    times say is worked out, when the trial catches up.
    """
    cases = trial.contract.judgeable("timed")
    if not cases:
        return
    board = trial.board()
    trial.report.environment["clocks"] = {"before": _clocks(trial)}
    timed = []
    surprised = surprise.pick(trial, cases)
    for index, case in enumerate(cases):
        trial.progress("time", index, len(cases))
        rest(trial)
        found = time_case(trial, case, board, case["case"] == surprised)
        with trial.steps.step("statistics"):
            write_case(trial, case, found, board)
        if trial.compiler:
            time_compiled(trial, case, trial.compiler)
        timed.append(found)
    trial.report.environment["clocks"]["after"] = _clocks(trial)
    trial.report.environment["board"] = {
        "copy_bytes_per_second": board.bandwidth,
        "l2_bytes": board.l2,
        "event_ms": board.event_ms,
        "joined_event_ms": board.joined_event_ms,
    }
    trial.report.environment["time_steps"] = trial.steps.to_json()
    trial.later.append(functools.partial(conclude, trial, cases, timed))


def time_case(trial: Trial, case: dict, board: physics.Board, surprised: bool = False) -> CaseTimes:
    """Pairs in ABBA order until the interval is narrow enough or the blocks are used up; some work
    comes before, so that the clocks are up. Pairs during which the board went slower than it should
    are left out; JudgeFailure when that happens all the time.
    """
    bring_up(trial)
    with trial.steps.step("warm-up"):
        planned = plan(trial, case)
    spin, samples = planned.spin, planned.samples
    with trial.steps.step("profiler"):
        activity, busy = profile(trial, case, calls=1)
    if "proof" in trial.options.stages:
        require_own(trial, case, activity)
    found = CaseTimes(unhidden=planned.unhidden)
    until = time.monotonic() + CASE_SECONDS
    while len(found.pairs) * 2 < trial.options.max_blocks:
        until += rest(trial)
        before = trial.clocks.read()
        pairs = two_pairs(trial, case, found, samples, spin)
        reason = unsteady((before, trial.clocks.read()))
        if reason:
            found.left_out += 1
            _require_steady(trial, found, reason)
            continue
        joined = case["case"] in trial.joined
        found.pairs += [Pair(board.net(one), board.net(other, joined)) for one, other in pairs]
        if surprised and len(found.pairs) == len(pairs):
            with trial.steps.step("kernels switched off"):
                surprise.look(
                    trial,
                    case,
                    lambda samples, keep: candidate_block(trial, case, samples, spin, keep, True),
                )
        if len(found.pairs) * 2 < trial.options.min_blocks:
            continue
        with trial.steps.step("statistics"):
            narrow = figures.narrow_enough(found.pairs)
        if narrow or has_had_its_time(found, until):
            break
    trial.clocks.note_work()
    claimed = median(median(pair.candidate) for pair in found.pairs)
    crosschecks.agree_with_profiler(trial, case, claimed, busy)
    with trial.steps.step("calls in a row"):
        crosschecks.outer_bound(trial, case, claimed)
    return found


def has_had_its_time(found: CaseTimes, until: float) -> bool:
    """Is it over, for a case whose pairs say something about the kernel, or a good while later for
    any other?
    """
    now = time.monotonic()
    if now <= until:
        return False
    return now > until + MORE_SECONDS or figures.speedup_of([found.pairs]).half_width <= STATABLE


def bring_up(trial: Trial) -> None:
    """Bring the board's clocks up, if they are not."""
    heat(trial, STILL_WARM if trial.clocks.is_hot else FROM_IDLE)


def heat(trial: Trial, seconds: float) -> None:
    """Let the board work for so long."""
    with trial.steps.step("heating"):
        trial.referee.ask({"op": "heat", "seconds": seconds})


def rest(trial: Trial) -> float:
    """Others may have had the board: then it is warmed up again. The seconds for both."""
    started = time.monotonic()
    with trial.steps.step("others on the board"):
        others = trial.rest()
    if others:
        heat(trial, STILL_WARM)
    return time.monotonic() - started


def reference_alone(trial: Trial, case: dict) -> Alone:
    """PyTorch on a case, shortly and with nothing beside it: the candidate's process must have
    ended, and the board be ours alone. Its call waits for the board if queueing it takes as long as
    the spin before it.
    """
    bring_up(trial)
    warm = reference_block(trial, case, max(WARM_SAMPLES), WARM_SPIN)
    spin, samples = shape(trial, [warm])
    block = reference_block(trial, case, samples, spin)
    return Alone(median(trial.board().net(block.times)), median(block.queued) >= spin / 1e3)


def two_pairs(
    trial: Trial, case: dict, found: CaseTimes, samples: int, spin: float
) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    """Four blocks, ABBA: the (reference, candidate) times in ms of two neighbours each."""
    with trial.steps.step("PyTorch's blocks"):
        first = reference_block(trial, case, samples, spin)
    with trial.steps.step("the candidate's blocks"):
        second = verified_block(trial, case, found, samples, spin)
        third = verified_block(trial, case, found, samples, spin)
    with trial.steps.step("PyTorch's blocks"):
        fourth = reference_block(trial, case, samples, spin)
    return [(first.times, second.times), (fourth.times, third.times)]


def _require_steady(trial: Trial, found: CaseTimes, reason: str) -> None:
    if found.left_out == 1:
        trial.report.add("unsteady-board", f"blocks were left out: {reason}", "time")
    if found.left_out > MOST_LEFT_OUT:
        raise BoardFailure(f"the board does not run steadily: {reason}")


def plan(trial: Trial, case: dict) -> Plan:
    """Warm both sides up; what hides the slower host, equal on both sides."""
    first = both_blocks(trial, case, WARM_SAMPLES[0], WARM_SPIN)
    spin, samples = shape(trial, first)
    if max(side.median for side in first) > LONG_MS:
        return Plan(spin, samples, unhidden([median(side.queued) for side in first], spin))
    second = both_blocks(trial, case, WARM_SAMPLES[1], spin)
    return planned(trial, first, second, spin - WARM_SPIN)


def planned(
    trial: Trial, first: Sequence[Samples], second: Sequence[Samples], difference: float
) -> Plan:
    """By two warm blocks of each side, the second's spin longer by `difference` microseconds. A
    spin hides no host that waits for its end.
    """
    pairs = list(zip(first, second, strict=True))
    spin = spin_for([host_ms(*pair, difference) for pair in pairs])
    hosts = [float("inf") if waits(*pair, difference) else median(pair[1].queued) for pair in pairs]
    return Plan(spin, samples_for(trial, second), unhidden(hosts, spin))


def unhidden(hosts: Sequence[float], spin: float) -> tuple[str, ...]:
    """Of PyTorch and the candidate, those whose host, in ms, takes longer to queue a call than the
    spin lasts: they wait for the board in its middle, or launch more than a board queues.
    """
    return tuple(name for name, host in zip(SIDES, hosts, strict=True) if host * 1e3 > spin)


def both_blocks(trial: Trial, case: dict, samples: int, spin: float) -> tuple[Samples, Samples]:
    """One of PyTorch, then one of the candidate."""
    return (
        reference_block(trial, case, samples, spin),
        candidate_block(trial, case, samples, spin),
    )


def host_ms(shorter: Samples, longer: Samples, difference: float) -> float:
    """Ms of a side's host to hide, by a block and one whose spin was longer by `difference`
    microseconds. A long spin before a call that waits for the board would only be waited for.
    """
    queued = median(longer.queued)
    return min(queued, BEFORE_WAITING_MS) if waits(shorter, longer, difference) else queued


def waits(shorter: Samples, longer: Samples, difference: float) -> bool:
    """Does a side's host wait for the board in the middle of its call? Queueing takes as long
    whatever the spin; of one that waits it takes longer by the difference, in microseconds.
    """
    # Who waited for the end of the first spin gets a second one that is half as long again.
    longer_by = median(longer.queued) - median(shorter.queued)
    return difference > WARM_SPIN / 4 and longer_by > difference / 2e3


def shape(trial: Trial, warm: Sequence[Samples]) -> tuple[float, int]:
    """Of a block, by warm calls: the spin in microseconds, and samples."""
    return spin_for([median(side.queued) for side in warm]), samples_for(trial, warm)


def spin_for(hosts: Sequence[float]) -> float:
    """Microseconds that hide the slowest of hosts, given in ms."""
    return min(MOST_SPIN, 1.5e3 * max(hosts) + 20.0)


def samples_for(trial: Trial, warm: Sequence[Samples]) -> int:
    """Samples a block, by the length of a warm call."""
    longest = max(side.median for side in warm)
    fewer = (count for least, count in FEWER_SAMPLES if longest >= least)
    return next(fewer, trial.options.samples_per_block)


def time_compiled(trial: Trial, case: dict, compiler: Worker) -> None:
    """The second baseline of a case into its row: PyTorch's compiler on the reference, or why there
    is no time of it. It replaces nothing, and its failure is nobody's.
    """
    row = trial.result(case)
    started = time.monotonic()
    try:
        row.compiled_detail = _compile(trial, case, compiler)
        if not row.compiled_detail:
            found = _compiled_time(trial, case, compiler)
            row.compiled_ms, row.compiled_ms_low, row.compiled_ms_high = _rounded(found)
    except JudgeFailure as failure:
        row.compiled_detail = str(failure)[-500:]
    trial.not_its_time(time.monotonic() - started)


def _compile(trial: Trial, case: dict, compiler: Worker) -> str:
    message = {"op": "compile", "task": trial.contract.name, "case": case["case"]}
    reply = compiler.ask({**message, "seed": trial.new_seed()}, COMPILE_SECONDS)
    return str(reply["reason"])


def _compiled_time(trial: Trial, case: dict, compiler: Worker) -> Interval:
    warm = reference_block(trial, case, max(WARM_SAMPLES), WARM_SPIN, compiler)
    spin, samples = shape(trial, [warm])
    board = trial.board()
    blocks = (reference_block(trial, case, samples, spin, compiler) for _ in range(COMPILED_BLOCKS))
    return figures.time_of([board.net(block.times) for block in blocks])


# -- blocks --


def reference_block(
    trial: Trial, case: dict, samples: int, spin: float, compiled_by: Worker | None = None
) -> Samples:
    """PyTorch's block, or that of a process which has compiled the reference; whatever goes wrong
    is ours.
    """
    message = {
        "op": "block",
        "task": trial.contract.name,
        "case": case["case"],
        "samples": samples,
        "spin": spin,
        "compiled": compiled_by is not None,
    }
    worker = compiled_by or trial.referee
    with worker.reserved() as channel:
        try:
            deadline = time.monotonic() + BLOCK_SECONDS
            found = exchange(channel, message, trial.new_seed, -1, deadline)
        except (protocol.Closed, protocol.Overdue, protocol.Malformed) as error:
            raise _referee_failed(worker, error) from error
    if found.reply.get("ok") is not True:
        raise worker.failure(found.reply)
    return found


def _referee_failed(referee: Worker, error: Exception) -> JudgeFailure:
    referee.stop()
    return JudgeFailure(
        f"the referee failed in a block: {error!r}: {referee.channel.log_tail()[-2000:]}"
    )


def candidate_block(
    trial: Trial, case: dict, samples: int, spin: float, keep: int = -1, suppress: bool = False
) -> Samples:
    """The candidate's block; `keep` is the sample whose outputs come along."""
    assert trial.session is not None
    message = {
        "op": "block",
        "task": trial.contract.name,
        "case": case["case"],
        "samples": samples,
        "spin": spin,
        "join": case["case"] in trial.joined,
        "after": case["may_mutate"],
        "suppress": suppress,
    }
    try:
        found = exchange(trial.session.channel, message, trial.new_seed, keep, trial.deadline)
    except protocol.Closed:
        raise Ended(trial.session.end(grace=1.0)) from None
    trial.hear()
    if found.reply.get("ok") is not True:
        raise trial.failure(found.reply)
    return found


def exchange(
    channel: Channel, message: dict, new_seed: Callable[[], int], keep: int, deadline: float
) -> Samples:
    """Run a block in lockstep: a seed for each sample when it is asked for."""
    channel.post(message)
    seeds = []
    for index in range(message["samples"] + 1):
        byte = channel.next_byte(deadline)
        if byte == FAILED:
            return Samples((), (), (), channel.wait(deadline))
        if byte != NEXT:
            raise protocol.Malformed("a block was left")
        seeds.append(new_seed())
        channel.send_bytes(SEED.pack(seeds[-1], 0 <= keep == index - 1))
    last = channel.next_byte(deadline)
    reply = channel.wait(deadline)
    if last == FAILED or reply.get("ok") is not True:
        return Samples((), (), (), reply)
    if last != NEXT:
        raise protocol.Malformed("a block's end was left out")
    times = _numbers(reply.get("times"), message["samples"], least=1e-6)
    queued = _numbers(reply.get("queued"), message["samples"], least=0.0)
    return Samples(times, queued, tuple(seeds), reply)


def _numbers(values: object, count: int, least: float) -> tuple[float, ...]:
    usable = (
        isinstance(values, list)
        and len(values) == count
        and all(isinstance(value, float | int) and least <= value < 1e7 for value in values)
    )
    if not usable:
        raise protocol.Malformed("a block's times are no times")
    return tuple(map(float, values))  # type: ignore[call-overload]


def verified_block(
    trial: Trial, case: dict, found: CaseTimes, samples: int, spin: float
) -> Samples:
    """A block of the candidate, sometimes with the outputs of a sample that it can't know
    beforehand judged too.
    """
    wanted = trial.contract.draws == 1 and found.verified < MOST_VERIFIED
    wanted = wanted and (not found.verified or trial.seeds.random() < AGAIN)
    keep = trial.seeds.randrange(samples) if wanted else -1
    block = candidate_block(trial, case, samples, spin, keep)
    if wanted:
        found.verified += 1
        with trial.steps.step("outputs kept"):
            keep_outputs(trial, case, block, keep)
    return block


def keep_outputs(trial: Trial, case: dict, block: Samples, keep: int) -> None:
    """The outputs of a timed call must be right like any others. They are out of the candidate's
    reach now, and judged when the board need not be quiet any more.
    """
    outputs = block.reply.get("outputs")
    if not isinstance(outputs, list) or len(outputs) != 1:
        raise Verdict(words.CRASHED, "the process kept no output of a timed call")
    seed = block.seeds[keep]
    observed = trial.nothing_observed(case)
    answer = Answer(case, seed, outputs, block.reply.get("after"), observed, 0.0)
    trial.judge_later(answer, functools.partial(verify, trial))


def verify(trial: Trial, answer: Answer) -> None:
    """Judge the outputs of a timed call; where they are wrong, its time is nobody's."""
    judged = trial.compare(answer)
    row = trial.result(answer.case)
    row.note(judged)
    if judged["verdict"] != words.PASSED:
        row.forget_times()
        place = f"case {answer.case['case']}, a timed call"
        raise Verdict(judged["verdict"], f"{place}: {judged['detail']}")


# -- results --


def write_case(trial: Trial, case: dict, found: CaseTimes, board: physics.Board) -> None:
    """The case's row: both times, their ratio, all with intervals; raises Verdict below the
    physical floor.
    """
    row = trial.result(case)
    candidate = figures.time_of([pair.candidate for pair in found.pairs])
    reference = figures.time_of([pair.reference for pair in found.pairs])
    row.candidate_ms, row.candidate_ms_low, row.candidate_ms_high = _rounded(candidate)
    row.reference_ms, row.reference_ms_low, row.reference_ms_high = _rounded(reference)
    row.speedup, row.speedup_low, row.speedup_high = _rounded(found.ratio)
    row.samples = sum(len(pair.candidate) + len(pair.reference) for pair in found.pairs)
    row.samples_sha256 = digest(found.pairs)
    floor = board.floor_ms(case["dtype"], case["flops"], case["bytes"])
    if candidate.value < physics.SLACK * floor:
        detail = f"{candidate.value:.4g} ms, where this board needs at least {floor:.4g} ms"
        row.fail(words.IMPOSSIBLE, detail)
        raise Verdict(words.IMPOSSIBLE, f"case {case['case']}: {detail}")


def _rounded(interval: Interval) -> tuple[float, float, float]:
    """Seven digits: far below any noise, far above what a page shows."""
    return tuple(float(f"{v:.7g}") for v in (interval.value, interval.low, interval.high))  # type: ignore[return-value]


def digest(pairs: list[Pair]) -> str:
    """SHA-256 of all raw samples in their order, in ms with nine digits."""
    text = "\n".join(f"{v:.9g}" for pair in pairs for v in (*pair.reference, *pair.candidate))
    return hashlib.sha256(text.encode()).hexdigest()


def conclude(trial: Trial, cases: list[dict], timed: list[CaseTimes]) -> None:
    """The speedup over all cases, or the verdict `unstable` when it can't be stated. A case that
    misses its gate is named in a finding and keeps its wide interval, which says how sure we are
    and enters the speedup's; a speedup beyond `STATABLE` says nothing.
    """
    loose = []
    for case, found in zip(cases, timed, strict=True):
        width = found.ratio.half_width
        gate = figures.gate(trial.result(case).candidate_ms or 0.0)
        if not width <= gate:
            blocks = f"after {2 * len(found.pairs)} blocks"
            loose.append(f"{case['case']} within {width:.1%} instead of {gate:.0%} {blocks}")
    total = figures.speedup_of([found.pairs for found in timed])
    if not total.half_width <= STATABLE:
        whole = f"the speedup within {total.half_width:.1%} instead of {STATABLE:.0%}"
        raise Verdict(words.UNSTABLE, "; ".join([whole, *loose]))
    report = trial.report
    if loose:
        report.add("wide-interval", "; ".join(loose), "time")
    tell_of_hosts(trial, cases, timed)
    report.speedup, report.speedup_low, report.speedup_high = _rounded(total)


def tell_of_hosts(trial: Trial, cases: list[dict], timed: list[CaseTimes]) -> None:
    """A finding that names the cases in which a time is the host's, too."""
    named = [
        f"{case['case']} ({' and '.join(found.unhidden)})"
        for case, found in zip(cases, timed, strict=True)
        if found.unhidden
    ]
    if named:
        text = "the host's time is in the call's, so that other hosts may find other speedups: "
        trial.report.add("host-time", text + ", ".join(named), "time")


def _clocks(trial: Trial) -> dict:
    reading = trial.clocks.read()
    return reading.to_json() if reading else {}
