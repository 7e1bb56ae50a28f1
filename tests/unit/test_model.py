"""Models: binding of shapes, checks and their words, data-dependent sizes, failing kernels, threads, weights.

The compiled graphs are made by hand, from LLVM text and tables, so that these tests stand on the contract of
`halfulp.compiler.artifact` alone.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfulp.compiler.artifact import BufferRole, BufferSpec, CheckSite, CompiledGraph, Segment
from halfulp.compiler.device import DeviceRef
from halfulp.compiler.dims import Dim
from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import GraphTypeError
from halfulp.compiler.options import CompileOptions
from halfulp.runtime import CPU, Buffer, Device, ExecutionError, Model
from halfulp.runtime.buffer import wrap
from halfulp.runtime.loader import NativeLibrary
from halfulp.runtime.native_model import NativeModel
from halfulp.runtime.weights import bind_weights

INPUT, WEIGHT, CONSTANT = BufferRole.INPUT, BufferRole.WEIGHT, BufferRole.CONSTANT
OUTPUT, INTERMEDIATE = BufferRole.OUTPUT, BufferRole.INTERMEDIATE
f32, i64 = DType.float32, DType.int64

# Pointers: 0 status, 1 computed dims, then the buffers. @load_ptr and @load_dim read one entry.
ACCESS = """
define internal ptr @load_ptr(ptr %buffers, i64 %i) alwaysinline {
  %p = getelementptr ptr, ptr %buffers, i64 %i
  %v = load ptr, ptr %p
  ret ptr %v
}
define internal i64 @load_i64(ptr %words, i64 %i) alwaysinline {
  %p = getelementptr i64, ptr %words, i64 %i
  %v = load i64, ptr %p
  ret i64 %v
}
define internal void @store_i64(ptr %words, i64 %i, i64 %v) alwaysinline {
  %p = getelementptr i64, ptr %words, i64 %i
  store i64 %v, ptr %p
  ret void
}
"""

# out[i] = x[i] + y[i], with the extent of x as the count
ADD = """
define void @add(ptr %buffers, ptr %dims) {
entry:
  %x = call ptr @load_ptr(ptr %buffers, i64 2)
  %y = call ptr @load_ptr(ptr %buffers, i64 3)
  %out = call ptr @load_ptr(ptr %buffers, i64 4)
  %n = call i64 @load_i64(ptr %dims, i64 0)
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %exit
body:
  %px = getelementptr float, ptr %x, i64 %i
  %py = getelementptr float, ptr %y, i64 %i
  %po = getelementptr float, ptr %out, i64 %i
  %a = load float, ptr %px
  %b = load float, ptr %py
  %s = fadd float %a, %b
  store float %s, ptr %po
  %next = add i64 %i, 1
  br label %head
exit:
  ret void
}
"""

# The first segment leaves the first element of `sizes` in the computed dims; the second stores all extents in
# `seen` and writes 0, 1, 2, ... through the intermediate into `out`.
COUNT = """
define void @measure(ptr %buffers, ptr %dims) {
  %computed = call ptr @load_ptr(ptr %buffers, i64 1)
  %sizes = call ptr @load_ptr(ptr %buffers, i64 2)
  %m = call i64 @load_i64(ptr %sizes, i64 0)
  call void @store_i64(ptr %computed, i64 0, i64 %m)
  ret void
}
define void @fill(ptr %buffers, ptr %dims) {
entry:
  %twice = call ptr @load_ptr(ptr %buffers, i64 3)
  %out = call ptr @load_ptr(ptr %buffers, i64 4)
  %seen = call ptr @load_ptr(ptr %buffers, i64 5)
  br label %extents
extents:
  %k = phi i64 [0, %entry], [%k1, %extents]
  %extent = call i64 @load_i64(ptr %dims, i64 %k)
  call void @store_i64(ptr %seen, i64 %k, i64 %extent)
  %k1 = add i64 %k, 1
  %again = icmp slt i64 %k1, 3
  br i1 %again, label %extents, label %start
start:
  %n = call i64 @load_i64(ptr %dims, i64 2)
  br label %head
head:
  %i = phi i64 [0, %start], [%next, %body]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %exit
body:
  %j = mul i64 %i, 2
  call void @store_i64(ptr %twice, i64 %j, i64 %i)
  %v = call i64 @load_i64(ptr %twice, i64 %j)
  call void @store_i64(ptr %out, i64 %i, i64 %v)
  %next = add i64 %i, 1
  br label %head
exit:
  ret void
}
"""

# A negative x[0] fails check 1 of launch 1 in program 7; else out[0] = x[0].
CHECKED = """
define void @checked(ptr %buffers, ptr %dims) {
  %status = call ptr @load_ptr(ptr %buffers, i64 0)
  %x = call ptr @load_ptr(ptr %buffers, i64 2)
  %out = call ptr @load_ptr(ptr %buffers, i64 3)
  %v = call i64 @load_i64(ptr %x, i64 0)
  call void @store_i64(ptr %out, i64 0, i64 %v)
  %bad = icmp slt i64 %v, 0
  br i1 %bad, label %fail, label %exit
fail:
  call void @store_i64(ptr %status, i64 0, i64 2)
  call void @store_i64(ptr %status, i64 1, i64 7)
  call void @store_i64(ptr %status, i64 2, i64 1)
  call void @store_i64(ptr %status, i64 3, i64 %v)
  call void @store_i64(ptr %status, i64 4, i64 0)
  br label %exit
exit:
  ret void
}
"""

NOTHING = "define void @nothing(ptr %buffers, ptr %dims) {\n  ret void\n}\n"


@cache
def object_code(text: str) -> tuple[bytes, str]:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic")
    module = llvm.parse_assembly(ACCESS + text)
    module.verify()
    return machine.emit_object(module), machine.triple


def spec(
    role: BufferRole, index: int, name: str, dtype: DType, shape: Sequence[Any], data: bytes | None = None
) -> BufferSpec:
    return BufferSpec(role, index, name, dtype, tuple(Dim(size) for size in shape), data)


def model(
    text: str,
    buffers: Sequence[BufferSpec],
    segments: Sequence[Segment],
    launches: tuple[tuple[CheckSite, ...], ...] = (),
    weights: dict[str, Any] | None = None,
) -> Model:
    code, triple = object_code(text)
    computed = sum((segment.defines for segment in segments), ())
    compiled = CompiledGraph(
        "g", code, tuple(buffers), tuple(segments), computed, launches, CompileOptions(fp_contract="off"), triple
    )
    loaded = NativeLibrary(code, [segment.symbol for segment in segments])
    return NativeModel(compiled, loaded, bind_weights("g", compiled.role(WEIGHT), weights or {}))


def add_model(x: Sequence[Any] = ("n",), y: Sequence[Any] = ("n",), dtype: DType = f32) -> Model:
    buffers = [spec(INPUT, 0, "x", dtype, x), spec(INPUT, 1, "y", dtype, y), spec(OUTPUT, 0, "sum", dtype, x)]
    return model(ADD, buffers, [Segment("add", ())])


def count_model() -> Model:
    m = Dim("m")
    buffers = [
        spec(INPUT, 0, "sizes", i64, ["n"]),
        spec(INTERMEDIATE, 0, "twice", i64, [2 * m]),
        spec(OUTPUT, 1, "iota", i64, [m]),
        spec(OUTPUT, 0, "seen", i64, [3]),
    ]
    return model(COUNT, buffers, [Segment("measure", ("m",)), Segment("fill", ())])


def shape_model(inputs: Sequence[Sequence[Any]], output: Sequence[Any]) -> Model:
    """A model whose code does nothing: for what happens before the code runs."""
    buffers = [spec(INPUT, i, f"x{i}", f32, shape) for i, shape in enumerate(inputs)]
    return model(NOTHING, [*buffers, spec(OUTPUT, 0, "y", f32, output)], [Segment("nothing", ())])


def floats(*values: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.array(values, np.float32)


def raised(kind: type[Exception], call: Callable[[], object]) -> str:
    with pytest.raises(kind) as error:
        call()
    assert type(error.value) is kind
    return str(error.value)


def test_add() -> None:
    (total,) = add_model().execute(floats(1, 2, 3), floats(10, 20, 30))
    assert isinstance(total, Buffer)
    assert (total.dtype, total.shape, total.device) == (f32, (3,), CPU())
    assert total.to_numpy().tolist() == [11, 22, 33]


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_sizes_change_from_call_to_call(n: int) -> None:
    add = add_model()
    for size in (n, 3, n):
        x = np.arange(size, dtype=np.float32)
        assert add(x, x)[0].to_numpy().tolist() == (2 * x).tolist()


def test_more_shapes_than_are_cached() -> None:
    add = add_model()
    for _ in range(2):
        for n in range(300):
            assert add(np.ones(n, np.float32), np.ones(n, np.float32))[0].shape == (n,)


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array = array.copy()
    array.flags.writeable = False
    return array


def unaligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view(array.dtype)


class ArrayLike:
    """Has ``__array__`` and nothing else."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.array


class DLPackLike:
    """Has DLPack and nothing else."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


X = floats(1, 2, 3)
ARGUMENTS = {
    "array": X,
    "buffer": Buffer.from_numpy(X),
    "read-only": read_only(X),
    "strided": np.repeat(X, 2)[::2],
    "reversed": X[::-1].copy()[::-1],
    "swapped bytes": X.astype(">f4"),
    "unaligned": unaligned(X),
    "memory-mapped class": X.view(np.memmap),
    "DLPack": DLPackLike(X),
    "__array__": ArrayLike(X),
}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_every_kind_of_argument(kind: str) -> None:
    (total,) = add_model().execute(ARGUMENTS[kind], X)
    assert total.to_numpy().tolist() == [2, 4, 6]


def test_bfloat16_and_empty_arguments_reach_the_code() -> None:
    # two bfloat16 zeros are a float32 zero; the point is that their pointers arrive
    zeros = np.zeros(4, ml_dtypes.bfloat16)
    assert add_model(dtype=DType.bfloat16).execute(zeros, zeros)[0].dtype is DType.bfloat16
    assert add_model().execute(floats(), floats())[0].to_numpy().tolist() == []


def test_rank_0_and_numpy_scalars() -> None:
    scalar = shape_model([[]], [])
    assert scalar.execute(np.float32(2))[0].shape == ()
    assert scalar.execute(np.array(2, np.float32))[0].shape == ()


def test_outputs_are_fresh_and_aligned() -> None:
    add = add_model()
    x = floats(1, 2, 3)
    first = add(x, x)[0]
    second = add(first, first)[0]
    views = [x, first.to_numpy(), second.to_numpy()]
    assert not any(np.shares_memory(a, b) for a in views for b in views if a is not b)
    assert first.address % 64 == second.address % 64 == 0
    assert first.to_numpy().tolist() == [2, 4, 6]
    assert second.to_numpy().tolist() == [4, 8, 12]


def test_data_dependent_output() -> None:
    count = count_model()
    for m in (5, 0, 3, 5):
        seen, iota = count.execute(np.array([m, 1, 1], np.int64))
        assert iota.to_numpy().tolist() == list(range(m))
        assert seen.to_numpy().tolist() == [3, 2 * m, m]


def test_computed_dim_must_not_be_negative() -> None:
    assert raised(ExecutionError, lambda: count_model().execute(np.array([-2]))) == (
        "model 'g': symbolic dimension 'm' is computed as -2; sizes must not be negative"
    )


def test_computed_dim_must_agree_with_the_inputs() -> None:
    buffers = [
        spec(INPUT, 0, "sizes", i64, ["m"]),
        spec(INTERMEDIATE, 0, "t", i64, ["m"]),
        spec(OUTPUT, 0, "y", i64, ["m"]),
    ]
    same = model(COUNT, buffers, [Segment("measure", ("m",))])
    assert same.execute(np.array([2, 0]))[0].shape == (2,)
    assert raised(ExecutionError, lambda: same.execute(np.array([5, 0]))) == (
        "model 'g': symbolic dimension 'm' is 2 on axis 0 of input 0 ('sizes') but 5 as computed from the inputs' "
        "values; the two must be equal"
    )


def test_computed_dim_too_large_for_memory() -> None:
    count = count_model()
    assert raised(ExecutionError, lambda: count.execute(np.array([2**62]))) == (
        f"model 'g': intermediate 'twice' would have shape [{2**63}] ([2*m]) of int64, more than 2**63 bytes"
    )
    assert raised(MemoryError, lambda: count.execute(np.array([2**54]))) == (
        f"model 'g': the intermediate results need {2**58} bytes, and the system refuses them"
    )


def test_output_too_large_for_memory() -> None:
    n = Dim("n")
    power = shape_model([["n"]], [n * 2**40])
    assert raised(MemoryError, lambda: power.execute(np.zeros(2**10, np.float32))) == (
        f"model 'g': output 0 ('y') of shape [{2**50}] needs {2**52} bytes, and the system refuses them"
    )
    huge = shape_model([["n"]], [n * 2**40, n * 2**40])
    assert raised(ExecutionError, lambda: huge.execute(floats(1, 2))) == (
        "model 'g': output 0 ('y') would have shape [2199023255552, 2199023255552] ([1099511627776*n, "
        "1099511627776*n]) of float32, more than 2**63 bytes"
    )


def test_algebraic_output_shapes() -> None:
    n, m = Dim("n"), Dim("m")
    algebra = shape_model([["n", "m"]], [n - m, (n + 1) // m, 7])
    assert algebra.execute(np.zeros((8, 3), np.float32))[0].shape == (5, 3, 7)
    assert raised(ExecutionError, lambda: algebra.execute(np.zeros((2, 3), np.float32))) == (
        "model 'g': axis 0 of output 0 ('y') has size 'n - m', which is -1 where m = 3, n = 2; "
        "sizes must not be negative"
    )
    assert raised(ExecutionError, lambda: algebra.execute(np.zeros((2, 0), np.float32))) == (
        "model 'g': axis 1 of output 0 ('y') has size '(n + 1) // m', a division by 0 where m = 0, n = 2"
    )


def test_failing_check() -> None:
    launches = ((), (CheckSite("other", "not this"), CheckSite("clip", "x[0] is {}, below {}; {} stays")))
    buffers = [spec(INPUT, 0, "x", i64, [1]), spec(OUTPUT, 0, "y", i64, [1])]
    checked = model(CHECKED, buffers, [Segment("checked", ())], launches)
    with pytest.raises(ExecutionError) as error:
        checked.execute(np.array([-4]))
    assert str(error.value) == "model 'g': x[0] is -4, below 0; 0 stays (kernel 'clip', program 7)"
    assert (error.value.kernel, error.value.program, error.value.values) == ("clip", 7, (-4, 0, 0))
    assert isinstance(error.value, ValueError)
    # a failure leaves nothing behind
    assert checked.execute(np.array([4]))[0].to_numpy().tolist() == [4]


def test_number_of_arguments() -> None:
    add = add_model()
    assert raised(GraphTypeError, lambda: add.execute(X)) == "model 'g' takes 2 inputs (x, y), got 1"
    assert raised(GraphTypeError, lambda: add(X, X, X)) == "model 'g' takes 2 inputs (x, y), got 3"


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        (
            np.zeros(3),
            "must be float32 [n], got float64 [3]; halfulp never converts types unasked, use x.astype(...)",
        ),
        (
            Buffer(i64, (3,)),
            "must be float32 [n], got int64 [3]; halfulp never converts types unasked, use x.astype(...)",
        ),
        ([1.0], "must be a Buffer or an array, not list; make one with np.asarray(x, dtype=...)"),
        (1.0, "must be a Buffer or an array, not float; make one with np.asarray(x, dtype=...)"),
        (None, "must be a Buffer or an array, not NoneType; make one with np.asarray(x, dtype=...)"),
        (np.ma.masked_array(X), "is a masked array and masks have no place to go; pass x.filled(value)"),
        (
            np.array(["a"]),
            "has dtype <U1, which is not an element type; convert it to one of bool, int8, int16, int32, int64, uint8, "
            "uint16, uint32, uint64, float16, bfloat16, float32, float64",
        ),
    ],
)
def test_argument_of_the_wrong_type(argument: object, text: str) -> None:
    assert raised(GraphTypeError, lambda: add_model().execute(X, argument)) == f"model 'g': input 1 ('y') {text}"


def test_argument_on_another_device() -> None:
    elsewhere = wrap(X, f32, Device(DeviceRef.GPU(1)))
    assert raised(GraphTypeError, lambda: add_model().execute(elsewhere, X)) == (
        "model 'g': input 0 ('x') must be on cpu, got a buffer on gpu:1; move it with .to(CPU())"
    )


def test_rank_and_static_size() -> None:
    fixed = shape_model([["n", 4]], ["n"])
    assert raised(ExecutionError, lambda: fixed.execute(X)) == (
        "model 'g': input 0 ('x0') must have rank 2, shape [n, 4]; got rank 1, shape [3]"
    )
    assert raised(ExecutionError, lambda: fixed.execute(np.zeros((2, 5), np.float32))) == (
        "model 'g': input 0 ('x0') must have size 4 on axis 1, shape [n, 4]; got size 5, shape [2, 5]"
    )


def test_symbolic_dims_must_agree() -> None:
    two = shape_model([["n", "n"], ["k", "n"]], ["n"])
    assert two.execute(np.zeros((2, 2), np.float32), np.zeros((9, 2), np.float32))[0].shape == (2,)
    assert raised(ExecutionError, lambda: two.execute(np.zeros((2, 2), np.float32), np.zeros((9, 3), np.float32))) == (
        "model 'g': symbolic dimension 'n' is 2 on axis 0 of input 0 ('x0') but 3 on axis 1 of input 1 ('x1'); "
        "the two must be equal"
    )
    assert raised(ExecutionError, lambda: two.execute(np.zeros((2, 3), np.float32), np.zeros((9, 3), np.float32))) == (
        "model 'g': symbolic dimension 'n' is 2 on axis 0 of input 0 ('x0') but 3 on axis 1 of input 0 ('x0'); "
        "the two must be equal"
    )


def test_call_by_name() -> None:
    add = add_model()
    assert add(y=floats(5), x=floats(1))[0].item() == 6
    assert add(floats(1), y=floats(5))[0].item() == 6
    assert raised(GraphTypeError, lambda: add(X, x=X)) == (
        "model 'g': input 'x' is given twice, by position and by name"
    )
    assert raised(GraphTypeError, lambda: add(X, z=X)) == "model 'g' has no input 'z'; its inputs are 'x', 'y'"
    assert raised(GraphTypeError, lambda: add(y=X)) == "model 'g' got no value for 'x'"
    assert raised(GraphTypeError, lambda: add(X, X, X, y=X)) == "model 'g' takes 2 inputs (x, y), got 3"


def test_metadata() -> None:
    n = Dim("n")
    some = shape_model([["n", 4]], [2 * n, 3])
    (x,), (y,) = some.input_metadata, some.output_metadata
    assert (x.name, x.dtype, x.shape, x.dims) == ("x0", f32, (None, 4), (n, Dim(4)))
    assert (y.name, y.dtype, y.shape, y.dims) == ("y", f32, (None, 3), (2 * n, Dim(3)))
    assert some.name == "g"
    assert some.options == CompileOptions(fp_contract="off")
    assert repr(some) == "Model(g: (x0: float32 [n, 4]) -> (float32 [2*n, 3]))"


def weighted_model(weights: dict[str, Any]) -> Model:
    """x + w, of size 2."""
    other = spec(WEIGHT, 0, "w", f32, [2])
    return model(
        ADD,
        [spec(INPUT, 0, "x", f32, [2]), other, spec(OUTPUT, 0, "y", f32, [2])],
        [Segment("add", ())],
        weights=weights,
    )


def test_weights_are_read_in_place() -> None:
    w = floats(10, 20)
    for registered in (w, Buffer.from_numpy(w), np.repeat(w, 2)[::2], w.astype(">f4"), read_only(w)):
        assert weighted_model({"w": registered}).execute(floats(1, 2))[0].to_numpy().tolist() == [11, 22]
    shared = weighted_model({"w": w})
    w[0] = 50
    assert shared.execute(floats(1, 2))[0].to_numpy().tolist() == [51, 22]


def test_constants() -> None:
    data = floats(10, 20).tobytes()
    buffers = [spec(INPUT, 0, "x", f32, [2]), spec(CONSTANT, 0, "c", f32, [2], data), spec(OUTPUT, 0, "y", f32, [2])]
    assert model(ADD, buffers, [Segment("add", ())]).execute(floats(1, 2))[0].to_numpy().tolist() == [11, 22]


def test_threads_share_a_model() -> None:
    count, add = count_model(), add_model()
    errors: list[BaseException] = []
    barrier = threading.Barrier(4)

    def work(seed: int) -> None:
        try:
            barrier.wait()
            for i in range(300):
                m = (i * 7 + seed) % 50
                x = np.full(m, seed, np.float32)
                assert add(x, x)[0].to_numpy().tolist() == [2 * seed] * m
                assert count(np.array([m]))[1].to_numpy().tolist() == list(range(m))
                with pytest.raises(ExecutionError, match="is computed as -1"):
                    count(np.array([-1]))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_model_is_freed_with_its_last_reference() -> None:
    add = add_model()
    add(X, X)
    gone = weakref.ref(add)
    gc.disable()
    try:
        del add
        assert gone() is None
    finally:
        gc.enable()
