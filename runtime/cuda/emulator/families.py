"""The table of pure instructions: opcode -> what computes it."""

from __future__ import annotations

import numpy as np

from halfulp.compiler.interpreter import exact

from . import bits, comparisons, conversions, floats, integers
from .operation import Family, Operation, unsupported
from .syntax import Instruction
from .types import TYPES


def _by_type(integer: Family | None, of_float: Family) -> Family:
    """An opcode that integers and floats share; the type is the last modifier."""

    def family(instruction: Instruction) -> Operation:
        type = TYPES.get(instruction.modifiers[-1]) if instruction.modifiers else None
        if type is not None and type.is_float:
            return of_float(instruction)
        if integer is None:
            raise unsupported(instruction)
        return integer(instruction)

    return family


FAMILIES: dict[str, Family] = {
    "add": _by_type(integers.add, floats.arithmetic(np.add, exact.add)),
    "sub": _by_type(integers.subtract, floats.arithmetic(np.subtract, exact.subtract)),
    "mul": _by_type(integers.multiply, floats.arithmetic(np.multiply, exact.multiply)),
    "mad": integers.multiply_add,
    "div": _by_type(integers.divide, floats.rounded(exact.divide, 2)),
    "rem": integers.remainder,
    "fma": floats.rounded(exact.fma, 3),
    "sqrt": floats.rounded(exact.square_root, 1),
    "rcp": floats.rounded(floats.reciprocal, 1),
    "min": _by_type(integers.extreme(np.minimum), floats.extreme(floats.minimum_number, exact.minimum)),
    "max": _by_type(integers.extreme(np.maximum), floats.extreme(floats.maximum_number, exact.maximum)),
    "neg": _by_type(integers.negate, floats.sign_change(exact.negate)),
    "abs": _by_type(integers.absolute, floats.sign_change(exact.absolute)),
    "copysign": floats.copy_sign,
    "setp": comparisons.set_predicate,
    "testp": comparisons.test_property,
    "selp": bits.select,
    "and": bits.logic(np.bitwise_and),
    "or": bits.logic(np.bitwise_or),
    "xor": bits.logic(np.bitwise_xor),
    "not": bits.logic(np.invert, 1),
    "shl": bits.shift_left,
    "shr": bits.shift_right,
    "shf": bits.funnel_shift,
    "bfe": bits.extract_field,
    "bfi": bits.insert_field,
    "prmt": bits.permute,
    "lop3": bits.look_up,
    "popc": bits.count(bits.ones),
    "clz": bits.count(bits.leading_zeros),
    "brev": bits.reverse,
    "cvt": conversions.convert,
}

_KNOWN: dict[str, Operation] = {}


def operation_of(instruction: Instruction) -> Operation | None:
    """What an instruction computes, which its name alone decides; None if it is not a pure one.

    Raises:
        UnsupportedPtxError, UnroundedOperationError: that form of the opcode.
    """
    name = instruction.name
    known = _KNOWN.get(name)
    if known is None and instruction.opcode in FAMILIES:
        known = _KNOWN[name] = FAMILIES[instruction.opcode](instruction)
    return known
