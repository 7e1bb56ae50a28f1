"""`DeviceModel`: a graph that is compiled for accelerators, ready to run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from halfulp.compiler.artifact import BufferRole, BufferSpec
from halfulp.compiler.device import DeviceRef
from halfulp.compiler.errors import GraphError
from halfulp.compiler.interpreter.memory import Reference
from halfulp.compiler.ptx_artifact import CompiledPtx

from ..arguments import check_count
from ..binding import describe
from ..buffer import Buffer, wrap
from ..device import CPU, Device
from ..model import Model
from ..print_callback import FinishedTarget
from ..printing import Printer
from .arguments import check_apart, device_reference, host_reference, parameters_of
from .array import DeviceArray, device_array
from .buffer import DeviceBuffer, upload, wrap_memory
from .entry import EntryWalk
from .program import entry_program

if TYPE_CHECKING:
    from ..debug.options import DebugOptions

_HOST = CPU()


class DeviceModel(Model):
    """A model on one or several accelerators, and the host where the graph says so.

    Args:
        compiled: what the compiler made.
        devices: the accelerator for each one that the graph names.
        weights: by name, a buffer for each weight. Those that the graph has on an accelerator are copied there now,
            unless they are there already.
        printer, debug, checked: as for `Model`.

    Raises:
        OutOfDeviceMemoryError: an accelerator has no room for the weights and constants.
    """

    _compiled: CompiledPtx

    def __init__(
        self,
        compiled: CompiledPtx,
        devices: Mapping[DeviceRef, Device],
        weights: Mapping[str, Buffer],
        printer: Printer | None = None,
        debug: DebugOptions | None = None,
        checked: Callable[[], Model] | None = None,
    ) -> None:
        super().__init__(compiled, printer, debug, checked)
        self._devices = devices
        self._program = entry_program(compiled, devices, self._plan, self._threads)
        self._parameters = parameters_of(compiled, devices)
        self._kept = {
            slot: self._placed(spec, _content(spec, weights))
            for slot, spec in enumerate(compiled.buffers)
            if spec.role in (BufferRole.WEIGHT, BufferRole.CONSTANT)
        }

    def _placed(self, spec: BufferSpec, content: Buffer) -> Reference:
        """A weight or constant where the graph has it."""
        if spec.device.is_host:
            return host_reference(content.to_numpy())
        device = self._devices[spec.device]
        if not isinstance(content, DeviceBuffer):
            content = upload(content, device, f"model '{self.name}': {describe(spec)}")
        return device_reference(spec, content)

    def save(self, path: str | os.PathLike[str]) -> NoReturn:
        raise GraphError(
            f"model '{self.name}': a model for {', '.join(map(repr, self._devices.values()))} cannot be saved; the "
            "cache keeps what was compiled for it by itself"
        )

    def execute(self, *arguments: Any) -> list[Buffer]:
        if self._debug is not None and self._debug.nan_check:
            return self._checked_model().execute(*arguments)
        check_count(self.name, self._input_names, len(arguments))
        accepted = [parameter.accept(given) for (_, parameter), given in zip(self._parameters, arguments, strict=True)]
        given = {slot: reference for (slot, _), (reference, _) in zip(self._parameters, accepted, strict=True)}
        if self._changes_inputs:
            specs = [parameter.spec for _, parameter in self._parameters]
            check_apart(self.name, specs, list(given.values()), list(self._kept.values()))
        layout = self._start(tuple(shape for _, shape in accepted))
        target: FinishedTarget | None = self._print_target() if self._compiled.prints else None
        walk = EntryWalk(self._program, layout, {**self._kept, **given}, target)
        outputs = self._buffers(walk)
        if target is not None:
            target.finish()
        return outputs

    def _buffers(self, walk: EntryWalk) -> list[Buffer]:
        """The outputs of an execution, in order."""
        found = walk.run()
        outputs: dict[int, Buffer] = {}
        for slot, reference in found.items():
            spec, shape = self._compiled.buffers[slot], walk.layout.shapes[slot]
            assert shape is not None
            array: DeviceArray | None = device_array(reference)
            if array is None:
                host = reference.array.view(spec.dtype.to_numpy()).reshape(shape)
                outputs[spec.index] = wrap(host, spec.dtype, _HOST)
            else:
                outputs[spec.index] = wrap_memory(array.memory, spec.dtype, shape, self._devices[spec.device])
        return [outputs[index] for index in range(self._output_count)]


def _content(spec: BufferSpec, weights: Mapping[str, Buffer]) -> Buffer:
    """The elements of a weight or constant."""
    if spec.role is BufferRole.WEIGHT:
        return weights[spec.name]
    assert spec.data is not None, f"constant {spec.name} has no content"
    shape = tuple(int(dim) for dim in spec.shape)
    flat = np.frombuffer(bytearray(spec.data), np.uint8)
    array = flat.view(spec.dtype.to_numpy()).reshape(shape)
    return Buffer.from_numpy(array, copy=True)
