"""Fractional max pooling: windows at random places."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark import vocabulary
from benchmark.suite.checks import _answers, _named, _native, _wrong_form
from benchmark.suite.cost import per_element
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments, Comparison, Trial

fusion = category("Fusion")
ENOUGH = 6  # planes at which two honest draws that choose the same windows are no chance


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


def pair(value) -> tuple:
    """A number for both dimensions, or one for each."""
    return value if isinstance(value, tuple) else (value, value)


@dataclass(frozen=True)
class RandomWindows:
    """Each element must be the largest of a window that may lie there, all of a row (a column) of
    windows at the same height (width), and draws must differ. Indices must lie in the window's
    reach and hold the value.
    """

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
        return self._varied(chosen, places)

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

    def _varied(self, draws: list, places: Any) -> Comparison:
        free = any(bool((dim[0] != dim[1]).any()) for dim in places)
        planes = draws[0].numel() // (draws[0].shape[-1] * draws[0].shape[-2])
        same = any(torch.equal(draws[0], other) for other in draws[1:])
        if free and planes >= ENOUGH and same:
            return self._wrong("two calls chose the same windows in every plane")
        return Comparison(vocabulary.PASSED, 0.0, 0.0, 0.0, "elements off")

    def _wrong(self, detail: str) -> Comparison:
        return Comparison(vocabulary.WRONG_VALUES, unit="elements off", detail=detail)

    def describe(self) -> str:
        return (
            "Each element equals the largest of a window at a place that fractional pooling may "
            "choose, the same height for all windows of a row and width for all of a column; calls "
            "choose anew. An index must hold its element."
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
        with_options(small("odd", "normal", **planes(2, 3, 17, 23)), output_size=[7, 11]),
        with_options(small("ratio", "wide", **planes(2, 4, 20, 31)), output_ratio=[0.6, 0.4]),
        with_options(
            small("indices", "normal", **planes(3, 2, 19, 16)),
            output_size=[8, 9],
            return_indices=True,
        ),
        with_options(
            small("three", "shifted", **planes(1, 7, 25, 14)), kernel_size=3, output_size=6
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
