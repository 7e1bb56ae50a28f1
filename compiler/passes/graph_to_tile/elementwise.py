"""The kernel of an op that works element by element: blocks of 4096 elements over flat memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...tile_builder import EntryBuilder, KernelBuilder, Value

BLOCK = 4096
"""Elements of a program: 16 KiB of f32 an operand, which stays in a core's first cache."""


def emit_map(
    entry: EntryBuilder,
    name: str,
    recipe: Callable[..., Any],
    parameters: Mapping[str, Any],
    operands: Sequence[Value],
    outputs: Sequence[Value],
) -> None:
    """Launches ``recipe(builder, parameters, *blocks) -> block`` over operands and outputs of equal shape."""
    arguments = [entry.flatten(ref) for ref in (*operands, *outputs)]
    count = entry.dim(arguments[-1], 0)
    programs = (count + (BLOCK - 1)) // BLOCK

    def body(k: KernelBuilder) -> None:
        (program,) = k.program_ids
        windows = [k.window(ref, [program], [BLOCK]) for ref in k.arguments]
        blocks = [k.load(window) for window in windows[: len(operands)]]
        results = recipe(k, parameters, *blocks)
        for result, window in zip(
            results if isinstance(results, tuple) else (results,), windows[len(operands) :], strict=True
        ):
            k.store(result, window)

    entry.launch(name, arguments, [programs], body)


def emit_copy(entry: EntryBuilder, source: Value, target: Value) -> None:
    """Launches a copy between buffers of equal shape."""
    emit_map(entry, "copy", lambda k, parameters, block: block, {}, [source], [target])
