"""Whose work is the answer? Pure rules over what was observed of a candidate's calls. Standard
library only.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from runner.engine.operators import (
    COMPUTE_KIND,
    CONSTANT,
    HEAVY_KIND,
    base_name,
    is_delegated,
    kind_of,
)

FULL_SIZE = 4  # an operator works on "full size" from a quarter of the call's largest tensor on
# in all its calls together: a tensor that is worked on slice by slice is worked on
WEIGHTY = 256  # numbers; in smaller calls glue and work have the same size
LEAST_SHARE = (
    0.5  # of the bytes that kernels and torch's arithmetic touch, where there is no device time
)
LEAST_TIME_SHARE = 0.8  # of the device time without copies and fills
HOST_NUMBERS = 1024  # fewer are shapes, flags and losses


@dataclass(frozen=True)
class Operator:
    """One PyTorch operator over all its calls in one challenge: `largest`, the numbers in its
    largest tensor; `bytes` read and written; `numbers` worked on, slices and lists added up.
    """

    name: str
    calls: int
    largest: int
    bytes: int
    numbers: int


@dataclass(frozen=True)
class Observed:
    """What one challenge's calls did, as the candidate's process reports it (checked: it may be
    forged).
    """

    case: str
    largest: int
    operators: tuple[Operator, ...]
    launches: dict[str, int]
    foreign: dict[str, int]
    kernel_bytes: int
    events: dict[str, int]
    host_numbers: int

    @property
    def launch_count(self) -> int:
        """Launches of the candidate's own kernels."""
        return sum(self.launches.values())

    @property
    def is_constant(self) -> bool:
        """Was nothing done but to allocate and fill? Right only where any input has that answer."""
        names = {base_name(op.name) for op in self.operators}
        return bool(names) and names <= CONSTANT and not self.foreign

    def full_size_compute(self) -> list[Operator]:
        """Arithmetic by PyTorch on about as many numbers as the call's largest tensor has."""
        least = max(1, self.largest // FULL_SIZE)
        return [
            op for op in self.operators if op.numbers >= least and kind_of(op.name) == COMPUTE_KIND
        ]

    def own_share(self, work: int, parts: Collection[str] = ()) -> float:
        """The kernels' part of the bytes touched, an estimate for devices without a clock worth
        reading. `work`: the bytes that the whole task has to touch; more than that is no kernel's
        merit, or copying a library's answer a few times would outweigh the library. What PyTorch
        did of the task's own `parts`, operators by name, is left to no kernel.
        """
        theirs = self.full_size_compute()
        torch_bytes = sum(op.bytes for op in theirs)
        done = sum(op.bytes for op in theirs if plain_name(op.name) in parts)
        own_bytes = min(self.kernel_bytes, max(0, work - done))
        total = own_bytes + torch_bytes
        return own_bytes / total if total else 1.0


@dataclass(frozen=True)
class Baseline:
    """What PyTorch's own implementation does on a case: its operators, each with the numbers in its
    largest tensor, and the bytes that the task has to touch, or that the implementation touches
    where those are more.
    """

    operators: tuple[tuple[str, int], ...] = ()
    bytes: int = 0


def read_observed(case: str, largest: object, message: object) -> Observed:
    """An observation out of a candidate's message; what has another form than ours counts as
    nothing seen.
    """
    found = message if isinstance(message, dict) else {}
    operators = found.get("operators")
    return Observed(
        case=case,
        largest=_number(largest),
        operators=tuple(_operators(operators if isinstance(operators, list) else [])),
        launches=_counts(found.get("launches")),
        foreign=_counts(found.get("foreign")),
        kernel_bytes=_number(found.get("kernel_bytes")),
        events=_counts(found.get("events")),
        host_numbers=_number(found.get("host_numbers")),
    )


def _operators(items: list) -> Iterable[Operator]:
    for item in items:
        if isinstance(item, list) and len(item) == 5 and isinstance(item[0], str):
            yield Operator(item[0][:200], *map(_number, item[1:]))


def _counts(value: object) -> dict[str, int]:
    if not isinstance(value, dict):
        return {}
    return {str(name)[:200]: _number(count) for name, count in value.items()}


def _number(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0


def forbidden(
    observed: Sequence[Observed], delegates: tuple[str, ...], reference: dict[str, Baseline]
) -> str | None:
    """The reason why the answer is not the candidate's own work, or None. `reference`: case -> what
    PyTorch does there, for each case on which the candidate called full-size arithmetic of PyTorch.
    """
    if observed and not any(one.launch_count or one.foreign for one in observed):
        heavy = next(filter(None, (_heavy(one, delegates, reference) for one in observed)), None)
        return heavy or "no kernel of the candidate was launched"
    rules = (_compiled, _heavy, _unlaunched, _on_host, _does_the_references)
    for rule in rules:
        for one in observed:
            reason = rule(one, delegates, reference)
            if reason:
                return f"{reason} (case {one.case})"
    return None


def _compiled(one: Observed, _delegates: tuple, _reference: dict) -> str | None:
    return (
        "torch.compile was called: its kernels are not the candidate's"
        if "torch.compile" in one.events
        else None
    )


def _heavy(one: Observed, delegates: tuple, _reference: dict) -> str | None:
    for op in one.operators:
        if kind_of(op.name) == HEAVY_KIND and not is_delegated(op.name, delegates):
            return f"the library operator {op.name} did work that the task asks a kernel for"
    return None


def _unlaunched(one: Observed, _delegates: tuple, _reference: dict) -> str | None:
    if one.launch_count or one.is_constant:
        return None
    if one.foreign:
        names = ", ".join(sorted(one.foreign)[:4])
        return f"only an installed library's kernels were launched: {names}"
    return "no kernel of the candidate was launched"


def _on_host(one: Observed, _delegates: tuple, _reference: dict) -> str | None:
    if one.host_numbers >= max(HOST_NUMBERS, one.largest // FULL_SIZE):
        return f"{one.host_numbers} numbers were moved to the host, out of a call of {one.largest}"
    return None


def _does_the_references(one: Observed, delegates: tuple, reference: dict) -> str | None:
    """All of PyTorch's own arithmetic appears again, or the kernels touch less than half of what
    torch's arithmetic does.
    """
    if one.largest < WEIGHTY:
        return None
    theirs = {
        plain_name(op.name)
        for op in one.full_size_compute()
        if not is_delegated(op.name, delegates)
    }
    baseline = reference.get(one.case, Baseline())
    wanted = {plain_name(name) for name in _full_size_names(baseline, one.largest)}
    if wanted and wanted <= theirs:
        return f"PyTorch's own {', '.join(sorted(wanted))} did the arithmetic of the task"
    share = one.own_share(baseline.bytes, wanted)
    if theirs and not delegates and share <= LEAST_SHARE:
        names = ", ".join(sorted(theirs)[:6])
        return (
            f"PyTorch did most of the arithmetic ({names}): kernels touched {share:.0%} of the "
            "bytes, counting no more than the task has to touch"
        )
    return None


def plain_name(operator: str) -> str:
    """`aten::add_.Tensor` -> `add`: the same work, wherever its result goes."""
    return base_name(operator).rstrip("_")


def _full_size_names(baseline: Baseline, largest: int) -> list[str]:
    least = max(1, largest // FULL_SIZE)
    return [name for name, size in baseline.operators if size >= least and kind_of(name) != "free"]


def torch_arithmetic(observed: Sequence[Observed]) -> str | None:
    """A sentence about full-size arithmetic that PyTorch did beside the kernels, or None: a
    finding, not a verdict.
    """
    names = sorted(
        {
            base_name(op.name)
            for one in observed
            if one.largest >= WEIGHTY
            for op in one.full_size_compute()
        }
    )
    return (
        f"PyTorch did arithmetic on full-size tensors beside the kernels: {', '.join(names[:12])}"
        if names
        else None
    )
