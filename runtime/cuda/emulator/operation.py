"""What an instruction computes, apart from where its operands are: a function of raw arrays.

A family of instructions is a function from an instruction to an `Operation`. It reads the modifiers in order with
`Modifiers` and refuses by name what it does not know, so that nothing is taken for something else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .errors import UnsupportedPtxError
from .syntax import Instruction
from .types import TYPES, Array, ScalarType


@dataclass(frozen=True)
class Operation:
    """A pure operation: ``function`` takes raw arrays of the ``sources`` and gives the raw array of the ``result``.

    ``undefined``, where there is one, says of the same arrays for which lanes PTX leaves the result undefined;
    ``complaint`` is the message then.
    """

    function: Callable[..., Array]
    sources: tuple[ScalarType, ...]
    result: ScalarType
    undefined: Callable[..., Array] | None = None
    complaint: str = ""


Family = Callable[[Instruction], Operation]


def unsupported(instruction: Instruction, what: str | None = None) -> UnsupportedPtxError:
    """The refusal of an instruction, or of a part of it, by name."""
    return UnsupportedPtxError(
        f"PTX line {instruction.line}: {instruction.text}: the emulator does not cover {what or instruction.name}; "
        "runtime/cuda/README.md lists what it covers"
    )


class Modifiers:
    """Reads the modifiers of an instruction from left to right."""

    def __init__(self, instruction: Instruction) -> None:
        self.instruction = instruction
        self.left = list(instruction.modifiers)

    def take(self, *names: str) -> str | None:
        """The next modifier if it is one of ``names``."""
        if self.left and self.left[0] in names:
            return self.left.pop(0)
        return None

    def one_of(self, *names: str) -> str:
        """The next modifier, which must be one of ``names``."""
        name = self.take(*names)
        if name is None:
            raise unsupported(self.instruction)
        return name

    def type(self, kinds: str = "usbf", bits: tuple[int, ...] = (16, 32, 64)) -> ScalarType:
        """The next modifier, which must be a type of one of these kinds and widths."""
        name = self.left.pop(0) if self.left else ""
        found = TYPES.get(name)
        if found is None or (found.kind != "pred" and (found.kind not in kinds or found.bits not in bits)):
            raise unsupported(self.instruction)
        if found.kind == "pred" and "p" not in kinds:
            raise unsupported(self.instruction)
        return found

    def end(self) -> None:
        """Nothing may be left."""
        if self.left:
            raise unsupported(self.instruction)


def on_values(
    function: Callable[..., Any], *types: ScalarType, result: ScalarType | None = None
) -> Callable[..., Array]:
    """``function`` of typed arrays as one of raw arrays. Its result is of type ``result``, else of the first type.

    These are the innermost calls of a running kernel, so nothing is done that need not be.
    """
    raw = (result or types[0]).raw
    dtypes = [t.dtype for t in types]
    if all(t.dtype == t.raw for t in types) and (result or types[0]).dtype == raw:
        return function
    if len(dtypes) == 1:
        (only,) = dtypes
        return lambda a: function(a.view(only)).view(raw)
    if len(dtypes) == 2:
        first, second = dtypes
        return lambda a, b: function(a.view(first), b.view(second)).view(raw)
    return lambda *arrays: function(*(a.view(t) for a, t in zip(arrays, dtypes, strict=True))).view(raw)
