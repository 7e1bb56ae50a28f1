"""Inputs and weights of models on accelerators: each must be where the graph says, since nothing is moved unasked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from halfulp.compiler.artifact import BufferRole, BufferSpec
from halfulp.compiler.device import DeviceRef
from halfulp.compiler.errors import GraphTypeError
from halfulp.compiler.interpreter.integers import as_stored
from halfulp.compiler.interpreter.memory import Reference
from halfulp.compiler.ptx_artifact import CompiledPtx

from ..arguments import MutableParameter, Parameter
from ..arrays import shape_text
from ..binding import Shape, describe
from ..buffer import Buffer
from ..device import Device
from ..errors import ExecutionError
from ..memory import Array
from .array import DeviceArray, device_array
from .buffer import DeviceBuffer


def stored_dtype(spec: BufferSpec) -> np.dtype[Any]:
    """The type of a buffer's elements in tile IR, where integers are signed."""
    return as_stored(np.empty(0, spec.dtype.to_numpy())).dtype


def host_reference(array: Array) -> Reference:
    """A host array as an argument of the entry function; a scalar is one element along one axis."""
    return Reference.whole(as_stored(array.reshape(array.shape or (1,))))


class DeviceParameter:
    """One input of a model, or one weight, which is on an accelerator."""

    def __init__(self, model: str, spec: BufferSpec, device: Device) -> None:
        self.spec = spec
        self._device = device
        self._subject = f"model '{model}': {describe(spec)}"

    def accept(self, argument: Any) -> tuple[Reference, Shape]:
        """The buffer as an argument of the entry function, and its shape.

        Raises:
            GraphTypeError: something else than a buffer on that device, or another element type.
        """
        if not isinstance(argument, DeviceBuffer):
            given = "a host buffer" if isinstance(argument, Buffer) else f"{type(argument).__name__} in host memory"
            move = "x.to" if isinstance(argument, Buffer) else "Buffer.from_numpy(x).to"
            self._refuse_device(given, f"{move}({self._device!r})")
        if argument.device != self._device:
            self._refuse_device(f"a buffer on {argument.device!r}", f"x.to({self._device!r})")
        if argument.dtype is not self.spec.dtype:
            raise GraphTypeError(
                f"{self._subject} must be {self.spec.dtype} {shape_text(self.spec.shape)}, got {argument.dtype} "
                f"{shape_text(argument.shape)}; halfulp never converts types unasked, cast it before it is moved"
            )
        return device_reference(self.spec, argument), argument.shape

    def _refuse_device(self, given: str, remedy: str) -> NoReturn:
        raise GraphTypeError(
            f"{self._subject} must be on {self.spec.device} ({self._device!r}), got {given}; move it with {remedy}"
        )


def device_reference(spec: BufferSpec, buffer: DeviceBuffer) -> Reference:
    """A device buffer as an argument of the entry function."""
    return DeviceArray(buffer.memory, buffer.shape or (1,), stored_dtype(spec), spec.device).reference()


class HostParameter:
    """One input of such a model that is in host memory."""

    def __init__(self, model: str, spec: BufferSpec) -> None:
        self.spec = spec
        self._parameter = (MutableParameter if spec.mutable else Parameter)(model, spec, 0)

    def accept(self, argument: Any) -> tuple[Reference, Shape]:
        """The array as an argument of the entry function, and its shape. Raises what `Parameter.accept` raises."""
        array, _ = self._parameter.accept(argument)
        return host_reference(array), array.shape


def parameters_of(
    compiled: CompiledPtx, devices: Mapping[DeviceRef, Device]
) -> list[tuple[int, DeviceParameter | HostParameter]]:
    """The inputs of a model in their order, each with its slot among all buffers."""
    inputs = [(slot, spec) for slot, spec in enumerate(compiled.buffers) if spec.role is BufferRole.INPUT]
    return [
        (slot, HostParameter(compiled.name, spec))
        if spec.device.is_host
        else (slot, DeviceParameter(compiled.name, spec, devices[spec.device]))
        for slot, spec in sorted(inputs, key=lambda pair: pair[1].index)
    ]


def check_apart(model: str, specs: Sequence[BufferSpec], given: Sequence[Reference], kept: Sequence[Reference]) -> None:
    """Check that no memory that the model changes is that of another input or of a weight; ``kept`` has the weights.

    Raises:
        ExecutionError: some is.
    """
    inputs = list(zip(specs, given, strict=True))
    for spec, changed in inputs:
        if not spec.mutable:
            continue
        others = [(describe(other), reference) for other, reference in inputs if other is not spec]
        others += [("a weight", reference) for reference in kept]
        shared = [name for name, reference in others if _share(changed, reference)]
        if shared:
            raise ExecutionError(
                f"model '{model}': {describe(spec)} is changed by the model, but its memory is that of {shared[0]}, "
                "too; pass a copy for one of them"
            )


def _share(some: Reference, other: Reference) -> bool:
    first, second = device_array(some), device_array(other)
    if first is not None and second is not None:
        return first.memory is second.memory
    return first is None and second is None and np.may_share_memory(some.array, other.array)
