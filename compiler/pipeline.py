"""The way from a graph to object code, stage by stage; each stage can be printed, and started from.

The order of passes is here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute

from .artifact import BufferRole, BufferSpec, CheckSite, CompiledGraph, Segment
from .dialects.graph import DenseDataAttr, GraphTensorType
from .dialects.tile import RefType
from .dims import parse_dim
from .dtypes import DType
from .errors import CompileError
from .options import CompileOptions
from .passes import get_all_passes
from .passes.graph_to_tile.entry import DATA, INDEX, NAME, ROLE, TYPE
from .passes.tile_to_loops.layout import EntryLayout, entry_layout
from .types import TensorType

if TYPE_CHECKING:
    from .codegen.cpu import CpuTarget
    from .graph import Graph

STAGES = ("graph", "tile", "loops", "llvm", "ll", "asm")
"""What ``emit`` can print: the IR after each group of passes, LLVM's text, the assembly."""

FP_CONTRACT = "halfulp.fp_contract"


def _passes_of(stage: str, options: CompileOptions, target: CpuTarget) -> list[tuple[str, dict[str, object]]]:
    """The passes that lead to a stage from the one before it, with their options."""
    table: dict[str, list[tuple[str, dict[str, object]]]] = {
        "graph": [("verify-graph", {})],
        "tile": [("convert-graph-to-tile", {})],
        "loops": [("expand-math", {}), ("convert-tile-to-loops", {"vector_bits": target.vector_bits})],
        "llvm": [("convert-loops-to-llvm", {"arch": target.arch})],
    }
    return table[stage]


def stage_of(module: ModuleOp) -> str:
    """The stage that a module is at: the first one whose ops it holds."""
    dialects = {op.dialect_name() for op in module.walk()}
    if "graph" in dialects:
        return "graph"
    if "tile" in dialects:
        return "tile"
    return "loops" if "func" in dialects else "llvm"


def lower(module: ModuleOp, stage: str, options: CompileOptions, target: CpuTarget) -> None:
    """Lowers ``module`` in place from the stage it is at to ``stage`` (one of the IR stages).

    Raises CompileError if the module is past that stage already.
    """
    start = stage_of(module)
    first, last = STAGES.index(start), STAGES.index(stage)
    if first > last:
        raise CompileError(f"the module is at stage {start} and cannot go back to {stage}")
    _mark_contraction(module, start, options)
    passes = get_all_passes()
    for number in range(first, last + 1):
        if number == first and start != "graph":
            continue
        for name, arguments in _passes_of(STAGES[number], options, target):
            passes[name]()(**arguments).apply(Context(), module)


def _mark_contraction(module: ModuleOp, start: str, options: CompileOptions) -> None:
    """Notes ``fp_contract`` where the stage keeps it: on the module, from the loops on at each function."""
    mode = StringAttr(options.fp_contract)
    if start in ("graph", "tile"):
        module.attributes[FP_CONTRACT] = mode
    for op in module.body.block.ops if start == "loops" else ():
        if isinstance(op, func.FuncOp):
            op.attributes[FP_CONTRACT] = mode


def _target(options: CompileOptions) -> CpuTarget:
    from .codegen.cpu import host_target

    return host_target(options.vector_bits)


def emit(module: ModuleOp, stage: str, options: CompileOptions) -> str:
    """The text of a stage, starting from whatever stage ``module`` is at; the module is lowered in place.

    Raises CompileError for a stage before the module's own.
    """
    target = _target(options)
    lower(module, stage if stage not in ("ll", "asm") else "llvm", options, target)
    if stage not in ("ll", "asm"):
        return str(module)
    from .codegen.cpu import emit_assembly
    from .codegen.llvm import emit_llvm

    text = emit_llvm(module, function_attributes=target.function_attributes)
    return text if stage == "ll" else emit_assembly(text, target, options.opt_level)


def compile_graph(graph: Graph, options: CompileOptions | None = None) -> CompiledGraph:
    """Compiles a graph for this machine's CPU.

    The graph is not changed and can be compiled again, with other options too.

    Raises:
        CompileError: the graph, or LLVM, cannot be taken further; the message names the op.
    """
    from .codegen.cpu import compile_to_object
    from .codegen.llvm import emit_llvm

    options = options or CompileOptions()
    target = _target(options)
    module = graph.module.clone()
    lower(module, "tile", options, target)
    (entry,) = (op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    layout = entry_layout(module, entry)
    buffers = tuple(_buffers(entry, layout))
    name = entry.sym_name.data
    lower(module, "llvm", options, target)
    text = emit_llvm(module, function_attributes=target.function_attributes)
    return CompiledGraph(
        name=name,
        object_code=compile_to_object(text, target, options.opt_level),
        buffers=buffers,
        segments=tuple(
            Segment(f"{name}.{number}.call", layout.defines(number)) for number in range(len(layout.segments))
        ),
        computed_dims=layout.symbols,
        launches=tuple(tuple(CheckSite(site.kernel, site.message) for site in sites) for sites in layout.sites),
        options=options,
        triple=target.triple,
    )


def _buffers(entry: func.FuncOp, layout: EntryLayout) -> Iterator[BufferSpec]:
    """The buffers of an entry function: its arguments, then the memory between its kernels."""
    assert entry.arg_attrs is not None
    for attributes in entry.arg_attrs.data:
        yield _argument(attributes.data)
    for index, op in enumerate(layout.buffers):
        assert isinstance(op.result.type, RefType)
        yield BufferSpec(
            BufferRole.INTERMEDIATE,
            index,
            f"buffer_{index}",
            _dtype_of(op.result.type.element_type),
            tuple(parse_dim(text.data) for text in op.shape),
        )


def _dtype_of(element: Attribute) -> DType:
    """A dtype of this element type; integers of the IR have no sign, so they come out signed."""
    return next(dtype for dtype in DType if dtype.to_element_type() == element)


def _argument(attributes: Mapping[str, Attribute]) -> BufferSpec:
    tensor = cast(GraphTensorType, attributes[TYPE]).data
    assert isinstance(tensor, TensorType)
    data = attributes.get(DATA)
    return BufferSpec(
        BufferRole(cast(StringAttr, attributes[ROLE]).data),
        cast("IntegerAttr", attributes[INDEX]).value.data,
        cast(StringAttr, attributes[NAME]).data,
        tensor.dtype,
        tensor.shape,
        cast(DenseDataAttr, data).data if data is not None else None,
    )
