"""LLVM text: every fastmath flag on every op that takes one, every attribute, and the errors for what has no text."""

from __future__ import annotations

import re
from itertools import product

import llvmlite.binding as llvm_binding
import pytest
from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects import get_all_dialects as get_upstream_dialects
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.llvm import LLVM
from xdsl.dialects.utils import FastMathFlag
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser

from halfulp.compiler.codegen.llvm import emit_llvm
from halfulp.compiler.dialects import get_all_dialects
from halfulp.compiler.dialects.llvm_ext import LLVMExt
from halfulp.compiler.errors import CompileError
from halfulp.compiler.passes.convert_loops_to_llvm import ConvertLoopsToLlvmPass

FLAGS = ("reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn")


def context() -> Context:
    """A context with upstream's dialects and ours."""
    result = Context()
    for name, load in {**get_upstream_dialects(), **get_all_dialects()}.items():
        result.register_dialect(name, load)
    return result


def parse(source: str) -> ModuleOp:
    """Parses and verifies a module."""
    module = Parser(context(), source).parse_module()
    module.verify()
    return module


def emit(source: str) -> str:
    """The text of a module in the llvm dialects, which LLVM must accept."""
    text = emit_llvm(parse(source))
    llvm_binding.parse_assembly(text).verify()
    return text


def lower(source: str) -> str:
    """The text of a module in the loops dialects, which LLVM must accept."""
    ctx = context()
    module = Parser(ctx, source).parse_module()
    module.verify()
    ConvertLoopsToLlvmPass().apply(ctx, module)
    module.verify()
    text = emit_llvm(module)
    llvm_binding.parse_assembly(text).verify()
    return text


def instructions(text: str, word: str) -> list[str]:
    """The instructions that contain ``word``, declarations left out."""
    return [line.strip() for line in text.splitlines() if line.startswith("  ") and word in line]


# Fastmath flags: op in the loops dialects -> instructions it must give, each with the flags it was given.

LOOPS_OPS = {
    "arith.addf": ("arith.addf %a, %b FLAGS : T", ["fadd"]),
    "arith.subf": ("arith.subf %a, %b FLAGS : T", ["fsub"]),
    "arith.mulf": ("arith.mulf %a, %b FLAGS : T", ["fmul"]),
    "arith.divf": ("arith.divf %a, %b FLAGS : T", ["fdiv"]),
    "arith.negf": ("arith.negf %a FLAGS : T", ["fneg"]),
    "arith.maximumf": ("arith.maximumf %a, %b FLAGS : T", ["fcmp", "select"]),
    "arith.minimumf": ("arith.minimumf %a, %b FLAGS : T", ["fcmp", "select"]),
    "arith.maxnumf": ("arith.maxnumf %a, %b FLAGS : T", ["fcmp", "select"]),
    "arith.minnumf": ("arith.minnumf %a, %b FLAGS : T", ["fcmp", "select"]),
    "vector_ext.cmpf": ("vector_ext.cmpf olt, %a, %b FLAGS : T", ["fcmp"]),
    "vector_ext.select": ("vector_ext.select %c, %a, %b FLAGS : i1, T", ["select"]),
    "vector_ext.cast extf": ("vector_ext.cast %a extf FLAGS : T to W", ["fpext"]),
    "vector_ext.cast truncf": ("vector_ext.cast %w truncf FLAGS : W to T", ["fptrunc"]),
    "math.fma": ("math.fma %a, %b, %a FLAGS : T", ["@llvm.fma."]),
    "math.absf": ("math.absf %a FLAGS : T", ["@llvm.fabs."]),
    "math.ceil": ("math.ceil %a FLAGS : T", ["@llvm.ceil."]),
    "math.floor": ("math.floor %a FLAGS : T", ["@llvm.floor."]),
    "math.trunc": ("math.trunc %a FLAGS : T", ["@llvm.trunc."]),
    "math.roundeven": ("math.roundeven %a FLAGS : T", ["@llvm.roundeven."]),
    "math.sqrt": ("math.sqrt %a FLAGS : T", ["@llvm.sqrt."]),
    "math.copysign": ("math.copysign %a, %b FLAGS : T", ["@llvm.copysign."]),
}


# These become compares and selects of our own making, whose operands may be NaN or infinite where the result is not.
EXTREMA = ("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf")
POISON_FLAGS = ("nnan", "ninf")


def flags_of(line: str) -> list[str]:
    """The fastmath flags of an instruction; "fast" is all of them."""
    words = line.split()
    return list(FLAGS) if "fast" in words else [word for word in words if word in FLAGS]


@pytest.mark.parametrize("flags", [*[(flag,) for flag in FLAGS], ("nnan", "nsz", "contract"), FLAGS, ()], ids=",".join)
@pytest.mark.parametrize("name", LOOPS_OPS)
def test_flags_of_loops_ops_reach_the_text(name: str, flags: tuple[str, ...]) -> None:
    template, wanted = LOOPS_OPS[name]
    written = f"fastmath<{','.join(flags)}>" if flags else ""
    for t, wide in (("f32", "f64"), ("vector<16xf32>", "vector<16xf64>")):
        op = template.replace("FLAGS", written).replace("T", t).replace("W", wide)
        text = lower(f"func.func @f(%a : {t}, %b : {t}, %w : {wide}, %c : i1) {{ %r = {op} func.return }}")
        for word in wanted:
            found = instructions(text, word)
            float_lines = [line for line in found if "select" not in word or "float" in line]
            assert float_lines, text
            dropped = POISON_FLAGS if name in EXTREMA else ()
            for line in float_lines:
                assert flags_of(line) == [flag for flag in flags if flag not in dropped], line


def test_flags_left_among_the_attributes_by_upstream_constructors_reach_the_text() -> None:
    function = FuncOp("f", ([f32], []))
    argument = function.body.block.args[0]
    flags = arith.FastMathFlagsAttr([FastMathFlag.NO_NANS])
    negated = arith.NegfOp(argument, flags)
    fused = math.FmaOp(argument, negated.result, argument, flags)
    function.body.block.add_ops([negated, fused, ReturnOp()])
    module = ModuleOp([function])
    ConvertLoopsToLlvmPass().apply(context(), module)
    text = emit_llvm(module)
    assert instructions(text, "fneg") == ["%v = fneg nnan float %a"]
    assert instructions(text, "@llvm.fma") == ["%v.1 = call nnan float @llvm.fma.f32(float %a, float %v, float %a)"]


LLVM_OPS = {
    "llvm.fadd": ("llvm.fadd %a, %b FLAGS : T", "fadd"),
    "llvm.fsub": ("llvm.fsub %a, %b FLAGS : T", "fsub"),
    "llvm.fmul": ("llvm.fmul %a, %b FLAGS : T", "fmul"),
    "llvm.fdiv": ("llvm.fdiv %a, %b FLAGS : T", "fdiv"),
    "llvm.frem": ("llvm.frem %a, %b FLAGS : T", "frem"),
    "llvm.fneg": ("llvm.fneg %a FLAGS : T", "fneg"),
    "llvm.fcmp": ('"llvm.fcmp"(%s, %s) <{predicate = 4 : i64, FLAG}> : (f32, f32) -> i1', "fcmp"),
    "llvm.select": ("llvm.select %c, %a, %b FLAGS : i1, T", "select"),
    "llvm_ext.fcmp": ("llvm_ext.fcmp uno %a, %b FLAGS : T -> B", "fcmp"),
    "llvm_ext.select": ("llvm_ext.select %c, %a, %b FLAGS : i1, T", "select"),
    "llvm_ext.fpext": ("llvm_ext.fpext %a FLAGS : T to W", "fpext"),
    "llvm_ext.fptrunc": ("llvm_ext.fptrunc %w FLAGS : W to T", "fptrunc"),
    "llvm.call": ('"llvm.call"(%s) <{callee = @g, FLAG, operandSegmentSizes = array<i32: 1, 0>}> : (f32) -> f32', "@g"),
    "llvm.call_intrinsic": (
        'llvm.call_intrinsic "llvm.roundeven.f32"(%s) FLAGS : (f32) -> f32',
        "@llvm.roundeven.f32",
    ),
    **{
        f"llvm.intr.{name}": (
            f"llvm.intr.{name}({', '.join(['%a'] * count)}) FLAGS : ({', '.join(['T'] * count)}) -> T",
            f"@llvm.{name}.",
        )
        for name, count in [
            *[(n, 1) for n in ("fabs", "ceil", "floor", "sqrt", "exp", "exp2", "log", "log2", "sin", "cos")],
            *[(n, 2) for n in ("maxnum", "minnum", "copysign", "pow")],
            ("fma", 3),
        ]
    },
    "llvm.intr.vector.reduce.fadd": (
        '"llvm.intr.vector.reduce.fadd"(%s, %v) <{FLAG}> : (f32, vector<4xf32>) -> f32',
        "@llvm.vector.reduce.fadd.v4f32",
    ),
    "llvm.intr.vector.reduce.fmul": (
        '"llvm.intr.vector.reduce.fmul"(%s, %v) <{FLAG}> : (f32, vector<4xf32>) -> f32',
        "@llvm.vector.reduce.fmul.v4f32",
    ),
}


@pytest.mark.parametrize("flags", [*[(flag,) for flag in FLAGS], FLAGS], ids=",".join)
@pytest.mark.parametrize("name", LLVM_OPS)
def test_flags_of_llvm_ops_reach_the_text(name: str, flags: tuple[str, ...]) -> None:
    template, word = LLVM_OPS[name]
    flag = f"fastmathFlags = #llvm.fastmath<{','.join(flags)}>"
    for lanes in (0, 8):
        t, wide, truth = (f"vector<{lanes}x{e}>" if lanes else e for e in ("f32", "f64", "i1"))
        op = template.replace("FLAGS", f"{{{flag}}}").replace("FLAG", flag)
        op = _types(op, t, wide, truth)
        text = emit(
            f"""llvm.func external @g(f32) -> f32
            llvm.func @f(%a : {t}, %b : {t}, %w : {wide}, %c : i1, %s : f32, %v : vector<4xf32>) {{
              %r = {op}
              llvm.return
            }}"""
        )
        (line,) = [found for found in instructions(text, word) if "define" not in found]
        assert flags_of(line) == list(flags), line


def _types(op: str, t: str, wide: str, truth: str) -> str:
    """Puts types for the letters T, W and B that stand alone."""
    values = {"T": t, "W": wide, "B": truth}
    return re.sub(r"\b[TWB]\b", lambda found: values[found[0]], op)


def test_every_float_op_of_the_table_that_takes_flags_is_tested() -> None:
    carrying = {
        op.name
        for op in (*LLVM.operations, *LLVMExt.operations)
        if issubclass(op, IRDLOperation) and "fastmathFlags" in op.get_irdl_definition().properties
    }
    assert carrying == set(LLVM_OPS)


# Other ops and attributes


def test_integer_flags_and_casts() -> None:
    text = emit(
        """llvm.func @f(%a : i32, %b : i32, %p : !llvm.ptr, %v : vector<4xi8>) {
          %0 = llvm.add %a, %b overflow<nsw,nuw> : i32
          %1 = llvm.shl %a, %b overflow<nsw> : i32
          %2 = llvm.udiv exact %a, %b : i32
          %3 = llvm.or disjoint %a, %b : i32
          %4 = llvm.zext nneg %a : i32 to i64
          %5 = llvm.trunc %4 overflow<nuw> : i64 to i16
          %6 = llvm.sext %v : vector<4xi8> to vector<4xi32>
          %7 = llvm.sitofp %6 : vector<4xi32> to vector<4xf32>
          %8 = llvm_ext.fptoui %7 : vector<4xf32> to vector<4xi16>
          %9 = llvm.ptrtoint %p : !llvm.ptr to i64
          %10 = llvm.inttoptr %9 : i64 to !llvm.ptr
          %11 = llvm.bitcast %7 : vector<4xf32> to vector<4xi32>
          %12 = llvm.icmp "ule" %a, %b : i32
          %13 = llvm.srem %a, %b : i32
          llvm.return
        }"""
    )
    for line in (
        "add nuw nsw i32 %a, %b",
        "shl nsw i32 %a, %b",
        "udiv exact i32 %a, %b",
        "or disjoint i32 %a, %b",
        "zext nneg i32 %a to i64",
        "trunc nuw i64 %v.5 to i16",
        "sext <4 x i8> %v to <4 x i32>",
        "sitofp <4 x i32> %v.7 to <4 x float>",
        "fptoui <4 x float> %v.8 to <4 x i16>",
        "ptrtoint ptr %p to i64",
        "inttoptr i64 %v.10 to ptr",
        "bitcast <4 x float> %v.8 to <4 x i32>",
        "icmp ule i32 %a, %b",
        "srem i32 %a, %b",
    ):
        assert f"= {line}\n" in text


def test_memory_ops_keep_alignment_order_and_hints() -> None:
    text = emit(
        """llvm.func @f(%p : !llvm.ptr, %i : i64, %x : f32, %y : i32) {
          %0 = llvm.getelementptr inbounds %p[%i, 3] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<4 x f32>
          %1 = llvm.load %p {alignment = 64 : i64} : !llvm.ptr -> vector<16xf32>
          %2 = llvm.load %p atomic acquire {alignment = 4 : i64} : !llvm.ptr -> i32
          llvm.store %x, %0 {alignment = 4 : i64, nontemporal} : f32, !llvm.ptr
          llvm.store volatile %x, %0 : f32, !llvm.ptr
          "llvm.store"(%y, %p) <{alignment = 4 : i64, ordering = 5 : i64}> : (i32, !llvm.ptr) -> ()
          llvm_ext.fence seq_cst
          %3 = llvm_ext.atomicrmw umax %p, %y acq_rel : !llvm.ptr, i32
          %4 = llvm_ext.cmpxchg %p, %y, %3 seq_cst acquire : !llvm.ptr, i32 -> !llvm.struct<(i32, i1)>
          %5 = llvm.extractvalue %4[1] : !llvm.struct<(i32, i1)>
          %6 = llvm.insertvalue %y, %4[0] : !llvm.struct<(i32, i1)>
          %7 = llvm.alloca %i x f64 {alignment = 32 : i64} : (i64) -> !llvm.ptr
          llvm.return
        }"""
    )
    for line in (
        "%v = getelementptr inbounds [4 x float], ptr %p, i64 %i, i32 3",
        "%v.1 = load <16 x float>, ptr %p, align 64",
        "%v.2 = load atomic i32, ptr %p acquire, align 4",
        "store float %x, ptr %v, align 4, !nontemporal !0",
        "store volatile float %x, ptr %v",
        "store atomic i32 %y, ptr %p release, align 4",
        "fence seq_cst",
        "%v.3 = atomicrmw umax ptr %p, i32 %y acq_rel",
        "%v.4 = cmpxchg ptr %p, i32 %y, i32 %v.3 seq_cst acquire",
        "%v.5 = extractvalue { i32, i1 } %v.4, 1",
        "%v.6 = insertvalue { i32, i1 } %v.4, i32 %y, 0",
        "%v.7 = alloca double, i64 %i, align 32",
    ):
        assert f"  {line}\n" in text
    assert "!0 = !{i32 1}\n" in text


def test_functions_keep_attributes_linkage_and_calling_convention() -> None:
    text = emit(
        """llvm.func private fastcc @helper(%x : i8 {llvm.zeroext, llvm.noundef}) -> (i8 {llvm.signext}) attributes {
            no_unwind, no_inline, passthrough = ["cold", ["fp-contract", "fast"], "our-mark"], target_cpu = "znver5",
            target_features = #llvm.target_features<["+avx2", "-avx512f"]>, tune_cpu = "generic",
            frame_pointer = #llvm.framePointerKind<all>} {
          llvm.return %x : i8
        }
        llvm.func hidden @f(%p : !llvm.ptr {llvm.noalias, llvm.align = 64 : i64, llvm.nocapture, llvm.readonly,
            llvm.dereferenceable = 8 : i64}, %x : i8) {
          %r = llvm.call fastcc @helper(%x) : (i8) -> i8
          llvm.call @"odd name"() : () -> ()
          llvm.return
        }
        llvm.func @"odd name"()"""
    )
    assert (
        "define private fastcc signext i8 @helper(i8 zeroext noundef %x) nounwind noinline cold"
        ' "fp-contract"="fast" "our-mark" "target-cpu"="znver5" "target-features"="+avx2,-avx512f"'
        ' "tune-cpu"="generic" "frame-pointer"="all" {\n'
    ) in text
    assert (
        "define hidden void @f(ptr noalias align 64 captures(none) readonly dereferenceable(8) %p, i8 %x) {\n"
    ) in text
    assert "  %r = call fastcc i8 @helper(i8 %x)\n" in text
    assert '  call void @"odd name"()\n' in text
    assert 'declare void @"odd name"()\n' in text


def test_globals() -> None:
    text = emit(
        """llvm.mlir.global internal constant @table(dense<[1.0, -0.0, 0.1]> : tensor<3xf32>)
            {alignment = 64 : i64} : !llvm.array<3 x f32>
        llvm.mlir.global external thread_local @counter(0 : i64) : i64
        llvm.mlir.global private unnamed_addr constant @name("a\\22b") : !llvm.array<3 x i8>
        llvm.mlir.global external @elsewhere() : i32
        llvm.func @f() -> !llvm.ptr {
          %0 = llvm.mlir.addressof @table : !llvm.ptr
          llvm.return %0 : !llvm.ptr
        }"""
    )
    assert text.startswith(
        "@table = internal constant [3 x float] [float 1.000000e+00, float -0.000000e+00,"
        " float 0x3FB99999A0000000], align 64\n"
        "@counter = thread_local global i64 0\n"
        '@name = private unnamed_addr constant [3 x i8] c"a\\22b"\n'
        "@elsewhere = external global i32\n"
    )
    assert "  ret ptr @table\n" in text


def test_function_attributes_and_module_lines_are_added() -> None:
    module = parse(
        """builtin.module attributes {llvm.target_triple = "x86_64-unknown-linux-gnu"} {
          llvm.func @f() { llvm.return }
          llvm.func @g()
        }"""
    )
    text = emit_llvm(module, function_attributes={"prefer-vector-width": "256"})
    assert text == (
        'target triple = "x86_64-unknown-linux-gnu"\n\n'
        'define void @f() "prefer-vector-width"="256" {\nentry:\n  ret void\n}\n\n'
        "declare void @g()\n"
    )


# Blocks and names


def test_block_arguments_become_phis_and_equal_targets_are_split() -> None:
    text = emit(
        """llvm.func @f(%c : i1, %x : i32, %y : i32) -> i32 {
          llvm.cond_br %c, ^join(%x : i32), ^join(%y : i32)
        ^join(%r : i32):
          llvm.cond_br %c, ^last, ^last
        ^last:
          llvm.return %r : i32
        }"""
    )
    assert text == (
        "define i32 @f(i1 %c, i32 %x, i32 %y) {\n"
        "entry:\n"
        "  br i1 %c, label %join, label %entry.else\n"
        "entry.else:\n"
        "  br label %join\n"
        "join:\n"
        "  %r = phi i32 [ %x, %entry ], [ %y, %entry.else ]\n"
        "  br i1 %c, label %last, label %last\n"
        "last:\n"
        "  ret i32 %r\n"
        "}\n"
    )


def test_uses_may_stand_above_definitions_in_the_text() -> None:
    text = emit(
        """llvm.func @f(%x : i32) -> i32 {
          llvm.br ^last
        ^early:
          llvm.return %y : i32
        ^last:
          %y = llvm.add %x, %x : i32
          llvm.br ^early
        }"""
    )
    assert text.index("ret i32 %y") < text.index("%y = add")


def test_loop_hints_become_metadata_of_their_own_loop() -> None:
    source = """func.func @f(%x : memref<?xf32>, %n : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %v = memref.load %x[%c0] : memref<?xf32>
      scf.for %i = %c0 to %n step %c1 {
        memref.store %v, %x[%i] : memref<?xf32>
      } {halfulp.loop = {unroll = false, vectorize = false}}
      scf.for %i = %c0 to %n step %c1 {
        memref.store %v, %x[%i] : memref<?xf32>
      } {halfulp.loop = {unroll = 4 : i64}}
      func.return
    }"""
    text = lower(source)
    assert "br label %for.header, !llvm.loop !2\n" in text
    assert "br label %for.header.1, !llvm.loop !4\n" in text
    assert text.endswith(
        '!0 = !{!"llvm.loop.unroll.disable"}\n'
        '!1 = !{!"llvm.loop.vectorize.enable", i1 false}\n'
        "!2 = distinct !{!2, !0, !1}\n"
        '!3 = !{!"llvm.loop.unroll.count", i32 4}\n'
        "!4 = distinct !{!4, !3}\n"
    )


def test_an_intrinsic_is_declared_once_for_each_type() -> None:
    text = emit(
        """llvm.func @f(%x : f32, %v : vector<4xf32>) {
          %0 = llvm.intr.fabs(%x) : (f32) -> f32
          %1 = llvm.intr.fabs(%0) : (f32) -> f32
          %2 = llvm.intr.fabs(%v) : (vector<4xf32>) -> vector<4xf32>
          llvm.return
        }"""
    )
    assert [line for line in text.splitlines() if line.startswith("declare")] == [
        "declare float @llvm.fabs.f32(float)",
        "declare <4 x float> @llvm.fabs.v4f32(<4 x float>)",
    ]


# Constants


@pytest.mark.parametrize(
    ("constant", "text"),
    [
        ("1.0 : f32", "1.000000e+00"),
        ("0.1 : f32", "0x3FB99999A0000000"),
        ("0.1 : f64", "1.000000e-01"),
        ("0.3333333333333333 : f64", "0x3FD5555555555555"),
        ("0x7F800000 : f32", "0x7FF0000000000000"),
        ("0xFFC00000 : f32", "0xFFF8000000000000"),
        ("-0.0 : f64", "-0.000000e+00"),
        ("1.5 : f16", "0xH3E00"),
        ("1.5 : bf16", "0xR3FC0"),
        ("true", "true"),
        ("-1 : i8", "-1"),
        ("dense<0.0> : vector<4xf32>", "zeroinitializer"),
        ("dense<-0.0> : vector<4xf32>", "splat (float -0.000000e+00)"),
        ("dense<[true, false]> : vector<2xi1>", "<i1 true, i1 false>"),
        ("dense<[1, -2]> : vector<2xi64>", "<i64 1, i64 -2>"),
        ('dense<"0x0100C0FF"> : vector<2xbf16>', "<bfloat 0xR0001, bfloat 0xRFFC0>"),
    ],
)
def test_constants_are_written_exactly(constant: str, text: str) -> None:
    t = constant.rpartition(" : ")[2] if " : " in constant else "i1"
    written = emit(
        f"""llvm.func @f() -> {t} {{
          %0 = llvm.mlir.constant({constant}) : {t}
          llvm.return %0 : {t}
        }}"""
    )
    ret = instructions(written, "ret ")[0]
    assert ret.endswith(f" {text}")


# Errors


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "func.func @f() { func.return }",
            "LLVM text: a module holds llvm.func and llvm.mlir.global only, not func.func; run convert-loops-to-llvm"
            " first",
        ),
        (
            "llvm.func @f(%x : f32) { %0 = arith.addf %x, %x : f32 llvm.return }",
            "LLVM text: arith.addf in function @f has no LLVM text; lower it to the llvm dialect first",
        ),
        (
            "llvm.func @f(%x : f32) { %0 = llvm.fadd %x, %x {speed = 3 : i64} : f32 llvm.return }",
            "LLVM text: llvm.fadd in function @f has the attribute speed, which has no LLVM text",
        ),
        (
            "llvm.func @f(%x : !llvm.ptr {llvm.dereferencable}) { llvm.return }",
            "LLVM text: argument 0 of @f has the attribute llvm.dereferencable = unit, which has no LLVM text; did you"
            " mean 'llvm.dereferenceable'?",
        ),
        (
            "llvm.func @f() attributes {speed = 3 : i64} { llvm.return }",
            "LLVM text: function @f has the attribute speed = 3 : i64, which has no LLVM text",
        ),
        (
            "llvm.func @f() { llvm.br ^a {halfulp.loop = {vectorise = false}} ^a: llvm.return }",
            "LLVM text: llvm.br in function @f has the loop hint vectorise = false; use unroll = false or a count,"
            " vectorize = false",
        ),
        (
            "llvm.func @f(%x : f80) { llvm.return }",
            "LLVM text: type f80 has no LLVM counterpart; lower it to the llvm dialect first",
        ),
        (
            "llvm.mlir.global internal @g() : i32",
            "LLVM text: global @g is internal but has no value; give it one",
        ),
        (
            "builtin.module attributes {speed = 3 : i64} { llvm.func @f() }",
            "LLVM text: the module has the attribute speed, which has no LLVM text",
        ),
        (
            """llvm.func @f(%x : f32, %y : f64) {
              %0 = llvm.call_intrinsic "llvm.ceil.f32"(%x) : (f32) -> f32
              %1 = llvm.call_intrinsic "llvm.ceil.f32"(%y) : (f64) -> f64
              llvm.return
            }""",
            "LLVM text: intrinsic llvm.ceil.f32 is called as both 'declare float @llvm.ceil.f32(float)' and"
            " 'declare double @llvm.ceil.f32(double)'",
        ),
    ],
)
def test_what_has_no_text_is_named(source: str, message: str) -> None:
    module = Parser(context(), source).parse_module()
    with pytest.raises(CompileError) as caught:
        emit_llvm(module)
    assert caught.value.message == message


def test_flags_are_independent_of_each_other() -> None:
    pairs = [f"{a},{b}" for a, b in product(FLAGS, FLAGS) if FLAGS.index(a) < FLAGS.index(b)]
    lines = "\n".join(f"%r{i} = arith.addf %x, %x fastmath<{pair}> : f32" for i, pair in enumerate(pairs))
    text = lower(f"func.func @f(%x : f32) {{ {lines} func.return }}")
    assert [",".join(flags_of(line)) for line in instructions(text, "fadd")] == pairs
