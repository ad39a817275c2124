"""In the candidate's process: what a call returned, as a manifest and raw bytes in the shared file.

Every torch function used here is captured before the candidate's import and is a C-level
descriptor, so that a patched `torch.Tensor` or `json` changes nothing. What a hostile candidate
does to this code from inside harms only itself: the referee takes the bytes as an answer to a fresh
challenge, whoever wrote them.
"""

import mmap
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _python_dispatch

from runner.engine.answers import ALIGNMENT, MUCH, SMALL, flat_bytes

MAX_NODES = 512
MAX_DEPTH = 12
MAX_TEXT = 256

_Tensor = torch.Tensor
_Base = torch._C.TensorBase
_dtype = _Base.dtype.__get__  # type: ignore[attr-defined]
_shape = _Base.shape.__get__  # type: ignore[attr-defined]
_device = _Base.device.__get__
_layout = _Base.layout.__get__  # type: ignore[attr-defined]
_stride, _numel, _element_size = _Base.stride, _Base.numel, _Base.element_size
_copy_, _as_strided, _flat_bytes = _Base.copy_, _Base.as_strided, flat_bytes
_storage = _Base.untyped_storage
_storage_pointer = torch.UntypedStorage.data_ptr
_frombuffer, _empty = torch.frombuffer, torch.empty
_uint8, _strided = torch.uint8, torch.strided
_DisableTorchFunction = torch._C.DisableTorchFunction
_disable_modes = _python_dispatch._disable_current_modes
_type, _str, _int, _len, _isinstance = type, str, int, len, isinstance
_walk_tuple, _walk_list = tuple.__iter__, list.__iter__
_vars = object.__getattribute__


class TooMuch(Exception):  # noqa: N818 - becomes part of the manifest
    """The answer has more parts, or more bytes, than the contract could need."""


class Exporter:
    """Writes trees of tensors and numbers into one shared file of fixed size. Small tensors of a
    tree are gathered on the board and leave it together: among others each copy waits for a turn.
    """

    def __init__(self, file: mmap.mmap, size: int, gathers_on: str = "cuda") -> None:
        self._file = file
        self._size = size
        self._gathers_on = gathers_on
        self._offset = 0
        self._nodes = 0
        self._gathered: Any = None  # on the board, as they are to lie in the file
        self._from, self._to = 0, 0  # where in the file; nothing is gathered up to 0

    def begin(self) -> None:
        """Forget what was written: the next tree starts at the beginning of the file."""
        self._offset = self._from = self._to = 0
        self._nodes = 0

    def export(self, tree: object, inputs: Sequence[int] = ()) -> dict:
        """The manifest of a tree. `inputs` are storage pointers: a tensor on one of them is marked
        as their alias.
        """
        with _DisableTorchFunction(), _disable_modes():
            manifest = self._node(tree, tuple(inputs), 0)
            self._let_go()
            return manifest

    def _node(self, value: Any, inputs: tuple[int, ...], depth: int) -> dict:
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            raise TooMuch("the answer has too many parts")
        kind = _type(value)
        if kind is _Tensor:
            return self._readable(value, inputs)
        if _isinstance(value, _Tensor):
            return {"t": "other", "class": _class_name(kind), "why": "a subclass of torch.Tensor"}
        if kind is list or _isinstance(value, tuple):
            walk = _walk_list if kind is list else _walk_tuple  # whatever its class says of walking
            items = [self._node(item, inputs, depth + 1) for item in walk(value)]
            return {"t": "list" if kind is list else "tuple", "items": items}
        if kind is dict:
            return self._dict(value, inputs, depth)
        return _scalar(value, kind)

    def _dict(self, value: dict, inputs: tuple[int, ...], depth: int) -> dict:
        keys = [_key(key) for key in value]
        items = [self._node(item, inputs, depth + 1) for item in value.values()]
        return {"t": "dict", "keys": keys, "items": items}

    def _readable(self, tensor: Any, inputs: tuple[int, ...]) -> dict:
        try:
            return self._tensor(tensor, inputs)
        except TooMuch:
            raise
        except Exception as error:  # noqa: BLE001 - nested, quantized, batched: torch knows more
            why = f"a tensor whose numbers can't be read: {_str(error)[:MAX_TEXT]}"
            return {"t": "other", "class": "Tensor", "why": why}

    def _tensor(self, tensor: Any, inputs: tuple[int, ...]) -> dict:
        attributes = _vars(tensor, "__dict__")
        if attributes:
            why = f"a tensor with attributes of its own: {_str(list(attributes))[:MAX_TEXT]}"
            return {"t": "other", "class": "Tensor", "why": why}
        if _layout(tensor) is not _strided:
            return {"t": "other", "class": "Tensor", "why": f"layout {_layout(tensor)}"}
        node: dict[str, Any] = {
            "t": "tensor",
            "dtype": _str(_dtype(tensor)).removeprefix("torch."),
            "shape": [_int(n) for n in _shape(tensor)],
            "strides": [_int(n) for n in _stride(tensor)],
            "device": _str(_device(tensor).type),
        }
        if node["device"] in ("cpu", "cuda"):
            node["alias"] = _storage_pointer(_storage(tensor)) in inputs
            node["offset"], node["bytes"] = self._write(tensor)
        return node

    def _write(self, tensor: Any) -> tuple[int, int]:
        size = _numel(tensor) * _element_size(tensor)
        start = -(-self._offset // ALIGNMENT) * ALIGNMENT
        if start + size > self._size:
            raise TooMuch(f"the answer has more than {self._size} bytes")
        self._offset = start + size
        if 0 < size <= SMALL and _device(tensor).type == self._gathers_on:
            self._gather(_flat_bytes(tensor), start, size)
        elif size:
            self._let_go()
            _copy_(self._room(start, size), _flat_bytes(tensor))
        return start, size

    def _room(self, start: int, size: int) -> Any:
        return _frombuffer(self._file, dtype=_uint8, count=size, offset=start)

    def _gather(self, flat: Any, start: int, size: int) -> None:
        if self._gathered is None:
            self._gathered = _empty(MUCH, dtype=_uint8, device=_device(flat))
        if self._to and start + size - self._from > MUCH:
            self._let_go()
        first = self._from if self._to else start
        _copy_(_as_strided(self._gathered, (size,), (1,), start - first), flat)
        self._from, self._to = first, start + size

    def _let_go(self) -> None:
        """What was gathered into the file; what lies between comes along."""
        first, size = self._from, self._to - self._from
        self._from = self._to = 0
        if size:
            _copy_(self._room(first, size), _as_strided(self._gathered, (size,), (1,), 0))


def _key(key: Any) -> str:
    return key[:MAX_TEXT] if _type(key) is str else f"<{_class_name(_type(key))}>"


def _scalar(value: Any, kind: type) -> dict:
    if value is None:
        return {"t": "none"}
    if kind is bool:
        return {"t": "bool", "value": bool(value)}
    if kind is int:
        text = _str(value) if value.bit_length() < 4096 else "0"
        return {"t": "int", "value": text}
    if kind is float:
        return {"t": "float", "value": float.hex(value)}
    if kind is complex:
        return {"t": "complex", "value": [float.hex(value.real), float.hex(value.imag)]}
    if kind is str:
        return {"t": "str", "value": value[:MAX_TEXT]}
    return {"t": "other", "class": _class_name(kind), "why": "no tensor, number, list or tuple"}


def _class_name(kind: type) -> str:
    try:
        return _str(type.__dict__["__qualname__"].__get__(kind))[:MAX_TEXT]
    except Exception:  # noqa: BLE001 - a hostile metaclass
        return "?"


def storage_pointers(tree: object) -> list[int]:
    """Addresses of the storages under the tensors of a tree of arguments (made by us, so of known
    types).
    """
    with _DisableTorchFunction(), _disable_modes():
        return [_storage_pointer(_storage(tensor)) for tensor in tensors_of(tree)]


def tensors_of(tree: Any) -> list[Any]:
    """The tensors of a tree of lists, tuples and dicts, in order."""
    if _isinstance(tree, _Tensor):
        return [tree]
    if _isinstance(tree, list | tuple):
        walk = _walk_list if _isinstance(tree, list) else _walk_tuple
        return [found for item in walk(tree) for found in tensors_of(item)]
    if _isinstance(tree, dict):
        return [found for item in dict.values(tree) for found in tensors_of(item)]
    return []
