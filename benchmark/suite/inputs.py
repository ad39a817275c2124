"""Inputs: one seeded `Maker` per call, families of spreads, memory layouts, and lists of usual
cases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmark.suite.spec import Arguments, Case

LAYOUTS = ("contiguous", "transposed", "strided", "offset")
OUTLIER_SHARE = 0.01  # of heavy_tail: enough that a row of a thousand holds about ten
SPECIALS = (float("inf"), float("-inf"), float("nan"), 0.0, -0.0)
SPECIAL_STEP = 7  # every 7th element is special: coprime to the usual tile sizes


@dataclass(frozen=True)
class Maker:
    """Draws the inputs of one case from one generator. On the meta device it draws shapes only."""

    case: Case
    device: str
    generator: torch.Generator | None

    @classmethod
    def seeded(cls, case: Case, seed: int, device: str) -> Maker:
        """A maker whose draws depend on the seed and the type of the device alone."""
        if device == "meta":
            return cls(case, device, None)
        return cls(case, device, torch.Generator(device).manual_seed(seed))

    @property
    def dtype(self) -> torch.dtype:
        """The dtype the case is about."""
        return dtype_named(self.case.dtype)

    def size(self, name: str) -> int:
        """A size of the case by its name."""
        return self.case.sizes[name]

    def options(self, *without: str) -> dict[str, Any]:
        """The case's options as keyword arguments: dtypes for their names, tuples for lists."""
        chosen = {k: v for k, v in self.case.options.items() if k not in without}
        return {name: _argument(name, value) for name, value in chosen.items()}

    def randn(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Standard normal, contiguous."""
        return torch.randn(shape, generator=self.generator, dtype=dtype, device=self.device)

    def rand(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Uniform on [0, 1), contiguous."""
        return torch.rand(shape, generator=self.generator, dtype=dtype, device=self.device)

    def randint(
        self, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64
    ) -> torch.Tensor:
        """Integers in [low, high), contiguous."""
        return torch.randint(
            low, high, shape, generator=self.generator, dtype=dtype, device=self.device
        )

    def tensor(
        self, *shape: int, dtype: torch.dtype | None = None, family: str | None = None
    ) -> torch.Tensor:
        """A tensor of the case's dtype and family (unless given), in the case's memory layout.

        Integer dtypes draw from [-100, 100) ([0, 200) when unsigned), bool is a fair coin.
        """
        dtype = dtype or self.dtype
        draw = FAMILIES[family or self.case.family]
        return self.laid_out(lambda *dims: self._values(dims, dtype, draw), *shape)

    def _values(
        self, shape: tuple[int, ...], dtype: torch.dtype, draw: Callable[..., torch.Tensor]
    ) -> torch.Tensor:
        if dtype.is_complex:
            real = torch.float64 if dtype == torch.complex128 else torch.float32
            return torch.complex(draw(self, shape, real), draw(self, shape, real))
        if dtype.is_floating_point:
            return draw(self, shape, drawing_dtype(dtype)).to(dtype)
        if dtype == torch.bool:
            return self.rand(*shape) < 0.5
        low = 0 if dtype == torch.uint8 else -100
        return self.randint(low, low + 200, *shape).to(dtype)

    def laid_out(self, draw: Callable[..., torch.Tensor], *shape: int) -> torch.Tensor:
        """`draw(*shape)` in the case's memory layout; the values of a layout are its own."""
        layout = self.case.layout
        if layout == "transposed" and len(shape) >= 2:
            return draw(*shape[:-2], shape[-1], shape[-2]).transpose(-1, -2)
        if layout in ("strided", "transposed") and shape:
            return draw(*shape[:-1], 2 * shape[-1])[..., ::2]
        if layout == "offset" and shape:
            return draw(*shape[:-1], shape[-1] + 1)[..., 1:]
        return draw(*shape)

    def positive(self, *shape: int, low: float = 0.1, high: float = 3.0) -> torch.Tensor:
        """Uniform on [low, high) in the case's dtype: scales, variances, arguments of log and
        sqrt.
        """
        return (self.rand(*shape, dtype=drawing_dtype(self.dtype)) * (high - low) + low).to(
            self.dtype
        )

    def unit(self, *shape: int) -> torch.Tensor:
        """Uniform on [0, 1) in the case's dtype, in its layout: probabilities."""
        return self.tensor(*shape, family="unit")

    def spd(self, n: int, *batch: int) -> torch.Tensor:
        """Symmetric positive definite matrices (*batch, n, n), eigenvalues from about 1 to 5."""
        work = drawing_dtype(self.dtype)
        square = self.randn(*batch, n, n, dtype=work)
        eye = torch.eye(n, dtype=work, device=self.device)
        spd = square @ square.mT / n + eye
        return ((spd + spd.mT) / 2).to(self.dtype)

    def invertible(self, n: int, *batch: int) -> torch.Tensor:
        """General matrices (*batch, n, n) that need pivoting and stay well conditioned."""
        work = drawing_dtype(self.dtype)
        noise = self.randn(*batch, n, n, dtype=work) / (2 * n**0.5)
        eye = torch.eye(n, dtype=work, device=self.device)
        return (noise + eye).roll(1, -2).to(self.dtype)

    def permutation(self, n: int) -> torch.Tensor:
        """The numbers 0..n-1 in a random order, int64."""
        return self.rand(n, dtype=torch.float64).argsort()

    def indices(self, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """Indices in [0, high), with repetitions."""
        return self.randint(0, high, *shape, dtype=dtype)

    def mask(self, *shape: int, share: float = 0.5) -> torch.Tensor:
        """Booleans, true with the given probability, in the case's layout."""
        return self.laid_out(lambda *dims: self.rand(*dims) < share, *shape)

    def out(self, *shape: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        """An `out=` tensor, full of NaN (integers: the smallest value) so that what isn't written
        shows.
        """
        dtype = dtype or self.dtype
        fill = float("nan") if dtype.is_floating_point or dtype.is_complex else 0
        return torch.full(shape, fill, dtype=dtype, device=self.device)


def dtype_named(name: str) -> torch.dtype:
    """`torch.float32` for "float32"."""
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def drawing_dtype(dtype: torch.dtype) -> torch.dtype:
    """Random numbers are drawn in float64 for float64, in float32 for all narrower dtypes."""
    return torch.float64 if dtype in (torch.float64, torch.complex128) else torch.float32


def _argument(name: str, value: Any) -> Any:
    if name.endswith("dtype") and isinstance(value, str):
        return dtype_named(value)
    return tuple(value) if isinstance(value, list) else value


def _normal(make: Maker, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return make.randn(*shape, dtype=dtype)


def _scaled(make: Maker, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return make.randn(*shape, dtype=dtype) * 10


def _shifted(make: Maker, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return make.randn(*shape, dtype=dtype) + 5


def _heavy_tail(make: Maker, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    values = make.randn(*shape, dtype=dtype)
    return torch.where(make.rand(*shape) < OUTLIER_SHARE, values * 100, values)


def _mixed(make: Maker, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return make.randn(*shape, dtype=dtype) * torch.exp2(make.randint(-4, 4, *shape).to(dtype))


def _ties(make: Maker, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return (make.randn(*shape, dtype=dtype) * 2).round() / 2


def _integers(make: Maker, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return make.randint(-8, 9, *shape).to(dtype)


def _special(make: Maker, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    values = make.randn(*shape, dtype=dtype).flatten()
    places = values[::SPECIAL_STEP]
    specials = torch.tensor(SPECIALS, dtype=dtype).to(make.device)
    values[::SPECIAL_STEP] = specials.repeat(-(-places.numel() // len(SPECIALS)))[: places.numel()]
    return values.view(shape)


def _tiny(make: Maker, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return make.randn(*shape, dtype=dtype) * 1e-3


def _large(make: Maker, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return make.randn(*shape, dtype=dtype) * 200


def _unit(make: Maker, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return make.rand(*shape, dtype=dtype)


def _wide(make: Maker, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return make.rand(*shape, dtype=dtype) * 12 - 6


FAMILIES: dict[str, Callable[[Maker, tuple[int, ...], torch.dtype], torch.Tensor]] = {
    "normal": _normal,  # mean 0, deviation 1
    "scaled": _scaled,  # deviation 10
    "shifted": _shifted,  # mean 5: a mean or a shift that is left out shows
    "heavy_tail": _heavy_tail,  # one in a hundred is a hundred times as large
    "mixed": _mixed,  # magnitudes from 1/16 to 8 side by side: the usual spread of timed inputs
    "ties": _ties,  # multiples of 1/2: equal values, exact halves
    "integers": _integers,  # -8..8: sums and products are exact
    "special": _special,  # inf, -inf, NaN, 0 and -0 among normal values
    "tiny": _tiny,  # deviation 0.001
    "large": _large,  # deviation 200: exponentials overflow unless guarded, float16 holds it
    "unit": _unit,  # uniform on [0, 1)
    "wide": _wide,  # uniform on [-6, 6): both tails of a sigmoid
}


def one_tensor(make: Maker) -> Arguments:
    """One tensor of the case's shape, then the options by keyword."""
    return Arguments((make.tensor(*make.case.shape),), make.options("out") | _out(make))


def two_tensors(make: Maker) -> Arguments:
    """Two tensors of the case's shape, then the options by keyword."""
    shape = make.case.shape
    return Arguments((make.tensor(*shape), make.tensor(*shape)), make.options("out") | _out(make))


def _out(make: Maker) -> dict[str, Any]:
    return {"out": make.out(*make.case.shape)} if make.case.options.get("out") else {}


def small(
    name: str, family: str, dtype: str = "float32", layout: str = "contiguous", **sizes: int
) -> Case:
    """A case that is checked everywhere; add options with `with_options`."""
    return Case(f"small-{name}", "small", dtype, sizes, family, {}, layout)


def timed(name: str, family: str, dtype: str = "float32", **sizes: int) -> Case:
    """A case that is checked and timed on GPUs: 128 MB to 1 GB of arguments and outputs."""
    return Case(f"timed-{name}", "timed", dtype, sizes, family)


def with_options(case: Case, **options: object) -> Case:
    """The case with further options (JSON-able; dtypes by name)."""
    merged = {**case.options, **options}
    return Case(case.name, case.kind, case.dtype, case.sizes, case.family, merged, case.layout)


def spread_options(cases: tuple[Case, ...], *variants: dict[str, object]) -> tuple[Case, ...]:
    """Deal the variants over the cases in turn: case i gets variant i modulo their number."""
    if not variants:
        return cases
    return tuple(with_options(case, **variants[i % len(variants)]) for i, case in enumerate(cases))


def elementwise_cases(
    *variants: dict[str, object], half: bool = True, special: bool = True
) -> tuple[Case, ...]:
    """The usual cases of an elementwise task: 8 small, 3 timed; the variants of options dealt over
    them.

    `half=False` leaves float16 out, `special=False` inf and NaN.
    """
    narrow, rows = ("float16", 8192) if half else ("float32", 4096)
    checked = (
        small("one", "normal", n=1),
        small("odd", "wide", rows=37, columns=53),
        small("prime", "heavy_tail", n=1009),
        small("special" if special else "ties", "special" if special else "ties", a=3, b=5, c=67),
        small("transposed", "scaled", layout="transposed", rows=33, columns=48),
        small("half", "normal", narrow, rows=31, columns=65),
        small("tiles", "mixed", rows=64, columns=128),
        small("strided", "shifted", layout="strided", rows=9, columns=129),
    )
    clocked = (
        timed("large", "mixed", rows=8192, columns=8192),
        timed("half", "mixed", narrow, rows=rows, columns=8192),
        timed("odd", "mixed", rows=4099, columns=8191),
    )
    return spread_options(checked, *variants) + spread_options(clocked, *variants)


def row_cases(
    *variants: dict[str, object], half: bool = True, longest: int = 16384
) -> tuple[Case, ...]:
    """The usual cases of a task that works along rows (softmax, norms, reductions): 8 small, 3
    timed.
    """
    narrow = "float16" if half else "float32"
    checked = (
        small("one", "normal", rows=1, columns=1),
        small("odd", "heavy_tail", rows=17, columns=781),
        small("prime", "shifted", rows=7, columns=1009),
        small("tall", "scaled", rows=259, columns=3),
        small("transposed", "normal", layout="transposed", rows=33, columns=130),
        small("half", "normal", narrow, rows=15, columns=257),
        small("tiles", "mixed", rows=16, columns=512),
        small("ties", "ties", rows=5, columns=300),
    )
    clocked = (
        timed("large", "mixed", rows=65536, columns=1024),
        timed("half", "mixed", narrow, rows=16384, columns=4096),
        timed("long", "mixed", rows=(1 << 26) // longest, columns=longest),
    )
    return spread_options(checked, *variants) + spread_options(clocked, *variants)
