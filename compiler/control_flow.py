"""Branches and loops of a graph under construction; ``ops.cond`` and ``ops.while_loop`` are the public spellings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Block, Region

from .dialects.graph import CondOp, WhileOp, YieldOp, is_one_bool
from .dialects.graph.types import graph_tensor
from .dtypes import DType
from .errors import GraphError, GraphTypeError
from .locations import Located, user_location
from .types import TensorType, shape_text

if TYPE_CHECKING:
    from .graph import Graph
    from .values import TensorValue

Branch = Callable[..., Sequence[object]]
"""Builds the ops of a region from its arguments; gives the values that it returns."""


def build_cond(
    graph: Graph, pred: object, out_types: Sequence[TensorType], then_fn: Branch, else_fn: Branch
) -> list[TensorValue]:
    """Build a branch; the functions build the ops of one region each.

    Raises:
        GraphError, GraphTypeError: ``pred`` is not one bool, or a region does not return values of ``out_types``.
    """
    subject = "ops.cond"
    with Located():
        condition = graph.operand(pred, subject, "pred")
        _check_predicate(f"{subject}: pred", condition.type)
    regions = []
    for name, function in (("then_fn", then_fn), ("else_fn", else_fn)):
        place = _place(name, subject)
        block = Block()
        with graph.blocks.inside(block, place):
            results = list(function())
            with Located():
                values = [graph.operand(value, subject, f"result {i} of {name}") for i, value in enumerate(results)]
                _check_count(f"{subject}: {name} returns", len(values), "out_types has", len(out_types))
                for index, (value, wanted) in enumerate(zip(values, out_types, strict=True)):
                    _check_type(f"{subject}: result {index} of {name}", value.type, f"out_types[{index}]", wanted)
            block.add_op(YieldOp([value.ssa for value in values]))
        regions.append(Region(block))
    return graph.insert(CondOp(condition.ssa, out_types, *regions))


def build_while(graph: Graph, initial: Sequence[object], predicate: Branch, body: Branch) -> list[TensorValue]:
    """Build a loop; the functions take the carried values.

    Raises:
        GraphError, GraphTypeError: nothing is carried, ``predicate`` does not return one bool, or ``body`` does not
            return values of the types that are carried.
    """
    subject = "ops.while_loop"
    with Located():
        if not initial:
            raise GraphError(f"{subject}: initial_values is empty; a loop carries at least what its predicate reads")
        carried = [graph.operand(value, subject, f"initial value {i}") for i, value in enumerate(initial)]
    types = [value.type for value in carried]

    def region(name: str, function: Branch, check: Callable[[list[TensorValue]], None]) -> Region:
        block = Block(arg_types=[graph_tensor(t) for t in types])
        with graph.blocks.inside(block, _place(name, subject)):
            results = list(function(*[graph.value(argument) for argument in block.args]))
            with Located():
                values = [graph.operand(value, subject, f"result {i} of {name}") for i, value in enumerate(results)]
                check(values)
            block.add_op(YieldOp([value.ssa for value in values]))
        return Region(block)

    def check_predicate(values: list[TensorValue]) -> None:
        _check_count(f"{subject}: predicate returns", len(values), "it decides by", 1)
        _check_predicate(f"{subject}: the result of predicate", values[0].type)

    def check_body(values: list[TensorValue]) -> None:
        _check_count(f"{subject}: body returns", len(values), "the loop carries", len(types))
        for index, (value, wanted) in enumerate(zip(values, types, strict=True)):
            _check_type(f"{subject}: result {index} of body", value.type, f"carried value {index}", wanted)

    regions = region("predicate", predicate, check_predicate), region("body", body, check_body)
    return graph.insert(WhileOp([value.ssa for value in carried], *regions))


def _place(name: str, subject: str) -> str:
    location = user_location()
    return f"{name} of {subject}" if location is None else f"{name} of {subject} at {location}"


def _check_predicate(subject: str, given: TensorType) -> None:
    if given.dtype is not DType.bool:
        raise GraphTypeError(f"{subject} must be bool, not {given.dtype}; compare it, as in value != 0")
    if not is_one_bool(given):
        raise GraphError(
            f"{subject} must be one bool, not bool {shape_text(given.shape)}; reduce it to one, or choose element by "
            "element with ops.where"
        )


def _check_count(given: str, count: int, wanted: str, wanted_count: int) -> None:
    if count != wanted_count:
        raise GraphError(f"{given} {_values(count)}, but {wanted} {wanted_count}; return one for each, in order")


def _values(count: int) -> str:
    return f"{count} value{'' if count == 1 else 's'}"


def _check_type(subject: str, given: TensorType, other: str, wanted: TensorType) -> None:
    """Both types, and what makes one of the other."""
    if given == wanted:
        return
    message = f"{subject} is {given}, but {other} is {wanted}"
    if given.dtype is not wanted.dtype:
        raise GraphTypeError(f"{message}; cast it to {wanted.dtype}")
    if given.device != wanted.device:
        raise GraphError(f"{message}; move it with .to()")
    if given.rank != wanted.rank:
        raise GraphError(f"{message}; the number of axes must be the same, so reshape it")
    raise GraphError(f"{message}; all sizes must be the same: rebind it if they are, else pad or slice it")
