"""Runs the user's kernel once on values that stand for those of every program, which gives a kernel of tile IR."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, StringAttr, UnitAttr
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from halfulp.compiler import Dim, DType, GraphTypeError, StaticDim
from halfulp.compiler.dialects import tile
from halfulp.compiler.dialects.tile.memory import root_of
from halfulp.compiler.dialects.tile.types import RefType
from halfulp.compiler.passes.mark_parallel_axes import SEQUENTIAL
from halfulp.compiler.tile_builder import KernelBuilder, Value
from halfulp.compiler.types import shape_text

from .coverage import covered_outputs
from .errors import fault, fault_in
from .grid import GridAxis, grid_env
from .indexing import OUT_OF_BOUNDS
from .mapping import BlockMapping, GridMapping, dims_of
from .refs import Ref
from .specs import MemorySpace, ScratchShape
from .tracing import INT32_RANGE, Array, Trace, as_index, index_array, refusing_captured_arrays, tracing


@dataclass(frozen=True)
class TracedKernel:
    """A kernel in tile IR. Its arguments are the inputs, the outputs, then scratch that all programs share.

    Attributes:
        op: the kernel.
        written: the positions of the arguments that it writes to.
        covered: the outputs (by index) of which every element is written before any is read.
        digest: a hash of the IR.
    """

    op: tile.KernelOp
    written: frozenset[int]
    covered: frozenset[int]
    digest: str


@dataclass(frozen=True)
class TraceRequest:
    """What a kernel is traced for.

    ``names`` are those of the inputs' and outputs' leaves in messages; ``call`` runs the function on all references,
    in order, those to scratch last.
    """

    function: Any
    name: str
    mapping: GridMapping
    names: tuple[str, ...]
    call: Callable[[Sequence[Ref]], Any]
    semantics: tuple[str, ...] | None = None
    sequential: bool = False
    checked: bool = False
    checked_indices: bool = False


def ref_type(shape: Sequence[Any], dtype: DType) -> RefType:
    """The reference type of an array; one without axes is one element along one axis."""
    return RefType([_extent(size) for size in shape] or [1], dtype.to_element_type())


def _extent(size: Any) -> int:
    if isinstance(size, Dim) and not isinstance(size, StaticDim):
        return tile.DYNAMIC
    return int(size)


def trace_kernel(request: TraceRequest) -> TracedKernel:
    """Traces a kernel.

    Raises:
        GraphError, GraphTypeError: the kernel breaks a rule of the language; the error names its line.
    """
    mapping = request.mapping
    shared = [s for s in mapping.scratch if s.space is MemorySpace.ANY]
    private_axes = _private_axes(request)
    types = [ref_type(m.shape, m.dtype) for m in mapping.block_mappings]
    types += [ref_type([*_sizes(mapping, private_axes), *s.shape], s.dtype) for s in shared]
    declared = _declared(request)
    kernel = tile.KernelOp(request.name, types, declared)
    builder = KernelBuilder(kernel)
    trace = Trace(builder, request.name, request.function, request.checked, request.checked_indices)
    with tracing(trace):
        _run(request, builder, private_axes)
    builder.insert(tile.ReturnOp())
    _drop_unused(kernel)
    if request.sequential or any(isinstance(op, tile.PrintOp) for op in kernel.body.walk()):
        kernel.attributes[SEQUENTIAL] = UnitAttr()
        kernel.axes = ArrayAttr([StringAttr(tile.ORDERED)] * len(mapping.grid))
    kernel.verify()
    covered = covered_outputs(kernel, mapping)
    return TracedKernel(kernel, _written(kernel), covered, _digest(kernel))


def _drop_unused(kernel: tile.KernelOp) -> None:
    """Erases what was built along the way and is wanted by nobody, such as starts of blocks that count in blocks."""
    for op in reversed(list(kernel.body.walk())):
        if is_trivially_dead(op):
            op.detach()
            op.erase()


def _declared(request: TraceRequest) -> list[str]:
    """The axes of the grid as the caller declares them; others may still turn out to be parallel."""
    rank, batch = len(request.mapping.grid), request.mapping.batch_rank
    if request.semantics is None or request.sequential:
        return [tile.ORDERED] * rank
    if len(request.semantics) != rank - batch:
        raise fault(
            f"dimension_semantics has {len(request.semantics)} entries, but the grid has {rank - batch} axes; give one "
            "for each axis"
        )
    words = [tile.PARALLEL if word == "parallel" else tile.ORDERED for word in request.semantics]
    return [*[tile.ORDERED] * batch, *words]


def _private_axes(request: TraceRequest) -> list[int]:
    """The axes of the grid said to be parallel: programs that differ along them have scratch of their own."""
    if request.semantics is None:
        return []
    batch = request.mapping.batch_rank
    return [batch + axis for axis, word in enumerate(request.semantics) if word == "parallel"]


def _sizes(mapping: GridMapping, axes: Sequence[int]) -> list[Any]:
    sizes = mapping.static_grid
    return [Dim("grid") if sizes[axis] is None else sizes[axis] for axis in axes]


def _run(request: TraceRequest, k: KernelBuilder, private_axes: Sequence[int]) -> None:
    """Makes the references and calls the kernel."""
    mapping, batch = request.mapping, request.mapping.batch_rank
    ids, sizes = _grid_values(mapping, k)
    refs = []
    for name, block, argument in zip(request.names, mapping.block_mappings, k.arguments, strict=False):
        refs.append(_ref(name, block, argument, ids, sizes, request))
    scratch = k.arguments[len(mapping.block_mappings) :]
    for number, shape in enumerate(mapping.scratch):
        refs.append(_scratch(f"scratch[{number}]", shape, scratch, k, [ids[axis] for axis in private_axes]))
    visible = [GridAxis(i, n) for i, n in zip(ids[batch:], sizes[batch:], strict=True)]
    with grid_env(visible), refusing_captured_arrays(f"kernel {request.name!r}"):
        result = request.call(refs)
    if result is not None:
        raise fault_in(
            request.function,
            f"kernel {request.name!r} should return None. It returns {result!r}; store what it computes in an output "
            "reference",
        )


def _grid_values(mapping: GridMapping, k: KernelBuilder) -> tuple[list[Array], list[Any]]:
    """Program ids and grid sizes; sizes that are known are ints."""
    ids: list[Array] = []
    sizes: list[Any] = []
    for size, program_id, grid_size in zip(mapping.static_grid, k.program_ids, k.grid_sizes, strict=True):
        most = INT32_RANGE[1] if size is None else max(size, 1)
        ids.append(index_array(program_id, 0, most - 1))
        sizes.append(index_array(grid_size, 0, most) if size is None else size)
    return ids, sizes


def _ref(
    name: str, block: BlockMapping, argument: Value, ids: Sequence[Array], sizes: Sequence[Any], request: TraceRequest
) -> Ref:
    """The reference to the block of this program."""
    if block.blocks is None or not block.shape:
        return Ref(name, argument, len(block.shape), block.dtype, inside=_extents_known(block))
    indices = block.block_indices(ids, sizes)
    starts = [b.start(index) for b, index in zip(block.blocks, indices, strict=True)]
    inside = all(
        isinstance(n, int) and low >= 0 and high + b.size <= n
        for n, b, (low, high) in zip(block.shape, block.blocks, map(_range, starts), strict=True)
    )
    if request.checked and not inside:
        _check_block(name, block, argument, indices, starts)
    squeezed = [axis for axis, b in enumerate(block.blocks) if b.squeezed]
    if len(squeezed) == len(block.blocks):
        squeezed.pop()
    counts_blocks = all(b.padding is None for b in block.blocks)
    window = argument.builder.window(
        argument,
        [as_index(index) for index in (indices if counts_blocks else starts)],
        [b.size for b in block.blocks],
        indexing="blocked" if counts_blocks else "element",
        squeezed=squeezed,
    )
    return Ref(name, window, len(block.ref_shape), block.dtype, inside=inside)


def _extents_known(block: BlockMapping) -> bool:
    return all(isinstance(size, int) for size in block.shape)


def _range(value: Any) -> tuple[int, int]:
    if isinstance(value, Array):
        return value.bounds or INT32_RANGE
    return int(value), int(value)


def _check_block(
    name: str, block: BlockMapping, argument: Value, indices: Sequence[Any], starts: Sequence[Any]
) -> None:
    """Fails where no element of the block lies in the array (with its padding)."""
    k = argument.builder
    index_type = k.index(0).type
    holds: Value | None = None
    assert block.blocks is not None
    for axis, (b, start) in enumerate(zip(block.blocks, starts, strict=True)):
        low, high = b.padding or (0, 0)
        known = isinstance(block.shape[axis], int) and _range(start)[0] + b.size > -low
        if known and _range(start)[1] < block.shape[axis] + high:
            continue
        at, size = k.value(as_index(start), index_type), k.dim(argument, axis)
        condition = (at + b.size > -low) & (at < size + high)
        holds = condition if holds is None else holds & condition
    if holds is None:
        return
    shown = [k.value(as_index(index), index_type) for index in indices[:4]]
    rest = "" if len(indices) <= 4 else ", ..."
    holes = ", ".join(["{}"] * len(shown)) + ("," if len(indices) == 1 else "") + rest
    k.check(
        holds,
        f"{OUT_OF_BOUNDS}block index ({holes}) for {name!r}: its array has shape {shape_text(dims_of(block.shape))}, "
        f"its blocks {list(block.block_shape)}, so the block lies outside",
        *shown,
        is_bounds=True,
    )


def _scratch(name: str, shape: ScratchShape, shared: list[Value], k: KernelBuilder, private: Sequence[Array]) -> Ref:
    """Memory of this program, or its share of the memory of all."""
    from .refs import pad_of

    if shape.space is MemorySpace.PROGRAM:
        pad = k.constant(pad_of(shape.dtype), shape.dtype.to_element_type())
        return Ref(name, k.alloc(pad, shape.shape or (1,)), len(shape.shape), shape.dtype, inside=True)
    argument = shared.pop(0)
    if not private:
        return Ref(name, argument, len(shape.shape), shape.dtype, inside=True)
    places = [as_index(index) for index in private]
    own = list(shape.shape)
    squeezed = list(range(len(places))) if own else list(range(len(places) - 1))
    window = k.window(argument, [*places, *[0] * len(own)], [*[1] * len(places), *own], squeezed=squeezed)
    return Ref(name, window, len(own), shape.dtype, inside=True)


def _written(kernel: tile.KernelOp) -> frozenset[int]:
    roots = {root_of(op.ref) for op in kernel.body.walk() if isinstance(op, tile.StoreOp)}
    return frozenset(number for number, argument in enumerate(kernel.arguments) if argument in roots)


def _digest(kernel: tile.KernelOp) -> str:
    return hashlib.sha256(str(kernel).encode()).hexdigest()[:16]


def parameter_names(function: Any, count: int, keywords: Sequence[str] = ()) -> list[str]:
    """The names of the first ``count`` positional parameters of a kernel.

    Raises:
        GraphTypeError: it does not take that many positional arguments.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return [f"ref{number}" for number in range(count)]
    names: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}[{i}]" for i in range(count - len(names))]
    try:
        signature.bind(*range(count), **dict.fromkeys(keywords))
    except TypeError as error:
        name = getattr(function, "__name__", repr(function))
        raise fault(
            f"kernel {name!r} must take one positional argument for each of its {count} references (inputs, then "
            f"outputs, then scratch), but: {error}",
            GraphTypeError,
        ) from None
    return names[:count]
