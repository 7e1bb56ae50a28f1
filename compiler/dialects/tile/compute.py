"""Computing ops of the tile dialect: what ``arith`` and ``math`` lack on blocks, each of them total."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS, FastMathFlagsAttr
from xdsl.dialects.builtin import (
    AnyFloat,
    BoolAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .assembly import Word
from .types import block_type, element_type, shape_of, with_shape

NO_FLAGS = FastMathFlagsAttr("none")

FLOAT_REDUCTIONS = ("add", "mul", "maximum", "minimum")
INTEGER_REDUCTIONS = ("add", "mul", "maxs", "maxu", "mins", "minu", "and", "or", "xor")
DIVISIONS = ("floordivs", "divu", "mods", "modu")
SHIFTS = ("left", "right_logical", "right_arithmetic")

LANES_MINOR = 64
"""Lanes of reduction order R along the minor axis (1 along any other axis)."""
CHUNK = 4096
"""Elements of one chunk of reduction order R."""


def _unit(flag: bool) -> UnitAttr | None:
    return UnitAttr() if flag else None


def _verify_flags(name: str, flags: FastMathFlagsAttr, value: Attribute) -> None:
    if flags.data and not isinstance(element_type(value), AnyFloat):
        raise VerifyException(f"{name}: fastmath flags stand on float ops only, not on {value}")


class _CompareOp(IRDLOperation):
    """Compares two scalars or blocks of one type, element by element, into i1; ``predicate`` as in ``arith``."""

    PREDICATES: ClassVar[tuple[str, ...]] = ()
    T: ClassVar = VarConstraint("T", AnyAttr())
    predicate = prop_def(StringAttr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def()

    def verify_(self) -> None:
        if self.predicate.data not in self.PREDICATES:
            raise VerifyException(
                f"{self.name}: predicate must be one of {self.PREDICATES}, not {self.predicate.data!r}"
            )
        wanted = with_shape(shape_of(self.lhs.type), i1)
        if self.result.type != wanted:
            raise VerifyException(f"{self.name}: result must be {wanted}, not {self.result.type}")


@irdl_op_definition
class CmpFOp(_CompareOp):
    """Compares floats: ``%m = tile.cmpf olt %a, %b : tensor<8xf32> -> tensor<8xi1>``."""

    name = "tile.cmpf"
    PREDICATES: ClassVar[tuple[str, ...]] = tuple(CMPF_COMPARISON_OPERATIONS)
    fastmath = prop_def(FastMathFlagsAttr, default_value=NO_FLAGS)
    traits = traits_def(Pure())
    assembly_format = (
        "custom<Word>($predicate) $lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($lhs) `->` type($result)"
    )
    custom_directives = (Word,)

    def __init__(self, predicate: str, lhs: SSAValue, rhs: SSAValue, fastmath: FastMathFlagsAttr = NO_FLAGS) -> None:
        super().__init__(
            operands=[lhs, rhs],
            properties={"predicate": StringAttr(predicate), "fastmath": fastmath},
            result_types=[with_shape(shape_of(lhs.type), i1)],
        )

    def verify_(self) -> None:
        super().verify_()
        if not isinstance(element_type(self.lhs.type), AnyFloat):
            raise VerifyException(f"tile.cmpf: compares floats, not {self.lhs.type}")


@irdl_op_definition
class CmpIOp(_CompareOp):
    """Compares integers: ``%m = tile.cmpi ult %a, %b : tensor<8xi32> -> tensor<8xi1>``."""

    name = "tile.cmpi"
    PREDICATES: ClassVar[tuple[str, ...]] = tuple(CMPI_COMPARISON_OPERATIONS)
    traits = traits_def(Pure())
    assembly_format = "custom<Word>($predicate) $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"
    custom_directives = (Word,)

    def __init__(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(
            operands=[lhs, rhs],
            properties={"predicate": StringAttr(predicate)},
            result_types=[with_shape(shape_of(lhs.type), i1)],
        )

    def verify_(self) -> None:
        super().verify_()
        if not isinstance(element_type(self.lhs.type), IntegerType | IndexType):
            raise VerifyException(f"tile.cmpi: compares integers, not {self.lhs.type}")


@irdl_op_definition
class SelectOp(IRDLOperation):
    """``condition ? true_value : false_value``, element by element; the condition may be a scalar."""

    name = "tile.select"
    condition = operand_def()
    true_value = operand_def()
    false_value = operand_def()
    fastmath = prop_def(FastMathFlagsAttr, default_value=NO_FLAGS)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$condition `,` $true_value `,` $false_value (`fastmath` `` $fastmath^)? attr-dict"
        " `:` type($condition) `,` type($true_value) `,` type($false_value) `->` type($result)"
    )

    def __init__(
        self,
        condition: SSAValue,
        true_value: SSAValue,
        false_value: SSAValue,
        fastmath: FastMathFlagsAttr = NO_FLAGS,
    ) -> None:
        super().__init__(
            operands=[condition, true_value, false_value],
            properties={"fastmath": fastmath},
            result_types=[true_value.type],
        )

    def verify_(self) -> None:
        value = self.result.type
        if not self.true_value.type == self.false_value.type == value:
            raise VerifyException(
                f"tile.select: both values must have the type of the result {value},"
                f" not {self.true_value.type} and {self.false_value.type}"
            )
        if element_type(self.condition.type) != i1 or shape_of(self.condition.type) not in (
            (),
            shape_of(value),
        ):
            raise VerifyException(f"tile.select: condition must be i1 or an i1 block like {value}")
        _verify_flags("tile.select", self.fastmath, value)


@irdl_op_definition
class CastOp(IRDLOperation):
    """Converts between number types, and always has a result.

    Float to float and integer to float round to nearest even. Float to integer truncates, saturates, and takes NaN
    to 0. Integer to a wider integer extends, to a narrower one wraps. To i1: not equal to zero. Integers are signed
    unless ``unsigned_source`` / ``unsigned_result`` is set (i1 always counts as unsigned). Between floats the cast
    may carry fastmath flags.
    """

    name = "tile.cast"
    operand = operand_def()
    unsigned_source = opt_prop_def(UnitAttr)
    unsigned_result = opt_prop_def(UnitAttr)
    fastmath = prop_def(FastMathFlagsAttr, default_value=NO_FLAGS)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "(`unsigned_source` $unsigned_source^)? (`unsigned_result` $unsigned_result^)? $operand"
        " (`fastmath` `` $fastmath^)? attr-dict `:` type($operand) `->` type($result)"
    )

    def __init__(
        self,
        operand: SSAValue,
        element: Attribute,
        *,
        unsigned_source: bool = False,
        unsigned_result: bool = False,
        fastmath: FastMathFlagsAttr = NO_FLAGS,
    ) -> None:
        super().__init__(
            operands=[operand],
            properties={
                "unsigned_source": _unit(unsigned_source),
                "unsigned_result": _unit(unsigned_result),
                "fastmath": fastmath,
            },
            result_types=[with_shape(shape_of(operand.type), element)],
        )

    def verify_(self) -> None:
        if shape_of(self.operand.type) != shape_of(self.result.type):
            raise VerifyException(f"tile.cast: shape must not change from {self.operand.type} to {self.result.type}")
        for value in (self.operand, self.result):
            if not isinstance(element_type(value.type), AnyFloat | IntegerType | IndexType):
                raise VerifyException(f"tile.cast: converts numbers, not {value.type}")
            _verify_flags("tile.cast", self.fastmath, value.type)


class _IntegerBinaryOp(IRDLOperation):
    """An integer op whose ``kind`` says which."""

    KINDS: ClassVar[tuple[str, ...]] = ()
    T: ClassVar = VarConstraint("T", AnyAttr())
    lhs = operand_def(T)
    rhs = operand_def(T)
    kind = prop_def(StringAttr)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "custom<Word>($kind) $lhs `,` $rhs attr-dict `:` type($result)"
    custom_directives = (Word,)

    def __init__(self, kind: str, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(operands=[lhs, rhs], properties={"kind": StringAttr(kind)}, result_types=[lhs.type])

    def verify_(self) -> None:
        if self.kind.data not in self.KINDS:
            raise VerifyException(f"{self.name}: kind must be one of {self.KINDS}, not {self.kind.data!r}")
        if not isinstance(element_type(self.result.type), IntegerType | IndexType):
            raise VerifyException(f"{self.name}: works on integers, not on {self.result.type}")


@irdl_op_definition
class IntDivOp(_IntegerBinaryOp):
    """Integer division and remainder that never trap.

    ``floordivs`` and ``mods`` round towards minus infinity as Python does. ``x // 0`` and ``x % 0`` are 0;
    ``min // -1`` wraps to min.
    """

    name = "tile.int_div"
    KINDS: ClassVar[tuple[str, ...]] = DIVISIONS


@irdl_op_definition
class ShiftOp(_IntegerBinaryOp):
    """Shifts by an unsigned count; a count of the width or more gives 0 (``right_arithmetic``: the sign)."""

    name = "tile.shift"
    KINDS: ClassVar[tuple[str, ...]] = SHIFTS


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """Reduces ``axis`` away (a block of rank 1 becomes a scalar), in order R(``lanes``).

    The axis is cut into chunks of 4096. In a chunk element i goes to lane ``i mod lanes``; lanes start at the
    identity (-0.0 for ``add``) and take their elements in ascending order; then lane i meets lane i + n/2, n halving
    from ``lanes`` to 1. Chunk results join in ascending order, the first one alone. ``maximum`` and ``minimum``
    propagate NaN and order -0.0 below +0.0. With ``count`` only the first ``count`` elements of the axis take part;
    none of them gives the identity.
    """

    name = "tile.reduce"
    operand = operand_def()
    count = opt_operand_def(IndexType)
    kind = prop_def(StringAttr)
    axis = prop_def(IntegerAttr.constr(i64))
    lanes = prop_def(IntegerAttr.constr(i64))
    fastmath = prop_def(FastMathFlagsAttr, default_value=NO_FLAGS)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "custom<Word>($kind) $operand `axis` $axis `lanes` $lanes (`count` $count^)? (`fastmath` `` $fastmath^)?"
        " attr-dict"
        " `:` type($operand) `->` type($result)"
    )
    custom_directives = (Word,)

    def __init__(
        self,
        kind: str,
        operand: SSAValue,
        axis: int,
        lanes: int | None = None,
        fastmath: FastMathFlagsAttr = NO_FLAGS,
        count: SSAValue | None = None,
    ) -> None:
        shape = list(shape_of(operand.type))
        if lanes is None:
            lanes = LANES_MINOR if axis == len(shape) - 1 else 1
        super().__init__(
            operands=[operand, count],
            properties={
                "kind": StringAttr(kind),
                "axis": IntegerAttr(axis, i64),
                "lanes": IntegerAttr(lanes, i64),
                "fastmath": fastmath,
            },
            result_types=[with_shape(shape[:axis] + shape[axis + 1 :], element_type(operand.type))],
        )

    def verify_(self) -> None:
        block = block_type(self.operand.type, "tile.reduce: operand")
        axis, lanes = self.axis.value.data, self.lanes.value.data
        if not 0 <= axis < block.get_num_dims():
            raise VerifyException(f"tile.reduce: axis {axis} is not an axis of {block}")
        if lanes < 1 or lanes & (lanes - 1) or CHUNK % lanes:
            raise VerifyException(f"tile.reduce: lanes must be a power of two up to {CHUNK}, not {lanes}")
        kinds = FLOAT_REDUCTIONS if isinstance(block.element_type, AnyFloat) else INTEGER_REDUCTIONS
        if self.kind.data not in kinds:
            raise VerifyException(
                f"tile.reduce: kind must be one of {kinds} for {block.element_type}, not {self.kind.data!r}"
            )
        shape = block.get_shape()
        wanted = with_shape([*shape[:axis], *shape[axis + 1 :]], block.element_type)
        if self.result.type != wanted:
            raise VerifyException(f"tile.reduce: result must be {wanted}, not {self.result.type}")
        _verify_flags("tile.reduce", self.fastmath, block)


@irdl_op_definition
class TopMergeOp(IRDLOperation):
    """Merges candidates into a sorted top-k, by (value descending, index ascending).

    ``top_values``/``top_indices`` of shape [k] are sorted already; every (value, index) pair of the candidates,
    shape [n], competes. A NaN never enters. The order is total, so the order of merging cannot matter.
    Indices compare as signed integers. Entries that are not sorted, or hold a NaN, give entries in no certain order.
    """

    name = "tile.top_merge"
    top_values = operand_def()
    top_indices = operand_def()
    values = operand_def()
    indices = operand_def()
    merged_values = result_def()
    merged_indices = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$top_values `,` $top_indices `with` $values `,` $indices attr-dict"
        " `:` type($top_values) `,` type($top_indices) `,` type($values) `,` type($indices)"
        " `->` type($merged_values) `,` type($merged_indices)"
    )

    def __init__(self, top_values: SSAValue, top_indices: SSAValue, values: SSAValue, indices: SSAValue) -> None:
        super().__init__(
            operands=[top_values, top_indices, values, indices],
            result_types=[top_values.type, top_indices.type],
        )

    def verify_(self) -> None:
        top = block_type(self.top_values.type, "tile.top_merge: top_values")
        candidates = block_type(self.values.type, "tile.top_merge: values")
        if top.get_num_dims() != 1 or candidates.get_num_dims() != 1:
            raise VerifyException(f"tile.top_merge: takes blocks of rank 1, not {top} and {candidates}")
        index = element_type(self.indices.type)
        if not isinstance(index, IntegerType):
            raise VerifyException(f"tile.top_merge: indices must be integers, not {self.indices.type}")
        wanted = (
            (self.top_indices, with_shape(top.get_shape(), index)),
            (self.values, with_shape(candidates.get_shape(), top.element_type)),
            (self.indices, with_shape(candidates.get_shape(), index)),
            (self.merged_values, self.top_values.type),
            (self.merged_indices, self.top_indices.type),
        )
        for value, expected in wanted:
            if value.type != expected:
                raise VerifyException(f"tile.top_merge: {value.type} where {expected} is wanted")


def _widens(source: Attribute, target: Attribute) -> bool:
    """Whether every number of type ``source`` is one of type ``target``; bools are no numbers."""
    if source == target:
        return source != i1
    for kind in (AnyFloat, IntegerType):
        if isinstance(source, kind) and isinstance(target, kind):
            return source != i1 and source.bitwidth < target.bitwidth
    return False


@irdl_op_definition
class DotOp(IRDLOperation):
    """``acc + a @ b``: [m, k] by [k, n] onto [m, n], k in ascending order.

    Every element is one chain over k that starts at ``acc``: ``fma(a, b, acc)`` with ``fused``, else a rounded
    product and a rounded sum. Operands of a narrower type are widened exactly to the type of ``acc`` first; integers
    are signed and wrap. With ``counts`` (of rows, columns and k) only the first so many of each axis take part; the
    other elements of the result are those of ``acc``.
    """

    name = "tile.dot"
    a = operand_def()
    b = operand_def()
    T: ClassVar = VarConstraint("T", AnyAttr())
    acc = operand_def(T)
    counts = var_operand_def(IndexType)
    fused = prop_def(BoolAttr)
    fastmath = prop_def(FastMathFlagsAttr, default_value=NO_FLAGS)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = (
        "$a `,` $b `,` $acc (`counts` `(` $counts^ `)`)? `fused` $fused (`fastmath` `` $fastmath^)? attr-dict"
        " `:` type($a) `,` type($b) `->` type($result)"
    )

    def __init__(
        self,
        a: SSAValue,
        b: SSAValue,
        acc: SSAValue,
        *,
        counts: Sequence[SSAValue] = (),
        fused: bool = True,
        fastmath: FastMathFlagsAttr = NO_FLAGS,
    ) -> None:
        super().__init__(
            operands=[a, b, acc, counts],
            properties={"fused": BoolAttr.from_bool(fused), "fastmath": fastmath},
            result_types=[acc.type],
        )

    def verify_(self) -> None:
        a = block_type(self.a.type, "tile.dot: a")
        b = block_type(self.b.type, "tile.dot: b")
        acc = block_type(self.acc.type, "tile.dot: acc")
        shapes = (a.get_shape(), b.get_shape(), acc.get_shape())
        if any(len(shape) != 2 for shape in shapes) or shapes != (
            (shapes[2][0], shapes[0][1]),
            (shapes[0][1], shapes[2][1]),
            shapes[2],
        ):
            raise VerifyException(f"tile.dot: shapes must be [m, k], [k, n], [m, n], not {[list(s) for s in shapes]}")
        if a.element_type != b.element_type or self.result.type != acc or not _widens(a.element_type, acc.element_type):
            raise VerifyException(f"tile.dot: element types {a.element_type}, {b.element_type} -> {self.result.type}")
        if len(self.counts) not in (0, 3):
            raise VerifyException(
                f"tile.dot: counts are those of rows, columns and k: 3 or none, not {len(self.counts)}"
            )
        _verify_flags("tile.dot", self.fastmath, acc)


COMPUTE_OPS: list[type[Operation]] = [CmpFOp, CmpIOp, SelectOp, CastOp, IntDivOp, ShiftOp, ReduceOp, TopMergeOp, DotOp]

__all__ = [
    "CHUNK",
    "COMPUTE_OPS",
    "CastOp",
    "CmpFOp",
    "CmpIOp",
    "DIVISIONS",
    "DotOp",
    "FLOAT_REDUCTIONS",
    "INTEGER_REDUCTIONS",
    "IntDivOp",
    "LANES_MINOR",
    "ReduceOp",
    "SHIFTS",
    "SelectOp",
    "ShiftOp",
    "TopMergeOp",
]
