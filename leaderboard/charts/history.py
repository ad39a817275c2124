"""A method over time: solved tasks and geometric-mean speedup after each submission."""

import math

from leaderboard.charts.base import COLOURS, Figure, Table, label, layout, significant
from leaderboard.selectors.history import JUDGE, History, Mark, Point

MARK_COLOURS = {JUDGE: "#a05fb5"}
TASKS_COLOUR = "#b8860b"
# Means move by parts of an octave, so that the powers of two are too far apart here.
TICKS = (0.0625, 0.125, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0, 16.0)
LEAST_SPAN, ROOM = 1.4, 1.1  # the axis goes at least from 1/1.4x to 1.4x, and a tenth beyond
UPPER, LOWER = [0.56, 1], [0, 0.42]  # shares of the height: solved above, speedup below


def figure(history: History) -> Figure:
    """Two pictures over one time axis; the lower one is left out where nothing is timed."""
    timed = [point for point in history.points if point.geometric_mean]
    data = [_solved(history)]
    axes = {"yaxis": _solved_axis(history, UPPER if timed else [0, 1])}
    if timed:
        data.append(_speedups(timed))
        axes["yaxis2"] = _speedup_axis(timed)
    return {
        "data": data,
        "layout": layout(
            14 if timed else 9,
            showlegend=False,
            xaxis={"type": "date", "anchor": "y2" if timed else "y"},
            **axes,
            shapes=[_line(mark) for mark in history.marks],
            annotations=[_words(mark, i) for i, mark in enumerate(history.marks)],
        ),
    }


def table(history: History) -> Table:
    """Submissions and marks by time; a mark has its words and no numbers."""
    columns = ("time", "what", "entered", "judged", "solved", "geometric mean", "timed", "stale")
    rows = [(point.at, _row(point)) for point in history.points]
    blank = (None,) * 7
    rows += [(mark.at, (_time(mark), mark.text, *blank)) for mark in history.marks]
    return Table((*columns, "judge"), tuple(row for _, row in sorted(rows, key=lambda r: r[0])))


def _row(point: Point) -> tuple:
    counts = (point.entered, point.judged, point.solved, point.geometric_mean, point.timed)
    return (_time(point), point.label, *counts, point.stale, ", ".join(point.judges))


def _solved(history: History) -> dict:
    points = history.points
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [point.at.isoformat() for point in points],
        "y": [point.solved for point in points],
        "text": [label(f"{p.label}: {p.solved} solved of {p.judged} judged") for p in points],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"shape": "hv", "color": COLOURS["correct"]},
        "marker": {"size": 8, "color": COLOURS["correct"]},
        "cliponaxis": False,
    }


def _speedups(timed: list[Point]) -> dict:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "yaxis": "y2",
        "x": [point.at.isoformat() for point in timed],
        "y": [significant(point.geometric_mean or 1) for point in timed],
        "text": [label(f"{point.label}, n = {point.timed}") for point in timed],
        "hovertemplate": "%{text}: %{y:.3g}x<extra></extra>",
        "line": {"shape": "hv", "color": COLOURS["fast"]},
        "marker": {"size": 8, "symbol": "diamond", "color": COLOURS["fast"]},
        "cliponaxis": False,
    }


def _solved_axis(history: History, domain: list[float]) -> dict:
    most = max([1, *(point.judged for point in history.points)])
    title = {"text": "tasks solved", "standoff": 12}
    return {"domain": domain, "range": [0, most * 1.08], "automargin": True, "title": title}


def _speedup_axis(timed: list[Point]) -> dict:
    means = [point.geometric_mean or 1 for point in timed]
    ends = (min([1 / LEAST_SPAN, *means]) / ROOM, max([LEAST_SPAN, *means]) * ROOM)
    ticks = [tick for tick in TICKS if ends[0] <= tick <= ends[1]]
    return {
        "domain": LOWER,
        "type": "log",
        "range": [round(math.log10(end), 4) for end in ends],
        "tickvals": ticks,
        "ticktext": [f"{tick:g}x" for tick in ticks],
        "automargin": True,
        "title": {"text": "geometric mean", "standoff": 12},
    }


def _line(mark: Mark) -> dict:
    colour = MARK_COLOURS.get(mark.kind, TASKS_COLOUR)
    at = mark.at.isoformat()
    line = {"width": 1, "dash": "dash", "color": colour}
    return {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": line}


def _words(mark: Mark, position: int) -> dict:
    """Above the picture; every other one a little higher, so that neighbours stay readable."""
    return {
        "x": mark.at.isoformat(),
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "yshift": 14 * (position % 2),
        "showarrow": False,
        "text": label(mark.text),
        "font": {"size": 11, "color": MARK_COLOURS.get(mark.kind, TASKS_COLOUR)},
    }


def _time(of: Point | Mark) -> str:
    return of.at.isoformat(timespec="minutes")
