"""What a candidate's events say, held against what is harder to tell what to say: our own clock,
the profiler, and the board's driver.
"""

import time

from runner.engine import protocol
from runner.engine.devices import boards_here
from runner.engine.protocol import NEXT, SEED
from runner.engine.trial import Trial
from runner.engine.workers import Ended

ROW_MS = 10.0
LEAST_CALLS, MOST_CALLS = 1, 500
ROW_TRIES = 3
ROW_RATIO = (
    1.25  # calls in a row may be this much longer than one call with a cold cache and a pause
)
ROW_HOST_MS = (0.1, 0.05)  # and longer by the host's work: a call, and each launch in it
PROFILE_RATIO, PROFILE_MS = 0.8, 0.005  # the profiler itself makes calls a little longer
# The driver says how busy the board was in the last of its periods, which last up to a second, in
# whole percents.
BUSY_SECONDS, PERCENT = 2.2, 0.01
SAME_ROW = 1.25  # rows of the same calls, one of them much longer, differ by no more than this


def outer_bound(trial: Trial, case: dict, claimed: float) -> None:
    """Calls in a row by our own clock: they can't take much longer than the events say, or the
    events lie, or the host is at work.
    """
    calls = max(LEAST_CALLS, min(MOST_CALLS, int(ROW_MS / claimed)))
    allowed = ROW_RATIO * claimed + ROW_HOST_MS[0] + ROW_HOST_MS[1] * _launches(trial, case)
    wall = float("inf")
    for _ in range(ROW_TRIES):  # the host may have hiccups, a lie lasts
        wall = min(wall, wall_ms(trial, case, calls) / calls)
        if wall <= allowed:
            return
    said = (
        f"case {case['case']}: {calls} calls in a row took {wall:.4g} ms each by our clock, its "
        f"own events say {claimed:.4g} ms"
    )
    if wall < crossing_ms(trial, case):
        again, busy = long_row(trial, case, wall)
        if again <= allowed:
            return
        if busy is not None:
            said += f"; in calls of {again:.4g} ms the board was busy for {busy:.4g} ms"
            if is_the_host_s(claimed, wall, again, busy):
                trial.report.add("host-bound", f"{said}: the rest is the host's", "time")
                return
    trial.report.suspect = True
    trial.report.add("suspect-clock", said, "time")


def is_the_host_s(claimed: float, wall: float, again: float, busy: float) -> bool:
    """Ms a call: do calls that take `wall`, and `again` in a longer row, keep the board no busier
    than their events say?
    """
    alike = wall / SAME_ROW <= again <= wall * SAME_ROW
    return alike and busy <= ROW_RATIO * claimed + PROFILE_MS + PERCENT * again


def crossing_ms(trial: Trial, case: dict) -> float:
    """Who works elsewhere while the board spins, in timed calls alone, has the case's numbers
    there: the least ms that this takes, 0 where it is not known. Other boards may be close.
    """
    if trial.clocks.close_to_host or boards_here() > 1:
        return 0.0
    return trial.board().crossing_ms(case["bytes"])


def long_row(trial: Trial, case: dict, wall: float) -> tuple[float, float | None]:
    """Calls in a row, for longer than the driver's period, of `wall` ms each before: the ms that
    one takes, and for how many of them the board worked, by its driver, which sees all streams of
    all processes; None where it doesn't say. The board must be ours alone.
    """
    calls = max(LEAST_CALLS, int(BUSY_SECONDS * 1e3 / wall))
    again = wall_ms(trial, case, calls) / calls
    share = trial.clocks.busy_share()
    return again, None if share is None else share * again


def agree_with_profiler(trial: Trial, case: dict, claimed: float, busy: float) -> None:
    """The events can't read much less than the ms for which the profiler saw the device busy in a
    call of this minute: then work ran where they don't look.
    """
    if claimed < PROFILE_RATIO * busy - PROFILE_MS:
        trial.report.suspect = True
        trial.report.add(
            "suspect-profile",
            f"case {case['case']}: the device was busy for {busy:.4g} ms a call by the profiler, "
            f"the events say {claimed:.4g} ms",
            "time",
        )


def _launches(trial: Trial, case: dict) -> int:
    return max((one.launch_count for one in trial.observed if one.case == case["case"]), default=1)


def wall_ms(trial: Trial, case: dict, calls: int) -> float:
    """Milliseconds from our word to go until the process says that the device is done."""
    assert trial.session is not None
    channel = trial.session.channel
    message = {
        "op": "row",
        "task": trial.contract.name,
        "case": case["case"],
        "seed": trial.new_seed(),
    }
    try:
        channel.post({**message, "calls": calls})
        if channel.next_byte(trial.deadline) != NEXT:
            raise protocol.Malformed("calls in a row were not begun")
        started = time.perf_counter()
        channel.send_bytes(SEED.pack(0, 0))
        reply = channel.wait(trial.deadline)
    except protocol.Closed:
        raise Ended(trial.session.end(grace=1.0)) from None
    if reply.get("ok") is not True:
        raise trial.failure(reply)
    return (time.perf_counter() - started) * 1e3
