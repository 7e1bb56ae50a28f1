"""The pickle inside of a ``.pt`` file, read by a machine that knows tensors and containers and calls nothing else.

Python's own unpickler calls whatever a file names, and torch's needs torch. This one goes through the opcodes
itself: names stay names, and the only "calls" are the few with which ``torch.save`` describes a tensor. So a file that
holds code cannot run it, and files of tensors can be read where torch is not installed.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool",
}  # fmt: skip
"""The element types of torch's typed storages."""

_UNSTORED = ["uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]
DTYPES = frozenset({*STORAGES.values(), *_UNSTORED})
"""Names of torch's element types, which are ml_dtypes' and numpy's as well."""


class ForeignObjectError(ValueError):
    """The pickle holds something that is no tensor and no plain container; the text says what and where."""


@dataclass(frozen=True)
class Global:
    """The name of something in a module, which is never looked up."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True)
class Storage:
    """Elements that lie in a file of their own beside the pickle; the type is None where the tensor tells it."""

    key: str
    dtype: str | None


@dataclass(frozen=True)
class TensorRecord:
    """A tensor: a view of a storage, with offset and strides in elements."""

    storage: Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Mark:
    """Where a group of operands begins on the stack."""


def _tensor(storage: Storage, offset: int, shape: Any, strides: Any, *rest: Any) -> TensorRecord:
    """``torch._utils._rebuild_tensor_v2``; ``rest`` is requires_grad, hooks and metadata."""
    return _record(storage, storage.dtype, offset, shape, strides, rest[2:])


def _tensor_of_type(storage: Storage, offset: int, shape: Any, strides: Any, *rest: Any) -> TensorRecord:
    """``torch._utils._rebuild_tensor_v3``, whose storage has no type."""
    return _record(storage, rest[2].name, offset, shape, strides, rest[3:])


def _record(storage: Storage, dtype: Any, offset: int, shape: Any, strides: Any, metadata: Any) -> TensorRecord:
    numbers = [offset, *shape, *strides]
    if not isinstance(storage, Storage) or dtype not in DTYPES or len(shape) != len(strides):
        raise TypeError("a tensor is described by something else than numbers")
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise TypeError("a tensor's sizes must be whole numbers")
    if any(metadata) and any(metadata[0].values()):
        raise ForeignObjectError("a tensor that is conjugated or negated only when it is read")
    return TensorRecord(storage, dtype, offset, tuple(shape), tuple(strides))


_CALLS: dict[Global, Callable[..., Any]] = {
    Global("torch._utils", "_rebuild_tensor_v2"): _tensor,
    Global("torch._utils", "_rebuild_tensor_v3"): _tensor_of_type,
    Global("torch._utils", "_rebuild_parameter"): lambda data, *_: data,
    Global("collections", "OrderedDict"): lambda items=(): dict(items),
    Global("torch", "Size"): tuple,
}
_NAMES = frozenset(
    {Global("torch", name) for name in {*STORAGES, *DTYPES}}
    | {Global("torch.storage", "UntypedStorage"), Global("torch", "UntypedStorage")}
)

_PUSHED = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_LITERALS = frozenset(
    {
        "BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "BINFLOAT", "FLOAT",
        "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE",
    }
)  # fmt: skip
_IGNORED = frozenset(("PROTO", "FRAME"))


def unpickle_tensors(data: bytes) -> Any:
    """What the pickle holds, tensors as `TensorRecord`.

    Raises:
        ForeignObjectError: something else than tensors and containers.
        ValueError: no pickle, or a damaged one.
    """
    machine = _Machine()
    try:
        for opcode, argument, position in pickletools.genops(data):
            if opcode.name == "STOP":
                return machine.stack.pop()
            machine.step(opcode.name, argument, position or 0)
    except ForeignObjectError:
        raise
    except (IndexError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"its pickle is damaged: {error}") from None
    raise ValueError("its pickle is damaged: it has no end")


class _Machine:
    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any, position: int) -> None:
        if name in _PUSHED:
            self.stack.append(_PUSHED[name])
        elif name in _LITERALS:
            self.stack.append(argument)
        elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
            self.memo[int(argument)] = self.stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            self.stack.append(self.memo[int(argument)])
        elif name in ("GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "BINPERSID"):
            self._name_or_call(name, argument, position)
        elif name not in _IGNORED:
            self._container(name, position)

    def _name_or_call(self, name: str, argument: Any, position: int) -> None:
        if name == "GLOBAL":
            self.stack.append(_known(Global(*argument.split(" ", 1)), position))
        elif name == "STACK_GLOBAL":
            attribute, module = self.stack.pop(), self.stack.pop()
            self.stack.append(_known(Global(module, attribute), position))
        elif name == "REDUCE":
            arguments, function = self.stack.pop(), self.stack.pop()
            self.stack.append(_CALLS[function](*arguments))
        elif name == "BUILD":
            self.stack.pop()  # what an OrderedDict carries besides its items
            if not isinstance(self.stack[-1], dict):
                raise ForeignObjectError(f"an object with a state of its own, at byte {position}")
        else:
            kind, storage, key, *_ = self.stack.pop()
            if kind != "storage" or not isinstance(storage, Global) or not isinstance(key, str):
                raise ForeignObjectError(f"a reference of kind {kind!r}, at byte {position}")
            self.stack.append(Storage(key, STORAGES.get(storage.name)))

    def _container(self, name: str, position: int) -> None:
        stack = self.stack
        if name == "MARK":
            stack.append(_Mark())
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = stack[-1]
        elif name in ("EMPTY_LIST", "EMPTY_DICT"):
            stack.append([] if name == "EMPTY_LIST" else {})
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[-1])
            stack[-count:] = [tuple(stack[-count:])]
        elif name in ("TUPLE", "LIST", "DICT"):
            items = self._since_mark()
            stack.append(tuple(items) if name == "TUPLE" else items if name == "LIST" else dict(_pairs(items)))
        elif name in ("APPEND", "APPENDS"):
            items = [stack.pop()] if name == "APPEND" else self._since_mark()
            stack[-1].extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = [stack.pop(-2), stack.pop()] if name == "SETITEM" else self._since_mark()
            stack[-1].update(_pairs(items))
        else:
            raise ForeignObjectError(f"the opcode {name}, at byte {position}")

    def _since_mark(self) -> list[Any]:
        place = len(self.stack) - 1
        while not isinstance(self.stack[place], _Mark):
            place -= 1
            if place < 0:
                raise ValueError("a group without a beginning")
        items = self.stack[place + 1 :]
        del self.stack[place:]
        return items


def _known(name: Global, position: int) -> Global:
    if name not in _CALLS and name not in _NAMES:
        raise ForeignObjectError(f"{name}, at byte {position}")
    return name


def _pairs(items: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(items[::2], items[1::2], strict=True)
