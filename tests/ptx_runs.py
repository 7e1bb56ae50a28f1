"""Runs tile modules on the emulated GPU and compares every bit with the interpreter.

The entry function is run by the interpreter, each launch by the PTX of its kernel, on copies of the buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from differential import assert_same_bits, entry_of, parse_module
from xdsl.dialects.builtin import ModuleOp

from halfulp.compiler import Graph
from halfulp.compiler.artifact import BufferRole, BufferSpec
from halfulp.compiler.codegen.ptx import ptx_target
from halfulp.compiler.codegen.ptxas import assemble
from halfulp.compiler.compile_ptx import compile_tile_to_ptx
from halfulp.compiler.dialects import tile
from halfulp.compiler.interpreter import machine
from halfulp.compiler.interpreter.frame import FailedCheck, Frame, StopExecution
from halfulp.compiler.interpreter.memory import BufferSource, Reference
from halfulp.compiler.options import CompileOptions
from halfulp.compiler.passes.tile_to_loops.layout import checks_of, entry_layout, kernels_of
from halfulp.compiler.pipeline import buffers_of, lower
from halfulp.compiler.ptx_artifact import NO_FAILURE, PtxKernel
from halfulp.runtime.cuda.emulator import Emulator

Array = np.ndarray[Any, np.dtype[Any]]
MOST_BLOCKS = 61
"""Fewer than some tests have tasks, so that blocks take several; many, since the emulator runs them together."""


class PtxLaunches:
    """Runs the launches of one module on an emulator."""

    def __init__(self, module: ModuleOp, target: str, options: CompileOptions, blocks: int = MOST_BLOCKS) -> None:
        self.tiles = kernels_of(module)
        records, self.ptx = compile_tile_to_ptx(module.clone(), options, ptx_target(target))
        self.kernels = {kernel.name: kernel for kernel in records}
        self.emulator = Emulator()
        self.module = self.emulator.load_module(self.ptx) if self.ptx else None
        self.blocks = blocks

    def launch(self, frame: Frame, op: tile.LaunchOp) -> Iterable[Any]:
        """What the interpreter does at a ``tile.launch``."""
        kernel = self.kernels[op.kernel.string_value()]
        grid = frame.integers(op.grid)
        tasks = kernel.tasks(grid)
        if tasks:
            blocks = min(tasks, self.blocks)
            failure = self._run(kernel, grid, blocks, frame.values(op.arguments))
            if failure is not None:
                frame.execution.failed = failure
                raise StopExecution
        return ()

    def _run(
        self, kernel: PtxKernel, grid: Sequence[int], blocks: int, arguments: Sequence[Array | Reference]
    ) -> FailedCheck | None:
        assert self.module is not None
        device = self.emulator
        parameters: list[Any] = []
        status = np.full(max(1, kernel.status_words(blocks)), NO_FAILURE, np.uint64)
        status_address = self._upload(status)
        parameters += [status_address, device.alloc(max(blocks * kernel.scratch_bytes, 1)), *grid]
        held: list[tuple[Array, int]] = []
        for argument in arguments:
            if isinstance(argument, Reference):
                held.append((argument.array, self._upload(argument.array)))
                parameters += [held[-1][1], *argument.array.shape]
            else:
                parameters.append(argument[()])
        self.module.launch(kernel.symbol, (blocks, 1, 1), (kernel.threads, 1, 1), 0, parameters)
        for array, address in held:
            back = np.empty(array.shape, array.dtype)
            device.copy_to_host(back, address)
            array[...] = back
        device.copy_to_host(status, status_address)
        return self._failure(kernel, status, grid, blocks)

    def _upload(self, array: Array) -> int:
        address = self.emulator.alloc(max(array.nbytes, 1))
        self.emulator.copy_to_device(address, np.ascontiguousarray(array))
        return address

    def _failure(self, kernel: PtxKernel, status: Array, grid: Sequence[int], blocks: int) -> FailedCheck | None:
        failure = kernel.failure(int(status[0]), grid, blocks) if kernel.checks else None
        if failure is None:
            return None
        program, check, first = failure
        op = checks_of(self.tiles[kernel.name])[check]
        values = status[first : first + len(op.values)].view(np.int64)
        place = tuple(int(i) for i in np.unravel_index(program, tuple(grid))) if grid else ()
        return FailedCheck(kernel.name, place, op.message.data.format(*values))


def run_entry(
    module: ModuleOp, launches: PtxLaunches, arrays: Sequence[BufferSource], dims: Mapping[str, int] | None = None
) -> machine.InterpreterResult:
    """The entry function of ``module`` with every launch on the emulated GPU; arrays are changed in place."""
    saved = machine.HANDLERS[tile.LaunchOp]
    machine.HANDLERS[tile.LaunchOp] = launches.launch
    try:
        return machine.interpret(module, entry_of(module).sym_name.data, arrays, dims)
    finally:
        machine.HANDLERS[tile.LaunchOp] = saved


def run_ptx(
    module: ModuleOp,
    arrays: Sequence[BufferSource],
    dims: Mapping[str, int] | None = None,
    target: str = "sm_90",
    options: CompileOptions | None = None,
    blocks: int = MOST_BLOCKS,
) -> machine.InterpreterResult:
    """Compiles a module and runs its entry function once, as ``run_entry`` does."""
    return run_entry(module, PtxLaunches(module, target, options or CompileOptions(), blocks), arrays, dims)


def check_ptx(
    module: ModuleOp | str,
    arrays: Sequence[Array],
    options: CompileOptions | None = None,
    target: str = "sm_90",
    dims: Mapping[str, int] | None = None,
    blocks: int = MOST_BLOCKS,
) -> machine.InterpreterResult:
    """The interpreter's and the emulated GPU's buffers are the same bits, the failed check too."""
    if isinstance(module, str):
        module = parse_module(module)
    expected, actual = ([array.copy() for array in arrays] for _ in range(2))
    wanted = machine.interpret(module, entry_of(module).sym_name.data, expected, dims)
    failed = run_ptx(module, actual, dims, target, options, blocks).failed
    assert failed == wanted.failed, f"{failed} on the GPU, {wanted.failed} interpreted"
    for number, (some, other) in enumerate(zip(actual, expected, strict=True)):
        assert_same_bits(some, other, f"buffer {number}")
    return wanted


class PtxGraph:
    """One graph for the GPU: its tile IR, which the interpreter runs, and its PTX on the emulator."""

    def __init__(self, graph: Graph, options: CompileOptions | None = None, target: str = "sm_80") -> None:
        options = options or CompileOptions()
        self.target = target
        self.module: ModuleOp = graph.module.clone()
        lower(self.module, "tile", options, ptx_target(target))
        self.launches = PtxLaunches(self.module, target, options)
        entry = entry_of(self.module)
        arguments = len(entry.body.block.args)
        self.specs = list(buffers_of(entry, entry_layout(self.module, entry)))[:arguments]

    def check_code(self) -> None:
        """ptxas takes it, and no kernel spills."""
        _, usage = assemble(self.launches.ptx, self.target) if self.launches.ptx else (b"", [])
        assert [str(kernel) for kernel in usage if kernel.spill_stores or kernel.stack_bytes] == []

    def check_bits(self, operands: Sequence[Array]) -> machine.InterpreterResult:
        """Both give the same bits in all buffers."""
        name = entry_of(self.module).sym_name.data
        expected = machine.interpret(self.module, name, self._buffers(operands), self._dims(operands))
        actual = self.run(operands)
        assert actual.failed == expected.failed
        for spec, some, other in zip(self.specs, actual.arrays, expected.arrays, strict=True):
            assert some is not None
            assert other is not None
            assert_same_bits(some, other, f"{spec.role.value} {spec.index}")
        return actual

    def run(self, operands: Sequence[Array]) -> machine.InterpreterResult:
        """On the emulated GPU; all buffers of the entry function, in its order."""
        return run_entry(self.module, self.launches, self._buffers(operands), self._dims(operands))

    def _dims(self, operands: Sequence[Array]) -> dict[str, int]:
        return {
            str(dim): size
            for spec in self.specs
            if spec.role is BufferRole.INPUT
            for dim, size in zip(spec.shape, operands[spec.index].shape, strict=True)
            if str(dim).isidentifier()
        }

    def _buffers(self, operands: Sequence[Array]) -> list[Array | Callable[[Mapping[str, int]], Array]]:
        return [_buffer(spec, operands) for spec in self.specs]


def _buffer(spec: BufferSpec, operands: Sequence[Array]) -> Array | Callable[[Mapping[str, int]], Array]:
    """What a buffer holds before a run; a tensor without axes has one element."""
    dtype = spec.dtype.to_numpy()
    if spec.role is BufferRole.INPUT:
        array = operands[spec.index].copy()
        return array.reshape(array.shape or (1,))
    if spec.role is BufferRole.CONSTANT:
        assert spec.data is not None
        return np.frombuffer(spec.data, dtype).reshape([dim.evaluate({}) for dim in spec.shape] or [1]).copy()
    return lambda dims: np.zeros([dim.evaluate(dims) for dim in spec.shape] or [1], dtype)
