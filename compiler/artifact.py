"""What compiling a graph yields: object code and the tables that the runtime needs to call it.

The object exports one function per segment, all of type ``void (ptr buffers, ptr dims)``. ``buffers`` is an array of
pointers: the status words, the computed dims, then one pointer for each entry of ``CompiledGraph.buffers``. ``dims``
is an array of i64: the extents of all axes of all those entries, in order. A graph without data-dependent dims has one
segment; each group of ``tile.set_dim`` ends a segment, because the buffers sized by it can be allocated only then.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .dims import Dim
from .dtypes import DType
from .numerics import Contraction
from .options import CompileOptions

ABI_VERSION = 1
"""The number of the interface described here; code of another number is not loaded."""

STATUS_WORDS = 16
"""i64 words of the status buffer: launch + 1 (0 while nothing failed), program, check, then up to 4 values. Two more
are the most threads that this execution may use, set by the caller (0 is one), and the lock of the words before."""
STATUS_LAUNCH, STATUS_PROGRAM, STATUS_CHECK, STATUS_VALUES, STATUS_THREADS, STATUS_LOCK = 0, 1, 2, 3, 7, 8


MAX_EXTENT = 1 << 62
"""The largest extent of a buffer, even of an empty one; index arithmetic in kernels relies on it."""


ALWAYS = 1 << 30
"""A step after all steps."""


class BufferRole(Enum):
    INPUT = "input"
    WEIGHT = "weight"
    CONSTANT = "constant"
    OUTPUT = "output"
    PRINTED = "printed"
    INTERMEDIATE = "intermediate"


@dataclass(frozen=True)
class BufferSpec:
    """One buffer argument of the entry function.

    ``index`` counts within the role (input 0, input 1, ...). ``shape`` holds the dims by name; ``data`` is the
    content of a constant in C order. An intermediate holds something from step ``first`` to step ``last`` only, both
    included (`CompiledGraph.steps`). A printed value is filled as an output is; its name is the label, any text.
    """

    role: BufferRole
    index: int
    name: str
    dtype: DType
    shape: tuple[Dim, ...]
    data: bytes | None = None
    first: int = 0
    last: int = ALWAYS


@dataclass(frozen=True)
class Segment:
    """A function of the object, and the symbols whose values it leaves in the computed dims (by position)."""

    symbol: str
    defines: tuple[str, ...]


@dataclass(frozen=True)
class CheckSite:
    """A check inside a kernel: its message, ``{}`` for each recorded value."""

    kernel: str
    message: str


@dataclass(frozen=True)
class CompiledGraph:
    """A compiled graph, ready to load.

    ``launches[i][j]`` is check j of step i, which is a launch or a check of the graph itself; ``steps[i]`` names the
    kernel. All sizes are in elements.
    """

    name: str
    object_code: bytes
    buffers: tuple[BufferSpec, ...]
    segments: tuple[Segment, ...]
    computed_dims: tuple[str, ...]
    launches: tuple[tuple[CheckSite, ...], ...]
    options: CompileOptions
    triple: str
    contractions: tuple[Contraction, ...] = ()
    steps: tuple[str, ...] = ()

    def role(self, role: BufferRole) -> tuple[BufferSpec, ...]:
        """The buffers of one role, in order of their index."""
        return tuple(spec for spec in self.buffers if spec.role is role)
