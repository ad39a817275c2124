"""In the referee: manifests and raw bytes from a candidate back into trees, each byte read exactly
once.

Everything here is checked as hostile. The bytes are copied out of the shared file with `pread`
before anything looks at them: the candidate may go on writing there, what is judged no longer
changes.
"""

import os
import re
from concurrent.futures import ThreadPoolExecutor

import torch

MAX_NODES = 4096
ALIGNMENT = 64
PART = 16 << 20  # bytes that one thread copies in a go
COPIERS = 4
SMALL, MUCH = 256 << 10, 4 << 20  # bytes of a tensor, and of all those that travel together
ARGUMENTS = "arguments"  # the place of a tree of arguments, in which unknown types are no fault
PLAIN = re.compile(r"bool|u?int(8|16|32|64)|b?float(16|32|64|8_e\w+)|complex(32|64|128)")
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype) and PLAIN.fullmatch(str(dtype).removeprefix("torch."))
}
DEVICES = ("cpu", "cuda")
# What is used of these below also runs where a candidate's code did: as they are before it.
_equal, _stack, _Base = torch.equal, torch.stack, torch._C.TensorBase
_differ, _any, _item, _is_cuda = _Base.ne, _Base.any, _Base.item, _Base.is_cuda.__get__  # type: ignore[attr-defined]
_detach, _contiguous, _view = _Base.detach, _Base.contiguous, _Base.view
_as_strided, _numel = _Base.as_strided, _Base.numel  # one number has any stride and is contiguous
_resolve_conj, _resolve_neg = _Base.resolve_conj, _Base.resolve_neg


class BadManifest(Exception):  # noqa: N818 - the candidate's fault, not an error of ours
    """A manifest that our own code in the candidate's process would not have written."""


class WrongType(Exception):  # noqa: N818 - becomes the verdict wrong-dtype
    """A part of the answer is no plain tensor, number, list or tuple; `str()` says which part and
    why.
    """


class Opaque:
    """Stands for an argument that is no tensor or number, such as a dtype: nobody compares it."""


class Landing:
    """Host memory that bytes on their way to the board are read into: pinned and kept, since fresh
    pages cost more than the copy. Small tensors of an answer land side by side, so that nobody
    waits for the board between them: among others on it each wait costs a turn.
    """

    def __init__(self, pinned: bool) -> None:
        self._pinned = pinned
        self.copiers = ThreadPoolExecutor(COPIERS)  # one thread copies slower than memory can
        self._large, self._small = self._fresh(0), self._fresh(MUCH)
        self._taken = 0

    def _fresh(self, size: int) -> torch.Tensor:
        return torch.empty(size, dtype=torch.uint8, pin_memory=self._pinned)

    def begin(self) -> None:
        """A new answer: what landed before is on the board or of no use any more."""
        if self._pinned and self._taken and not torch.cuda.current_stream().query():
            torch.cuda.synchronize()
        self._taken = 0

    def room(self, size: int) -> tuple[torch.Tensor, bool]:
        """`size` bytes, uint8, and whether they stay as they are until `begin`: others are
        overwritten by the next call.
        """
        start, end = self._taken, self._taken + size
        if size <= SMALL and end <= self._small.numel():
            self._taken = -(-end // ALIGNMENT) * ALIGNMENT
            return self._small[start:end], True
        if self._large.numel() < size:
            self._large = self._fresh(size)
        return self._large[:size], False


class Reader:
    """Rebuilds trees from one shared file of `size` bytes; tensors of the judged device go to
    `device` by way of `landing`.
    """

    def __init__(self, descriptor: int, size: int, device: str, landing: Landing) -> None:
        self._descriptor = descriptor
        self._size = size
        self._device = device
        self._landing = landing
        landing.begin()
        self._nodes = 0
        self._end = 0

    def tree(self, node: object, place: str = "output") -> object:
        """The value that a manifest describes; raises BadManifest or WrongType."""
        self._nodes += 1
        if self._nodes > MAX_NODES or not isinstance(node, dict):
            raise BadManifest(f"{place}: not a node")
        kind = node.get("t")
        if kind == "tensor":
            return self._tensor(node, place)
        if kind in ("tuple", "list", "dict"):
            return self._collection(kind, node, place)
        if kind == "other" and place.startswith(ARGUMENTS):
            return Opaque()
        if kind == "other":
            raise WrongType(
                f"{place} is {str(node.get('class'))[:80]}: {str(node.get('why'))[:300]}"
            )
        return _scalar(kind, node.get("value"), place)

    def _collection(self, kind: str, node: dict, place: str) -> object:
        items = node.get("items")
        if not isinstance(items, list):
            raise BadManifest(f"{place}: no items")
        if kind == "dict":
            keys = node.get("keys")
            if not isinstance(keys, list) or len(keys) != len(items):
                raise BadManifest(f"{place}: keys and items differ in number")
            return {
                str(k): self.tree(v, f"{place}[{k!r}]") for k, v in zip(keys, items, strict=True)
            }
        values = [self.tree(item, f"{place}[{index}]") for index, item in enumerate(items)]
        return values if kind == "list" else tuple(values)

    def _tensor(self, node: dict, place: str) -> torch.Tensor:
        device, dtype = node.get("device"), DTYPES.get(str(node.get("dtype")))
        if device not in DEVICES or dtype is None:
            raise WrongType(f"{place} is a {node.get('dtype')} tensor on device {str(device)[:20]}")
        shape = _sizes(node.get("shape"), place)
        size = _count(shape) * dtype.itemsize
        start = self._start(node, size, place)
        if device == "cuda":
            data, stays = self._landing.room(size)
            self._read(data, start, place)
            flat = data.to(self._device, non_blocking=stays)
        else:
            flat = torch.empty(size, dtype=torch.uint8)
            self._read(flat, start, place)
        try:
            return _as_dtype(flat, dtype).reshape(shape)
        except RuntimeError as error:
            raise BadManifest(f"{place}: {str(error)[:200]}") from error

    def _start(self, node: dict, size: int, place: str) -> int:
        start = node.get("offset")
        if (
            type(start) is not int
            or start < self._end
            or start + size > self._size
            or node.get("bytes") != size
        ):
            raise BadManifest(f"{place}: lies outside of the shared file or on another tensor")
        self._end = start + size
        return start

    def _read(self, data: torch.Tensor, start: int, place: str) -> None:
        view, size = data.numpy().data, data.numel()
        parts = [(view[first : first + PART], start + first) for first in range(0, size, PART)]
        if not all(self._landing.copiers.map(self._read_part, parts)):
            raise BadManifest(f"{place}: the shared file is shorter than announced")

    def _read_part(self, part: tuple[memoryview, int]) -> bool:
        view, start = part
        done = 0
        while done < len(view):
            count = os.preadv(self._descriptor, [view[done:]], start + done)
            if count == 0:
                return False
            done += count
        return True


def _as_dtype(flat: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Bytes as numbers; a bool of any other byte than 0 and 1 is true, for everybody."""
    return flat != 0 if dtype is torch.bool else flat.view(dtype)


def _sizes(shape: object, place: str) -> list[int]:
    if not isinstance(shape, list) or len(shape) > 64:
        raise BadManifest(f"{place}: no shape")
    if not all(type(n) is int and 0 <= n < 1 << 48 for n in shape):
        raise BadManifest(f"{place}: impossible shape")
    return shape


def _count(shape: list[int]) -> int:
    count = 1
    for n in shape:
        count *= n
    return count


def _scalar(kind: object, value: object, place: str) -> object:
    try:
        if kind == "none":
            return None
        if kind == "bool":
            return value is True
        if kind == "int":
            return int(str(value)[:2000])
        if kind == "float":
            return float.fromhex(str(value))
        if kind == "complex" and isinstance(value, list):
            real, imaginary = value
            return complex(float.fromhex(str(real)), float.fromhex(str(imaginary)))
    except (ValueError, OverflowError) as error:
        raise BadManifest(f"{place}: {error}") from error
    if kind == "str":
        return str(value)
    raise BadManifest(f"{place}: unknown kind of node")


def same_form(left: object, right: object) -> bool:
    """Are two trees of arguments equal but for the numbers in their tensors?"""
    if isinstance(right, torch.Tensor):
        alike = isinstance(left, torch.Tensor)
        return alike and (left.shape, left.dtype) == (right.shape, right.dtype)  # type: ignore[attr-defined]
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same_form, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(same_form(left[key], right[key]) for key in right)
    collections = torch.Tensor | list | tuple | dict
    return not isinstance(left, collections) and not isinstance(right, collections)


def same_bits(left: object, right: object) -> bool:
    """Are two trees of arguments equal bit by bit? NaNs count as equal when their bits are."""
    pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
    return _pair_up(left, right, pairs) and _all_equal(pairs)


def _pair_up(left: object, right: object, pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> bool:
    """Put the tensors at equal places, as bytes, into `pairs`; are the trees alike otherwise?"""
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        if left.shape != right.shape or left.dtype != right.dtype:
            return False
        pairs.append((flat_bytes(left), flat_bytes(right)))
        return True
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        alike = len(left) == len(right)
        return alike and all(_pair_up(*both, pairs) for both in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(
            _pair_up(left[key], right[key], pairs) for key in left
        )
    return not isinstance(left, torch.Tensor) and not isinstance(right, torch.Tensor)


def _all_equal(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> bool:
    """The same bytes in each pair; a board is waited for once."""
    on_board = [_is_cuda(one) and _is_cuda(other) for one, other in pairs]
    if len(pairs) < 2 or not all(on_board):
        return all(_equal(one, other) for one, other in pairs)
    return not _item(_any(_stack([_any(_differ(one, other)) for one, other in pairs])))


def flat_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor's numbers in their order, uint8 of one dimension; a copy only where it has to be."""
    plain = _contiguous(_resolve_neg(_resolve_conj(_detach(tensor))))
    return _view(_as_strided(plain, (_numel(plain),), (1,)), torch.uint8)
