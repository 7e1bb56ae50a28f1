"""The table of what selects agrees with LLVM; the writer refuses what it lacks; the lowering emits nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product

import llvmlite.binding as llvm_binding
import pytest
from xdsl.context import Context
from xdsl.dialects import get_all_dialects as get_upstream_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from halfulp.compiler.codegen import probes, selects
from halfulp.compiler.codegen.elf import undefined_symbols
from halfulp.compiler.codegen.llvm import emit_llvm
from halfulp.compiler.codegen.probes import PERMUTING, SCALING, STATE_INTRINSICS, TARGETS, texts
from halfulp.compiler.dialects import get_all_dialects
from halfulp.compiler.errors import CompileError, NotFoundError
from halfulp.compiler.passes.convert_loops_to_llvm import ConvertLoopsToLlvmPass

INTEGERS = ("i1", "i8", "i16", "i32", "i64")
FLOATS = ("f16", "bf16", "f32", "f64")


def parse(source: str) -> tuple[Context, ModuleOp]:
    """A context with all dialects, and a module read in it."""
    context = Context()
    for name, load in {**get_upstream_dialects(), **get_all_dialects()}.items():
        context.register_dialect(name, load)
    return context, Parser(context, source).parse_module()


def test_table_is_of_the_llvm_in_use() -> None:
    table = json.loads(selects.PATH.read_text(encoding="utf-8"))
    assert tuple(table["llvm"]) == tuple(llvm_binding.llvm_version_info), (
        "another LLVM: run python -m halfulp.compiler.codegen.selects --update"
    )
    assert set(table["targets"]) == set(TARGETS)


CPUS = [name for name, target in TARGETS.items() if not target.is_gpu]
GPUS = [name for name, target in TARGETS.items() if target.is_gpu]


@pytest.mark.parametrize("name", CPUS)
def test_table_agrees_with_llvm_on_a_sample(name: str) -> None:
    llvm_binding.initialize_all_targets()
    llvm_binding.initialize_all_asmprinters()
    target = TARGETS[name]
    machine = llvm_binding.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, opt=2, reloc="pic", codemodel="small"
    )
    expected: dict[tuple[str, str], bool] = {}
    of_one_kind = (*STATE_INTRINSICS, SCALING, *PERMUTING.values())  # they end LLVM on other CPUs
    safe = [(key, text) for key, text in texts() if not key[0].startswith(of_one_kind)]
    for key, text in safe[:: len(safe) // 150]:
        module = llvm_binding.parse_assembly(text, context=llvm_binding.create_context())
        does = not undefined_symbols(machine.emit_object(module))
        expected[key] = expected.get(key, True) and does
    table = selects.selects_on(name)
    assert {key: key[1] in table.get(key[0], ()) for key in expected} == expected
    assert not all(expected.values())


@pytest.mark.parametrize("name", GPUS)
def test_table_of_a_gpu_agrees_with_llvm_on_a_sample(name: str) -> None:
    llvm_binding.initialize_all_targets()
    llvm_binding.initialize_all_asmprinters()
    target, table = TARGETS[name], selects.selects_on(name)
    machine = llvm_binding.Target.from_triple(target.triple).create_target_machine(cpu=target.cpu, opt=2)
    # What the table lacks may end this process; test_gpu_lacks asks a child for some of it.
    safe = [(key, text) for key, text in texts(target) if key[1] in table.get(key[0], ())]
    for key, text in safe[:: len(safe) // 50]:
        module = llvm_binding.parse_assembly(text, context=llvm_binding.create_context())
        assert probes.selects(target, key, machine, module), key


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        (("llvm.exp2", "f32"), "no"),
        (("frem", "f32"), "no"),
        (("llvm.exp", "f32"), "died"),
        (("llvm.fma", "f32"), "yes"),
    ],
)
def test_gpu_lacks_what_is_rounded_otherwise_and_what_ends_llvm(key: tuple[str, str], answer: str) -> None:
    start = [other for other, _ in texts(TARGETS["nvptx64/sm_90"])].index(key)
    command = [sys.executable, "-m", "halfulp.compiler.codegen.selects", "--child", "nvptx64/sm_90", str(start)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.stdout.splitlines()[1:2] or ["died"])[0].replace(f"trying {start + 1}", "died") == answer
    assert (key[1] in selects.selects_on("nvptx64/sm_90").get(key[0], ())) == (answer == "yes")


def test_probe_survives_what_ends_a_child() -> None:
    keys = [key for key, _ in texts()]
    start = keys.index(("llvm.aarch64.get.fpcr", ""))
    command = [sys.executable, "-m", "halfulp.compiler.codegen.selects", "--child", "x86_64/256", str(start)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert result.stdout.splitlines() == [f"trying {start}"]
    assert ("llvm.aarch64.get.fpcr" in selects.selects_on("x86_64/256")) is False
    assert selects.selects_on("aarch64/128")["llvm.aarch64.get.fpcr"] == {""}


def test_unknown_target_is_refused() -> None:
    with pytest.raises(NotFoundError) as caught:
        selects.selects_on("riscv64/128")
    assert caught.value.message == (
        "nothing is known of what selects on 'riscv64/128'; known targets: 'x86_64/512', 'x86_64/256', 'x86_64/128',"
        " 'aarch64/128', 'nvptx64/sm_80', 'nvptx64/sm_90', 'nvptx64/sm_100'"
    )


@pytest.mark.parametrize(
    ("op", "what"),
    [
        ("%r = llvm.fadd %b, %b : bf16", "llvm.fadd in function @f needs fadd on bf16"),
        ("%r = llvm_ext.fptrunc %d : f64 to f16", "llvm_ext.fptrunc in function @f needs fptrunc on f64 f16"),
        ("%r = llvm.frem %d, %d : f64", "llvm.frem in function @f needs frem on f64"),
        (
            "%r = llvm.intr.exp(%v) : (vector<16xf32>) -> vector<16xf32>",
            "llvm.intr.exp in function @f needs llvm.exp on vector f32",
        ),
        (
            'llvm.call_intrinsic "llvm.aarch64.set.fpcr"(%i) : (i64) -> ()',
            "llvm.call_intrinsic in function @f needs llvm.aarch64.set.fpcr",
        ),
        (
            '%r = llvm.call_intrinsic "llvm.pow.v16f32"(%v, %v) : (vector<16xf32>, vector<16xf32>) -> vector<16xf32>',
            "llvm.call_intrinsic in function @f needs llvm.pow on vector f32",
        ),
    ],
)
def test_what_does_not_select_is_refused(op: str, what: str) -> None:
    source = f"llvm.func @f(%b : bf16, %d : f64, %v : vector<16xf32>, %i : i64) {{ {op} llvm.return }}"
    module = parse(source)[1]
    assert "define void @f" in emit_llvm(module)
    with pytest.raises(CompileError) as caught:
        emit_llvm(module, target="x86_64/512")
    assert caught.value.message == (f"LLVM text: {what}, which x86_64/512 has no instructions for; lower it first")


def test_undefined_symbols_of_elf_objects() -> None:
    llvm_binding.initialize_all_targets()
    llvm_binding.initialize_all_asmprinters()
    target = TARGETS["x86_64/256"]
    machine = llvm_binding.Target.from_triple(target.triple).create_target_machine(cpu=target.cpu, reloc="pic")
    text = """
    declare double @pow(double, double)
    declare extern_weak void @maybe()
    define double @f(double %x) {
      %r = call double @pow(double %x, double %x)
      call void @maybe()
      %s = frem double %r, %x
      ret double %s
    }"""
    code = machine.emit_object(llvm_binding.parse_assembly(text, context=llvm_binding.create_context()))
    assert [name for name in undefined_symbols(code) if not name.startswith("_")] == ["pow", "fmod"]
    with pytest.raises(ValueError, match=r"^not a 64-bit little-endian ELF object$"):
        undefined_symbols(b"MZ\x90")
    with pytest.raises(ValueError, match=r"^ELF object of 100 bytes is damaged: "):
        undefined_symbols(code[:100])


def every_op() -> list[str]:
    """Every op of the loops subset that computes, on every type it takes, with ``T(element)`` for the types."""
    ops = []
    for t in FLOATS:
        for name in ("addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf"):
            ops.append(f"arith.{name} %{t}, %{t} : T({t})")
        for name in ("absf", "ceil", "floor", "trunc", "roundeven", "sqrt"):
            ops.append(f"math.{name} %{t} : T({t})")
        ops.append(f"math.copysign %{t}, %{t} : T({t})")
        ops.append(f"math.fma %{t}, %{t}, %{t} : T({t})")
        ops.append(f"arith.negf %{t} : T({t})")
        ops.append(f"vector_ext.cmpf ult, %{t}, %{t} : T({t})")
        ops.append(f"vector_ext.select %i1, %{t}, %{t} : T(i1), T({t})")
    for t in INTEGERS:
        names = "addi subi muli andi ori xori divsi divui remsi remui floordivsi ceildivsi ceildivui shli shrsi shrui"
        for name in (*names.split(), "maxsi", "minsi", "maxui", "minui"):
            ops.append(f"arith.{name} %{t}, %{t} : T({t})")
        for name in ("ctlz", "cttz", "ctpop", "absi"):
            ops.append(f"math.{name} %{t} : T({t})")
        ops.append(f"vector_ext.cmpi ult, %{t}, %{t} : T({t})")
        ops.append(f"vector_ext.select %i1, %{t}, %{t} : T(i1), T({t})")
    for integer, real in product(INTEGERS, FLOATS):
        for kind in ("sitofp", "uitofp"):
            ops.append(f"vector_ext.cast %{integer} {kind} : T({integer}) to T({real})")
        for kind in ("fptosi_sat", "fptoui_sat"):
            ops.append(f"vector_ext.cast %{real} {kind} : T({real}) to T({integer})")
    for a, b in product(INTEGERS, INTEGERS):
        if int(a[1:]) < int(b[1:]):
            ops.append(f"vector_ext.cast %{a} extsi : T({a}) to T({b})")
            ops.append(f"vector_ext.cast %{a} extui : T({a}) to T({b})")
            ops.append(f"vector_ext.cast %{b} trunci : T({b}) to T({a})")
    for a, b in product(("f16", "bf16"), ("f32", "f64")):
        ops.append(f"vector_ext.cast %{a} extf : T({a}) to T({b})")
        ops.append(f"vector_ext.cast %{b} truncf : T({b}) to T({a})")
    ops.append("vector_ext.cast %f64 truncf : T(f64) to T(f32)")
    ops.append("vector_ext.lookup %i32 in dense<[1.0, 2.0]> : tensor<2xf32> : T(i32) -> T(f32)")
    return ops


def every_memory_op(lanes: int) -> list[str]:
    """Masked and indexed access for every element type."""
    ops = []
    for t in (*INTEGERS, *FLOATS):
        v, m, i = f"vector<{lanes}x{t}>", f"vector<{lanes}xi1>", f"vector<{lanes}xi64>"
        ops.append(f"vector.maskedload %m{t}[%n], %i1, %{t} : memref<?x{t}>, {m}, {v} into {v}")
        ops.append(f"vector_ext.gather %m{t}[%i64], %i1, %{t} : memref<?x{t}>, {i}, {m} into {v}")
    return ops


@pytest.mark.parametrize(("target", "lanes"), [*product(CPUS, (0, 3, 16)), *((target, 0) for target in GPUS)])
def test_what_the_lowering_emits_selects(target: str, lanes: int) -> None:
    elements = (*INTEGERS, *FLOATS)

    def of(element: str) -> str:
        return f"vector<{lanes}x{element}>" if lanes else element

    arguments = ", ".join(f"%{t} : {of(t)}, %m{t} : memref<?x{t}>" for t in elements)
    ops = every_op() + (every_memory_op(lanes) if lanes else [])
    body = "\n".join(f"%r{n} = {op}" for n, op in enumerate(ops))
    for element in elements:
        body = body.replace(f"T({element})", of(element))
    context, module = parse(f"func.func @f({arguments}, %n : index) {{\n{body}\nfunc.return\n}}")
    module.verify()
    arch, _, bits = target.partition("/")
    permutes = int(bits) if target in ("x86_64/256", "x86_64/512") else 0
    ConvertLoopsToLlvmPass(arch=arch, permutes=permutes).apply(context, module)
    module.verify()
    text = emit_llvm(module, target=target)
    llvm_binding.parse_assembly(text).verify()
