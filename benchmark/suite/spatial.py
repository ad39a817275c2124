"""Resampling images: grids, affine maps, resizing. Layout (batch, channels, height, width), volumes
with depth before height.
"""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close
from benchmark.suite.cost import product
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments, Case

spatial = category("SpatialOps")


def neighbourhood(input: torch.Tensor, size: int) -> torch.Tensor:
    """The largest |x| among the neighbours that an interpolation mixes."""
    pool = F.max_pool3d if input.dim() == 5 else F.max_pool2d
    return pool(input.abs(), size, stride=1, padding=size // 2)


def sampled_magnitude(input, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    """A position among W pixels is off by a rounding of W: the neighbours' size that many times."""
    kept = "border" if padding_mode == "zeros" else padding_mode
    around = neighbourhood(input, 3)
    near = F.grid_sample(
        around, grid, mode="nearest", padding_mode=kept, align_corners=align_corners
    )
    return near * sum(input.shape[2:])


def pixel_places(make: Maker, size: int, *shape: int, align: bool) -> torch.Tensor:
    """Positions in grid units, up to two pixels outside, at most 0.3 pixels off a pixel's centre.

    So that the nearest pixel is the same in every arithmetic: at a tie it would hang on rounding.
    """
    pixel = make.randint(-2, size + 2, *shape).to(make.dtype)
    pixel = pixel + make.rand(*shape).to(make.dtype) * 0.6 - 0.3
    return 2 * pixel / max(size - 1, 1) - 1 if align else (2 * pixel + 1) / size - 1


def image_and_grid(make: Maker) -> Arguments:
    """An image or volume and a grid of `h` x `w` (x `d`) positions near pixels, `x` first."""
    sizes, align = make.case.sizes, bool(make.case.options.get("align_corners"))
    inner = [sizes[name] for name in ("depth", "height", "width") if name in sizes]
    outer = [sizes[name] for name in ("d", "h", "w") if name in sizes]
    image = make.tensor(sizes["batch"], sizes["channels"], *inner)
    axes = [pixel_places(make, size, sizes["batch"], *outer, align=align) for size in inner]
    return Arguments((image, torch.stack(axes[::-1], -1)), make.options())


IMAGE: dict[str, Any] = {"batch": 2, "channels": 3, "height": 29, "width": 31, "h": 17, "w": 19}
VOLUME: dict[str, Any] = {
    "batch": 2,
    "channels": 2,
    "depth": 7,
    "height": 11,
    "width": 13,
    "d": 5,
    "h": 6,
    "w": 9,
}
LARGE: dict[str, Any] = {
    "batch": 16,
    "channels": 3,
    "height": 1024,
    "width": 1024,
    "h": 1024,
    "w": 1024,
}
MANY: dict[str, Any] = {"batch": 4, "channels": 32, "height": 512, "width": 512, "h": 512, "w": 512}
DEEP: dict[str, Any] = {"batch": 2, "channels": 8, "depth": 128, "height": 128, "width": 128} | {
    "d": 128,
    "h": 128,
    "w": 128,
}


@spatial(
    "grid_sample",
    inputs=image_and_grid,
    cases=(
        small("one", "normal", batch=1, channels=1, height=1, width=1, h=1, w=1),
        small("zeros", "normal", **IMAGE),
        with_options(small("border", "heavy_tail", **IMAGE), padding_mode="border"),
        with_options(
            small("reflection", "shifted", **IMAGE), padding_mode="reflection", align_corners=True
        ),
        with_options(
            small("nearest", "scaled", **IMAGE), mode="nearest", padding_mode="reflection"
        ),
        with_options(
            small("nearest-corners", "normal", **IMAGE),
            mode="nearest",
            align_corners=True,
            padding_mode="border",
        ),
        with_options(
            small("transposed", "mixed", layout="transposed", **IMAGE), align_corners=True
        ),
        with_options(small("volume", "normal", **VOLUME), padding_mode="reflection"),
        with_options(
            small("volume-nearest", "mixed", **VOLUME), mode="nearest", align_corners=True
        ),
        with_options(small("volume-corners", "mixed", **VOLUME), align_corners=True),
        timed("large", "mixed", **LARGE),
        with_options(timed("nearest", "mixed", **MANY), mode="nearest", padding_mode="border"),
        with_options(timed("volume", "mixed", **DEEP), padding_mode="reflection"),
    ),
    check=Close(magnitude=sampled_magnitude),
    flops=product(7, "batch", "channels", "d", "h", "w"),
    differences=(
        "positions lie within 0.3 pixels of a pixel's centre: halfway between two pixels the "
        "nearest one hangs on rounding, and no answer would be the right one",
    ),
)
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    """The image (N, C, H, W) at the positions of `grid` (N, h, w, 2), or the volume (N, C, D, H, W)
    at those of (N, d, h, w, 3); output (N, C, h, w) or (N, C, d, h, w).

    A position is (x, y) or (x, y, z), -1 to 1 from one side to the other: from outer edge to outer
    edge of the outermost pixels, or with `align_corners` from centre to centre. `bilinear` mixes
    the 4 (volumes: 8) pixels around it, `nearest` takes the closest. Outside lie zeros, the
    outermost pixels (`border`), or the mirror image (`reflection`), mirrored at the same sides.
    """
    return F.grid_sample(
        input, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners
    )


def affine_magnitude(
    input, theta, size, mode="bilinear", padding_mode="zeros", align_corners=False
):
    """As for grid_sample, with the grid of the map."""
    grid = F.affine_grid(theta.to(input.dtype), list(size), align_corners=align_corners)
    return sampled_magnitude(input, grid, mode, padding_mode, align_corners)


def image_and_map(make: Maker) -> Arguments:
    """An image, affine maps (N, 2, 3), and the size of the output, a torch.Size.

    For `nearest` the maps are reflections and shifts by whole pixels and a quarter, which no
    rounding pushes to another pixel; else they turn, scale, shear and shift at random.
    """
    sizes, options = make.case.sizes, make.options()
    batch, height, width = sizes["batch"], sizes["height"], sizes["width"]
    image = make.tensor(batch, sizes["channels"], height, width)
    if options.get("mode") == "nearest":
        theta = torch.zeros(batch, 2, 3, device=make.device)
        theta[:, 0, 0] = make.randint(0, 2, batch) * 2.0 - 1
        theta[:, 1, 1] = make.randint(0, 2, batch) * 2.0 - 1
        off = bool(options.get("align_corners"))
        theta[:, 0, 2] = (make.randint(-3, 4, batch) + 0.25) * 2 / (width - off)
        theta[:, 1, 2] = (make.randint(-3, 4, batch) + 0.25) * 2 / (height - off)
    else:
        theta = make.randn(batch, 2, 3) * 0.3 + torch.eye(2, 3, device=make.device)
    out = torch.Size((batch, sizes["channels"], sizes["h"], sizes["w"]))
    return Arguments((image, theta.to(make.dtype), out), options)


SAME: dict[str, Any] = {"batch": 3, "channels": 3, "height": 31, "width": 29, "h": 31, "w": 29}


@spatial(
    "grid_sample_with_affine",
    inputs=image_and_map,
    cases=(
        small("one", "normal", batch=1, channels=1, height=2, width=2, h=1, w=1),
        small("zeros", "normal", **IMAGE),
        with_options(small("border", "heavy_tail", **IMAGE), padding_mode="border"),
        with_options(
            small("reflection", "shifted", **IMAGE), padding_mode="reflection", align_corners=True
        ),
        with_options(small("nearest", "scaled", **SAME), mode="nearest", padding_mode="reflection"),
        with_options(
            small("nearest-corners", "normal", **SAME), mode="nearest", align_corners=True
        ),
        with_options(
            small("transposed", "mixed", layout="transposed", **IMAGE), padding_mode="reflection"
        ),
        with_options(small("corners", "mixed", **SAME), align_corners=True),
        timed("large", "mixed", **LARGE),
        with_options(timed("nearest", "mixed", **MANY), mode="nearest", padding_mode="border"),
        with_options(
            timed("reflection", "mixed", **MANY), padding_mode="reflection", align_corners=True
        ),
    ),
    check=Close(magnitude=affine_magnitude),
    flops=product(7, "batch", "channels", "h", "w"),
    differences=(
        "the maps are not the identity, at which returning the image passed most published cases",
        "`theta` has the dtype of `input`: the published test passed integers, which only the "
        "identity needs",
    ),
)
def grid_sample_with_affine(
    input: torch.Tensor,
    theta: torch.Tensor,
    size: torch.Size,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
):
    """The image (N, C, H, W) seen through affine maps (N, 2, 3): output pixel (x, y) shows the
    input at theta @ (x, y, 1), both in -1..1 from side to side. Output: `size` = (N, C, h, w).

    `mode`, `padding_mode` and `align_corners` as for grid_sample.
    """
    grid = F.affine_grid(theta.to(input.dtype), list(size), align_corners=align_corners)
    return F.grid_sample(
        input, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners
    )


def resized_magnitude(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """A position among W pixels is off by a rounding of W: the neighbours' size that many times."""
    around = neighbourhood(input, 5)
    near = F.interpolate(around, size=size, scale_factor=scale_factor, mode="nearest")
    return near * sum(input.shape[2:])


def image_to_resize(make: Maker) -> Arguments:
    """An image (N, C, H, W) and the options."""
    return Arguments((make.tensor(*make.case.shape),), make.options())


def resized_pixels(case: Case) -> float:
    """Operations: 4 for each pixel of the output, 35 where 16 pixels are mixed."""
    options, (batch, channels, height, width) = case.options, case.shape
    factor = options.get("scale_factor")
    scaled = [int(height * factor), int(width * factor)] if factor else options["size"]
    each = 35 if options.get("mode") == "bicubic" else 4
    return float(each * batch * channels * scaled[0] * scaled[1])


PICTURE: dict[str, Any] = {"batch": 2, "channels": 2, "height": 17, "width": 23}


@spatial(
    "interpolate",
    inputs=image_to_resize,
    cases=(
        with_options(small("one", "normal", batch=1, channels=1, height=1, width=1), size=[3, 2]),
        with_options(small("nearest", "normal", **PICTURE), size=[34, 46]),
        with_options(small("nearest-down", "scaled", **PICTURE), scale_factor=0.5, mode="nearest"),
        with_options(
            small("bilinear", "heavy_tail", **PICTURE),
            scale_factor=2.0,
            mode="bilinear",
            align_corners=False,
        ),
        with_options(
            small("bilinear-corners", "shifted", **PICTURE),
            size=[31, 19],
            mode="bilinear",
            align_corners=True,
        ),
        with_options(
            small("bicubic", "normal", **PICTURE),
            size=[29, 41],
            mode="bicubic",
            align_corners=False,
        ),
        with_options(
            small("bicubic-corners", "mixed", **PICTURE),
            scale_factor=1.5,
            mode="bicubic",
            align_corners=True,
        ),
        with_options(
            small("transposed", "mixed", layout="transposed", **PICTURE),
            size=[11, 13],
            mode="bilinear",
            align_corners=False,
        ),
        with_options(
            timed("bilinear", "mixed", batch=16, channels=3, height=512, width=512),
            size=[1024, 1024],
            mode="bilinear",
            align_corners=False,
        ),
        with_options(
            timed("bicubic", "mixed", batch=8, channels=4, height=700, width=900),
            size=[1024, 1024],
            mode="bicubic",
            align_corners=False,
        ),
        with_options(
            timed("nearest", "mixed", batch=16, channels=16, height=256, width=256),
            scale_factor=2.0,
            mode="nearest",
        ),
    ),
    check=Close(magnitude=resized_magnitude),
    flops=resized_pixels,
)
def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The image (N, C, H, W) resized to `size` = (h, w), or to floor(H s), floor(W s) for a
    `scale_factor` s; output (N, C, h, w).

    `nearest` takes pixel floor(i H / h), or floor(i / s); `bilinear` mixes the 4 and `bicubic`
    (a = -0.75) the 16 pixels around (i + 1/2) H / h - 1/2 (with s: (i + 1/2) / s - 1/2), or, with
    `align_corners`, around i (H - 1) / (h - 1); positions before the first pixel count as the
    first for `bilinear`, and pixels outside repeat the outermost.
    """
    return F.interpolate(
        input, size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners
    )
