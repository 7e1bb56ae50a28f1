"""The kernel that copies one buffer to another."""

from __future__ import annotations

from ...dialects.tile.compute import CHUNK
from ...tile_builder import EntryBuilder, KernelBuilder, Value


def emit_copy(entry: EntryBuilder, source: Value, target: Value) -> None:
    """Launches a copy between buffers with as many elements, in row-major order of both."""
    arguments = [entry.flatten(source), entry.flatten(target)]
    programs = (entry.dim(arguments[1], 0) + (CHUNK - 1)) // CHUNK

    def body(k: KernelBuilder) -> None:
        (program,) = k.program_ids
        read, write = (k.window(ref, [program], [CHUNK]) for ref in k.arguments)
        k.store(k.load(read), write)

    entry.launch("copy", arguments, [programs], body)
