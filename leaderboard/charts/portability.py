"""Methods and candidates across devices: heat maps, who disagrees, how far a speedup moves."""

import math
from collections.abc import Sequence
from uuid import UUID

from leaderboard.charts.base import Figure, Table, label, layout, significant
from leaderboard.charts.correctness import SCALE
from leaderboard.devices_compared import BIN, binned
from leaderboard.figures import figure as digits
from leaderboard.rows import GpuRow, Result
from leaderboard.selectors.builds import Builds
from leaderboard.selectors.portability import AcrossDevices, OnDevice, Portability
from leaderboard.statistics.correlation import Agreement, Coefficient

PAPER = {"median": 2.15, "mean": 2.73, "maximum": 21.4}  # arXiv 2605.04956, over six GPUs
# Orange below 1.0x, blue above, in log2: told apart by every kind of colour blindness.
DIVERGING = [[0, "#d98f00"], [0.5, "#f4f4f0"], [1, "#0072b2"]]
REACH = 2  # log2 units either side of 1.0x at which the colour ends
MANY_TICKS = 6


def correctness_figure(found: Portability) -> Figure:
    return _heat(
        found,
        [gpu for gpu, _ in found.devices],
        [[_share(cell) for cell in row.cells] for row in found.rows],
        [[_words(cell) for cell in row.cells] for row in found.rows],
        {"zmin": 0, "zmax": 1, "colorscale": SCALE},
    )


def correctness_table(found: Portability) -> Table:
    return Table(
        ("method", "device", "correct", "tasks", "judged", "state"),
        tuple(
            (
                row.method.name,
                gpu.name,
                cell.cell.correct if cell.cell.state == "counted" else None,
                tasks,
                cell.cell.judged,
                cell.reason or cell.cell.state,
            )
            for row in found.rows
            for (gpu, tasks), cell in zip(found.devices, row.cells, strict=True)
        ),
    )


def speedup_figure(found: Portability) -> Figure:
    """Geometric means on each GPU, coloured by log2 around 1.0x."""
    values = [[_speed(cell) for cell in _timing(found, row)] for row in found.rows]
    return _heat(
        found,
        found.timing,
        [[None if v is None else round(math.log2(v), 3) for v in row] for row in values],
        [[f"{digits(v)}x" if v else digits(None) for v in row] for row in values],
        {"zmin": -REACH, "zmax": REACH, "zmid": 0, "colorscale": DIVERGING},
    )


def relative_figure(found: Portability) -> Figure:
    """Each method's speedup as a share of that on its own best GPU."""
    shares = [[_relative(row, gpu) for gpu in found.timing] for row in found.rows]
    return _heat(
        found,
        found.timing,
        [[None if v is None else significant(v) for v in row] for row in shares],
        [[digits(v) for v in row] for row in shares],
        {"zmin": 0, "zmax": 1, "colorscale": SCALE},
    )


SPEEDUP_COLUMNS = (
    *("method", "GPU", "speedup", "speedup low", "speedup high", "timed"),
    *("share of own best", "share low", "share high", "timed on every GPU"),
)


def speedup_table(found: Portability) -> Table:
    return Table(
        SPEEDUP_COLUMNS,
        tuple(
            (row.method.name, gpu.name, *_speed_numbers(cell), *_relative_numbers(row, gpu))
            for row in found.rows
            for gpu, cell in zip(found.timing, _timing(found, row), strict=True)
        ),
    )


def disagreements_table(found: Portability) -> Table:
    return Table(
        ("method", "task", "device", "outcome", "verdict", "run"),
        tuple(
            (line.method.name, line.task.slug, gpu.name, outcome, result.verdict, str(result.run))
            for line in found.disagreements
            for outcome, side in (("passed", line.found.passed), ("failed", line.found.failed))
            for gpu, result in side
        ),
    )


PAIR_COLUMNS = (
    *("device", "other device", "judged on both", "both", "only the first", "only the other"),
    *("neither", "kernels timed on both", "their tasks", "Spearman", "Spearman low"),
    *("Spearman high", "Kendall", "Kendall low", "Kendall high", "methods ranked on both"),
    *("Spearman of places", "Kendall of places"),
)


def pairs_table(found: Portability) -> Table:
    return Table(
        PAIR_COLUMNS,
        tuple(
            (
                *(pair.left.name, pair.right.name, pair.judged, pair.both, pair.only_left),
                *(pair.only_right, pair.neither),
                *_kernel_numbers(pair.kernels),
                *_place_numbers(pair.methods),
            )
            for pair in found.pairs
        ),
    )


def ratios_figure(found: Portability) -> Figure:
    """Counts over quarter powers of two, with our median and the paper's as lines."""
    bins = binned(found.ratio_values)
    ticks = range(0, max(len(bins), int(4 / BIN)) + 1, int(1 / BIN))
    step = 1 + len(ticks) // MANY_TICKS
    kept = [tick for i, tick in enumerate(ticks) if i % step == 0]
    return {
        "data": [
            {
                "type": "bar",
                "x": [place + 0.5 for place in range(len(bins))],
                "y": [count for _, _, count in bins],
                "width": [0.92] * len(bins),
                "text": [f"{digits(low)}x to {digits(high)}x" for low, high, _ in bins],
                "textposition": "none",
                "hovertemplate": "%{text}: %{y} candidates<extra></extra>",
                "marker": {"color": "#1f86c4"},
            }
        ],
        "layout": layout(
            7,
            xaxis={
                "tickvals": kept,
                "ticktext": [f"{2 ** (tick * BIN):g}x" for tick in kept],
                "title": {"text": "largest / smallest speedup of a candidate, log scale"},
                "range": [0, max(len(bins), ticks[-1])],
            },
            yaxis={"title": {"text": "candidates"}, "rangemode": "tozero", "automargin": True},
            **_medians(found),
        ),
    }


RATIO_COLUMNS = (
    *("method", "task", "ratio", "GPUs", "best on", "best speedup", "worst on", "worst speedup"),
    *("best run", "worst run"),
)


def ratios_table(found: Portability) -> Table:
    """Every candidate, largest first."""
    return Table(
        RATIO_COLUMNS,
        tuple(
            (
                line.method.name,
                line.task.slug,
                line.found.ratio,
                line.found.gpus,
                *(v for gpu, r in (line.found.best, line.found.worst) for v in _end(gpu, r)),
                *_runs(line.found.best[1].run, line.found.worst[1].run),
            )
            for line in found.ratios
        ),
    )


def bins_table(found: Portability) -> Table:
    """The picture's bars."""
    return Table(("from", "below", "candidates"), binned(found.ratio_values))


def _heat(
    found: Portability,
    gpus: Sequence[GpuRow],
    values: list[list[float | None]],
    texts: list[list[str]],
    scale: dict,
) -> Figure:
    return {
        "data": [
            {
                "type": "heatmap",
                "x": [label(gpu.name) for gpu in gpus],
                "y": [label(row.method.name) for row in found.rows],
                "z": values,
                "text": texts,
                "texttemplate": "%{text}",
                "hovertemplate": "%{y}<br>%{x}: %{text}<extra></extra>",
                "showscale": False,
                "xgap": 2,
                "ygap": 2,
                **scale,
            }
        ],
        "layout": layout(
            len(found.rows),
            yaxis={"autorange": "reversed", "automargin": True, "type": "category"},
            xaxis={"side": "top", "automargin": True, "type": "category"},
        ),
    }


def _medians(found: Portability) -> dict:
    lines = [(PAPER["median"], "dot", "the paper's median", 1.0)]
    if found.summary:
        lines.append((found.summary.median, "solid", "median here", 1.07))
    return {
        "shapes": [
            {
                "type": "line",
                "x0": math.log2(value) / BIN,
                "x1": math.log2(value) / BIN,
                "y0": 0,
                "y1": 1,
                "yref": "paper",
                "line": {"width": 1.5, "dash": dash, "color": "#888888"},
            }
            for value, dash, _, _ in lines
        ],
        "annotations": [
            {
                "x": math.log2(value) / BIN,
                "y": height,
                "yref": "paper",
                "xanchor": "left",
                "yanchor": "bottom",
                "showarrow": False,
                "text": f"{whose}: {digits(value)}x",
            }
            for value, _, whose, height in lines
        ],
    }


def _share(cell: OnDevice) -> float | None:
    return round(cell.cell.share, 4) if cell.cell.state == "counted" else None


def _words(cell: OnDevice) -> str:
    if cell.cell.state == "counted":
        return f"{cell.cell.correct}/{cell.cell.tasks}"
    return digits(None)


def _timing(found: Portability, row: AcrossDevices) -> list[OnDevice]:
    """The row's cells on devices that time."""
    return [cell for (gpu, _), cell in zip(found.devices, row.cells, strict=True) if gpu.can_time]


def _speed(cell: OnDevice) -> float | None:
    return cell.speedup.value if cell.speedup else None


def _speed_numbers(cell: OnDevice) -> tuple[float | None, float | None, float | None, int]:
    if cell.speedup is None:
        return (None, None, None, cell.timed)
    return (cell.speedup.value, cell.speedup.low, cell.speedup.high, cell.timed)


def _relative(row: AcrossDevices, gpu: GpuRow) -> float | None:
    share = row.relative.shares.get(gpu.id) if row.relative else None
    return share.value if share else None


def _relative_numbers(row: AcrossDevices, gpu: GpuRow) -> tuple[float | int | None, ...]:
    share = row.relative.shares.get(gpu.id) if row.relative else None
    if row.relative is None or share is None:
        return (None, None, None, None)
    return (share.value, share.low, share.high, row.relative.n)


def _kernel_numbers(found: Agreement | None) -> tuple[float | int | None, ...]:
    if found is None:
        return (None,) * 8
    return (found.n, found.independent, *_three(found.spearman), *_three(found.kendall))


def _place_numbers(found: Agreement | None) -> tuple[float | int | None, ...]:
    if found is None:
        return (None, None, None)
    return (found.n, _three(found.spearman)[0], _three(found.kendall)[0])


def _three(found: Coefficient | None) -> tuple[float | None, float | None, float | None]:
    if found is None:
        return (None, None, None)
    if found.interval is None:
        return (found.value, None, None)
    return (found.value, found.interval.low, found.interval.high)


def _end(gpu: GpuRow, result: Result) -> tuple[str, float | None]:
    return gpu.name, result.speedup.value if result.speedup else None


def _runs(*runs: UUID) -> tuple[str, ...]:
    return tuple(map(str, runs))


def builds_table(found: Builds) -> Table:
    return Table(
        ("method", "architecture", "candidates", "built", "failed", "untraced", "spilling"),
        tuple(
            (
                *(row.method.name, architecture.slug, row.candidates),
                *(cell.built, cell.failed, cell.untraced, cell.spilling),
            )
            for row in found.rows
            for architecture, cell in zip(found.architectures, row.cells, strict=True)
        ),
    )
