"""The GPUs known from the start go by the slugs that hosts with such boards send."""

import pytest

from benchmark.gpus import KNOWN_GPUS
from runner.engine.devices import gpu_slug

# As `nvidia-smi --query-gpu=name` prints them.
REPORTED = {
    "NVIDIA H200": "H200 SXM",
    "NVIDIA H200 NVL": "H200 NVL",
    "NVIDIA H100 80GB HBM3": "H100 SXM",
    "NVIDIA H100 NVL": "H100 NVL",
    "NVIDIA H100 PCIe": "H100 PCIe",
    "NVIDIA H20": "H20",
    "NVIDIA H800": "H800 SXM",
    "NVIDIA A100-SXM4-80GB": "A100 SXM4",
    "NVIDIA L20": "L20",
    "NVIDIA L40S": "L40S",
    "NVIDIA L4": "L4",
    "NVIDIA A10": "A10",
    "NVIDIA GeForce RTX 4090": "GeForce RTX 4090",
    "NVIDIA GeForce RTX 5090": "GeForce RTX 5090",
    "NVIDIA B200": "B200 SXM",
}


@pytest.mark.parametrize("reported", REPORTED)
def test_a_board_as_nvidia_smi_names_it_is_known(reported: str) -> None:
    names = {gpu.slug: gpu.name for gpu in KNOWN_GPUS}
    assert names.get(gpu_slug(reported)) == REPORTED[reported]


@pytest.mark.parametrize("gpu", KNOWN_GPUS, ids=lambda gpu: gpu.slug)
def test_figures_come_with_their_source_and_are_of_one_order(gpu: object) -> None:
    """A peak entered in the wrong unit is a thousand times off."""
    if not gpu.can_time:
        assert (gpu.peaks, gpu.bandwidth) == ({}, None)
        return
    assert gpu.source
    assert 200 < gpu.bandwidth < 20_000
    assert all(0.5 < peak < 20_000 for peak in gpu.peaks.values())
    assert gpu.peaks["float16"] == gpu.peaks["bfloat16"] > gpu.peaks["float32"]
