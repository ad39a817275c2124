"""PyTorch's time, held against what it is without the candidate."""

import pytest

from runner.engine.baselines import SLOWER, SLOWER_WAITING, Alone, Baselines
from runner.engine.report import CaseResult, Report

DIGEST = "0" * 64


def run(**times: tuple[float, float]) -> Report:
    """A timed run: case -> (ms of PyTorch, ms of the candidate)."""
    cases = [
        CaseResult(
            case, "timed", "", "float32", "", reference_ms=reference, speedup=reference / candidate
        )
        for case, (reference, candidate) in times.items()
    ]
    return Report("relu", "Activation", 0, "", DIGEST, "h200", cases=cases, speedup=1.0)


def judged(
    baselines: Baselines, report: Report, waits: bool = False, **alone: float
) -> tuple[list[str], bool]:
    """Which cases were looked at again, and is the run held back?"""
    looked: list[str] = []

    def measure(row: CaseResult) -> Alone:
        looked.append(row.case)
        return Alone(alone[row.case], waits)

    baselines.settle(report, baselines.doubtful(report), measure)
    assert [f.code for f in report.findings] == ["suspect-baseline"] * report.suspect
    return looked, report.suspect


def test_a_modest_first_run_costs_nothing_and_is_remembered() -> None:
    baselines = Baselines()
    assert judged(baselines, run(small=(0.1, 0.11), large=(2.0, 2.1))) == ([], False)
    assert baselines.known(DIGEST, "large") == 2.0
    assert baselines.known("1" * 64, "large") is None


def test_a_large_claim_without_history_is_looked_at_where_it_is_largest() -> None:
    report = run(small=(0.1, 0.05), large=(2.0, 0.5))
    assert judged(Baselines(), report, large=1.9) == (["large"], False)


def test_a_slow_kernel_beside_a_board_kept_busy_is_looked_at() -> None:
    """Two processes share a board in turns: 0.9x reads as 1.8x."""
    report = run(large=(1.8, 1.0))
    assert judged(Baselines(), report, large=0.9) == (["large"], True)


def test_a_slowed_baseline_is_told_and_teaches_nothing_else() -> None:
    baselines = Baselines()
    report = run(small=(0.2, 0.1), large=(4.0, 1.0))
    assert judged(baselines, report, large=1.0) == (["large"], True)
    assert "PyTorch took 4 ms beside the candidate and 1 ms" in report.findings[0].message
    assert baselines.known(DIGEST, "large") == 1.0
    assert baselines.known(DIGEST, "small") is None


def test_what_was_measured_before_is_asked_first_whatever_is_claimed() -> None:
    baselines = Baselines()
    judged(baselines, run(large=(1.0, 1.0)))
    assert judged(baselines, run(large=(1.1, 0.1))) == ([], False)
    assert judged(baselines, run(large=(1.5, 1.5)), large=1.0) == (["large"], True)


def test_a_board_that_has_become_slower_by_itself_is_nobodys_fault() -> None:
    baselines = Baselines()
    judged(baselines, run(large=(1.0, 1.0)))
    assert judged(baselines, run(large=(1.5, 1.5)), large=1.49) == (["large"], False)


@pytest.mark.parametrize(("factor", "suspect"), [(SLOWER - 0.02, False), (SLOWER + 0.02, True)])
def test_the_bound_is_the_stated_one(factor: float, suspect: bool) -> None:
    baselines = Baselines()
    baselines.note(DIGEST, "large", 1.0)
    assert judged(baselines, run(large=(factor, factor)), large=1.0)[1] is suspect


def test_short_calls_may_scatter() -> None:
    baselines = Baselines()
    baselines.note(DIGEST, "tiny", 0.005)
    assert judged(baselines, run(tiny=(0.008, 0.008))) == ([], False)


@pytest.mark.parametrize(
    ("factor", "suspect"), [(SLOWER_WAITING - 0.02, False), (SLOWER_WAITING + 0.02, True)]
)
def test_a_call_that_waits_for_the_board_may_take_more_of_its_hosts_time(
    factor: float, suspect: bool
) -> None:
    report = run(large=(factor, 0.1))
    assert judged(Baselines(), report, waits=True, large=1.0) == (["large"], suspect)
