"""The host side of log-probabilities: what it accepts, what it refuses and in which words, and its result type."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from logprobs_adapter import api, loaded_model
from logprobs_reference import log_softmax, tolerance

from halfulp import ops
from halfulp.compiler import DeviceRef, DType, Graph, TensorType
from halfulp.compiler.errors import GraphError, GraphTypeError
from halfulp.runtime import CPU, Buffer, InferenceSession
from halfulp.runtime.pipelines import (
    LogProbabilities,
    compute_log_probabilities_ragged,
    context,
    log_probabilities,
    log_probabilities_ragged_graph,
)

F = "compute_log_probabilities_ragged()"


def arguments(**changes: Any) -> dict[str, Any]:
    """Two sequences of three and two tokens over a vocabulary of six, with echo for the first."""
    logits = np.random.default_rng(1).normal(size=(5, 6)).astype(np.float32)
    valid = {
        "levels": 3,
        "input_row_offsets": np.array([0, 3, 5], np.uint32),
        "logits": logits,
        "next_token_logits": logits[[2, 4]],
        "tokens": np.array([5, 1, 2, 0, 4], np.uint32),
        "sampled_tokens": np.array([3, 1], np.uint32),
        "batch_top_n": [2, 3],
        "batch_echo": [True, False],
    }
    return valid | changes


WRONG_VALUES: list[tuple[dict[str, Any], str]] = [
    (
        {"input_row_offsets": np.array([0, 4, 3, 5])},
        f"{F}: input_row_offsets must not descend, got 4 and then 3 at element 2",
    ),
    ({"input_row_offsets": np.array([1, 3, 5])}, f"{F}: input_row_offsets must start at 0, not at 1"),
    ({"input_row_offsets": np.array([0, 3, 6])}, f"{F}: input_row_offsets ends at 6, but there are only 5 tokens"),
    ({"input_row_offsets": np.array([], int)}, f"{F}: input_row_offsets must have at least one element, a 0, got none"),
    (
        {"input_row_offsets": np.array([[0, 3, 5]])},
        f"{F}: input_row_offsets must have rank 1, got rank 2, shape [1, 3]",
    ),
    (
        {"input_row_offsets": np.array([0, -3, 5])},
        f"{F}: input_row_offsets must not be negative, got input_row_offsets[1] = -3",
    ),
    (
        {"input_row_offsets": np.array([0, 5])},
        f"{F}: sampled_tokens must have one entry for each of the 1 sequences of input_row_offsets, got 2",
    ),
    (
        {"batch_echo": [True]},
        f"{F}: batch_echo must have one entry for each of the 2 sequences of input_row_offsets, got 1",
    ),
    (
        {"tokens": np.array([0, 1, 6, 3, 4])},
        f"{F}: tokens must be smaller than the vocabulary of 6, got tokens[2] = 6",
    ),
    ({"tokens": np.array([0, 1, -1, 3, 4])}, f"{F}: tokens must not be negative, got tokens[2] = -1"),
    (
        {"sampled_tokens": np.array([0, 2**40])},
        f"{F}: sampled_tokens must be smaller than the vocabulary of 6, got sampled_tokens[1] = 1099511627776",
    ),
    (
        {"logits": np.zeros((4, 6), np.float32)},
        f"{F}: logits must have one row for each of the 5 tokens, got shape [4, 6]",
    ),
    (
        {"next_token_logits": np.zeros((3, 6), np.float32)},
        f"{F}: next_token_logits must have one row for each of the 2 sequences, got shape [3, 6]",
    ),
    (
        {"next_token_logits": np.zeros(6, np.float32)},
        f"{F}: next_token_logits must have rank 2, (rows, vocabulary), got rank 1, shape [6]",
    ),
    (
        {"logits": None},
        f"{F}: logits may be None only if no sequence wants echo, but batch_echo[0] is True; "
        "pass the logits of all tokens",
    ),
    ({"batch_top_n": [2, -1]}, f"{F}: top_n must not be negative, got batch_top_n[1] = -1"),
    (
        {"batch_top_n": [2, 100]},
        f"{F}: top_n=100 (batch_top_n[1]) exceeds the 7 that this graph keeps; "
        "build it with log_probabilities_ragged_graph(device, levels=7)",
    ),
]

WRONG_TYPES: list[tuple[dict[str, Any], str]] = [
    ({"tokens": np.zeros(5)}, f"{F}: tokens must have an integer dtype, got float64"),
    ({"sampled_tokens": np.array([True, False])}, f"{F}: sampled_tokens must have an integer dtype, got bool"),
    (
        {"sampled_tokens": [3, 1]},
        f"{F}: sampled_tokens must be a Buffer or an array, not list; make one with np.asarray(x, dtype=...)",
    ),
    (
        {"logits": np.zeros((5, 6))},
        f"{F}: logits must be float32, got float64; convert it with .astype(np.float32)",
    ),
    (
        {"next_token_logits": Buffer(DType.float16, (2, 6))},
        f"{F}: next_token_logits must be float32, got float16; convert it with .astype(np.float32)",
    ),
    ({"batch_top_n": [2, 1.5]}, f"{F}: batch_top_n must be a sequence of ints, got [2, 1.5]"),
    ({"batch_top_n": 2}, f"{F}: batch_top_n must be a sequence of ints, got 2"),
    ({"batch_echo": [True, 0]}, f"{F}: batch_echo must be a sequence of bools, got [True, 0]"),
    ({"batch_echo": True}, f"{F}: batch_echo must be a sequence of bools, got True"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG_VALUES, ids=lambda x: next(iter(x)) if type(x) is dict else "")
def test_wrong_values_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="compute_log") as raised:
        api(**arguments(**changes))
    assert str(raised.value) == message


@pytest.mark.parametrize(("changes", "message"), WRONG_TYPES, ids=lambda x: next(iter(x)) if type(x) is dict else "")
def test_wrong_types_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as raised:
        api(**arguments(**changes))
    assert str(raised.value) == message


def test_the_device_must_be_a_device() -> None:
    valid = arguments()
    del valid["levels"]
    with pytest.raises(GraphTypeError) as raised:
        compute_log_probabilities_ragged(DeviceRef.CPU(), loaded_model(3), **valid)  # type: ignore[arg-type]
    assert str(raised.value) == f"{F}: device must be a device such as CPU(), not DeviceRef.CPU()"


def test_a_model_of_another_graph_is_refused() -> None:
    """Even one that computes the same, under another name or with other inputs."""
    device = DeviceRef.CPU()
    inputs = [TensorType(DType.float32, ["rows", "vocab"], device)]
    with Graph("log_probabilities_ragged", input_types=inputs) as graph:
        graph.output(graph.inputs[0])
    valid = arguments()
    del valid["levels"]
    with pytest.raises(ValueError, match="model must be made from") as raised:
        compute_log_probabilities_ragged(CPU(), InferenceSession(devices=[CPU()]).load(graph), **valid)
    assert str(raised.value) == (
        f"{F}: model must be made from log_probabilities_ragged_graph(), not from graph 'log_probabilities_ragged'; "
        "load it with session.load(log_probabilities_ragged_graph(device, levels=...))"
    )
    with pytest.raises(TypeError, match="model must be a loaded Model, not Graph"):
        compute_log_probabilities_ragged(CPU(), graph, **valid)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, ">i4"])
def test_any_integer_type_will_do(dtype: Any) -> None:
    names = ("input_row_offsets", "tokens", "sampled_tokens")
    valid = arguments()
    assert api(**(valid | {name: valid[name].astype(dtype) for name in names})) == api(**valid)


def test_strided_and_read_only_arrays_give_the_same() -> None:
    valid = arguments()
    changed = dict(valid)
    for name in ("logits", "next_token_logits", "tokens", "sampled_tokens", "input_row_offsets"):
        wide = np.zeros([2 * size for size in valid[name].shape], valid[name].dtype)
        strided = wide[tuple(slice(None, None, 2) for _ in wide.shape)]
        strided[...] = valid[name]
        strided.flags.writeable = False
        changed[name] = strided
    assert api(**changed) == api(**valid)


def test_logits_may_be_a_buffer_or_fortran_ordered() -> None:
    valid = arguments()
    assert api(**(valid | {"logits": Buffer.from_numpy(valid["logits"])})) == api(**valid)
    assert api(**(valid | {"logits": np.asfortranarray(valid["logits"])})) == api(**valid)


def test_inputs_are_not_written() -> None:
    valid = arguments()
    copies = {name: value.copy() for name, value in valid.items() if isinstance(value, np.ndarray)}
    api(**valid)
    for name, copy in copies.items():
        np.testing.assert_array_equal(valid[name], copy)


def test_echo_scores_each_following_token_and_then_the_sampled_one() -> None:
    valid = arguments()
    first, second = api(**valid)
    assert first is not None
    assert second is not None
    assert (first.sampled_token_ids, second.sampled_token_ids) == ([1, 2, 3], [1])
    row = valid["logits"][4]
    assert math.isclose(second.token_log_probabilities[0], log_softmax(row)[1], abs_tol=tolerance(row))


def test_limits_concern_sequences_with_rows_only() -> None:
    """An empty sequence with echo has nothing to look up, so any top_n will do."""
    changes = {"input_row_offsets": np.array([0, 5, 5]), "batch_echo": [True, True], "batch_top_n": [1, 99]}
    result = api(**arguments(**changes))[1]
    assert result == LogProbabilities([], [], [])


def test_an_empty_batch_gives_an_empty_list() -> None:
    empty = np.zeros(0, np.uint32)
    logits = np.zeros((0, 6), np.float32)
    operands = {"tokens": empty, "sampled_tokens": empty, "logits": None, "next_token_logits": logits}
    batch = {"input_row_offsets": np.zeros(1, int), "batch_top_n": [], "batch_echo": []}
    assert api(**arguments(**operands, **batch)) == []


def test_the_largest_top_n_follows_from_the_levels() -> None:
    assert log_probabilities._LOGPROBS_HEAP_LEVELS == 3
    assert log_probabilities._MAX_TOP_LOGPROBS == 7


def test_the_graph_has_the_dims_that_users_know() -> None:
    model = loaded_model(2)
    dims = [[str(dim) for dim in metadata.dims] for metadata in (*model.input_metadata, *model.output_metadata)]
    assert dims == [
        ["bseq_or_b", "vocab"],
        ["batch_seq"],
        ["batch"],
        *[["batchp1"]] * 4,
        ["out_batch_seq", "4"],
        ["out_batch_seq2", "4"],
    ]


def test_both_outputs_may_share_a_symbol() -> None:
    device = DeviceRef.CPU()
    inputs = log_probabilities._input_types(device)
    outputs = [TensorType(dtype, ["rows", 8], device) for dtype in (DType.float32, DType.uint32)]
    with Graph("shared", input_types=inputs) as graph:
        graph.output(*ops.custom("compute_log_probabilities_ragged", device, graph.inputs, outputs, {"levels": 3}))
    offsets = np.array([0, 2], np.uint32)
    logits = np.arange(12, dtype=np.float32).reshape(2, 6)
    tokens, sampled = np.array([4, 1], np.uint32), np.array([2], np.uint32)
    operands = (logits, tokens, sampled, offsets, offsets, offsets, offsets)
    shared = InferenceSession(devices=[CPU()]).load(graph).execute(*operands)
    apart = loaded_model(3).execute(*operands)
    for left, right in zip(shared, apart, strict=True):
        assert left.shape == (2, 8)
        np.testing.assert_array_equal(left.to_numpy(), right.to_numpy())


@pytest.mark.parametrize("levels", [-1, 11, 64])
def test_levels_out_of_range_are_refused_at_build(levels: int) -> None:
    with pytest.raises(GraphError, match=f"levels.*{levels}"):
        log_probabilities_ragged_graph(DeviceRef.CPU(), levels=levels)


def test_levels_must_be_an_int() -> None:
    with pytest.raises(GraphTypeError, match="levels"):
        log_probabilities_ragged_graph(DeviceRef.CPU(), levels=3.0)  # type: ignore[arg-type]


def test_result_is_the_class_of_the_context() -> None:
    assert LogProbabilities is context.LogProbabilities is log_probabilities.LogProbabilities


RESULT = LogProbabilities([-0.5, -2.25], [{7: -0.5, 11: -1.0}, {3: -2.25}], [7, 3])


def test_result_round_trips_json() -> None:
    text = msgspec.json.encode(RESULT)
    assert msgspec.json.decode(text, type=LogProbabilities) == RESULT
    assert msgspec.json.decode(text)["type"] == "LogProbabilities"


def test_result_round_trips_message_pack_with_infinities() -> None:
    impossible = LogProbabilities([-math.inf], [{1: -math.inf}], [1])
    for result in (RESULT, impossible, LogProbabilities([], [], [])):
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(result), type=LogProbabilities) == result


def test_result_of_an_older_version_is_read() -> None:
    older = b'{"type":"LogProbabilities","token_log_probabilities":[-1.0],"top_log_probabilities":[{"4":-1.0}]}'
    assert msgspec.json.decode(older, type=LogProbabilities) == LogProbabilities([-1.0], [{4: -1.0}])
    assert msgspec.json.encode(LogProbabilities([-1.0], [{4: -1.0}])) == older
