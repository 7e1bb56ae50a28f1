"""What the functions of the loops stage have in common: their arguments, the first of which is the status words."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    MemRefType,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from ...artifact import STATUS_LAUNCH
from ...dialects import tile
from .loop_builder import INDEX, LoopBuilder
from .views import storage_type

MAY_ALIAS = "halfulp.may_alias"
STATUS = MemRefType(i64, [DYNAMIC_INDEX])


def lowered_types(argument: Attribute) -> list[Attribute]:
    """What a kernel's or entry's argument becomes: flat memory and one extent for each axis, or itself."""
    if isinstance(argument, tile.RefType):
        return [MemRefType(storage_type(argument.element_type), [DYNAMIC_INDEX]), *[INDEX] * argument.rank]
    return [argument]


def private_function(
    name: str, types: Sequence[Attribute], contract: StringAttr | None, shared: Collection[int] = ()
) -> func.FuncOp:
    """A function without a body as yet, whose first argument is the status words.

    ``shared``: arguments whose memory other arguments may have, too.
    """
    # Other threads write to the status words, too, which noalias would deny.
    attributes = ArrayAttr(
        [DictionaryAttr({MAY_ALIAS: UnitAttr()} if i == 0 or i in shared else {}) for i in range(len(types))]
    )
    op = func.FuncOp(name, (types, []), Region(Block(arg_types=types)), visibility="private", arg_attrs=attributes)
    if contract is not None:
        op.attributes["halfulp.fp_contract"] = contract
    return op


def take_block_arguments(function: func.FuncOp) -> None:
    """Brings the type of a function up to its block, which has got further arguments behind the others."""
    types = function.body.block.arg_types
    assert function.arg_attrs is not None
    known = function.arg_attrs.data
    function.function_type = FunctionType.from_lists(list(types), [])
    function.arg_attrs = ArrayAttr([*known, *[DictionaryAttr({})] * (len(types) - len(known))])


def still_well(builder: LoopBuilder, status: SSAValue) -> SSAValue:
    """Whether no check has failed: after one, nothing more is launched or printed."""
    return builder.compare("eq", builder.load(status, STATUS_LAUNCH, 1), builder.scalar(0, i64))
