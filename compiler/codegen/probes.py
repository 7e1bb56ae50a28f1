"""Asks LLVM, in child processes, what a target has instructions for.

Some unsupported operations end the process ("Cannot select") or become a call to a library function, so each one is
compiled alone: it selects if the child lives and the object refers to no symbol. A vector type counts if every tried
length selects.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .elf import undefined_symbols
from .llvm.selection import SelectionKey

if TYPE_CHECKING:
    from llvmlite.binding.module import ModuleRef
    from llvmlite.binding.targets import TargetMachine

INTEGERS = ("i1", "i8", "i16", "i32", "i64")
MASKS = ("i2", "i4")  # what the truth values of so few lanes become
FLOATS = ("f16", "f32", "f64")
"""Without bf16: on CPUs it selects and yet gives wrong results (subnormals are flushed), so it is never emitted."""

LANES = (2, 3, 4, 7, 8, 16, 32, 64)
_LLVM_NAMES = {"f16": "half", "f32": "float", "f64": "double"}

INTEGER_BINARY = ["add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "and", "or", "xor", "shl", "lshr", "ashr"]
FLOAT_BINARY = ["fadd", "fsub", "fmul", "fdiv", "frem"]
INTEGER_INTRINSICS = {"smax": 2, "smin": 2, "umax": 2, "umin": 2, "ctpop": 1}
COUNTING_INTRINSICS = ("abs", "ctlz", "cttz")  # their second argument is a constant i1
FLOAT_INTRINSICS = {
    **dict.fromkeys(
        ["fabs", "ceil", "floor", "trunc", "roundeven", "sqrt", "exp", "exp2", "log", "log2", "sin", "cos"], 1
    ),
    **dict.fromkeys(["maxnum", "minnum", "maximum", "minimum", "copysign", "pow"], 2),
    **dict.fromkeys(["fma", "fmuladd"], 3),
}
ATOMICS = ["xchg", "add", "sub", "and", "or", "xor", "max", "min", "umax", "umin"]
STATE_INTRINSICS = {
    "llvm.x86.sse.stmxcsr": (["ptr"], "void"),
    "llvm.x86.sse.ldmxcsr": (["ptr"], "void"),
    "llvm.aarch64.get.fpcr": ([], "i64"),
    "llvm.aarch64.set.fpcr": (["i64"], "void"),
}
"""Reading and setting the rounding state. Those of the other architecture end the child."""
SCALING = "llvm.x86.avx512.mask.scalef.ps"
"""Times a power of two. The CPUs without it end the child."""
PERMUTING = {256: "llvm.x86.avx2.permps", 512: "llvm.x86.avx512.permvar.sf.512"}
"""Elements of a register by index, by the bits of the register; likewise."""


@dataclass(frozen=True)
class ProbeTarget:
    """A target as LLVM knows it: the least CPU of its kind, so that every such CPU selects what it selects."""

    triple: str
    cpu: str

    @property
    def is_gpu(self) -> bool:
        """Whether threads compute one element each, in code that is text."""
        return self.triple.startswith("nvptx64")


TARGETS = {
    "x86_64/512": ProbeTarget("x86_64-unknown-linux-gnu", "x86-64-v4"),
    "x86_64/256": ProbeTarget("x86_64-unknown-linux-gnu", "x86-64-v3"),
    "x86_64/128": ProbeTarget("x86_64-unknown-linux-gnu", "x86-64-v3"),
    "aarch64/128": ProbeTarget("aarch64-unknown-linux-gnu", "generic"),
    **{f"nvptx64/{cpu}": ProbeTarget("nvptx64-nvidia-cuda", cpu) for cpu in ("sm_80", "sm_90", "sm_100")},
}

_WRONG_ON_GPUS = ("frem",)
"""What NVPTX makes several rounded operations of."""
_WORDS_OF_WRONG_CODE = (".approx", ".ftz", ".extern", "call")
"""In PTX: less than correctly rounded, subnormals flushed, functions of a library."""


def _name(element: str) -> str:
    return _LLVM_NAMES.get(element, element)


def _typed(element: str, lanes: int) -> str:
    return f"<{lanes} x {_name(element)}>" if lanes else _name(element)


def _mangled(element: str, lanes: int) -> str:
    return f"v{lanes}{element}" if lanes else element


def _function(arguments: list[str], body: str, result: str = "void", declaration: str = "") -> str:
    """A function of arguments %0, %1, ... that returns %r."""
    named = ", ".join(f"{t} %a{i}" for i, t in enumerate(arguments))
    end = "ret void" if result == "void" else f"ret {result} %r"
    return f"{declaration}\ndefine {result} @f({named}) {{\n  {body}\n  {end}\n}}\n"


def _call(name: str, arguments: list[str], result: str, extra: str = "") -> str:
    """A function that calls an intrinsic on its arguments and on the constants in ``extra``."""
    values = ", ".join(f"{t} %a{i}" for i, t in enumerate(arguments)) + extra
    types = ", ".join([*arguments, *["i1"] * extra.count("i1")])
    target = "" if result == "void" else "%r = "
    return _function(
        arguments, f"{target}call {result} @{name}({values})", result, f"declare {result} @{name}({types})"
    )


Text = tuple[SelectionKey, str]


def _integer_texts(lanes: int) -> Iterator[Text]:
    form = "vector " if lanes else ""
    for element in (*INTEGERS, "i128"):
        t, truth = _typed(element, lanes), _typed("i1", lanes)
        for op in INTEGER_BINARY:
            yield (op, form + element), _function([t, t], f"%r = {op} {t} %a0, %a1", t)
        yield ("icmp", form + element), _function([t, t], f"%r = icmp slt {t} %a0, %a1", truth)
        yield ("select", form + element), _select(t, truth)
        suffix = _mangled(element, lanes)
        for name, count in INTEGER_INTRINSICS.items():
            yield (f"llvm.{name}", form + element), _call(f"llvm.{name}.{suffix}", [t] * count, t)
        for name in COUNTING_INTRINSICS:
            yield (f"llvm.{name}", form + element), _call(f"llvm.{name}.{suffix}", [t], t, ", i1 false")


def _select(t: str, truth: str) -> str:
    body = f"%r = select {truth} %a0, {t} %a1, {t} %a2"
    return _function([truth, t, t], body, t)


def _float_texts(lanes: int) -> Iterator[Text]:
    form = "vector " if lanes else ""
    for element in FLOATS:
        t, truth = _typed(element, lanes), _typed("i1", lanes)
        for op in FLOAT_BINARY:
            yield (op, form + element), _function([t, t], f"%r = {op} {t} %a0, %a1", t)
        yield ("fneg", form + element), _function([t], f"%r = fneg {t} %a0", t)
        yield ("fcmp", form + element), _function([t, t], f"%r = fcmp olt {t} %a0, %a1", truth)
        yield ("select", form + element), _select(t, truth)
        for name, count in FLOAT_INTRINSICS.items():
            full = f"llvm.{name}.{_mangled(element, lanes)}"
            yield (f"llvm.{name}", form + element), _call(full, [t] * count, t)


def _width(element: str) -> int:
    return int(element[1:])


def _cast_texts(lanes: int) -> Iterator[Text]:
    form = "vector " if lanes else ""

    def cast(op: str, source: str, result: str) -> Text:
        t, u = _typed(source, lanes), _typed(result, lanes)
        return (op, f"{form}{source} {result}"), _function([t], f"%r = {op} {t} %a0 to {u}", u)

    integers = (*INTEGERS, "i128")
    for source in integers:
        for result in integers:
            if _width(source) < _width(result):
                yield cast("zext", source, result)
                yield cast("sext", source, result)
            elif _width(source) > _width(result):
                yield cast("trunc", source, result)
    for mask in MASKS if not lanes else ():
        yield cast("zext", mask, "i64")
    for element in FLOATS:
        for other in FLOATS:
            if _width(element) != _width(other):
                yield cast("fpext" if _width(element) < _width(other) else "fptrunc", element, other)
        for integer in INTEGERS:
            yield cast("sitofp", integer, element)
            yield cast("uitofp", integer, element)
            yield cast("fptosi", element, integer)
            yield cast("fptoui", element, integer)


def _memory_texts(lanes: int) -> Iterator[Text]:
    for element in (*INTEGERS[1:], *FLOATS):
        t, mask, key = _typed(element, lanes), f"<{lanes} x i1>", f"vector {element}"
        pointers, suffix = f"<{lanes} x ptr>", _mangled(element, lanes)
        yield ("llvm.masked.load", key), _call(f"llvm.masked.load.{suffix}.p0", ["ptr", mask, t], t)
        yield ("llvm.masked.store", key), _call(f"llvm.masked.store.{suffix}.p0", [t, "ptr", mask], "void")
        gather = f"llvm.masked.gather.{suffix}.v{lanes}p0"
        yield ("llvm.masked.gather", key), _call(gather, [pointers, mask, t], t)
        scatter = f"llvm.masked.scatter.{suffix}.v{lanes}p0"
        yield ("llvm.masked.scatter", key), _call(scatter, [t, pointers, mask], "void")


def _scalar_texts() -> Iterator[Text]:
    for element in ("i8", "i16", "i32", "i64"):
        for kind in ATOMICS:
            body = f"%r = atomicrmw {kind} ptr %a0, {element} %a1 acq_rel"
            yield (f"atomicrmw {kind}", element), _function(["ptr", element], body, element)
        body = f"%r = cmpxchg ptr %a0, {element} %a1, {element} %a2 acq_rel monotonic"
        pair = f"{{ {element}, i1 }}"
        yield ("cmpxchg", element), _function(["ptr", element, element], body, pair)
    yield from _scaling_texts()
    yield from _permuting_texts()
    hints = ", i32 0, i32 2, i32 1"
    declared = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
    yield ("llvm.prefetch", "p0"), _function(["ptr"], f"call void @llvm.prefetch.p0(ptr %a0{hints})", "void", declared)
    for name, (arguments, result) in STATE_INTRINSICS.items():
        yield (name, ""), _call(name, arguments, result)


def _scaling_texts() -> Iterator[Text]:
    for lanes in (4, 8, 16):
        t, mask = f"<{lanes} x float>", f"i{max(8, lanes)}"
        name, types = f"{SCALING}.{32 * lanes}", f"{t}, {t}, {t}, {mask}"
        declared, last = f"declare {t} @{name}({types}", f"{t} zeroinitializer, {mask} -1"
        if lanes == 16:
            declared, last = f"{declared}, i32", f"{last}, i32 4"
        yield (name, ""), _function([t, t], f"%r = call {t} @{name}({t} %a0, {t} %a1, {last})", t, declared + ")")


def _permuting_texts() -> Iterator[Text]:
    for bits, name in PERMUTING.items():
        table, index = (f"<{bits // 32} x {element}>" for element in ("float", "i32"))
        yield (name, ""), _call(name, [table, index], table)


def _gpu_texts() -> Iterator[Text]:
    for register in ("tid", "ctaid", "nctaid"):
        name = f"llvm.nvvm.read.ptx.sreg.{register}.x"
        yield (name, ""), _call(name, [], "i32")
    name = "llvm.nvvm.barrier.cta.sync.aligned.all"
    yield (name, ""), _function([], f"call void @{name}(i32 0)", "void", f"declare void @{name}(i32)")
    name = "llvm.nvvm.shfl.sync.down"
    body = f"%r = call i32 @{name}.i32(i32 -1, i32 %a0, i32 16, i32 31)"
    yield (name, "i32"), _function(["i32"], body, "i32", f"declare i32 @{name}.i32(i32, i32, i32, i32)")


def texts(target: ProbeTarget | None = None) -> Iterator[Text]:
    """Every probe: its entry in the table, and a module that does nothing else. None is a CPU."""
    is_gpu = target is not None and target.is_gpu
    if is_gpu:
        yield from _gpu_texts()
    for lanes in (0,) if is_gpu else (0, *LANES):
        yield from _integer_texts(lanes)
        yield from _float_texts(lanes)
        yield from _cast_texts(lanes)
        if lanes:
            yield from _memory_texts(lanes)
    yield from _scalar_texts()


def selects(target: ProbeTarget, key: SelectionKey, machine: TargetMachine, module: ModuleRef) -> bool:
    """Whether a probe's module became code that does what it says, with no function of a library."""
    if not target.is_gpu:
        return not undefined_symbols(machine.emit_object(module))
    code = machine.emit_assembly(module)
    return key[0] not in _WRONG_ON_GPUS and not any(word in code for word in _WORDS_OF_WRONG_CODE)


def run_child(target: ProbeTarget, start: int) -> None:
    """Compiles the probes from number ``start`` on and reports each: ``trying n``, then ``yes`` or ``no``."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, opt=2, reloc="pic", codemodel="small"
    )
    for number, (key, text) in enumerate(texts(target)):
        if number < start:
            continue
        print("trying", number, flush=True)
        module = llvm.parse_assembly(text, context=llvm.create_context())
        module.verify()
        print("yes" if selects(target, key, machine, module) else "no", flush=True)


def probe(name: str) -> dict[str, list[str]]:
    """What selects on a target of ``TARGETS``: name of an instruction or intrinsic -> its types, both sorted.

    A child that dies names its last probe, which then does not select; another child goes on after it.
    """
    keys = [key for key, _ in texts(TARGETS[name])]
    found = dict.fromkeys(keys, True)
    start = 0
    while start < len(keys):
        command = [sys.executable, "-m", __package__ + ".selects", "--child", name, str(start)]
        output = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = output.stdout.splitlines()
        if not lines:
            raise RuntimeError(f"the probe of {name} cannot start: {output.stderr.strip()}")
        for line in lines:
            if line.startswith("trying"):
                start = int(line.split()[1])
                answered = False
            else:
                found[keys[start]] &= line == "yes"
                answered = True
        if not answered:
            found[keys[start]] = False
        start += 1
    table: dict[str, list[str]] = {}
    for (op, types), does in found.items():
        if does:
            table.setdefault(op, []).append(types)
    return {op: sorted(table[op]) for op in sorted(table)}
