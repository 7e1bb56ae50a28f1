"""What a worker does all its life, and how workers are started."""

from __future__ import annotations

from .block import fields, load, store
from .spin import spin
from .system import System, default_float_state

_SLEEP = f"""sleep:
  %s0 = call i32 @pthread_mutex_lock(ptr %mutex)
  %s1 = atomicrmw add ptr %sleepers, i64 1 seq_cst, align 8
  br label %check
check:
{load("places", "gate")}
{load("stop.asleep", "stopped")}
  %reasons = or i64 %places, %stop.asleep
  %awake = icmp ne i64 %reasons, 0
  br i1 %awake, label %rise, label %wait
wait:
  %w0 = call i32 @pthread_cond_wait(ptr %wake, ptr %mutex)
  br label %check
rise:
  %r0 = atomicrmw sub ptr %sleepers, i64 1 seq_cst, align 8
  %r1 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %idle"""
"""A worker counts itself among the sleepers, looks once more, and waits."""


def worker(arch: str) -> str:
    """The function ``@worker``."""
    return f"""
; A worker's whole life.
define internal ptr @worker(ptr %pool) {{
entry:
{default_float_state(arch)}
{fields("gate", "left", "sleepers", "waiting", "stopped", "mutex", "wake", "done")}
  br label %idle

idle:
  %since = call i64 @now()
  br label %look
look:
  %pauses = phi i64 [ 0, %idle ], [ %pauses, %join ], [ %spin.pauses, %spin ], [ %spin.pauses, %spin.clock ]
{load("seen", "gate")}
  %open = icmp ne i64 %seen, 0
  br i1 %open, label %join, label %rest

join:
  %fewer = sub i64 %seen, 1
  %swapped = cmpxchg ptr %gate, i64 %seen, i64 %fewer seq_cst seq_cst, align 8
  %joined = extractvalue {{ i64, i1 }} %swapped, 1
  br i1 %joined, label %work, label %look
work:
  call void @take_rounds(ptr %pool, i64 %seen)
  %before = atomicrmw add ptr %left, i64 1 seq_cst, align 8
{load("owner.waits", "waiting")}
  %must.tell = icmp ne i64 %owner.waits, 0
  br i1 %must.tell, label %tell, label %idle
tell:
  %t0 = call i32 @pthread_mutex_lock(ptr %mutex)
  %t1 = call i32 @pthread_cond_signal(ptr %done)
  %t2 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %idle

rest:
{load("stop.now", "stopped")}
  %stops = icmp ne i64 %stop.now, 0
  br i1 %stops, label %end, label %spin
{spin("look", "sleep", arch)}

{_SLEEP}

end:
  ret ptr null
}}"""


def hire(system: System) -> str:
    """The function ``@hire``."""
    spared = "\n".join(f"  %d{n} = call i32 @sigdelset(ptr %blocked, i32 {n})" for n in system.faults)
    return f"""
; Starts workers until there are %wanted, or the system refuses. Gives how many of the wanted ones there are. They
; block all signals, so that the interpreter's own threads get them.
define internal i64 @hire(ptr %pool, i64 %wanted) {{
entry:
  %blocked = alloca [256 x i8], align 16
  %old = alloca [256 x i8], align 16
{fields("workers", "attributes", "threads")}
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
{store("%count", "workers")}
  %u0 = call i32 @pthread_sigmask(i32 {system.sig_setmask}, ptr %old, ptr null)
  br label %end
end:
  %there = phi i64 [ %present, %entry ], [ %count, %unblock ]
  %fewer = icmp slt i64 %there, %wanted
  %given = select i1 %fewer, i64 %there, i64 %wanted
  ret i64 %given
}}"""
