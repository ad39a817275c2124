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
PART = 16 << 20  # bytes that one thread copies in a go
COPIERS = 4
ARGUMENTS = "arguments"  # the place of a tree of arguments, in which unknown types are no fault
PLAIN = re.compile(r"bool|u?int(8|16|32|64)|b?float(16|32|64|8_e\w+)|complex(32|64|128)")
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype) and PLAIN.fullmatch(str(dtype).removeprefix("torch."))
}
DEVICES = ("cpu", "cuda")
# What is used of these below also runs where a candidate's code did: as they are before it.
_equal, _Base = torch.equal, torch._C.TensorBase
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
    pages cost more than the copy.
    """

    def __init__(self, pinned: bool) -> None:
        self._pinned = pinned
        self.copiers = ThreadPoolExecutor(COPIERS)  # one thread copies slower than memory can
        self._buffer = torch.empty(0, dtype=torch.uint8)

    def room(self, size: int) -> torch.Tensor:
        """`size` bytes, uint8; overwritten by the next call."""
        if self._buffer.numel() < size:
            self._buffer = torch.empty(size, dtype=torch.uint8, pin_memory=self._pinned)
        return self._buffer[:size]


class Reader:
    """Rebuilds trees from one shared file of `size` bytes; tensors of the judged device go to
    `device` by way of `landing`.
    """

    def __init__(self, descriptor: int, size: int, device: str, landing: Landing) -> None:
        self._descriptor = descriptor
        self._size = size
        self._device = device
        self._landing = landing
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
            data = self._landing.room(size)
            self._read(data, start, place)
            flat = data.to(self._device)
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
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        if left.shape != right.shape or left.dtype != right.dtype:
            return False
        return _equal(flat_bytes(left), flat_bytes(right))
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same_bits, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(same_bits(left[key], right[key]) for key in left)
    return not isinstance(left, torch.Tensor) and not isinstance(right, torch.Tensor)


def flat_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor's numbers in their order, uint8 of one dimension; a copy only where it has to be."""
    plain = _contiguous(_resolve_neg(_resolve_conj(_detach(tensor))))
    return _view(_as_strided(plain, (_numel(plain),), (1,)), torch.uint8)
