"""From a call with its arguments' types to a traced kernel, which is kept for the next call that is the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halfulp.compiler import Dim, TensorType, TensorValue

from . import tree
from .cache import Cache
from .emission import Plan, unknown_symbols
from .errors import fault
from .fingerprint import NoFingerprint, fingerprint
from .kernel_trace import TracedKernel, TraceRequest, parameter_names, trace_kernel
from .mapping import BlockMapping, GridMapping
from .op_scalar import OpScalar
from .refs import Ref
from .specs import is_shape

if TYPE_CHECKING:
    from .call import PallasCall

traced_kernels: Cache[TracedKernel] = Cache(512)


@dataclass(frozen=True)
class Prepared:
    """A call whose kernel is traced."""

    call: PallasCall
    plan: Plan
    names: tuple[str, ...]
    """Those of the inputs, outputs and scratch references in the kernel."""

    @property
    def mapping(self) -> GridMapping:
        return self.plan.mapping

    @property
    def output_types(self) -> list[TensorType]:
        """The types of the outputs."""
        return [TensorType(m.dtype, m.shape) for m in self.mapping.outputs]


def prepare(call: PallasCall, mapping: GridMapping, arguments: Sequence[Any]) -> Prepared:
    """Traces the kernel of a call, or finds it among those traced before.

    Raises:
        GraphError, GraphTypeError: the kernel breaks a rule of the language.
    """
    if unknown := unknown_symbols(mapping):
        raise fault(
            f"kernel {call.name!r}: the grid needs the size {unknown[0]!r}, which no operand and no output has; pass a "
            "tensor that has an axis of this size, or the size as a scalar tensor"
        )
    names = _names(call, arguments)
    request = TraceRequest(
        function=call.kernel,
        name=call.name,
        mapping=mapping,
        names=names,
        call=_caller(call, arguments),
        semantics=call.params.dimension_semantics,
        sequential=bool(call.interpret),
        checked=bool(call.interpret or call.debug),
        checked_indices=bool(call.debug),
    )
    plan = Plan(_trace(request, call), mapping, call.aliases, _private_axes(call, mapping))
    return Prepared(call, plan, names)


def _private_axes(call: PallasCall, mapping: GridMapping) -> tuple[int, ...]:
    words = call.params.dimension_semantics or ()
    axes = tuple(mapping.batch_rank + axis for axis, word in enumerate(words) if word == "parallel")
    if any(isinstance(mapping.grid[axis], TensorValue | OpScalar) for axis in axes) and mapping.scratch:
        raise fault(
            f"kernel {call.name!r} has scratch and a parallel grid axis whose size is a tensor; scratch needs sizes "
            "known before the graph runs, so make that axis 'arbitrary'"
        )
    return axes


def _trace(request: TraceRequest, call: PallasCall) -> TracedKernel:
    try:
        key = _key(request, call)
    except NoFingerprint:
        return trace_kernel(request)
    return traced_kernels.get(key, lambda: trace_kernel(request))


def _key(request: TraceRequest, call: PallasCall) -> Any:
    mapping = request.mapping
    return (
        fingerprint(request.function),
        request.name,
        tuple(str(size) if isinstance(size, Dim) else size if isinstance(size, int) else None for size in mapping.grid),
        tuple(_block_key(block) for block in mapping.block_mappings),
        len(mapping.inputs),
        mapping.scratch,
        mapping.batch_rank,
        request.names,
        _form(call.scratch_shapes),
        (request.semantics, request.sequential, request.checked, request.checked_indices),
    )


def _block_key(block: BlockMapping) -> Any:
    shape = tuple(map(str, block.shape))
    return (shape, block.dtype, block.blocks, fingerprint(block.index_map), block.batch_axes)


def _form(scratch: Any) -> tuple[str, ...]:
    return tuple(path for path, _ in tree.leaves_with_paths(scratch))


def _positional(call: PallasCall, arguments: Sequence[Any]) -> list[Any]:
    """What the kernel gets by position: arguments, outputs, and scratch unless that has names."""
    outputs = call.out_shape
    parts = list(outputs) if isinstance(outputs, tuple | list) and not is_shape(outputs) else [outputs]
    scratch = [] if isinstance(call.scratch_shapes, dict) else list(call.scratch_shapes)
    return [*arguments, *parts, *scratch]


def _names(call: PallasCall, arguments: Sequence[Any]) -> tuple[str, ...]:
    """The name of each leaf in the kernel: its parameter, and the subscripts behind it."""
    parts = _positional(call, arguments)
    keywords = call.scratch_shapes if isinstance(call.scratch_shapes, dict) else {}
    parameters = parameter_names(call.kernel, len(parts), tuple(keywords))
    return tuple(
        f"{name}{path}"
        for name, part in zip(parameters, parts, strict=True)
        for path, _ in tree.leaves_with_paths(part, is_shape)
    )


def _caller(call: PallasCall, arguments: Sequence[Any]) -> Callable[[Sequence[Ref]], Any]:
    """Calls the kernel with references in the places of arrays, outputs and scratch."""
    parts = _positional(call, arguments)
    keywords = call.scratch_shapes if isinstance(call.scratch_shapes, dict) else {}

    def run(refs: Sequence[Ref]) -> Any:
        rest = list(refs)
        built = []
        for part in [*parts, keywords]:
            count = len(tree.leaves(part, is_shape))
            built.append(tree.rebuild(part, rest[:count], is_shape))
            del rest[:count]
        return call.kernel(*built[:-1], **built[-1])

    return run
