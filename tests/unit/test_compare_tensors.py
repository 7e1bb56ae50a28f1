"""`compare_tensors`: what is measured, what fails, which exit code that gives."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch_archive import write_pt

from halfulp.compiler import GraphError, NotFoundError
from halfulp.runtime import save_max_buffer
from halfulp.runtime.debug import TensorComparison, TensorPair, compare_tensors
from halfulp.runtime.debug.chunks import CHUNK
from halfulp.runtime.debug.tensor_metrics import Metrics, SquareSum, Tolerance, measure, spacing

Array = np.ndarray[Any, Any]


def compare(folder: Path, torch: Array, other: Array, **options: Any) -> TensorComparison:
    save_max_buffer(folder / "torch.max", torch, "t")
    save_max_buffer(folder / "other.max", other, "t")
    return compare_tensors(folder / "torch.max", folder / "other.max", **options)


def only(found: TensorComparison) -> TensorPair:
    (pair,) = found.pairs
    return pair


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


# -- tolerances


@pytest.mark.parametrize(
    ("options", "failing"),
    [
        ({"rtol": 1e-9}, 1),
        ({"atol": 1e-9}, 1),
        ({"rtol": 0.2}, 0),
        ({"rtol": 0.199}, 1),
        ({"atol": 0.5}, 0),
        ({"atol": 0.499}, 1),
        ({"rtol": 0.1, "atol": 0.25}, 0),
        ({"ulp": 2**21}, 0),
        ({"ulp": 2**21 - 1}, 1),
        ({"atol": 1.0, "ulp": 1}, 1),
        ({"rtol": 0.0}, 1),
    ],
)
def test_a_tolerance_alone_leaves_the_other_at_zero(tmp_path: Path, options: dict[str, float], failing: int) -> None:
    found = compare(tmp_path, f32(1, 2.5), f32(1, 3), **options)
    assert only(found).failing == failing
    assert found.exit_code == (1 if failing else 0)
    assert found.first_failure == (0 if failing else None)


def test_tolerance_is_relative_to_the_torch_side(tmp_path: Path) -> None:
    assert compare(tmp_path, f32(1.0), f32(1.1), rtol=0.095).exit_code == 1
    assert compare(tmp_path, f32(1.1), f32(1.0), rtol=0.095).exit_code == 0


@given(
    hnp.arrays(np.float64, 6, elements=st.floats(allow_nan=True, width=64)),
    hnp.arrays(np.float64, 6, elements=st.floats(allow_nan=True, width=64)),
    st.floats(0, 2),
    st.floats(0, 1e3),
)
def test_tolerances_mean_what_numpy_means(torch: Array, other: Array, rtol: float, atol: float) -> None:
    with np.errstate(all="ignore"):
        wanted = ~np.isclose(other, torch, rtol=rtol, atol=atol, equal_nan=True)
        finite_but_far = np.isinf(np.abs(torch - other)) & np.isfinite(torch) & np.isfinite(other)
    if not finite_but_far.any():  # numpy's own formula overflows there
        assert measure(torch, other, Tolerance(rtol=rtol, atol=atol)).failing == wanted.sum()


def test_without_a_tolerance_nothing_fails(tmp_path: Path) -> None:
    found = compare(tmp_path, f32(1), f32(2))
    assert (only(found).failing, found.exit_code, found.first_difference, found.first_failure) == (None, 0, 0, None)


@pytest.mark.parametrize("value", [-1.0, math.nan])
@pytest.mark.parametrize("name", ["rtol", "atol", "ulp"])
def test_tolerances_must_not_be_negative(tmp_path: Path, name: str, value: float) -> None:
    with pytest.raises(GraphError) as refused:
        compare(tmp_path, f32(1), f32(1), **{name: value})
    assert str(refused.value) == f"{name} must be 0 or more, not {value!r}"


# -- definitions


def test_greatest_differences_and_their_places(tmp_path: Path) -> None:
    torch = np.array([[1, 2, 3], [100, 0, 6]], np.float32)
    other = np.array([[1, 2.5, 3], [101, 1e-3, 6]], np.float32)
    pair = only(compare(tmp_path, torch, other))
    assert (pair.max_abs, pair.max_abs_index) == (1.0, (1, 0))
    assert pair.max_rel == pytest.approx(1e-3 / 1e-10)
    assert pair.max_rel_index == (1, 1)
    assert pair.max_ulp_index == (1, 1)
    assert (pair.differing, pair.elements) == (3, 6)
    assert pair.rmse == pytest.approx(math.sqrt((0.25 + 1 + 1e-6) / 6))
    assert pair.cosine == pytest.approx(
        float(np.sum(torch * other)) / (np.linalg.norm(torch) * np.linalg.norm(other)), rel=1e-6
    )


def test_ulp_of_the_result_and_of_the_largest_operand(tmp_path: Path) -> None:
    for side, shift in (("torch", 0.0), ("other", 2**-20)):
        folder = tmp_path / side
        folder.mkdir()
        np.save(folder / "add-input_0.npy", f32(1024, 1))
        np.save(folder / "add-output.npy", f32(2**-10 + shift, 1))
    found = compare_tensors(tmp_path / "torch", tmp_path / "other")
    output = found.pairs[1]
    assert output.max_ulp == 2**-20 / 2**-33
    assert (output.operand, output.max_ulp_of_operand) == (1024, 2**-20 / 2**-13)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_neighbours_are_one_ulp_apart(tmp_path: Path, dtype: Any) -> None:
    one = np.array([1, 1, -1, 0, 3], dtype)
    bits = one.view(f"u{one.itemsize}").copy()
    bits[:4] += np.array([1, 0, 1, 1], bits.dtype)
    pair = only(compare(tmp_path, one, bits.view(dtype), ulp=1))
    assert (pair.max_ulp, pair.differing, pair.failing) == (1.0, 3, 0)
    assert only(compare(tmp_path, one, bits.view(dtype), ulp=0.5)).failing == 3
    following = float(np.nextafter(np.array(1, dtype), np.array(2, dtype)))
    assert float(spacing(1.0, np.dtype(dtype))) == following - 1


def test_histogram_counts_distances(tmp_path: Path) -> None:
    bits = f32(*[1.0] * 6).view(np.uint32)
    other = (bits + np.array([0, 0, 1, 2, 3, 4], np.uint32)).view(np.float32)
    other[0] = np.nan
    assert only(compare(tmp_path, f32(*[1.0] * 6), other)).histogram[:4] == (1, 1, 2, 1)
    assert only(compare(tmp_path, f32(*[1.0] * 6), other)).histogram[33] == 1


# -- exactness


def test_integers_beyond_2_to_the_24_and_53_are_told_apart(tmp_path: Path) -> None:
    for base in (2**24, 2**53, 2**62):
        pair = only(compare(tmp_path, np.array([base + 1, 5]), np.array([base, 5]), atol=0))
        assert (pair.max_abs, pair.differing, pair.failing, pair.max_ulp) == (1.0, 1, 1, None)
    pair = only(compare(tmp_path, np.array([2**63 - 1]), np.array([-(2**63)]), rtol=1))
    assert (pair.max_abs, pair.failing) == (2.0**64, 1)
    pair = only(compare(tmp_path, np.array([2**64 - 1], np.uint64), np.array([-1])))
    assert (pair.max_abs, pair.differing) == (2.0**64, 1)


def test_float64_differences_are_seen(tmp_path: Path) -> None:
    pair = only(compare(tmp_path, np.array([1.0]), np.array([1 + 2**-52]), rtol=0))
    assert (pair.max_abs, pair.max_ulp, pair.failing) == (2**-52, 1.0, 1)
    pair = only(compare(tmp_path, np.array([5e-324]), np.array([1e-323]), atol=0))
    assert (pair.max_abs, pair.max_ulp, pair.failing) == (5e-324, 1.0, 1)
    pair = only(compare(tmp_path, np.array([1e300, 3e300]), np.array([1e300, 1e300])))
    assert pair.rmse == pytest.approx(2e300 / math.sqrt(2))
    assert pair.cosine == pytest.approx(4 / math.sqrt(20))


def test_types_may_differ_and_it_is_said(tmp_path: Path) -> None:
    found = compare(tmp_path, np.array([2**53 + 1]), np.array([2.0**53]), atol=0.5)
    assert (only(found).max_abs, only(found).failing) == (1.0, 1)
    assert "  Dtypes differ: torch int64, max float64\n" in str(found)
    found = compare(tmp_path, np.array([1, 2], ml_dtypes.bfloat16), f32(1, 2 + 2**-7), ulp=0.5)
    assert (only(found).max_ulp, only(found).failing, found.exit_code) == (0.5, 0, 0)
    assert "  Dtypes differ: torch bfloat16, max float32\n" in str(found)
    assert compare(tmp_path, np.array([True, False]), np.array([1, 0], np.int8), atol=0).exit_code == 0


def test_signs_of_zero_differ_in_a_bit_only(tmp_path: Path) -> None:
    pair = only(compare(tmp_path, f32(0.0), f32(-0.0), rtol=0, ulp=0))
    assert (pair.differing, pair.max_abs, pair.max_ulp, pair.failing) == (1, 0.0, 0.0, 0)


# -- NaN, infinities, no elements


def test_nan_is_equal_to_nan_unless_it_shall_differ(tmp_path: Path) -> None:
    array = f32(1, np.nan, np.inf)
    found = compare(tmp_path, array, array, rtol=1e-6)
    assert (only(found).failing, only(found).differing, only(found).max_abs, found.exit_code) == (0, 0, 0.0, 0)
    found = compare(tmp_path, array, array, rtol=1e-6, nan_differs=True)
    assert (only(found).failing, only(found).differing, only(found).max_abs, found.exit_code) == (1, 1, math.inf, 1)
    assert only(found).max_abs_index == (1,)
    assert "  Not finite: torch 1 NaN, 1 inf; max 1 NaN, 1 inf\n" in str(found)


def test_nan_of_other_bits_are_the_same_nan(tmp_path: Path) -> None:
    other = np.array([0x7FC00001], np.uint32).view(np.float32)
    assert only(compare(tmp_path, f32(np.nan), other, ulp=0)).differing == 0


@pytest.mark.parametrize("other", [1.0, math.nan, -math.inf, 3.4e38])
@pytest.mark.parametrize("options", [{"rtol": 1e30}, {"atol": 1e300}, {"ulp": 1e30}])
def test_infinity_is_near_to_nothing_but_itself(tmp_path: Path, other: float, options: dict[str, float]) -> None:
    for one, two in ((math.inf, other), (other, math.inf)):
        pair = only(compare(tmp_path, f32(one), f32(two), **options))
        assert (pair.failing, pair.max_abs, pair.max_rel, pair.max_ulp) == (1, math.inf, math.inf, math.inf)
        assert pair.rmse == math.inf
    assert only(compare(tmp_path, f32(math.inf), f32(math.inf), **options)).failing == 0


def test_empty_tensors_and_scalars(tmp_path: Path) -> None:
    found = compare(tmp_path, np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), rtol=0)
    assert found.exit_code == 0
    assert (only(found).elements, only(found).max_abs, only(found).rmse, only(found).failing) == (0, None, None, 0)
    assert "  Shapes: torch(0, 3), max(0, 3)\n  No elements\n" in str(found)
    found = compare(tmp_path, np.array(1.0), np.array(1.5), atol=1)
    assert (only(found).max_abs, only(found).max_abs_index, found.exit_code) == (0.5, (), 0)
    assert "Greatest absolute difference: 0.5 at index ()" in str(found)


# -- large tensors


def test_pieces_give_what_the_whole_gives() -> None:
    rng = np.random.default_rng(0)
    one = rng.standard_normal(3 * CHUNK + 5).astype(np.float32)
    two = one.copy()
    two[CHUNK : CHUNK + 100] += np.float32(0.25)
    two[-1] = 9
    found = measure(one, two, Tolerance(atol=0.1))
    wide, other = one.astype(np.float64), two.astype(np.float64)
    difference = np.abs(wide - other)
    assert (found.failing, found.differing) == (101, 101)
    assert (found.absolute.value, found.absolute.place) == (float(difference.max()), int(difference.argmax()))
    assert found.rmse == pytest.approx(math.sqrt(np.mean(difference**2)), rel=1e-12)
    assert found.cosine == pytest.approx(wide @ other / np.linalg.norm(wide) / np.linalg.norm(other), rel=1e-12)
    assert sum(found.histogram) == one.size


def test_order_in_memory_does_not_matter() -> None:
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    swapped = array.astype(">f4")
    for other in (np.asfortranarray(array), swapped, np.pad(array, 2)[2:-2, 2:-2]):
        found = measure(array, other, Tolerance(atol=0))
        assert (found.failing, found.differing, found.elements) == (0, 0, 24)


@given(st.lists(st.lists(st.floats(0, 1e308), max_size=4), max_size=4))
def test_sum_of_squares_never_overflows(groups: list[list[float]]) -> None:
    total = SquareSum()
    for group in groups:
        total.add(np.array(group))
    everything = [value for group in groups for value in group]
    if not everything:
        assert total.root_mean() is None
    else:
        scale = max(everything) or 1.0
        wanted = scale * math.sqrt(sum((value / scale) ** 2 for value in everything) / len(everything))
        assert total.root_mean() == pytest.approx(wanted, rel=1e-9)


def test_nothing_measured_is_nothing() -> None:
    assert measure(np.zeros(0), np.zeros(0), Tolerance()) == Metrics()


# -- folders


def write(folder: Path, **arrays: Array) -> Path:
    folder.mkdir(exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return folder


def test_tensor_without_a_partner_is_not_everything_compared(tmp_path: Path) -> None:
    torch, other = write(tmp_path / "t", a=f32(1), b=f32(1, 2)), write(tmp_path / "m", a=f32(1))
    found = compare_tensors(torch, other, rtol=0)
    assert found.exit_code == 3
    assert [(left.side, left.name, left.shape, left.dtype) for left in found.unpaired] == [
        ("torch", "b", (2,), "float32")
    ]
    assert compare_tensors(torch, write(tmp_path / "n", a=f32(2)), rtol=0).exit_code == 1


def test_shapes_that_differ_are_not_compared(tmp_path: Path) -> None:
    found = compare(tmp_path, np.zeros((2, 3)), np.zeros((3, 2)), rtol=0)
    assert found.exit_code == 3
    assert "with shape (3, 2), the transpose of (2, 3)" in str(found)
    found = compare(tmp_path, np.zeros((2, 3)), np.zeros((3, 2)), rtol=0, allow_reshape=True)
    assert found.exit_code == 0
    assert "  Shapes: torch(2, 3), max(3, 2)\n" in str(found)


def test_empty_and_missing_folders(tmp_path: Path) -> None:
    found = compare_tensors(write(tmp_path / "t"), write(tmp_path / "m"))
    assert (found.exit_code, found.pairs, found.unpaired) == (3, (), ())
    assert str(found).endswith("Nothing was compared\n0 pairs compared, 0 tensors not compared; no tolerance given")
    with pytest.raises(NotFoundError) as missing:
        compare_tensors(tmp_path / "none", tmp_path / "m")
    assert str(missing.value) == f"there is no file or folder '{tmp_path / 'none'}'"


def test_files_that_cannot_be_read_are_listed(tmp_path: Path) -> None:
    torch, other = write(tmp_path / "t", a=f32(1)), write(tmp_path / "m", a=f32(1))
    write_pt(torch / "evil.pt", [b"cos\nsystem\n(X\x04\x00\x00\x00exittR"])
    (other / "b.max").write_bytes(b"no")
    (other / "run.log").write_text("text")
    (other / "more").mkdir()
    found = compare_tensors(torch, other, rtol=0)
    assert found.exit_code == 3
    assert [(left.side, left.name) for left in found.unpaired] == [("torch", "evil.pt"), ("max", "b.max")]
    assert "holds more than tensors, which is not read: os.system, at byte 4" in found.unpaired[0].reason
    assert found.unpaired[1].reason.startswith("checkpoint ")
    assert found.skipped == ("more/", "run.log")
    assert "Not tensors: more/, run.log\n" in str(found)


def test_damaged_archive_is_found_when_it_is_opened(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", x=np.arange(1000.0))
    data = bytearray((tmp_path / "x.npz").read_bytes())
    data[400:440] = b"\xa5" * 40
    (tmp_path / "x.npz").write_bytes(data)
    found = compare_tensors(tmp_path / "x.npz", tmp_path / "x.npz")
    assert found.exit_code == 3
    assert [left.name for left in found.unpaired] == ["x.npz", "x.npz"]


def test_names_with_line_breaks_and_no_unicode_are_escaped(tmp_path: Path) -> None:
    for side in ("t", "m"):
        write(tmp_path / side, **{"a\nb\x1b[31m": f32(1)})
        np.save(tmp_path / side / "x.npy", f32(2))
        os.rename(tmp_path / side / "x.npy", os.fsencode(tmp_path / side) + b"/\xff.npy")
    found = compare_tensors(tmp_path / "t", tmp_path / "m", rtol=0)
    assert {pair.torch for pair in found.pairs} == {"a\\nb\\x1b[31m", "\\udcff"}
    assert "Tensor: a\\nb\\x1b[31m vs a\\nb\\x1b[31m\n" in str(found)
    assert json.loads(found.to_json())["pairs"]
    assert found.exit_code == 0


def test_two_tensors_of_one_name_are_not_guessed_at(tmp_path: Path) -> None:
    torch, other = write(tmp_path / "t", a=f32(1), b=f32(1)), write(tmp_path / "m", a=f32(1), b=f32(1))
    save_max_buffer(other / "a.max", f32(2), "a")
    found = compare_tensors(torch, other, rtol=0)
    assert [pair.torch for pair in found.pairs] == ["b"]
    assert [(left.side, left.name, left.reason) for left in found.unpaired] == [
        ("max", "a", "2 tensors have this name, in a.max and a.npy; keep one of them"),
        ("torch", "a", "max has no tensor of a layer like 'a', and none of its shape and values"),
    ]
    assert found.exit_code == 3


def test_archives_and_folders_may_be_compared(tmp_path: Path) -> None:
    arrays = {"b": f32(1, 2), "a": f32(3)}
    np.savez(tmp_path / "x.npz", b=arrays["b"], a=arrays["a"])
    write_pt(tmp_path / "x.pt", arrays)
    for one in (tmp_path / "x.npz", tmp_path / "x.pt"):
        found = compare_tensors(one, write(tmp_path / "m", **arrays), rtol=0)
        assert ([pair.torch for pair in found.pairs], found.order, found.exit_code) == (["b", "a"], "torch", 0)


def test_tuples_and_dicts_in_files_of_hooks_get_names_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    write_pt(tmp_path / "t" / "attn-output.pt", (f32(1, 2), f32(3)))
    other = write(tmp_path / "m", **{"attn-output_0": f32(1, 2), "attn-output_1": f32(3)})
    assert compare_tensors(tmp_path / "t", other, rtol=0).exit_code == 0


def test_order_file_names_what_is_missing(tmp_path: Path) -> None:
    torch, other = write(tmp_path / "t", b=f32(1), a=f32(1, 2)), write(tmp_path / "m", a=f32(1, 2), b=f32(1))
    (torch / "tensor_names.txt").write_text("b\nc\na\n")
    found = compare_tensors(torch, other, rtol=0)
    assert [pair.torch for pair in found.pairs] == ["b", "a"]
    assert [(left.name, left.reason) for left in found.unpaired] == [
        ("c", "tensor_names.txt lists it, and there is no file of that name")
    ]


def test_steps_are_named_where_there_are_several(tmp_path: Path) -> None:
    for side, shift in (("t", 0), ("m", 1)):
        for step in (0, 1):
            (tmp_path / side).mkdir(exist_ok=True)
            write(tmp_path / side / str(step), x=f32(1, step * shift))
    found = compare_tensors(tmp_path / "t", tmp_path / "m", rtol=0)
    assert [(pair.torch, pair.max, pair.step, pair.failing) for pair in found.pairs] == [
        ("0/x", "0/x", 0, 0),
        ("1/x", "1/x", 1, 1),
    ]
    assert "First beyond tolerance: 1/x vs 1/x: 1 of 2 elements" in str(found)


def test_json_holds_all_of_it(tmp_path: Path) -> None:
    found = compare(tmp_path, f32(1, np.inf), f32(2, 0), rtol=0.5)
    data = json.loads(found.to_json())
    assert data["pairs"][0]["failing"] == 2
    assert data["pairs"][0]["max_abs"] is None
    assert data["pairs"][0]["max_abs_index"] == [1]
    assert data["first_failure"] == 0
    assert set(data) == set(TensorComparison.__struct_fields__)


def test_text_of_a_pair(tmp_path: Path) -> None:
    found = compare(tmp_path, np.array([[1, 2, 3]], np.float32), np.array([[1, 2, 3.5]], np.float32), rtol=1e-9)
    assert str(found) == (
        "Found 1 matching tensor pair(s)\n\n"
        "Tensor: torch vs other\n"
        "  <-- first with a bit that differs, first that is not within tolerance\n"
        "  Paired by: only one\n"
        "  Shapes: torch(1, 3), max(1, 3)\n"
        "  Greatest absolute difference: 0.5 at index (0, 2)\n"
        "  Greatest relative difference: 0.166667 at index (0, 2)\n"
        "  Greatest difference in ulp: 2097152 at index (0, 2), 2097152 ulp of the largest operand 3.5\n"
        "  Bits differ: 1 of 3 elements; RMSE 0.288675, cosine 0.997408651\n"
        "  Mismatched elements: 1 / 3 (33.3%)\n\n"
        "First difference: torch vs other: 1 of 3 elements (neither side tells the order of execution; it is guessed "
        "from the names)\n"
        "First beyond tolerance: torch vs other: 1 of 3 elements\n"
        "1 pairs compared, 0 tensors not compared; 1 pairs are not within rtol 1e-09"
    )
