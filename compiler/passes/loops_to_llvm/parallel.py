"""Work for several threads: rounds that may run at the same time, and sections that may not.

forall   -> the body becomes a function of its own, ``void (ptr context, i64 round, i64 thread)``, where the context is
            a struct in the caller's frame that holds the values the body takes from outside; then one call of the
            thread pool
critical -> spin: taken = xchg word, 1; taken ? spin : body; xchg word, 0
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, SymbolRefAttr, UnitAttr, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...codegen.thread_pool import PARALLEL_FOR
from ...dialects import llvm_ext, scf_ext
from ...dialects.llvm_ext import AtomicKind, AtomicKindAttr, Ordering, OrderingAttr
from .lowering import PTR, FunctionLowering, LoweringFunction
from .memory import element_address

_ROUND_TYPES = (PTR, i64, i64)


def _defined_inside(block: Block) -> set[SSAValue]:
    inside: set[SSAValue] = set(block.args)
    for op in block.walk():
        inside.update(op.results)
        for region in op.regions:
            inside.update(argument for inner in region.blocks for argument in inner.args)
    return inside


def _taken_from_outside(block: Block) -> list[SSAValue]:
    """The values that a body uses but does not define, in order of first use."""
    inside = _defined_inside(block)
    return list(dict.fromkeys(value for op in block.walk() for value in op.operands if value not in inside))


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, arith.ConstantOp)


def _field(b: FunctionLowering, context: SSAValue, struct: Attribute, position: int) -> SSAValue:
    properties: dict[str, Attribute] = {
        "rawConstantIndices": DenseArrayBase.from_list(i32, [0, position]),
        "elem_type": struct,
        "noWrapFlags": IntegerAttr(0, 32),
        "inbounds": UnitAttr(),
    }
    return b.emit(llvm.GEPOp, (context,), PTR, properties)


def _fill_context(b: FunctionLowering, values: list[SSAValue], struct: Attribute) -> SSAValue:
    """A struct in the function's frame with these values in it."""
    count = llvm.ConstantOp(IntegerAttr(1, i64), i64)
    alloca = llvm.AllocaOp(count, struct)
    b.entry_allocas.extend((count, alloca))
    for position, value in enumerate(values):
        b.block.add_op(llvm.StoreOp(value, _field(b, alloca.res, struct, position)))
    return alloca.res


def _outline(b: FunctionLowering, op: scf_ext.ForallOp, captured: list[SSAValue], struct: Attribute) -> str:
    """Lowers the body to a function of its own, kept in ``b.outlined``; gives its name."""
    name = f"{b.name}.round.{len(b.outlined)}"
    inner = b.nested(name)
    context, *numbers = (inner.block.insert_arg(t, i) for i, t in enumerate(_ROUND_TYPES))
    for argument, hint in zip((context, *numbers), ("context", "round", "thread"), strict=True):
        argument.name_hint = hint
    for position, value in enumerate(captured):
        address = _field(inner, context, struct, position)
        properties = {"ordering": IntegerAttr(0, i64)}
        inner.set(value, inner.emit(llvm.LoadOp, (address,), b.type(value.type), properties))
    body = op.body.block
    for argument, number in zip(body.args, numbers, strict=False):
        inner.set(argument, number)
    constants = [value.owner for value in _taken_from_outside(body) if _is_constant(value)]
    inner.lower_ops(constants)
    inner.lower_ops(part for part in body.ops if part is not body.last_op)
    inner.block.add_op(llvm.ReturnOp())
    inner.place_allocas()
    function = llvm.FuncOp(name, llvm.LLVMFunctionType(_ROUND_TYPES), body=inner.region)
    function.properties["no_unwind"] = UnitAttr()
    b.outlined += [function, *inner.outlined]
    return name


def _forall(b: FunctionLowering, op: scf_ext.ForallOp) -> None:
    captured = [value for value in _taken_from_outside(op.body.block) if not _is_constant(value)]
    values = [b.get(value) for value in captured]
    struct = llvm.LLVMStructType.from_type_list([value.type for value in values])
    name = _outline(b, op, captured, struct)
    context = _fill_context(b, values, struct)
    body = b.emit(llvm.AddressOfOp, (), PTR, {"global_name": SymbolRefAttr(name)})
    b.block.add_op(llvm.CallOp(PARALLEL_FOR, b.get(op.threads), b.get(op.count), body, context))


def _exchange(b: FunctionLowering, address: SSAValue, value: int, ordering: Ordering) -> SSAValue:
    properties: dict[str, Attribute] = {
        "kind": AtomicKindAttr(AtomicKind.XCHG),
        "ordering": OrderingAttr(ordering),
    }
    return b.emit(llvm_ext.AtomicRMWOp, (address, b.integer(i64, value)), i64, properties)


def _critical(b: FunctionLowering, op: scf_ext.CriticalOp) -> None:
    address = element_address(b, b.get(op.memory), b.get(op.index), i64, inbounds=True)
    spin = b.new_block("critical.spin")
    b.branch(spin)
    b.block = spin
    before = _exchange(b, address, 1, Ordering.ACQUIRE)
    inside = b.new_block("critical.inside")
    b.conditional_branch(b.icmp("eq", before, b.integer(i64, 0)), inside, (), spin, ())
    b.block = inside
    body = op.body.block
    b.lower_ops(part for part in body.ops if part is not body.last_op)
    _exchange(b, address, 0, Ordering.RELEASE)


def pool_declaration() -> llvm.FuncOp:
    """The pool's function, which whoever loads the object provides."""
    return llvm.FuncOp(PARALLEL_FOR, llvm.LLVMFunctionType([i64, i64, PTR, PTR]), llvm.LinkageAttr("external"))


def calls_pool(functions: Sequence[llvm.FuncOp | llvm.GlobalOp]) -> bool:
    """Whether any of these functions hands work to the pool."""
    return any(
        isinstance(op, llvm.CallOp) and op.callee is not None and op.callee.root_reference.data == PARALLEL_FOR
        for function in functions
        for block in function.body.blocks
        for op in block.ops
    )


LOWERINGS: dict[type[Operation], LoweringFunction] = {
    scf_ext.CriticalOp: _critical,
    scf_ext.ForallOp: _forall,
}
