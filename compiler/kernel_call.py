"""Matching a call of a custom kernel against what the kernel declares: operands, outputs, parameters, sizes.

All of it happens while the graph is built, so that a message can name the user's line. The pass ``verify-graph`` does
the same for IR that was parsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .device import DeviceRef
from .dims import Dim
from .dtypes import DType
from .errors import GraphError, GraphTypeError, near_names
from .registry import REQUIRED, KernelDef, OperandSpec, OutputSpec, ParameterSpec
from .types import BufferType, TensorType, shape_text

if TYPE_CHECKING:
    from .dialects.graph import Parameter


@dataclass(frozen=True)
class KernelCall:
    """A call that fits the kernel's declaration.

    ``dims`` holds the sizes by the kernel's own names. Sizes that the kernel computes are not among them: ``computed``
    holds, for each, what the caller wrote in its place in the outputs' types, every different one once. That is a
    symbol that the call defines, or a size that the computed one has to equal when the graph runs.
    """

    kernel: KernelDef
    device: DeviceRef
    operands: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    parameters: Mapping[str, Parameter]
    dims: Mapping[str, Dim]
    computed: Mapping[str, tuple[Dim, ...]]


def match_call(
    kernel: KernelDef,
    device: DeviceRef,
    operands: Sequence[TensorType],
    outputs: Sequence[TensorType],
    parameters: Mapping[str, Any],
    subject: str,
) -> KernelCall:
    """Match a call; ``subject`` starts every message.

    Raises:
        GraphError: a number, shape, device or value that the kernel does not take.
        GraphTypeError: an element type or the kind of a parameter that it does not take.
    """
    _check_count(subject, "operand", kernel.operands, len(operands))
    _check_count(subject, "output", kernel.outputs, len(outputs))
    values = match_parameters(kernel.parameters, parameters, subject)
    sizes = _Sizes(subject, kernel.computed)
    for operand, operand_type in zip(kernel.operands, operands, strict=True):
        _check_mutable(subject, operand, operand_type)
        _check_type(subject, "operand", operand, operand_type, device)
        sizes.match("operand", operand, operand_type)
    for name, rule in kernel.dims.items():
        sizes.follows(name, Dim(rule(values, sizes.dims)))
    for output, output_type in zip(kernel.outputs, outputs, strict=True):
        _check_type(subject, "output", output, output_type, device)
        sizes.match("output", output, output_type)
    computed = {name: tuple(written) for name, written in sizes.computed.items()}
    call = KernelCall(kernel, device, tuple(operands), tuple(outputs), values, sizes.dims, computed)
    if kernel.check is not None:
        kernel.check(call)
    return call


def match_parameters(
    specs: Sequence[ParameterSpec], parameters: Mapping[str, Any], subject: str
) -> dict[str, Parameter]:
    """The values of all parameters, defaults filled in; sequences become tuples.

    Raises:
        GraphError: a parameter is missing or unknown, or its value is refused.
        GraphTypeError: a value of the wrong kind.
    """
    names = [spec.name for spec in specs]
    for name in parameters:
        if name not in names:
            known = f"parameters: {', '.join(names)}" if names else "it has none"
            raise GraphError(f"{subject}: unknown parameter {name!r}; {known}{near_names(name, names)}")
    return {spec.name: _parameter(spec, parameters.get(spec.name, spec.default), subject) for spec in specs}


def _parameter(spec: ParameterSpec, given: Any, subject: str) -> Parameter:
    from .dialects.graph import parameter_attribute, parameter_value

    if given is REQUIRED:
        raise GraphError(f"{subject}: parameter {spec.name!r} ({spec.kind.__name__}) is missing")
    if given is None and spec.default is None:
        return None
    try:
        value = parameter_value(parameter_attribute(given))
    except (GraphError, GraphTypeError) as error:
        raise type(error)(f"{subject}: parameter {spec.name!r}: {error.message}") from None
    if spec.kind is float and type(value) is int:
        value = float(value)
    if not isinstance(value, spec.kind) or (isinstance(value, bool) and spec.kind is not bool):
        raise GraphTypeError(f"{subject}: parameter {spec.name!r} must be of type {spec.kind.__name__}, not {given!r}")
    if spec.accepts is not None and not spec.accepts(value):
        raise GraphError(f"{subject}: parameter {spec.name!r} must be {spec.rule}, not {given!r}")
    return value


def _check_count(subject: str, what: str, specs: Sequence[OperandSpec], given: int) -> None:
    if given < len(specs):
        raise GraphError(
            f"{subject}: {what} {specs[given].name!r} is missing ({given} given); "
            f"{what}s in order: {', '.join(spec.name for spec in specs)}"
        )
    if given > len(specs):
        names = f": {', '.join(spec.name for spec in specs)}" if specs else ""
        raise GraphError(f"{subject}: there are {given} {what}s, but the kernel has {len(specs)}{names}")


def _check_type(subject: str, what: str, spec: OperandSpec, given: TensorType, device: DeviceRef) -> None:
    if given.dtype not in spec.allowed_dtypes:
        raise GraphTypeError(
            f"{subject}: {what} {spec.name!r} must be {_either(spec.allowed_dtypes)}, not {given.dtype}"
        )
    if spec.shape is not None and len(spec.shape) != given.rank:
        raise GraphError(
            f"{subject}: {what} {spec.name!r} must have rank {len(spec.shape)}, "
            f"[{', '.join(map(str, spec.shape))}], not {given.rank}: {shape_text(given.shape)}"
        )
    wanted = DeviceRef.CPU() if spec.host else device
    if given.device != wanted:
        why = "host memory" if spec.host else f"the memory of {device}, where the kernel runs"
        raise GraphError(
            f"{subject}: {what} {spec.name!r} must be in {why}, not on {given.device}; "
            + ("move it with .to()" if what == "operand" else f"state its type on {wanted}")
        )


def _check_mutable(subject: str, spec: OperandSpec, given: TensorType) -> None:
    if spec.mutable and not isinstance(given, BufferType):
        raise GraphTypeError(
            f"{subject}: operand {spec.name!r} is changed by the kernel, so it must be a buffer, not a tensor; make it "
            "an input of the graph of type BufferType"
        )
    if isinstance(given, BufferType) and not spec.mutable:
        raise GraphTypeError(
            f"{subject}: operand {spec.name!r} must be a tensor, not a buffer; load it with ops.buffer_load"
        )


def _either(dtypes: Iterable[DType]) -> str:
    return " or ".join(str(dtype) for dtype in dtypes)


class _Sizes:
    """The sizes of one call by the kernel's names, and where each was first seen."""

    def __init__(self, subject: str, computed: Sequence[str]) -> None:
        self.subject = subject
        self.dims: dict[str, Dim] = {}
        self.computed: dict[str, list[Dim]] = {name: [] for name in computed}
        self._origin: dict[str, str] = {}

    def follows(self, name: str, size: Dim) -> None:
        """Set a size that a rule gives."""
        self.dims[name] = size
        self._origin[name] = "as the parameters and operands have it"

    def match(self, what: str, spec: OperandSpec | OutputSpec, given: TensorType) -> None:
        """Match the axes of an operand or output, in order."""
        if spec.shape is None:
            return
        for axis, (pattern, size) in enumerate(zip(spec.shape, given.shape, strict=True)):
            if isinstance(pattern, str) and pattern in self.computed:
                if size not in self.computed[pattern]:
                    self.computed[pattern].append(size)
                continue
            wanted: Dim | int = pattern if isinstance(pattern, int) else self.dims.setdefault(pattern, size)
            if isinstance(pattern, str):
                self._origin.setdefault(pattern, f"the size of axis {axis} of {what} {spec.name!r}")
            if size != wanted:
                why = f" ({pattern}, {self._origin[pattern]})" if isinstance(pattern, str) else ""
                remedy = "; rebind the operand if the two are equal" if what == "operand" else ""
                raise GraphError(
                    f"{self.subject}: axis {axis} of {what} {spec.name!r} must have size '{wanted}'{why}, "
                    f"not '{size}'{remedy}"
                )
