"""The table of elementwise ops: ``arith`` and ``math`` ops to functions of arrays.

What arith leaves undefined (a division by zero, a shift by the width or more, a float out of an integer's range) has
the result that ``tile.int_div``, ``tile.shift`` and ``tile.cast`` give it, so the interpreter is total.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ..codegen.math.table import EXPANSIONS, Expansion
from ..dialects import tile
from ..dialects.lookup_table import entries_of
from . import casts, exact, integers
from .comparison import FLOAT_PREDICATES, INTEGER_PREDICATES
from .exact import F32, F64, NARROW, Array
from .numpy_emitter import NumpyEmitter
from .values import InterpreterError, constant_array, dtype_of

if TYPE_CHECKING:
    from ..codegen.math.emitter import ElementType
    from .frame import Frame, Handler

FUNCTIONS: dict[type[Operation], Callable[..., Array]] = {
    arith.AddfOp: exact.add,
    arith.SubfOp: exact.subtract,
    arith.MulfOp: exact.multiply,
    arith.DivfOp: exact.divide,
    arith.NegfOp: exact.negate,
    arith.MaximumfOp: exact.maximum,
    arith.MinimumfOp: exact.minimum,
    arith.MaxnumfOp: exact.maximum_number,
    arith.MinnumfOp: exact.minimum_number,
    arith.AddiOp: integers.add,
    arith.SubiOp: integers.subtract,
    arith.MuliOp: integers.multiply,
    arith.AndIOp: integers.bitwise_and,
    arith.OrIOp: integers.bitwise_or,
    arith.XOrIOp: integers.bitwise_xor,
    arith.MaxSIOp: integers.maximum_signed,
    arith.MaxUIOp: integers.maximum_unsigned,
    arith.MinSIOp: integers.minimum_signed,
    arith.MinUIOp: integers.minimum_unsigned,
    arith.ShLIOp: integers.shift_left,
    arith.ShRUIOp: integers.shift_right_logical,
    arith.ShRSIOp: integers.shift_right_arithmetic,
    arith.DivSIOp: integers.truncating_divide_signed,
    arith.RemSIOp: integers.truncating_remainder_signed,
    arith.FloorDivSIOp: integers.floor_divide_signed,
    arith.CeilDivSIOp: integers.ceiling_divide_signed,
    arith.DivUIOp: integers.divide_unsigned,
    arith.RemUIOp: integers.modulo_unsigned,
    arith.CeilDivUIOp: integers.ceiling_divide_unsigned,
    arith.SelectOp: np.where,
    math.FmaOp: exact.fma,
    math.SqrtOp: exact.square_root,
    math.AbsFOp: exact.absolute,
    math.CopySignOp: exact.copy_sign,
    math.FloorOp: exact.rounded_by(np.floor),
    math.CeilOp: exact.rounded_by(np.ceil),
    math.TruncOp: exact.rounded_by(np.trunc),
    math.RoundEvenOp: exact.rounded_by(np.rint),
    math.RoundOp: exact.round_half_away,
    math.AbsIOp: integers.absolute,
    math.CtPopOp: integers.count_ones,
    math.CountLeadingZerosOp: integers.count_leading_zeros,
    math.CountTrailingZerosOp: integers.count_trailing_zeros,
}
"""Ops with one result whose value depends on those of the operands alone, and has the type of the last."""


def _of_operands(function: Callable[..., Array]) -> Handler:
    def run(frame: Frame, op: Operation) -> Iterable[Array]:
        return (function(*frame.arrays(op.operands)),)

    return run


def _constant(frame: Frame, op: arith.ConstantOp) -> Iterable[Array]:
    return (constant_array(op),)


def _compare_integers(frame: Frame, op: arith.CmpiOp | tile.CmpIOp) -> Iterable[Array]:
    predicate = op.predicate
    name = predicate.data if isinstance(predicate, StringAttr) else CMPI_COMPARISON_OPERATIONS[predicate.value.data]
    return (INTEGER_PREDICATES[name](*frame.arrays(op.operands)),)


def _compare_floats(frame: Frame, op: arith.CmpfOp | tile.CmpFOp) -> Iterable[Array]:
    predicate = op.predicate
    name = predicate.data if isinstance(predicate, StringAttr) else CMPF_COMPARISON_OPERATIONS[predicate.value.data]
    return (FLOAT_PREDICATES[name](*frame.arrays(op.operands)),)


def _int_div(frame: Frame, op: tile.IntDivOp) -> Iterable[Array]:
    return (integers.DIVISIONS[op.kind.data](*frame.arrays(op.operands)),)


def _shift(frame: Frame, op: tile.ShiftOp) -> Iterable[Array]:
    return (integers.SHIFTS[op.kind.data](*frame.arrays(op.operands)),)


def _scale(frame: Frame, op: tile.ScaleOp) -> Iterable[Array]:
    value, power = (array.astype(np.float64) for array in frame.arrays(op.operands))
    # A product with so large a power of two is exact in f64, and beyond f32's range however large it is.
    return (casts.cast(np.ldexp(value, np.nan_to_num(power).astype(np.int64).clip(-400, 400)) + 0 * power, F32),)


def _lookup(frame: Frame, op: tile.LookupOp) -> Iterable[Array]:
    table = np.array(entries_of(op.table), F32)
    return (table[frame.array(op.index) & (len(table) - 1)],)


def _cast(frame: Frame, op: tile.CastOp) -> Iterable[Array]:
    return (
        casts.cast(
            frame.array(op.operand),
            dtype_of(op.result.type),
            unsigned_source=op.unsigned_source is not None,
            unsigned_result=op.unsigned_result is not None,
        ),
    )


def _conversion(convert: Callable[..., Array], **options: bool) -> Handler:
    def run(frame: Frame, op: Operation) -> Iterable[Array]:
        return (convert(frame.array(op.operands[0]), dtype_of(op.results[0].type), **options),)

    return run


def _expanded(op_name: str, expansions: dict[ElementType, Expansion]) -> Handler:
    """An elementary function by its expansion; f16 and bf16 go through f32, with one more rounding."""

    def run(frame: Frame, op: Operation) -> Iterable[Array]:
        operands = frame.arrays(op.operands)
        dtype = operands[0].dtype
        expansion = expansions.get("f64" if dtype == F64 else "f32")
        if expansion is None:
            raise InterpreterError(f"@{frame.name}: '{op_name}' has no expansion for {dtype}; compute it in float32")
        wide = [operand.astype(F32) for operand in operands] if dtype in NARROW else operands
        return (expansion.expand(NumpyEmitter(), *wide).astype(dtype),)

    return run


def _expansion_handlers() -> dict[type[Operation], Handler]:
    """Ops of ``math`` whose name, or that without a final f, has an expansion: ``math.exp``, ``math.powf``."""
    handlers: dict[type[Operation], Handler] = {}
    for op_class in math.Math.operations:
        name = op_class.name.removeprefix("math.")
        expansions = EXPANSIONS.get(name) or EXPANSIONS.get(name.removesuffix("f"))
        if expansions is not None and op_class not in FUNCTIONS:
            handlers[op_class] = _expanded(op_class.name, expansions)
    return handlers


ELEMENTWISE_HANDLERS: dict[type[Operation], Handler] = {
    **{op_class: _of_operands(function) for op_class, function in FUNCTIONS.items()},
    **_expansion_handlers(),
    arith.ConstantOp: _constant,
    arith.CmpiOp: _compare_integers,
    arith.CmpfOp: _compare_floats,
    tile.CmpIOp: _compare_integers,
    tile.CmpFOp: _compare_floats,
    arith.BitcastOp: _conversion(np.ndarray.view),
    arith.IndexCastOp: _conversion(casts.resize_signed),
    arith.ExtSIOp: _conversion(casts.resize_signed),
    arith.TruncIOp: _conversion(casts.resize_signed),
    arith.ExtUIOp: _conversion(casts.extend_unsigned),
    arith.ExtFOp: _conversion(casts.cast),
    arith.TruncFOp: _conversion(casts.cast),
    arith.FPToSIOp: _conversion(casts.float_to_integer, unsigned=False),
    arith.FPToUIOp: _conversion(casts.float_to_integer, unsigned=True),
    arith.SIToFPOp: _conversion(casts.signed_to_float),
    arith.UIToFPOp: _conversion(casts.cast, unsigned_source=True),
    tile.IntDivOp: _int_div,
    tile.ShiftOp: _shift,
    tile.ScaleOp: _scale,
    tile.LookupOp: _lookup,
    tile.CastOp: _cast,
}
