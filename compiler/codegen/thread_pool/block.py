"""The pool's block of memory, and lines of LLVM text that reach its fields."""

from __future__ import annotations

MOST_WORKERS = 255
"""More threads than any machine for which a shared counter per region is the right scheme."""

SPIN_NANOSECONDS = 50_000
STACK_BYTES = 8 << 20
"""A kernel's temporaries take up to 1 MiB of stack; macOS would give a thread half of that."""

# Bytes. What different threads write to lies 128 bytes apart: two cache lines, which CPUs fetch together. The objects
# of pthread are opaque; the largest (a mutex on macOS, an attribute object on Linux) takes 64 bytes.
OFFSETS = {
    "lock": 0,
    "gate": 128,
    "next": 256,
    "left": 384,
    "sleepers": 512,
    "waiting": 640,
    "stopped": 648,
    "body": 768,
    "context": 776,
    "count": 784,
    "workers": 792,
    "mutex": 896,
    "wake": 1152,
    "done": 1408,
    "attributes": 1664,
    "threads": 1920,
}
BYTES = OFFSETS["threads"] + 8 * (MOST_WORKERS + 1)


def fields(*names: str) -> str:
    """Lines that compute the addresses of fields of ``%pool``, each under the field's name."""
    return "\n".join(f"  %{name} = getelementptr i8, ptr %pool, i64 {OFFSETS[name]}" for name in names)


def load(name: str, field: str) -> str:
    """``%name`` is what the word at ``%field`` holds."""
    return f"  %{name} = load atomic i64, ptr %{field} seq_cst, align 8"


def store(value: int | str, field: str) -> str:
    """The word at ``%field`` becomes ``value``."""
    return f"  store atomic i64 {value}, ptr %{field} seq_cst, align 8"
