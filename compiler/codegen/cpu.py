"""The host CPU as a target, and LLVM text -> optimised object code or assembly for it.

``host_target`` names what the compiler may use. The vector width is a choice: 512 bits need AVX-512, 256 bits mean
AVX2, and 128 bits are four lanes of f32 (on x86 still with FMA, so that results stay the same).
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from ..errors import CompileError
from .llvm_lock import llvm_lock

if TYPE_CHECKING:
    from llvmlite.binding.module import ModuleRef
    from llvmlite.binding.newpassmanagers import ModulePassManager, PassBuilder, PipelineTuningOptions
    from llvmlite.binding.targets import TargetMachine

REQUIRED_X86 = ("avx", "f16c", "fma")
"""Without fma every fused op would be a slow library call; f16c comes with it on every CPU made since 2013."""

_AVX512 = re.compile(r"avx512|avx10|evex512")


@dataclass(frozen=True)
class CpuTarget:
    """A CPU to compile for: LLVM's triple, CPU name and feature string, and the vector width in bits."""

    triple: str
    cpu: str
    features: str
    vector_bits: int

    @property
    def arch(self) -> str:
        """``x86_64`` or ``aarch64``, whatever the vendor calls it in the triple."""
        name = self.triple.partition("-")[0]
        return {"arm64": "aarch64", "amd64": "x86_64"}.get(name, name)

    @property
    def name(self) -> str:
        """The target's name in the table of what selects: ``x86_64/512``."""
        return f"{self.arch}/{self.vector_bits}"

    @property
    def scales(self) -> bool:
        """Whether an instruction multiplies f32 by powers of two: AVX-512's ``vscalefps``."""
        return self.name == "x86_64/512"

    @property
    def permutes(self) -> int:
        """Bits of a register whose f32 an instruction permutes by indices, AVX's ``vpermps``; 0 without one."""
        return self.vector_bits if self.name in ("x86_64/256", "x86_64/512") else 0

    @property
    def function_attributes(self) -> dict[str, str]:
        """String attributes every function compiled for this target gets."""
        return {"prefer-vector-width": str(self.vector_bits)}


@cache
def _initialized() -> None:
    """LLVM's targets and assembly printers, once per process; others than the native one cost a millisecond."""
    import llvmlite.binding as llvm

    llvm_lock()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def llvm_version() -> str:
    """LLVM's version, and that of the llvmlite around it: ``22.1.0/0.50.0``."""
    import llvmlite
    import llvmlite.binding as llvm

    return f"{'.'.join(map(str, llvm.llvm_version_info))}/{llvmlite.__version__}"


def require_features(cpu: str, features: Mapping[str, bool]) -> None:
    """CompileError if an x86 CPU lacks an instruction set that every kernel needs."""
    missing = [name for name in REQUIRED_X86 if not features.get(name)]
    if missing:
        raise CompileError(
            f"CPU {cpu!r} lacks {', '.join(missing)}: halfulp compiles for x86 CPUs with AVX, F16C and FMA"
            " (Intel since Haswell, AMD since Piledriver); use such a machine"
        )


def select_features(features: Mapping[str, bool], vector_bits: int | None) -> tuple[dict[str, bool], int]:
    """The x86 features to use for a vector width, and the width: by default the widest there is.

    CompileError if the width is not 128, 256 or 512, or is more than the CPU has.
    """
    widest = 512 if all(features.get(f) for f in ("avx512f", "avx512vl", "avx512bw", "avx512dq")) else 256
    if not features.get("avx2"):
        widest = 128
    bits = widest if vector_bits is None else vector_bits
    if bits not in (128, 256, 512):
        raise CompileError(f"vector_bits must be 128, 256 or 512, not {bits}")
    if bits > widest:
        raise CompileError(f"vector_bits={bits} is more than this CPU has; use {widest} or less")
    if bits == 512:
        return dict(features), bits
    return {name: on and not _AVX512.match(name) for name, on in features.items()}, bits


@cache
def host_target(vector_bits: int | None = None) -> CpuTarget:
    """This machine, with its widest vectors or those of ``vector_bits``.

    CompileError for an x86 CPU without FMA, a width the CPU lacks, or an architecture other than x86-64 and aarch64.
    """
    import llvmlite.binding as llvm

    _initialized()
    triple, cpu, features = llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features()
    arch = CpuTarget(triple, cpu, "", 0).arch
    if arch == "x86_64":
        require_features(cpu, features)
        chosen, bits = select_features(features, vector_bits)
        text = ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(chosen.items()))
        return CpuTarget(triple, cpu, text, bits)
    if arch == "aarch64":
        if vector_bits not in (None, 128):
            raise CompileError(f"vector_bits={vector_bits} is not what this CPU has; use 128")
        return CpuTarget(triple, cpu, llvm.FeatureMap(features).flatten(), 128)
    raise CompileError(f"halfulp compiles for x86-64 and aarch64 CPUs, not for {platform.machine()}")


def _machine(target: CpuTarget, opt_level: int) -> TargetMachine:
    import llvmlite.binding as llvm

    _initialized()
    # One machine per call: disposing of an engine can free a machine that others share.
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=opt_level, reloc="pic", codemodel="small"
    )


_PARSE_ERROR = re.compile(r"<string>:(\d+):(\d+): error: (.*)")


def _rejected(error: RuntimeError, llvm_text: str) -> CompileError:
    """LLVM's complaint with the line of our text that it is about."""
    found = _PARSE_ERROR.search(str(error))
    if found is None:
        return CompileError(f"LLVM rejects the module: {str(error).strip()}")
    number = int(found[1])
    lines = llvm_text.splitlines()
    line = lines[number - 1].strip() if number <= len(lines) else ""
    return CompileError(f"LLVM rejects line {number} of its text, {line!r}: {found[3]}")


CLEANUP = ("sroa", "simplify_cfg", "loop_rotate", "instruction_combine", "new_gvn", "dead_store_elimination")
"""LLVM's passes at levels 1 and 2, simplify_cfg once more at the end. Our loops come with explicit vectors and no
redundancy that these do not find: on the log-probabilities kernels they take 30 ms where LLVM's own level 2 takes
300, and the code runs as fast."""


def _tuning(opt_level: int) -> PipelineTuningOptions:
    import llvmlite.binding as llvm

    tuning = llvm.create_pipeline_tuning_options(speed_level=opt_level)
    # Vectors are written out before; what is scalar is meant to be, and leaving it so compiles faster.
    tuning.loop_vectorization = False
    tuning.slp_vectorization = False
    return tuning


def _pass_manager(builder: PassBuilder, opt_level: int) -> ModulePassManager:
    """Level 3 is LLVM's own pipeline, 1 and 2 ours."""
    import llvmlite.binding as llvm

    if opt_level == 3:
        return builder.getModulePassManager()
    manager = llvm.create_new_module_pass_manager()
    for name in (*CLEANUP, "simplify_cfg"):
        getattr(manager, f"add_{name}_pass")()
    return manager


def optimize(module: ModuleRef, machine: TargetMachine, opt_level: int) -> None:
    """Runs LLVM's passes of a level on a module, for any target."""
    import llvmlite.binding as llvm

    if opt_level:
        builder = llvm.create_pass_builder(machine, _tuning(opt_level))
        _pass_manager(builder, opt_level).run(module, builder)


@contextmanager
def _optimized(llvm_text: str, target: CpuTarget, opt_level: int) -> Iterator[tuple[TargetMachine, ModuleRef]]:
    import llvmlite.binding as llvm

    if opt_level not in (0, 1, 2, 3):
        raise CompileError(f"opt_level must be 0, 1, 2 or 3, not {opt_level}")
    machine = _machine(target, opt_level)
    try:
        # A context of its own, so that types and constants are freed with the module.
        module = llvm.parse_assembly(llvm_text, context=llvm.create_context())
        module.triple = target.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise _rejected(error, llvm_text) from None
    optimize(module, machine, opt_level)
    yield machine, module


def compile_to_object(llvm_text: str, target: CpuTarget, opt_level: int = 2) -> bytes:
    """Optimises a module and gives its object code. CompileError, with the line, for text LLVM rejects."""
    with _optimized(llvm_text, target, opt_level) as (machine, module):
        code: bytes = machine.emit_object(module)
        return code


def emit_assembly(llvm_text: str, target: CpuTarget, opt_level: int = 2) -> str:
    """Optimises a module and gives its assembly text."""
    with _optimized(llvm_text, target, opt_level) as (machine, module):
        text: str = machine.emit_assembly(module)
        return text
