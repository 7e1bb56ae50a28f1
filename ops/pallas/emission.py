"""Puts a traced kernel into an entry function: memory is made ready, then the kernel is launched.

Outputs start as the pad, or as the input that is aliased to them. Scratch that programs share starts as the pad. An
input that the kernel writes to is copied first, since the caller's array must not change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import BoolAttr, StringAttr

from halfulp.compiler import Dim, TensorValue
from halfulp.compiler.dialects import tile
from halfulp.compiler.dims import SymbolicDim, fold
from halfulp.compiler.passes.graph_to_tile.copies import emit_copy
from halfulp.compiler.tile_builder import EntryBuilder, KernelBuilder, Value

from .kernel_trace import TracedKernel
from .mapping import GridMapping
from .op_scalar import OpScalar
from .refs import pad_of
from .specs import MemorySpace

FILLED = 4096
"""Elements of a program that fills memory."""


@dataclass(frozen=True)
class Plan:
    """All that is needed to emit a call.

    Attributes:
        kernel: the traced kernel.
        mapping: grid, blocks and scratch.
        aliases: from the index of an input to that of the output which starts as a copy of it.
        private_axes: the axes of the grid along which each program has scratch of its own.
    """

    kernel: TracedKernel
    mapping: GridMapping
    aliases: Mapping[int, int]
    private_axes: tuple[int, ...]

    @property
    def grid_operands(self) -> tuple[TensorValue, ...]:
        """The sizes of the grid that are tensors: operands behind the inputs."""
        return tuple(size for size in self.mapping.grid if isinstance(size, TensorValue))

    def key(self) -> str:
        """What the call computes, as text: equal for equal calls in every process."""
        grid = ["tensor" if isinstance(size, TensorValue) else str(size) for size in self.mapping.grid]
        scratch = [(s.shape, s.dtype.value, s.space.value) for s in self.mapping.scratch]
        types = [(tuple(map(str, m.shape)), m.dtype.value) for m in self.mapping.block_mappings]
        return repr((self.kernel.digest, grid, sorted(self.aliases.items()), scratch, types, self.private_axes))


def emit_call(
    entry: EntryBuilder,
    plan: Plan,
    operands: Sequence[Value],
    outputs: Sequence[Value],
    prefix: str = "",
    in_place: Collection[int] = (),
) -> None:
    """Emits the launches of a call.

    ``operands`` are the inputs, then the sizes of the grid that are tensors; ``outputs`` are those of the kernel. The
    name of the kernel gets ``prefix`` in front. An input that the kernel writes to is a copy, unless it is one of those
    numbered ``in_place``, which belong to the caller to be changed.
    """
    mapping, kernel = plan.mapping, plan.kernel
    count = len(mapping.inputs)
    inputs, sizes = list(operands[:count]), list(operands[count:])
    sources = {output: inputs[index] for index, output in plan.aliases.items()}
    for number, (block, output) in enumerate(zip(mapping.outputs, outputs, strict=True)):
        if number in kernel.covered:
            continue
        if number in sources:
            emit_copy(entry, sources[number], output)
        else:
            emit_fill(entry, output, pad_of(block.dtype))
    for number, block in enumerate(mapping.inputs):
        if number in kernel.written and number not in in_place:
            copy = entry.buffer([str(size) for size in block.shape] or ["1"], block.dtype.to_element_type())
            emit_copy(entry, inputs[number], copy)
            inputs[number] = copy
    scratch = _scratch(entry, plan)
    grid = _Grid(entry, plan, [*operands[:count], *outputs], sizes).values()
    launched = _with_numerics(kernel.op, entry)
    if prefix:
        launched.sym_name = StringAttr(f"{prefix}_{launched.sym_name.data}")
    entry.launch_kernel(launched, [*inputs, *outputs, *scratch], grid)


def emit_fill(entry: EntryBuilder, target: Value, number: int | float) -> None:
    """Launches a kernel that fills a buffer with a number."""
    flat = entry.flatten(target)

    def body(k: KernelBuilder) -> None:
        (program,), (memory,) = k.program_ids, k.arguments
        k.store(k.splat(k.constant(number, memory.element_type), [FILLED]), k.window(memory, [program], [FILLED]))

    entry.launch("fill", [flat], [(entry.dim(flat, 0) + (FILLED - 1)) // FILLED], body)


def _scratch(entry: EntryBuilder, plan: Plan) -> list[Value]:
    buffers = []
    for shape in plan.mapping.scratch:
        if shape.space is not MemorySpace.ANY:
            continue
        sizes = [str(plan.mapping.grid[axis]) for axis in plan.private_axes]
        texts = [*sizes, *map(str, shape.shape)] or ["1"]
        buffer = entry.buffer(texts, shape.dtype.to_element_type())
        emit_fill(entry, buffer, pad_of(shape.dtype))
        buffers.append(buffer)
    return buffers


def _with_numerics(kernel: tile.KernelOp, entry: EntryBuilder) -> tile.KernelOp:
    """The kernel with the fastmath flags and the contraction mode that the graph is compiled with."""
    from halfulp.compiler.fastmath import carries_flags, put_flags  # takes 40 ms, most of them xDSL's llvm dialect

    kernel = kernel.clone()
    flags = [flag.value for flag in entry.fastmath.data]
    for op in kernel.body.walk():
        if flags and carries_flags(op):
            put_flags(op, flags)
        if entry.fp_contract == "off" and isinstance(op, tile.DotOp):
            op.fused = BoolAttr.from_bool(False)
    return kernel


class _Grid:
    """The sizes of the grid in the entry function."""

    def __init__(self, entry: EntryBuilder, plan: Plan, references: Sequence[Value], sizes: Sequence[Value]) -> None:
        self.entry = entry
        self.mapping = plan.mapping
        self.references = references
        self.sizes = list(sizes)

    def values(self) -> list[Value]:
        """One index for each axis."""
        return [self._value(size) for size in self.mapping.grid]

    def _value(self, size: Any) -> Value:
        builder = self.entry
        if isinstance(size, TensorValue):
            read = builder.read(self.sizes.pop(0), 0)
            return builder.cast(read, builder.index(0).type, unsigned_source=size.dtype.kind == "unsigned")
        if isinstance(size, OpScalar):
            return size.value
        if isinstance(size, Dim):
            return fold(size, builder.index, self._symbol, Value.__add__, Value.__mul__, Value.__floordiv__)
        return builder.index(size)

    def _symbol(self, name: str) -> Value:
        axes = (
            (reference, axis, size)
            for reference, block in zip(self.references, self.mapping.block_mappings, strict=True)
            for axis, size in enumerate(block.shape)
        )
        for reference, axis, size in axes:
            if isinstance(size, SymbolicDim) and size.name == name:
                return self.entry.dim(reference, axis)
        raise AssertionError(f"no operand or output has an axis of size {name}")


def unknown_symbols(mapping: GridMapping) -> list[str]:
    """Symbols of the grid that no operand and no output has as the size of an axis."""
    known = {size.name for m in mapping.block_mappings for size in m.shape if isinstance(size, SymbolicDim)}
    wanted = {symbol for size in mapping.grid if isinstance(size, Dim) for symbol in size.symbols}
    return sorted(wanted - known)
