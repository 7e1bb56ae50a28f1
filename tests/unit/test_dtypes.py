"""Element types and devices: names, sizes, ranges, and the way to and from numpy and xDSL."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import BFloat16Type, IntegerType, bf16, f16, f32, f64

from halfulp.compiler.device import DeviceRef
from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import GraphError, GraphTypeError


def test_names() -> None:
    names = ["bool", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "bf16", "f32", "f64"]
    assert [d.ir_name for d in DType] == names
    assert [DType.from_ir_name(name) for name in names] == list(DType)
    assert (str(DType.float32), repr(DType.uint8)) == ("float32", "DType.uint8")
    with pytest.raises(GraphTypeError, match=r"^'f8' is not an element type; known: bool, i8, .*, f64$"):
        DType.from_ir_name("f8")


@pytest.mark.parametrize("dtype", list(DType))
def test_numpy_agrees(dtype: DType) -> None:
    numpy_dtype = dtype.to_numpy()
    assert numpy_dtype.name == dtype.value
    assert numpy_dtype.itemsize == dtype.size_in_bytes
    assert DType.from_numpy(numpy_dtype) is dtype
    assert DType.from_numpy(numpy_dtype.type) is dtype
    assert dtype.is_float == (numpy_dtype.kind == "f" or numpy_dtype == ml_dtypes.bfloat16)
    assert dtype.is_integral == (numpy_dtype.kind in "iu")
    if dtype.is_integral:
        limits = np.iinfo(numpy_dtype)
        assert dtype.integer_range == (limits.min, limits.max)
        assert dtype.is_signed == (limits.min < 0)


def test_bool_and_float_ranges() -> None:
    assert DType.bool.integer_range == (0, 1)
    assert (DType.bool.bits, DType.bool.size_in_bytes) == (1, 1)
    with pytest.raises(GraphTypeError, match=r"^float32 has no integer range; ask an integer type$"):
        _ = DType.float32.integer_range


def test_element_types_are_signless() -> None:
    floats = [DType.float16, DType.bfloat16, DType.float32, DType.float64]
    assert [d.to_element_type() for d in floats] == [f16, bf16, f32, f64]
    assert isinstance(DType.bfloat16.to_element_type(), BFloat16Type)
    assert DType.uint32.to_element_type() == DType.int32.to_element_type() == IntegerType(32)
    assert DType.bool.to_element_type() == IntegerType(1)


@pytest.mark.parametrize("dtype", ["complex64", "U4", "datetime64[s]", [("x", "f4")], object(), "float33", None])
def test_other_numpy_dtypes_are_refused(dtype: object) -> None:
    with pytest.raises(GraphTypeError) as error:
        DType.from_numpy(dtype)
    assert str(error.value).startswith(f"numpy dtype {dtype} has no halfulp element type; known: bool, int8, ")


def test_swapped_bytes_are_refused_with_the_remedy() -> None:
    with pytest.raises(
        GraphTypeError, match=r"^numpy dtype >f4 has swapped bytes; convert it with \.astype\('float32'\)$"
    ):
        DType.from_numpy(np.dtype(">f4"))


def test_devices() -> None:
    assert [str(d) for d in (DeviceRef.CPU(), DeviceRef.GPU(), DeviceRef.GPU(2))] == ["cpu", "gpu:0", "gpu:2"]
    assert repr(DeviceRef.GPU(2)) == "DeviceRef.GPU(2)"
    assert DeviceRef.CPU() == DeviceRef.parse("cpu")
    assert DeviceRef.GPU(3) == DeviceRef.parse("gpu:3")
    assert DeviceRef.CPU().is_host
    assert not DeviceRef.GPU().is_host
    with pytest.raises(GraphError, match=r"^DeviceRef\.GPU\(\) counts devices from 0, got -1$"):
        DeviceRef.GPU(-1)
    with pytest.raises(GraphError, match=r"^device must be written cpu or gpu:N, not 'tpu'$"):
        DeviceRef.parse("tpu")
