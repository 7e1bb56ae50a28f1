"""Which tensors are paired, by which rule, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfulp.runtime import save_max_buffer
from halfulp.runtime.debug.alignment import Alignment, align
from halfulp.runtime.debug.fused_layouts import Part, part_sizes, parts_of
from halfulp.runtime.debug.shape_matching import shapes_fit
from halfulp.runtime.debug.tensor_folders import Dump, read_dump
from halfulp.runtime.debug.tensor_names import canonical_path, execution_key, parse_name, renamed

Array = np.ndarray[Any, Any]
Side = dict[str, Array]


def values(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def dump(folder: Path, tensors: Side, order: list[str] | None = None) -> Dump:
    folder.mkdir(parents=True)
    for name, array in tensors.items():
        np.save(folder / f"{name}.npy", array)
    if order is not None:
        (folder / "tensor_names.txt").write_text("\n".join(order) + "\n")
    return read_dump(folder)


def aligned(path: Path, torch: Side, other: Side, **options: Any) -> Alignment:
    return align(dump(path / "torch", torch), dump(path / "max", other), **options)


def pairs(found: Alignment) -> set[tuple[str, str, str]]:
    return {(match.torch.name, match.max.name, match.rule) for match in found.matches}


def left(found: Alignment) -> dict[str, str]:
    return {f"{entry.side} {entry.tensor.name}": entry.reason for entry in found.leftovers}


# -- names


@pytest.mark.parametrize(
    ("text", "path", "call", "port", "field", "run"),
    [
        ("model.layers.0-output", ("model", "layers", "0"), 1, "output", "", 1),
        ("model.layers.0-output_1", ("model", "layers", "0"), 1, "output", "1", 1),
        ("a.b-input_hidden_states", ("a", "b"), 1, "input", "hidden_states", 1),
        ("a.b(2)-output", ("a", "b"), 2, "output", "", 1),
        ("a.b(2)-output_0(3)", ("a", "b"), 2, "output", "0", 3),
        ("mlp_A_input", ("mlp_A_input",), 1, "", "", 1),
        ("x(2)", ("x",), 1, "", "", 2),
        ("well-known.weight", ("well-known", "weight"), 1, "", "", 1),
        ("", ("",), 1, "", "", 1),
        ("a\nb", ("a\nb",), 1, "", "", 1),
    ],
)
def test_parts_of_names(text: str, path: tuple[str, ...], call: int, port: str, field: str, run: int) -> None:
    name = parse_name(text)
    assert (name.path, name.call, name.port, name.field, name.run) == (path, call, port, field, run)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("model.model.layers.0.mlp", "model.layers.layers.0.mlp"),
        ("transformer.h.3.attn.c_attn", "model.layers.3.self_attn.qkv_proj"),
        ("model.language_model.layers.1.feed_forward.w2", "layers.1.mlp.down_proj"),
        ("model", "model.model"),
        ("model.embed_tokens", "tok_embeddings"),
    ],
)
def test_paths_that_mean_the_same(one: str, other: str) -> None:
    assert canonical_path(tuple(one.split("."))) == canonical_path(tuple(other.split(".")))


def test_numbers_of_layers_are_never_merged() -> None:
    assert canonical_path(("layers", "1", "1", "1")) == ("layers", "1", "1", "1")


def test_order_of_names_is_that_of_a_decoder() -> None:
    names = [
        "model-input_0", "model.embed_tokens-output", "model.layers.2-input_0", "model.layers.2.input_layernorm-output",
        "model.layers.2.self_attn.q_proj-output", "model.layers.2.self_attn-output", "model.layers.2.mlp.fc-output",
        "model.layers.2-output", "model.layers.10.input_layernorm-output", "model.norm-output", "model.lm_head-output",
        "model-output_0",
    ]  # fmt: skip
    assert sorted(sorted(names), key=execution_key) == names


def test_renamings_replace_whole_parts_of_a_path() -> None:
    assert renamed("model.h.0.hot-output", {"h": "layers"}) == "model.layers.0.hot-output"
    assert renamed("enc.0-output", {"enc.0": r"a\1"}) == r"a\1-output"
    assert renamed("mlp(2)-output", {"mlp": "ffn"}) == "ffn(2)-output"


# -- shapes


@pytest.mark.parametrize(
    ("one", "other", "integers", "fit"),
    [
        ((1, 8, 64), (8, 64), False, True),
        ((8, 1, 64), (8, 64), False, True),
        ((), (1, 1), False, True),
        ((2, 4, 64), (8, 64), False, True),
        ((2, 3, 4, 64), (6, 4, 64), False, True),
        ((2, 4), (8,), True, True),
        ((2, 4), (8,), False, False),
        ((2, 3), (3, 2), False, False),
        ((2, 4, 64), (4, 2, 64), False, False),
        ((8, 64), (1, 64), False, False),
        ((0, 3), (0,), False, False),
        ((3,), (), False, False),
    ],
)
def test_shapes_that_fit(one: tuple[int, ...], other: tuple[int, ...], integers: bool, fit: bool) -> None:
    assert shapes_fit(one, other, integers) is fit
    assert shapes_fit(other, one, integers) is fit


def test_reshaping_is_allowed_on_request_only() -> None:
    assert not shapes_fit((2, 3), (3, 2))
    assert shapes_fit((2, 3), (3, 2), allow_reshape=True)
    assert not shapes_fit((2, 3), (7,), allow_reshape=True)


# -- rules


def test_names_then_known_renamings_then_single_results(tmp_path: Path) -> None:
    a, b, c = values(2, 3), values(2, 3, seed=1), values(2, 3, seed=2)
    torch = {"same": a, "model.model.layers.0.mlp-output": b, "model.model.layers.0.self_attn-output_0": c}
    other = {"same": a, "model.layers.layers.0.mlp-output": b, "model.layers.layers.0.self_attn-output": c}
    found = aligned(tmp_path, torch, other)
    assert {rule for _, _, rule in pairs(found)} == {"name", "renamed"}
    assert len(found.matches) == 3
    assert found.leftovers == []


def test_several_results_of_a_layer_stay_apart(tmp_path: Path) -> None:
    torch = {"attn-output_0": values(2, 3), "attn-output_1": values(2, 3, seed=1)}
    found = aligned(tmp_path, torch, {"attn-output_1": values(2, 3, seed=1), "attn-output": values(2, 3)})
    assert pairs(found) == {("attn-output_0", "attn-output", "renamed"), ("attn-output_1", "attn-output_1", "name")}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("vision.encoder.blocks", "tower.layers"),
        ("gpt.stack", "model.layers"),
        ("model.layers", "runner.engine.model.layers"),
    ],
)
def test_prefixes_are_learned_from_what_the_names_share(tmp_path: Path, ours: str, theirs: str) -> None:
    torch, other = {}, {}
    for layer in range(3):
        for place, part in enumerate(("mlp.fc1", "mlp.fc2", "attn.q_proj", "attn.k_proj", "attn.v_proj")):
            array = values(4, 8, seed=10 * layer + place)
            torch[f"{ours}.{layer}.{part}-output"] = array
            other[f"{theirs}.{layer}.{part}-output"] = array + 1
    for layer in range(3):
        parts = [other.pop(f"{theirs}.{layer}.attn.{part}_proj-output") for part in "qkv"]
        other[f"{theirs}.{layer}.attn.qkv_proj-output"] = np.concatenate(parts, -1)
    found = aligned(tmp_path, torch, other)
    assert found.leftovers == []
    assert len(found.matches) == 15
    for match in found.matches:
        number = match.torch.name.removeprefix(ours).split(".")[1]
        assert match.max.name.removeprefix(theirs).split(".")[1] == number


def test_encoder_and_decoder_are_not_mixed_up(tmp_path: Path) -> None:
    torch = {f"{side}.layers.{i}.fc-output": values(4, 8, seed=i) for side in ("enc", "dec") for i in range(2)}
    found = aligned(tmp_path, torch, {f"dec.layers.{i}.fc-output": values(4, 8, seed=i) for i in range(2)})
    assert {(one, other) for one, other, rule in pairs(found) if rule != "copy"} == {
        ("dec.layers.0.fc-output", "dec.layers.0.fc-output"),
        ("dec.layers.1.fc-output", "dec.layers.1.fc-output"),
    }


def test_renamings_of_the_user_come_first(tmp_path: Path) -> None:
    torch = {"block.0.gelu-output": values(2, 4)}
    other = {"layer.0.activation_3-output": values(2, 4, seed=5), "b": values(3)}
    assert aligned(tmp_path / "a", torch, other).matches == []
    found = aligned(tmp_path / "b", torch, other, renamings={"block": "layer", "gelu": "activation_3"})
    assert pairs(found) == {("block.0.gelu-output", "layer.0.activation_3-output", "renamed")}


def test_other_argument_of_the_same_layer(tmp_path: Path) -> None:
    torch = {"layers.0-input_0": values(1, 8, 4), "layers.0-input_mask": np.ones((8, 8), bool)}
    other = {"layers.0-input_0": np.array(0, np.uint32), "layers.0-input_1": values(8, 4, seed=9)}
    found = aligned(tmp_path, torch, other)
    assert pairs(found) == {("layers.0-input_0", "layers.0-input_1", "argument")}
    assert left(found)["max layers.0-input_0"] == (
        "torch has layers.0-input_0 with shape (1, 8, 4), which belongs to layers.0-input_1"
    )


# -- fused projections


def fused_dumps(tmp_path: Path, groups: int, parts: dict[str, int], name: str, swap: bool) -> Alignment:
    arrays = {part: values(1, 6, size, seed=place) for place, (part, size) in enumerate(parts.items())}
    grouped = [array.reshape(1, 6, groups, -1) for array in arrays.values()]
    whole = np.concatenate(grouped, -1).reshape(6, -1)
    split = {f"model.layers.0.{part}-output": array for part, array in arrays.items()}
    fused = {f"model.layers.layers.0.{name}-output": whole, "x": values(2)}
    return (
        aligned(tmp_path, fused, split | {"x": values(2)})
        if swap
        else aligned(tmp_path, split | {"x": values(2)}, fused)
    )


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ({"attn.q_proj": 8, "attn.k_proj": 8, "attn.v_proj": 8}, "self_attn.Wqkv"),
        ({"attn.q_proj": 8, "attn.k_proj": 4, "attn.v_proj": 4}, "self_attn.qkv_proj"),
        ({"mlp.gate_proj": 12, "mlp.up_proj": 12}, "feed_forward.gate_up_proj"),
        ({"mlp.w1": 12, "mlp.w3": 12}, "mlp.w13"),
        ({"attn.k_proj": 6, "attn.v_proj": 6}, "attn.kv_proj"),
    ],
)
def test_fused_projections_are_split(tmp_path: Path, groups: int, parts: dict[str, int], name: str, swap: bool) -> None:
    found = fused_dumps(tmp_path, groups, parts, name, swap)
    assert found.leftovers == []
    assert len(found.matches) == len(parts) + 1
    for match in found.matches[: len(parts)]:
        part, whole = match.torch_part or match.max_part, match.torch if swap else match.max
        small = match.max if swap else match.torch
        if part is not None:
            assert part.groups == groups
            assert (part.take(whole.stored.read()) == small.stored.read()[0]).all()


def test_fused_parameters_are_split_by_rows(tmp_path: Path) -> None:
    parts = {f"layers.0.self_attn.{part}_proj.weight": values(4, 6, seed=ord(part)) for part in "qkv"}
    found = aligned(tmp_path, parts, {"layers.0.attn.qkv.weight": np.concatenate(list(parts.values()))})
    assert {str(match.max_part) for match in found.matches} == {"rows 0:4", "rows 4:8", "rows 8:12"}
    for match in found.matches:
        assert match.max_part is not None
        assert (match.max_part.take(match.max.stored.read()) == match.torch.stored.read()).all()


def test_part_of_a_fused_projection_that_is_missing(tmp_path: Path) -> None:
    torch = {"attn.q_proj-output": values(6, 8), "z": values(3)}
    found = aligned(
        tmp_path, torch, {"attn.qkv_proj-output": np.concatenate([values(6, 8), values(6, 8)], -1), "z": values(3)}
    )
    assert [str(match.max_part) for match in found.matches if match.rule == "fused"] == ["columns 0:8"]
    assert [entry.reason for entry in found.leftovers] == [
        "columns 8:12: torch has no k_proj",
        "columns 12:16: torch has no v_proj",
    ]


def test_parts_that_do_not_fill_the_whole(tmp_path: Path) -> None:
    torch = {f"attn.{part}_proj-output": values(6, 5) for part in "qkv"}
    found = aligned(tmp_path, torch, {"attn.qkv_proj-output": values(6, 16)})
    assert found.matches == []
    assert left(found)["torch attn.k_proj-output"] == (
        "max has attn.qkv_proj-output with shape (6, 16), in which (6, 5) does not fit"
    )


def test_sizes_of_parts() -> None:
    assert part_sizes(16, [8, None, None]) == [8, 4, 4]
    assert part_sizes(16, [None, None, 4]) == [8, 4, 4]
    assert part_sizes(15, [8, None, None]) is None
    assert part_sizes(8, [8, None, None]) is None
    assert part_sizes(8, [8, 4, 4]) is None


def test_equal_values_everywhere_are_taken_side_by_side() -> None:
    ones = np.ones((2, 4))
    assert parts_of(-1, [4, 4], np.ones((2, 8)), {0: ones, 1: ones}) == [Part(-1, 0, 4), Part(-1, 4, 4)]


# -- values


def test_values_pair_what_names_do_not(tmp_path: Path) -> None:
    torch = {f"a.{i}.gelu": values(4, 8, seed=i) for i in range(4)}
    other = {f"b{i}": values(4, 8, seed=i) * np.float32(1.0001) for i in (2, 0, 3, 1)}
    found = aligned(tmp_path, torch, other)
    assert pairs(found) == {(f"a.{i}.gelu", f"b{i}", "values") for i in range(4)}


def test_values_pair_where_batch_and_sequence_are_one_axis(tmp_path: Path) -> None:
    torch = {f"m.{i}.gelu": values(2, 5, 8, seed=i) for i in range(3)}
    other = {f"n.{i}.act3": values(2, 5, 8, seed=i).reshape(10, 8).astype(ml_dtypes.bfloat16) for i in range(3)}
    for folder in ("torch", "max"):
        (tmp_path / folder).mkdir()
    for name, array in torch.items():
        np.save(tmp_path / "torch" / f"{name}.npy", array)
    for name, narrow in other.items():
        save_max_buffer(tmp_path / "max" / f"{name}.max", narrow, name)
    found = align(read_dump(tmp_path / "torch"), read_dump(tmp_path / "max"))
    assert pairs(found) == {(f"m.{i}.gelu", f"n.{i}.act3", "values") for i in range(3)}


def test_far_values_do_not_pair_and_small_tensors_mean_nothing(tmp_path: Path) -> None:
    torch = {"a": values(4, 8), "b": np.ones((4, 8)), "c": np.array([1.0, 2.0, 3.0])}
    other = {"d": values(4, 8) * 2, "e": np.ones((4, 8)), "f": np.array([1.0, 2.0, 3.0])}
    found = aligned(tmp_path, torch, other)
    assert found.matches == []
    assert left(found)["torch a"] == "max has no tensor of a layer like 'a', and none of its shape and values"


def test_same_values_twice_pair_in_order(tmp_path: Path) -> None:
    array = values(4, 8)
    ours, theirs = ["first", "second", "third"], ["z1", "y2", "x3"]
    torch = dump(tmp_path / "torch", dict.fromkeys(ours, array), ours)
    found = align(torch, dump(tmp_path / "max", dict.fromkeys(theirs, array), theirs))
    assert [(match.torch.name, match.max.name) for match in found.matches] == list(zip(ours, theirs, strict=True))


def test_copies_have_the_partner_of_what_they_are_copies_of(tmp_path: Path) -> None:
    torch = {"norm-output": values(1, 8, 4), "mlp.gate_proj-input_0": values(1, 8, 4)}
    found = aligned(tmp_path, torch, {"norm-output": values(8, 4) + 1})
    assert pairs(found) == {
        ("norm-output", "norm-output", "name"),
        ("mlp.gate_proj-input_0", "norm-output", "copy"),
    }
    assert [match.copied for match in found.matches if match.rule == "copy"] == ["norm-output"]


# -- what is left


def test_reasons(tmp_path: Path) -> None:
    hidden = values(1, 8, 4)
    torch = {
        "norm-output": hidden,
        "head-output": values(3, 2),
        "odd-output": values(2, 5),
        "layer.fc-output": values(2, 2),
        "attn-input_0": values(7),
        "sampler-output": values(5),
        "first-output": hidden,
    }
    other = {
        "norm-output": hidden[0, -1:],
        "head-output": values(2, 3),
        "odd-output": values(3, 5, seed=1),
        "layer.fc.inner-output": values(9),
        "attn-output": values(6),
        "first-output": hidden[0, :2],
    }
    found = left(aligned(tmp_path, torch, other))
    assert found["torch norm-output"] == "max has norm-output with shape (1, 4): only the last row of 8"
    assert found["max norm-output"] == (
        "torch has norm-output with shape (1, 8, 4): this one has only the last row of its 8"
    )
    assert found["torch first-output"] == "max has first-output with shape (2, 4): only the first 2 rows of 8"
    assert found["torch head-output"] == "max has head-output with shape (2, 3), the transpose of (3, 2)"
    assert found["torch odd-output"] == "max has odd-output with shape (3, 5): 3 rows, and this one has 2"
    assert found["torch layer.fc-output"] == ("max has parts of layer 'layer.fc', but nothing of the layer itself")
    assert found["torch attn-input_0"] == "max has no input of this layer, only attn-output"
    assert found["torch sampler-output"] == (
        "max has no tensor of a layer like 'sampler', and none of its shape and values"
    )


def test_last_row_of_each_sequence_is_recognised(tmp_path: Path) -> None:
    logits = values(2, 5, 9)
    found = left(aligned(tmp_path, {"lm_head-output": logits}, {"lm_head-output": logits[:, -1], "x": values(3)}))
    assert found["torch lm_head-output"] == (
        "max has lm_head-output with shape (2, 9): only the last row of every 5 of 10"
    )


def test_reshaping_that_would_help_is_named(tmp_path: Path) -> None:
    torch, other = {"a": values(4, 6), "b": values(2)}, {"a": values(24), "b": values(2)}
    assert left(aligned(tmp_path / "a", torch, other))["torch a"] == (
        "max has a with shape (24,), and this one has (4, 6); --allow-reshape would compare them"
    )
    assert aligned(tmp_path / "b", torch, other, allow_reshape=True).leftovers == []


# -- steps


def steps(folder: Path, numbers: list[int]) -> Dump:
    for number in numbers:
        dump(folder / str(number), {"a-output": values(4, seed=number), "b-output": values(2, 3, seed=number)})
    return read_dump(folder)


def test_steps_are_paired_by_number(tmp_path: Path) -> None:
    found = align(steps(tmp_path / "torch", [0, 1, 2]), steps(tmp_path / "max", [0, 2]))
    assert [(match.torch.step, match.max.step) for match in found.matches] == [(0, 0)] * 2 + [(2, 2)] * 2
    assert left(found) == {"torch a-output": "max has no step 1", "torch b-output": "max has no step 1"}


def test_steps_that_are_counted_from_another_number(tmp_path: Path) -> None:
    found = align(steps(tmp_path / "torch", [0, 1]), steps(tmp_path / "max", [5, 6]))
    assert [(match.torch.step, match.max.step) for match in found.matches] == [(0, 5)] * 2 + [(1, 6)] * 2
    assert found.leftovers == []


def test_flat_folder_has_the_second_execution_under_numbered_names(tmp_path: Path) -> None:
    flat = {"a-output": values(4), "a-output(2)": values(4, seed=1), "a-output(3)": values(4, seed=2)}
    stepped = steps(tmp_path / "torch", [0, 1])
    found = align(stepped, dump(tmp_path / "max", flat))
    assert [(m.torch.step, m.torch.name, m.max.name) for m in found.matches] == [
        (0, "a-output", "a-output"),
        (1, "a-output", "a-output"),
    ]
    assert left(found)["max a-output"] == "torch has no step 2"


def test_step_folder_beside_a_flat_folder(tmp_path: Path) -> None:
    found = align(
        steps(tmp_path / "torch", [0]), dump(tmp_path / "max", {"a-output": values(4), "b-output": values(2, 3)})
    )
    assert len(found.matches) == 2
    assert found.leftovers == []


def test_of_two_folders_for_one_step_the_first_counts_and_the_other_is_named(tmp_path: Path) -> None:
    for name in ("1", "step_01", "step_1"):
        dump(tmp_path / name, {name: values(4)})
    found = read_dump(tmp_path)
    assert [tensor.name for tensor in found.tensors] == ["1"]
    assert found.skipped == ["step_01/", "step_1/"]


def test_nothing_to_pair(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    found = align(read_dump(tmp_path / "empty"), dump(tmp_path / "max", {"a": values(2)}))
    assert found.matches == []
    assert left(found) == {"max a": "torch has no step 0"}
