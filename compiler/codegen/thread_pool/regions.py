"""One region: its rounds, its owner, and who may own one."""

from __future__ import annotations

from .block import MOST_WORKERS, fields, load, store
from .names import PARALLEL_FOR
from .spin import spin

TAKE_ROUNDS = f"""
; Takes rounds of the open region until there are no more, as the thread of this number.
define internal void @take_rounds(ptr %pool, i64 %thread) {{
entry:
{fields("next", "body", "context", "count")}
  %function = load ptr, ptr %body, align 8
  %argument = load ptr, ptr %context, align 8
  %all = load i64, ptr %count, align 8
  br label %take
take:
  %round = atomicrmw add ptr %next, i64 1 seq_cst, align 8
  %more = icmp slt i64 %round, %all
  br i1 %more, label %run, label %end
run:
  call void %function(ptr %argument, i64 %round, i64 %thread)
  br label %take
end:
  ret void
}}"""


_WAKE_SLEEPERS = f"""{load("asleep", "sleepers")}
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
  br label %work"""
"""As many as may join; those that spin see the gate by themselves."""

_SLEEP = f"""sleep:
  %s0 = call i32 @pthread_mutex_lock(ptr %mutex)
{store(1, "waiting")}
  br label %check
check:
{load("gone.now", "left")}
  %complete.now = icmp eq i64 %gone.now, %joined
  br i1 %complete.now, label %rise, label %wait
wait:
  %w0 = call i32 @pthread_cond_wait(ptr %done, ptr %mutex)
  br label %check
rise:
{store(0, "waiting")}
  %r0 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %end"""
"""The owner says that it waits, looks once more, and waits."""


def region(arch: str) -> str:
    """The function ``@run_region``."""
    return f"""
; One region, with %helpers workers at most; the lock is ours. The region's fields are plain memory: the gate's store
; publishes them, and only a worker that has joined reads them.
define internal void @run_region(ptr %pool, i64 %helpers, i64 %rounds, ptr %function, ptr %argument) {{
entry:
{fields("gate", "next", "left", "sleepers", "waiting", "body", "context", "count", "mutex", "wake", "done")}
  store ptr %function, ptr %body, align 8
  store ptr %argument, ptr %context, align 8
  store i64 %rounds, ptr %count, align 8
{store(0, "next")}
{store(0, "left")}
{store("%helpers", "gate")}
{_WAKE_SLEEPERS}

work:
  call void @take_rounds(ptr %pool, i64 0)
  %unused = atomicrmw xchg ptr %gate, i64 0 seq_cst, align 8
  %joined = sub i64 %helpers, %unused
  %since = call i64 @now()
  br label %look
look:
  %pauses = phi i64 [ 0, %work ], [ %spin.pauses, %spin ], [ %spin.pauses, %spin.clock ]
{load("gone", "left")}
  %complete = icmp eq i64 %gone, %joined
  br i1 %complete, label %end, label %spin
{spin("look", "sleep", arch)}

{_SLEEP}
end:
  ret void
}}"""


PARALLEL_FOR_TEXT = f"""
define void @{PARALLEL_FOR}(i64 %allowed, i64 %rounds, ptr %function, ptr %argument) {{
entry:
  %pool = load atomic ptr, ptr @pool acquire, align 8
{fields("lock")}
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
{store(0, "lock")}
  ret void

inline:
  br label %next
next:
  %round = phi i64 [ 0, %inline ], [ %following, %run ]
  %more = icmp slt i64 %round, %rounds
  br i1 %more, label %run, label %end
run:
  call void %function(ptr %argument, i64 %round, i64 0)
  %following = add i64 %round, 1
  br label %next
end:
  ret void
}}"""
