"""What differs between systems and CPUs: numbers of C headers, the clock, a pause, the floating-point state."""

from __future__ import annotations

from dataclasses import dataclass

MXCSR_DEFAULT = 0x1F80
"""As for entry functions (``passes/loops_to_llvm/functions.py``)."""


@dataclass(frozen=True)
class System:
    """The numbers of the C library's headers that differ between systems (bits/time.h, bits/sigaction.h, signal.h)."""

    clock_monotonic: int
    sig_setmask: int
    faults: tuple[int, ...]  # SIGILL, SIGFPE, SIGBUS, SIGSEGV: these must reach the thread that caused them


LINUX = System(clock_monotonic=1, sig_setmask=2, faults=(4, 8, 7, 11))
MACOS = System(clock_monotonic=6, sig_setmask=3, faults=(4, 8, 10, 11))


def pause(arch: str) -> str:
    """Tells the CPU that the thread spins."""
    return "call void @llvm.x86.sse2.pause()" if arch == "x86_64" else "call void @llvm.aarch64.hint(i32 1)"


def default_float_state(arch: str) -> str:
    """A thread of ours keeps IEEE's default state for its whole life."""
    if arch == "x86_64":
        return f"""  %mxcsr = alloca i32, align 4
  store i32 {MXCSR_DEFAULT}, ptr %mxcsr, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %mxcsr)"""
    return "  call void @llvm.aarch64.set.fpcr(i64 0)"


def declarations(arch: str) -> str:
    """Everything that the pool calls from outside."""
    intrinsics = (
        ("void @llvm.x86.sse2.pause()", "void @llvm.x86.sse.ldmxcsr(ptr)")
        if arch == "x86_64"
        else ("void @llvm.aarch64.hint(i32)", "void @llvm.aarch64.set.fpcr(i64)")
    )
    functions = (
        "i32 @clock_gettime(i32, ptr)",
        "i32 @posix_memalign(ptr, i64, i64)",
        "i32 @pthread_attr_init(ptr)",
        "i32 @pthread_attr_setstacksize(ptr, i64)",
        "i32 @pthread_cond_broadcast(ptr)",
        "i32 @pthread_cond_init(ptr, ptr)",
        "i32 @pthread_cond_signal(ptr)",
        "i32 @pthread_cond_wait(ptr, ptr)",
        "i32 @pthread_create(ptr, ptr, ptr, ptr)",
        "i32 @pthread_join(ptr, ptr)",
        "i32 @pthread_mutex_init(ptr, ptr)",
        "i32 @pthread_mutex_lock(ptr)",
        "i32 @pthread_mutex_unlock(ptr)",
        "i32 @pthread_sigmask(i32, ptr, ptr)",
        "i32 @sigdelset(ptr, i32)",
        "i32 @sigfillset(ptr)",
    )
    lines = [f"declare {function}" for function in (*intrinsics, *functions)]
    return "\n".join([*lines, "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"])


def now(system: System) -> str:
    """The function ``@now``."""
    return f"""
; Nanoseconds of a clock that never goes back.
define internal i64 @now() {{
  %time = alloca [2 x i64], align 8
  %unused = call i32 @clock_gettime(i32 {system.clock_monotonic}, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest.at = getelementptr i8, ptr %time, i64 8
  %rest = load i64, ptr %rest.at, align 8
  %whole = mul i64 %seconds, 1000000000
  %all = add i64 %whole, %rest
  ret i64 %all
}}"""
