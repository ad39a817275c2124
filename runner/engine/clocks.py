"""A board's clocks, power, temperature and reasons for going slower, as its driver says (NVML)."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runner.engine.model import DeviceSpec

# NVML's bits: hardware slowdown, thermal slowdown by software and by hardware, external power
# brake. Idling, a set clock and the usual power cap are no reasons to distrust a time: they hold
# for both sides alike.
SLOWDOWNS = {0x8: "hardware slowdown", 0x20: "heat (software)", 0x40: "heat", 0x80: "power brake"}
# Relative change of the SM clock within four blocks that still counts as steady: the power limit
# alone moves it by a tenth under matrix products, and the order of the blocks cancels a drift.
STEADY = 0.15
HOT_SECONDS = 1.0  # a board keeps its clocks up for about so long
UP = 0.95  # of its highest SM clock; idle ones are a fifth of it


@dataclass(frozen=True)
class Reading:
    """One look: clocks in MHz, power in W, temperature in degrees Celsius."""

    sm_mhz: int
    memory_mhz: int
    power_w: float
    power_limit_w: float
    temperature_c: int
    reasons: int
    driver: str

    @property
    def slowed_by(self) -> tuple[str, ...]:
        """Why the board runs slower than it should, in words."""
        return tuple(word for bit, word in SLOWDOWNS.items() if self.reasons & bit)

    def to_json(self) -> dict:
        """As the report's environment records it."""
        return {
            "sm_mhz": self.sm_mhz,
            "memory_mhz": self.memory_mhz,
            "power_w": self.power_w,
            "power_limit_w": self.power_limit_w,
            "temperature_c": self.temperature_c,
            "throttle_reasons": f"{self.reasons:#x}",
            "slowed_by": list(self.slowed_by),
            "driver": self.driver,
        }


class Clocks:
    """What one board's driver says; silent (None) where there is no driver to ask."""

    def __init__(self, device: DeviceSpec) -> None:
        self._nvml: Any = None
        self._handle: Any = None
        self._highest = 0  # SM clock in MHz
        self._hot_at = float("-inf")
        if device.kind == "cuda":
            with contextlib.suppress(Exception):  # no library, no driver, no permission
                import pynvml

                pynvml.nvmlInit()
                handle = self._handle = pynvml.nvmlDeviceGetHandleByIndex(device.index)
                self._highest = pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)
                self._nvml = pynvml

    def read(self) -> Reading | None:
        """How it is now; None where the driver doesn't say."""
        if self._nvml is None:
            return None
        nvml, handle = self._nvml, self._handle
        try:
            return Reading(
                sm_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
                memory_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
                power_w=nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
                power_limit_w=nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3,
                temperature_c=nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
                reasons=nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
                driver=str(nvml.nvmlSystemGetDriverVersion()),
            )
        except nvml.NVMLError:
            return None

    def busy_share(self) -> float | None:
        """The share of its last period, a sixth of a second to a second, in which the board worked,
        for whomever; None where the driver doesn't say.
        """
        if self._nvml is None:
            return None
        try:
            return float(self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu) / 100
        except self._nvml.NVMLError:
            return None

    @property
    def close_to_host(self) -> bool:
        """May its host be linked to it by NVLink-C2C, which is several times as fast as PCIe?"""
        if self._nvml is None:
            return True
        nvml = self._nvml
        try:
            return bool(nvml.nvmlDeviceGetC2cModeInfoV(self._handle).isC2cEnabled)
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound):
            return False  # no such link, or a driver from before there was one
        except nvml.NVMLError:
            return True

    def note_work(self) -> None:
        """The board has just worked, so its clocks are up."""
        self._hot_at = time.monotonic()

    @property
    def is_hot(self) -> bool:
        """Did it work for a timing a moment ago, or is its clock up by the work of others?"""
        if time.monotonic() - self._hot_at < HOT_SECONDS:
            return True
        reading = self.read()
        return reading is not None and reading.sm_mhz >= UP * self._highest


def unsteady(readings: Sequence[Reading | None]) -> str:
    """Why the times between these looks can't be trusted; "" if they can, or nobody knows."""
    known = [reading for reading in readings if reading]
    for reading in known:
        if reading.slowed_by:
            return f"{' and '.join(reading.slowed_by)} at {reading.sm_mhz} MHz"
    clocks = [reading.sm_mhz for reading in known]
    if clocks and max(clocks) > (1 + STEADY) * min(clocks):
        return f"the SM clock went from {clocks[0]} to {clocks[-1]} MHz"
    return ""
