"""Structured control flow, calls and returns.

for ->  header(i, carried): i < ub ? body : exit      while -> before(args): condition ? after : exit
        body: ...; next i, yielded -> header                   after(args): ...; yielded -> before
if  ->  condition ? then : else, both -> join(results)

A block argument stands for every carried value and every result.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, llvm, scf
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, SymbolRefAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import llvm_ext, scf_ext
from ...dialects.gpu_ext import INDEPENDENT_ROUNDS
from .lowering import PTR, FunctionLowering, LoweringFunction

LOOP_HINTS = "halfulp.loop"
"""Attribute of ``scf.for``, carried to the branch that closes the loop: ``{unroll = 4 : i64, vectorize = false}``."""

_NSW = IntegerAttr(1, 32)


def _types(b: FunctionLowering, values: Sequence[SSAValue]) -> list[Attribute]:
    return [b.type(value.type) for value in values]


def _bind(b: FunctionLowering, olds: Sequence[SSAValue], news: Sequence[SSAValue]) -> None:
    for old, new in zip(olds, news, strict=True):
        b.set(old, new)


def _body(b: FunctionLowering, block: Block) -> list[SSAValue]:
    """Lowers a block but for its terminator, whose operands it gives."""
    terminator = block.last_op
    assert terminator is not None
    b.lower_ops(op for op in block.ops if op is not terminator)
    return [b.get(operand) for operand in terminator.operands]


def _check_attributes(b: FunctionLowering, op: Operation, known: tuple[str, ...] = ()) -> None:
    for name in op.attributes:
        if name not in known:
            raise b.error(op, f"has the attribute {name}, which has no meaning in LLVM; remove it")


def _for(b: FunctionLowering, op: scf.ForOp) -> None:
    _check_attributes(b, op, (LOOP_HINTS, INDEPENDENT_ROUNDS))
    old_index, *old_carried = op.body.block.args
    lower, upper, step = b.get(op.lb), b.get(op.ub), b.get(op.step)
    index_type = b.type(old_index.type)
    header = b.new_block("for.header", [index_type, *_types(b, old_carried)])
    b.branch(header, [lower, *(b.get(value) for value in op.iter_args)])
    body = b.new_block("for.body")

    b.block = header
    index, *carried = header.args
    in_range = b.icmp("slt", index, upper)
    _bind(b, (old_index, *old_carried), header.args)

    b.block = body
    yielded = _body(b, op.body.block)
    following = b.emit(llvm.AddOp, (index, step), index_type, {"overflowFlags": _NSW})
    latch = b.branch(header, [following, *yielded])
    if LOOP_HINTS in op.attributes:
        latch.attributes[LOOP_HINTS] = op.attributes[LOOP_HINTS]

    done = b.new_block("for.exit")
    header.add_op(llvm.CondBrOp(in_range, body, [], done, []))
    b.block = done
    _bind(b, op.results, carried)


def _branch_of_if(b: FunctionLowering, region: Region, block: Block, join: Block) -> None:
    b.block = block
    b.branch(join, _body(b, region.block))


def _if(b: FunctionLowering, op: scf.IfOp) -> None:
    _check_attributes(b, op)
    has_else = bool(op.false_region.blocks)
    start = b.block
    then_block = b.new_block("if.then")
    join = Block(arg_types=_types(b, op.results))
    join.name_hint = "if.join"
    _branch_of_if(b, op.true_region, then_block, join)
    else_block = join
    if has_else:
        else_block = b.new_block("if.else")
        _branch_of_if(b, op.false_region, else_block, join)
    b.region.add_block(join)
    start.add_op(llvm.CondBrOp(b.get(op.cond), then_block, [], else_block, []))
    b.block = join
    _bind(b, op.results, join.args)


def _while(b: FunctionLowering, op: scf.WhileOp) -> None:
    _check_attributes(b, op, (LOOP_HINTS,))
    before = b.new_block("while.before", _types(b, op.arguments))
    b.branch(before, [b.get(value) for value in op.arguments])
    b.block = before
    _bind(b, op.before_region.block.args, before.args)
    condition, *passed = _body(b, op.before_region.block)
    decision = b.block

    after = b.new_block("while.after", [value.type for value in passed])
    b.block = after
    _bind(b, op.after_region.block.args, after.args)
    latch = b.branch(before, _body(b, op.after_region.block))
    if LOOP_HINTS in op.attributes:
        latch.attributes[LOOP_HINTS] = op.attributes[LOOP_HINTS]

    done = b.new_block("while.exit", [value.type for value in passed])
    decision.add_op(llvm.CondBrOp(condition, after, passed, done, passed))
    b.block = done
    _bind(b, op.results, done.args)


def result_type(types: list[Attribute]) -> Attribute:
    """What a function with these results returns: nothing, the value, or a struct of the values."""
    if not types:
        return llvm.LLVMVoidType()
    return types[0] if len(types) == 1 else llvm.LLVMStructType.from_type_list(types)


def _return(b: FunctionLowering, op: func.ReturnOp) -> None:
    values = [b.get(value) for value in op.arguments]
    if len(values) <= 1:
        b.block.add_op(llvm.ReturnOp(*values))
        return
    t = result_type([value.type for value in values])
    packed = b.emit(llvm_ext.PoisonOp, (), t)
    for i, value in enumerate(values):
        packed = b.emit(llvm.InsertValueOp, (packed, value), t, {"position": DenseArrayBase.from_list(i64, [i])})
    b.block.add_op(llvm.ReturnOp(packed))


def _call(b: FunctionLowering, op: func.CallOp) -> None:
    _check_attributes(b, op)
    types = _types(b, op.results)
    call = llvm.CallOp(
        SymbolRefAttr(op.callee.root_reference.data),
        *(b.get(value) for value in op.arguments),
        return_type=result_type(types) if types else None,
    )
    b.block.add_op(call)
    if len(types) == 1:
        b.set(op.results[0], call.results[0])
    elif types:
        for i, old in enumerate(op.results):
            position = {"position": DenseArrayBase.from_list(i64, [i])}
            b.set(old, b.emit(llvm.ExtractValueOp, (call.results[0],), types[i], position))


def _call_address(b: FunctionLowering, op: scf_ext.CallAddressOp) -> None:
    callee = b.emit(llvm.IntToPtrOp, (b.get(op.address),), PTR)
    arguments = [b.get(argument) for argument in op.arguments]
    call = llvm.CallOp("", callee, *arguments)
    del call.properties["callee"]  # then the first operand is called
    b.block.add_op(call)


LOWERINGS: dict[type[Operation], LoweringFunction] = {
    func.CallOp: _call,
    func.ReturnOp: _return,
    scf.ForOp: _for,
    scf.IfOp: _if,
    scf.WhileOp: _while,
    scf_ext.CallAddressOp: _call_address,
}
