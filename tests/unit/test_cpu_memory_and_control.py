"""Loops IR compiled and run: memory, control flow, integers, calls, the entry function's rounding state, errors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import get_all_dialects as get_upstream_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from halfulp.compiler.codegen import cpu
from halfulp.compiler.codegen.elf import undefined_symbols
from halfulp.compiler.codegen.llvm import emit_llvm
from halfulp.compiler.dialects import get_all_dialects
from halfulp.compiler.errors import CompileError
from halfulp.compiler.passes.convert_loops_to_llvm import ConvertLoopsToLlvmPass
from halfulp.runtime.loader import LoadError, NativeLibrary, load_entry

Array = NDArray[Any]


def lowered(source: str, arch: str | None = None) -> ModuleOp:
    """A module in the loops dialects, converted to the llvm dialect."""
    context = Context()
    for name, load in {**get_upstream_dialects(), **get_all_dialects()}.items():
        context.register_dialect(name, load)
    module = Parser(context, source).parse_module()
    module.verify()
    ConvertLoopsToLlvmPass(arch=arch or cpu.host_target().arch).apply(context, module)
    module.verify()
    return module


def run(source: str, arrays: list[Array], dims: tuple[int, ...] = (), bits: int | None = None) -> None:
    """Compiles loops IR and calls its entry function ``@f``."""
    target = cpu.host_target(bits)
    text = emit_llvm(lowered(source), function_attributes=target.function_attributes)
    function = load_entry(cpu.compile_to_object(text, target), "f.call")
    buffers = (ctypes.c_void_p * max(1, len(arrays)))(*[a.ctypes.data for a in arrays])
    sizes = (ctypes.c_int64 * max(1, len(dims)))(*dims)
    function(ctypes.addressof(buffers), ctypes.addressof(sizes))


def widths() -> list[int]:
    """The vector widths that this machine has."""
    return [bits for bits in (512, 256, 128) if bits <= cpu.host_target().vector_bits]


# Memory


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("count", [0, 1, 7, 16])
def test_masked_access_leaves_lanes_that_are_off_alone(bits: int, count: int) -> None:
    source = """
    func.func @f(%x : memref<?xf32>, %y : memref<?xf32>, %n : index) attributes {halfulp.entry} {
      %c0 = arith.constant 0 : index
      %pass = arith.constant dense<-7.0> : vector<16xf32>
      %mask = vector.create_mask %n : vector<16xi1>
      %v = vector.maskedload %x[%c0], %mask, %pass : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
      %w = arith.addf %v, %v : vector<16xf32>
      vector.store %w, %y[%c0] : memref<?xf32>, vector<16xf32>
      vector.maskedstore %x[%c0], %mask, %w : memref<?xf32>, vector<16xi1>, vector<16xf32>
      func.return
    }"""
    x = np.arange(1, 17, dtype=np.float32)
    y = np.zeros(16, np.float32)
    old = x.copy()
    run(source, [x, y], (count,), bits)
    on = np.arange(16) < count
    np.testing.assert_array_equal(y, np.where(on, 2 * old, -14))
    np.testing.assert_array_equal(x, np.where(on, 2 * old, old))


def test_masked_load_past_the_end_of_a_mapping_does_not_fault() -> None:
    import mmap

    source = """
    func.func @f(%x : memref<?xf32>, %y : memref<?xf32>, %n : index) attributes {halfulp.entry} {
      %c0 = arith.constant 0 : index
      %pass = arith.constant dense<0.0> : vector<16xf32>
      %mask = vector.create_mask %n : vector<16xi1>
      %v = vector.maskedload %x[%c0], %mask, %pass : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
      vector.store %v, %y[%c0] : memref<?xf32>, vector<16xf32>
      func.return
    }"""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    libc = ctypes.CDLL(None, use_errno=True)
    whole = np.frombuffer(memory, np.float32)
    whole[page // 4 - 3 : page // 4] = [1, 2, 3]
    guard = whole.ctypes.data + page
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert libc.mprotect(guard, page, 0) == 0
    try:
        y = np.zeros(16, np.float32)
        run(source, [whole[page // 4 - 3 :], y], (3,))
        np.testing.assert_array_equal(y, [1, 2, 3] + [0] * 13)
    finally:
        libc.mprotect(guard, page, 3)


@pytest.mark.parametrize("bits", widths())
def test_bools_are_bytes_in_memory_and_any_nonzero_byte_is_true(bits: int) -> None:
    source = """
    func.func @f(%x : memref<?xi1>, %y : memref<?xi1>, %z : memref<?xi16>) attributes {halfulp.entry} {
      %c0 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %v = vector.load %x[%c0] : memref<?xi1>, vector<16xi1>
      vector.store %v, %y[%c0] : memref<?xi1>, vector<16xi1>
      %bits = vector_ext.bitmask %v : vector<16xi1> to i16
      memref.store %bits, %z[%c0] : memref<?xi16>
      %s = memref.load %x[%c3] : memref<?xi1>
      memref.store %s, %y[%c0] : memref<?xi1>
      func.return
    }"""
    x = np.array([0, 1, 0, 255, 2, 0, 0, 1] + [0] * 7 + [1], np.uint8)
    y, z = np.full(16, 9, np.uint8), np.zeros(1, np.uint16)
    run(source, [x, y, z], bits=bits)
    np.testing.assert_array_equal(y, [1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1])
    assert z[0] == 0b1000_0000_1001_1010


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("width", [32, 64])
def test_gather_and_scatter(bits: int, width: int) -> None:
    source = f"""
    func.func @f(%x : memref<?xf32>, %i : memref<?xi{width}>, %m : memref<?xi1>, %y : memref<?xf32>,
                 %z : memref<?xf32>) attributes {{halfulp.entry}} {{
      %c0 = arith.constant 0 : index
      %pass = arith.constant dense<-1.0> : vector<8xf32>
      %at = vector.load %i[%c0] : memref<?xi{width}>, vector<8xi{width}>
      %mask = vector.load %m[%c0] : memref<?xi1>, vector<8xi1>
      %v = vector_ext.gather %x[%at], %mask, %pass
        : memref<?xf32>, vector<8xi{width}>, vector<8xi1> into vector<8xf32>
      vector.store %v, %y[%c0] : memref<?xf32>, vector<8xf32>
      vector_ext.scatter %v, %z[%at], %mask : vector<8xf32>, memref<?xf32>, vector<8xi{width}>, vector<8xi1>
      func.return
    }}"""
    x = np.arange(10, 20, dtype=np.float32)
    index = np.array([3, 9, 0, 3, 2**31 - 1, 5, -1000000, 0], f"int{width}")
    mask = np.array([1, 1, 1, 1, 0, 1, 0, 1], np.uint8)
    y, z = np.zeros(8, np.float32), np.zeros(10, np.float32)
    run(source, [x, index, mask, y, z], bits=bits)
    np.testing.assert_array_equal(y, [13, 19, 10, 13, -1, 15, -1, 10])
    np.testing.assert_array_equal(z, [10, 0, 0, 13, 0, 15, 0, 0, 0, 19])


def test_scatter_of_equal_indices_keeps_the_last_lane() -> None:
    source = """
    func.func @f(%x : memref<?xi32>, %z : memref<?xi32>) attributes {halfulp.entry} {
      %c0 = arith.constant 0 : index
      %on = arith.constant dense<true> : vector<8xi1>
      %at = arith.constant dense<2> : vector<8xi64>
      %v = vector.load %x[%c0] : memref<?xi32>, vector<8xi32>
      vector_ext.scatter %v, %z[%at], %on : vector<8xi32>, memref<?xi32>, vector<8xi64>, vector<8xi1>
      func.return
    }"""
    for bits in widths():
        z = np.zeros(4, np.int32)
        run(source, [np.arange(8, dtype=np.int32), z], bits=bits)
        np.testing.assert_array_equal(z, [0, 0, 7, 0])


def test_stack_buffer_in_a_loop_does_not_grow_the_stack() -> None:
    source = """
    func.func @f(%y : memref<?xf64>, %n : index) attributes {halfulp.entry} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c5 = arith.constant 5 : index
      %one = arith.constant 1.0 : f64
      scf.for %i = %c0 to %n step %c1 {
        %a = memref.alloca() {alignment = 64 : i64} : memref<4096xf64>
        %b = "memref.cast"(%a) : (memref<4096xf64>) -> memref<?xf64>
        memref.store %one, %b[%c5] : memref<?xf64>
        %v = memref.load %a[%c5] : memref<4096xf64>
        %old = memref.load %y[%c0] : memref<?xf64>
        %new = arith.addf %old, %v : f64
        memref.store %new, %y[%c0] : memref<?xf64>
      }
      func.return
    }"""
    y = np.zeros(1)
    run(source, [y], (10_000,))
    assert y[0] == 10_000


@pytest.mark.parametrize("element", ["i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "index"])
def test_constants_keep_their_bits(element: str) -> None:
    kinds: dict[str, tuple[str, type[Any], list[int]]] = {
        "i1": ("true", np.uint8, [1, 0]),
        "i8": ("-128 : i8", np.uint8, [0x80, 0x7F]),
        "i16": ("-32768 : i16", np.uint16, [0x8000, 7]),
        "i32": ("-1 : i32", np.uint32, [2**32 - 1, 2**31 - 1]),
        "i64": ("-9223372036854775808 : i64", np.uint64, [2**63, 5]),
        "f16": ("-0.0 : f16", np.uint16, [0x8000, 0x7D01]),
        "bf16": ("-0.0 : bf16", np.uint16, [0x8000, 0xFF81]),
        "f32": ("0xFF800000 : f32", np.uint32, [0xFF800000, 0x7FA01234]),
        "f64": ("0.1 : f64", np.uint64, [0x3FB999999999999A, 0x7FF4000000000001]),
        "index": ("-1 : index", np.uint64, [2**64 - 1, 12]),
    }
    scalar, dtype, bits = kinds[element]
    # Written as bytes: xDSL reads a hexadecimal element of a dense float constant as a number, not as its bits.
    dense = '"0x' + np.array(bits, dtype).tobytes().hex().upper() + '"'
    source = f"""
    func.func @f(%y : memref<?x{element}>) attributes {{halfulp.entry}} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %s = arith.constant {scalar}
      memref.store %s, %y[%c0] : memref<?x{element}>
      %d = arith.constant dense<{dense}> : vector<2x{element}>
      vector.store %d, %y[%c1] : memref<?x{element}>, vector<2x{element}>
      func.return
    }}"""
    y = np.zeros(3, dtype)
    run(source, [y])
    np.testing.assert_array_equal(y, np.array([bits[0], *bits], dtype))


# Vectors


def test_shuffle_of_different_lengths_extract_insert_and_bitcast() -> None:
    source = """
    func.func @f(%x : memref<?xi32>, %y : memref<?xi32>, %z : memref<?xi16>, %k : index)
        attributes {halfulp.entry} {
      %c0 = arith.constant 0 : index
      %c4 = arith.constant 4 : index
      %a = vector.load %x[%c0] : memref<?xi32>, vector<4xi32>
      %b = vector.load %x[%c4] : memref<?xi32>, vector<2xi32>
      %s = "vector.shuffle"(%a, %b) <{mask = array<i64: 5, 0, 4, 3, 1, 5>}>
        : (vector<4xi32>, vector<2xi32>) -> vector<6xi32>
      %e = vector.extract %a[%k] : i32 from vector<4xi32>
      %t = vector.insert %e, %s[1] : i32 into vector<6xi32>
      %w = vector.broadcast %e : i32 to vector<6xi32>
      %u = arith.addi %t, %w : vector<6xi32>
      vector.store %u, %y[%c0] : memref<?xi32>, vector<6xi32>
      %h = vector.bitcast %b : vector<2xi32> to vector<4xi16>
      vector.store %h, %z[%c0] : memref<?xi16>, vector<4xi16>
      func.return
    }"""
    x = np.array([10, 11, 12, 13, 0x10002, 0x30004], np.int32)
    y, z = np.zeros(6, np.int32), np.zeros(4, np.int16)
    run(source, [x, y, z], (2,))
    shuffled = np.array([x[5], x[2], x[4], x[3], x[1], x[5]], np.int32)
    np.testing.assert_array_equal(y, shuffled + 12)
    np.testing.assert_array_equal(z, [2, 1, 4, 3])


# Integers


@pytest.mark.parametrize("width", [8, 32, 64])
def test_integer_ops(width: int) -> None:
    t = f"i{width}"
    ops: dict[str, Callable[[int, int], int]] = {
        "addi": lambda a, b: a + b,
        "subi": lambda a, b: a - b,
        "muli": lambda a, b: a * b,
        "andi": lambda a, b: a & b,
        "ori": lambda a, b: a | b,
        "xori": lambda a, b: a ^ b,
        "maxsi": max,
        "minsi": min,
        "maxui": lambda a, b: max(a, b, key=lambda v: v % 2**width),
        "minui": lambda a, b: min(a, b, key=lambda v: v % 2**width),
        "divsi": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
        "remsi": lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
        "divui": lambda a, b: (a % 2**width) // (b % 2**width),
        "remui": lambda a, b: (a % 2**width) % (b % 2**width),
        "floordivsi": lambda a, b: a // b,
        "ceildivsi": lambda a, b: -(-a // b),
        "ceildivui": lambda a, b: -(-(a % 2**width) // (b % 2**width)),
        "shli": lambda a, b: a << (b & 7),
        "shrui": lambda a, b: (a % 2**width) >> (b & 7),
        "shrsi": lambda a, b: a >> (b & 7),
    }
    lines = []
    for i, op in enumerate(ops):
        rhs = "%shift" if op.startswith("sh") else "%b"
        lines.append(f"%r{i} = arith.{op} %a, {rhs} : vector<4x{t}>")
        lines.append(f"%o{i} = arith.constant {4 * i} : index")
        lines.append(f"vector.store %r{i}, %y[%o{i}] : memref<?x{t}>, vector<4x{t}>")
    source = f"""
    func.func @f(%x : memref<?x{t}>, %y : memref<?x{t}>) attributes {{halfulp.entry}} {{
      %c0 = arith.constant 0 : index
      %c4 = arith.constant 4 : index
      %seven = arith.constant dense<7> : vector<4x{t}>
      %a = vector.load %x[%c0] : memref<?x{t}>, vector<4x{t}>
      %b = vector.load %x[%c4] : memref<?x{t}>, vector<4x{t}>
      %shift = arith.andi %b, %seven : vector<4x{t}>
      {chr(10).join(lines)}
      func.return
    }}"""
    dtype = np.dtype(f"int{width}")
    generator = np.random.default_rng(width)
    for _ in range(5):
        x = generator.integers(np.iinfo(dtype).min + 1, np.iinfo(dtype).max, 8, dtype)
        x[4:] = np.where(x[4:] == 0, 3, x[4:])
        x[5], x[1] = -3, 7
        y = np.zeros(4 * len(ops), dtype)
        run(source, [x, y])
        for i, (op, reference) in enumerate(ops.items()):
            for lane in range(4):
                wanted = reference(int(x[lane]), int(x[4 + lane])) % 2**width
                assert int(y[4 * i + lane]) % 2**width == wanted, (op, x[lane], x[4 + lane])


def test_bit_counts_and_extended_arithmetic() -> None:
    source = """
    func.func @f(%x : memref<?xi32>, %y : memref<?xi32>, %o : memref<?xi1>) attributes {halfulp.entry} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %a = memref.load %x[%c0] : memref<?xi32>
      %b = memref.load %x[%c1] : memref<?xi32>
      %r0 = math.ctlz %a : i32
      %r1 = math.cttz %a : i32
      %r2 = math.ctpop %a : i32
      %r3, %r4 = arith.mului_extended %a, %b : i32
      %r5, %r6 = arith.mulsi_extended %a, %b : i32
      %r7, %carry = arith.addui_extended %a, %b : i32, i1
      %r8 = math.absi %b : i32
      STORES
      memref.store %carry, %o[%c0] : memref<?xi1>
      func.return
    }"""
    stores = "\n".join(
        f"%i{i} = arith.constant {i} : index\nmemref.store %r{i}, %y[%i{i}] : memref<?xi32>" for i in range(9)
    )
    for a, b in ((0, 5), (0x00F0_0010, -3), (-1, -(2**31)), (2**31 - 1, 2**31 - 1)):
        y, carry = np.zeros(9, np.int32), np.zeros(1, np.uint8)
        run(source.replace("STORES", stores), [np.array([a, b], np.int64).astype(np.int32), y, carry])
        ua, ub = a % 2**32, b % 2**32
        wanted = [
            32 - ua.bit_length(),
            32 if not ua else (ua & -ua).bit_length() - 1,
            ua.bit_count(),
            ua * ub % 2**32,
            ua * ub >> 32,
            a * b % 2**32,
            a * b >> 32,
            ua + ub,
            abs(b),
        ]
        assert [int(v) % 2**32 for v in y] == [w % 2**32 for w in wanted]
        assert carry[0] == (ua + ub) >> 32


# Control flow and calls


def test_loops_that_run_zero_times_nested_and_with_results() -> None:
    source = """
    func.func @f(%y : memref<?xi64>, %n : index, %m : index) attributes {halfulp.entry} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %zero = arith.constant 0 : i64
      %hundred = arith.constant 100 : i64
      %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%p = %zero, %q = %hundred) -> (i64, i64) {
        %s = scf.for %j = %c0 to %m step %c2 iter_args(%t = %p) -> (i64) {
          %k = arith.index_cast %j : index to i64
          %u = arith.addi %t, %k : i64
          scf.yield %u : i64
        }
        scf.yield %q, %s : i64, i64
      }
      memref.store %a, %y[%c0] : memref<?xi64>
      memref.store %b, %y[%c1] : memref<?xi64>
      func.return
    }"""
    for n, m in ((0, 5), (1, 0), (3, 5), (2, -4)):
        p, q = 0, 100
        for _ in range(n):
            p, q = q, p + sum(range(0, m, 2))
        y = np.zeros(2, np.int64)
        run(source, [y], (n, m))
        assert y.tolist() == [p, q]


def test_if_with_and_without_results_and_while() -> None:
    source = """
    func.func @f(%y : memref<?xi64>, %n : index) attributes {halfulp.entry} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %one = arith.constant 1 : i64
      %start = arith.index_cast %n : index to i64
      %steps, %last = scf.while (%s = %c0, %v = %start) : (index, i64) -> (index, i64) {
        %again = vector_ext.cmpi ne, %v, %one : i64
        scf.condition(%again) %s, %v : index, i64
      } do {
      ^body(%s : index, %v : i64):
        %bit = arith.andi %v, %one : i64
        %odd = vector_ext.cmpi eq, %bit, %one : i64
        %next = scf.if %odd -> (i64) {
          %three = arith.constant 3 : i64
          %t = arith.muli %v, %three : i64
          %u = arith.addi %t, %one : i64
          scf.yield %u : i64
        } else {
          %h = arith.shrui %v, %one : i64
          scf.yield %h : i64
        }
        %s1 = arith.addi %s, %c1 : index
        scf.yield %s1, %next : index, i64
      }
      %count = arith.index_cast %steps : index to i64
      memref.store %count, %y[%c0] : memref<?xi64>
      memref.store %last, %y[%c1] : memref<?xi64>
      %big = arith.cmpi sgt, %steps, %c3 : index
      scf.if %big {
        memref.store %one, %y[%c2] : memref<?xi64>
      }
      func.return
    }"""
    for start in (1, 2, 27):
        value, steps = start, 0
        while value != 1:
            value, steps = (3 * value + 1 if value % 2 else value // 2), steps + 1
        y = np.zeros(3, np.int64)
        run(source, [y], (start,))
        assert y.tolist() == [steps, 1, int(steps > 3)]


def test_calls_with_no_one_and_several_results() -> None:
    source = """
    func.func private @divide(%a : i64, %b : i64) -> (i64, i64) {
      %q = arith.divsi %a, %b : i64
      %r = arith.remsi %a, %b : i64
      func.return %q, %r : i64, i64
    }
    func.func private @twice(%v : vector<4xi64>) -> vector<4xi64> {
      %w = arith.addi %v, %v : vector<4xi64>
      func.return %w : vector<4xi64>
    }
    func.func private @put(%y : memref<?xi64>, %i : index, %v : i64) {
      memref.store %v, %y[%i] : memref<?xi64>
      func.return
    }
    func.func @f(%y : memref<?xi64>, %n : index) attributes {halfulp.entry} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %ten = arith.constant 10 : i64
      %a = arith.index_cast %n : index to i64
      %q, %r = func.call @divide(%a, %ten) : (i64, i64) -> (i64, i64)
      func.call @put(%y, %c0, %q) : (memref<?xi64>, index, i64) -> ()
      func.call @put(%y, %c1, %r) : (memref<?xi64>, index, i64) -> ()
      %v = vector.broadcast %r : i64 to vector<4xi64>
      %w = func.call @twice(%v) : (vector<4xi64>) -> vector<4xi64>
      vector.store %w, %y[%c2] : memref<?xi64>, vector<4xi64>
      func.return
    }"""
    for bits in widths():
        y = np.zeros(6, np.int64)
        run(source, [y], (123,), bits)
        assert y.tolist() == [12, 3, 6, 6, 6, 6]


# The entry function


def mxcsr_functions() -> tuple[Any, Any]:
    """(get, set) for this thread's MXCSR, compiled for the purpose."""
    text = """
    define i32 @get() {
      %p = alloca i32
      call void @llvm.x86.sse.stmxcsr(ptr %p)
      %v = load i32, ptr %p
      ret i32 %v
    }
    define void @set(i32 %v) {
      %p = alloca i32
      store i32 %v, ptr %p
      call void @llvm.x86.sse.ldmxcsr(ptr %p)
      ret void
    }
    declare void @llvm.x86.sse.stmxcsr(ptr)
    declare void @llvm.x86.sse.ldmxcsr(ptr)"""
    library = NativeLibrary(cpu.compile_to_object(text, cpu.host_target()), ["get", "set"])
    getter = ctypes.PYFUNCTYPE(ctypes.c_uint32)(library.address("get"))
    setter = ctypes.PYFUNCTYPE(None, ctypes.c_uint32)(library.address("set"))
    getter.library = setter.library = library  # type: ignore[attr-defined]
    return getter, setter


@pytest.mark.skipif(cpu.host_target().arch != "x86_64", reason="MXCSR is a register of x86")
@pytest.mark.parametrize("state", [0x9FC0, 0x7F80, 0x1F80], ids=["ftz-daz", "round-to-zero", "default"])
def test_callers_rounding_state_neither_changes_results_nor_is_changed(state: int) -> None:
    source = """
    func.func @f(%x : memref<?xf32>, %y : memref<?xf32>) attributes {halfulp.entry} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0] : memref<?xf32>, vector<4xf32>
      %third = arith.constant dense<0.33333334> : vector<4xf32>
      %w = arith.mulf %v, %third : vector<4xf32>
      vector.store %w, %y[%c0] : memref<?xf32>, vector<4xf32>
      func.return
    }"""
    x = np.array([1e-40, 1.0, 3e-38, 7.0], np.float32)
    expected = x * np.float32(0.33333334)
    y = np.zeros(4, np.float32)
    target = cpu.host_target()
    function = load_entry(cpu.compile_to_object(emit_llvm(lowered(source)), target), "f.call")
    buffers = (ctypes.c_void_p * 2)(x.ctypes.data, y.ctypes.data)
    getter, setter = mxcsr_functions()
    before = getter()
    setter(state)
    try:
        function(ctypes.addressof(buffers), 0)
        after = getter()
    finally:
        setter(before)
    np.testing.assert_array_equal(y.view(np.uint32), expected.view(np.uint32))
    assert after == state


# Errors


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "%s = math.exp %v : vector<16xf32>",
            "convert-loops-to-llvm: math.exp in function @f is not in the loops subset; run expand-math first",
        ),
        (
            "%s = memref.dim %x, %c0 : memref<?xf32>",
            "convert-loops-to-llvm: memref.dim in function @f asks for the size of memref<?xf32>, which a flat memref"
            " does not carry; pass it as an index argument",
        ),
        (
            "%s = memref.alloca() : memref<1000000xf32>",
            "convert-loops-to-llvm: memref.alloca in function @f brings the stack buffers to 4000000 bytes of 1048576"
            " allowed; use an argument instead",
        ),
        (
            "%s = memref.alloca() : memref<4x4xf32>",
            "convert-loops-to-llvm: memrefs must be flat (rank 1, contiguous, in default memory), not memref<4x4xf32>",
        ),
        (
            "%s = arith.constant dense<0.0> : vector<4x4xf32>",
            "convert-loops-to-llvm: vectors must be fixed and 1-D, not vector<4x4xf32>; lower to 1-D vectors first",
        ),
        (
            "%s = arith.constant 1.0 : f128",
            "convert-loops-to-llvm: type f128 is not in the loops subset (index, i1 to i64, f16, bf16, f32, f64, their"
            " 1-D vectors, and flat memrefs)",
        ),
        (
            "scf.for %i = %c0 to %c0 step %c0 { scf.yield } {speed = 3 : i64}",
            "convert-loops-to-llvm: scf.for in function @f has the attribute speed, which has no meaning in LLVM;"
            " remove it",
        ),
    ],
)
def test_what_is_outside_the_subset_is_named(body: str, message: str) -> None:
    source = f"""
    func.func @f(%x : memref<?xf32>) {{
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0] : memref<?xf32>, vector<16xf32>
      {body}
      func.return
    }}"""
    with pytest.raises(CompileError) as caught:
        lowered(source)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            "func.func @f(%x : f32) attributes {halfulp.entry} { func.return }",
            "convert-loops-to-llvm: argument 0 of entry function @f is f32; an entry takes memrefs and index values",
        ),
        (
            "func.func @f(%x : index) -> index attributes {halfulp.entry} { func.return %x : index }",
            "convert-loops-to-llvm: entry function @f returns values; write them to memrefs instead",
        ),
        (
            "func.func private @f(index) attributes {halfulp.entry}",
            "convert-loops-to-llvm: function @f is halfulp.entry but has no body; give it one",
        ),
        (
            "func.func @f() attributes {speed} { func.return }",
            "convert-loops-to-llvm: function @f has the attribute speed = unit, which has no meaning in LLVM;"
            " remove it",
        ),
        (
            "func.func @f(%x : index {halfulp.may_alias}) { func.return }",
            "convert-loops-to-llvm: argument 0 of @f is index, but only memrefs take halfulp.may_alias",
        ),
        (
            "func.func @f(%x : memref<?xf32> {tt.divisibility = 16 : i64}) { func.return }",
            "convert-loops-to-llvm: argument 0 of @f has the attribute tt.divisibility, which has no meaning in LLVM;"
            " remove it",
        ),
    ],
)
def test_functions_outside_the_subset_are_named(function: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        lowered(function)
    assert caught.value.message == message


def test_unknown_architecture_is_refused() -> None:
    with pytest.raises(CompileError) as caught:
        lowered("func.func @f() { func.return }", arch="riscv64")
    expected = "convert-loops-to-llvm: arch must be one of 'x86_64', 'aarch64', 'nvptx64', not 'riscv64'"
    assert caught.value.message == expected


def test_unknown_width_of_permutations_is_refused() -> None:
    with pytest.raises(CompileError) as caught:
        ConvertLoopsToLlvmPass(permutes=128).apply(Context(), ModuleOp([]))
    assert caught.value.message == "convert-loops-to-llvm: permutes must be one of 0, 256, 512, not 128"


def test_aarch64_saves_and_sets_its_own_state_register() -> None:
    text = emit_llvm(lowered("func.func @f() attributes {halfulp.entry} { func.return }", arch="aarch64"))
    calls = [line.strip() for line in text.splitlines() if "call" in line and "define" not in line]
    assert calls == [
        "%v = call i64 @llvm.aarch64.get.fpcr()",
        "call void @llvm.aarch64.set.fpcr(i64 0)",
        "call void @f()",
        "call void @llvm.aarch64.set.fpcr(i64 %v)",
    ]


def test_code_for_aarch64_uses_its_instructions_and_no_library() -> None:
    source = """
    func.func @f(%x : memref<?xf32>, %h : memref<?xbf16>) attributes {halfulp.entry} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0] : memref<?xf32>, vector<4xf32>
      %w = math.fma %v, %v, %v : vector<4xf32>
      %m = arith.maximumf %v, %w : vector<4xf32>
      %r = vector_ext.cast %m truncf : vector<4xf32> to vector<4xbf16>
      vector.store %r, %h[%c0] : memref<?xbf16>, vector<4xbf16>
      func.return
    }"""
    target = cpu.CpuTarget("aarch64-unknown-linux-gnu", "generic", "", 128)
    text = emit_llvm(lowered(source, arch="aarch64"), target=target.name)
    assembly = cpu.emit_assembly(text, target)
    for instruction in ("fmla\tv", "fmax\tv", "mrs\tx", "msr\tFPCR"):
        assert instruction in assembly
    assert undefined_symbols(cpu.compile_to_object(text, target)) == []


# Target and loader


def test_x86_cpu_without_fma_is_refused() -> None:
    features = {"avx": True, "avx2": True, "f16c": False, "fma": False}
    with pytest.raises(CompileError) as caught:
        cpu.require_features("ivybridge", features)
    assert caught.value.message == (
        "CPU 'ivybridge' lacks f16c, fma: halfulp compiles for x86 CPUs with AVX, F16C and FMA"
        " (Intel since Haswell, AMD since Piledriver); use such a machine"
    )


def test_vector_bits_choose_features() -> None:
    wide = dict.fromkeys(("avx", "avx2", "fma", "avx512f", "avx512vl", "avx512bw", "avx512dq"), True)
    assert cpu.select_features(wide, None) == (wide, 512)
    chosen, bits = cpu.select_features(wide, 256)
    assert bits == 256
    assert [name for name, on in chosen.items() if on] == ["avx", "avx2", "fma"]
    assert cpu.select_features({"avx": True, "avx2": True}, None)[1] == 256
    assert cpu.select_features({"avx": True}, None)[1] == 128
    with pytest.raises(CompileError, match=r"^vector_bits=512 is more than this CPU has; use 256 or less$"):
        cpu.select_features({"avx2": True}, 512)
    with pytest.raises(CompileError, match=r"^vector_bits must be 128, 256 or 512, not 64$"):
        cpu.select_features({"avx2": True}, 64)


@pytest.mark.parametrize("bits", widths())
def test_code_stays_within_the_vector_width(bits: int) -> None:
    source = """
    func.func @f(%x : memref<?xf32>) attributes {halfulp.entry} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0] : memref<?xf32>, vector<16xf32>
      %w = math.fma %v, %v, %v : vector<16xf32>
      vector.store %w, %x[%c0] : memref<?xf32>, vector<16xf32>
      func.return
    }"""
    target = cpu.host_target(bits)
    if target.arch != "x86_64":
        pytest.skip("register names are those of x86")
    text = emit_llvm(lowered(source), function_attributes=target.function_attributes)
    code = cpu.emit_assembly(text, target)
    assert "vfmadd" in code
    assert ("zmm" in code) == (bits == 512)


def test_llvm_complaints_show_the_line() -> None:
    target = cpu.host_target()
    with pytest.raises(CompileError) as caught:
        cpu.compile_to_object("define void @g() {\n  %x = frob i32 1\n  ret void\n}\n", target)
    assert caught.value.message == "LLVM rejects line 2 of its text, '%x = frob i32 1': expected instruction opcode"
    with pytest.raises(CompileError) as caught:
        cpu.compile_to_object(
            "define i32 @g(i1 %c) {\n  br i1 %c, label %a, label %b\na:\n  %x = add i32 1, 2\n  br label %b\n"
            "b:\n  ret i32 %x\n}\n",
            target,
        )
    assert caught.value.message.startswith("LLVM rejects the module: Instruction does not dominate all uses!")
    with pytest.raises(CompileError) as caught:
        cpu.compile_to_object("", target, opt_level=4)
    assert caught.value.message == "opt_level must be 0, 1, 2 or 3, not 4"


def test_objects_that_cannot_be_loaded_raise() -> None:
    target = cpu.host_target()
    with pytest.raises(LoadError, match="not recognized as a valid object file"):
        NativeLibrary(b"garbage", ["f"])
    text = "declare void @no_such_function()\ndefine void @f() {\n  call void @no_such_function()\n  ret void\n}\n"
    code = cpu.compile_to_object(text, target)
    with pytest.raises(LoadError, match="no_such_function"):
        NativeLibrary(code, ["f"])
    with pytest.raises(LoadError, match="absent"):
        NativeLibrary(code, ["absent"], {"no_such_function": 1})
    with pytest.raises(LoadError, match="damaged"):
        NativeLibrary(code[: len(code) // 2], ["f"], {"no_such_function": 1})


def test_imported_functions_are_called_and_the_entry_keeps_its_library() -> None:
    text = "declare void @report(ptr, ptr)\ndefine void @f.call(ptr %a, ptr %b) {\n"
    text += "  call void @report(ptr %b, ptr %a)\n  ret void\n}\n"
    seen: list[tuple[int | None, int | None]] = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda a, b: seen.append((a, b)))
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address is not None
    function = load_entry(cpu.compile_to_object(text, cpu.host_target()), "f.call", {"report": address})
    function(16, 32)
    assert seen == [(32, 16)]
