"""A device that doesn't work is told from a judgement that failed on one."""

from pathlib import Path

import pytest

from runner.engine import INTERPRETER, DeviceSpec, discover_devices, probe

LISTED = "63, NVIDIA Ghost, GPU-of-the-tests, 1000, 9.0"  # a number that no host's board has


@pytest.fixture
def ghost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeviceSpec:
    """A board that the driver lists and that doesn't start."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho '{LISTED}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return discover_devices()[0]


def test_the_interpreter_is_well() -> None:
    assert probe(INTERPRETER).ok


def test_a_board_that_is_gone_is_named() -> None:
    found = probe(DeviceSpec("cuda", 63, "ghost", "NVIDIA Ghost", "0123456789abcdef"))
    assert not found.ok
    assert "no longer lists NVIDIA Ghost as number 63" in found.reason


def test_a_board_that_does_not_start_fails_its_probe(ghost: DeviceSpec) -> None:
    found = probe(ghost)
    assert not found.ok
    assert "cuda" in found.reason.lower()
