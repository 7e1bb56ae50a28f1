"""What each kernel of a graph reads, writes and computes, as formulas of the graph's sizes.

Bytes count every buffer that a kernel touches once: what must come from memory and go back to it. Operations are those
of the kernel's arithmetic after all expansions, so an exp counts as the steps that it takes here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import mul

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue

from .codegen.cpu import host_target
from .dialects import graph, tile
from .dialects.graph.types import tensor_type
from .dialects.tile.memory import root_of
from .dims import Dim, parse_dim
from .dtypes import DType
from .errors import SourceLocation
from .float_work import per_element
from .graph import Graph
from .locations import location_of
from .op_numerics import numbered_ops
from .options import CompileOptions
from .passes.convert_graph_to_tile import lower_unit
from .passes.fuse_ops import FuseOpsPass, has_epilogue, space_of
from .passes.graph_to_tile.access import call_of, shape_in_memory
from .passes.graph_to_tile.entry import Entry
from .passes.graph_to_tile.regions import lower_cond, lower_while
from .passes.graph_to_tile.schedule import Unit, units_in_order
from .pipeline import lower
from .registry import find_op

NUMBER = "halfulp.number"


@dataclass(frozen=True)
class OpNote:
    """An op of the graph: its number in the graph as built (None for one that a pass added), name and line."""

    number: int | None
    name: str
    location: SourceLocation | None


@dataclass(frozen=True)
class Use:
    """A buffer that a kernel reads or writes."""

    name: str
    dtype: DType
    shape: tuple[Dim, ...]

    @property
    def nbytes(self) -> Dim:
        """Its size."""
        return _product(self.shape) * self.dtype.size_in_bytes


@dataclass(frozen=True)
class KernelCost:
    """What is launched for some ops of the graph that belong together.

    Attributes:
        kernels: the names of its kernels, in order.
        ops: the ops.
        reads: buffers that they read, each once.
        writes: buffers that they write, each once.
        flops: float operations, an fma being two; None where an op with kernels of its own does not say.
        roundings: how many results of float operations are rounded; None likewise.
        depth: how many branches and loops stand around it. Costs are those of one round.
    """

    kernels: tuple[str, ...]
    ops: tuple[OpNote, ...]
    reads: tuple[Use, ...]
    writes: tuple[Use, ...]
    flops: Dim | None
    roundings: Dim | None
    depth: int = 0

    @property
    def read_bytes(self) -> Dim:
        """Bytes of all that is read."""
        return sum((use.nbytes for use in self.reads), Dim(0))

    @property
    def written_bytes(self) -> Dim:
        """Bytes of all that is written."""
        return sum((use.nbytes for use in self.writes), Dim(0))


def kernel_costs(source: Graph, options: CompileOptions | None = None) -> list[KernelCost]:
    """The costs of a graph's kernels, in the order in which they run.

    Raises:
        CompileError: the graph cannot be compiled under these options.
    """
    module = source.module.clone()
    for number, op in numbered_ops(module):
        op.attributes[NUMBER] = IntegerAttr(number, i64)
    options = options or CompileOptions()
    lower(module, "graph", options, host_target(options.vector_bits))
    FuseOpsPass().apply(Context(), module)
    (root,) = (op for op in module.body.block.ops if isinstance(op, graph.GraphOp))
    survey = _Survey(Entry(root, set(), options.fp_contract))
    survey.block(survey.entry, root.body.block)
    return survey.costs()


@dataclass
class _Survey:
    """Lowers a graph unit by unit, and notes which kernels each unit adds."""

    entry: Entry
    found: list[tuple[Unit, list[tile.KernelOp], int]] = field(default_factory=list)
    depth: int = 0

    def block(self, entry: Entry, block: Block) -> None:
        for unit in units_in_order(block):
            first = unit.members[0]
            if isinstance(first, graph.CondOp | graph.WhileOp):
                self.depth += 1
                if isinstance(first, graph.CondOp):
                    lower_cond(entry, first, self.block)
                else:
                    lower_while(entry, first, self.block)
                self.depth -= 1
                continue
            kernels = entry.kernels.body.block.ops
            before = set(kernels)
            lower_unit(entry, unit)
            added = [op for op in kernels if op not in before and isinstance(op, tile.KernelOp)]
            self.found.append((unit, added, self.depth))

    def costs(self) -> list[KernelCost]:
        launches = {op.kernel.string_value(): op for op in self.entry.function.walk() if isinstance(op, tile.LaunchOp)}
        names = self._names()
        result = []
        for unit, kernels, depth in self.found:
            if not kernels:
                continue
            reads: dict[SSAValue, Use] = {}
            writes: dict[SSAValue, Use] = {}
            for kernel in kernels:
                for place, argument in enumerate(launches[kernel.sym_name.data].arguments):
                    if not isinstance(argument.type, tile.RefType):
                        continue
                    root = root_of(argument)
                    for uses, touched in zip((reads, writes), _accesses(kernel, place), strict=True):
                        if touched:
                            uses[root] = names.get(root) or _temporary(root)
            flops, roundings = _work(unit, kernels)
            result.append(
                KernelCost(
                    tuple(kernel.sym_name.data for kernel in kernels),
                    tuple(_notes(unit)),
                    tuple(reads.values()),
                    tuple(writes.values()),
                    flops,
                    roundings,
                    depth,
                )
            )
        return result

    def _names(self) -> dict[SSAValue, Use]:
        """The tensor of the graph that each buffer holds."""
        op = self.entry.op
        named: dict[SSAValue, str] = {argument: name for name, argument in op.inputs.items()}
        for part in op.body.walk():
            if isinstance(part, graph.WeightOp):
                named[part.result] = part.weight_name.data
        found: dict[SSAValue, Use] = {}
        for value, ref in self.entry.refs.items():
            tensor = tensor_type(value)
            text = named.get(value) or _made_by(value)
            found.setdefault(root_of(ref.ssa), Use(text, tensor.dtype, tensor.shape))
        return found


def _made_by(value: SSAValue) -> str:
    op = value.owner
    if isinstance(op, graph.ConstantOp):
        return "constant"
    if isinstance(op, graph.RegisteredOp):
        return f"{op.callee.data} {_number(op)}" if NUMBER in op.attributes else op.callee.data
    return "carried value" if isinstance(op, Block) else op.name.rpartition(".")[2]


def _number(op: Operation) -> int | None:
    attribute = op.attributes.get(NUMBER)
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None


def _notes(unit: Unit) -> Iterator[OpNote]:
    for op in unit.members:
        if isinstance(op, graph.RegisteredOp):
            yield OpNote(_number(op), op.callee.data, location_of(op))


def _temporary(root: SSAValue) -> Use:
    """A buffer that an op with kernels of its own keeps something in."""
    assert isinstance(root.owner, tile.BufferOp)
    assert isinstance(root.type, tile.RefType)
    element = root.type.element_type
    dtype = next(dtype for dtype in DType if dtype.to_element_type() == element)
    return Use("in between", dtype, tuple(parse_dim(text.data) for text in root.owner.shape))


def _accesses(kernel: tile.KernelOp, place: int) -> tuple[bool, bool]:
    """Whether a kernel loads from its argument, and whether it stores to it."""
    argument = kernel.arguments[place]
    loaded = stored = False
    for op in kernel.body.walk():
        for operand in op.operands:
            if isinstance(operand.type, tile.RefType) and root_of(operand) is argument:
                loaded |= isinstance(op, tile.LoadOp)
                stored |= isinstance(op, tile.StoreOp)
    return loaded, stored


# -- operations


def _work(unit: Unit, kernels: Sequence[tile.KernelOp]) -> tuple[Dim | None, Dim | None]:
    """Float operations and roundings of a unit."""
    first = unit.members[0]
    if not isinstance(first, graph.ApplyOp):
        return None, None
    members = [op for op in unit.members if isinstance(op, graph.ApplyOp)]
    head = next((op for op in members if has_epilogue(op)), None)
    own = head if head is not None else first
    definition = find_op(own.callee.data, own.subject)
    if definition.kind == "opaque":
        if definition.multiply_adds is None:
            return None, None
        pairs = definition.multiply_adds(call_of(definition, own))
        elements = _product(own.output_types[0].shape)
        flops, roundings = per_element(kernels[-1:], outside_loops=True)
        return pairs * 2 + elements * flops, pairs + elements * roundings
    if definition.kind == "reduce" and len(members) == 1 and not unit.fused:
        elements = _product(shape_in_memory(own.arguments[0]))
        count = int(
            definition.reduction is not None and definition.reduction(call_of(definition, own)) in ("add", "mul")
        )
        return elements * count, elements * count
    space = space_of(members) if definition.kind in ("map", "reduce") or unit.fused else ()
    flops, roundings = per_element(kernels)
    return _product(space) * flops, _product(space) * roundings


def _product(shape: Sequence[Dim]) -> Dim:
    return reduce(mul, shape, Dim(1))
