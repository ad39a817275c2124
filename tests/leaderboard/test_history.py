"""A method over time: what stood after each submission, and what else changed."""

import csv
import io
import json
from datetime import timedelta

import plotly.graph_objects as go
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmark import vocabulary
from benchmark.models import Audit, Run, TaskVersion
from leaderboard import summaries
from leaderboard.charts import history as charts
from leaderboard.filters import read_choice
from leaderboard.selectors import board as boards
from leaderboard.selectors import history


@pytest.fixture
def third(site, make):
    """alpha's second submission loses gelu, its third wins add, with a newer judge."""
    again = make.submission(site.alpha.method, "again")
    make.run(again, site.gelu, site.h200, verdict=vocabulary.WRONG_VALUES, stage="check")
    site.last = make.submission(site.alpha.method, "last")
    make.run(site.last, site.add, site.h200, speedup=4.0, judge_version="2")
    return site


def on_h200():
    gpus = boards.gpus()
    method = next(m for m in boards.board_data(read_choice({}, gpus)).methods if m.slug == "alpha")
    return history.histories(method, gpus)


def points():
    (found,) = on_h200()
    return [(p.label, p.entered, p.judged, p.solved, p.timed) for p in found.points]


def test_each_submission_replaces_what_it_holds(third):
    assert points() == [("alpha-set", 2, 2, 2, 2), ("again", 1, 2, 1, 1), ("last", 1, 3, 2, 2)]
    (found,) = on_h200()
    assert found.points[0].geometric_mean == pytest.approx(3**0.5)
    assert found.points[2].geometric_mean == pytest.approx(8**0.5)


def test_it_ends_where_the_board_stands(third, make):
    make.run(third.last, third.relu, third.h200, speedup=0.5, round=1)
    standing = summaries.board(boards.board_data(read_choice({}, boards.gpus()))).standings[0]
    (found,) = on_h200()
    last = found.points[-1]
    assert (last.judged, last.solved, last.timed) == (
        standing.funnel.judged,
        standing.funnel.correct,
        standing.timed,
    )
    assert last.geometric_mean == pytest.approx(standing.speedup.value)


def test_one_submission_makes_no_history(site):
    assert on_h200() == ()


def test_stale_results_stay_as_they_were_judged_and_are_counted(third):
    third.relu.digest = "1" * 64
    third.relu.save()
    (found,) = on_h200()
    assert [point.solved for point in found.points] == [2, 1, 2]
    assert [point.stale for point in found.points] == [1, 1, 1]


def test_audits_count_here_too(third):
    run = Run.objects.get(candidate__submission=third.last)
    Audit.objects.create(run=run, verdict=vocabulary.CHEAT, reason="returns a cached output")
    assert points()[-1] == ("last", 1, 3, 1, 1)
    Audit.objects.create(run=run, verdict=vocabulary.JUDGE_BUG, reason="our bug")
    assert len(points()) == 2


def test_hidden_submissions_are_in_no_history(third, make):
    secret = make.submission(third.alpha.method, "canaryzq7", visibility=vocabulary.PRIVATE)
    make.run(secret, third.relu, third.h200, speedup=9.0)
    assert len(points()) == 3


def test_marks_tell_what_else_changed(third):
    (found,) = on_h200()
    assert [mark.text for mark in found.marks] == ["judge 2"]
    for digest, days in (("2" * 64, 0), ("3" * 64, 1)):
        for task in (third.relu, third.gelu):
            version = TaskVersion.objects.create(task=task, digest=digest, reference_source="")
            at = found.points[0].at + timedelta(days=days, seconds=1)
            TaskVersion.objects.filter(pk=version.pk).update(first_seen_at=at)
    (found,) = on_h200()
    assert [mark.text for mark in found.marks] == ["judge 2", "2 tasks changed"]


def test_a_history_takes_three_queries(third):
    gpus = boards.gpus()
    method = boards.board_data(read_choice({}, gpus)).methods[0]
    with CaptureQueriesContext(connection) as queries:
        history.histories(method, gpus)
    assert len(queries) == 3


def test_the_picture_has_the_tables_numbers(third):
    (found,) = on_h200()
    figure, table = charts.figure(found), charts.table(found)
    go.Figure(figure)
    json.dumps(figure, allow_nan=False)
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    numbers = [row for row in rows if row["solved"] is not None]
    assert figure["data"][0]["y"] == [row["solved"] for row in numbers] == [2, 1, 2]
    assert [row["what"] for row in rows] == ["alpha-set", "again", "last", "judge 2"]


def test_a_device_that_cannot_time_draws_no_speed(third, make):
    make.run(third.last, third.relu, third.cpu)
    _, cpu = on_h200()
    assert len(charts.figure(cpu)["data"]) == 1


def test_the_page_shows_it_and_links_to_its_csv(client, third):
    page = client.get("/methods/alpha/").content.decode()
    assert "Over time" in page
    assert "/methods/alpha/history.csv?gpu=h200" in page
    assert "Over time" not in client.get("/methods/beta/").content.decode()
    text = client.get("/methods/alpha/history.csv?gpu=h200").content.decode()
    assert [row["what"] for row in csv.DictReader(io.StringIO(text))][-1] == "judge 2"
    assert len(client.get("/methods/alpha/history.json?gpu=h200").json()["data"]) == 2


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("/methods/alhpa/history.json", "Did you mean alpha"),
        ("/methods/beta/history.json", "two submissions make one"),
        ("/methods/alpha/history.csv?gpu=cpu-interpreter", "two submissions make one"),
    ],
)
def test_what_is_not_there_is_a_404_with_a_hint(client, third, url, hint):
    response = client.get(url)
    assert response.status_code == 404
    assert hint in response.content.decode()


def test_labels_are_text_to_plotly(third, make):
    evil = make.submission(third.alpha.method, '<a href="javascript:alert(1)">x</a>')
    make.run(evil, third.relu, third.h200, speedup=2.0)
    (found,) = on_h200()
    assert "<a" not in json.dumps(charts.figure(found))
