"""Fastmath flags of an op, in whichever dialect it is and wherever that dialect keeps them.

LLVM allows flags on float arithmetic, on comparisons of floats, on casts between float types, and on ``select`` and
calls that give a float. Ops of ``graph``, ``tile``, ``arith``, ``math`` and ``vector_ext`` hold them as ``fastmath``,
ops of ``llvm`` and ``llvm_ext`` as ``fastmathFlags``.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from xdsl.dialects import llvm
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import AnyFloat, TensorType, VectorType
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation

from .dialects import tile, vector_ext
from .dialects.graph import GraphBufferType, GraphTensorType, KernelCallOp, RegisteredOp
from .options import ordered_flags, parse_fastmath
from .registry import find_op

FLAGS = "fastmath"
LLVM_FLAGS = "fastmathFlags"


def _is_float(value_type: Attribute) -> bool:
    if isinstance(value_type, GraphTensorType | GraphBufferType):
        return value_type.data.dtype.is_float
    element = value_type.element_type if isinstance(value_type, TensorType | VectorType) else value_type
    return isinstance(element, AnyFloat)


def _property_name(op: Operation) -> str | None:
    if not isinstance(op, IRDLOperation):
        return None
    properties = type(op).get_irdl_definition().properties
    return next((name for name in (FLAGS, LLVM_FLAGS) if name in properties), None)


def carries_flags(op: Operation) -> bool:
    """Whether LLVM allows fastmath flags on what ``op`` computes, and the op has a place for them.

    Raises:
        NotFoundError: a ``graph.apply`` whose op is not registered.
    """
    if isinstance(op, RegisteredOp):
        is_float = any(_is_float(value.type) for value in (*op.operands, *op.results))
        return is_float and (isinstance(op, KernelCallOp) or find_op(op.callee.data, op.subject).fastmath)
    if _property_name(op) is None or not op.results:
        return False
    operands, result = [operand.type for operand in op.operands], op.results[0].type
    if isinstance(op, tile.CastOp | vector_ext.CastOp):
        return _is_float(operands[0]) and _is_float(result)
    is_comparison = "predicate" in op.properties
    return _is_float(operands[0]) if is_comparison else _is_float(result)


def own_flags(op: Operation) -> frozenset[str] | None:
    """The flags that stand on ``op``; None where a graph op leaves them to the options of the compilation."""
    if isinstance(op, RegisteredOp):
        return op.flags
    name = _property_name(op)
    if name is None:
        return frozenset()
    # Some of upstream's constructors (math.fma, arith.negf) put the flags among the attributes.
    attribute = op.attributes.get(name, op.properties.get(name))
    if attribute is None:
        return frozenset()
    assert isinstance(attribute, FastMathFlagsAttr | llvm.FastMathAttr)
    return frozenset(flag.value for flag in attribute.data)


def flags_attribute(flags: Iterable[str]) -> FastMathFlagsAttr:
    """Flags as the attribute of every dialect but ``llvm``."""
    return FastMathFlagsAttr([FastMathFlag(flag) for flag in ordered_flags(flags)])


def parse_option(flags: tuple[str, ...], subject: str) -> frozenset[str]:
    """The flags that an option of a pass holds: ``nsz,arcp``, ``fast`` or ``none``.

    Raises:
        GraphError: an unknown flag.
    """
    return parse_fastmath(",".join(flags), subject)


def put_flags(op: Operation, flags: Iterable[str]) -> None:
    """Makes ``flags`` the flags of ``op``, which must be one that carries flags."""
    name = _property_name(op)
    assert name is not None
    op.attributes.pop(name, None)
    if name == FLAGS:
        op.properties[name] = flags_attribute(flags)
    else:
        op.properties[name] = llvm.FastMathAttr([FastMathFlag(flag) for flag in ordered_flags(flags)])


def matches(op: Operation, pattern: str) -> bool:
    """Whether a glob such as ``arith.*`` fits the name of ``op``, or the callee of a ``graph.apply``."""
    names = [op.name, op.callee.data] if isinstance(op, RegisteredOp) else [op.name]
    return any(fnmatchcase(name, pattern) for name in names)
