"""Memory of the caller's that a graph reads and changes: order, what the caller sees, and errors, word for word."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler import (
    BufferType,
    BufferValue,
    DeviceRef,
    DType,
    Graph,
    GraphError,
    GraphTypeError,
    HalfulpError,
    NotFoundError,
    TensorType,
    TensorValue,
    Weight,
)
from halfulp.compiler.registry import KernelDef, OperandSpec, OutputSpec, register_kernel, unregister_kernel
from halfulp.compiler.tile_builder import EntryBuilder, KernelBuilder, Value
from halfulp.runtime import Buffer, InferenceSession
from halfulp.runtime.errors import ExecutionError

F32, I64, BOOL = DType.float32, DType.int64, DType.bool
CPU = DeviceRef.CPU()
CACHE, VECTOR = BufferType(F32, ["n"]), TensorType(F32, ["n"])
X = np.array([1.0, 2.0, 3.0], np.float32)


def build_axpy(entry: EntryBuilder, call: Any, operands: Sequence[Value], outputs: Sequence[Value]) -> None:
    """``cache += 2 * x``; the first element that was there is the output."""

    def body(k: KernelBuilder) -> None:
        cache, x, first = k.arguments
        k.write(k.read(cache, 0), first, 0)

        def element(index: Value) -> None:
            k.write(k.read(cache, index) + 2 * k.read(x, index), cache, index)

        k.for_loop(0, k.dim(x, 0), [], element)

    entry.launch("axpy", [*operands, *outputs], [entry.index(1)], body, axes=["ordered"])


@pytest.fixture(autouse=True)
def axpy() -> Iterator[None]:
    operands = (OperandSpec("cache", F32, ("n",), mutable=True), OperandSpec("x", F32, ("n",)))
    register_kernel(KernelDef("axpy", operands, (OutputSpec("first", F32, (1,)),), build_axpy))
    yield
    unregister_kernel("axpy")


def model_of(forward: Callable[..., Any], *types: TensorType, **load: Any) -> Any:
    return InferenceSession().load(Graph("g", forward, types), **load)


def call_axpy(cache: Any, x: Any) -> TensorValue:
    (first,) = ops.inplace_custom("axpy", CPU, [cache, x], [TensorType(F32, [1])])
    return first


def test_loads_stores_and_kernels_run_in_the_order_of_the_program() -> None:
    """Whatever is fused: ops before a change see the old contents, ops after it the new ones."""

    def forward(cache: BufferValue, x: TensorValue) -> list[TensorValue]:
        old = ops.exp(cache[...])
        cache[...] = x * 10
        between = cache[...] + old
        first = call_axpy(cache, x)
        return [old, between, first, cache[1:] - between[1:], cache.buffer[...]]

    memory = X.copy()
    old, between, first, difference, last = (
        buffer.to_numpy() for buffer in model_of(forward, CACHE, VECTOR).execute(memory, X)
    )
    assert np.allclose(old, np.exp(X))
    assert np.array_equal(between, X * 10 + old)
    assert first == 10
    assert np.array_equal(last, X * 12)
    assert np.array_equal(difference, (X * 12 - between)[1:])
    assert np.array_equal(memory, X * 12)


def test_the_memory_of_a_buffer_object_changes_too() -> None:
    def forward(cache: BufferValue) -> TensorValue:
        value = cache[...]
        cache[...] = value + 1
        return value

    model = model_of(forward, CACHE)
    buffer = Buffer.from_numpy(X.copy())
    for count in range(3):
        (old,) = model.execute(buffer)
        assert np.array_equal(old.to_numpy(), X + count)
        assert np.array_equal(buffer.to_numpy(), X + count + 1)


def test_branches_and_loops_change_a_buffer_where_they_run() -> None:
    def forward(cache: BufferValue, x: TensorValue, n: TensorValue) -> list[TensorValue]:
        def body(i: TensorValue, seen: TensorValue) -> list[TensorValue]:
            def twice() -> None:
                call_axpy(cache, x)
                call_axpy(cache, cache[...])

            def reset() -> None:
                cache[...] = 1.0 * x

            ops.cond(ops.equal(i % 2, 0), None, twice, reset)
            return [i + 1, seen + cache[...]]

        return ops.while_loop([ops.constant(0, I64), x], lambda i, _: i < n, body)

    model = model_of(forward, CACHE, VECTOR, TensorType(I64, []))
    for rounds in range(5):
        memory, cache, seen = X * 5, X * 5, X.copy()
        for i in range(rounds):
            cache = (cache + 2 * X) * 3 if i % 2 == 0 else X
            seen = seen + cache
        _, got = model.execute(memory, X, np.array(rounds))
        assert np.array_equal(got.to_numpy(), seen)
        assert np.array_equal(memory, cache)


def test_a_print_shows_what_a_buffer_held_there(capsys: pytest.CaptureFixture[str]) -> None:
    def forward(cache: BufferValue) -> TensorValue:
        cache[...].print("before")
        cache[...] = np.array([7, 8, 9], np.float32)
        cache[...].print("after")
        return cache[...]

    model_of(forward, BufferType(F32, [3])).execute(X.copy())
    shown = capsys.readouterr().out.replace(".0000", "")
    assert "before = tensor([[1, 2, 3]]" in shown
    assert "after = tensor([[7, 8, 9]]" in shown
    assert shown.index("before") < shown.index("after")


def test_a_called_graph_changes_the_buffer_that_it_is_given() -> None:
    def part(cache: BufferValue, x: TensorValue) -> TensorValue:
        call_axpy(cache, x)
        cache[...] = cache[...] + 1
        return cache[...]

    called = Graph("part", part, [BufferType(F32, ["k"]), TensorType(F32, ["k"])])

    def forward(cache: BufferValue, x: TensorValue) -> list[TensorValue]:
        return [*ops.call(called, cache, x), *ops.call(called, cache, x)]

    memory = X * 0
    once, twice = (b.to_numpy() for b in model_of(forward, CACHE, VECTOR).execute(memory, X))
    assert np.array_equal(once, 2 * X + 1)
    assert np.array_equal(twice, 4 * X + 2)
    assert np.array_equal(memory, twice)


def test_sizes_come_from_buffers_too_and_scalars_have_none() -> None:
    def forward(cache: BufferValue, total: BufferValue) -> TensorValue:
        total[...] = total[...] + ops.sum(cache[...]).reshape(())
        return ops.broadcast_to(total[...], cache.shape)

    total = np.array(10, np.float32)
    (result,) = model_of(forward, CACHE, BufferType(F32, [])).execute(X.copy(), total)
    assert result.to_numpy().tolist() == [16, 16, 16]
    assert total == 16


def test_a_saved_model_still_changes_its_input(tmp_path: Any) -> None:
    def forward(cache: BufferValue) -> None:
        cache[...] = cache[...] * 2
        Graph.current().output()

    model_of(forward, CACHE).save(tmp_path / "model.bin")
    memory = X.copy()
    InferenceSession().load_compiled(tmp_path / "model.bin").execute(memory)
    assert np.array_equal(memory, X * 2)


# -- errors


Case = tuple[str, list[TensorType], Callable[..., Any], type[HalfulpError], str]

CASES: list[Case] = [
    (
        "unknown_kernel",
        [CACHE],
        lambda cache: ops.inplace_custom("axpi", CPU, [cache]),
        NotFoundError,
        "ops.inplace_custom('axpi'): no kernel is registered under that name; did you mean 'axpy'?",
    ),
    (
        "tensor_for_buffer",
        [VECTOR, CACHE],
        lambda x, cache: ops.inplace_custom("axpy", CPU, [x, cache], [TensorType(F32, [1])]),
        GraphTypeError,
        "ops.inplace_custom('axpy'): operand 'cache' is changed by the kernel, so it must be a buffer, not a tensor; "
        "make it an input of the graph of type BufferType",
    ),
    (
        "buffer_for_tensor",
        [CACHE, CACHE],
        lambda a, b: ops.inplace_custom("axpy", CPU, [a, b], [TensorType(F32, [1])]),
        GraphTypeError,
        "ops.inplace_custom('axpy'): operand 'x' must be a tensor, not a buffer; load it with ops.buffer_load",
    ),
    (
        "one_buffer_twice",
        [CACHE],
        lambda cache: ops.inplace_custom("axpy", CPU, [cache, cache], [TensorType(F32, [1])]),
        GraphError,
        "ops.inplace_custom('axpy'): one buffer stands for two operands; a kernel takes each once",
    ),
    (
        "no_buffer",
        [VECTOR],
        lambda x: ops.inplace_custom("axpy", CPU, [x, x], [TensorType(F32, [1])]),
        GraphError,
        "ops.inplace_custom('axpy'): no operand is a buffer, so it changes nothing; call it by ops.custom",
    ),
    (
        "custom_of_a_mutable_kernel",
        [VECTOR],
        lambda x: ops.custom("axpy", CPU, [x, x], [TensorType(F32, [1])]),
        GraphTypeError,
        "ops.custom('axpy'): operand 'cache' is changed by the kernel, so it must be a buffer, not a tensor; "
        "make it an input of the graph of type BufferType",
    ),
    (
        "op_on_a_buffer",
        [CACHE],
        lambda cache: ops.concat([cache, cache]),
        GraphTypeError,
        "ops.concat: operand 'part 0' must be a TensorValue, not BufferValue(dtype=float32, shape=[n], device=cpu); "
        "load it with ops.buffer_load",
    ),
    (
        "store_shape",
        [CACHE, TensorType(F32, ["m"])],
        lambda cache, x: ops.buffer_store(cache, x),
        GraphError,
        "ops.buffer_store: operand 'source' is float32 [m] on cpu, but operand 'destination' is float32 [n] on cpu; "
        "reshape, broadcast or rebind it, or move it with .to()",
    ),
    (
        "store_dtype",
        [CACHE, TensorType(I64, ["n"])],
        lambda cache, x: ops.buffer_store(cache, x),
        GraphTypeError,
        "ops.buffer_store: operand 'source' is int64 [n] on cpu, but operand 'destination' is float32 [n] on cpu; "
        "cast it",
    ),
    (
        "store_to_a_tensor",
        [VECTOR],
        lambda x: ops.buffer_store(x, x),
        GraphTypeError,
        "ops.buffer_store: operand 'destination' must be a BufferValue, not TensorValue(dtype=float32, shape=[n], "
        "device=cpu); make it an input of the graph of type BufferType",
    ),
    (
        "load_of_a_tensor",
        [VECTOR],
        ops.buffer_load,
        GraphTypeError,
        "ops.buffer_load: operand 'buffer' must be a BufferValue, not TensorValue(dtype=float32, shape=[n], "
        "device=cpu); make it an input of the graph of type BufferType",
    ),
    (
        "store_to_a_part",
        [CACHE],
        lambda cache: cache.__setitem__(0, 1.0),
        GraphError,
        "BufferValue(dtype=float32, shape=[n], device=cpu): only all of it can be stored to, not 0; "
        "write buffer[...] = value",
    ),
    (
        "output",
        [CACHE],
        lambda cache: Graph.current().output(cache),
        GraphTypeError,
        "graph 'g': output 0 must be a TensorValue or a Weight, not BufferValue(dtype=float32, shape=[n], device=cpu); "
        "load it with ops.buffer_load",
    ),
    (
        "carried",
        [CACHE],
        lambda cache: ops.while_loop(cache, lambda c: True, lambda c: c),
        GraphTypeError,
        "ops.while_loop: operand 'initial_values[0]' must be a TensorValue, not BufferValue(dtype=float32, shape=[n], "
        "device=cpu); load it with ops.buffer_load",
    ),
]


@pytest.mark.parametrize(("types", "build", "error", "message"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_wrong_calls(types: list[TensorType], build: Any, error: type[HalfulpError], message: str) -> None:
    with Graph("g", input_types=types) as graph, pytest.raises(error) as caught:
        build(*graph.inputs)
    assert type(caught.value) is error
    assert caught.value.message.partition(" Registered: ")[0] == message
    assert caught.value.location is not None
    assert caught.value.location.filename == __file__


def test_memory_that_cannot_be_written_in_place_is_refused() -> None:
    def forward(cache: BufferValue) -> TensorValue:
        cache[...] = cache[...] + 1
        return cache[...]

    model = model_of(forward, CACHE)
    subject = "model 'g': input 0 ('cache')"
    read_only = X.copy()
    read_only.flags.writeable = False
    spread = np.zeros(6, np.float32)[::2]
    remedy = "; pass a Buffer or a writable array"
    for given, fault in (
        (read_only, "it is read-only"),
        (spread, "its elements do not lie one behind the other, aligned and in native byte order"),
    ):
        with pytest.raises(GraphTypeError) as caught:
            model.execute(given)
        assert str(caught.value) == f"{subject} is changed by the model in place, but {fault}{remedy}"
    with pytest.raises(GraphTypeError, match=r"input 0 \('cache'\) must be float32 \[n\], got float64 \[3\]"):
        model.execute(X.astype(np.float64))


def test_memory_that_is_also_another_input_or_a_weight_is_refused() -> None:
    def forward(cache: BufferValue, x: TensorValue) -> TensorValue:
        cache[...] = cache[...] + x
        return cache[...] * Weight("w", F32, [1])

    weight = np.ones(1, np.float32)
    model = model_of(forward, CACHE, VECTOR, weights_registry={"w": weight})
    both = np.ones(6, np.float32)
    with pytest.raises(ExecutionError) as caught:
        model.execute(both[:4], both[2:])
    assert str(caught.value) == (
        "model 'g': input 0 ('cache') is changed by the model, but its memory is that of input 1 ('x'), too; "
        "pass a copy for one of them"
    )
    with pytest.raises(ExecutionError, match=r"its memory is that of a weight, too"):
        model.execute(weight, np.ones(1, np.float32))
    model.execute(both[:3], both[3:])
    assert both.tolist() == [2, 2, 2, 1, 1, 1]
