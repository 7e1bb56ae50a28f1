"""``contract-fma``: products and sums of a graph become fma, where and only where the user allows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, BoolAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ..dialects.graph import ApplyOp, GraphOp, RegisteredOp
from ..dialects.graph.types import tensor_type
from ..dtypes import DType
from ..errors import CompileError, quoted_list
from ..fastmath import carries_flags, parse_option, put_flags
from ..locations import location_of
from ..numerics import CONTRACTIONS, Contraction
from ..op_numerics import OpNumerics, op_numerics
from ..opdef import OpDef
from ..options import FpContract, Strategy
from ..registry import find_op, first_op

CONTRACT = frozenset({"contract"})
CONTRACTED_TYPES = (DType.float32, DType.float64)
"""f16 and bf16 round after every op; under ``bf16="excess"`` they are f32 by the time this pass runs."""


@dataclass(frozen=True)
class ContractFmaPass(ModulePass):
    """Contracts on the graph as built, so that the result cannot depend on what later passes fuse.

    ``contract-fma{mode=fast}``, before (types left out)::

        %p = graph.apply "mul"(%a, %b)
        %s = graph.apply "add"(%p, %c)
        graph.output %s, %p

    After; the product stays, rounded by itself, for its other users, and goes where there are none::

        %p = graph.apply "mul"(%a, %b)
        %s = graph.apply "fma"(%a, %b, %c) {negate_addend = false, negate_product = false}
        graph.output %s, %p

    Ops are known by the role that they declare (`OpDef.contraction`). A sum or difference contracts if one of its
    operands is the result of a product, directly (no cast, view or negation between), of the same type, f32 or f64;
    of two products the left one is fused. Both ops must allow it. An op with flags of its own, from a region or from
    its own argument, allows it if ``contract`` is among them, whatever the mode: the inner setting wins. One without
    allows it under ``fast``, and if ``contract`` is in ``defaults``, the flags that such ops are to get. The fma gets
    the flags that both ops have; no flag is new. What was fused is noted on the ``graph.graph``.

    ``strategy=llvm`` leaves the ops alone and under ``fast`` puts ``contract`` on all that have no flags of their own:
    LLVM chooses.

    Numerics of a single op (``set-op-numerics``) stand for ``mode`` and ``defaults`` there. Those of the sum decide
    whether it fuses, and an op that has some gets its flags here.

    Raises:
        CompileError: under ``off``, an op has the flag ``contract``.
        GraphError: an unknown flag among the defaults.
    """

    name = "contract-fma"

    strategy: str = "explicit"
    mode: str = "fast"
    defaults: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self._check_options()
        flags = parse_option(self.defaults, f"{self.name}: defaults")
        general = OpNumerics(cast(FpContract, self.mode), flags, "round-each")
        _refuse_contract(op, general)
        if self.strategy == "llvm":
            _permit_everywhere(op, general)
        else:
            for graph in op.body.block.ops:
                if isinstance(graph, GraphOp):
                    _contract_graph(graph, general)
        _set_own_defaults(op)

    def _check_options(self) -> None:
        for option, value, allowed in (
            ("strategy", self.strategy, get_args(Strategy)),
            ("mode", self.mode, get_args(FpContract)),
        ):
            if value not in allowed:
                raise CompileError(f"{self.name}: {option} must be one of {quoted_list(allowed)}, not {value!r}")


def _refuse_contract(module: ModuleOp, general: OpNumerics) -> None:
    for op in module.walk():
        if not isinstance(op, RegisteredOp) or "contract" not in (op.flags or ()):
            continue
        if _numerics(op, general).fp_contract == "off":
            raise CompileError(
                f"{op.subject}: it has the fastmath flag 'contract', but fp_contract='off' forbids every contraction; "
                "leave the flag out of the op or of its region, or compile with fp_contract='on'",
                location_of(op),
            )


def _numerics(op: Operation, general: OpNumerics) -> OpNumerics:
    return op_numerics(op) or general


def _permit_everywhere(module: ModuleOp, general: OpNumerics) -> None:
    for op in module.walk():
        if isinstance(op, RegisteredOp) and op.flags is None and carries_flags(op):
            numerics = _numerics(op, general)
            if numerics.fp_contract == "fast":
                put_flags(op, numerics.fastmath | CONTRACT)


def _set_own_defaults(module: ModuleOp) -> None:
    """Ops with numerics of their own take their flags from there, and no longer from the options of the compilation."""
    for op in module.walk():
        numerics = op_numerics(op)
        if numerics is not None and isinstance(op, RegisteredOp) and op.flags is None and carries_flags(op):
            put_flags(op, numerics.fastmath)


@dataclass(frozen=True)
class _Candidate:
    """A sum or difference, and that operand of it which is a product."""

    op: ApplyOp
    role: Literal["sum", "difference"]
    operand: int
    product: ApplyOp


def _contract_graph(graph: GraphOp, general: OpNumerics) -> None:
    fused = first_op(lambda op: op.contraction == "fused")
    if fused is None:
        return
    done: list[tuple[_Candidate, frozenset[str]]] = []
    for op in list(graph.body.walk()):
        candidate = _candidate(op, _numerics(op, general).permits_contraction)
        if candidate is not None:
            done.append((candidate, _fuse(candidate, fused, general)))
    for candidate, _ in done:
        # A product of two sums stands here twice, and is dead only once both are fused.
        block = candidate.product.parent
        if block is not None and not candidate.product.outputs[0].uses:
            block.erase_op(candidate.product)
    if done:
        notes = [_note(candidate, flags).to_attribute() for candidate, flags in done]
        graph.attributes[CONTRACTIONS] = ArrayAttr(notes)


def _candidate(op: Operation, permitted: bool) -> _Candidate | None:
    if not isinstance(op, ApplyOp):
        return None
    role = find_op(op.callee.data, op.subject).contraction
    if role not in ("sum", "difference") or not _allows(op, permitted):
        return None
    if tensor_type(op.outputs[0]).dtype not in CONTRACTED_TYPES:
        return None
    for index, value in enumerate(op.arguments):
        product = _product_of(value)
        if product is not None and value.type == op.outputs[0].type and _allows(product, permitted):
            return _Candidate(op, role, index, product)
    return None


def _product_of(value: SSAValue) -> ApplyOp | None:
    owner = value.owner
    if not isinstance(owner, ApplyOp) or find_op(owner.callee.data, owner.subject).contraction != "product":
        return None
    return owner


def _allows(op: ApplyOp, permitted: bool) -> bool:
    return permitted if op.flags is None else "contract" in op.flags


def _fuse(candidate: _Candidate, fused: OpDef, general: OpNumerics) -> frozenset[str]:
    """Puts the fma in the place of the sum; gives the flags that it ends up with."""
    op, product = candidate.op, candidate.product
    addend = op.arguments[1 - candidate.operand]
    own_defaults = _numerics(op, general).fastmath, _numerics(product, general).fastmath
    flags = None
    if op.flags is not None or product.flags is not None:
        pairs = zip((op.flags, product.flags), own_defaults, strict=True)
        flags = frozenset.intersection(*(default if own is None else own for own, default in pairs))
    is_difference = candidate.role == "difference"
    parameters = {
        "negate_product": BoolAttr.from_bool(is_difference and candidate.operand == 1),
        "negate_addend": BoolAttr.from_bool(is_difference and candidate.operand == 0),
    }
    fma = ApplyOp(fused.name, [*product.arguments, addend], op.output_types, parameters, flags)
    fma.attributes.update(op.attributes)
    fma.location = op.location
    block = op.parent
    assert block is not None
    block.insert_op_before(fma, op)
    fma.outputs[0].name_hint = op.outputs[0].name_hint
    op.outputs[0].replace_all_uses_with(fma.outputs[0])
    block.erase_op(op)
    return own_defaults[0] if flags is None else flags


def _note(candidate: _Candidate, flags: frozenset[str]) -> Contraction:
    op, product = candidate.op, candidate.product
    return Contraction(
        op=op.callee.data,
        location=location_of(op),
        operand=candidate.operand,
        product=product.callee.data,
        product_location=location_of(product),
        product_kept=product.parent is not None,
        dtype=product.output_types[0].dtype,
        flags=flags,
    )
