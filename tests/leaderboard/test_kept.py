"""What is kept of boards: made anew where something on them changed, and only there."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmark import vocabulary
from benchmark.models import Audit, Board, CountingRun, Submission, Task
from leaderboard import kept
from leaderboard.derived import Derived, Latest
from leaderboard.filters import Choice


def board(slug, **asked):
    now = kept.seen().generation
    gpu = next(gpu for gpu in kept.gpus(now) if gpu.slug == slug)
    return kept.board(now, Choice(gpu=gpu, **asked))


@pytest.fixture
def boards(site):
    """Both devices' boards, asked for once."""
    Board.bump()
    return {slug: board(slug) for slug in ("h200", "cpu-interpreter")}


def test_a_result_changes_the_board_of_its_own_device_alone(boards, site, make):
    make.run(site.beta, site.gelu, site.h200, speedup=3.0)
    Board.bump()
    assert board("cpu-interpreter") is boards["cpu-interpreter"]
    data, ranked = board("h200")
    assert data.results[site.beta.method_id, site.gelu.pk].speedup.value == 3.0
    assert {s.method.slug: s.funnel.correct for s in ranked.standings} == {"alpha": 2, "beta": 1}


def test_a_change_that_no_board_shows_makes_none_anew(boards):
    Board.bump()  # as when one candidate fewer waits
    assert all(board(slug) is found for slug, found in boards.items())


@pytest.mark.parametrize(
    "change",
    [
        lambda site: Audit.objects.create(run=site.fast, verdict=vocabulary.CHEAT, reason="seen"),
        lambda site: Task.objects.filter(pk=site.relu.pk).update(digest="0" * 64),
        lambda site: Task.objects.filter(pk=site.relu.pk).update(is_draft=True),
        # Without a word to the derived tables: what is hidden stays out all the same.
        lambda site: Submission.objects.filter(pk=site.alpha.pk).update(visibility="private"),
    ],
)
def test_whatever_else_a_board_shows_is_never_old(boards, site, change):
    before = board("h200")[1].standings[0].funnel.correct
    change(site)
    Board.bump()
    ranked = board("h200")[1]
    assert all(s.funnel.correct < before for s in ranked.standings)


def test_a_category_is_cut_out_of_what_was_read_already(boards):
    with CaptureQueriesContext(connection) as queries:
        data, _ = board("h200", category="activation")
    assert [query["sql"] for query in queries if "countingrun" in query["sql"]] == []
    assert {task.slug for task in data.tasks} == {"relu", "gelu"}


def test_lanes_are_told_by_whoever_derives(site, make):
    before = Board.seen()
    make.run(site.alpha, site.add, site.h200, speedup=2.0)
    now = Board.seen()
    assert now.lane(site.h200.pk, "measured") == before.lane(site.h200.pk, "measured") + 1
    assert now.lane(site.cpu.pk, "measured") == before.lane(site.cpu.pk, "measured") > 0
    assert CountingRun.objects.count() == 5


def test_derived_values_stay_with_what_they_were_made_of():
    derived, made = Derived(2), []

    def get(key, *made_of):
        return derived.get(key, made_of, lambda: made.append(key) or len(made))

    one, other = object(), object()
    assert [get("a", one), get("a", one), get("a", other)] == [1, 1, 2]
    assert [get("b", one), get("c", one), get("a", other)] == [3, 4, 5], "two are held"


def test_of_threads_that_ask_at_once_one_makes_it():
    derived, begun, made = Derived(2), Barrier(4), []
    made_of = (object(),)

    def ask():
        begun.wait()
        return derived.get("a", made_of, lambda: made.append(1) or object())

    with ThreadPoolExecutor(4) as pool:
        found = [future.result() for future in [pool.submit(ask) for _ in range(4)]]
    assert len(made) == 1
    assert {id(one) for one in found} == {id(found[0])}


def test_the_latest_gives_back_what_equals_it():
    latest = Latest()
    first = latest.of("x", [1])
    assert latest.of("x", [1]) is first
    assert latest.of("x", [2]) == [2]
    assert latest.of("y", [1]) is not first
