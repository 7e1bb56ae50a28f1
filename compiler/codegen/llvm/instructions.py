"""One writer per op of the ``llvm`` and ``llvm_ext`` dialects: op -> one line of LLVM text (gather, scatter: two).

Every property of an op reaches the text: fastmath flags, overflow and exact flags, alignment, ordering, hints. An
intrinsic is declared in the module when it is first called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import llvm_ext
from .attributes import flags_text, loop_hints
from .constants import quoted_bytes
from .families import BINARIES, INTRINSICS, NUMBER_CASTS, POINTER_CASTS, instruction_of, intrinsic_of
from .function import FunctionText
from .types import intrinsic_suffix

Writer = Callable[[FunctionText, Any], None]


def _binary(opcode: str) -> Writer:
    """``%r = fadd nnan float %a, %b``: also integer ops with overflow, exact or disjoint flags."""

    def write(f: FunctionText, op: Operation) -> None:
        a, b = op.operands
        f.lines.append(f"  {f.ref(op.results[0])} = {opcode}{_modifiers(op)} {f.types(a.type)} {f.ref(a)}, {f.ref(b)}")

    return write


_OVERFLOW_TEXTS = {0: "", 1: " nsw", 2: " nuw", 3: " nuw nsw"}


def _modifiers(op: Operation) -> str:
    properties = op.properties
    if not properties:
        return ""
    text = flags_text(properties.get("fastmathFlags"))
    overflow = properties.get("overflowFlags")
    if overflow is not None:
        bits = overflow.to_int() if isinstance(overflow, llvm.OverflowAttr) else overflow.value.data  # type: ignore[attr-defined]
        text += _OVERFLOW_TEXTS[bits]
    if "isExact" in properties:
        text += " exact"
    if "isDisjoint" in properties:
        text += " disjoint"
    if "nonNeg" in properties:
        text += " nneg"
    return text


def _cast(opcode: str) -> Writer:
    def write(f: FunctionText, op: Operation) -> None:
        result = op.results[0]
        f.lines.append(
            f"  {f.ref(result)} = {opcode}{_modifiers(op)} {f.typed(op.operands[0])} to {f.types(result.type)}"
        )

    return write


def _icmp(f: FunctionText, op: llvm.ICmpOp) -> None:
    predicate = llvm.ALL_ICMP_FLAGS[op.predicate.value.data].value
    f.lines.append(f"  {f.ref(op.res)} = icmp {predicate} {f.typed(op.lhs)}, {f.ref(op.rhs)}")


def _fcmp(f: FunctionText, op: Operation) -> None:
    if isinstance(op, llvm.FCmpOp):
        predicate = llvm.ALL_FCMP_FLAGS[op.predicate.value.data].value.lstrip("_")
    else:
        predicate = op.properties["predicate"].data.value  # type: ignore[attr-defined]
    a, b = op.operands
    f.lines.append(f"  {f.ref(op.results[0])} = fcmp{_modifiers(op)} {predicate} {f.typed(a)}, {f.ref(b)}")


def _fneg(f: FunctionText, op: Operation) -> None:
    f.lines.append(f"  {f.ref(op.results[0])} = fneg{_modifiers(op)} {f.typed(op.operands[0])}")


def _select(f: FunctionText, op: Operation) -> None:
    values = ", ".join(f.typed(value) for value in op.operands)
    f.lines.append(f"  {f.ref(op.results[0])} = select{_modifiers(op)} {values}")


def call_intrinsic(
    f: FunctionText,
    name: str,
    arguments: Sequence[SSAValue],
    result: SSAValue | None,
    flags: str = "",
    argument_attributes: Sequence[str] = (),
) -> None:
    """``%r = call nnan float @llvm.fma.f32(float %a, ...)``, declared on first use.

    ``argument_attributes``: texts such as ``" align 4"`` that stand behind the types of the first arguments.
    """
    types = [f.types(a.type) for a in arguments]
    result_type = "void" if result is None else f.types(result.type)
    f.module.declare(name, result_type, types)
    parts = [f"{t} {f.ref(a)}" for t, a in zip(types, arguments, strict=True)]
    for i, attribute in enumerate(argument_attributes):
        parts[i] = f"{types[i]}{attribute} {f.ref(arguments[i])}"
    target = "" if result is None else f"{f.ref(result)} = "
    f.lines.append(f"  {target}call{flags} {result_type} @{name}({', '.join(parts)})")


def _intrinsic(base: str, overload: int | None = 0) -> Writer:
    """An op that stands for one intrinsic, overloaded on the type of operand ``overload`` (None: not overloaded)."""

    def write(f: FunctionText, op: Operation) -> None:
        operands = list(op.operands)
        name = base if overload is None else f"{base}.{intrinsic_suffix(operands[overload].type)}"
        call_intrinsic(f, name, operands, op.results[0] if op.results else None, _modifiers(op))

    return write


def _call_intrinsic(f: FunctionText, op: llvm.CallIntrinsicOp) -> None:
    if op.op_bundle_operands or len(op.op_bundle_sizes):
        raise f.error(op, f"calls {op.intrin.data} with operand bundles, which have no LLVM text here")
    call_intrinsic(f, op.intrin.data, list(op.args), op.ress, _modifiers(op))


def _pointer_suffix(pointer: SSAValue) -> str:
    return intrinsic_suffix(pointer.type)


def _align(op: Operation) -> str:
    return f" align {op.properties['alignment'].value.data}"  # type: ignore[attr-defined]


def _masked_load(f: FunctionText, op: llvm_ext.MaskedLoadOp) -> None:
    name = f"llvm.masked.load.{intrinsic_suffix(op.result.type)}.{_pointer_suffix(op.pointer)}"
    call_intrinsic(f, name, (op.pointer, op.mask, op.pass_thru), op.result, argument_attributes=(_align(op),))


def _masked_store(f: FunctionText, op: Operation) -> None:
    value, pointer, mask = op.operands
    name = f"llvm.masked.store.{intrinsic_suffix(value.type)}.{_pointer_suffix(pointer)}"
    call_intrinsic(f, name, (value, pointer, mask), None, argument_attributes=("", _align(op)))


def _lane_pointers(f: FunctionText, base: SSAValue, indices: SSAValue, element: Attribute, lanes: int) -> str:
    name = f.fresh("addresses")
    f.lines.append(f"  {name} = getelementptr {f.types(element)}, {f.typed(base)}, {f.typed(indices)}")
    return f"<{lanes} x {f.types(base.type)}>{{}} {name}"


def _gather(f: FunctionText, op: llvm_ext.GatherOp) -> None:
    value = op.result.type
    assert isinstance(value, VectorType)
    lanes = value.shape.data[0].data
    pointers = _lane_pointers(f, op.base, op.indices, value.element_type, lanes)
    name = f"llvm.masked.gather.{intrinsic_suffix(value)}.v{lanes}{_pointer_suffix(op.base)}"
    vector, mask = f.types(value), f.types(op.mask.type)
    f.module.declare(name, vector, [pointers.split("{")[0], mask, vector])
    f.lines.append(
        f"  {f.ref(op.result)} = call {vector} @{name}({pointers.format(_align(op))},"
        f" {f.typed(op.mask)}, {f.typed(op.pass_thru)})"
    )


def _scatter(f: FunctionText, op: llvm_ext.ScatterOp) -> None:
    value = op.value.type
    assert isinstance(value, VectorType)
    lanes = value.shape.data[0].data
    pointers = _lane_pointers(f, op.base, op.indices, value.element_type, lanes)
    name = f"llvm.masked.scatter.{intrinsic_suffix(value)}.v{lanes}{_pointer_suffix(op.base)}"
    f.module.declare(name, "void", [f.types(value), pointers.split("{")[0], f.types(op.mask.type)])
    f.lines.append(f"  call void @{name}({f.typed(op.value)}, {pointers.format(_align(op))}, {f.typed(op.mask)})")


def _load(f: FunctionText, op: llvm.LoadOp) -> None:
    ordering = op.ordering.value.data
    atomic, order = (" atomic", f" {llvm.ATOMIC_ORDERING_KEYWORDS[ordering]}") if ordering else ("", "")
    align = f", align {op.alignment.value.data}" if op.alignment is not None else ""
    result = op.dereferenced_value
    f.lines.append(f"  {f.ref(result)} = load{atomic} {f.types(result.type)}, {f.typed(op.ptr)}{order}{align}")


def _store(f: FunctionText, op: llvm.StoreOp) -> None:
    ordering = op.ordering.value.data if op.ordering is not None else 0
    atomic, order = (" atomic", f" {llvm.ATOMIC_ORDERING_KEYWORDS[ordering]}") if ordering else ("", "")
    volatile = " volatile" if op.volatile_ is not None else ""
    align = f", align {op.alignment.value.data}" if op.alignment is not None else ""
    hint = f", !nontemporal {f.module.metadata('!{i32 1}')}" if op.nontemporal is not None else ""
    f.lines.append(f"  store{atomic}{volatile} {f.typed(op.value)}, {f.typed(op.ptr)}{order}{align}{hint}")


# MLIR's bits for the no-wrap flags of getelementptr; inbounds implies nusw.
_GEP_FLAGS = ((1, " inbounds"), (2, " nusw"), (4, " nuw"))


def _gep(f: FunctionText, op: llvm.GEPOp) -> None:
    bits = op.noWrapFlags.value.data | (1 if op.inbounds is not None else 0)
    flags = "".join(text for bit, text in _GEP_FLAGS if bits & bit)
    dynamic = iter(op.ssa_indices)
    indices = [
        f.typed(next(dynamic)) if index == llvm.GEP_USE_SSA_VAL else f"i32 {index}"
        for index in op.rawConstantIndices.iter_values()
    ]
    f.lines.append(
        f"  {f.ref(op.result)} = getelementptr{flags} {f.types(op.elem_type)}, {f.typed(op.ptr)}, {', '.join(indices)}"
    )


def _alloca(f: FunctionText, op: llvm.AllocaOp) -> None:
    align = f", align {op.alignment.value.data}" if op.alignment is not None else ""
    f.lines.append(f"  {f.ref(op.res)} = alloca {f.types(op.elem_type)}, {f.typed(op.size)}{align}")


def _position(op: Operation) -> str:
    return ", ".join(str(i) for i in op.properties["position"].get_values())  # type: ignore[attr-defined]


def _extractvalue(f: FunctionText, op: llvm.ExtractValueOp) -> None:
    f.lines.append(f"  {f.ref(op.res)} = extractvalue {f.typed(op.container)}, {_position(op)}")


def _insertvalue(f: FunctionText, op: llvm.InsertValueOp) -> None:
    f.lines.append(f"  {f.ref(op.res)} = insertvalue {f.typed(op.container)}, {f.typed(op.value)}, {_position(op)}")


def _insertelement(f: FunctionText, op: llvm.InsertElementOp) -> None:
    f.lines.append(f"  {f.ref(op.res)} = insertelement {f.typed(op.vector)}, {f.typed(op.value)}, {f.typed(op.index)}")


def _extractelement(f: FunctionText, op: llvm_ext.ExtractElementOp) -> None:
    f.lines.append(f"  {f.ref(op.result)} = extractelement {f.typed(op.vector)}, {f.typed(op.index)}")


def _shufflevector(f: FunctionText, op: llvm.ShuffleVectorOp) -> None:
    values = op.mask.get_values()
    if not any(values):
        mask = "zeroinitializer"
    else:
        mask = "<" + ", ".join("i32 poison" if i < 0 else f"i32 {i}" for i in values) + ">"
    f.lines.append(
        f"  {f.ref(op.res)} = shufflevector {f.typed(op.v1)}, {f.typed(op.v2)}, <{len(values)} x i32> {mask}"
    )


def _loop(f: FunctionText, op: Operation) -> str:
    hints = op.attributes.get("halfulp.loop")
    if hints is None:
        return ""
    nodes = loop_hints(hints, f"{op.name} in function @{f.name}")
    return f", !llvm.loop {f.module.loop_metadata(nodes)}"


def _br(f: FunctionText, op: llvm.BrOp) -> None:
    f.lines.append(f"  br label %{f.label(op.successor)}{_loop(f, op)}")


def _cond_br(f: FunctionText, op: llvm.CondBrOp) -> None:
    split = f.split_edges.get(id(op))
    otherwise = split or f.label(op.else_block)
    f.lines.append(f"  br i1 {f.ref(op.cond)}, label %{f.label(op.then_block)}, label %{otherwise}{_loop(f, op)}")
    if split:
        f.lines.extend((f"{split}:", f"  br label %{f.label(op.else_block)}"))


def _switch(f: FunctionText, op: llvm_ext.SwitchOp) -> None:
    t = f.types(op.value.type)
    cases = " ".join(
        f"{t} {number}, label %{f.label(block)}"
        for number, block in zip(op.case_values.get_values(), op.cases, strict=True)
    )
    f.lines.append(f"  switch {f.typed(op.value)}, label %{f.label(op.default)} [ {cases} ]")


def _return(f: FunctionText, op: llvm.ReturnOp) -> None:
    f.lines.append("  ret void" if op.arg is None else f"  ret {f.typed(op.arg)}")


def _call(f: FunctionText, op: llvm.CallOp) -> None:
    if op.op_bundle_operands or len(op.op_bundle_sizes):
        raise f.error(op, "has operand bundles, which have no LLVM text here")
    arguments = list(op.args)
    callee = f.ref(arguments.pop(0)) if op.callee is None else f.module.symbol(op.callee.root_reference.data)
    kind = op.TailCallKind.data.value
    tail = "" if kind == "none" else f"{kind} "
    convention = op.CConv.convention.data
    convention = "" if convention == "ccc" else f" {convention}"
    result_type = "void" if op.returned is None else f.types(op.returned.type)
    signature = result_type if op.var_callee_type is None else f.types(op.var_callee_type)
    target = "" if op.returned is None else f"{f.ref(op.returned)} = "
    values = ", ".join(f.typed(a) for a in arguments)
    f.lines.append(f"  {target}{tail}call{_modifiers(op)}{convention} {signature} {callee}({values})")


def _inline_asm(f: FunctionText, op: llvm.InlineAsmOp) -> None:
    kind = op.tail_call_kind.data.value
    tail = "" if kind == "none" else f"{kind} "
    words = [
        word
        for word, present in (
            (" sideeffect", op.has_side_effects is not None),
            (" alignstack", op.is_align_stack is not None),
            (" inteldialect", op.asm_dialect is not None and op.asm_dialect.value.data == 1),
        )
        if present
    ]
    result_type = "void" if op.res is None else f.types(op.res.type)
    target = "" if op.res is None else f"{f.ref(op.res)} = "
    text, constraints = (quoted_bytes(s.data.encode()) for s in (op.asm_string, op.constraints))
    values = ", ".join(f.typed(a) for a in op.operands_)
    f.lines.append(f"  {target}{tail}call {result_type} asm{''.join(words)} {text}, {constraints}({values})")


def _unreachable(f: FunctionText, op: llvm.UnreachableOp) -> None:
    f.lines.append("  unreachable")


def _fence(f: FunctionText, op: llvm_ext.FenceOp) -> None:
    f.lines.append(f"  fence {op.ordering.data.value}")


def _atomicrmw(f: FunctionText, op: llvm_ext.AtomicRMWOp) -> None:
    f.lines.append(
        f"  {f.ref(op.result)} = atomicrmw {op.kind.data.value} {f.typed(op.pointer)}, {f.typed(op.value)}"
        f" {op.ordering.data.value}"
    )


def _cmpxchg(f: FunctionText, op: llvm_ext.CmpXchgOp) -> None:
    f.lines.append(
        f"  {f.ref(op.result)} = cmpxchg {f.typed(op.pointer)}, {f.typed(op.expected)}, {f.typed(op.new)}"
        f" {op.success.data.value} {op.failure.data.value}"
    )


WRITERS: dict[type[Operation], Writer] = {
    **{op: _binary(instruction_of(op)) for op in BINARIES},
    **{op: _cast(instruction_of(op)) for op in (*POINTER_CASTS, *NUMBER_CASTS)},
    **{op: _intrinsic(intrinsic_of(op)) for op in INTRINSICS},
    llvm.VectorReduceFAddOp: _intrinsic("llvm.vector.reduce.fadd", 1),
    llvm.VectorReduceFMulOp: _intrinsic("llvm.vector.reduce.fmul", 1),
    llvm.StackSaveOp: lambda f, op: call_intrinsic(f, "llvm.stacksave.p0", (), op.res),
    llvm.StackRestoreOp: _intrinsic("llvm.stackrestore"),
    llvm.AllocaOp: _alloca,
    llvm.BrOp: _br,
    llvm.CallIntrinsicOp: _call_intrinsic,
    llvm.CallOp: _call,
    llvm.CondBrOp: _cond_br,
    llvm.ExtractValueOp: _extractvalue,
    llvm.FCmpOp: _fcmp,
    llvm.FNegOp: _fneg,
    llvm.GEPOp: _gep,
    llvm.ICmpOp: _icmp,
    llvm.InlineAsmOp: _inline_asm,
    llvm.InsertElementOp: _insertelement,
    llvm.InsertValueOp: _insertvalue,
    llvm.LoadOp: _load,
    llvm.MaskedStoreOp: _masked_store,
    llvm.ReturnOp: _return,
    llvm.SelectOp: _select,
    llvm.ShuffleVectorOp: _shufflevector,
    llvm.StoreOp: _store,
    llvm.UnreachableOp: _unreachable,
    llvm_ext.AtomicRMWOp: _atomicrmw,
    llvm_ext.CmpXchgOp: _cmpxchg,
    llvm_ext.ExtractElementOp: _extractelement,
    llvm_ext.FCmpOp: _fcmp,
    llvm_ext.FenceOp: _fence,
    llvm_ext.GatherOp: _gather,
    llvm_ext.MaskedLoadOp: _masked_load,
    llvm_ext.MaskedStoreOp: _masked_store,
    llvm_ext.ScatterOp: _scatter,
    llvm_ext.SelectOp: _select,
    llvm_ext.SwitchOp: _switch,
}
