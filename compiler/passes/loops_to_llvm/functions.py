"""Functions: ``func.func`` -> ``llvm.func``, and the C entry point of functions marked ``halfulp.entry``."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import func, llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ...codegen.llvm.attributes import NVVM_KERNEL
from ...dialects.gpu_ext import KERNEL, KERNEL_ATTRIBUTES
from ...errors import CompileError
from .control import result_type
from .lowering import PTR, FunctionLowering, LoweringFunction, LoweringOptions, TypeLowering
from .memory import element_address, natural_alignment

ENTRY = "halfulp.entry"
FP_CONTRACT = "halfulp.fp_contract"
MAY_ALIAS = "halfulp.may_alias"
NO_INLINE = "halfulp.no_inline"
ALWAYS_INLINE = "halfulp.always_inline"

MXCSR_DEFAULT = 0x1F80
"""All exceptions masked, round to nearest, no flush-to-zero, no denormals-are-zero (Intel SDM vol. 1, 10.2.3)."""

_INTERNAL = llvm.LinkageAttr("internal")
_EXTERNAL = llvm.LinkageAttr("external")
_CCC = llvm.CallingConventionAttr("ccc")


def _argument_attributes(op: func.FuncOp, types: TypeLowering) -> ArrayAttr[DictionaryAttr]:
    """Pointers are ``noalias`` and aligned to their element, unless the argument says otherwise."""
    given = op.arg_attrs.data if op.arg_attrs is not None else ()
    result = []
    for i, t in enumerate(op.function_type.inputs):
        attributes: dict[str, Attribute] = dict(given[i].data) if i < len(given) else {}
        may_alias = attributes.pop(MAY_ALIAS, None) is not None
        if isinstance(t, MemRefType):
            if not may_alias and KERNEL not in op.attributes:  # what other threads write is no secret to the barrier
                attributes.setdefault("llvm.noalias", UnitAttr())
            alignment = natural_alignment(types(t.element_type))
            attributes.setdefault("llvm.align", IntegerAttr(alignment, i64))
        elif may_alias:
            raise CompileError(
                f"convert-loops-to-llvm: argument {i} of @{op.sym_name.data} is {t}, but only memrefs take {MAY_ALIAS}"
            )
        for name in attributes:
            if not name.startswith("llvm."):
                raise CompileError(
                    f"convert-loops-to-llvm: argument {i} of @{op.sym_name.data} has the attribute {name},"
                    " which has no meaning in LLVM; remove it"
                )
        result.append(DictionaryAttr(attributes))
    return ArrayAttr(result)


def _function_attributes(op: func.FuncOp) -> list[Attribute]:
    """The attributes that pass through to LLVM."""
    passthrough: list[Attribute] = []
    for name, value in op.attributes.items():
        if name == FP_CONTRACT and isinstance(value, StringAttr):
            passthrough.append(ArrayAttr([StringAttr("fp-contract"), value]))
        elif name == ALWAYS_INLINE:
            passthrough.append(StringAttr("alwaysinline"))
        elif name not in (ENTRY, NO_INLINE, *KERNEL_ATTRIBUTES):
            raise CompileError(
                f"convert-loops-to-llvm: function @{op.sym_name.data} has the attribute {name} = {value},"
                " which has no meaning in LLVM; remove it"
            )
    return passthrough


def _llvm_function(op: func.FuncOp, types: TypeLowering) -> llvm.FuncOp:
    inputs = [types(t) for t in op.function_type.inputs]
    output = result_type([types(t) for t in op.function_type.outputs])
    is_internal = ENTRY in op.attributes or (op.sym_visibility is not None and op.sym_visibility.data == "private")
    passthrough = _function_attributes(op)
    properties: dict[str, Attribute] = {
        "sym_name": op.sym_name,
        "function_type": llvm.LLVMFunctionType(inputs, output),
        "CConv": _CCC,
        "linkage": _INTERNAL if is_internal and not op.is_declaration else _EXTERNAL,
        "visibility_": IntegerAttr(0, i64),
        "arg_attrs": _argument_attributes(op, types),
        "no_unwind": UnitAttr(),
    }
    if passthrough:
        properties["passthrough"] = ArrayAttr(passthrough)
    if ENTRY in op.attributes or NO_INLINE in op.attributes:
        # An entry's body inlined into its wrapper could move across the change of the rounding state.
        properties["no_inline"] = UnitAttr()
    attributes = {NVVM_KERNEL: UnitAttr()} if KERNEL in op.attributes else {}
    return llvm.FuncOp.create(properties=properties, attributes=attributes, regions=())


def lower_function(
    op: func.FuncOp,
    table: Mapping[type[Operation], LoweringFunction],
    options: LoweringOptions,
) -> list[llvm.FuncOp | llvm.GlobalOp]:
    """The function after its globals, and after it the C entry point if it has ``halfulp.entry``."""
    lowering = FunctionLowering(op.sym_name.data, table, options)
    new = _llvm_function(op, lowering.type)
    if op.is_declaration:
        if ENTRY in op.attributes:
            raise CompileError(
                f"convert-loops-to-llvm: function @{op.sym_name.data} is {ENTRY} but has no body; give it one"
            )
        new.add_region(lowering.region)
        lowering.region.detach_block(lowering.block)
        return [new]
    if len(op.body.blocks) != 1:
        raise CompileError(
            f"convert-loops-to-llvm: function @{op.sym_name.data} has {len(op.body.blocks)} blocks; the loops"
            " subset is structured, with one"
        )
    old_entry = op.body.block
    for i, old in enumerate(old_entry.args):
        lowering.set(old, lowering.block.insert_arg(lowering.type(old.type), i))
    lowering.lower_ops(old_entry.ops)
    lowering.place_allocas()
    new.add_region(lowering.region)
    for outlined in lowering.outlined:
        if new.passthrough is not None:
            outlined.properties["passthrough"] = new.passthrough
    functions: list[llvm.FuncOp | llvm.GlobalOp] = [*lowering.globals, new, *lowering.outlined]
    return [*functions, _entry_point(op, table, options)] if ENTRY in op.attributes else functions


def _entry_point(
    op: func.FuncOp, table: Mapping[type[Operation], LoweringFunction], options: LoweringOptions
) -> llvm.FuncOp:
    """``void @name.call(ptr buffers, ptr dims)``.

    Memrefs are taken in order from ``buffers`` (8-byte pointers), index arguments in order from ``dims`` (i64).
    Around the call the floating-point state is IEEE's default, whatever the caller had set; afterwards the caller's
    is restored.
    """
    name = f"{op.sym_name.data}.call"
    b = FunctionLowering(name, table, options)
    buffers = b.block.insert_arg(PTR, 0)
    dims = b.block.insert_arg(PTR, 1)
    buffers.name_hint, dims.name_hint = "buffers", "dims"
    if len(op.function_type.outputs):
        raise CompileError(
            f"convert-loops-to-llvm: entry function @{op.sym_name.data} returns values; write them to memrefs instead"
        )
    arguments = _entry_arguments(b, op, buffers, dims)
    saved = _set_default_state(b)
    b.block.add_op(llvm.CallOp(op.sym_name.data, *arguments))
    _restore_state(b, saved)
    b.block.add_op(llvm.ReturnOp())
    b.place_allocas()
    return llvm.FuncOp.create(
        properties={
            "sym_name": StringAttr(name),
            "function_type": llvm.LLVMFunctionType([PTR, PTR]),
            "CConv": _CCC,
            "linkage": _EXTERNAL,
            "visibility_": IntegerAttr(0, i64),
            "no_unwind": UnitAttr(),
        },
        regions=(b.region,),
    )


def _entry_arguments(b: FunctionLowering, op: func.FuncOp, buffers: SSAValue, dims: SSAValue) -> list[SSAValue]:
    """The arguments of an entry function, loaded from the arrays of its entry point."""
    arguments = []
    taken = {PTR: 0, i64: 0}
    for i, t in enumerate(op.function_type.inputs):
        if not isinstance(t, MemRefType | IndexType):
            raise CompileError(
                f"convert-loops-to-llvm: argument {i} of entry function @{op.sym_name.data} is {t};"
                " an entry takes memrefs and index values"
            )
        kind, source = (PTR, buffers) if isinstance(t, MemRefType) else (i64, dims)
        arguments.append(_argument(b, source, taken[kind], kind))
        taken[kind] += 1
    return arguments


def _argument(b: FunctionLowering, source: SSAValue, position: int, kind: Attribute) -> SSAValue:
    address = element_address(b, source, b.integer(i64, position), kind, inbounds=True)
    properties = {"alignment": IntegerAttr(8, i64), "ordering": IntegerAttr(0, i64)}
    return b.emit(llvm.LoadOp, (address,), kind, properties)


def _stack_word(b: FunctionLowering) -> SSAValue:
    count = llvm.ConstantOp(IntegerAttr(1, i64), i64)
    alloca = llvm.AllocaOp(count, i32, alignment=4)
    b.entry_allocas.extend((count, alloca))
    return alloca.res


def _store_word(b: FunctionLowering, value: int, pointer: SSAValue) -> None:
    b.block.add_op(llvm.StoreOp(b.integer(i32, value), pointer, alignment=4))


def _set_default_state(b: FunctionLowering) -> SSAValue:
    """Saves the floating-point state and sets the default; gives what ``_restore_state`` needs."""
    if b.options.arch == "aarch64":
        saved = b.call_intrinsic("llvm.aarch64.get.fpcr", (), i64, overloads=())
        _void_intrinsic(b, "llvm.aarch64.set.fpcr", b.integer(i64, 0))
        return saved
    pointer, default = _stack_word(b), _stack_word(b)
    _void_intrinsic(b, "llvm.x86.sse.stmxcsr", pointer)
    _store_word(b, MXCSR_DEFAULT, default)
    _void_intrinsic(b, "llvm.x86.sse.ldmxcsr", default)
    return pointer


def _restore_state(b: FunctionLowering, saved: SSAValue) -> None:
    name = "llvm.aarch64.set.fpcr" if b.options.arch == "aarch64" else "llvm.x86.sse.ldmxcsr"
    _void_intrinsic(b, name, saved)


def _void_intrinsic(b: FunctionLowering, name: str, operand: SSAValue) -> None:
    b.block.add_op(llvm.CallIntrinsicOp(name, [operand], []))
