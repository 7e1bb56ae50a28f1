"""The thread pool: every round once, with several callers, nested, after a fork, at exit; and on other systems."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from halfulp.compiler.codegen.cpu import CpuTarget, compile_to_object, host_target
from halfulp.compiler.codegen.thread_pool import SYMBOLS, thread_pool_text
from halfulp.compiler.errors import GraphError
from halfulp.runtime.cpu_count import default_threads, quota
from halfulp.runtime.loader import NativeLibrary
from halfulp.runtime.threads import thread_pool

# counts(words, parameters): `times` regions of `rounds` rounds; round r adds 1 to word r.
COUNTS = """
define void @count(ptr %words, i64 %round) {
  %at = getelementptr i64, ptr %words, i64 %round
  %old = load i64, ptr %at, align 8
  %new = add i64 %old, 1
  store i64 %new, ptr %at, align 8
  ret void
}
define void @counts(ptr %words, ptr %parameters) {
entry:
  %threads = load i64, ptr %parameters, align 8
  %rounds.at = getelementptr i64, ptr %parameters, i64 1
  %rounds = load i64, ptr %rounds.at, align 8
  %times.at = getelementptr i64, ptr %parameters, i64 2
  %times = load i64, ptr %times.at, align 8
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  call void @halfulp_parallel_for(i64 %threads, i64 %rounds, ptr @count, ptr %words)
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %times
  br i1 %more, label %next, label %end
end:
  ret void
}
declare void @halfulp_parallel_for(i64, i64, ptr, ptr)
"""

# Every round of the outer region runs an inner one over its own row of 4 words.
NESTED = """
define void @count(ptr %words, i64 %round) {
  %at = getelementptr i64, ptr %words, i64 %round
  %old = load i64, ptr %at, align 8
  %new = add i64 %old, 1
  store i64 %new, ptr %at, align 8
  ret void
}
define void @row(ptr %words, i64 %round) {
  %start = mul i64 %round, 4
  %at = getelementptr i64, ptr %words, i64 %start
  call void @halfulp_parallel_for(i64 4, i64 4, ptr @count, ptr %at)
  ret void
}
define void @rows(ptr %words, ptr %parameters) {
  %rounds = load i64, ptr %parameters, align 8
  call void @halfulp_parallel_for(i64 4, i64 %rounds, ptr @row, ptr %words)
  ret void
}
declare void @halfulp_parallel_for(i64, i64, ptr, ptr)
"""

# How to read the floating-point state into %bits, and a caller of the region with flush-to-zero on.
STATES = {
    "x86_64": (
        """
  %state = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %state)
  %narrow = load i32, ptr %state, align 4
  %bits = zext i32 %narrow to i64""",
        """
  %old = alloca i32, align 4
  %new = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %old)
  store i32 40896, ptr %new, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %new)
  call void @halfulp_parallel_for(i64 2, i64 2, ptr @meet, ptr %words)
  call void @llvm.x86.sse.ldmxcsr(ptr %old)""",
        "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)",
        [0x1F80, 0x9FC0],
        0xFFC0,
    ),
    "aarch64": (
        """
  %bits = call i64 @llvm.aarch64.get.fpcr()""",
        """
  %old = call i64 @llvm.aarch64.get.fpcr()
  call void @llvm.aarch64.set.fpcr(i64 16777216)
  call void @halfulp_parallel_for(i64 2, i64 2, ptr @meet, ptr %words)
  call void @llvm.aarch64.set.fpcr(i64 %old)""",
        "declare i64 @llvm.aarch64.get.fpcr()\ndeclare void @llvm.aarch64.set.fpcr(i64)",
        [0, 1 << 24],
        1 << 24,
    ),
}
READ_STATE, CALL_FLUSHING, DECLARATIONS, EXPECTED_STATES, STATE_MASK = STATES[host_target().arch]

# Two rounds that wait for each other, so that two threads must run them; each notes its floating-point state.
MEET = f"""
define void @meet(ptr %words, i64 %round) {{
entry:
  %arrived = atomicrmw add ptr %words, i64 1 seq_cst, align 8
  br label %wait
wait:
  %there = load atomic i64, ptr %words seq_cst, align 8
  %both = icmp sge i64 %there, 2
  br i1 %both, label %go, label %wait
go:{READ_STATE}
  %position = add i64 %round, 1
  %at = getelementptr i64, ptr %words, i64 %position
  store i64 %bits, ptr %at, align 8
  ret void
}}
define void @flushing(ptr %words, ptr %parameters) {{{CALL_FLUSHING}
  ret void
}}
declare void @halfulp_parallel_for(i64, i64, ptr, ptr)
{DECLARATIONS}
"""


# Regions of two rounds that need two threads each; the second round then takes 300 us, and whoever has done the first
# goes to sleep. With gaps between the calls the worker sleeps, too.
SLOW = """
define void @slow(ptr %words, i64 %round) {
entry:
  %before = atomicrmw add ptr %words, i64 1 seq_cst, align 8
  %odd = or i64 %before, 1
  %all = add i64 %odd, 1
  br label %wait
wait:
  %there = load atomic i64, ptr %words seq_cst, align 8
  %both = icmp sge i64 %there, %all
  br i1 %both, label %go, label %wait
go:
  %micros = mul i64 %round, 300
  %narrow = trunc i64 %micros to i32
  %unused = call i32 @usleep(i32 %narrow)
  ret void
}
define void @slowly(ptr %words, ptr %parameters) {
  call void @halfulp_parallel_for(i64 2, i64 2, ptr @slow, ptr %words)
  ret void
}
declare i32 @usleep(i32)
declare void @halfulp_parallel_for(i64, i64, ptr, ptr)
"""


@cache
def function(text: str, name: str) -> Callable[[int, int], None]:
    return NativeLibrary(compile_to_object(text, host_target()), [name]).entry(name)


def call(text: str, name: str, words: int, *parameters: int) -> list[int]:
    """The words that the function leaves behind."""
    memory = (ctypes.c_int64 * words)()
    arguments = (ctypes.c_int64 * max(len(parameters), 1))(*parameters)
    function(text, name)(ctypes.addressof(memory), ctypes.addressof(arguments))
    return list(memory)


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a script whose name for this file's helpers is ``pool``."""
    head = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_thread_pool as pool\n"
    command = [sys.executable, "-W", "ignore", "-c", head + textwrap.dedent(code), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("threads", [1, 2, 3, 5, 16])
@pytest.mark.parametrize("rounds", [0, 1, 2, 7, 100])
def test_every_round_runs_once(threads: int, rounds: int) -> None:
    assert call(COUNTS, "counts", rounds, threads, rounds, 200) == [200] * rounds


def test_workers_start_when_they_are_first_needed() -> None:
    run = run_python(
        """
        from halfulp.runtime.threads import thread_pool
        pool.call(pool.COUNTS, "counts", 8, 1, 8, 1)
        print(thread_pool().workers)
        pool.call(pool.COUNTS, "counts", 2, 16, 2, 1)
        print(thread_pool().workers)
        pool.call(pool.COUNTS, "counts", 8, 3, 8, 1)
        print(thread_pool().workers)
        """
    )
    assert (run.stdout.split(), run.stderr) == (["0", "1", "2"], "")


def test_several_callers_at_once_each_get_all_their_rounds() -> None:
    results: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: results.append(call(COUNTS, "counts", 8, 3, 8, 20_000))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[20_000] * 8] * 3


def test_a_region_inside_a_region_runs_on_the_thread_it_is_in() -> None:
    assert call(NESTED, "rows", 400, 100) == [1] * 400


def test_a_worker_takes_part_with_the_default_floating_point_state() -> None:
    _, *states = call(MEET, "flushing", 3)
    assert sorted(state & STATE_MASK for state in states) == EXPECTED_STATES


def test_nobody_sleeps_through_a_signal() -> None:
    run = run_python(
        """
        import time
        for number in range(400):
            assert pool.call(pool.SLOW, "slowly", 1) == [2]
            time.sleep(number % 4 * 5e-5)  # shorter than a spin, about as long, longer
        print("end")
        """
    )
    assert (run.stdout, run.stderr) == ("end\n", "")


def test_a_fork_has_no_workers_and_can_start_its_own() -> None:
    run = run_python(
        """
        import os, threading
        from halfulp.runtime.threads import thread_pool
        busy = threading.Thread(target=lambda: pool.call(pool.COUNTS, "counts", 8, 3, 8, 200_000))
        pool.call(pool.COUNTS, "counts", 8, 4, 8, 10)
        busy.start()
        children = []
        for _ in range(10):
            child = os.fork()
            if not child:
                before = thread_pool().workers
                same = pool.call(pool.COUNTS, "counts", 8, 4, 8, 1000) == [1000] * 8
                os._exit(0 if same and before == 0 and thread_pool().workers == 3 else 1)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        busy.join()
        print(codes, thread_pool().workers, pool.call(pool.COUNTS, "counts", 8, 4, 8, 1000))
        """
    )
    assert run.stdout.split("\n")[0] == f"{[0] * 10} 3 {[1000] * 8}", run.stderr


def test_the_interpreter_ends_while_a_thread_is_in_a_region() -> None:
    run = run_python(
        """
        import threading, time
        worker = threading.Thread(target=lambda: pool.call(pool.COUNTS, "counts", 64, 4, 64, 1 << 40), daemon=True)
        worker.start()
        time.sleep(0.2)
        print("end")
        """
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "end\n", "")


def test_after_stop_there_are_no_workers_and_every_call_does_its_own_work() -> None:
    run = run_python(
        """
        from halfulp.runtime.threads import thread_pool
        pool.call(pool.COUNTS, "counts", 8, 4, 8, 10)
        print(thread_pool().workers, thread_pool().stop(), thread_pool().workers)
        print(pool.call(pool.COUNTS, "counts", 8, 4, 8, 1000) == [1000] * 8, thread_pool().workers)
        """
    )
    assert (run.stdout.split(), run.stderr) == (["3", "True", "0", "True", "0"], "")


def test_stop_leaves_workers_alone_that_are_at_work() -> None:
    run = run_python(
        """
        import threading, time
        from halfulp.runtime.threads import thread_pool
        work = threading.Thread(target=lambda: pool.call(pool.COUNTS, "counts", 64, 2, 64, 1 << 40), daemon=True)
        work.start()
        time.sleep(0.2)
        print(any(not thread_pool().stop() for _ in range(1000)))
        """
    )
    assert (run.returncode, run.stdout) == (0, "True\n"), run.stderr


@pytest.mark.parametrize(
    ("triple", "cpu"),
    [
        ("x86_64-unknown-linux-gnu", "haswell"),
        ("aarch64-unknown-linux-gnu", "generic"),
        ("x86_64-apple-macosx13.0.0", "haswell"),
        ("arm64-apple-macosx13.0.0", "apple-m1"),
    ],
)
def test_the_pool_compiles_for_every_system(triple: str, cpu: str) -> None:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = CpuTarget(triple, cpu, "", 128)
    code = compile_to_object(thread_pool_text(target), target)
    assert all(name.encode() in code for name in SYMBOLS)
    assert b"futex" not in code


def test_the_pool_belongs_to_the_process() -> None:
    assert thread_pool() is thread_pool()


def test_the_variable_sets_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_NUM_THREADS", " 7 ")
    assert default_threads() == 7


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "²"])
def test_the_variable_must_be_a_number_of_threads(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_NUM_THREADS", text)
    with pytest.raises(GraphError) as error:
        default_threads()
    assert str(error.value) == (
        f"HALFULP_NUM_THREADS must be a number of threads, at least 1, not {text!r}; unset it for all CPUs"
    )


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_quota_of_cgroup_2_counts_at_every_level(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/outer/inner\n",
        "sys/fs/cgroup/outer/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/outer/inner/cpu.max": "max 100000\n",
    }
    assert quota(write(tmp_path, files)) == 2


def test_a_quota_of_cgroup_1_counts_also_where_only_the_mount_exists(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "12:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "300000\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    }
    assert quota(write(tmp_path, files)) == 3


def test_without_a_quota_there_is_no_limit(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "4:cpu:/\n0::/\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    }
    assert quota(write(tmp_path, files)) > 10_000
    assert quota(tmp_path / "no such root") > 10_000
