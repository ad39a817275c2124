"""Comparing methods: what is counted, what is said, and what the page does with odd questions."""

import csv
import io
import json
from uuid import UUID

import plotly.graph_objects as go
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmark import vocabulary
from benchmark.models import Board
from leaderboard import comparison, sentences
from leaderboard.charts import compare as charts
from leaderboard.charts import ecdf
from leaderboard.figures import Interval
from leaderboard.filters import Choice
from leaderboard.rows import COUNTED, STALE, SUSPECT, GpuRow, MethodRow, Result, TaskRow
from leaderboard.selectors.board import BoardData

H200 = GpuRow(1, "h200", "H200", "sm_90", True, 1)
CPU = GpuRow(2, "cpu-interpreter", "CPU interpreter", "", False, 1)
EVIL = '<a href="javascript:alert(1)">x</a>'


def method(id: int, name: str) -> MethodRow:
    return MethodRow(id, name.lower(), name, "language model", "")


A, B = method(1, "Ann"), method(2, "Bob")


def result(of: MethodRow, task: int, what: float | str | None, state: str = COUNTED) -> Result:
    """A speedup; None for solved without one; a verdict for a failure."""
    failed = isinstance(what, str)
    speedup = Interval(what, what * 0.9, what * 1.1) if isinstance(what, float) else None
    verdict = what if failed else vocabulary.PASSED
    stage = "check" if failed else "time"
    return Result(of.id, task, 0, str(UUID(int=100 * of.id + task)), verdict, stage, speedup, state)


def board(first, second, gpu=H200, names=(A, B)) -> BoardData:
    """From a column of results each; "-" is no result."""
    tasks = tuple(TaskRow(i, f"task{i}", "math", 1, ("float32",), True) for i in range(len(first)))
    results = {
        (of.id, i): what if isinstance(what, Result) else result(of, i, what)
        for of, column in zip(names, (first, second), strict=True)
        for i, what in enumerate(column)
        if what != "-"
    }
    return BoardData(Choice(gpu), tasks, names, results)


def compared(first, second, **more):
    data = board(first, second, **more)
    return comparison.compare(data, *data.methods)


WRONG = vocabulary.WRONG_VALUES
MIXED = compared([2.0, 3.0, WRONG, WRONG, 1.0, "-", "-"], [1.0, WRONG, 1.0, WRONG, "-", 1.0, "-"])


def test_every_task_falls_into_one_cell():
    assert sum(len(pairs) for pairs in MIXED.groups.values()) == MIXED.tasks == 7
    assert MIXED.count("solved", "solved") == 1
    assert (MIXED.mcnemar.only_first, MIXED.mcnemar.only_second) == (1, 1)
    assert MIXED.solved == (3, 3)
    assert MIXED.solved_of_shared == (2, 2)
    assert MIXED.shared == 4


def test_coverage_names_the_tasks_of_one_and_of_none():
    only_first, only_second, neither = MIXED.coverage
    assert [pair.task.slug for pair in only_first] == ["task4"]
    assert [pair.task.slug for pair in only_second] == ["task5"]
    assert [pair.task.slug for pair in neither] == ["task6"]


def test_held_back_and_stale_results_are_in_no_test():
    c = compared([result(A, 0, 2.0, SUSPECT), result(A, 1, 2.0, STALE)], [1.0, 1.0])
    assert c.shared == 0
    assert c.speed.ratio is None
    assert [pair.words[0] for pair in c.pairs] == ["suspect", "stale"]
    assert "No task was judged for both" in sentences.correctness(c)


def test_the_ratio_is_of_tasks_that_both_solved_and_were_timed():
    c = compared([2.0, 8.0, None, 1.0], [1.0, 2.0, 1.0, WRONG])
    assert c.speed.pairs == 2
    assert c.speed.ratio.value == pytest.approx(8**0.5)
    assert [pair.ratio for pair in c.timed] == [4.0, 2.0]


def test_movers_are_beyond_the_band_and_furthest_first():
    c = compared([1.0, 4.0, 2.0, 1.02, 1.0], [1.0, 1.0, 1.0, 1.0, 3.0])
    first, second = c.movers(most=1)
    assert [pair.task.slug for pair in first] == ["task1"]
    assert [pair.task.slug for pair in second] == ["task4"]
    assert [len(side) for side in c.movers(most=9)] == [2, 1]


def test_swapping_inverts_everything():
    data = board([2.0] * 6 + [WRONG], [1.0] * 7)
    c, d = comparison.compare(data, A, B), comparison.compare(data, B, A)
    assert c.speed.ratio.value == pytest.approx(1 / d.speed.ratio.value)
    assert c.speed.sign.ahead == d.speed.sign.behind == 6
    assert sentences.speed(c) == sentences.speed(d)
    assert sentences.correctness(c) == sentences.correctness(d)


CORRECT = [
    ([1.0] * 9 + [WRONG], [WRONG] * 10, "Ann solves 9 more of 10 tasks than Bob (9 against 0; "),
    ([WRONG], [1.0], "Bob solves 1 more of 1 task than Ann (1 against 0), too little to tell"),
    ([1.0, WRONG], [WRONG, 1.0], "both solve 1 of 2 tasks and can't be told apart by that: each"),
    ([1.0, WRONG], [1.0, WRONG], "Ann and Bob solve the same 1 of 2 tasks."),
    ([WRONG], [WRONG], "Ann and Bob solve none of 1 task."),
    ([1.0, "-"], [1.0, 1.0], "On the 1 of 2 tasks judged for both, Ann and Bob solve the same 1 t"),
    (["-"], [1.0], "No task was judged for both, so they can't be compared."),
]


@pytest.mark.parametrize(("first", "second", "said"), CORRECT)
def test_what_is_said_about_correctness(first, second, said):
    assert said in sentences.correctness(compared(first, second))


SPEEDS = [
    ([2.0] * 6, "Ann is 2.00x [2.00, 2.00] as fast as Bob (ahead on 6 of the 6 tasks"),
    ([0.5] * 6, "Bob is 2.00x [2.00, 2.00] as fast as Ann (ahead on 6 of the 6 tasks"),
    ([2.0] * 5, "Both solve only 5 tasks that were timed, too few to tell who is faster"),
    ([1.01, 0.99] * 4, "they are equally fast to within 5 %"),
    ([2.0, 0.5] * 4, "they can't be told apart in speed"),
    ([1.08, 1.0] * 9, "Ann is 1.04x [1.02, 1.06] as fast as Bob: steadily, but by less than"),
    ([64.0] * 4 + [1.0] * 6, "as only one of mean and tasks says so: Ann is 5.28x"),
    (
        [2.0, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 0.9],
        "as only one of mean and tasks says so: Ann is 1.23x [1.08, 1.45]",
    ),
    ([0.01] + [1.1] * 20, "who is faster can't be told, as mean and tasks disagree: Bob"),
    ([WRONG], "No task was solved and timed for both"),
]


@pytest.mark.parametrize(("ratios", "said"), SPEEDS)
def test_what_is_said_about_speed(ratios, said):
    assert said in sentences.speed(compared(ratios, [1.0] * len(ratios)))


def test_mean_and_tasks_may_point_apart():
    c = compared([0.01] + [1.1] * 20, [1.0] * 21)
    assert "but Ann is ahead on 20 of the 21 tasks" in sentences.speed(c)


def test_a_device_that_cannot_time_compares_no_speed():
    c = compared([None], [None], gpu=CPU)
    assert sentences.speed(c) == "Speed is not compared: CPU interpreter judges correctness only."


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (0.0004, "p < 0.001"),
        (0.0123, "p = 0.012"),
        (0.8145, "p = 0.81"),
        (1, "p = 1.0"),
        (0.6, "p = 0.60"),
    ],
)
def test_p_values_have_two_digits(p, text):
    assert sentences.p_text(p) == text


def test_p_values_are_called_the_pairs_own():
    assert sentences.multiplicity(2) == "Each p value is for this pair only."
    assert "15 pairs" in sentences.multiplicity(6)
    assert "p < 0.003 instead of 0.05" in sentences.multiplicity(6)
    assert "1225 pairs" in sentences.multiplicity(50)
    assert "p < 0.00004 " in sentences.multiplicity(50)


def curves(*columns):
    data = board(*columns)
    return comparison.curves(data, data.methods)


def test_fast_p_counts_every_task():
    ann, bob = curves([2.0, 1.0, WRONG, "-"], [None, 0.5, WRONG, WRONG])
    assert (ann.tasks, ann.solved) == (4, 2)
    assert [(step.at, step.share) for step in ann.steps] == [(1.0, 0.5), (2.0, 0.25)]
    assert bob.solved == 2
    assert bob.at(0.1).share == 0.25  # solved without a time has no speedup


def test_the_drawn_curve_is_the_table():
    """Walking the picture's "vh" steps gives the table's share at each p."""
    found = curves([2.0, 1.0, WRONG, 5.0], [WRONG] * 4)
    figure = ecdf.figure(found)
    go.Figure(figure)
    json.dumps(figure, allow_nan=False)
    drawn = {t["name"]: t for t in figure["data"] if "name" in t}
    for name, p, _, _, share, _, _ in ecdf.table(found).rows:
        trace = drawn[name]
        after = next((i for i, x in enumerate(trace["x"]) if x >= p), len(trace["x"]) - 1)
        assert trace["y"][after] == share, (name, p)


def test_the_pairs_picture_is_the_pairs_table():
    c = compared([2.0, 1.0, 0.4, WRONG], [1.0, 1.0, 1.6, 1.0])
    figure = charts.figure(c)
    go.Figure(figure)
    points = {
        (x, y)
        for trace in figure["data"]
        if trace["mode"] == "markers"
        for x, y in zip(trace["x"], trace["y"], strict=True)
    }
    rows = [dict(zip(charts.pairs(c).columns, row, strict=True)) for row in charts.pairs(c).rows]
    assert points == {(row["speedup_b"], row["speedup_a"]) for row in rows}
    assert [row["ahead"] for row in rows] == ["Ann", "even", "Bob"]


def test_names_are_text_to_plotly():
    data = board([2.0], [1.0], names=(method(1, EVIL), method(2, EVIL)))
    drawn = charts.figure(comparison.compare(data, *data.methods))
    for figure in (drawn, ecdf.figure(comparison.curves(data, data.methods))):
        text = json.dumps(figure)
        assert "<a" not in text
        assert "&lt;a href" in text


def test_nothing_to_draw_is_an_empty_figure():
    go.Figure(charts.figure(compared([WRONG], [WRONG])))
    go.Figure(ecdf.figure(()))
    go.Figure(ecdf.figure(curves([], [])))
    assert ecdf.table(curves([], [])).rows == ()


# The page


@pytest.fixture
def three(site, make):
    """Besides alpha and beta a third that solves what alpha solves, slower."""
    gamma = make.submission(make.method("gamma"), "gamma-set")
    site.gamma_runs = [
        make.run(gamma, site.relu, site.h200, speedup=1.0),
        make.run(gamma, site.gelu, site.h200, speedup=1.5),
    ]
    return site


PAIR = "/compare/?m=alpha&m=gamma"


def body(client, url: str, status: int = 200) -> str:
    response = client.get(url)
    assert response.status_code == status
    return response.content.decode()


@pytest.mark.django_db
def test_an_empty_site_has_nothing_to_compare(client, make):
    assert "Nothing has been judged yet" in body(client, "/compare/")
    assert client.get("/compare/pairs.json").status_code == 404
    make.gpu()
    assert "Nothing to compare yet" in body(client, "/compare/")


def test_the_page_says_who_is_ahead_and_links_to_the_runs(client, three):
    page = body(client, PAIR)
    assert "Alpha" in page
    assert "On the 2 of 3 tasks judged for both, Alpha and Gamma solve the same 2 tasks" in page
    assert "too few to tell who is faster" in page
    assert "Each p value is for this pair only" in page
    assert f"/runs/{three.fast.uuid}/" in page
    assert f"/runs/{three.gamma_runs[0].uuid}/" in page
    assert "1 judged for neither" in page


def test_the_order_of_the_url_is_the_order_of_the_page(client, three):
    assert "<title>Gamma against Alpha" in body(client, "/compare/?m=gamma&m=alpha")
    assert "m=gamma&amp;m=alpha&amp;gpu=h200" in body(client, PAIR)  # to swap them


def test_more_methods_add_curves_only(client, three):
    page = body(client, PAIR + "&m=beta")
    assert "<title>Alpha against Gamma" in page
    names = {row["method"] for row in rows(client, "/compare/ecdf.csv?m=alpha&m=gamma&m=beta")}
    assert names == {"Alpha", "Beta", "Gamma"}


def test_without_two_methods_there_is_a_page_to_choose_from(client, three):
    page = body(client, "/compare/")
    assert page.count('<select name="m">') == 2
    assert "Beside each other in the ranking" in page
    page = body(client, "/compare/?m=alpha&m=")
    assert "Compare Alpha with" in page
    assert "?m=alpha&amp;m=gamma&amp;gpu=h200" in page
    assert "?m=alpha&amp;m=alpha" not in page


def test_a_method_is_not_compared_with_itself(client, three):
    page = body(client, "/compare/?m=alpha&m=alpha", 400)
    assert "Alpha can&#x27;t be compared with itself" in page
    assert '<select name="m">' in page
    assert "<title>Alpha against Beta" in body(client, "/compare/?m=alpha&m=alpha&m=beta")


def test_six_methods_are_too_many(client, three, make):
    slugs = [f"more{i}" for i in range(6)]
    for slug in slugs:
        make.run(make.submission(make.method(slug)), three.relu, three.h200, speedup=1.0)
    page = body(client, "/compare/?" + "&".join(f"m={slug}" for slug in slugs), 400)
    assert "6 methods are too many for one picture: choose at most 5" in page


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("/compare/?m=alhpa&m=beta", "Did you mean alpha"),
        ("/compare/?m=alpha&m=beta&gpu=h20", "h200"),
        ("/compare/?m=alpha&m=beta&category=maths", "math"),
        ("/compare/scatter.json?m=alpha&m=beta", "Known: ecdf, pairs"),
        ("/compare/movers.csv?m=alpha&m=beta", "tasks"),
        ("/compare/outcomes.json?m=alpha&m=beta", "ecdf, pairs"),
        ("/compare/pairs.csv?m=alpha", "Name two methods"),
        ("/compare/pairs.csv?m=alpha&m=alpha", "can&#x27;t be compared with itself"),
    ],
)
def test_what_is_not_there_is_a_404_with_a_hint(client, three, url, hint):
    assert hint in body(client, url, 404)


def test_methods_without_common_tasks_say_so(client, three, make):
    delta = make.submission(make.method("delta"))
    make.run(delta, three.add, three.h200, speedup=1.0)
    page = body(client, "/compare/?m=alpha&m=delta")
    assert "No task was judged for both, so they can&#x27;t be compared." in page
    assert "No common ground" in page
    assert "2 judged for Alpha only" in page


def test_a_method_that_was_not_judged_here_says_why(client, three):
    page = body(client, "/compare/?m=alpha&m=beta&gpu=cpu-interpreter")
    assert "Beta is not ranked here:" in page
    assert "Speed is not compared: CPU interpreter judges correctness only." in page
    assert "fast_p" not in page


def test_the_choice_narrows_the_comparison(client, three):
    assert "1 task ·" in body(client, PAIR + "&category=math")
    found = rows(client, "/compare/tasks.csv?m=alpha&m=gamma&category=activation")
    assert [row["task"] for row in found] == ["gelu", "relu"]


def test_lanes_never_mix(client, three, make):
    make.run(three.beta, three.gelu, three.h200, speedup=77.0, origin=vocabulary.CLAIMED)
    url = "/compare/?m=alpha&m=beta"
    assert "77.0x" not in body(client, url)
    page = body(client, url + "&lane=claimed")
    assert "Claimed, not measured" in page
    assert "77.0x" in page


def rows(client, url: str) -> list[dict[str, str]]:
    response = client.get(url)
    assert response["Content-Type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(response.content.decode())))


def test_the_tables_add_up(client, three):
    query = "?m=alpha&m=beta"
    cells = rows(client, f"/compare/outcomes.csv{query}")
    tasks = rows(client, f"/compare/tasks.csv{query}")
    for cell in cells:
        outcomes = cell["outcome_a"], cell["outcome_b"]
        listed = [row for row in tasks if (row["outcome_a"], row["outcome_b"]) == outcomes]
        assert len(listed) == int(cell["tasks"])
    assert {row["mcnemar_p"] for row in cells} == {"1.0"}
    relu = next(row for row in tasks if row["task"] == "relu")
    assert (relu["outcome_b"], relu["word_b"], relu["ratio"]) == ("failed", "wrong", "")
    (first, second) = rows(client, "/compare/pairs.csv?m=alpha&m=gamma")
    assert (first["task"], first["ratio"], first["ahead"]) == ("relu", "2.0", "Alpha")
    assert second["ahead"] == "even"


def test_the_board_draws_fast_p_too(client, three):
    found = rows(client, "/charts/ecdf.csv")
    at_two = {row["method"]: row["tasks at least p"] for row in found if row["p"] == "2.0"}
    assert at_two == {"Alpha": "1", "Beta": "0", "Gamma": "0"}
    assert len(client.get("/charts/ecdf.json").json()["data"]) == 9


def test_names_are_data(client, three, make):
    evil = make.submission(make.method("evil", name=f"={EVIL}<script>alert(1)</script>"))
    make.run(evil, three.relu, three.h200, speedup=9.0)
    for url in ("/compare/", "/compare/?m=evil", "/compare/?m=evil&m=alpha"):
        page = body(client, url)
        assert "<script>alert" not in page
        assert 'href="javascript' not in page
    for name in ("outcomes", "pairs", "ecdf", "tasks"):
        for row in rows(client, f"/compare/{name}.csv?m=evil&m=alpha"):
            assert not any(cell.startswith("=") for cell in row.values())


def test_private_and_withdrawn_methods_are_unknown(client, three, make):
    owner = User.objects.create_user("owner")
    secret = make.submission(
        make.method("canaryzq7"), visibility=vocabulary.PRIVATE, submitted_by=owner
    )
    make.run(secret, three.relu, three.h200, speedup=9.0)
    assert "canaryzq7" not in body(client, "/compare/") + body(client, PAIR)
    page = body(client, "/compare/?m=alpha&m=canaryzq", 404)
    assert "canaryzq7" not in page
    assert body(client, "/compare/?m=alpha&m=canaryzq7", 404)


def test_a_comparison_reads_what_the_board_reads(client, three):
    counts = []
    for url in ("/leaderboard/", PAIR, PAIR):
        with CaptureQueriesContext(connection) as queries:
            client.get(url)
        counts.append(len(queries))
    assert counts[0] <= 8
    assert counts[1] <= counts[0]
    with CaptureQueriesContext(connection) as queries:
        client.get("/compare/pairs.json?m=alpha&m=gamma")
    assert len(queries) <= counts[0]


def test_a_comparison_only_reads(client, three):
    assert client.post(PAIR).status_code == 405
    response = client.get(PAIR)
    assert not response.cookies


def test_who_has_it_already_gets_no_comparison_again(client, three, make):
    Board.bump()
    first = client.get(PAIR)
    again = client.get(PAIR, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    make.run(three.alpha, three.add, three.h200, speedup=5.0)
    Board.bump()
    changed = client.get(PAIR, headers={"If-None-Match": first["ETag"]})
    assert (changed.status_code, b"1 judged for Alpha only" in changed.content) == (200, True)


def test_the_leaderboard_and_a_method_lead_here(client, three):
    page = body(client, "/leaderboard/?category=activation")
    assert page.count('name="m"') == 3
    assert 'action="/compare/"' in page
    assert "/compare/?m=alpha" in body(client, "/methods/alpha/")
