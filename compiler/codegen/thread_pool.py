"""The thread pool as LLVM text: one object per process, which compiled graphs call by symbol.

It is a fork-join pool: ``halfulp_parallel_for(threads, count, body, context)`` calls ``body(context, round)`` for every
round 0 .. count - 1 and returns when all are done. The calling thread works too. One call at a time owns the
workers (a *region*); a call that finds them busy, a call from inside a body, and a call for one thread or one round
do all rounds themselves. Nobody ever waits for a worker that has not joined, so a worker that sleeps, starts late or could not be
started costs time only.

The protocol, all of it on one block of memory (the offsets below), all atomic accesses sequentially consistent:

- ``lock`` is 1 while a region runs; it is only ever tried, never waited for.
- ``gate`` counts how many more workers may join. A worker joins by subtracting 1 with a compare-and-swap from what it
  saw, which was not 0. The owner closes the gate by swapping in a 0 and learns from the old value how many joined.
- ``next`` hands out rounds; ``left`` counts the workers that have joined and are done. The owner returns when
  ``left`` is the number that joined: from then on nobody touches the region's fields, and the next owner may set them.
- A worker without work spins for 50 us, then counts itself in ``sleepers``, looks at the gate once more under the
  mutex and waits for ``wake``. The owner opens the gate first and reads ``sleepers`` afterwards: one of
  the two sees the other. The owner waits for ``done`` in the same way, with ``waiting`` as the flag.

``tests/unit/test_thread_pool_model.py`` runs this protocol through every interleaving of 2 callers and 2 workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .cpu import CpuTarget

PARALLEL_FOR = "halfulp_parallel_for"
RENEW = "halfulp_pool_renew"
STOP = "halfulp_pool_stop"
WORKERS = "halfulp_pool_workers"
SYMBOLS = (PARALLEL_FOR, RENEW, STOP, WORKERS)
"""What the object exports: the function for compiled code; then, for the runtime, ``int renew(void)``, which starts
with a fresh pool without workers (once at first, and in the child of a fork) and gives 0 or an errno,
``int stop(void)``, which ends the workers and gives 1, or 0 if they are busy, and ``int64_t workers(void)``."""

MOST_WORKERS = 255
"""More threads than any machine for which a shared counter per region is the right scheme."""

SPIN_NANOSECONDS = 50_000
STACK_BYTES = 8 << 20
"""A kernel's temporaries take up to 1 MiB of stack; macOS would give a thread half of that."""

_MXCSR_DEFAULT = 0x1F80

# Bytes. What different threads write to lies 128 bytes apart: two cache lines, which CPUs fetch together. The objects
# of pthread are opaque; the largest (a mutex on macOS, an attribute object on Linux) takes 64 bytes.
_OFFSETS = {
    "lock": 0,
    "gate": 128,
    "next": 256,
    "left": 384,
    "sleepers": 512,
    "waiting": 640,
    "stopped": 648,
    "body": 768,
    "context": 776,
    "count": 784,
    "workers": 792,
    "mutex": 896,
    "wake": 1152,
    "done": 1408,
    "attributes": 1664,
    "threads": 1920,
}
_BYTES = _OFFSETS["threads"] + 8 * (MOST_WORKERS + 1)


@dataclass(frozen=True)
class _System:
    """The numbers of the C library's headers that differ between systems (bits/time.h, bits/sigaction.h, signal.h)."""

    clock_monotonic: int
    sig_setmask: int
    faults: tuple[int, ...]  # SIGILL, SIGFPE, SIGBUS, SIGSEGV: these must reach the thread that caused them


_LINUX = _System(clock_monotonic=1, sig_setmask=2, faults=(4, 8, 7, 11))
_MACOS = _System(clock_monotonic=6, sig_setmask=3, faults=(4, 8, 10, 11))


def _fields(*names: str) -> str:
    """Lines that compute the addresses of fields of ``%pool``, each under the field's name."""
    return "\n".join(f"  %{name} = getelementptr i8, ptr %pool, i64 {_OFFSETS[name]}" for name in names)


def _load(name: str, field: str, kind: str = "i64") -> str:
    return f"  %{name} = load atomic {kind}, ptr %{field} seq_cst, align 8"


def _store(value: int | str, field: str) -> str:
    return f"  store atomic i64 {value}, ptr %{field} seq_cst, align 8"


def _pause(arch: str) -> str:
    return "call void @llvm.x86.sse2.pause()" if arch == "x86_64" else "call void @llvm.aarch64.hint(i32 1)"


def _default_float_state(arch: str) -> str:
    """A thread of ours keeps IEEE's default state (see loops_to_llvm/functions.py) for its whole life."""
    if arch == "x86_64":
        return f"""  %mxcsr = alloca i32, align 4
  store i32 {_MXCSR_DEFAULT}, ptr %mxcsr, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %mxcsr)"""
    return "  call void @llvm.aarch64.set.fpcr(i64 0)"


def _declarations(arch: str) -> str:
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


def _now(system: _System) -> str:
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


_TAKE_ROUNDS = f"""
; Takes rounds of the open region until there are no more.
define internal void @take_rounds(ptr %pool) {{
entry:
{_fields("next", "body", "context", "count")}
  %function = load ptr, ptr %body, align 8
  %argument = load ptr, ptr %context, align 8
  %all = load i64, ptr %count, align 8
  br label %take
take:
  %round = atomicrmw add ptr %next, i64 1 seq_cst, align 8
  %more = icmp slt i64 %round, %all
  br i1 %more, label %run, label %end
run:
  call void %function(ptr %argument, i64 %round)
  br label %take
end:
  ret void
}}"""


def _spin(here: str, first: str, again: str, expired: str, arch: str) -> str:
    """Blocks that pause and go back to ``again``, or on to ``expired`` 50 us after ``%since``.

    The clock is read every 16 pauses. ``first`` names the block that a wait begins in, ``here`` prefixes ours.
    """
    return f"""{here}:
  {_pause(arch)}
  %{here}.pauses = add i64 %pauses, 1
  %{here}.low = and i64 %{here}.pauses, 15
  %{here}.look = icmp eq i64 %{here}.low, 0
  br i1 %{here}.look, label %{here}.clock, label %{again}
{here}.clock:
  %{here}.time = call i64 @now()
  %{here}.spent = sub i64 %{here}.time, %since
  %{here}.over = icmp sgt i64 %{here}.spent, {SPIN_NANOSECONDS}
  br i1 %{here}.over, label %{expired}, label %{again}"""


def _worker(arch: str) -> str:
    return f"""
; A worker's whole life.
define internal ptr @worker(ptr %pool) {{
entry:
{_default_float_state(arch)}
{_fields("gate", "left", "sleepers", "waiting", "stopped", "mutex", "wake", "done")}
  br label %idle

idle:
  %since = call i64 @now()
  br label %look
look:
  %pauses = phi i64 [ 0, %idle ], [ %pauses, %join ], [ %spin.pauses, %spin ], [ %spin.pauses, %spin.clock ]
{_load("seen", "gate")}
  %open = icmp ne i64 %seen, 0
  br i1 %open, label %join, label %rest

join:
  %fewer = sub i64 %seen, 1
  %swapped = cmpxchg ptr %gate, i64 %seen, i64 %fewer seq_cst seq_cst, align 8
  %joined = extractvalue {{ i64, i1 }} %swapped, 1
  br i1 %joined, label %work, label %look
work:
  call void @take_rounds(ptr %pool)
  %before = atomicrmw add ptr %left, i64 1 seq_cst, align 8
{_load("owner.waits", "waiting")}
  %must.tell = icmp ne i64 %owner.waits, 0
  br i1 %must.tell, label %tell, label %idle
tell:
  %t0 = call i32 @pthread_mutex_lock(ptr %mutex)
  %t1 = call i32 @pthread_cond_signal(ptr %done)
  %t2 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %idle

rest:
{_load("stop.now", "stopped")}
  %stops = icmp ne i64 %stop.now, 0
  br i1 %stops, label %end, label %spin
{_spin("spin", "idle", "look", "sleep", arch)}

sleep:
  %s0 = call i32 @pthread_mutex_lock(ptr %mutex)
  %s1 = atomicrmw add ptr %sleepers, i64 1 seq_cst, align 8
  br label %check
check:
{_load("places", "gate")}
{_load("stop.asleep", "stopped")}
  %reasons = or i64 %places, %stop.asleep
  %awake = icmp ne i64 %reasons, 0
  br i1 %awake, label %rise, label %wait
wait:
  %w0 = call i32 @pthread_cond_wait(ptr %wake, ptr %mutex)
  br label %check
rise:
  %r0 = atomicrmw sub ptr %sleepers, i64 1 seq_cst, align 8
  %r1 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %idle

end:
  ret ptr null
}}"""


def _hire(system: _System) -> str:
    spared = "\n".join(f"  %d{n} = call i32 @sigdelset(ptr %blocked, i32 {n})" for n in system.faults)
    return f"""
; Starts workers until there are %wanted, or the system refuses. Gives how many of the wanted ones there are. They
; block all signals, so that the interpreter's own threads get them.
define internal i64 @hire(ptr %pool, i64 %wanted) {{
entry:
  %blocked = alloca [256 x i8], align 16
  %old = alloca [256 x i8], align 16
{_fields("workers", "attributes", "threads")}
  %present = load i64, ptr %workers, align 8
  %enough = icmp sge i64 %present, %wanted
  br i1 %enough, label %end, label %block
block:
  %b0 = call i32 @sigfillset(ptr %blocked)
{spared}
  %b1 = call i32 @pthread_sigmask(i32 {system.sig_setmask}, ptr %blocked, ptr %old)
  br label %more
more:
  %count = phi i64 [ %present, %block ], [ %grown, %created ]
  %missing = icmp slt i64 %count, %wanted
  br i1 %missing, label %create, label %unblock
create:
  %offset = mul i64 %count, 8
  %handle = getelementptr i8, ptr %threads, i64 %offset
  %error = call i32 @pthread_create(ptr %handle, ptr %attributes, ptr @worker, ptr %pool)
  %grown = add i64 %count, 1
  %good = icmp eq i32 %error, 0
  br i1 %good, label %created, label %unblock
created:
  br label %more
unblock:
{_store("%count", "workers")}
  %u0 = call i32 @pthread_sigmask(i32 {system.sig_setmask}, ptr %old, ptr null)
  br label %end
end:
  %there = phi i64 [ %present, %entry ], [ %count, %unblock ]
  %fewer = icmp slt i64 %there, %wanted
  %given = select i1 %fewer, i64 %there, i64 %wanted
  ret i64 %given
}}"""


def _region(arch: str) -> str:
    return f"""
; One region, with %helpers workers at most; the lock is ours. The region's fields are plain memory: the gate's store
; publishes them, and only a worker that has joined reads them.
define internal void @run_region(ptr %pool, i64 %helpers, i64 %rounds, ptr %function, ptr %argument) {{
entry:
{_fields("gate", "next", "left", "sleepers", "waiting", "body", "context", "count", "mutex", "wake", "done")}
  store ptr %function, ptr %body, align 8
  store ptr %argument, ptr %context, align 8
  store i64 %rounds, ptr %count, align 8
{_store(0, "next")}
{_store(0, "left")}
{_store("%helpers", "gate")}
{_load("asleep", "sleepers")}
  %none = icmp eq i64 %asleep, 0
  br i1 %none, label %work, label %ring
ring:
  %g0 = call i32 @pthread_mutex_lock(ptr %mutex)
  br label %ring.next
ring.next:
  %rung = phi i64 [ 0, %ring ], [ %rung.more, %ring.one ]
  %rung.all = icmp sge i64 %rung, %asleep
  %rung.enough = icmp sge i64 %rung, %helpers
  %quiet = or i1 %rung.all, %rung.enough
  br i1 %quiet, label %ring.end, label %ring.one
ring.one:
  %g1 = call i32 @pthread_cond_signal(ptr %wake)
  %rung.more = add i64 %rung, 1
  br label %ring.next
ring.end:
  %g2 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %work

work:
  call void @take_rounds(ptr %pool)
  %unused = atomicrmw xchg ptr %gate, i64 0 seq_cst, align 8
  %joined = sub i64 %helpers, %unused
  %since = call i64 @now()
  br label %look
look:
  %pauses = phi i64 [ 0, %work ], [ %spin.pauses, %spin ], [ %spin.pauses, %spin.clock ]
{_load("gone", "left")}
  %complete = icmp eq i64 %gone, %joined
  br i1 %complete, label %end, label %spin
{_spin("spin", "work", "look", "sleep", arch)}

sleep:
  %s0 = call i32 @pthread_mutex_lock(ptr %mutex)
{_store(1, "waiting")}
  br label %check
check:
{_load("gone.now", "left")}
  %complete.now = icmp eq i64 %gone.now, %joined
  br i1 %complete.now, label %rise, label %wait
wait:
  %w0 = call i32 @pthread_cond_wait(ptr %done, ptr %mutex)
  br label %check
rise:
{_store(0, "waiting")}
  %r0 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %end
end:
  ret void
}}"""


_PARALLEL_FOR = f"""
define void @{PARALLEL_FOR}(i64 %allowed, i64 %rounds, ptr %function, ptr %argument) {{
entry:
  %pool = load atomic ptr, ptr @pool acquire, align 8
{_fields("lock")}
  %few.threads = icmp slt i64 %allowed, 2
  %few.rounds = icmp slt i64 %rounds, 2
  %few = or i1 %few.threads, %few.rounds
  %no.pool = icmp eq ptr %pool, null
  %alone = or i1 %few, %no.pool
  br i1 %alone, label %inline, label %try
try:
  %before = atomicrmw xchg ptr %lock, i64 1 seq_cst, align 8
  %free = icmp eq i64 %before, 0
  br i1 %free, label %owner, label %inline
owner:
  %by.threads = sub i64 %allowed, 1
  %by.rounds = sub i64 %rounds, 1
  %fewer = icmp slt i64 %by.threads, %by.rounds
  %useful = select i1 %fewer, i64 %by.threads, i64 %by.rounds
  %many = icmp sgt i64 %useful, {MOST_WORKERS}
  %wanted = select i1 %many, i64 {MOST_WORKERS}, i64 %useful
  %helpers = call i64 @hire(ptr %pool, i64 %wanted)
  call void @run_region(ptr %pool, i64 %helpers, i64 %rounds, ptr %function, ptr %argument)
{_store(0, "lock")}
  ret void

inline:
  br label %next
next:
  %round = phi i64 [ 0, %inline ], [ %following, %run ]
  %more = icmp slt i64 %round, %rounds
  br i1 %more, label %run, label %end
run:
  call void %function(ptr %argument, i64 %round)
  %following = add i64 %round, 1
  br label %next
end:
  ret void
}}"""

_CONTROL = f"""
; A fresh pool. The old one is left as it is: after a fork its mutex may be held by a thread that no longer exists.
define i32 @{RENEW}() {{
entry:
  %place = alloca ptr, align 8
  %error = call i32 @posix_memalign(ptr %place, i64 128, i64 {_BYTES})
  %good = icmp eq i32 %error, 0
  br i1 %good, label %fill, label %fail
fill:
  %pool = load ptr, ptr %place, align 8
  call void @llvm.memset.p0.i64(ptr align 128 %pool, i8 0, i64 {_BYTES}, i1 false)
{_fields("mutex", "wake", "done", "attributes")}
  %e0 = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %e1 = call i32 @pthread_cond_init(ptr %wake, ptr null)
  %e2 = call i32 @pthread_cond_init(ptr %done, ptr null)
  %e3 = call i32 @pthread_attr_init(ptr %attributes)
  %e4 = call i32 @pthread_attr_setstacksize(ptr %attributes, i64 {STACK_BYTES})
  %e01 = or i32 %e0, %e1
  %e23 = or i32 %e2, %e3
  %e03 = or i32 %e01, %e23
  %all = or i32 %e03, %e4
  %fine = icmp eq i32 %all, 0
  br i1 %fine, label %publish, label %fail
publish:
  store atomic ptr %pool, ptr @pool release, align 8
  ret i32 0
fail:
  %reason = phi i32 [ %error, %entry ], [ %all, %fill ]
  store atomic ptr null, ptr @pool release, align 8
  ret i32 %reason
}}

; Ends the workers if no region runs; the lock stays taken, so that from now on every call does its own work.
define i32 @{STOP}() {{
entry:
  %pool = load atomic ptr, ptr @pool acquire, align 8
  %none = icmp eq ptr %pool, null
  br i1 %none, label %stopped.all, label %try
try:
{_fields("lock", "stopped", "workers", "mutex", "wake", "threads")}
  %before = atomicrmw xchg ptr %lock, i64 1 seq_cst, align 8
  %free = icmp eq i64 %before, 0
  br i1 %free, label %tell, label %busy
tell:
{_store(1, "stopped")}
  %t0 = call i32 @pthread_mutex_lock(ptr %mutex)
  %t1 = call i32 @pthread_cond_broadcast(ptr %wake)
  %t2 = call i32 @pthread_mutex_unlock(ptr %mutex)
  %count = load i64, ptr %workers, align 8
  br label %next
next:
  %number = phi i64 [ 0, %tell ], [ %following, %join ]
  %more = icmp slt i64 %number, %count
  br i1 %more, label %join, label %joined.all
join:
  %offset = mul i64 %number, 8
  %handle = getelementptr i8, ptr %threads, i64 %offset
  %thread = load ptr, ptr %handle, align 8
  %j0 = call i32 @pthread_join(ptr %thread, ptr null)
  %following = add i64 %number, 1
  br label %next
joined.all:
{_store(0, "workers")}
  br label %stopped.all
stopped.all:
  ret i32 1
busy:
  ret i32 0
}}

define i64 @{WORKERS}() {{
entry:
  %pool = load atomic ptr, ptr @pool acquire, align 8
  %none = icmp eq ptr %pool, null
  br i1 %none, label %end, label %count
count:
{_fields("workers")}
{_load("present", "workers")}
  br label %end
end:
  %result = phi i64 [ 0, %entry ], [ %present, %count ]
  ret i64 %result
}}"""


def thread_pool_text(target: CpuTarget) -> str:
    """The pool's LLVM text for a target: x86-64 or aarch64, Linux or macOS."""
    system = _MACOS if _is_macos(target.triple) else _LINUX
    arch = target.arch
    parts: Sequence[str] = (
        "@pool = internal global ptr null, align 8",
        _now(system),
        _TAKE_ROUNDS,
        _worker(arch),
        _hire(system),
        _region(arch),
        _PARALLEL_FOR,
        _CONTROL,
        "",
        _declarations(arch),
        "",
    )
    return "\n".join(parts)


def _is_macos(triple: str) -> bool:
    return any(name in triple for name in ("darwin", "macos"))
