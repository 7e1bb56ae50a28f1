"""No index of a window makes compiled code touch memory outside of a buffer, and outside reads as the pad.

The buffers of a compiled run lie between margins that must keep what they hold (see ``differential``); an access
further away ends the process. `test_buffers_between_pages_without_access` adds that nothing beside them is read either.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from differential import Array, check_both_ways
from tile_programs import build
from xdsl.dialects.builtin import IndexType

from halfulp.compiler import DeviceRef, DType, Graph, TensorType
from halfulp.compiler.tile_builder import KernelBuilder, Value
from halfulp.runtime import CPU, InferenceSession
from halfulp.runtime.errors import ExecutionError

INDICES = (-1, 0, 1, 2, 3, -3, -40, 39, 41, 2**31, 2**61 * 3, 2**62 - 2, 2**62, 2**63 - 1, 2**63 - 3, -(2**63))
"""Before, inside and behind a buffer of 40, and where blocks of 4, or two windows, wrap around to its start."""


def floats(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def position(k: KernelBuilder, axis: int) -> Value:
    """An index from data, of which the compiler knows nothing."""
    return k.cast(k.read(k.arguments[1], k.program_ids[axis]), IndexType())


@pytest.mark.parametrize("indexing", ["blocked", "element"])
def test_one_window(indexing: str) -> None:
    def body(k: KernelBuilder) -> None:
        window = k.window(k.arguments[0], [position(k, 0)], [4], indexing=indexing)
        block = k.load(window, 7.0)
        k.store(block, k.window(k.arguments[2], [k.program_ids[0]], [4]))
        k.store(block + 1.0, window)

    arrays = [floats(40), np.array(INDICES, np.int64), floats(4 * len(INDICES))]
    check_both_ways(build(arrays, [len(INDICES)], body), arrays)


@pytest.mark.parametrize("outer", ["blocked", "element"])
@pytest.mark.parametrize("inner", ["blocked", "element"])
def test_a_window_of_a_window(outer: str, inner: str) -> None:
    def body(k: KernelBuilder) -> None:
        window = k.window(k.arguments[0], [position(k, 0)], [8], indexing=outer)
        window = k.window(window, [position(k, 1)], [4], indexing=inner)
        block = k.load(window, 7.0)
        k.store(block, k.window(k.arguments[2], [*k.program_ids, 0], [1, 1, 4], squeezed=[0, 1]))
        k.store(block + 1.0, window)

    n = len(INDICES)
    arrays = [floats(40), np.array(INDICES, np.int64), floats(n, n, 4)]
    check_both_ways(build(arrays, [n, n], body), arrays)


@pytest.mark.parametrize(
    ("extents", "block", "regrouped"),
    [
        ((5, 20), (5, 24), (3, 5, 8)),  # the columns of the middle row are the last ones of their row
        ((5, 2, 8), (5, 3, 8), (3, 5, 8)),  # the middle row is the last one of its group
        ((2, 20), (2, 24), (6, 8)),
        ((3, 4, 7), (3, 5, 8), (15, 8)),
    ],
)
def test_a_reduction_over_rows_that_a_reshape_regroups(
    extents: tuple[int, ...], block: tuple[int, ...], regrouped: tuple[int, ...]
) -> None:
    """What is valid at both ends of the axis may not be in between."""

    def body(k: KernelBuilder) -> None:
        rows = k.reshape(k.load(k.window(k.arguments[0], [0] * len(block), list(block)), 1000.0), list(regrouped))
        total = k.reduce("add", rows, axis=0)
        k.store(total, k.window(k.arguments[1], [0] * (len(regrouped) - 1), list(regrouped[1:])))

    arrays = [floats(*extents), floats(*regrouped[1:])]
    check_both_ways(build(arrays, [], body), arrays)


@pytest.mark.parametrize("indexing", ["blocked", "element"])
@pytest.mark.parametrize("squeezed", [0, 1])
def test_a_row_or_column_of_a_window(indexing: str, squeezed: int) -> None:
    extents = [17, 17]
    extents[squeezed] = 1

    def body(k: KernelBuilder) -> None:
        window = k.window(k.arguments[0], [position(k, 0), position(k, 1)], [3, 20], indexing=indexing)
        window = k.window(window, [position(k, 1), position(k, 0)], extents, squeezed=[squeezed], indexing="element")
        block = k.load(window, 7.0)
        k.store(block, k.window(k.arguments[2], [*k.program_ids, 0], [1, 1, 17], squeezed=[0, 1]))
        k.store(block + 1.0, window)

    n = len(INDICES)
    arrays = [floats(5, 40), np.array(INDICES, np.int64), floats(n, n, 17)]
    check_both_ways(build(arrays, [n, n], body), arrays)


def test_constant_indices_that_lie_outside_of_an_outer_window() -> None:
    """The outer window ends before the buffer begins; the inner one would lie within the buffer again."""

    def body(k: KernelBuilder) -> None:
        for number, (start, inside) in enumerate([(-20, 25), (-20, 1_000_000), (2**63 - 2, 1), (-(2**63), 5)]):
            outer = k.window(k.arguments[0], [start, 0], [10, 4], indexing="element")
            row = k.window(outer, [inside, 0], [1, 4], squeezed=[0], indexing="element")
            k.store(k.load(row, 7.0), k.window(k.arguments[1], [number, 0], [1, 4], squeezed=[0]))
            k.store(k.load(row, 7.0) + 1.0, row)

    result = check_both_ways(build([floats(9, 4), floats(4, 4)], [], body), [floats(9, 4), floats(4, 4)])
    assert np.array_equal(result.arrays[0], floats(9, 4))
    assert (result.arrays[1] == 7.0).all()


def test_sizes_on_which_index_arithmetic_cannot_rely_are_refused() -> None:
    """Even an empty buffer has no extent of more than 2^62."""
    cpu = DeviceRef.CPU()
    with Graph("copy", input_types=[TensorType(DType.int8, ["n", "m"], cpu)]) as graph:
        graph.output(graph.inputs[0])
    model = InferenceSession(devices=[CPU()]).load(graph)
    model.execute(np.zeros((0, 2**62), np.int8))
    with pytest.raises(ExecutionError, match=r"a size of 4611686018427387905 is more than 2\*\*62, the most that"):
        model.execute(np.zeros((0, 2**62 + 1), np.int8))


GUARDED = """
import ctypes, mmap, sys
import numpy as np
import differential
from test_window_safety import guarded_run

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
kept = []

class Guarded:
    at_end = True

    def __init__(self, array):
        pages = max(-(-array.nbytes // PAGE), 1)
        self.area = mmap.mmap(-1, (pages + 2) * PAGE)
        kept.append(self.area)
        whole = np.frombuffer(self.area, np.uint8)
        start = PAGE * (pages + 1) - array.nbytes if self.at_end else PAGE
        self.array = whole[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        self.array[...] = array
        self.address = whole.ctypes.data + start
        for page in (0, pages + 1):
            assert libc.mprotect(whole.ctypes.data + page * PAGE, PAGE, 0) == 0

    def checked(self):
        return self.array.copy()

differential.GuardedArray = Guarded
for Guarded.at_end in (True, False):
    guarded_run()
print("nothing touched")
"""


def guarded_run() -> None:
    """Kernels over edges: every kind of access, at the first and last elements of buffers of odd sizes."""
    a = np.random.default_rng(0).normal(size=(7, 37)).astype(np.float32)

    def body(k: KernelBuilder) -> None:
        x, y, z = k.arguments
        (i,) = k.program_ids
        block = k.load(k.window(x, [i, 0], [3, 16]), 1.0)
        k.store(k.transpose(block, [1, 0]), k.window(y, [0, i], [16, 3]))
        k.store(k.reduce("add", k.load(k.window(x, [0, i], [7, 16])), 0), k.window(z, [i], [16]))
        column = k.window(x, [-1, i * 12], [9, 1], squeezed=[1], indexing="element")
        k.store(k.load(column) * 2.0, column)
        row = k.load(k.window(x, [6, -3], [1, 43], squeezed=[0], indexing="element"))
        k.store(row, k.window(z, [5], [43], indexing="element"), k.iota([43], IndexType()) > i)

    arrays = [a, np.zeros((37, 7), np.float32), np.zeros(37, np.float32)]
    check_both_ways(build(arrays, [4], body), arrays)


def test_buffers_between_pages_without_access() -> None:
    here = Path(__file__).parent
    paths = f"import sys; sys.path[:0] = [{str(here.parent)!r}, {str(here)!r}]"
    child = subprocess.run([sys.executable, "-c", paths + GUARDED], capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr[-2000:]
    assert child.stdout == "nothing touched\n"
