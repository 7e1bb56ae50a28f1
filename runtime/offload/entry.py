"""Walks the entry function of a model on accelerators: what it computes itself, and its launches in order.

The entry function is tile IR that handles sizes, single scalars and buffers only. The interpreter runs it; what has to
do with memory is replaced here. Buffers are device memory or host arrays, launches start PTX or compiled functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from halfulp.compiler.artifact import BufferRole, BufferSpec, CheckSite
from halfulp.compiler.device import DeviceRef
from halfulp.compiler.dialects import tile
from halfulp.compiler.interpreter.frame import Execution, Frame, Handler, Value
from halfulp.compiler.interpreter.integers import as_stored
from halfulp.compiler.interpreter.machine import HANDLERS
from halfulp.compiler.interpreter.memory import Reference
from halfulp.compiler.passes.tile_to_loops.grid_limit import MOST_PROGRAMS
from halfulp.compiler.print_sites import print_site
from halfulp.compiler.ptx_artifact import CompiledPtx

from ..arrays import shape_text
from ..binding import Layout, Shape, ShapePlan, describe
from ..failed_check import failed_check
from ..memory import Array, aligned_array
from ..print_callback import PrintTarget
from .array import DeviceArray, device_array
from .host_launches import HostProgram
from .launches import Failure, PtxProgram, programs_of
from .memory import DeviceHeap, DeviceMemory


@dataclass(frozen=True)
class EntryProgram:
    """What all executions of a model share.

    Attributes:
        compiled: the graph.
        function: its entry, parsed from ``compiled.entry``.
        steps: each launch and check of it, by number.
        devices: where each launch runs.
        slots: the place of each buffer op among ``compiled.buffers``.
        ptx: the kernels on each accelerator; ``host`` those that run on the host, by name.
        heaps: the memory of each accelerator.
        plan: sizes from the shapes of inputs.
    """

    compiled: CompiledPtx
    function: FuncOp
    steps: dict[Operation, int]
    devices: dict[Operation, DeviceRef]
    slots: dict[Operation, int]
    ptx: dict[DeviceRef, PtxProgram]
    host: dict[str, HostProgram]
    heaps: dict[DeviceRef, DeviceHeap]
    plan: ShapePlan


@dataclass
class EntryWalk:
    """One execution. ``known`` has the memory of arguments by slot, ``held`` the device memory between kernels."""

    program: EntryProgram
    layout: Layout
    known: dict[int, Reference]
    target: PrintTarget | None
    computed: list[int] = field(default_factory=list)
    held: dict[int, DeviceMemory] = field(default_factory=dict)

    def run(self) -> dict[int, Reference]:
        """Runs the entry function; the outputs by slot.

        Raises:
            ExecutionError: a check failed, or a size that the graph computed is impossible.
            MemoryError: a device, or the host, has not enough memory.
        """
        handlers: dict[type[Operation], Handler] = {
            **HANDLERS,
            tile.LaunchOp: self._launch,
            tile.BufferOp: self._buffer,
            tile.SetDimOp: self._set_dim,
            tile.CheckOp: self._check,
            tile.TransferOp: self._transfer,
            tile.LoadOp: self._load,
            tile.PrintOp: self._print_line,
            tile.PrintTensorOp: self._print_tensor,
        }
        frame = Frame(Execution(handlers, {}), self.program.compiled.name)
        self._bind(frame)
        with np.errstate(all="ignore"):
            frame.run_ops(self.program.function.body.block)
        return {p: ref for p, ref in self.known.items() if self._spec(p).role is BufferRole.OUTPUT}

    def _spec(self, slot: int) -> BufferSpec:
        return self.program.compiled.buffers[slot]

    def _bind(self, frame: Frame) -> None:
        """Gives the arguments of the entry function their memory, as far as their sizes are known."""
        for placement in self.layout.outputs:
            self.known[placement.slot] = self._allocate(placement.slot, placement.shape)
        for slot, argument in enumerate(self.program.function.body.block.args):
            if slot in self.known:
                frame.set(argument, self.known[slot])

    def _allocate(self, slot: int, shape: Shape) -> Reference:
        spec = self._spec(slot)
        nbytes = self.program.plan.nbytes(spec, shape)
        stored = as_stored(np.empty(0, spec.dtype.to_numpy())).dtype
        extents = shape or (1,)
        subject = f"model '{self.program.compiled.name}': {describe(spec)} of shape {shape_text(shape)}"
        if spec.device.is_host:
            try:
                array, _ = aligned_array(extents, spec.dtype.to_numpy(), nbytes)
            except MemoryError:
                raise MemoryError(f"{subject} needs {nbytes} bytes, and the system refuses them") from None
            return Reference.whole(as_stored(array))
        memory = self.program.heaps[spec.device].allocate(nbytes, subject)
        return DeviceArray(memory, extents, stored, spec.device).reference()

    def _buffer(self, frame: Frame, op: tile.BufferOp) -> Iterable[Value]:
        slot = self.program.slots[op]
        shape = self.layout.shapes[slot]
        assert shape is not None, "a buffer comes after the dims that it needs"
        reference = self._allocate(slot, shape)
        array = device_array(reference)
        if array is not None:
            self.held[slot] = array.memory
        return (reference,)

    def _begin_step(self, op: Operation) -> int:
        """The number of a launch or check. What no step from there on uses is given back."""
        step = self.program.steps[op]
        for slot in [slot for slot in self.held if self._spec(slot).last < step]:
            self.held.pop(slot).release()
        return step

    def _set_dim(self, frame: Frame, op: tile.SetDimOp) -> Iterable[Value]:
        self.computed.append(frame.integer(op.value))
        segment = self.program.compiled.segments[self.layout.stage]
        if len(self.computed) == len(segment.defines):
            self.layout = self.program.plan.advance(self.layout, tuple(self.computed))
            self.computed.clear()
            self._bind(frame)
        return ()

    def _check(self, frame: Frame, op: tile.CheckOp) -> Iterable[Value]:
        step = self._begin_step(op)
        if not frame.array(op.condition):
            (site,) = self.program.compiled.launches[step]
            raise failed_check(self.program.compiled.name, site, 0, frame.integers(op.values), ())
        return ()

    def _launch(self, frame: Frame, op: tile.LaunchOp) -> Iterable[Value]:
        grid, arguments = frame.integers(op.grid), frame.values(op.arguments)
        sites = self.program.compiled.launches[self._begin_step(op)]
        if programs_of(grid) > MOST_PROGRAMS:
            raise self._failed(sites, Failure(0, len(sites) - 1, tuple(grid[:4])), ())
        name, device = op.kernel.string_value(), self.program.devices[op]
        if device.is_host:
            failure = self.program.host[name].launch(grid, arguments, self.target)
        else:
            failure = self.program.ptx[device].launch(name, grid, arguments)
        if failure is not None:
            raise self._failed(sites, failure, grid)
        return ()

    def _failed(self, sites: Sequence[CheckSite], failure: Failure, grid: Sequence[int]) -> Exception:
        site = sites[failure.check]
        values = failure.values[: site.message.count("{}")]
        return failed_check(self.program.compiled.name, site, failure.program, values, grid)

    def _transfer(self, frame: Frame, op: tile.TransferOp) -> Iterable[Value]:
        source, target = frame.reference(op.source), frame.reference(op.target)
        here, there = device_array(source), device_array(target)
        if there is None:
            assert here is not None, "a transfer between two devices"
            here.memory.read(target.array)
        elif here is None:
            there.memory.write(np.ascontiguousarray(source.array))
        else:
            there.memory.copy_from(here.memory)
        return ()

    def _load(self, frame: Frame, op: tile.LoadOp) -> Iterable[Value]:
        """Reads host memory as ever; of device memory a copy, which decides on a branch or a size: one element, say."""
        reference = frame.reference(op.ref)
        array = device_array(reference)
        if array is None:
            return HANDLERS[tile.LoadOp](frame, op)
        other = np.zeros((), array.dtype) if op.other is None else frame.array(op.other)
        mask = None if op.mask is None else frame.array(op.mask)
        return (_on_host(reference, array).load(mask, other),)

    def _print_line(self, frame: Frame, op: tile.PrintOp) -> Iterable[Value]:
        if self.target is not None:
            site = print_site(op)
            arrays = [
                _as_printed(frame.array(value), shown.dtype.to_numpy())
                for value, shown in zip(op.values, site.values, strict=True)
            ]
            self.target.line(site.line(arrays))
        return ()

    def _print_tensor(self, frame: Frame, op: tile.PrintTensorOp) -> Iterable[Value]:
        if self.target is not None:
            site, reference = print_site(op), frame.reference(op.ref)
            (shown,) = site.values
            array = device_array(reference)
            held = _as_printed(reference.array if array is None else array.to_host(), shown.dtype.to_numpy())
            self.target.tensor(site.text, held if shown.shape else held.reshape(()))
        return ()


def _as_printed(array: Array, dtype: np.dtype[Any]) -> Array:
    """In the printed type; integers of the IR have no sign."""
    return np.ascontiguousarray(array).view(dtype).reshape(array.shape)


def _on_host(reference: Reference, array: DeviceArray) -> Reference:
    """The same part of a copy. Of the array only the elements between the first and the last of the part are copied."""
    copy = np.zeros(array.shape, array.dtype)
    lower, upper = reference.lower, [high - 1 for high in reference.upper]
    if all(low <= high for low, high in zip(lower, upper, strict=True)):
        first, last = (int(np.ravel_multi_index(tuple(at), array.shape)) for at in (lower, upper))
        array.memory.read(copy.reshape(-1)[first : last + 1], first * array.dtype.itemsize)
    return replace(reference, array=copy)
