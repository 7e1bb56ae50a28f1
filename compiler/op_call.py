"""Matching a call of an op of the library against what it declares: names and number of operands, the shape rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from .errors import GraphError, GraphTypeError
from .opdef import OpDef
from .options import ordered_flags, parse_fastmath
from .types import TensorType, shape_text

Flags: TypeAlias = "str | Iterable[str] | None"
"""Fastmath flags as a user gives them."""


def operand_role(names: Sequence[str], index: int) -> str:
    """How messages call an operand, given the names that the op or kernel declares."""
    if index < len(names) and not names[index].startswith("*"):
        return f"operand {names[index]!r}"
    return f"operand {index}"


def check_arity(subject: str, op: OpDef, given: int) -> None:
    """Raise GraphError where the number of operands is wrong."""
    variadic = bool(op.operands) and op.operands[-1].startswith("*")
    least = len(op.operands) - variadic
    if given < least or (given > least and not variadic):
        number = f"at least {least}" if variadic else str(least)
        raise GraphError(f"{subject}: takes {number} operands ({', '.join(op.operands)}), not {given}")


def check_devices(subject: str, op: OpDef, types: Sequence[TensorType]) -> None:
    """Check that all operands are on one device.

    Raises:
        GraphError: they are not; the message names two of them.
    """
    for index, given in enumerate(types):
        if given.device != types[0].device:
            first, other = (operand_role(op.operands, number) for number in (0, index))
            raise GraphError(
                f"{subject}: {first} is on {types[0].device} and {other} on {given.device}; move one of them with "
                f"ops.transfer_to(x, {types[0].device!r})"
            )


def call_flags(subject: str, own: Flags, of_region: frozenset[str] | None, *, allowed: bool) -> frozenset[str] | None:
    """The fastmath flags of a call: its own, else those of the region around it; None leaves them to the options.

    Raises:
        GraphError: an unknown flag, or flags of its own where none are ``allowed``, since it computes no float.
    """
    if own is None:
        return of_region if allowed else None
    flags = parse_fastmath(own, f"{subject}: fastmath")
    if flags and not allowed:
        raise GraphError(
            f"{subject}: fastmath flags ({', '.join(ordered_flags(flags))}) stand on floats only, "
            "and it computes none; leave fastmath out"
        )
    return flags


def infer_types(op: OpDef, types: Sequence[TensorType], parameters: Mapping[str, Any]) -> Sequence[TensorType]:
    """The types of the results, by the op's shape rule; its errors get the op and the operands in front."""
    try:
        return op.infer(types, parameters)
    except (GraphError, GraphTypeError) as error:
        operands = ", ".join(f"{t.dtype} {shape_text(t.shape)}" for t in types)
        raise type(error)(f"ops.{op.name} on {operands or 'nothing'}: {error.message}") from None
