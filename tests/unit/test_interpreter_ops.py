"""Every op that the interpreter runs, one small kernel each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, builtin
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import ModuleOp

from halfulp.compiler.codegen.math.table import EXPANSIONS
from halfulp.compiler.dialects.tile import KernelOp, RefType, Tile
from halfulp.compiler.interpreter import FailedCheck, InterpreterError, interpret, interpret_kernel
from halfulp.compiler.interpreter.frame import TERMINATORS
from halfulp.compiler.interpreter.machine import HANDLERS

Parse = Callable[[str], ModuleOp]

# what an op yields on constants: its text, with the values of its operands in braces; the type; the elements
CASES: dict[str, tuple[str, str, list[Any]]] = {
    "tile.splat": ("tile.splat {7 : i32} : i32 -> tensor<3xi32>", "tensor<3xi32>", [7, 7, 7]),
    "tile.iota": ("tile.iota 1 : tensor<2x3xi8>", "tensor<2x3xi8>", [0, 1, 2, 0, 1, 2]),
    "tile.broadcast": (
        "tile.broadcast {dense<[[1], [2]]> : tensor<2x1xi32>} : tensor<2x1xi32> -> tensor<2x3xi32>",
        "tensor<2x3xi32>",
        [1, 1, 1, 2, 2, 2],
    ),
    "tile.reshape": (
        "tile.reshape {dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>} : tensor<2x2xi32> -> tensor<4xi32>",
        "tensor<4xi32>",
        [1, 2, 3, 4],
    ),
    "tile.transpose": (
        "tile.transpose {dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>} [1, 0] : tensor<2x3xi32> -> tensor<3x2xi32>",
        "tensor<3x2xi32>",
        [1, 4, 2, 5, 3, 6],
    ),
    "tile.slice": (
        "tile.slice {dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>} from [1, 2] step [0, -1]"
        " : tensor<2x3xi32> -> tensor<2x2xi32>",
        "tensor<2x2xi32>",
        [6, 5, 6, 5],
    ),
    "tile.concat": (
        "tile.concat 1 of {dense<[[1], [2]]> : tensor<2x1xi32>}, {dense<[[3, 4], [5, 6]]> : tensor<2x2xi32>}"
        " : tensor<2x1xi32>, tensor<2x2xi32> -> tensor<2x3xi32>",
        "tensor<2x3xi32>",
        [1, 3, 4, 2, 5, 6],
    ),
    "tile.extract": (
        "tile.extract {dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>}[{1 : index}, {0 : index}] : tensor<2x2xi32> -> i32",
        "i32",
        [3],
    ),
    "tile.lookup": (
        "tile.lookup {dense<[0, 3, 5, -1, 2147483646]> : tensor<5xi32>} in dense<[1.5, 2.0, -0.5, 4.0]> : tensor<4xf32>"
        " : tensor<5xi32> -> tensor<5xf32>",
        "tensor<5xf32>",
        [1.5, 4.0, 2.0, 4.0, -0.5],
    ),
    "tile.scale": (
        "tile.scale {dense<[1.5, -3.0, 1.0, 1.0]> : tensor<4xf32>}, "
        "{dense<[2.0, -149.0, 200.0, -151.0]> : tensor<4xf32>}"
        " : tensor<4xf32>",
        "tensor<4xf32>",
        [6.0, -3 * 2.0**-149, math.inf, 0.0],
    ),
    "tile.select": (
        "tile.select {dense<[true, false]> : tensor<2xi1>}, {dense<[1, 2]> : tensor<2xi32>},"
        " {dense<[3, 4]> : tensor<2xi32>} : tensor<2xi1>, tensor<2xi32>, tensor<2xi32> -> tensor<2xi32>",
        "tensor<2xi32>",
        [1, 4],
    ),
    "tile.select of a scalar condition": (
        "tile.select {false}, {dense<[1, 2]> : tensor<2xi32>}, {dense<[3, 4]> : tensor<2xi32>}"
        " : i1, tensor<2xi32>, tensor<2xi32> -> tensor<2xi32>",
        "tensor<2xi32>",
        [3, 4],
    ),
    "tile.cast": (
        'tile.cast {dense<"0x0000C03F0000C07F"> : tensor<2xf32>} : tensor<2xf32> -> tensor<2xi8>',
        "tensor<2xi8>",
        [1, 0],
    ),
    "tile.cast unsigned": (
        "tile.cast unsigned_source {-1 : i8} : i8 -> f32",
        "f32",
        [255.0],
    ),
    "tile.cmpf": (
        'tile.cmpf ult {dense<"0x0000803F0000C07F"> : tensor<2xf32>}, {dense<0.0> : tensor<2xf32>}'
        " : tensor<2xf32> -> tensor<2xi1>",
        "tensor<2xi1>",
        [False, True],
    ),
    "tile.cmpi": (
        "tile.cmpi ult {dense<[1, -1]> : tensor<2xi32>}, {dense<2> : tensor<2xi32>} : tensor<2xi32> -> tensor<2xi1>",
        "tensor<2xi1>",
        [True, False],
    ),
    "tile.int_div": (
        "tile.int_div mods {dense<[-7, 5]> : tensor<2xi32>}, {dense<[3, 0]> : tensor<2xi32>} : tensor<2xi32>",
        "tensor<2xi32>",
        [2, 0],
    ),
    "tile.shift": (
        "tile.shift right_arithmetic {dense<-8> : tensor<2xi32>}, {dense<[1, 99]> : tensor<2xi32>} : tensor<2xi32>",
        "tensor<2xi32>",
        [-4, -1],
    ),
    "tile.reduce": (
        "tile.reduce add {dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} axis 0 lanes 1"
        " : tensor<2x2xf32> -> tensor<2xf32>",
        "tensor<2xf32>",
        [4.0, 6.0],
    ),
    "tile.reduce of the first two": (
        "tile.reduce add {dense<[[1, 2, 4], [8, 16, 32]]> : tensor<2x3xi32>} axis 1 lanes 64 count {2 : index}"
        " : tensor<2x3xi32> -> tensor<2xi32>",
        "tensor<2xi32>",
        [3, 24],
    ),
    "tile.reduce of more than there are": (
        "tile.reduce mul {dense<[3, 5]> : tensor<2xi32>} axis 0 lanes 64 count {9 : index} : tensor<2xi32> -> i32",
        "i32",
        [15],
    ),
    "tile.reduce of none": (
        "tile.reduce add {dense<1.0> : tensor<2xf32>} axis 0 lanes 64 count {-1 : index} : tensor<2xf32> -> f32",
        "f32",
        [-0.0],
    ),
    "tile.dot": (
        "tile.dot {dense<[[1.0, 2.0]]> : tensor<1x2xbf16>}, {dense<[[3.0], [4.0]]> : tensor<2x1xbf16>},"
        " {dense<5.0> : tensor<1x1xf32>} fused true : tensor<1x2xbf16>, tensor<2x1xbf16> -> tensor<1x1xf32>",
        "tensor<1x1xf32>",
        [16.0],
    ),
    "arith.constant": ("arith.constant dense<[1.0, -0.0]> : tensor<2xbf16>", "tensor<2xbf16>", [1.0, -0.0]),
    "arith.constant of i1": ("arith.constant true", "i1", [True]),
    "arith.cmpf": ("arith.cmpf one, {1.0 : f32}, {2.0 : f32} : f32", "i1", [True]),
    "arith.cmpi": ("arith.cmpi slt, {-1 : i8}, {1 : i8} : i8", "i1", [True]),
    "arith.select": ("arith.select {true}, {1.0 : f32}, {2.0 : f32} : f32", "f32", [1.0]),
    "arith.bitcast": (
        "arith.bitcast {dense<[1.0, -0.0]> : tensor<2xf32>} : tensor<2xf32> to tensor<2xi32>",
        "tensor<2xi32>",
        [0x3F800000, -(2**31)],
    ),
    "arith.index_cast": ("arith.index_cast {-3 : i32} : i32 to index", "index", [-3]),
    "arith.extsi": ("arith.extsi {-3 : i8} : i8 to i32", "i32", [-3]),
    "arith.extui": ("arith.extui {-3 : i8} : i8 to i32", "i32", [253]),
    "arith.trunci": ("arith.trunci {259 : i32} : i32 to i8", "i8", [3]),
    "arith.extf": ("arith.extf {0.5 : f16} : f16 to f32", "f32", [0.5]),
    "arith.truncf": ("arith.truncf {1.004 : f32} : f32 to bf16", "bf16", [1.0078125]),
    "arith.fptosi": ("arith.fptosi {-300.5 : f32} : f32 to i8", "i8", [-128]),
    "arith.fptoui": ("arith.fptoui {255.5 : f32} : f32 to i8", "i8", [-1]),
    "arith.sitofp": ("arith.sitofp {-1 : i8} : i8 to f64", "f64", [-1.0]),
    "arith.uitofp": ("arith.uitofp {-1 : i8} : i8 to f64", "f64", [255.0]),
}

# elementwise ops of arith and math on f32 or i32: operands and result
BINARY: dict[str, tuple[list[Any], Any]] = {
    "arith.addf": ([1.5, 2.0], 3.5),
    "arith.subf": ([1.5, 2.0], -0.5),
    "arith.mulf": ([1.5, 2.0], 3.0),
    "arith.divf": ([1.5, 0.0], math.inf),
    "arith.negf": ([0.0], -0.0),
    "arith.maximumf": ([-0.0, 0.0], 0.0),
    "arith.minimumf": ([0.0, -0.0], -0.0),
    "arith.maxnumf": ([1.0, math.nan], 1.0),
    "arith.minnumf": ([math.nan, 1.0], 1.0),
    "arith.addi": ([2**31 - 1, 1], -(2**31)),
    "arith.subi": ([1, 2], -1),
    "arith.muli": ([2**16, 2**16], 0),
    "arith.andi": ([6, 3], 2),
    "arith.ori": ([6, 3], 7),
    "arith.xori": ([6, 3], 5),
    "arith.maxsi": ([-1, 1], 1),
    "arith.maxui": ([-1, 1], -1),
    "arith.minsi": ([-1, 1], -1),
    "arith.minui": ([-1, 1], 1),
    "arith.shli": ([1, 31], -(2**31)),
    "arith.shrui": ([-1, 31], 1),
    "arith.shrsi": ([-8, 1], -4),
    "arith.divsi": ([-7, 2], -3),
    "arith.remsi": ([-7, 2], -1),
    "arith.floordivsi": ([-7, 2], -4),
    "arith.ceildivsi": ([-7, 2], -3),
    "arith.divui": ([-1, 2], 2**31 - 1),
    "arith.remui": ([-1, 2], 1),
    "arith.ceildivui": ([7, 2], 4),
    "math.fma": ([2.0, 3.0, 4.0], 10.0),
    "math.sqrt": ([2.25], 1.5),
    "math.absf": ([-0.0], 0.0),
    "math.copysign": ([1.0, -0.0], -1.0),
    "math.floor": ([-0.5], -1.0),
    "math.ceil": ([-0.5], -0.0),
    "math.trunc": ([-1.5], -1.0),
    "math.round": ([2.5], 3.0),
    "math.roundeven": ([2.5], 2.0),
    "math.absi": ([-(2**31)], -(2**31)),
    "math.ctpop": ([-1], 32),
    "math.ctlz": ([1], 31),
    "math.cttz": ([0], 32),
}

# ops run by whole programs: each has tests of its own in the file named
ELSEWHERE = {
    "test_interpreter_memory.py": {
        *("tile.window", "tile.flatten", "tile.reinterpret", "tile.dim", "tile.alloc", "tile.load", "tile.store"),
    },
    "test_interpreter_order.py": {"tile.top_merge"},
    "test_interpreter_kernels.py": {
        *("tile.kernel", "tile.launch", "tile.return", "tile.buffer", "tile.set_dim", "tile.check", "tile.transfer"),
        *("scf.if", "scf.for", "scf.while", "scf.index_switch", "func.return", "scf.yield", "scf.condition"),
        *("tile.print", "tile.print_tensor"),
    },
}


def kernel_of(text: str, result_type: str) -> str:
    """A kernel that computes ``text``, whose operands in braces become constants, and stores the result in %out."""
    lines, pieces = [], text.split("{")
    body = pieces[0]
    for number, piece in enumerate(pieces[1:]):
        constant, _, rest = piece.partition("}")
        lines.append(f"%c{number} = arith.constant {constant}")
        body += f"%c{number}{rest}"
    lines.append(f"%r = {body}")
    if result_type.startswith("tensor"):
        shape, _, element = result_type[7:-1].rpartition("x")
        shape = shape.replace("x", ", ")
        lines.append(f"tile.store %r, %out : {result_type}, !tile.ref<[{shape}], {element}, global>")
    else:
        shape, element = "1", result_type
        lines.append(f"%b = tile.splat %r : {element} -> tensor<1x{element}>")
        lines.append(f"tile.store %b, %out : tensor<1x{element}>, !tile.ref<[1], {element}, global>")
    ops = "\n  ".join(lines)
    return (
        f"tile.kernel @k(%out: !tile.ref<[{shape}], {element}, global>) grid() axes [] {{\n  {ops}\n  tile.return\n}}"
    )


def result_of(module: ModuleOp) -> np.ndarray[Any, Any]:
    """What the kernel of a module stores into its only argument."""
    kernel = module.body.block.first_op
    assert isinstance(kernel, KernelOp)
    ref = kernel.arguments[0].type
    assert isinstance(ref, RefType)
    dtypes: dict[str, Any] = {
        "i1": np.bool_,
        "index": np.int64,
        "bf16": "bfloat16",
        "f16": np.float16,
        "f32": np.float32,
        "f64": np.float64,
    }
    element = str(ref.element_type)
    out: np.ndarray[Any, Any] = np.zeros(ref.extents, dtypes.get(element, element.replace("i", "int")))
    assert interpret_kernel(kernel, [], [out]) is None
    return out


def same(actual: np.ndarray[Any, Any], expected: list[Any]) -> bool:
    """Equal elements, signs of zeros included."""
    flat = actual.ravel().astype(np.float64)
    wanted = np.array(expected, np.float64)
    return bool(np.array_equal(flat, wanted) and np.array_equal(np.signbit(flat), np.signbit(wanted)))


@pytest.mark.parametrize("name", CASES)
def test_op(name: str, parse_tile: Parse) -> None:
    text, result_type, expected = CASES[name]
    assert name.split(" ")[0] in text
    assert same(result_of(parse_tile(kernel_of(text, result_type))), expected)


@pytest.mark.parametrize("name", BINARY)
def test_elementwise_op_on_scalars_and_blocks(name: str, parse_tile: Parse) -> None:
    operands, expected = BINARY[name]
    element = "f32" if isinstance(operands[0], float) else "i32"

    def literal(value: Any) -> str:
        return "0x7FC00000" if value != value else str(value)

    scalars = ", ".join(f"{{{literal(value)} : {element}}}" for value in operands)
    assert same(result_of(parse_tile(kernel_of(f"{name} {scalars} : {element}", element))), [expected])
    block = f"tensor<2x{element}>"
    # xDSL reads hexadecimal floats inside dense<> as integers; a string of bytes is safe
    bytes_of = {math.nan: '"0x0000C07F0000C07F"'}
    blocks = ", ".join(f"{{dense<{bytes_of.get(value, value)}> : {block}}}" for value in operands)
    assert same(result_of(parse_tile(kernel_of(f"{name} {blocks} : {block}", block))), [expected] * 2)


def expanded_ops() -> list[str]:
    return sorted(op.name for op in HANDLERS if op.name.startswith("math.") and op.name not in BINARY)


@pytest.mark.parametrize("name", expanded_ops())
def test_elementary_functions_use_the_expansions(name: str, parse_tile: Parse) -> None:
    function = name.removeprefix("math.")
    arity = (EXPANSIONS.get(function) or EXPANSIONS[function.removesuffix("f")])["f32"].arity
    operands = ", ".join(["{dense<[0.5, 0.75]> : tensor<2xf32>}"] * arity)
    got = result_of(parse_tile(kernel_of(f"{name} {operands} : tensor<2xf32>", "tensor<2xf32>")))
    others: dict[str, Callable[..., Any]] = {
        "powf": np.power,
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "erf": np.vectorize(math.erf),
    }
    reference = others.get(function) or getattr(np, function)
    expected = reference(*[np.array([0.5, 0.75])] * arity)
    np.testing.assert_allclose(got, expected, rtol=2.0**-22)


def test_elementary_function_of_bf16_goes_through_f32(parse_tile: Parse) -> None:
    got = result_of(parse_tile(kernel_of("math.exp {0.5 : bf16} : bf16", "bf16")))
    assert float(got[0]) == 1.6484375  # e^0.5 = 1.64872..., between 1.640625 and 1.6484375 + 2^-7


def test_every_tile_op_is_covered() -> None:
    tested = {name.split(" ")[0] for name in CASES}.union(*ELSEWHERE.values())
    assert {op.name for op in Tile.operations} <= tested
    run_by_others = {*TERMINATORS, KernelOp}
    assert all(op in HANDLERS or op in run_by_others for op in Tile.operations)


def test_every_handler_is_tested() -> None:
    tested = {name.split(" ")[0] for name in CASES}.union(BINARY, expanded_ops(), *ELSEWHERE.values())
    assert {op.name for op in HANDLERS} <= tested


def test_an_index_outside_the_block_extracts_zero(parse_tile: Parse) -> None:
    for index in (-1, 2):
        text = f"tile.extract {{dense<[1, 2]> : tensor<2xi32>}}[{{{index} : index}}] : tensor<2xi32> -> i32"
        assert same(result_of(parse_tile(kernel_of(text, "i32"))), [0])


def test_float_constants_keep_their_bits(parse_tile: Parse) -> None:
    text = 'arith.constant dense<"0x0100C07F0100000000000080"> : tensor<3xf32>'
    got = result_of(parse_tile(kernel_of(text, "tensor<3xf32>")))
    assert got.view(np.uint32).tolist() == [0x7FC00001, 1, 0x80000000]


def test_an_op_without_implementation_is_named(parse_tile: Parse) -> None:
    with pytest.raises(InterpreterError) as error:
        result_of(parse_tile(kernel_of("math.atan2 {1.0 : f32}, {2.0 : f32} : f32", "f32")))
    assert str(error.value) == (
        "@k: the interpreter has no implementation of 'math.atan2'; lower it to ops of tile, arith, math or scf that it"
        " knows"
    )


def test_a_result_of_another_type_is_refused(parse_tile: Parse) -> None:
    # arith.cmpf of blocks has the type i1, though there is one result for each element
    module = parse_tile(
        kernel_of("arith.cmpf olt, {dense<1.0> : tensor<2xf32>}, {dense<2.0> : tensor<2xf32>} : tensor<2xf32>", "i1")
    )
    with pytest.raises(InterpreterError) as error:
        result_of(module)
    assert str(error.value) == "@k: %r (a result of 'arith.cmpf') of type i1 cannot hold bool of shape [2]"


def test_types_without_a_dtype_are_named(parse_tile: Parse) -> None:
    with pytest.raises(InterpreterError) as error:
        interpret_kernel(
            _first_kernel(parse_tile(kernel_of("arith.constant 1 : i7", "i7"))), [], [np.zeros(1, np.int8)]
        )
    assert str(error.value) == (
        "type i7 has no numpy dtype in the interpreter; use one of i1, i8, i16, i32, i64, index, f16, bf16, f32, f64"
    )


def _first_kernel(module: ModuleOp) -> KernelOp:
    kernel = module.body.block.first_op
    assert isinstance(kernel, KernelOp)
    return kernel


def test_a_use_before_its_definition_is_refused() -> None:
    kernel = KernelOp("k", [], [])
    later = arith.ConstantOp(builtin.IntegerAttr(1, builtin.i32))
    early = arith.AddiOp(later, later)
    math_use = math_dialect.CtPopOp(early)
    kernel.body.block.add_ops([early, math_use, later])
    with pytest.raises(InterpreterError) as error:
        interpret_kernel(kernel, [], [])
    assert str(error.value) == (
        "@k: (a result of 'arith.constant') is used before it has a value; the definition must dominate the use"
    )


def test_result_types_name_failed_checks() -> None:
    assert str(FailedCheck("k", (1, 2), "bad")) == "bad (in program [1, 2] of @k)"
    assert str(FailedCheck("main", None, "bad")) == "bad (in @main)"


def test_no_such_entry(parse_tile: Parse) -> None:
    module = parse_tile("func.func @main() {\n  func.return\n}")
    with pytest.raises(InterpreterError) as error:
        interpret(module, "mian", [])
    assert str(error.value) == "the module has no function @mian; did you mean 'main'?"
