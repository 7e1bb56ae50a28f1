"""`verify-graph`: the rules that xDSL's verifier leaves out.

It runs first in every compilation, on the graph as built or as parsed, and changes nothing. Checked are

* dominance: every operand is defined before its use, in the same region or in one around it that it can see. This
  holds for all ops of the module, whatever their dialect;
* names: every `graph.apply` and `graph.custom` has a definition in the registry;
* calls: operands, results, parameters and fastmath flags fit that definition, and a symbol is defined only by a call
  that computes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl.dominance import DominanceInfo
from xdsl.passes import ModulePass
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

from ..dialects.graph import KernelCallOp, RegisteredOp
from ..dims import SymbolicDim
from ..errors import HalfulpError, quoted_list
from ..kernel_call import match_call, match_parameters
from ..locations import location_of
from ..op_call import check_devices
from ..options import ordered_flags
from ..registry import find_kernel, find_op
from ..types import TensorType


@dataclass(frozen=True)
class VerifyGraphPass(ModulePass):
    """Raises VerifyException at the first op that breaks a rule; the message names the op and the value."""

    name = "verify-graph"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        verify_dominance(op)
        for inner in op.walk():
            if isinstance(inner, RegisteredOp):
                _verify_call(inner)


def verify_dominance(module: ModuleOp) -> None:
    """Check that every operand in the module is visible where it is used and defined before.

    Raises:
        VerifyException: an operand is not; the message names the op and the operand.
    """
    for region in module.regions:
        _verify_region(region, set())


def _verify_region(region: Region, visible: set[SSAValue]) -> None:
    """``visible`` holds the values from around the region that its ops may use; it is the same set afterwards."""
    dominance = DominanceInfo(region) if len(region.blocks) > 1 else None
    for block in region.blocks:
        added: list[SSAValue] = []
        if dominance is not None:
            for other in region.blocks:
                if dominance.strictly_dominates(other, block):
                    added += [*other.args, *(result for op in other.ops for result in op.results)]
        visible.update(added)
        added += _verify_block(block, visible)
        visible.difference_update(added)


def _verify_block(block: Block, visible: set[SSAValue]) -> list[SSAValue]:
    """Check the ops of a block; adds its values to ``visible`` and returns them."""
    added: list[SSAValue] = list(block.args)
    visible.update(added)
    for op in block.ops:
        for index, operand in enumerate(op.operands):
            if operand not in visible:
                _fail(op, f"operand {index} ({_name(operand)}) {_why_invisible(op, operand)}")
        for region in op.regions:
            _verify_region(region, set() if op.has_trait(IsolatedFromAbove) else visible)
        visible.update(op.results)
        added += op.results
    return added


def _name(value: SSAValue) -> str:
    if value.name_hint:
        return f"%{value.name_hint}"
    kind, index = ("argument", value.index) if isinstance(value, BlockArgument) else ("result", _result_index(value))
    return f"{kind} {index} of {_owner_text(value)}"


def _result_index(value: SSAValue) -> int:
    owner = value.owner
    assert isinstance(owner, Operation)
    return next(index for index, result in enumerate(owner.results) if result is value)


def _owner_text(value: SSAValue) -> str:
    owner = value.owner
    if isinstance(owner, Operation):
        return _subject(owner)
    parent = owner.parent_op()
    return "a block" if parent is None else f"a block of {_subject(parent)}"


def _why_invisible(op: Operation, value: SSAValue) -> str:
    block = value.owner.parent if isinstance(value.owner, Operation) else value.owner
    use = op.parent
    if block is None or use is None:
        return "is not in the module"
    if block is not use and block.parent is use.parent:
        return "is defined in a block that does not come before on every path; pass it as a block argument"
    around: Block | None = use
    while around is not None and around is not block:
        parent = around.parent_op()
        if parent is not None and parent.has_trait(IsolatedFromAbove) and not parent.is_ancestor(block):
            return f"is defined outside of {_subject(parent)}, whose body sees no value from outside; pass it in"
        around = None if parent is None else parent.parent
    if around is None:
        return "is defined in a region that this op is not in; return it from that region"
    return "is used before it is defined; move its definition up"


def _verify_call(op: RegisteredOp) -> None:
    try:
        if isinstance(op, KernelCallOp):
            computed = _verify_custom(op)
        else:
            computed = _verify_apply(op)
    except HalfulpError as error:
        _fail(op, error.message.removeprefix(f"{op.subject}: "))
    if wrong := [symbol for symbol in op.defined_symbols if symbol not in computed]:
        _fail(op, f"defines {quoted_list(wrong)}, but it computes {quoted_list(computed) if computed else 'no size'}")


def _verify_custom(op: KernelCallOp) -> list[str]:
    """Match the call against the kernel; returns the symbols that the kernel computes."""
    kernel = find_kernel(op.callee.data, op.subject)
    call = match_call(kernel, op.device_ref, op.argument_types, op.output_types, op.parameter_values, op.subject)
    return [dim.name for dims in call.computed.values() for dim in dims if isinstance(dim, SymbolicDim)]


def _verify_apply(op: RegisteredOp) -> list[str]:
    """Compare the results' types with the shape rule; returns the symbols that the op may define."""
    definition = find_op(op.callee.data, op.subject)
    if op.flags and not definition.fastmath:
        _fail(op, f"takes no fastmath flags, but has {', '.join(ordered_flags(op.flags))}")
    parameters = match_parameters(definition.parameters, op.parameter_values, op.subject)
    check_devices(op.subject, definition, op.argument_types)
    wanted = tuple(definition.infer(op.argument_types, parameters))
    if wanted != op.output_types:
        _fail(op, f"its results must be {_types_text(wanted)}, not {_types_text(op.output_types)}")
    return list(op.defined_symbols) if definition.defines_symbols else []


def _types_text(types: Iterable[TensorType]) -> str:
    return ", ".join(str(t) for t in types) or "none"


def _subject(op: Operation) -> str:
    return op.subject if isinstance(op, RegisteredOp) else op.name


def _fail(op: Operation, message: str) -> NoReturn:
    location = location_of(op)
    place = "" if location is None else f"\n  at {location.with_source()}"
    text = f"{_subject(op)}: {message}{place}"
    op.emit_error(text, VerifyException(text))
