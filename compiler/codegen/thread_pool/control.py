"""What the runtime calls: a fresh pool, its end, and how many workers there are."""

from __future__ import annotations

from .block import BYTES, STACK_BYTES, fields, load, store
from .names import RENEW, STOP, WORKERS

CONTROL = f"""
; A fresh pool. The old one is left as it is: after a fork its mutex may be held by a thread that no longer exists.
define i32 @{RENEW}() {{
entry:
  %place = alloca ptr, align 8
  %error = call i32 @posix_memalign(ptr %place, i64 128, i64 {BYTES})
  %good = icmp eq i32 %error, 0
  br i1 %good, label %fill, label %fail
fill:
  %pool = load ptr, ptr %place, align 8
  call void @llvm.memset.p0.i64(ptr align 128 %pool, i8 0, i64 {BYTES}, i1 false)
{fields("mutex", "wake", "done", "attributes")}
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
{fields("lock", "stopped", "workers", "mutex", "wake", "threads")}
  %before = atomicrmw xchg ptr %lock, i64 1 seq_cst, align 8
  %free = icmp eq i64 %before, 0
  br i1 %free, label %tell, label %busy
tell:
{store(1, "stopped")}
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
{store(0, "workers")}
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
{fields("workers")}
{load("present", "workers")}
  br label %end
end:
  %result = phi i64 [ 0, %entry ], [ %present, %count ]
  ret i64 %result
}}"""
