"""Where the symbols of a graph come from: each is named before it is used.

A symbol is defined by the shape of an input, where it stands alone, or by an op whose `defines` list holds it: a kernel
that computes the size while the graph runs. Everything after may use it, alone or in an expression. No op inside of a
branch or a loop defines one: the memory for these is laid out before they run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from xdsl.ir import Attribute, Block, Operation
from xdsl.utils.exceptions import VerifyException

from ...dims import AlgebraicDim, Dim
from ...errors import quoted_list
from .call import RegisteredOp
from .types import GraphBufferType, GraphTensorType


def input_symbols(types: Iterable[Attribute], names: Iterable[str]) -> set[str]:
    """The symbols that inputs of these types define.

    Raises:
        VerifyException: a size is an expression, from which a symbol cannot be found.
    """
    symbols: set[str] = set()
    for input_type, name in zip(types, names, strict=True):
        assert isinstance(input_type, GraphTensorType | GraphBufferType)
        if (algebraic := first_algebraic(input_type.data.shape)) is not None:
            axis, dim = algebraic
            raise VerifyException(algebraic_input_message(f"input '{name}'", axis, dim))
        symbols.update(input_type.data.symbols)
    return symbols


def first_algebraic(shape: Iterable[Dim]) -> tuple[int, Dim] | None:
    """Axis and size of the first expression in a shape."""
    return next(((axis, dim) for axis, dim in enumerate(shape) if isinstance(dim, AlgebraicDim)), None)


def algebraic_input_message(subject: str, axis: int, dim: Dim) -> str:
    """Why an input cannot have this size; the builder says it in the same words."""
    return (
        f"{subject}: axis {axis} is '{dim}', but the sizes of an input must be numbers or symbols, from which the "
        "values of all symbols are taken; give the axis a symbol of its own"
    )


def undefined_symbols(shape: Iterable[Dim], known: Iterable[str]) -> list[str]:
    """The symbols in a shape that are not among the known ones, sorted."""
    return sorted({name for dim in shape for name in dim.symbols} - set(known))


def verify_symbols(block: Block, known: set[str], *, nested: bool = False) -> None:
    """Check the ops of a block, given the symbols known at its start; adds those that it defines.

    ``nested``: the block is one of a branch or a loop.

    Raises:
        VerifyException: an op uses a symbol that is not known there, or defines one that is.
    """
    for op in block.ops:
        defined = op.defined_symbols if isinstance(op, RegisteredOp) else ()
        if defined and nested:
            _fail(op, f"cannot define {quoted_list(defined)} inside of a region; compute it before the region")
        if again := sorted(known.intersection(defined)):
            _fail(op, f"cannot define {quoted_list(again)} a second time; a symbol has one definition")
        known.update(defined)
        for index, result in enumerate(op.results):
            _check(op, f"result {index}", result.type, known)
        for region in op.regions:
            for inner in region.blocks:
                for index, argument in enumerate(inner.args):
                    _check(op, f"argument {index} of its region", argument.type, known)
                verify_symbols(inner, set(known), nested=True)


def _check(op: Operation, subject: str, value_type: Attribute, known: set[str]) -> None:
    if not isinstance(value_type, GraphTensorType):
        return
    if unknown := undefined_symbols(value_type.data.shape, known):
        _fail(
            op,
            f"{subject} has size {quoted_list(unknown)}, which is no symbol of an input and which no op before "
            f"defines; known here: {quoted_list(sorted(known))}",
        )


def _fail(op: Operation, message: str) -> NoReturn:
    message = f"{op.subject if isinstance(op, RegisteredOp) else op.name}: {message}"
    op.emit_error(message, VerifyException(message))
