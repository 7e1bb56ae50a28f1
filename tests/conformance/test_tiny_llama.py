"""Two programs' dumps of one small Llama, weights and tokens being equal: hooks in PyTorch, and Modular MAX.

The two name, split and shape their tensors differently; tests/conformance/data/tiny_llama has the files as they were
written. What the pairs should be was worked out by hand from both models.
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from halfulp.runtime import save_max_buffer
from halfulp.runtime.debug import TensorComparison, compare_tensors
from halfulp.runtime.debug.tensor_files import read_tensors

DATA = Path(__file__).parent / "data" / "tiny_llama"
TORCH, MAX = DATA / "torch_tensors", DATA / "max_tensors"

IN_LAYERS = [
    "input_layernorm-input_0", "input_layernorm-output", "self_attn.o_proj-input_0", "self_attn.o_proj-output",
    "post_attention_layernorm-input_0", "post_attention_layernorm-output", "mlp.down_proj-input_0",
    "mlp.down_proj-output", "mlp-input_0", "mlp-output",
]  # fmt: skip


@cache
def comparison() -> TensorComparison:
    return compare_tensors(TORCH, MAX)


def pairs() -> set[tuple[str, str]]:
    return {(pair.torch, pair.max) for pair in comparison().pairs}


@pytest.mark.parametrize("layer", [0, 1])
def test_everything_in_a_layer_is_paired(layer: int) -> None:
    ours, theirs = f"model.model.layers.{layer}", f"model.layers.layers.{layer}"
    wanted = {(f"{ours}.{name}", f"{theirs}.{name}") for name in IN_LAYERS}
    wanted |= {
        (f"{ours}-input_0", f"{theirs}-input_1"),
        (f"{ours}-output", f"{theirs}-output"),
        (f"{ours}.self_attn-output_0", f"{theirs}.self_attn-output"),
    }
    for part in "qkv":
        wanted |= {
            (f"{ours}.self_attn.{part}_proj-input_0", f"{theirs}.self_attn.qkv_proj-input_0"),
            (f"{ours}.self_attn.{part}_proj-output", f"{theirs}.self_attn.qkv_proj-output"),
        }
    assert wanted <= pairs()


def test_everything_around_the_layers_is_paired() -> None:
    assert {
        ("model.model.embed_tokens-input_0", "model.embed_tokens-input_0"),
        ("model.model.embed_tokens-output", "model.embed_tokens-output"),
        ("model.lm_head-input_0", "model.lm_head-input_0"),
        ("model.lm_head-output", "model.lm_head-output"),
        ("model-output_logits", "model-output_0"),
    } <= pairs()


def test_what_is_there_under_a_second_name_has_the_same_partner() -> None:
    copies = {(pair.torch, pair.max): pair.copied for pair in comparison().pairs if pair.rule == "copy"}
    assert copies["model.model.layers.0.mlp.gate_proj-input_0", "model.layers.layers.0.mlp-input_0"] == (
        "model.model.layers.0.mlp-input_0"
    )
    assert copies["model.model.layers.0.self_attn.q_proj-input_0", "model.layers.layers.0.self_attn-input_1"] == (
        "model.layers.layers.0.self_attn.qkv_proj-input_0"
    )
    assert copies["model.model.embed_tokens-input_0", "model-input_0"] == "model.embed_tokens-input_0"
    assert len(copies) == 8


def test_pairs_are_in_the_order_of_execution() -> None:
    listed = (TORCH / "0" / "tensor_names.txt").read_text().split()
    places = [listed.index(pair.torch) for pair in comparison().pairs]
    assert places == sorted(places)
    assert comparison().order == "torch"


def test_fused_projection_is_split_by_columns() -> None:
    parts = {pair.torch: pair.max_part for pair in comparison().pairs if pair.rule == "fused" and pair.max_part}
    assert [parts[f"model.model.layers.1.self_attn.{part}_proj-output"] for part in "qkv"] == [
        "columns 0:64",
        "columns 64:96",
        "columns 96:128",
    ]
    for pair in comparison().pairs:
        if pair.rule == "fused":
            assert pair.max_abs is not None
            assert pair.max_abs < 1e-6


def test_all_pairs_are_the_same_tensor_but_for_rounding() -> None:
    for pair in comparison().pairs:
        assert pair.cosine is not None
        assert pair.cosine > 1 - 1e-12, pair.torch
        assert pair.max_ulp_of_operand is None or pair.max_ulp_of_operand < 8, pair.torch


def test_first_difference_is_in_the_first_norm() -> None:
    found = comparison()
    assert found.first_difference is not None
    first = found.pairs[found.first_difference]
    assert first.torch == "model.model.layers.0.input_layernorm-output"
    assert first.max == "model.layers.layers.0.input_layernorm-output"
    assert (first.torch_shape, first.max_shape) == ((1, 8, 64), (8, 64))
    assert (first.differing, first.elements) == (119, 512)
    ours = read_tensors(TORCH / "0" / f"{first.torch}.pt")[""]
    theirs = read_tensors(MAX / f"{first.max}.max")[""]
    assert int((ours[0] != theirs).sum()) == 119


def test_what_has_no_partner_is_listed_with_the_reason() -> None:
    found = comparison()
    reasons = {(left.side, left.name): left.reason for left in found.unpaired}
    for place in ("input_0", "output"):
        assert reasons["torch", f"model.model.norm-{place}"] == (
            f"max has model.norm-{place} with shape (1, 64): only the last row of 8"
        )
        assert reasons["max", f"model.norm-{place}"] == (
            f"torch has model.model.norm-{place} with shape (1, 8, 64): this one has only the last row of its 8"
        )
    sampler = [name for _, name in reasons if name.startswith("TopKSampler")]
    assert len(sampler) == 11
    for name in sampler:
        assert reasons["max", name] == (
            "torch has no tensor of a layer like 'TopKSampler', and none of its shape and values"
        )
    assert reasons["torch", "model.model.layers.0.mlp.act_fn-output"] == (
        "max has no tensor of a layer like 'model.model.layers.0.mlp.act_fn', and none of its shape and values"
    )
    assert found.exit_code == 3


def test_every_tensor_is_either_paired_or_listed() -> None:
    found = comparison()
    torch = {path.stem for path in (TORCH / "0").glob("*.pt")}
    other = {path.stem for path in MAX.glob("*.max")}
    left = {(entry.side, entry.name) for entry in found.unpaired}
    assert torch == {pair.torch for pair in found.pairs} | {name for side, name in left if side == "torch"}
    assert other == {pair.max for pair in found.pairs} | {name for side, name in left if side == "max"}
    assert len(left) == len(found.unpaired) == 40


def test_sides_may_be_exchanged() -> None:
    found = compare_tensors(MAX, TORCH)
    assert {(pair.max, pair.torch) for pair in found.pairs} == pairs()
    assert found.order == "max"
    assert found.first_difference is not None
    assert found.pairs[found.first_difference].max == "model.model.layers.0.input_layernorm-output"


def test_another_prefix_and_fewer_tensors(tmp_path: Path) -> None:
    """A dump of the same kind: other names at the root, and some tensors missing."""

    def elsewhere(name: str) -> str:
        return name.replace("model.layers.layers", "runner.blocks")

    for path in MAX.glob("*.max"):
        if "embed_tokens" not in path.name and "layers.0.mlp-" not in path.name:
            shutil.copy(path, tmp_path / elsewhere(path.name))
    found = compare_tensors(TORCH, tmp_path)
    there = {path.stem for path in tmp_path.iterdir()}
    wanted = {(pair.torch, elsewhere(pair.max)) for pair in comparison().pairs if pair.rule != "copy"}
    assert {pair for pair in wanted if pair[1] in there} <= {(pair.torch, pair.max) for pair in found.pairs}
    assert ("model.model.embed_tokens-input_0", "model-input_0") in {(pair.torch, pair.max) for pair in found.pairs}
    for pair in found.pairs:
        assert pair.cosine is not None
        assert pair.cosine > 1 - 1e-12, pair.torch


def test_other_types_and_steps(tmp_path: Path) -> None:
    """A dump of the same kind in bf16, tokens in int32, with a folder for its only step."""
    (tmp_path / "step_3").mkdir()
    for path in MAX.glob("*.max"):
        (array,) = read_tensors(path).values()
        narrow = {"float32": ml_dtypes.bfloat16, "int64": np.int32}.get(array.dtype.name, array.dtype)
        save_max_buffer(tmp_path / "step_3" / path.name, array.astype(narrow), path.stem)
    found = compare_tensors(TORCH, tmp_path, rtol=2**-8, atol=1e-30)
    assert {(pair.torch, pair.max) for pair in found.pairs} >= {
        (pair.torch, pair.max) for pair in comparison().pairs if pair.rule != "copy"
    }
    assert found.first_difference is not None
    assert found.pairs[found.first_difference].torch == "model.model.embed_tokens-output"
    assert "  Dtypes differ: torch float32, max bfloat16\n" in str(found)
    assert "  Dtypes differ: torch int64, max int32\n" in str(found)
    for pair in found.pairs:
        if pair.torch_dtype == "float32":
            assert pair.max_ulp is not None
            assert pair.max_ulp < 2, pair.torch
