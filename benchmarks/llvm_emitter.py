"""A math emitter that writes LLVM IR on vectors, and compiles loops over arrays with it.

It serves the sweep over all 2^32 inputs, which needs machine code and nothing else of the compiler.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from halfulp.compiler.codegen.math.emitter import ElementType, FloatPredicate, IntegerPredicate

_LLVM_TYPES = {"i1": "i1", "i32": "i32", "i64": "i64", "f32": "float", "f64": "double"}


@dataclass(frozen=True)
class Vector:
    """The name of an LLVM value, a vector of the emitter's number of lanes."""

    name: str
    type: ElementType


@dataclass
class LlvmEmitter:
    """Writes each operation as a line of LLVM IR; no fast-math flags, so nothing may be fused or reordered."""

    lanes: int
    native_scale: bool = False
    lines: list[str] = field(default_factory=list)
    declarations: set[str] = field(default_factory=set)

    def text(self, type: ElementType) -> str:
        return f"<{self.lanes} x {_LLVM_TYPES[type]}>"

    def emit(self, type: ElementType, line: str) -> Vector:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {line}")
        return Vector(name, type)

    def _call(self, name: str, *arguments: Vector) -> Vector:
        type = arguments[0].type
        llvm_type = self.text(type)
        function = f"@llvm.{name}.v{self.lanes}{type}"
        self.declarations.add(f"declare {llvm_type} {function}({', '.join([llvm_type] * len(arguments))})")
        values = ", ".join(f"{llvm_type} {a.name}" for a in arguments)
        return self.emit(type, f"call {llvm_type} {function}({values})")

    def _binary(self, operation: str, a: Vector, b: Vector) -> Vector:
        assert a.type == b.type, (operation, a, b)
        return self.emit(a.type, f"{operation} {self.text(a.type)} {a.name}, {b.name}")

    def constant(self, value: float, like: Vector, type: ElementType | None = None) -> Vector:
        type = type or like.type
        if type in ("f32", "f64"):
            literal = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
            assert type == "f64" or value != value or struct.unpack("<f", struct.pack("<f", value))[0] == value
        else:
            width = int(type[1:])
            literal = str(int(value) % (1 << width))
        return Vector(f"splat ({_LLVM_TYPES[type]} {literal})", type)

    def add(self, a: Vector, b: Vector) -> Vector:
        return self._binary("fadd", a, b)

    def sub(self, a: Vector, b: Vector) -> Vector:
        return self._binary("fsub", a, b)

    def mul(self, a: Vector, b: Vector) -> Vector:
        return self._binary("fmul", a, b)

    def div(self, a: Vector, b: Vector) -> Vector:
        return self._binary("fdiv", a, b)

    def fma(self, a: Vector, b: Vector, c: Vector) -> Vector:
        assert a.type == b.type == c.type
        return self._call("fma", a, b, c)

    def sqrt(self, a: Vector) -> Vector:
        return self._call("sqrt", a)

    def neg(self, a: Vector) -> Vector:
        return self.emit(a.type, f"fneg {self.text(a.type)} {a.name}")

    def abs(self, a: Vector) -> Vector:
        return self._call("fabs", a)

    def copysign(self, magnitude: Vector, sign: Vector) -> Vector:
        return self._call("copysign", magnitude, sign)

    def iadd(self, a: Vector, b: Vector) -> Vector:
        return self._binary("add", a, b)

    def isub(self, a: Vector, b: Vector) -> Vector:
        return self._binary("sub", a, b)

    def iand(self, a: Vector, b: Vector) -> Vector:
        return self._binary("and", a, b)

    def ior(self, a: Vector, b: Vector) -> Vector:
        return self._binary("or", a, b)

    def ixor(self, a: Vector, b: Vector) -> Vector:
        return self._binary("xor", a, b)

    def shl(self, a: Vector, count: int) -> Vector:
        return self._binary("shl", a, self.constant(count, a))

    def lshr(self, a: Vector, count: int) -> Vector:
        return self._binary("lshr", a, self.constant(count, a))

    def ashr(self, a: Vector, count: int) -> Vector:
        return self._binary("ashr", a, self.constant(count, a))

    def compare(self, predicate: FloatPredicate | IntegerPredicate, a: Vector, b: Vector) -> Vector:
        assert a.type == b.type, (predicate, a, b)
        operation = "fcmp" if a.type[0] == "f" else "icmp"
        return self.emit("i1", f"{operation} {predicate} {self.text(a.type)} {a.name}, {b.name}")

    def select(self, condition: Vector, a: Vector, b: Vector) -> Vector:
        assert a.type == b.type, (a, b)
        type = self.text(a.type)
        return self.emit(a.type, f"select {self.text('i1')} {condition.name}, {type} {a.name}, {type} {b.name}")

    def bitcast(self, a: Vector, type: ElementType) -> Vector:
        return self.emit(type, f"bitcast {self.text(a.type)} {a.name} to {self.text(type)}")

    def cast(self, a: Vector, type: ElementType) -> Vector:
        operation = {("f32", "f64"): "fpext", ("f64", "f32"): "fptrunc", ("i32", "f32"): "sitofp"}[a.type, type]
        return self.emit(type, f"{operation} {self.text(a.type)} {a.name} to {self.text(type)}")

    def scale(self, value: Vector, power: Vector) -> Vector | None:
        if not self.native_scale:
            return None
        suffix, mask = {"f32": ("ps", "i16"), "f64": ("pd", "i8")}[value.type]
        type = self.text(value.type)
        function = f"@llvm.x86.avx512.mask.scalef.{suffix}.512"
        self.declarations.add(f"declare {type} {function}({type}, {type}, {type}, {mask}, i32)")
        arguments = f"{type} {value.name}, {type} {power.name}, {type} zeroinitializer, {mask} -1, i32 4"
        return self.emit(value.type, f"call {type} {function}({arguments})")


Expand = Callable[..., Any]


def loop_over_arrays(
    name: str, expand: Expand, type: ElementType, arity: int, lanes: int, native_scale: bool = False
) -> str:
    """LLVM IR of ``void name(T *out, T *in..., i64 n)``; n is a multiple of ``lanes``."""
    e = LlvmEmitter(lanes, native_scale)
    arguments = [Vector(f"%x{i}", type) for i in range(arity)]
    result = expand(e, *arguments)
    scalar, vector = _LLVM_TYPES[type], e.text(type)
    parameters = ", ".join(["ptr noalias %out", *(f"ptr noalias %in{i}" for i in range(arity)), "i64 %n"])
    loads = "\n".join(
        f"  %p{i} = getelementptr {scalar}, ptr %in{i}, i64 %i\n  %x{i} = load {vector}, ptr %p{i}, align {lanes}"
        for i in range(arity)
    )
    body = "\n".join(e.lines)
    declarations = "\n".join(sorted(e.declarations))
    return f"""{declarations}
define void @{name}({parameters}) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{loads}
{body}
  %q = getelementptr {scalar}, ptr %out, i64 %i
  store {vector} {result.name}, ptr %q, align {lanes}
  %next = add i64 %i, {lanes}
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""


class Library:
    """Machine code of LLVM IR texts for this CPU. Keep it alive as long as its functions are used."""

    def __init__(self, texts: list[str]) -> None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.load_library_permanently("libm.so.6")
        self._machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
        )
        module = llvm.parse_assembly("\n".join(texts))
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        builder = llvm.create_pass_builder(self._machine, options)
        builder.getModulePassManager().run(module, builder)
        self.assembly = self._machine.emit_assembly(module)
        self._engine = llvm.create_mcjit_compiler(module, self._machine)
        self._engine.finalize_object()

    def function(self, name: str, arrays: int) -> Callable[..., None]:
        """The function ``name``, which takes ``arrays`` addresses and the number of elements."""
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arrays, ctypes.c_int64)
        return prototype(self._engine.get_function_address(name))
