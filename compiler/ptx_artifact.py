"""What compiling a graph for a GPU yields: PTX, what its kernels must be launched with, the entry that launches them.

The interface between a kernel and its launcher is described in ``codegen/ptx``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from .artifact import BufferRole, BufferSpec, CheckSite, PrintSite, Segment
from .numerics import Contraction
from .options import CompileOptions

NO_FAILURE = (1 << 64) - 1
"""What the first status word is before a launch, and stays while no check fails; unsigned."""

CHECK_BITS = 15
"""A failed check is recorded as ``program << CHECK_BITS | check``; there are at most 2^48 programs."""

CHECK_VALUES = 4
"""Words for the values of a failed check that each block of threads has."""


@dataclass(frozen=True)
class PtxParameter:
    """One parameter of a kernel.

    ``kind`` is ``status``, ``scratch``, ``grid`` (a size of it), ``pointer`` (to a reference's memory), ``extent``
    (of the reference before it) or ``scalar``; ``argument`` the number of the kernel's argument that it is a part of,
    -1 for none. ``type`` is what is passed: ``i64``, ``f32``, ...
    """

    kind: str
    type: str
    argument: int = -1


@dataclass(frozen=True)
class PtxKernel:
    """A kernel of a PTX text.

    Attributes:
        name: of the kernel in the tile IR.
        symbol: of the ``.entry``.
        threads: of each block.
        shared_bytes: shared memory of a block; the PTX declares it.
        scratch_bytes: global memory that the launcher gives to each block.
        grid_rank: sizes of the grid.
        split: leading axes of the grid that are parallel.
        parameters: in order.
        checks: how many there are.
    """

    name: str
    symbol: str
    threads: int
    shared_bytes: int
    scratch_bytes: int
    grid_rank: int
    split: int
    parameters: tuple[PtxParameter, ...]
    checks: int

    def tasks(self, grid: Sequence[int]) -> int:
        """Into how many blocks the programs of a grid can be divided at most; 0: there are none."""
        return prod(grid[: self.split]) if all(size > 0 for size in grid) else 0

    def status_words(self, blocks: int) -> int:
        """Words of status memory that a launch of so many blocks needs."""
        return 1 + CHECK_VALUES * blocks if self.checks else 0

    def failure(self, first_word: int, grid: Sequence[int], blocks: int) -> tuple[int, int, int] | None:
        """The program and check that failed, and where in the status words its values start; None if none did."""
        key = first_word & NO_FAILURE
        if key == NO_FAILURE:
            return None
        program, check = key >> CHECK_BITS, key & ((1 << CHECK_BITS) - 1)
        block = program // prod(grid[self.split :]) % blocks
        return program, check, 1 + CHECK_VALUES * block


@dataclass(frozen=True)
class HostKernel:
    """A kernel that runs on the host: ``symbol`` of ``object_code`` launches it once.

    It is a function as the segments of a `CompiledGraph` are, whose buffers are the kernel's arguments and then the
    sizes of the grid; a scalar lies in memory (an index as an i64). ``prints`` are the kernel's own, by number.
    """

    name: str
    symbol: str
    object_code: bytes
    thread_arena_bytes: int
    prints: tuple[PrintSite, ...] = ()


@dataclass(frozen=True)
class CompiledPtx:
    """A graph compiled for a GPU.

    Attributes:
        name: of the graph, and of its entry function.
        ptx: one text with all kernels; empty if there is none.
        target: the architecture: ``sm_90``.
        kernels: those of the PTX.
        entry: tile IR of the kernels and of the entry function, which runs on the host and launches them.
        buffers: the entry's arguments, then its own buffers, as in `CompiledGraph`.
        launches: ``launches[i][j]`` is check j of step i, a launch or a check of the graph itself.
        steps: the kernel of each step.
        prints: the places that print.
        segments: which dims each part of the entry computes; they have no symbols of their own.
        host_kernels: those that run on the host, where a graph is on two devices.
    """

    name: str
    ptx: str
    target: str
    kernels: tuple[PtxKernel, ...]
    entry: str
    buffers: tuple[BufferSpec, ...]
    launches: tuple[tuple[CheckSite, ...], ...]
    steps: tuple[str, ...]
    prints: tuple[PrintSite, ...]
    options: CompileOptions
    contractions: tuple[Contraction, ...] = ()
    segments: tuple[Segment, ...] = (Segment("", ()),)
    host_kernels: tuple[HostKernel, ...] = ()

    thread_arena_bytes = 0  # blocks of threads have their memory per launch

    def role(self, role: BufferRole) -> tuple[BufferSpec, ...]:
        """The buffers of one role, in order of their index."""
        return tuple(spec for spec in self.buffers if spec.role is role)

    def kernel(self, name: str) -> PtxKernel:
        """The kernel that the tile IR calls by this name."""
        return next(kernel for kernel in self.kernels if kernel.name == name)
