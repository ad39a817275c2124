"""Memory on a board: whose shortage an error is, and how we leave room to others."""

import gc

import torch

KEPT_SHARE = 0.1  # of the board's memory: what a referee may keep for its next answer


def is_memory(error: BaseException) -> bool:
    """Is it the allocator that gave up, and not for instance a kernel's shared memory?"""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    try:
        text = str(error).lower()
    except BaseException:  # noqa: BLE001 - whatever a stranger raises
        return False
    return (
        "can't allocate memory" in text
        or "cuda out of memory" in text
        or "cuda error: out of memory" in text
    )


def ease_memory() -> None:
    """Leave the board's memory to the candidate, once we hold a good part of it: to give it back
    and take it again costs more than a comparison.
    """
    if holds_much_memory():
        give_back_memory()


def holds_much_memory() -> bool:
    """Do we hold a good part of the board's?"""
    _, total = torch.cuda.mem_get_info()
    return torch.cuda.memory_reserved() > KEPT_SHARE * total


def give_back_memory() -> None:
    """Keep none that isn't in use."""
    gc.collect()
    torch.cuda.empty_cache()
