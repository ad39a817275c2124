"""In the candidate's process: torch's own recorder of operators, under Python's modes.

A dispatch mode sees what Python lets it see, and a candidate can switch it off. The recorder sits
in the dispatcher: an operator in its record that the mode did not see was called behind its back.
It belongs to one thread and needs no device.
"""

import secrets
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from runner.engine.operators import COMPUTE_KIND, HEAVY_KIND, kind_of

SHOWN = "shown"  # a tensor is printed: torch then looks at its numbers with all modes off
BACKENDS = ("CPU", "CUDA", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")

_numel = torch._C.TensorBase.numel
_profiler = torch._C._profiler
_range = _profiler._RecordFunctionFast
_enable, _disable = (
    torch._C._autograd._enable_profiler_legacy,
    torch._C._autograd._disable_profiler_legacy,
)
_CONFIG = _profiler.ProfilerConfig(
    _profiler.ProfilerState.CPU,
    False,
    False,
    False,
    False,
    False,
    _profiler._ExperimentalConfig(),
)


@cache
def known_operators() -> frozenset[str]:
    """Every operator that exists before a candidate does, as the dispatcher names it."""
    return frozenset(torch._C._dispatch_get_all_op_names())


@cache
def visible_operators() -> frozenset[str]:
    """Those that a mode sees when it is on, without overloads: not those made of others."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return frozenset(
        name.partition(".")[0]
        for name in known_operators()
        if any(has_kernel(name, backend) for backend in BACKENDS)
    )


class Witness:
    """Records one call. `seen()` goes around what the mode sees."""

    def __init__(self) -> None:
        self.mark = f"seen {secrets.token_hex(8)}"
        self._begun = f"begun {secrets.token_hex(8)}"

    def seen(self) -> Any:
        """A range in the record: what lies inside, or has it inside, went through the mode."""
        return _range(self.mark)

    def start(self) -> None:
        """Record this thread's operators from here on."""
        _enable(_CONFIG)
        with _range(self._begun):
            pass

    def stop(self) -> list[str] | None:
        """The work that no mode saw, by operator; None when somebody stopped the record before, or
        began it anew.
        """
        try:
            threads = _disable()
        except RuntimeError:
            return None
        if not any(event.name() == self._begun for events in threads for event in events):
            return None
        return sorted({name for events in threads for name in hidden(events, self.mark)})


def hidden(events: Any, mark: str) -> list[str]:
    """Operators that do work, neither inside of a marked range nor around one."""
    found: list[str] = []
    open_ranges: list[Range] = []
    for event in events:
        if event.kind() == "push":
            parent = open_ranges[-1] if open_ranges else None
            open_ranges.append(Range(event.name(), mark, parent))
        elif event.kind() == "pop" and open_ranges:
            ended = open_ranges.pop()
            if ended.around and open_ranges:
                open_ranges[-1].around = True
            if ended.is_hidden_work():
                found.append(ended.name)
    return found


class Range:
    """One operator in the record: is it inside of a marked range, is it around one?"""

    def __init__(self, name: str, mark: str, parent: "Range | None") -> None:
        self.name = name
        self.inside: bool = name == mark or (parent is not None and parent.inside)
        self.shown: bool = name == SHOWN or (parent is not None and parent.shown)
        self.around = name == mark

    def is_hidden_work(self) -> bool:
        """Work, and of the kind that a mode would have seen."""
        if self.inside or self.around or self.name not in visible_operators():
            return False
        kind = kind_of(self.name)
        return kind == HEAVY_KIND or (kind == COMPUTE_KIND and not self.shown)


def watch_kernels_printing(note: Callable[[int], None]) -> None:
    """Note how many numbers kernels write out in Triton's interpreter."""
    from triton.runtime.interpreter import InterpreterBuilder

    original = InterpreterBuilder.create_print

    def create_print(self: Any, prefix: Any, hexadecimal: Any, values: Any, *rest: Any) -> None:
        original(self, prefix, hexadecimal, values, *rest)
        note(sum(value.data.size for value in values))

    InterpreterBuilder.create_print = create_print


def watch_printing(note: Callable[[int], None]) -> None:
    """Mark in the record where torch prints a tensor, and note how many numbers it writes out."""
    original, options = torch._tensor_str._str, torch._tensor_str.PRINT_OPTS

    def text(tensor: Any, *args: Any, **kwargs: Any) -> str:
        with _range(SHOWN):
            shown: str = original(tensor, *args, **kwargs)
        if isinstance(tensor, torch.Tensor) and _numel(tensor) <= options.threshold:
            note(_numel(tensor))
        return shown

    torch._tensor_str._str = text  # type: ignore[assignment]
