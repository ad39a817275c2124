"""What no kernel can beat: moving the bytes and doing the arithmetic. Standard library only."""

from collections.abc import Sequence
from dataclasses import dataclass

SLACK = 0.9  # of the floor; below it is no measurement error
TERA = 1e12

# Dense peaks in TFLOP/s by architecture, from NVIDIA's data sheets (A100, L40S and RTX 4090,
# H100 and H200 SXM, B200). float32 is the tensor cores' TF32 figure: three such products reach
# float32 precision, so honest kernels may pass the CUDA cores' peak.
PEAKS: dict[str, dict[str, float]] = {
    "sm_80": {"float64": 19.5, "float32": 156, "float16": 312, "bfloat16": 312, "int8": 624},
    "sm_89": {
        "float64": 1.5,
        "float32": 183,
        "float16": 366,
        "bfloat16": 366,
        "int8": 733,
        "float8": 733,
    },
    "sm_90": {
        "float64": 67,
        "float32": 494,
        "float16": 989,
        "bfloat16": 989,
        "int8": 1979,
        "float8": 1979,
    },
    "sm_100": {
        "float64": 40,
        "float32": 1100,
        "float16": 2250,
        "bfloat16": 2250,
        "int8": 4500,
        "float8": 4500,
    },
}

# Bytes per second, one way, between a board and its host: PCIe 4.0 and 5.0 with 16 lanes, by
# NVIDIA's data sheets (sm_120: RTX 5090 and RTX PRO 6000). NVLink-C2C is faster.
HOST_LINKS = {"sm_80": 32e9, "sm_89": 32e9, "sm_90": 64e9, "sm_100": 64e9, "sm_120": 64e9}


@dataclass(frozen=True)
class Board:
    """What this board can do: measured bytes per second of a large copy, L2 in bytes, architecture
    ("sm_90"); and the ms that two events read with nothing between them, in a call that ends with
    its stream and in one that ends with all streams.
    """

    bandwidth: float
    l2: int
    architecture: str
    event_ms: float = 0.0
    joined_event_ms: float = 0.0

    def net(self, times: Sequence[float], joined: bool = False) -> tuple[float, ...]:
        """Readings in ms without the events' own part. What remains is never nothing."""
        own = self.joined_event_ms if joined else self.event_ms
        return tuple(max(time - own, 0.25 * self.event_ms) for time in times)

    def crossing_ms(self, moved: float | None) -> float:
        """The least time in ms in which the host could have done a case's work: half of the bytes
        that the case has to touch, or more, must cross over to it, or back. 0 where nothing is
        known.
        """
        link = HOST_LINKS.get(self.architecture)
        return (moved or 0.0) / 2 / link * 1e3 if link else 0.0

    def peak(self, dtype: str) -> float | None:
        """FLOP/s in a dtype, None where the table doesn't know."""
        table = PEAKS.get(self.architecture, {})
        teraflops = table.get("float8" if dtype.startswith("float8") else dtype)
        return teraflops * TERA if teraflops else None

    def floor_ms(self, dtype: str, flops: float | None, moved: float | None) -> float:
        """The least time in ms. Bytes that fit the L2 count nothing: writes may still lie there
        when the clock stops.
        """
        seconds = max(0.0, (moved or 0.0) - self.l2) / self.bandwidth
        peak = self.peak(dtype)
        if peak and flops:
            seconds = max(seconds, flops / peak)
        return seconds * 1e3
