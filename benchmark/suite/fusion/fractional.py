"""Fractional max pooling: windows at random places."""

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark import vocabulary
from benchmark.suite.checks import FALSE_ALARM, _answers, _named, _native, _wrong_form
from benchmark.suite.cost import per_element
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments, Comparison, Trial

fusion = category("Fusion")
COUNTED = 16  # windows of a row that chance is worked out from: more only make it rarer


def starts(size: int, kernel: int, count: int, device: str) -> torch.Tensor:
    """(2, count) places at which each window may start: a number u moves them all, and
    floor((i + u) a) - floor(u a) is floor(i a) or one more. The last one ends at the edge.
    """
    step = (size - kernel) / (count - 1) if count > 1 else 0.0
    first = torch.floor(torch.arange(count, dtype=torch.float64) * step + 1e-9).long()
    late = torch.minimum(first + 1, torch.tensor(size - kernel))
    late[0] = 0
    first[-1] = late[-1] = size - kernel
    return torch.stack((first, late)).to(device)


def layouts(size: int, kernel: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(layouts, windows) places of the first windows, `COUNTED` at most, in each way that u may lay
    them, and (layouts,) its probability: the length of the u in [0, 1) that lay them so.
    """
    step = (size - kernel) / (count - 1) if count > 1 else 0.0
    numbers = torch.arange(min(count, COUNTED), dtype=torch.float64)
    moved = numbers[:-1] if count <= COUNTED else numbers  # the last one ends at the edge
    whole = torch.arange(math.floor((len(numbers) + 1) * step) + 1, dtype=torch.float64)
    # A window moves on where (i + u) step is a whole number.
    edges = (whole / step - moved[:, None]).flatten() if step and len(moved) else numbers[:0]
    edges = torch.cat((edges[(edges > 0) & (edges < 1)], torch.tensor((0.0, 1.0)))).sort().values
    lengths, middles = edges.diff(), (edges[1:] + edges[:-1]) / 2
    kept = lengths > 1e-9  # the rest is one edge, reached by two roundings
    lengths, middles = lengths[kept], middles[kept, None]
    places = (torch.floor((numbers + middles) * step) - torch.floor(middles * step)).long()
    if count <= COUNTED:
        places[:, -1] = size - kernel
    places, which = torch.unique(places, dim=0, return_inverse=True)
    return places, torch.zeros(len(places), dtype=lengths.dtype).index_add(0, which, lengths)


def chance_of_twins(image: torch.Tensor, kernel: tuple, counts: tuple, enough: float) -> float:
    """At most how probable it is that two draws of (..., H, W) planes give equal values: of all
    planes together, or of so many that it is below `enough`.
    """
    tall, wide = (layouts(image.shape[d], kernel[d], counts[d]) for d in (-2, -1))
    chances = torch.outer(tall[1], wide[1]).flatten()
    chance = 1.0
    for plane in image.flatten(0, -3):
        rows = plane.cpu().unfold(0, kernel[0], 1).amax(-1)[tall[0]]
        values = rows.unfold(-1, kernel[1], 1).amax(-1)[..., wide[0]]  # (tall, h, wide, w)
        outputs = values.transpose(1, 2).flatten(0, 1).flatten(1)
        _, which = torch.unique(outputs, dim=0, return_inverse=True)
        alike = torch.zeros_like(chances).index_add(0, which, chances)
        chance *= float(alike.square().sum())
        if chance < enough:
            break
    return chance


def pair(value) -> tuple:
    """A number for both dimensions, or one for each."""
    return value if isinstance(value, tuple) else (value, value)


@dataclass(frozen=True)
class RandomWindows:
    """Each element must be the largest of a window that may lie there, all of a row (a column) of
    windows at the same height (width). Indices must lie in the window's reach and hold the value.
    Draws must differ, unless two honest ones are alike more often than once in 1 / `alpha` trials:
    few layouts of the windows, or equal maxima in many.
    """

    alpha: float = FALSE_ALARM

    def judge(self, trial: Trial) -> Comparison:
        native = _native(trial)[1]
        wrong = _wrong_form(dict(_named(native)), _answers(trial))
        if wrong:
            return wrong
        call: dict[str, Any] = dict(trial.arguments.kwargs)
        image, kernel = trial.arguments.args
        values = native[0] if isinstance(native, tuple) else native
        image, kernel = torch.relu(image), pair(kernel)
        places = [
            starts(image.shape[d], kernel[d], values.shape[d], str(image.device)) for d in (-2, -1)
        ]
        chosen = []
        for draw, output in enumerate(trial.outputs):
            got = output[0] if call.get("return_indices") else output
            rows, columns = self._fitting(image, kernel, places, got)
            if not bool(rows.any(0).all() & columns.any(0).all()):
                return self._wrong(f"draw {draw}: elements that are the largest of no such window")
            if call.get("return_indices") and not self._found(image, kernel, places, *output):
                return self._wrong(f"draw {draw}: indices at which the element is not")
            chosen.append(got)
        if self._frozen(image, kernel, chosen):
            return self._wrong("two calls chose the same windows in every plane")
        return Comparison(vocabulary.PASSED, 0.0, 0.0, 0.0, "elements off")

    def _fitting(self, image: Any, kernel: Any, places: Any, got: Any) -> tuple[Any, Any]:
        """(2, ..., h) rows and (2, ..., w) columns of windows that explain all their elements."""
        fits = []
        for row in places[0]:
            for column in places[1]:
                tall = torch.stack([image[..., row + i, :] for i in range(kernel[0])]).amax(0)
                wide = torch.stack([tall[..., column + j] for j in range(kernel[1])]).amax(0)
                fits.append(wide == got)
        cells = torch.stack(fits).unflatten(0, (2, 2))
        return cells.any(1).all(-1), cells.any(0).all(-2)

    def _found(self, image: Any, kernel: Any, places: Any, values: Any, indices: Any) -> bool:
        height, width = image.shape[-2:]
        if bool(((indices < 0) | (indices >= height * width)).any()):
            return False
        row, column = indices // width, indices % width
        reach = (row >= places[0][0][:, None]) & (row < places[0][1][:, None] + kernel[0])
        reach &= (column >= places[1][0]) & (column < places[1][1] + kernel[1])
        held = image.flatten(-2).gather(-1, indices.flatten(-2)).reshape(values.shape)
        return bool((reach & (held == values)).all())

    def _frozen(self, image: Any, kernel: Any, draws: list) -> bool:
        """Whether draws are alike that honest ones are not."""
        if not any(torch.equal(draws[0], other) for other in draws[1:]):
            return False
        enough = self.alpha / (len(draws) - 1)  # each of the others may be the first one's twin
        counts = draws[0].shape[-2], draws[0].shape[-1]
        return chance_of_twins(image, kernel, counts, enough) < enough

    def _wrong(self, detail: str) -> Comparison:
        return Comparison(vocabulary.WRONG_VALUES, unit="elements off", detail=detail)

    def describe(self) -> str:
        return (
            "Each element equals the largest of a window at a place that fractional pooling may "
            "choose, the same height for all windows of a row and width for all of a column; calls "
            f"choose anew (false alarm {self.alpha:g}). An index must hold its element."
        )


def image_and_kernel(make: Maker) -> Arguments:
    """Images and the kernel, a number or a pair."""
    kernel = make.options().get("kernel_size", (2, 2))
    return Arguments((make.tensor(*make.case.shape), kernel), make.options("kernel_size"))


def planes(batch: int, channels: int, height: int, width: int) -> dict:
    """The sizes by name."""
    return {"batch": batch, "channels": channels, "height": height, "width": width}


@fusion(
    "fused_fractional_max_pool2d_with_relu",
    inputs=image_and_kernel,
    cases=(
        with_options(small("square", "normal", **planes(1, 1, 8, 8)), output_size=[4, 4]),
        with_options(small("odd", "normal", **planes(2, 4, 17, 23)), output_size=[7, 11]),
        with_options(small("ratio", "wide", **planes(2, 4, 20, 31)), output_ratio=[0.6, 0.4]),
        with_options(
            small("indices", "normal", **planes(3, 3, 19, 16)),
            output_size=[8, 9],
            return_indices=True,
        ),
        with_options(
            small("three", "shifted", **planes(1, 9, 25, 14)), kernel_size=3, output_size=6
        ),
        with_options(
            small("uneven", "ties", **planes(2, 3, 15, 22)),
            kernel_size=[3, 2],
            output_ratio=[0.5, 0.45],
            return_indices=True,
        ),
        with_options(
            small("transposed", "normal", layout="transposed", **planes(2, 4, 18, 13)),
            output_size=[10, 5],
        ),
        with_options(timed("ratio", "normal", **planes(16, 64, 255, 253)), output_ratio=[0.6, 0.7]),
        with_options(
            timed("indices", "normal", **planes(16, 3, 1024, 1024)),
            output_size=[700, 600],
            return_indices=True,
        ),
        with_options(
            timed("three", "normal", **planes(64, 128, 77, 75)), kernel_size=3, output_size=[40, 32]
        ),
    ),
    check=RandomWindows(),
    flops=per_element(2),
    draws=3,
    differences=(
        "no stream of numbers is asked for: any windows that fractional pooling may choose are "
        "right, and each call must choose its own",
        "where several elements of a window are the largest, zeros above all, each one's index is "
        "right",
    ),
)
def fused_fractional_max_pool2d_with_relu(
    input: torch.Tensor, kernel_size, output_size=None, output_ratio=None, return_indices=False
):
    """The largest of max(x, 0) in (h, w) windows of a (N, C, H, W) image. Window i starts at
    floor((i + u) a) - floor(u a) with a = (H - k) / (h - 1) and a random u in [0, 1) of each plane,
    the last one ends at the edge; likewise columns. The number of windows is `output_size`, or
    `output_ratio` times the image's size, rounded down; with `return_indices` the pair of values
    and their places in the plane, int64.
    """
    return F.fractional_max_pool2d(
        torch.relu(input), kernel_size, output_size, output_ratio, return_indices
    )
