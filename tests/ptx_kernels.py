"""Small PTX kernels for the tests of the emulator, and a way to run them on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from halfulp.runtime.cuda.emulator import Emulator

Array = npt.NDArray[Any]

HEADER = ".version 8.3\n.target sm_90\n.address_size 64\n"
PREDICATE = np.dtype(np.bool_)  # a register of an elementwise kernel that is loaded and stored as a byte
_REGISTERS = ".reg .pred %p<20>; .reg .b16 %rs<40>; .reg .b32 %r<40>; .reg .b64 %rd<40>;\n"


def kernel(body: str, parameters: str = ".param .u64 out", name: str = "k", before: str = "") -> str:
    """A module of one kernel with registers %p, %rs, %r and %rd."""
    return f"{HEADER}{before}.visible .entry {name}({parameters})\n{{\n{_REGISTERS}{body}\nret;\n}}\n"


def elementwise(instruction: str, inputs: Sequence[np.dtype[Any]], result: np.dtype[Any]) -> str:
    """Applies an instruction to arrays: ``{d}`` is its result, ``{a}``, ``{b}``, ``{c}``, ``{e}`` are its operands."""
    names = "abcefgh"[: len(inputs)]
    parameters = ", ".join([".param .u64 out", *(f".param .u64 in{i}" for i in range(len(inputs))), ".param .u32 n"])
    lines = [
        "mov.u32 %r30, %ctaid.x;",
        "mov.u32 %r31, %ntid.x;",
        "mov.u32 %r32, %tid.x;",
        "mad.lo.u32 %r33, %r30, %r31, %r32;",
        "ld.param.u32 %r34, [n];",
        "setp.ge.u32 %p19, %r33, %r34;",
        "@%p19 bra done;",
    ]
    operands: dict[str, str] = {}
    for i, dtype in enumerate(inputs):
        lines += [f"ld.param.u64 %rd30, [in{i}];", f"mad.wide.u32 %rd31, %r33, {dtype.itemsize}, %rd30;"]
        lines += _load(dtype, 10 + i)
        operands[names[i]] = _register(dtype, 10 + i)
    lines += [instruction.format(d=_register(result, 1), **operands)]
    lines += ["ld.param.u64 %rd30, [out];", f"mad.wide.u32 %rd31, %r33, {result.itemsize}, %rd30;"]
    lines += _store(result, 1)
    return kernel("\n".join([*lines, "done:"]), parameters)


def _register(dtype: np.dtype[Any], number: int) -> str:
    prefix = "%p" if dtype == PREDICATE else {1: "%rs", 2: "%rs", 4: "%r", 8: "%rd"}[dtype.itemsize]
    return f"{prefix}{number}"


def _load(dtype: np.dtype[Any], number: int) -> list[str]:
    if dtype == PREDICATE:
        return ["ld.global.u8 %rs30, [%rd31];", f"setp.ne.u16 %p{number}, %rs30, 0;"]
    return [f"ld.global.b{8 * dtype.itemsize} {_register(dtype, number)}, [%rd31];"]


def _store(dtype: np.dtype[Any], number: int) -> list[str]:
    if dtype == PREDICATE:
        return [f"selp.b16 %rs30, 1, 0, %p{number};", "st.global.u8 [%rd31], %rs30;"]
    return [f"st.global.b{8 * dtype.itemsize} [%rd31], {_register(dtype, number)};"]


def run_elementwise(instruction: str, inputs: Sequence[Array], result: np.dtype[Any]) -> Array:
    """What the emulator computes; the last block is not full."""
    count = inputs[0].size
    device = Emulator()
    module = device.load_module(elementwise(instruction, [a.dtype for a in inputs], result))
    addresses = [upload(device, a) for a in inputs]
    out = device.alloc(count * result.itemsize)
    threads = 64
    module.launch("k", (-(-count // threads), 1, 1), (threads, 1, 1), 0, [out, *addresses, count])
    return download(device, out, count, result)


def upload(device: Emulator, array: Array) -> int:
    """The device address of a copy."""
    address = device.alloc(array.nbytes)
    device.copy_to_device(address, np.ascontiguousarray(array))
    return address


def download(device: Emulator, address: int, count: int, dtype: np.dtype[Any]) -> Array:
    result = np.empty(count, dtype)
    device.copy_to_host(result, address)
    return result


def run(
    ptx: str, count: int, dtype: Any, arguments: Sequence[Any] = (), grid: int = 1, block: int = 32, **options: Any
) -> Array:
    """Launches kernel ``k`` on a fresh array of 0xFF bytes, its first parameter, and gives the array."""
    device = Emulator(**options)
    out = device.alloc(count * np.dtype(dtype).itemsize)
    device.load_module(ptx).launch("k", (grid, 1, 1), (block, 1, 1), 0, [out, *arguments])
    return download(device, out, count, np.dtype(dtype))
