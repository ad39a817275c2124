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

from runner.engine.operators import COMPUTE_KIND, FREE_KIND, HEAVY_KIND, base_name, kind_of

# A tensor is printed: torch then looks at its numbers with all modes off. Nobody else can say so.
SHOWN = f"shown {secrets.token_hex(8)}"
BACKENDS = ("CPU", "CUDA", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")

# What torch itself does inside of operators that are no work: a conjugated tensor copied, two
# compared on a board; and inside of its arithmetic, to put things in order.
SIGNS = frozenset({"conj_physical", "_conj_physical", "neg"})
INSIDE_FREE = SIGNS | {"eq", "all"}
INSIDE_COMPUTE = frozenset(
    {"sort", "argsort", "topk", "unique", "_unique2", "unique_dim", "searchsorted"}
)

_numel = torch._C.TensorBase.numel
_event_name = torch._C._autograd.ProfilerEvent.name  # before anybody gives the class another
_event_kind = torch._C._autograd.ProfilerEvent.kind
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
        self._token = secrets.token_hex(8)
        self._begun = f"begun {secrets.token_hex(8)}"
        visible_operators()  # while everybody still says the truth about them

    def seen(self, kind: str = HEAVY_KIND) -> Any:
        """A range in the record: what has it inside went through the mode, and so did what lies
        inside, as far as an operator of that kind may be made of it.
        """
        return _range(f"{self._token} {kind}")

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
        if not any(_event_name(event) == self._begun for events in threads for event in events):
            return None
        return sorted({name for events in threads for name in hidden(events, self._token)})


def hidden(events: Any, token: str) -> list[str]:
    """Operators that do work, neither around a range that the mode marked nor rightly inside."""
    found: list[str] = []
    open_ranges: list[Range] = []
    for event in events:
        kind = _event_kind(event)
        if kind == "push":
            parent = open_ranges[-1] if open_ranges else None
            open_ranges.append(Range(_event_name(event), token, parent))
        elif kind == "pop" and open_ranges:
            ended = open_ranges.pop()
            if ended.around and open_ranges:
                open_ranges[-1].around = True
            if ended.is_hidden_work():
                found.append(ended.name)
    return found


class Range:
    """One operator in the record, by the name that the dispatcher knows it by: inside of what kind
    of marked range is it, is it around one?
    """

    def __init__(self, name: str, token: str, parent: "Range | None") -> None:
        self.name = name
        marked, _, kind = name.partition(" ")
        self.around = marked == token
        self.inside: str = kind if self.around else parent.inside if parent else ""
        self.shown: bool = name == SHOWN or (parent is not None and parent.shown)

    def is_hidden_work(self) -> bool:
        """Work, and of the kind that a mode would have seen, or more than what it saw."""
        if self.around or self.name not in visible_operators():
            return False
        kind = kind_of(self.name)
        name = base_name(self.name).removesuffix("_")
        if self.inside == FREE_KIND:
            return kind != FREE_KIND and name not in INSIDE_FREE
        if self.inside == COMPUTE_KIND:
            return kind == HEAVY_KIND and name not in INSIDE_COMPUTE
        if self.inside or name in SIGNS:
            return False
        return kind == HEAVY_KIND or (kind == COMPUTE_KIND and not self.shown)


def watch_kernels_printing(note: Callable[[int], None]) -> None:
    """Note how many numbers kernels write out in Triton's interpreter."""
    from triton.runtime.interpreter import InterpreterBuilder

    original = InterpreterBuilder.create_print

    def create_print(self: Any, prefix: Any, hexadecimal: Any, values: Any, *rest: Any) -> None:
        original(self, prefix, hexadecimal, values, *rest)
        note(sum(value.data.size for value in values))

    InterpreterBuilder.create_print = create_print


def watch_printing(note: Callable[[int], None], alone: Callable[[str], Any]) -> None:
    """Mark in the record where torch prints a tensor, and note how many numbers it writes out.
    Inside of `alone(place)` nothing of the candidate's runs unnoticed.
    """
    original, options = torch._tensor_str._str, torch._tensor_str.PRINT_OPTS

    def text(tensor: Any, *args: Any, **kwargs: Any) -> str:
        with alone("the printing of a tensor"), _range(SHOWN):
            shown: str = original(tensor, *args, **kwargs)
        if isinstance(tensor, torch.Tensor) and _numel(tensor) <= options.threshold:
            note(_numel(tensor))
        return shown

    torch._tensor_str._str = text  # type: ignore[assignment]
