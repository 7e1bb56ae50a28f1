"""The inputs of a model: checks each argument's type and finds its memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from halfulp.compiler.artifact import BufferSpec
from halfulp.compiler.errors import GraphTypeError, near_names, quoted_list

from .arrays import contiguous, element_type, from_object, is_direct, shape_text
from .binding import describe
from .buffer import Buffer
from .errors import ExecutionError
from .memory import Array, address_of


class Parameter:
    """One input of a model; ``position`` is that of its pointer among all that native code gets."""

    __slots__ = ("_alignment", "_model", "_numpy_dtype", "position", "spec")

    def __init__(self, model: str, spec: BufferSpec, position: int) -> None:
        self.spec = spec
        self.position = position
        self._model = model
        self._numpy_dtype = spec.dtype.to_numpy()
        self._alignment = self._numpy_dtype.alignment

    def accept(self, argument: Any) -> tuple[Array, int]:
        """The array of an argument and its address; both are valid while the array lives.

        Buffers and arrays that native code can read in place are not copied, read-only ones included.

        Raises:
            GraphTypeError: no array, another element type, or on another device.
            MemoryError: native code needs a copy, and the system refuses the memory.
        """
        # the usual cases first: this runs once per input and execution
        if type(argument) is Buffer:
            array = argument._array
            if array.dtype is self._numpy_dtype and argument._device.is_host:
                address = argument.address
                if address % self._alignment == 0:
                    return array, address
        elif type(argument) is np.ndarray and argument.dtype is self._numpy_dtype:
            flags = argument.flags
            if flags.c_contiguous and flags.aligned:
                return argument, address_of(argument)
        array = self._convert(argument)
        return array, address_of(array)

    @property
    def _subject(self) -> str:
        return f"model '{self._model}': {describe(self.spec)}"

    def _checked(self, argument: Any) -> Array:
        """The array of an argument, as it lies; its element type and device are right."""
        subject = self._subject
        if isinstance(argument, Buffer):
            if not argument.device.is_host:
                raise GraphTypeError(
                    f"{subject} must be on cpu, got a buffer on {argument.device}; move it with .to(CPU())"
                )
            array = argument._array
        else:
            array = from_object(argument, subject)
        dtype = element_type(array, subject)
        if dtype is not self.spec.dtype:
            raise GraphTypeError(
                f"{subject} must be {self.spec.dtype} {shape_text(self.spec.shape)}, got {dtype} "
                f"{shape_text(array.shape)}; halfulp never converts types unasked, use x.astype(...)"
            )
        return array

    def _convert(self, argument: Any) -> Array:
        array, subject = self._checked(argument), self._subject
        if is_direct(array):
            return array
        try:
            return contiguous(array)
        except MemoryError:
            raise MemoryError(
                f"{subject} of shape {shape_text(array.shape)} is not contiguous, its copy needs {array.nbytes} bytes, "
                "and the system refuses them"
            ) from None


class MutableParameter(Parameter):
    """An input that the model changes: the caller's own memory, where it lies."""

    __slots__ = ()

    def accept(self, argument: Any) -> tuple[Array, int]:
        """The array of an argument and its address.

        Raises:
            GraphTypeError: no array, another element type or device; or memory that cannot be written in place.
        """
        array = self._checked(argument)
        fault = None
        if not (isinstance(argument, Buffer | np.ndarray) or hasattr(argument, "__dlpack__")):
            fault = f"{type(argument).__name__} gives a copy"
        elif not is_direct(array):
            fault = "its elements do not lie one behind the other, aligned and in native byte order"
        elif not array.flags.writeable:
            fault = "it is read-only"
        if fault is not None:
            raise GraphTypeError(
                f"{self._subject} is changed by the model in place, but {fault}; pass a Buffer or a writable array"
            )
        return array, address_of(array)


def check_apart(model: str, parameters: Sequence[Parameter], arrays: Sequence[Array], kept: Sequence[Array]) -> None:
    """Check that no memory that the model changes is that of another input or of a weight; ``kept`` has the weights.

    Raises:
        ExecutionError: some is.
    """
    for parameter, array in zip(parameters, arrays, strict=True):
        if not parameter.spec.mutable:
            continue
        others = [(describe(p.spec), a) for p, a in zip(parameters, arrays, strict=True) if p is not parameter]
        others += [("a weight", a) for a in kept]
        shared = [name for name, other in others if np.may_share_memory(other, array)]
        if shared:
            raise ExecutionError(
                f"model '{model}': {describe(parameter.spec)} is changed by the model, but its memory is that of "
                f"{shared[0]}, too; pass a copy for one of them"
            )


def positional(model: str, names: Sequence[str], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
    """Put positional and keyword arguments in the order of the inputs.

    Raises:
        GraphTypeError: too many arguments, an unknown name, an input given twice, or an input missing.
    """
    check_count(model, names, len(arguments), at_most=True)
    ordered = dict(zip(names, arguments, strict=False))
    for name, value in keywords.items():
        if name not in names:
            hint = near_names(name, names) or f"; its inputs are {quoted_list(names)}"
            raise GraphTypeError(f"model '{model}' has no input '{name}'{hint}")
        if name in ordered:
            raise GraphTypeError(f"model '{model}': input '{name}' is given twice, by position and by name")
        ordered[name] = value
    if missing := [name for name in names if name not in ordered]:
        raise GraphTypeError(f"model '{model}' got no value for {quoted_list(missing)}")
    return [ordered[name] for name in names]


def check_count(model: str, names: Sequence[str], count: int, at_most: bool = False) -> None:
    """Raise a GraphTypeError unless there is one argument for each input (or, ``at_most``, no more than that)."""
    expected = len(names)
    if count > expected or (count < expected and not at_most):
        plural = "" if expected == 1 else "s"
        listed = f" ({', '.join(names)})" if names else ""
        raise GraphTypeError(f"model '{model}' takes {expected} input{plural}{listed}, got {count}")
