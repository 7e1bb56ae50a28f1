"""Shapes, sizes and axes that are none: the message names the op, its argument and the user's line, word for word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from halfulp import ops
from halfulp.compiler import DType, Graph, GraphError, GraphTypeError, HalfulpError, TensorType, TensorValue

Build = Callable[[TensorValue], Any]
WRONG: Any = ops  # what is wrong on purpose is no matter of types
NO_SHAPE = "a shape must be a sequence of ints, names and dims, not"

CASES: list[tuple[str, Any, type[HalfulpError], str]] = [
    (
        "permute_number",
        lambda x: WRONG.permute(x, 1),
        GraphTypeError,
        "ops.permute: axes must be a sequence of ints, not 1; write [1]",
    ),
    (
        "permute_text",
        lambda x: WRONG.permute(x, "ab"),
        GraphTypeError,
        "ops.permute: axes must be a sequence of ints, not 'ab'; write ['ab']",
    ),
    (
        "reshape_none",
        lambda x: WRONG.reshape(x, None),
        GraphTypeError,
        f"ops.reshape: shape: {NO_SHAPE} None; write [None]",
    ),
    (
        "reshape_float",
        lambda x: WRONG.reshape(x, (1.5, -1)),
        GraphTypeError,
        "ops.reshape: shape: a dim must be an int, a symbol's name or a Dim, not 1.5",
    ),
    (
        "reshape_negative",
        lambda x: WRONG.reshape(x, (-2,)),
        GraphError,
        "ops.reshape: shape: size -2 of axis 0 must be between 0 and 2**63 - 1",
    ),
    (
        "broadcast_number",
        lambda x: WRONG.broadcast_to(x, 5),
        GraphTypeError,
        f"ops.broadcast_to: shape: {NO_SHAPE} 5; write [5]",
    ),
    ("rebind_number", lambda x: WRONG.rebind(x, 4), GraphTypeError, f"ops.rebind: shape: {NO_SHAPE} 4; write [4]"),
    (
        "split_none",
        lambda x: WRONG.split(x, None, 1),
        GraphTypeError,
        f"ops.split: split_sizes: {NO_SHAPE} None; write [None]",
    ),
    (
        "split_negative",
        lambda x: WRONG.split(x, [-1, 5], 1),
        GraphError,
        "ops.split: split_sizes: size -1 of axis 0 must be between 0 and 2**63 - 1",
    ),
    ("tile_number", lambda x: WRONG.tile(x, 3), GraphTypeError, f"ops.tile: repeats: {NO_SHAPE} 3; write [3]"),
    (
        "tile_negative",
        lambda x: WRONG.tile(x, [1, -1]),
        GraphError,
        "ops.tile: repeats: size -1 of axis 1 must be between 0 and 2**63 - 1",
    ),
    ("pad_none", lambda x: WRONG.pad(x, None), GraphTypeError, f"ops.pad: paddings: {NO_SHAPE} None; write [None]"),
    (
        "repeat_negative",
        lambda x: WRONG.repeat_interleave(x, -1, 0),
        GraphError,
        "ops.repeat_interleave: repeats must not be negative, but is -1",
    ),
    (
        "repeat_float",
        lambda x: WRONG.repeat_interleave(x, 1.5, 0),
        GraphTypeError,
        "ops.repeat_interleave: repeats: a dim must be an int, a symbol's name or a Dim, not 1.5",
    ),
    (
        "resize_number",
        lambda x: WRONG.resize_linear(x, 3),
        GraphTypeError,
        f"ops.resize_linear: size: {NO_SHAPE} 3; write [3]",
    ),
    (
        "shape_number",
        lambda x: WRONG.shape_to_tensor(3),
        GraphTypeError,
        f"ops.shape_to_tensor: shape: {NO_SHAPE} 3; write [3]",
    ),
]


@pytest.mark.parametrize(("build", "kind", "message"), [pytest.param(*c[1:], id=c[0]) for c in CASES])
def test_error(build: Build, kind: type[HalfulpError], message: str) -> None:
    with Graph("g", input_types=[TensorType(DType.float32, ["n", 4])]) as graph:
        with pytest.raises(kind) as caught:
            build(graph.inputs[0])
        graph.output(graph.inputs[0])
    assert type(caught.value) is kind
    assert caught.value.message == message
    assert caught.value.location is not None
    assert caught.value.location.filename == __file__
