"""Random programs: the emulator finds a race exactly when two accesses of the program are not ordered.

The reference looks at all pairs of accesses. The programs have no branches, so the order of the statements and the
barriers between them decide.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from ptx_kernels import kernel, run

from halfulp.runtime.cuda.emulator import DataRaceError

THREADS = 64
WORDS = 64
BYTES = 4 * WORDS * 4  # each block has a region of its own, which its neighbour may reach


@dataclass(frozen=True)
class Step:
    """``kind`` is read, write, atomic, barrier or warp barrier. Thread t of block b uses ``size`` bytes at
    ``start + stride * (t xor flip) + step * b``, modulo the size of the memory."""

    kind: str
    size: int = 4
    start: int = 0
    stride: int = 4
    flip: int = 0
    step: int = 0

    def address(self, thread: int, block: int, nbytes: int) -> int:
        return (self.start + self.stride * (thread ^ self.flip) + self.step * block) % nbytes

    def text(self, space: str, base: str, nbytes: int) -> str:
        if self.kind == "barrier":
            return "bar.sync 0;"
        if self.kind == "warp barrier":
            return "bar.warp.sync -1;"
        place = f"xor.b32 %r3, %r1, {self.flip};\nmad.lo.u32 %r3, %r3, {self.stride}, {self.start};\n"
        place += f"mad.lo.u32 %r3, %r2, {self.step}, %r3;\nand.b32 %r3, %r3, {nbytes - 1};\n"
        place += f"cvt.u64.u32 %rd3, %r3;\nadd.s64 %rd3, {base}, %rd3;\n"
        if self.kind == "atomic":
            return place + f"red.{space}.add.u32 [%rd3], 1;"
        register = {1: "%rs1", 2: "%rs1", 4: "%r4", 8: "%rd4"}[self.size]
        access = f"b{8 * self.size}"
        if self.kind == "read":
            return place + f"ld.{space}.{access} {register}, [%rd3];"
        return place + f"st.{space}.{access} [%rd3], {register};"


def random_program(generator: np.random.Generator, blocks: int) -> list[Step]:
    kinds = ["read", "read", "write", "write", "atomic", "barrier", "warp barrier"]
    program = []
    for _ in range(generator.integers(2, 8)):
        kind = str(generator.choice(kinds, p=[0.2, 0.15, 0.25, 0.1, 0.05, 0.15, 0.1]))
        size = 4 if kind == "atomic" else int(generator.choice([1, 2, 4, 4, 4, 8]))
        stride = size * int(generator.choice([1, 1, 1, 2, 0]))
        flip = int(generator.choice([0, 0, 1, 3, 16, 31, 32, 63]))
        step = int(generator.choice([0, BYTES // 4, BYTES // 4])) if blocks > 1 else 0
        program.append(Step(kind, size, size * int(generator.integers(0, 3)), stride, flip, step))
    return program


def has_race(program: list[Step], blocks: int, nbytes: int, shared: bool) -> bool:
    accesses = [
        (i, step, b, t)
        for i, step in enumerate(program)
        if "barrier" not in step.kind
        for b in range(blocks)
        for t in range(THREADS)
    ]
    users: dict[tuple[int, int], list[tuple[int, Step, int, int]]] = {}
    for i, step, b, t in accesses:
        for byte in range(step.size):
            place = (step.address(t, b, nbytes) + byte, b if shared else 0)
            users.setdefault(place, []).append((i, step, b, t))
    barriers = [i for i, step in enumerate(program) if step.kind == "barrier"]
    warp_barriers = [i for i, step in enumerate(program) if step.kind == "warp barrier"]

    def between(places: list[int], i: int, j: int) -> bool:
        return any(min(i, j) < place < max(i, j) for place in places)

    def races(first: tuple[int, Step, int, int], second: tuple[int, Step, int, int]) -> bool:
        (i, a, b, t), (j, c, d, u) = first, second
        if (b, t) == (d, u) or "read" == a.kind == c.kind or "atomic" == a.kind == c.kind:
            return False
        if b != d:
            return True
        return not (between(barriers, i, j) or (t // 32 == u // 32 and between(warp_barriers, i, j)))

    return any(races(*pair) for found in users.values() for pair in itertools.combinations(found, 2))


def text_of(program: list[Step], space: str, nbytes: int) -> str:
    base = "mov.u64 %rd1, tile;" if space == "shared" else "ld.param.u64 %rd1, [out];"
    body = "\n".join(
        [base, "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;"] + [s.text(space, "%rd1", nbytes) for s in program]
    )
    return kernel(body, before=f".shared .align 16 .b8 tile[{nbytes}];\n")


@pytest.mark.parametrize(("space", "blocks"), [("shared", 1), ("shared", 2), ("global", 1), ("global", 3)])
def test_race_is_found_exactly_where_there_is_one(space: str, blocks: int) -> None:
    generator = np.random.default_rng(blocks + len(space))
    outcomes = []
    for _ in range(150):
        program = random_program(generator, blocks)
        expected = has_race(program, blocks, BYTES, space == "shared")
        try:
            text = text_of(program, space, BYTES)
            run(text, BYTES, "u1", (), blocks, THREADS, detect_uninitialized=False)
            found = False
        except DataRaceError:
            found = True
        assert found == expected, program
        outcomes.append(found)
    assert 30 < sum(outcomes) < 140  # the programs are of both kinds
