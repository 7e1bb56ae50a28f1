"""`verify-graph`: the rules that xDSL's verifier leaves out.

It runs first in every compilation, on the graph as built or as parsed, and changes nothing. Checked are

* dominance: every operand is defined before its use, in the same region or in one around it that it can see. This
  holds for all ops of the module, whatever their dialect;
* names: every `graph.apply` and `graph.custom` has a definition in the registry;
* calls: operands, results, parameters and fastmath flags fit that definition, and a symbol is defined only by a call
  that computes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl.dominance import DominanceInfo
from xdsl.passes import ModulePass
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

from ..dialects.graph import ApplyOp, CustomOp, RegisteredOp
from ..dims import SymbolicDim
from ..errors import HalfulpError, quoted_list
from ..kernel_call import match_call, match_parameters
from ..locations import location_of
from ..registry import find_kernel, find_op


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
    """``visible`` holds the values of the regions around this one that its ops may use."""
    if len(region.blocks) == 1:
        _verify_block(region.block, set(visible))
        return
    dominance = DominanceInfo(region)
    for block in region.blocks:
        before = set(visible)
        for other in region.blocks:
            if dominance.strictly_dominates(other, block):
                before.update(other.args)
                before.update(result for op in other.ops for result in op.results)
        _verify_block(block, before)


def _verify_block(block: Block, visible: set[SSAValue]) -> None:
    visible.update(block.args)
    for op in block.ops:
        for index, operand in enumerate(op.operands):
            if operand not in visible:
                _fail(op, f"operand {index} ({_name(operand)}) {_why_invisible(op, operand)}")
        inside = set() if op.has_trait(IsolatedFromAbove) else visible
        for region in op.regions:
            _verify_region(region, inside)
        visible.update(op.results)


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
    if block is use:
        return "is used before it is defined; move its definition up"
    around: Block | None = use
    while around is not None and around is not block:
        parent = around.parent_op()
        if parent is not None and parent.has_trait(IsolatedFromAbove):
            return f"is defined outside of {_subject(parent)}, whose body sees no value from outside; pass it in"
        around = None if parent is None else parent.parent
    if around is block and block is not None:
        return "is used before it is defined; move its definition up"
    if block is not None and use is not None and block.parent is use.parent:
        return "is defined in a block that does not come before on every path; pass it as a block argument"
    return "is defined in a region that this op is not in; return it from that region"


def _verify_call(op: RegisteredOp) -> None:
    verify: Callable[[], None] = {ApplyOp: _verify_apply, CustomOp: _verify_custom}[type(op)].__get__(op)
    try:
        verify()
    except HalfulpError as error:
        _fail(op, error.message.removeprefix(f"{op.subject}: "))
