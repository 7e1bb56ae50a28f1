"""The emulated device from the host's side: memory, copies, modules, launches; and ptxas, which must agree on PTX."""

from __future__ import annotations

import ctypes
import platform
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ptx_kernels import HEADER, download, elementwise, kernel, upload

from halfulp.compiler.codegen.ptxas import assemble
from halfulp.runtime.cuda.driver import Driver
from halfulp.runtime.cuda.emulator import (
    DeviceMemoryError,
    Emulator,
    LaunchError,
    OutOfBoundsError,
    OutOfDeviceMemoryError,
)

WORD = np.dtype("u4")
ADD_ONE = "ld.param.u64 %rd1, [out];\nld.global.u32 %r1, [%rd1];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%rd1], %r1;"


def test_emulator_is_a_driver() -> None:
    device: Driver = Emulator()
    assert device.name == "emulated GPU"
    address = device.alloc(8)
    device.memset(address, 0, 8)
    module = device.load_module(kernel(ADD_ONE))
    module.launch("k", (1, 1, 1), (1, 1, 1), 0, [address + 4])
    device.synchronize()
    result = np.empty(2, WORD)
    device.copy_to_host(result, address)
    assert result.tolist() == [0, 1]
    module.unload()
    with pytest.raises(LaunchError, match="the module has no kernel 'k'"):
        module.launch("k", (1, 1, 1), (1, 1, 1), 0, [address])


def test_addresses_are_aligned_distinct_and_never_used_again() -> None:
    device = Emulator()
    addresses = [device.alloc(n) for n in (0, 1, 0, 1000, 256)]
    assert all(address % 256 == 0 for address in addresses)
    device.free(addresses[3])
    addresses.append(device.alloc(1000))
    assert len(set(addresses)) == len(addresses)


def test_fresh_memory_is_nan() -> None:
    device = Emulator()
    assert np.isnan(download(device, device.alloc(16), 4, np.dtype("f4"))).all()


def test_copies_between_two_places_of_the_device() -> None:
    device = Emulator()
    address = upload(device, np.arange(8, dtype=WORD))
    device.copy_within(address + 4, address, 16)
    device.memset(address + 24, 0xFF, 4)
    assert download(device, address, 8, WORD).tolist() == [0, 0, 1, 2, 3, 5, 0xFFFFFFFF, 7]


def test_out_of_memory() -> None:
    device = Emulator(memory_bytes=1000)
    first = device.alloc(600)
    with pytest.raises(OutOfDeviceMemoryError) as caught:
        device.alloc(500)
    assert str(caught.value) == (
        "the emulated device is out of memory: 500 bytes asked for, 400 of 1000 free; free buffers, or make the device "
        "with more memory_bytes"
    )
    device.free(first)
    device.alloc(1000)


REQUESTS: dict[str, tuple[Callable[[Emulator, int], Any], str]] = {
    "free twice": (
        lambda device, address: [device.free(place) for place in (address, address)],  # type: ignore[func-returns-value]
        "free({a}): it was freed: the allocation of 12 bytes at {a}; free what alloc() returned, once",
    ),
    "free the middle": (
        lambda device, address: device.free(address + 4),
        "free({b}): it is 8 bytes before the end of the allocation of 12 bytes at {a}; free what alloc() returned, "
        "once",
    ),
    "too much to the device": (
        lambda device, address: device.copy_to_device(address, np.zeros(4, WORD)),
        "copy_to_device(): 16 bytes at {a} are not inside an allocation: it is 12 bytes before the end of the "
        "allocation of 12 bytes at {a}",
    ),
    "too much to the host": (
        lambda device, address: device.copy_to_host(np.zeros(3, WORD), address + 4),
        "copy_to_host(): 12 bytes at {b} are not inside an allocation: it is 8 bytes before the end of the allocation "
        "of 12 bytes at {a}",
    ),
    "too much within": (
        lambda device, address: device.copy_within(address + 4, address, 12),
        "copy_within(): 12 bytes at {b} are not inside an allocation: it is 8 bytes before the end of the allocation "
        "of 12 bytes at {a}",
    ),
    "strides": (
        lambda device, address: device.copy_to_device(address, np.zeros((2, 3), "u1").T),
        "copy_to_device() takes a C-contiguous array, not one with strides (1, 3)",
    ),
    "no byte": (
        lambda device, address: device.memset(address, 256, 1),
        "memset() sets bytes, from 0 to 255, not 256",
    ),
    "negative": (lambda device, address: device.alloc(-1), "alloc() takes a number of bytes, not -1"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_wrong_request(name: str) -> None:
    call, message = REQUESTS[name]
    device = Emulator()
    address = device.alloc(12)
    with pytest.raises(DeviceMemoryError) as caught:
        call(device, address)
    assert str(caught.value) == message.format(a=f"{address:#x}", b=f"{address + 4:#x}")


Triple = tuple[int, int, int]
LAUNCHES: list[tuple[dict[str, Any], str]] = [
    ({"kernel": "kk"}, "the module has no kernel 'kk'; did you mean 'k'?"),
    ({"grid": (0, 1, 1)}, "kernel 'k': grid must be three numbers from 1 to (2147483647, 65535, 65535), not (0, 1, 1)"),
    (
        {"grid": (1, 65536, 1)},
        "kernel 'k': grid must be three numbers from 1 to (2147483647, 65535, 65535), not (1, 65536, 1)",
    ),
    ({"block": (1, 1, 65)}, "kernel 'k': block must be three numbers from 1 to (1024, 1024, 64), not (1, 1, 65)"),
    ({"block": (64, 32, 1)}, "kernel 'k': a block has at most 1024 threads, not (64, 32, 1) = 2048"),
    ({"shared_bytes": 4}, "kernel 'k' has no .extern .shared array, so shared_bytes must be 0, not 4"),
    ({"arguments": []}, "kernel 'k' takes 2 arguments, not 0"),
    ({"arguments": [1 << 64, 1]}, "kernel 'k', parameter 'out' is a .u64, which does not hold 18446744073709551616"),
    ({"arguments": [0, 1.5]}, "kernel 'k', parameter 'n' is a .s32, so it takes a whole number, not 1.5"),
    ({"arguments": [0, -(1 << 31) - 1]}, "kernel 'k', parameter 'n' is a .s32, which does not hold -2147483649"),
    ({"arguments": [0, b"ab"]}, "kernel 'k', parameter 'n' takes 4 bytes, not 2 bytes"),
]


@pytest.mark.parametrize(("changes", "message"), LAUNCHES)
def test_wrong_launch(changes: dict[str, Any], message: str) -> None:
    module = Emulator().load_module(kernel("mov.u32 %r1, 0;", ".param .u64 out, .param .s32 n"))
    launch = {"kernel": "k", "grid": (1, 1, 1), "block": (1, 1, 1), "shared_bytes": 0, "arguments": [0, 0]}
    module.launch(**launch)  # type: ignore[arg-type]
    with pytest.raises(LaunchError) as caught:
        module.launch(**{**launch, **changes})
    assert str(caught.value) == message


def test_kernel_that_names_its_block() -> None:
    text = HEADER + ".visible .entry k() {limit} {{ ret; }}"
    module = Emulator().load_module(text.format(limit=".reqntid 32, 2"))
    module.launch("k", (1, 1, 1), (32, 2, 1), 0, [])
    with pytest.raises(
        LaunchError, match=re.escape("kernel 'k' requires blocks of (32, 2, 1) threads, not (64, 1, 1)")
    ):
        module.launch("k", (1, 1, 1), (64, 1, 1), 0, [])
    module = Emulator().load_module(text.format(limit=".maxntid 64 .minnctapersm 2"))
    with pytest.raises(LaunchError, match="kernel 'k' allows at most 64 threads in a block, not 65"):
        module.launch("k", (1, 1, 1), (65, 1, 1), 0, [])


def test_too_much_shared_memory() -> None:
    module = Emulator().load_module(kernel("ret;", before=".extern .shared .align 16 .b8 all[];\n"))
    module.launch("k", (1, 1, 1), (1, 1, 1), 227 * 1024, [0])
    with pytest.raises(LaunchError) as caught:
        module.launch("k", (1, 1, 1), (1, 1, 1), 227 * 1024 + 1, [0])
    assert str(caught.value) == "kernel 'k': a block has at most 232448 bytes of shared memory, not 232449"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="sets MXCSR, the control register of x86-64")
def test_a_thread_that_flushes_subnormals_is_refused() -> None:
    module = Emulator().load_module(kernel("ret;", ""))
    libm = ctypes.CDLL("libm.so.6")
    environment = (ctypes.c_uint32 * 8)()  # glibc's fenv_t: 28 bytes of x87 state, then MXCSR
    libm.fegetenv(environment)
    original = environment[7]
    environment[7] |= 0x8040  # flush to zero, denormals are zero
    libm.fesetenv(environment)
    try:
        with pytest.raises(LaunchError) as caught:
            module.launch("k", (1, 1, 1), (1, 1, 1), 0, [])
    finally:
        environment[7] = original
        libm.fesetenv(environment)
    assert str(caught.value) == (
        "kernel 'k': this thread flushes subnormal floats to zero, so numpy rounds otherwise than PTX; undo what set "
        "it (a library built with -ffast-math, torch.set_flush_denormal) before launching"
    )
    module.launch("k", (1, 1, 1), (1, 1, 1), 0, [])


def test_launches_of_several_threads_wait_for_each_other() -> None:
    device = Emulator()
    out = device.alloc(4)
    device.memset(out, 0, 4)
    module = device.load_module(kernel(ADD_ONE))

    def launch_often() -> None:
        for _ in range(40):
            module.launch("k", (1, 1, 1), (1, 1, 1), 0, [out])

    threads = [threading.Thread(target=launch_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert download(device, out, 1, WORD) == [160]


def test_variables_of_a_module_live_as_long_as_it() -> None:
    device = Emulator()
    before = ".global .align 4 .b32 counter[1] = {5};\n"
    body = "mov.u64 %rd1, counter;\nld.param.u64 %rd2, [out];\natom.global.add.u32 %r1, [%rd1], 1;\n"
    module = device.load_module(
        kernel(body + "st.global.u32 [%rd2], %r1;\nst.global.u64 [%rd2+8], %rd1;", before=before)
    )
    out = device.alloc(16)
    for count in (5, 6):
        module.launch("k", (1, 1, 1), (1, 1, 1), 0, [out])
        assert download(device, out, 1, WORD) == [count]
    address = int(download(device, out + 8, 1, np.dtype("u8"))[0])
    module.unload()
    with pytest.raises(OutOfBoundsError, match="it was freed: the allocation of 4 bytes"):
        device.load_module(kernel(ADD_ONE)).launch("k", (1, 1, 1), (1, 1, 1), 0, [address])


STATEMENTS = [
    ("mul.wide.s32 {d}, {a}, {b};", ["i4", "i4"], "i8"),
    ("mad.hi.u64 {d}, {a}, {b}, {c};", ["u8", "u8", "u8"], "u8"),
    ("fma.rn.f32 {d}, {a}, {b}, {c};", ["f4", "f4", "f4"], "f4"),
    ("sqrt.rn.f64 {d}, {a};", ["f8"], "f8"),
    ("max.NaN.f32 {d}, {a}, {b};", ["f4", "f4"], "f4"),
    ("copysign.f32 {d}, {a}, {b};", ["f4", "f4"], "f4"),
    ("prmt.b32 {d}, {a}, {b}, {c};", ["u4", "u4", "u4"], "u4"),
    ("bfi.b32 {d}, {a}, {b}, {c}, {e};", ["u4", "u4", "u4", "u4"], "u4"),
    ("shf.l.wrap.b32 {d}, {a}, {b}, {c};", ["u4", "u4", "u4"], "u4"),
    ("lop3.b32 {d}, {a}, {b}, {c}, 202;", ["u4", "u4", "u4"], "u4"),
    ("cvt.rn.bf16x2.f32 {d}, {a}, {b};", ["f4", "f4"], "u4"),
    ("cvt.rzi.s64.f64 {d}, {a};", ["f8"], "i8"),
    ("cvt.sat.u8.s32 {d}, {a};", ["i4"], "u2"),
    ("mov.b64 {{_, {d}}}, {a};", ["u8"], "u4"),
    ("selp.b32 {d}, {a}, {b}, {c};", ["u4", "u4", "?"], "u4"),
]


def test_ptxas_accepts_the_kernels_of_these_tests() -> None:
    """One module with a kernel for each kind of instruction, which the emulator loads as well."""
    texts = [elementwise(text, [np.dtype(i) for i in inputs], np.dtype(d)) for text, inputs, d in STATEMENTS]
    kernels = [
        text.removeprefix(HEADER).replace(".entry k(", f".entry k{number}(") for number, text in enumerate(texts)
    ]
    module = HEADER + "".join(kernels)
    Emulator().load_module(module)
    _, usage = assemble(module, "sm_90")
    assert len(usage) == len(STATEMENTS)
