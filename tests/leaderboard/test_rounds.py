"""The rounds pages: which rounds belong together, what became of tasks, and what is linked."""

import csv
import io
import json

import plotly.graph_objects as go
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmark import vocabulary
from benchmark.models import Audit, Board, Submission, Task
from leaderboard import kept
from leaderboard.selectors import rounds
from leaderboard.views.rounds import FIGURES, TABLES

WRONG = {"verdict": vocabulary.WRONG_VALUES, "stage": "check"}


@pytest.fixture
def refined(site, make):
    """gamma: relu stays and slows from 2x to 1x, gelu is rescued, add is lost."""
    gamma = make.submission(make.method("gamma"), "gamma-set")
    make.run(gamma, site.relu, site.h200, speedup=2.0)
    make.run(gamma, site.gelu, site.h200, **WRONG)
    make.run(gamma, site.add, site.h200, speedup=4.0)
    make.run(gamma, site.relu, site.h200, speedup=1.0, round=1)
    make.run(gamma, site.gelu, site.h200, speedup=0.5, round=1)
    make.run(gamma, site.add, site.h200, round=1, **WRONG)
    site.gamma = gamma
    return site


def found(site, submission=None):
    gpu = next(gpu for gpu in kept.gpus(0) if gpu.slug == "h200")
    return rounds.refined(0, (submission or site.gamma).method_id, gpu)


def rows(response):
    return list(csv.reader(io.StringIO(response.content.decode())))


def fates(what):
    return {what.tasks[change.task].slug: change.fate for change in what.whole.changes}


def test_what_became_of_each_task(refined):
    assert fates(found(refined)) == {"relu": "persistent", "gelu": "rescued", "add": "lost"}


def test_the_split_on_the_page(client, refined):
    page = client.get("/rounds/gamma/").content.decode()
    split = found(refined).whole.geometric
    assert split.real == pytest.approx(0.5)
    assert split.composition == pytest.approx(split.change / 0.5)
    assert "\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}0.500" in page
    assert "go from 2 to <b>2</b> of 3" in page
    assert "Melitz" in page


def test_lists_link_the_runs(client, refined):
    page = client.get("/rounds/gamma/").content.decode()
    section = page[page.index('id="tasks"') : page.index('id="transitions"')]
    assert section.count("/runs/") == 6
    assert "1 rescued" in section
    assert "1 lost" in section


def test_transitions_are_all_there(client, refined):
    table = rows(client.get("/rounds/gamma/transitions.csv"))
    assert table == [
        ["before", "passed", "wrong-values"],
        ["passed", "1", "1"],
        ["wrong-values", "1", "0"],
    ]


def test_the_last_round_is_what_the_board_shows(refined):
    _, board = kept.board(0, rounds.Choice(gpu=found(refined).gpu))
    standing = next(s for s in board.standings if s.method.slug == "gamma")
    last = found(refined).last
    assert (standing.funnel.correct, standing.timed) == (last.correct, last.timed)
    assert standing.speedup == last.speedup


def test_rounds_of_two_submissions_are_not_mixed(refined, make):
    """A newer submission with one round for relu: its old rounds are another candidate's story."""
    newer = make.submission(refined.gamma.method, "newer")
    make.run(newer, refined.relu, refined.h200, speedup=9.0)
    what = found(refined)
    assert fates(what)["relu"] == "persistent"
    (kept_one,) = what.whole.of("persistent")
    assert not kept_one.is_offered
    assert kept_one.ratio == 1


def test_a_later_round_without_a_candidate_keeps_the_result(site, make):
    delta = make.submission(make.method("delta"), "d")
    make.run(delta, site.relu, site.h200, speedup=2.0)
    make.run(delta, site.gelu, site.h200, **WRONG)
    make.run(delta, site.gelu, site.h200, speedup=1.0, round=1)
    what = found(site, delta)
    assert (what.first.correct, what.last.correct) == (1, 2)
    assert what.whole.geometric.real == 1


def test_one_round_is_a_page_that_says_so(client, site):
    response = client.get("/rounds/alpha/")
    assert response.status_code == 200
    assert "Only one round" in response.content.decode()
    assert client.get("/rounds/alpha/rounds.csv").status_code == 404


def test_the_index_lists_iterating_methods_only(client, refined):
    page = client.get("/rounds/").content.decode()
    assert "/rounds/gamma/?gpu=h200" in page
    assert "/rounds/alpha/" not in page
    header, *table = rows(client.get("/rounds/?format=csv"))
    assert [row[0] for row in table] == ["Gamma"]
    assert dict(zip(header, table[0], strict=True))["lost"] == "1"


def test_the_index_without_rounds_says_so(client, site):
    assert "No method has a second round" in client.get("/rounds/").content.decode()


@pytest.mark.parametrize("url", ["/rounds/", "/rounds/gamma/"])
def test_empty_and_unknown(client, refined, url):
    response = client.get(f"{url}?gpu=h20")
    assert response.status_code == 404
    assert "h200" in response.content.decode()


def test_an_unknown_method_is_a_404_with_a_hint(client, refined):
    response = client.get("/rounds/gama/")
    assert response.status_code == 404
    assert "gamma" in response.content.decode()


def test_the_interpreter_shows_correctness_and_no_speed(client, refined, make):
    make.run(refined.gamma, refined.relu, refined.cpu, speedup=3.0)
    make.run(refined.gamma, refined.relu, refined.cpu, round=1, **WRONG)
    page = client.get("/rounds/gamma/?gpu=cpu-interpreter").content.decode()
    assert "Correctness only" in page
    assert 'id="split"' not in page
    assert "3.00x" not in page
    assert "from 1 to <b>0</b>" in page


@pytest.mark.parametrize("visibility", [vocabulary.PRIVATE, vocabulary.UNLISTED])
def test_what_is_not_listed_is_nowhere(client, refined, make, visibility):
    canary = make.submission(make.method("canary"), "canary", visibility=visibility)
    for number in (0, 1):
        make.run(canary, refined.relu, refined.h200, speedup=7.77, round=number)
    assert "canary" not in client.get("/rounds/").content.decode().lower()
    assert client.get("/rounds/canary/").status_code == 404
    assert client.get("/rounds/canary/rounds.csv").status_code == 404


def test_a_hidden_submission_of_a_known_method_adds_nothing(client, refined, make):
    hidden = make.submission(refined.gamma.method, "hidden", visibility=vocabulary.PRIVATE)
    make.run(hidden, refined.relu, refined.h200, speedup=7.77, round=2)
    assert "7.77" not in client.get("/rounds/gamma/").content.decode()
    assert len(found(refined).rounds) == 2


@pytest.mark.parametrize("name", FIGURES)
def test_plotly_accepts_the_figures(client, refined, name):
    go.Figure(json.loads(client.get(f"/rounds/gamma/{name}.json").content))


def test_the_picture_of_correct_tasks_adds_up(client, refined):
    figure = json.loads(client.get("/rounds/gamma/correct.json").content)
    bars = {trace["name"]: trace["y"] for trace in figure["data"]}
    assert bars["correct before too"] == [0, 1]
    assert bars["newly correct"] == [2, 1]
    assert bars["no longer correct"] == [0, -1]


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_csv_with_rows(client, refined, name):
    table = rows(client.get(f"/rounds/gamma/{name}.csv"))
    assert len(table) > 1
    assert len({len(row) for row in table}) == 1


def test_the_method_page_leads_here(client, refined):
    assert "/rounds/gamma/" in client.get("/methods/gamma/").content.decode()
    assert "/rounds/alpha/" not in client.get("/methods/alpha/").content.decode()


@pytest.mark.parametrize(("url", "limit"), [("/rounds/", 13), ("/rounds/gamma/", 13)])
def test_queries_do_not_grow_with_results(client, refined, make, url, limit):
    def queries():
        with CaptureQueriesContext(connection) as captured:
            client.get(url)
        return len(captured)

    before = queries()
    for i in range(4):
        made = make.submission(make.method(f"m{i}"), "x")
        for number in range(3):
            make.run(made, refined.relu, refined.h200, speedup=1.5, round=number)
    make.run(refined.gamma, refined.relu, refined.h200, speedup=1.5, round=2)
    assert queries() == before
    assert before <= limit


def test_new_results_show_at_once(client, refined, make):
    Board.bump()
    assert rows(client.get("/rounds/?format=csv"))[1][3] == "2"
    make.run(refined.gamma, refined.relu, refined.h200, speedup=1.5, round=2)
    Board.bump()
    assert rows(client.get("/rounds/?format=csv"))[1][3] == "3"


def asked(site):
    """What the site keeps of gamma's rounds now."""
    Board.bump()
    now = kept.seen().generation
    gpu = next(gpu for gpu in kept.gpus(now) if gpu.slug == "h200")
    return rounds.refined(now, site.gamma.method_id, gpu)


def test_rounds_stay_as_long_as_their_device_does(refined, make):
    before = asked(refined)
    make.run(refined.beta, refined.gelu, refined.cpu)
    assert asked(refined) is before


@pytest.mark.parametrize(
    "change",
    [
        lambda site, make: make.run(site.gamma, site.relu, site.h200, speedup=3.0, round=2),
        lambda site, make: Audit.objects.create(
            run=site.gamma.candidates.get(task=site.relu, round=1).runs.get(),
            verdict=vocabulary.CHEAT,
            reason="seen",
        ),
        lambda site, make: Task.objects.filter(pk=site.relu.pk).update(digest="0" * 64),
        lambda site, make: Task.objects.filter(pk=site.relu.pk).update(is_draft=True),
        lambda site, make: Submission.objects.filter(pk=site.gamma.pk).update(visibility="private"),
    ],
)
def test_what_is_kept_of_rounds_is_never_old(refined, make, change):
    before = asked(refined)
    change(refined, make)
    assert asked(refined) != before
    assert asked(refined) == found(refined)
