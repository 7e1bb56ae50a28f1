"""What compiling a graph yields: object code and the tables that the runtime needs to call it.

The object exports one function per segment, all of type ``void (ptr buffers, ptr dims)``. ``buffers`` is an array of
pointers: the status words, the computed dims, then one pointer for each entry of ``CompiledGraph.buffers``. ``dims``
is an array of i64: the extents of all axes of all those entries, in order. A graph without data-dependent dims has one
segment; each group of ``tile.set_dim`` ends a segment, because the buffers sized by it can be allocated only then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .device import HOST, DeviceRef
from .dims import Dim
from .dtypes import DType
from .numerics import Contraction
from .options import CompileOptions

ABI_VERSION = 4
"""The number of the interface described here; code of another number is not loaded."""

STATUS_WORDS = 19
"""i64 words of the status buffer: launch + 1 (0 while nothing failed), program, check, then up to 4 values. Four more
are the most threads that this execution may use, set by the caller (0 is one), the lock of the words before, and two
addresses, set by the caller, too: of the function that prints (0: nothing is printed), and of the threads' arenas
(`CompiledGraph.thread_arena_bytes` for each). Then the address of a function ``void ()`` that loops call now and then
(0: none), and how many rounds are left until they do. The last ones are the grid of a launch with checks, if it has no
more axes than that."""
STATUS_LAUNCH, STATUS_PROGRAM, STATUS_CHECK, STATUS_VALUES, STATUS_THREADS, STATUS_LOCK = 0, 1, 2, 3, 7, 8
STATUS_PRINT = 9
STATUS_ARENAS = 10
STATUS_WATCH = 11
STATUS_ROUNDS = 12
STATUS_GRID = 13
MOST_GRID_WORDS = STATUS_WORDS - STATUS_GRID


MAX_EXTENT = 1 << 62
"""The largest extent of a buffer, even of an empty one; index arithmetic in kernels relies on it."""


ALWAYS = 1 << 30
"""A step after all steps."""


class BufferRole(Enum):
    INPUT = "input"
    WEIGHT = "weight"
    CONSTANT = "constant"
    OUTPUT = "output"
    INTERMEDIATE = "intermediate"


@dataclass(frozen=True)
class BufferSpec:
    """One buffer argument of the entry function.

    ``index`` counts within the role (input 0, input 1, ...). ``shape`` holds the dims by name; ``data`` is the
    content of a constant in C order. An intermediate holds something from step ``first`` to step ``last`` only, both
    included (`CompiledGraph.steps`). The execution may change the memory of a ``mutable`` input. ``device`` is where it
    lies.
    """

    role: BufferRole
    index: int
    name: str
    dtype: DType
    shape: tuple[Dim, ...]
    data: bytes | None = None
    first: int = 0
    last: int = ALWAYS
    mutable: bool = False
    device: DeviceRef = HOST


@dataclass(frozen=True)
class Segment:
    """A function of the object, and the symbols whose values it leaves in the computed dims (by position)."""

    symbol: str
    defines: tuple[str, ...]


@dataclass(frozen=True)
class CheckSite:
    """A check inside a kernel: its message, ``{}`` for each recorded value.

    ``rank`` counts the axes of the grid. ``is_bounds``: it is about an index that is out of bounds.
    """

    kernel: str
    message: str
    rank: int = 0
    is_bounds: bool = False


@dataclass(frozen=True)
class PrintedValue:
    """Type and shape of something printed; None for a size that is known at run time only."""

    dtype: DType
    shape: tuple[int | None, ...]


@dataclass(frozen=True)
class PrintSite:
    """A place that prints, called back as ``void (i64 site, i64 *words)``.

    ``words`` has an address for each value. Behind that of a tensor come its extents.

    Attributes:
        text: with a ``{}`` for each value, the text itself if there are none; for a tensor its label.
        values: in their order.
        is_tensor: it shows one tensor, in the style of the session.
    """

    text: str
    values: tuple[PrintedValue, ...]
    is_tensor: bool = False

    def line(self, arrays: Sequence[Any]) -> str:
        """The text, with numpy arrays of these types and shapes in it as numpy shows them."""
        if not self.values:
            return self.text
        pieces = self.text.split("{}")
        return pieces[0] + "".join(f"{array!s}{piece}" for array, piece in zip(arrays, pieces[1:], strict=True))


@dataclass(frozen=True)
class CompiledGraph:
    """A compiled graph, ready to load.

    ``launches[i][j]`` is check j of step i, which is a launch or a check of the graph itself; ``steps[i]`` names the
    kernel. ``prints`` are the sites by number. ``thread_arena_bytes`` are those that each thread needs for the large
    blocks of kernels. All other sizes are in elements.
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
    prints: tuple[PrintSite, ...] = ()
    thread_arena_bytes: int = 0
    has_loops: bool = False

    def role(self, role: BufferRole) -> tuple[BufferSpec, ...]:
        """The buffers of one role, in order of their index."""
        return tuple(spec for spec in self.buffers if spec.role is role)
