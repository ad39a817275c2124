"""Charts: pure functions whose figures plotly accepts, and whose tables have the same numbers."""

import csv
import io
import json

import plotly.graph_objects as go
import pytest

from leaderboard.charts import correctness, pareto, speedups, verdicts
from leaderboard.charts.base import Table, csv_text, label, log2_ticks
from leaderboard.figures import Interval
from leaderboard.rows import (
    CategoryRow,
    Cell,
    Funnel,
    Heatmap,
    HeatRow,
    MethodRow,
    Spread,
    Standing,
)

EVIL = '<a href="javascript:alert(1)">x</a>'


def method(slug: str, name: str | None = None) -> MethodRow:
    return MethodRow(1, slug, name or slug, "language model", "")


SPREADS = (
    Spread(method("a"), 10, (("gelu", 0.5), ("relu", 2.0), ("tanh", 4.0)), 0, {"wrong": 4}, 3),
    Spread(method("b", EVIL), 10, (), 1, {"build": 9}, 0),
)
HEATMAP = Heatmap(
    (CategoryRow("math", "Math", 4, 36), CategoryRow("loss", "Loss", 0, 6)),
    (
        HeatRow(method("a"), (Cell("counted", 3, 4, 4), Cell("not-applicable"))),
        HeatRow(method("b", EVIL), (Cell("not-attempted", tasks=4), Cell("not-applicable"))),
    ),
)


def standing(slug: str, correct: int, speedup: float | None, name: str | None = None) -> Standing:
    interval = Interval(speedup, speedup * 0.9, speedup * 1.1) if speedup else None
    funnel = Funnel(10, 10, 10, 10, correct, correct)
    return Standing(method(slug, name), 1, 1, 1, 1, False, funnel, interval, correct)


STANDINGS = (
    standing("both", 8, 2.0),
    standing("slower", 8, 1.5),
    standing("fast", 2, 4.0, EVIL),
    standing("untimed", 9, None),
)
FIGURES = {
    "correctness": correctness.figure(HEATMAP),
    "speedups": speedups.figure(SPREADS),
    "verdicts": verdicts.figure(SPREADS),
    "pareto": pareto.figure(STANDINGS),
}


@pytest.mark.parametrize("name", FIGURES)
def test_plotly_accepts_the_figure_and_json_is_strict(name):
    go.Figure(FIGURES[name])
    json.dumps(FIGURES[name], allow_nan=False)


@pytest.mark.parametrize("name", FIGURES)
def test_names_are_text_to_plotly(name):
    text = json.dumps(FIGURES[name])
    assert "<a" not in text
    assert "&lt;a href" in text


@pytest.mark.parametrize("build", [correctness, speedups, verdicts, pareto])
def test_no_rows_make_an_empty_figure(build):
    nothing = Heatmap((), ()) if build is correctness else ()
    go.Figure(build.figure(nothing))
    assert build.table(nothing).rows == ()


def test_heat_map_and_table_say_the_same():
    trace = FIGURES["correctness"]["data"][0]
    assert trace["z"] == [[0.75, None], [None, None]]
    assert trace["text"][0] == ["3/4", "n/a"]
    assert trace["text"][1][0] == "\N{EN DASH}"
    rows = correctness.table(HEATMAP).rows
    assert rows[0] == ("a", "Math", 3, 4, 4, "counted")
    assert rows[2][2] is None


def test_failures_stand_beside_the_speedups():
    table = speedups.table(SPREADS)
    first = dict(zip(table.columns, table.rows[0], strict=True))
    assert (first["minimum"], first["median"], first["maximum"]) == (0.5, 2.0, 4.0)
    assert (first["quarter"], first["three quarters"]) == (1.25, 3.0)
    assert (first["wrong"], first["build"], first["not attempted"]) == (4, 0, 3)
    bars = {trace["name"]: trace["x"] for trace in FIGURES["speedups"]["data"] if "name" in trace}
    assert bars == {"correct": [0, 1], "build": [0, 9], "wrong": [4, 0], "not attempted": [3, 0]}


def test_verdict_bars_add_up_to_all_tasks():
    for row in verdicts.table(SPREADS).rows:
        assert sum(row[2:]) == row[1] == 10


def test_the_front_holds_who_is_not_beaten_in_both():
    assert pareto.front(STANDINGS) == {"both", "fast"}
    assert "untimed" in {row[0] for row in pareto.table(STANDINGS).rows}


def test_ticks_are_powers_of_two_around_one():
    ticks, words = log2_ticks([0.3, 3.0])
    assert ticks == [0.25, 0.5, 1.0, 2.0, 4.0]
    assert words == ["1/4x", "1/2x", "1x", "2x", "4x"]
    many, _ = log2_ticks([1e-6, 1e6])
    assert len(many) <= 22
    assert 1.0 in many


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_csv_text_is_never_a_formula(start):
    (_, (cell,)) = csv.reader(io.StringIO(csv_text(Table(("name",), ((start,),)))))
    assert cell.startswith("'")


def test_csv_keeps_numbers_and_leaves_missing_ones_empty():
    assert csv_text(Table(("a", "b", "c"), ((-1.5, None, 'x"y'),))) == 'a,b,c\r\n-1.5,,"x""y"\r\n'


def test_labels_are_escaped_once():
    assert label("a < b & c") == "a &lt; b &amp; c"
