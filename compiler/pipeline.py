"""The way from a graph to object code, stage by stage; each stage can be printed, and started from.

The order of passes is here and nowhere else.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import DiagnosticException

from .artifact import BufferRole, BufferSpec, CompiledGraph, Segment
from .dialects.gpu_ext import KERNEL
from .dialects.graph import DenseDataAttr, GraphBufferType, GraphTensorType
from .dialects.tile import LaunchOp, RefType, TransferOp
from .dims import parse_dim
from .dtypes import DType
from .errors import CompileError
from .launch_devices import device_of
from .numerics import contractions_of
from .options import CompileOptions, ordered_flags
from .passes import get_all_passes
from .passes.graph_to_tile.entry import DATA, INDEX, NAME, ROLE, TYPE
from .passes.tile_to_loops.layout import EntryLayout, entry_layout, prints_of
from .passes.tile_to_loops.lifetimes import lifetimes
from .passes.tile_to_loops.thread_arena import ARENA_ATTRIBUTE
from .passes.tile_to_loops.watch import has_loops
from .print_sites import print_site
from .steps import Progress, Steps
from .types import BufferType, TensorType

if TYPE_CHECKING:
    from .codegen.cpu import CpuTarget
    from .codegen.ptx import PtxTarget
    from .graph import Graph

    Target = CpuTarget | PtxTarget
    MakeObject = Callable[[str, CpuTarget, int], bytes]

STAGES = ("graph", "tile", "loops", "llvm", "ll", "asm")
"""What ``emit`` can print: the IR after each group of passes, LLVM's text, the assembly."""

IR_STAGES = STAGES[:4]

GPU_STAGES = ("graph", "tile", "gpu", "llvm", "ll", "ptx", "sass")
"""The same on the way to a GPU: PTX, and the machine instructions that ``ptxas`` makes of it."""

ALL_STAGES = ("graph", "tile", "loops", "gpu", "llvm", "ll", "asm", "ptx", "sass")

GPU_ARCH = "nvptx64"

FP_CONTRACT = "halfulp.fp_contract"


def _stages_to(target: Target) -> tuple[str, ...]:
    return GPU_STAGES if target.arch == GPU_ARCH else STAGES


def passes_of(stage: str, options: CompileOptions, target: Target) -> list[tuple[str, dict[str, object]]]:
    """The passes that lead to a stage from the one before it, with their options."""
    exact: list[tuple[str, dict[str, object]]] = [
        ("drop-unsafe-flags", {}),
        ("expand-small-floats", {}),
        ("expand-math", {"scale": target.scales}),
    ]
    width: dict[str, object] = {"vector_bits": target.vector_bits}
    table: dict[str, list[tuple[str, dict[str, object]]]] = {
        "graph": [("verify-graph", {}), *_rounding_passes(options)],
        "tile": [
            ("fuse-ops", {}),
            ("convert-graph-to-tile", {}),
            ("deduplicate-kernels", {}),
            ("mark-parallel-axes", {}),
            *_after_contraction(options),
        ],
        "loops": [*exact, ("convert-tile-to-loops", width)],
        "gpu": [*exact, ("convert-tile-to-gpu", {}), ("insert-barriers", {})],
        "llvm": [("convert-loops-to-llvm", {"arch": target.arch, "permutes": target.permutes})],
    }
    return table[stage]


def _rounding_passes(options: CompileOptions) -> list[tuple[str, dict[str, object]]]:
    """What decides on every rounding, before any pass that must keep it."""
    flags = tuple(ordered_flags(options.fastmath))
    contraction: dict[str, object] = {"strategy": options.strategy, "mode": options.fp_contract, "defaults": flags}
    passes: list[tuple[str, dict[str, object]]] = [
        ("widen-small-floats", {"mode": options.bf16}),  # even under round-each: single ops may have another mode
        ("contract-fma", contraction),
    ]
    if flags:
        passes.append(("set-fastmath-flags", {"flags": flags, "only_unset": True}))
    return passes


def _after_contraction(options: CompileOptions) -> list[tuple[str, dict[str, object]]]:
    """Every fma is explicit by now, and ``contract`` would let LLVM make others, across the borders of ops."""
    return [] if options.strategy == "llvm" else [("clear-fastmath-flags", {"flags": ("contract",)})]


def stage_of(module: ModuleOp) -> str:
    """The stage that a module is at: the first one whose ops it holds."""
    dialects = {op.dialect_name() for op in module.walk()}
    if "graph" in dialects:
        return "graph"
    if "tile" in dialects:
        return "tile"
    if "func" in dialects:
        return "gpu" if any(KERNEL in op.attributes for op in module.body.block.ops) else "loops"
    return "llvm"


def lower(module: ModuleOp, stage: str, options: CompileOptions, target: Target, steps: Steps | None = None) -> None:
    """Lowers ``module`` in place from the stage it is at to ``stage`` (one of the IR stages).

    ``steps`` is told after each pass. Raises CompileError if the module is past that stage already.
    """
    start, stages = stage_of(module), _stages_to(target)
    if start not in stages:
        raise CompileError(
            f"the module is at stage {start}, from which no way leads to {target.name}; "
            "give a module of an earlier stage, graph or tile"
        )
    first, last = stages.index(start), stages.index(stage)
    if first > last:
        raise CompileError(
            f"the module is at stage {start} and cannot go back to {stage}; stages from there are "
            f"{', '.join(stages[first:])}"
        )
    _mark_contraction(module, start, options)
    passes = get_all_passes()
    for number in range(first, last + 1):
        if number == first and start != "graph":
            continue
        for name, arguments in passes_of(stages[number], options, target):
            passes[name]()(**arguments).apply(Context(), module)
            if steps is not None:
                steps.done(name, lambda: str(module))


def _mark_contraction(module: ModuleOp, start: str, options: CompileOptions) -> None:
    """Notes ``fp_contract`` where the stage keeps it: on the module, from the loops on at each function."""
    mode = StringAttr(options.fp_contract)
    if start in ("graph", "tile"):
        module.attributes[FP_CONTRACT] = mode
    for op in module.body.block.ops if start in ("loops", "gpu") else ():
        if isinstance(op, func.FuncOp):
            op.attributes[FP_CONTRACT] = mode


def host_target_of(options: CompileOptions) -> CpuTarget:
    """This machine's CPU, with vectors of the width that the options say."""
    from .codegen.cpu import host_target

    return host_target(options.vector_bits)


def emit(
    module: ModuleOp,
    stage: str,
    options: CompileOptions,
    gpu: str | None = None,
    progress: Progress | None = None,
) -> str:
    """The text of a stage, starting from whatever stage ``module`` is at; the module is lowered in place.

    ``gpu``: the architecture to compile for, ``sm_90`` say; None is this machine's CPU, or a common GPU for a stage
    that only GPUs have. ``progress`` is called as by `compile_graph`.

    Raises CompileError for a stage before the module's own, or one that the target does not have.
    """
    target = (
        host_target_of(options) if gpu is None and stage in STAGES and stage_of(module) != "gpu" else _gpu_target(gpu)
    )
    stages = _stages_to(target)
    if stage not in stages:
        raise CompileError(f"there is no stage {stage} on the way to {target.name}; stages are {', '.join(stages)}")
    texts = stages[stages.index("ll") :]
    last = "llvm" if stage in texts else stage
    further = min(texts.index(stage) + 1, 2) if stage in texts else 0
    steps = Steps("", _pass_count(module, last, options, target) + further, progress, dumps=False)
    lower(module, last, options, target, steps)
    if stage not in texts:
        return str(module)
    text = llvm_text(module, target, checked=stage != "ll")
    steps.done("emit-llvm", lambda: "")
    if stage == "ll":
        return text
    text = _emit_machine_text(text, stage, target, options)
    steps.done(f"emit-{stage}", lambda: "")
    return text


def _pass_count(module: ModuleOp, stage: str, options: CompileOptions, target: Target) -> int:
    """How many passes lead from where a module is to one of the IR stages; 0 if none does."""
    stages, start = _stages_to(target), stage_of(module)
    if start not in stages:
        return 0
    first = stages.index(start) + (start != "graph")
    return sum(len(passes_of(each, options, target)) for each in stages[first : stages.index(stage) + 1])


def llvm_text(module: ModuleOp, target: Target, *, checked: bool = False) -> str:
    """LLVM's text of a module; ``checked`` refuses what the target cannot compile."""
    from .codegen.llvm import emit_llvm

    name = target.name if checked else None
    return emit_llvm(module, function_attributes=target.function_attributes, target=name)


def _emit_machine_text(text: str, stage: str, target: Target, options: CompileOptions) -> str:
    from .codegen.cpu import CpuTarget, emit_assembly
    from .codegen.ptx import compile_to_ptx

    if isinstance(target, CpuTarget):
        return emit_assembly(text, target, options.opt_level)
    ptx = compile_to_ptx(text, target, options.opt_level)
    if stage == "ptx":
        return ptx
    from .codegen.ptxas import disassemble

    return disassemble(ptx, target.cpu)


def _gpu_target(name: str | None) -> PtxTarget:
    from .codegen.ptx import DEFAULT_ARCHITECTURE, ptx_target

    return ptx_target(name or DEFAULT_ARCHITECTURE)


@contextmanager
def _paused_garbage_collection() -> Iterator[None]:
    """Passes make many objects and free few: looking for cycles among them takes a fifth of a compilation."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def faults_of_passes() -> Iterator[None]:
    """Passes report as xDSL's do; whoever compiles a graph gets one class of error."""
    try:
        yield
    except DiagnosticException as error:
        raise CompileError(str(error)) from error


@_paused_garbage_collection()
def compile_graph(
    graph: Graph,
    options: CompileOptions | None = None,
    *,
    progress: Progress | None = None,
    make_object: MakeObject | None = None,
) -> CompiledGraph:
    """Compiles a graph for this machine's CPU.

    The graph is not changed and can be compiled again, with other options too. Nothing is kept of a compilation that
    an exception ends, Ctrl-C included: it comes between two passes, or after LLVM's part.

    Args:
        graph: a complete graph.
        options: None reads the environment for what `CompileOptions` takes from it.
        progress: called as ``progress(done, total, step)`` after each step.
        make_object: LLVM text to object code, ``compile_to_object`` unless there is a cache in front of it.

    Raises:
        CompileError: the graph, or LLVM, cannot be taken further; the message names the op.
    """
    from .codegen.cpu import compile_to_object
    from .codegen.llvm import emit_llvm

    options = options or CompileOptions()
    target = host_target_of(options)
    module = graph.module.clone()
    passes = sum(len(passes_of(stage, options, target)) for stage in IR_STAGES)
    steps = Steps(graph.name, passes + 2, progress)
    with faults_of_passes():
        lower(module, "tile", options, target, steps)
    (entry,) = (op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    _refuse_transfers(graph.name, entry)
    layout = entry_layout(module, entry)
    buffers = tuple(buffers_of(entry, layout))
    prints = tuple(print_site(op) for op in prints_of(module))
    name, loops = entry.sym_name.data, has_loops(module)
    contractions = contractions_of(module)
    with faults_of_passes():
        lower(module, "llvm", options, target, steps)
    text = emit_llvm(module, function_attributes=target.function_attributes, target=target.name)
    steps.done("emit-llvm", lambda: text, "ll")
    code = (make_object or compile_to_object)(text, target, options.opt_level)
    steps.done("emit-object", lambda: "")
    return CompiledGraph(
        name=name,
        object_code=code,
        buffers=buffers,
        segments=tuple(
            Segment(f"{name}.{number}.call", layout.defines(number)) for number in range(len(layout.segments))
        ),
        computed_dims=layout.symbols,
        launches=layout.sites,
        options=options,
        triple=target.triple,
        contractions=contractions,
        steps=tuple(map(step_name, layout.launches)),
        prints=prints,
        thread_arena_bytes=thread_arena_bytes(module),
        has_loops=loops,
    )


def _refuse_transfers(name: str, entry: func.FuncOp) -> None:
    if any(isinstance(op, TransferOp) for op in entry.walk()):
        raise CompileError(
            f"graph {name!r} moves values between devices, and code for the host alone reaches no other; load it in a "
            "session with an accelerator, or compile it with --target"
        )


def thread_arena_bytes(module: ModuleOp) -> int:
    """Bytes that each thread needs for the large blocks of the kernels of a module that is past the loops stage."""
    attribute = module.attributes.get(ARENA_ATTRIBUTE)
    return attribute.value.data if isinstance(attribute, IntegerAttr) else 0


def buffers_of(entry: func.FuncOp, layout: EntryLayout) -> Iterator[BufferSpec]:
    """The buffers of an entry function: its arguments, then the memory between its kernels."""
    assert entry.arg_attrs is not None
    for attributes in entry.arg_attrs.data:
        yield _argument(attributes.data)
    for index, (op, (first, last)) in enumerate(zip(layout.buffers, lifetimes(layout), strict=True)):
        assert isinstance(op.result.type, RefType)
        yield BufferSpec(
            BufferRole.INTERMEDIATE,
            index,
            f"buffer_{index}",
            _dtype_of(op.result.type.element_type),
            tuple(parse_dim(text.data) for text in op.shape),
            first=first,
            last=last,
            device=device_of(op.result),
        )


def step_name(op: Operation) -> str:
    """The kernel of a launch; a check of the graph itself is just that."""
    return op.kernel.string_value() if isinstance(op, LaunchOp) else "check"


def _dtype_of(element: Attribute) -> DType:
    """A dtype of this element type; integers of the IR have no sign, so they come out signed."""
    return next(dtype for dtype in DType if dtype.to_element_type() == element)


def _argument(attributes: Mapping[str, Attribute]) -> BufferSpec:
    tensor = cast("GraphTensorType | GraphBufferType", attributes[TYPE]).data
    assert isinstance(tensor, TensorType)
    data = attributes.get(DATA)
    return BufferSpec(
        BufferRole(cast(StringAttr, attributes[ROLE]).data),
        cast("IntegerAttr", attributes[INDEX]).value.data,
        cast(StringAttr, attributes[NAME]).data,
        tensor.dtype,
        tensor.shape,
        cast(DenseDataAttr, data).data if data is not None else None,
        mutable=isinstance(tensor, BufferType),
        device=tensor.device,
    )
