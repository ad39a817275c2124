"""GPUs that the site knows from the start. Standard library only.

Peaks are the vendors' own, dense (without structured sparsity), at boost clocks. `float32` is the
figure of the general-purpose cores, because the suite's float32 is strict; `tf32` stands beside it.
Where tensor cores have two rates, the one that accumulates in float32 counts, as Triton's dot does.
A slug is what a host with such a board calls it: nvidia-smi's name without maker and memory size.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

GB = 10**9
GIB = 2**30
TERA = 10**12


@dataclass(frozen=True)
class KnownGpu:
    """`bandwidth` in GB/s, `peaks` in TFLOP/s (TOP/s for integers) by dtype, memory in bytes."""

    slug: str
    name: str
    vendor: str
    architecture: str
    memory_bytes: int | None = None
    bandwidth: float | None = None
    peaks: Mapping[str, float] = field(default_factory=dict)
    source: str = ""
    can_time: bool = True


def tensor_peaks(half: float, **others: float) -> dict[str, float]:
    """float16 and bfloat16 run at one rate."""
    return {"float16": half, "bfloat16": half, **others}


def eight_bit(rate: float) -> dict[str, float]:
    return {"float8_e4m3fn": rate, "float8_e5m2": rate, "int8": rate}


HOPPER = tensor_peaks(989.4, float64=66.9, float32=66.9, tf32=494.7) | eight_bit(1978.9)
HOPPER_NVL = tensor_peaks(835, float64=30, float32=60, tf32=417) | eight_bit(1671)

KNOWN_GPUS = (
    KnownGpu(
        "h200", "H200 SXM", "NVIDIA", "sm_90", 141 * GB, 4800, HOPPER, "NVIDIA H200 data sheet"
    ),
    KnownGpu(
        "h100", "H100 SXM", "NVIDIA", "sm_90", 80 * GB, 3350, HOPPER, "NVIDIA H100 data sheet"
    ),
    KnownGpu(
        "h20",
        "H20",
        "NVIDIA",
        "sm_90",
        96 * GB,
        4000,
        tensor_peaks(148, float64=1, float32=44, tf32=74) | eight_bit(296),
        "NVIDIA H20 product brief, as reported by resellers",
    ),
    KnownGpu(
        "h800",
        "H800 SXM",
        "NVIDIA",
        "sm_90",
        80 * GB,
        3350,
        HOPPER | {"float64": 1},
        "NVIDIA H800 product brief, as reported by resellers",
    ),
    KnownGpu(
        "a100-sxm4",
        "A100 SXM4",
        "NVIDIA",
        "sm_80",
        80 * GB,
        2039,
        tensor_peaks(312, float64=19.5, float32=19.5, tf32=156, int8=624),
        "NVIDIA A100 data sheet, 80 GB",
    ),
    KnownGpu(
        "h200-nvl",
        "H200 NVL",
        "NVIDIA",
        "sm_90",
        141 * GB,
        4800,
        HOPPER_NVL,
        "NVIDIA H200 data sheet",
    ),
    KnownGpu(
        "h100-nvl",
        "H100 NVL",
        "NVIDIA",
        "sm_90",
        94 * GB,
        3900,
        HOPPER_NVL,
        "NVIDIA H100 data sheet",
    ),
    KnownGpu(
        "h100-pcie",
        "H100 PCIe",
        "NVIDIA",
        "sm_90",
        80 * GB,
        2000,
        tensor_peaks(756, float64=26, float32=51, tf32=378) | eight_bit(1513),
        "NVIDIA H100 PCIe data sheet",
    ),
    KnownGpu(
        "l40s",
        "L40S",
        "NVIDIA",
        "sm_89",
        48 * GB,
        864,
        tensor_peaks(362, float32=91.6, tf32=183) | eight_bit(733),
        "NVIDIA L40S data sheet",
    ),
    KnownGpu(
        "l4",
        "L4",
        "NVIDIA",
        "sm_89",
        24 * GB,
        300,
        tensor_peaks(121, float32=30.3, tf32=60) | eight_bit(242),
        "NVIDIA L4 data sheet",
    ),
    KnownGpu(
        "a10",
        "A10",
        "NVIDIA",
        "sm_86",
        24 * GB,
        600,
        tensor_peaks(125, float32=31.2, tf32=62.5, int8=250),
        "NVIDIA A10 data sheet",
    ),
    KnownGpu(
        "l20",
        "L20",
        "NVIDIA",
        "sm_89",
        48 * GB,
        864,
        tensor_peaks(119.5, float32=59.8, tf32=59.8) | eight_bit(239),
        "NVIDIA L20 product brief, as reported by resellers",
    ),
    KnownGpu(
        "rtx-4090",
        "GeForce RTX 4090",
        "NVIDIA",
        "sm_89",
        24 * GIB,
        1008,
        tensor_peaks(165.2, float64=1.3, float32=82.6, tf32=82.6)
        | {"float8_e4m3fn": 330.3, "float8_e5m2": 330.3, "int8": 660.6},
        "NVIDIA Ada GPU architecture white paper, appendix A",
    ),
    KnownGpu(
        "rtx-5090",
        "GeForce RTX 5090",
        "NVIDIA",
        "sm_120",
        32 * GIB,
        1792,
        tensor_peaks(209.5, float64=1.6, float32=104.8, tf32=104.8)
        | {"float8_e4m3fn": 419, "float8_e5m2": 419, "int8": 838},
        "NVIDIA RTX Blackwell GPU architecture white paper, appendix A",
    ),
    KnownGpu(
        "b200",
        "B200 SXM",
        "NVIDIA",
        "sm_100",
        180 * GB,
        7700,
        tensor_peaks(2250, float64=37, float32=75, tf32=1100) | eight_bit(4500),
        "NVIDIA HGX B200 data sheet, per GPU",
    ),
    KnownGpu(
        "mi300x",
        "Instinct MI300X",
        "AMD",
        "gfx942",
        192 * GB,
        5300,
        tensor_peaks(1307.4, float64=163.4, float32=163.4, tf32=653.7) | eight_bit(2614.9),
        "AMD Instinct MI300X data sheet",
    ),
    KnownGpu("cpu-interpreter", "CPU (Triton interpreter)", "", "", can_time=False),
)
