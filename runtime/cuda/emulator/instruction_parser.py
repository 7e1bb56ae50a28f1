"""One instruction of PTX: guard, opcode, modifiers and operands."""

from __future__ import annotations

import re
from functools import lru_cache

from .errors import PtxSyntaxError
from .syntax import Address, FloatBits, Group, Guard, Instruction, Integer, Name, Negated, Operand, Pair, Vector

_INSTRUCTION = re.compile(r"(?:@(!?)\s*([\w$%]+)\s*)?([a-z]\w*)((?:\.[\w:]+)*)\s*(.*)", re.DOTALL)
_ADDRESS = re.compile(r"\[\s*([\w$%]+)?\s*(?:(\+)?\s*(-?\s*(?:0[xX][0-9a-fA-F]+|\d+)))?\s*\]")
_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?")
_FLOAT = re.compile(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})")
_NAME = re.compile(r"[A-Za-z_$%][\w$]*(?:\.[xyzw])?")
_OPENING, _CLOSING = "[{(", "]})"


def parse_instruction(text: str, line: int) -> Instruction:
    """Parses a statement without its semicolon; white space in ``text`` is already single.

    Raises:
        PtxSyntaxError: the text has no such form.
    """
    match = _INSTRUCTION.fullmatch(text)
    if match is None:
        raise PtxSyntaxError(f"PTX line {line}: {text}: expected an instruction")
    negated, predicate, opcode, modifiers, rest = match.groups()
    guard = Guard(predicate, bool(negated)) if predicate else None
    names = tuple(modifiers.split(".")[1:]) if modifiers else ()
    try:
        operands = tuple(_operand(part) for part in split_list(rest))
    except ValueError as error:
        raise PtxSyntaxError(f"PTX line {line}: {text}: {error}") from None
    return Instruction(line, text, opcode, names, operands, guard)


def split_list(text: str) -> list[str]:
    """Splits at the commas that no bracket encloses."""
    parts: list[str] = []
    depth = start = 0
    for place, sign in enumerate(text):
        if sign == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
        elif sign in _OPENING:
            depth += 1
        elif sign in _CLOSING:
            depth -= 1
    last = text[start:].strip()
    return [*parts, last] if parts or last else []


def integer_value(text: str) -> int:
    """The value of a PTX integer literal: decimal, hexadecimal, octal or binary."""
    digits = text.rstrip("U").replace(" ", "")
    sign, digits = (-1, digits[1:]) if digits.startswith("-") else (1, digits)
    if len(digits) > 1 and digits[0] == "0" and digits.isdecimal():
        return sign * int(digits, 8)
    return sign * int(digits, 0)


@lru_cache(maxsize=4096)
def _operand(text: str) -> Operand:
    """Raises ValueError with the reason if the text is no operand."""
    if _NAME.fullmatch(text):
        return Name(text)
    if _INTEGER.fullmatch(text):
        return Integer(integer_value(text))
    if match := _FLOAT.fullmatch(text):
        single, double = match.groups()
        return FloatBits(int(single or double, 16), 32 if single else 64)
    first = text[:1]
    if first == "[":
        return _address(text)
    if first == "{" and text.endswith("}"):
        return Vector(tuple(None if part == "_" else _operand(part) for part in split_list(text[1:-1])))
    if first == "(" and text.endswith(")"):
        return Group(tuple(_operand(part) for part in split_list(text[1:-1])))
    if first == "!" and _NAME.fullmatch(text[1:].strip()):
        return Negated(Name(text[1:].strip()))
    if "|" in text:
        first_name, _, second_name = (part.strip() for part in text.partition("|"))
        return Pair(_name_or_none(first_name), _name_or_none(second_name))
    raise ValueError(f"{text!r} is no operand")


def _name_or_none(text: str) -> Name | None:
    if text == "_":
        return None
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no register")
    return Name(text)


def _address(text: str) -> Address:
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no address [base+offset]")
    base, _, offset = match.groups()
    if base is not None and base.isdecimal():
        return Address(None, integer_value(base))
    return Address(Name(base) if base else None, integer_value(offset) if offset else 0)
