"""Prints each program of a run, and each load and store in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .exact import Array
from .memory import Reference

if TYPE_CHECKING:
    from .frame import Value


class ProgramLog:
    """An observer (`halfulp.compiler.interpreter.frame.Observer`) that prints to standard output."""

    def launch(self, kernel: str, buffers: Sequence[Value]) -> None:
        print(f"kernel {kernel}")

    def program(self, kernel: str, program: tuple[int, ...]) -> None:
        print(f"  program {program}")

    def access(self, reference: Reference, mask: Array | None, *, writes: bool) -> None:
        pairs = zip(reference.lower, reference.upper, strict=True)
        part = ", ".join(f"{low}:{max(low, high)}" for low, high in pairs)
        word, shape = "store" if writes else "load", list(reference.array.shape)
        print(f"    {word} [{part}] of a buffer of shape {shape}{'' if mask is None else ', masked'}")
