"""What the stopwatch reads for known durations, as JSON on stdout. The judge takes `event_us`, what
two events read with nothing between them, off every reading. Run on a board: `python -m
tests.gpu.timer`.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable

import torch

from runner.engine.activity import device_activity
from runner.engine.bench import Block, Stopwatch
from runner.engine.driver import reset_persisting
from runner.engine.probe_kernel import add_one

SPINS = {"10us": 20_000, "100us": 200_000, "1ms": 2_000_000}  # cycles near 2 GHz
SAMPLES = 50


def reading(
    watch: Stopwatch, call: Callable[[], object], spin: float = 100.0, join: bool = False
) -> dict[str, float]:
    """Median and middle half of the readings of a call, in microseconds; and the host's time to
    queue it.
    """
    block = Block(SAMPLES, spin, join)
    found = [watch.sample(call, block)[1:] for _ in range(SAMPLES)]
    torch.cuda.synchronize()
    times = sorted(start.elapsed_time(end) * 1e3 for start, end, _ in found)
    return {
        "median_us": statistics.median(times),
        "low_us": times[SAMPLES // 4],
        "high_us": times[3 * SAMPLES // 4],
        "queued_us": statistics.median(queued for *_, queued in found) * 1e6,
    }


def in_a_row(cycles: int, calls: int = 200) -> float:
    """Microseconds a spin by the host's clock over many in a row: the truth to compare with."""
    torch.cuda._sleep(cycles)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(calls):
        torch.cuda._sleep(cycles)
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / calls * 1e6


def by_profiler(cycles: int, calls: int = 20) -> float:
    """Microseconds a spin as the profiler sees the kernel alone: another truth, without any gap."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(calls):
            torch.cuda._sleep(cycles)
        torch.cuda.synchronize()
    return statistics.median(one.microseconds for one in device_activity(profile))


def reset_cost() -> float:
    """Microseconds of the host for the driver's reset of persisting L2 lines."""
    began = time.perf_counter()
    for _ in range(100):
        reset_persisting()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) * 1e4


def main() -> None:
    watch = Stopwatch("cuda:0")
    watch.heat()
    own = watch.event_ms() * 1e3
    tensor = torch.zeros(16, device="cuda")
    add_one[(1,)](tensor, 0, BLOCK=16)
    torch.cuda.synchronize()
    found: dict[str, object] = {
        "event_us": own,
        "joined_event_us": watch.event_ms(join=True) * 1e3,
        "nothing": reading(watch, lambda: None),
        "nothing_joined": reading(watch, lambda: None, join=True),
        "empty_triton_kernel": reading(watch, lambda: add_one[(1,)](tensor, 0, BLOCK=16)),
        "empty_torch_kernel": reading(watch, lambda: tensor.zero_()),
        "copy_bytes_per_second": watch.copy_bandwidth(),
        "persisting_reset_us": reset_cost(),
    }
    for name, cycles in SPINS.items():
        found[name] = {
            **reading(watch, lambda c=cycles: torch.cuda._sleep(c)),
            "row_us": in_a_row(cycles),
            "kernel_us": by_profiler(cycles),
        }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
