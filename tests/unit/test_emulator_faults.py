"""What the emulator finds: planted faults, each with its message."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ptx_kernels import kernel, run

from halfulp.runtime.cuda.emulator import (
    DataRaceError,
    DivergentBarrierError,
    Emulator,
    InvalidShuffleError,
    MisalignedAccessError,
    OutOfBoundsError,
    ReadOnlyError,
    StepLimitError,
    TrapError,
    UndefinedResultError,
    UninitializedReadError,
    UnroundedOperationError,
    UnsupportedPtxError,
)

SHARED = ".shared .align 4 .b8 tile[256];\n"

# %r1 is the thread, %rd1 its place in the output of one word a thread, %rd3 its place in shared memory
PLACES = """
mov.u32 %r1, %tid.x;
ld.param.u64 %rd1, [out];
mad.wide.u32 %rd1, %r1, 4, %rd1;
mov.u64 %rd2, tile;
mad.wide.u32 %rd3, %r1, 4, %rd2;
"""


def shared_kernel(body: str) -> str:
    return kernel(PLACES + body, before=SHARED)


REVERSE = "st.shared.u32 [%rd3], %r1;\n{barrier}\nmul.wide.s32 %rd4, %r1, -4;\nadd.s64 %rd4, %rd4, %rd2;\n" + (
    "ld.shared.u32 %r2, [%rd4+252];\nst.global.u32 [%rd1], %r2;"
)


def test_missing_barrier_is_a_race() -> None:
    """A block that reverses its values in shared memory; every thread reads what another one wrote."""
    assert (run(shared_kernel(REVERSE.format(barrier="bar.sync 0;")), 64, "u4", block=64) == np.arange(64)[::-1]).all()
    with pytest.raises(DataRaceError) as caught:
        run(shared_kernel(REVERSE.format(barrier="")), 64, "u4", block=64)
    assert str(caught.value) == (
        "kernel 'k', PTX line 18: ld.shared.u32 %r2, [%rd4+252]\n"
        "  thread (0, 0, 0) of block (0, 0, 0) reads bytes that thread (63, 0, 0) of block (0, 0, 0) has written: put "
        "a barrier between the two"
    )
    assert caught.value.fault.thread == (0, 0, 0)


def test_write_after_read_without_barrier_is_a_race() -> None:
    body = "st.shared.u32 [%rd3], %r1;\nbar.sync 0;\nld.shared.u32 %r2, [%rd2];\n{barrier}\nst.shared.u32 [%rd3], %r2;"
    run(shared_kernel(body.format(barrier="bar.sync 0;")), 64, "u4", block=64)
    with pytest.raises(DataRaceError) as caught:
        run(shared_kernel(body.format(barrier="")), 64, "u4", block=64)
    assert str(caught.value).endswith(
        "writes bytes that thread (63, 0, 0) of block (0, 0, 0) and other threads of its block has read: put a barrier "
        "between the two"
    )


def test_two_threads_write_one_word_in_one_instruction() -> None:
    with pytest.raises(DataRaceError) as caught:
        run(shared_kernel("st.shared.u32 [%rd2+8], 1;"), 64, "u4", block=64)
    assert str(caught.value).endswith(
        "writes bytes that thread (63, 0, 0) of block (0, 0, 0) has written: put a barrier between the two"
    )


def test_shuffle_orders_nothing() -> None:
    body = REVERSE.replace("252", "124")
    shuffle = "shfl.sync.bfly.b32 %r5, %r1, 1, 31, -1;"
    with pytest.raises(DataRaceError):
        run(shared_kernel(body.format(barrier=shuffle)), 32, "u4")


def test_warp_barrier_orders_its_warp_only() -> None:
    within = REVERSE.replace("252", "124").format(barrier="bar.warp.sync -1;")
    assert (run(shared_kernel(within), 32, "u4") == np.arange(32)[::-1]).all()
    with pytest.raises(DataRaceError, match=r"thread \(63, 0, 0\)"):
        run(shared_kernel(REVERSE.format(barrier="bar.warp.sync -1;")), 64, "u4", block=64)


def test_blocks_race_for_global_memory() -> None:
    """Each block writes the same words. As the blocks of a grid run in any order, no barrier helps."""
    with pytest.raises(DataRaceError) as caught:
        run(kernel("ld.param.u64 %rd1, [out];\nmov.u32 %r1, %ctaid.x;\nst.global.u32 [%rd1], %r1;"), 1, "u4", (), 2, 1)
    assert str(caught.value) == (
        "kernel 'k', PTX line 9: st.global.u32 [%rd1], %r1\n"
        "  thread (0, 0, 0) of block (0, 0, 0) writes bytes that thread (0, 0, 0) of block (1, 0, 0) has written: "
        "threads of different blocks need atomic operations, or a launch each"
    )


def test_blocks_of_different_batches_race_too() -> None:
    body = "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p1, %r1, {block};\n@%p1 ret;\n{access}"
    write = body.format(block=20000, access="st.global.u32 [%rd1], %r1;")
    assert run(kernel(write), 1, "u4", (), 20001, 1) == [20000]
    both = "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra write;\nsetp.ne.u32 %p2, %r1, 20000;\n@%p2 ret;\nwrite:\n"
    both = f"ld.param.u64 %rd1, [out];\nmov.u32 %r1, %ctaid.x;\n{both}st.global.u32 [%rd1], %r1;"
    with pytest.raises(
        DataRaceError, match=r"thread \(0, 0, 0\) of block \(0, 0, 0\) has written: threads of different"
    ):
        run(kernel(both), 1, "u4", (), 20001, 1)


def test_reading_what_another_block_writes_is_a_race() -> None:
    body = "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra w;\n"
    body += "ld.global.u32 %r2, [%rd1];\nret;\nw: st.global.u32 [%rd1], %r1;"
    with pytest.raises(
        DataRaceError, match=r"writes bytes that thread \(0, 0, 0\) of block \(2, 0, 0\) and other blocks"
    ):
        run(kernel(body), 1, "u4", (), 3, 1)


def test_atomic_operations_do_not_race() -> None:
    body = "ld.param.u64 %rd1, [out];\nred.global.add.u32 [%rd1], 2;"
    assert run(kernel(body), 1, "u4", (), 5, 64) == [2 * 5 * 64 - 1]
    with pytest.raises(DataRaceError):
        run(kernel(body + "\nld.global.u32 %r1, [%rd1];"), 1, "u4", (), 1, 64)


def test_races_are_looked_for_unless_told_otherwise() -> None:
    text = shared_kernel(REVERSE.format(barrier=""))
    assert (run(text, 64, "u4", block=64, detect_races=False) == np.arange(64)[::-1]).all()


def test_shared_memory_that_nobody_wrote() -> None:
    with pytest.raises(UninitializedReadError) as caught:
        run(shared_kernel("ld.shared.u32 %r2, [%rd3];\nst.global.u32 [%rd1], %r2;"), 32, "u4")
    assert str(caught.value) == (
        "kernel 'k', PTX line 14: ld.shared.u32 %r2, [%rd3]\n"
        "  thread (0, 0, 0) of block (0, 0, 0) reads shared memory that no thread of the block has written before"
    )
    body = "ld.shared.u32 %r2, [%rd3];\nst.global.u32 [%rd1], %r2;"
    assert (run(shared_kernel(body), 32, "u4", detect_uninitialized=False) == 0xFFFFFFFF).all()


def test_index_out_of_bounds() -> None:
    """The last thread of the second block is beyond the array."""
    body = "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\nmad.lo.u32 %r3, %r1, 32, %r2;\nld.param.u64 %rd1, [out];\n"
    body += "mad.wide.u32 %rd2, %r3, 4, %rd1;\nst.global.u32 [%rd2], %r3;"
    device = Emulator()
    out = device.alloc(63 * 4)
    with pytest.raises(OutOfBoundsError) as caught:
        device.load_module(kernel(body)).launch("k", (2, 1, 1), (32, 1, 1), 0, [out])
    assert str(caught.value) == (
        "kernel 'k', PTX line 12: st.global.u32 [%rd2], %r3\n"
        f"  thread (31, 0, 0) of block (1, 0, 0) writes 4 bytes at {out + 252:#x}: no memory there; it is 0 bytes "
        f"after the end of the allocation of 252 bytes at {out:#x}"
    )


def test_access_that_reaches_over_the_end() -> None:
    with pytest.raises(OutOfBoundsError, match="it is 4 bytes before the end of the allocation of 12 bytes"):
        run(kernel("ld.param.u64 %rd1, [out];\nld.global.v2.u32 {%r1, %r2}, [%rd1+8];"), 3, "u4", (), 1, 1)


def test_use_after_free() -> None:
    device = Emulator()
    out = device.alloc(16)
    module = device.load_module(kernel("ld.param.u64 %rd1, [out];\nst.global.u32 [%rd1+4], 1;"))
    device.free(out)
    with pytest.raises(OutOfBoundsError) as caught:
        module.launch("k", (1, 1, 1), (1, 1, 1), 0, [out])
    assert str(caught.value).endswith(f"no memory there; it was freed: the allocation of 16 bytes at {out:#x}")


def test_null_pointer() -> None:
    device = Emulator()
    module = device.load_module(kernel("ld.param.u64 %rd1, [out];\nst.u32 [%rd1], 1;"))
    with pytest.raises(OutOfBoundsError, match="writes 4 bytes at 0x0: no memory there; there are no allocations"):
        module.launch("k", (1, 1, 1), (1, 1, 1), 0, [0])


def test_misaligned_access() -> None:
    with pytest.raises(MisalignedAccessError) as caught:
        run(kernel("ld.param.u64 %rd1, [out];\nld.global.v2.u32 {%r1, %r2}, [%rd1+4];"), 8, "u4", (), 1, 1)
    assert "reads 8 bytes at 0x" in str(caught.value)
    assert str(caught.value).endswith(": the address must be a multiple of 8")


def test_one_variable_overruns_into_another() -> None:
    before = ".shared .align 4 .b8 first[16];\n.shared .align 4 .b8 second[16];\n"
    with pytest.raises(OutOfBoundsError) as caught:
        run(kernel("mov.u64 %rd1, first;\nst.shared.u32 [%rd1+16], 1;", before=before), 1, "u4", (), 1, 1)
    assert str(caught.value).endswith("no shared variable there; it is 0 bytes after the end of 'first'")


def test_write_to_constant_memory() -> None:
    before = ".const .align 4 .b32 table[2] = {5, 6};\n"
    body = "mov.u64 %rd1, table;\ncvta.const.u64 %rd1, %rd1;\n"
    read = f"{body}ld.u32 %r1, [%rd1+4];\nld.param.u64 %rd2, [out];\nst.global.u32 [%rd2], %r1;"
    assert run(kernel(read, before=before), 1, "u4", (), 1, 1) == [6]
    with pytest.raises(ReadOnlyError, match="const memory is read-only for kernels"):
        run(kernel(f"{body}st.u32 [%rd1], 1;", before=before), 1, "u4", (), 1, 1)


def test_barrier_that_some_threads_never_reach() -> None:
    text = shared_kernel("setp.ge.u32 %p1, %r1, 48;\n@%p1 ret;\nbar.sync 0;")
    with pytest.raises(DivergentBarrierError) as caught:
        run(text, 64, "u4", block=64)
    assert str(caught.value) == (
        "kernel 'k', PTX line 16: bar.sync 0\n"
        "  thread (0, 0, 0) of block (0, 0, 0) waits at a barrier, but thread (48, 0, 0) of the same block has exited; "
        "make all threads of the block reach the same barrier"
    )


def test_barriers_on_two_sides_of_a_branch() -> None:
    text = shared_kernel("setp.ge.u32 %p1, %r1, 7;\n@%p1 bra b;\nbar.sync 0;\nbra c;\nb: bar.sync 0;\nc:")
    with pytest.raises(
        DivergentBarrierError, match=r"thread \(7, 0, 0\) of the same block waits at the barrier of line 18;"
    ):
        run(text, 64, "u4", block=64)


def test_whole_blocks_may_leave_before_a_barrier() -> None:
    body = "mov.u32 %r2, %ctaid.x;\nsetp.eq.u32 %p1, %r2, 1;\n@%p1 ret;\nbar.sync 0;\nst.global.u32 [%rd1], %r2;"
    assert run(shared_kernel(body), 64, "u4", (), 2, 64)[5] == 0


def test_shuffle_without_a_named_lane() -> None:
    """Half of the warp goes past; it waits at a barrier while the others wait for it."""
    text = shared_kernel(
        "setp.ge.u32 %p1, %r1, 16;\n@%p1 bra b;\nshfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\nb: bar.sync 0;"
    )
    with pytest.raises(DivergentBarrierError) as caught:
        run(text, 32, "u4")
    assert str(caught.value) == (
        "kernel 'k', PTX line 16: shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1\n"
        "  thread (0, 0, 0) of block (0, 0, 0) waits for lane 16 of its warp, which its member mask names, but thread "
        "(16, 0, 0) waits at the barrier of line 17; make all named lanes execute the same instruction"
    )


def test_shuffle_reads_a_lane_that_has_exited() -> None:
    text = shared_kernel("setp.ge.u32 %p1, %r1, 16;\n@%p1 ret;\nshfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;")
    with pytest.raises(InvalidShuffleError) as caught:
        run(text, 32, "u4")
    assert str(caught.value).endswith("reads the register of lane 16, which takes no part; its value is undefined")
    with pytest.raises(
        InvalidShuffleError, match=r"thread \(16, 0, 0\) of block \(0, 0, 0\) is not in the member mask"
    ):
        run(shared_kernel("shfl.sync.bfly.b32 %r2, %r1, 1, 31, 0xffff;"), 32, "u4")


def test_division_by_zero() -> None:
    with pytest.raises(UndefinedResultError) as caught:
        run(shared_kernel("div.u32 %r2, 7, %r1;"), 32, "u4")
    assert str(caught.value).endswith(
        "thread (0, 0, 0) of block (0, 0, 0) takes an integer division by zero, whose result PTX leaves to the "
        "machine; test the divisor before"
    )
    run(shared_kernel("setp.eq.u32 %p1, %r1, 0;\n@%p1 bra done;\ndiv.u32 %r2, 7, %r1;\ndone:"), 32, "u4")


def test_endless_loop() -> None:
    with pytest.raises(StepLimitError) as caught:
        run(kernel("again: add.u32 %r1, %r1, 1;\nbra again;"), 1, "u4", (), 1, 1, max_steps=1000)
    assert str(caught.value) == (
        "kernel 'k', PTX line 7: add.u32 %r1, %r1, 1\n"
        "  thread (0, 0, 0) of block (0, 0, 0) still runs after 1000 steps; if the loop does end, make the emulator "
        "with more max_steps"
    )


def test_trap() -> None:
    with pytest.raises(TrapError, match=r"thread \(5, 0, 0\) of block \(0, 0, 0\) executed trap"):
        run(shared_kernel("setp.ne.u32 %p1, %r1, 5;\n@%p1 ret;\ntrap;"), 32, "u4")


@pytest.mark.parametrize("opcode", ["add", "sub", "mul"])
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_operation_without_rounding_is_refused_when_loaded(opcode: str, type: str) -> None:
    register = {"f32": "%r", "f64": "%rd"}[type]
    statement = f"{opcode}.{type} {register}1, {register}2, {register}3"
    with pytest.raises(UnroundedOperationError) as caught:
        Emulator().load_module(kernel(f"{statement};"))
    assert str(caught.value) == (
        f"PTX line 7: {statement}: {opcode}.{type} has no rounding mode, so ptxas may fuse it with its neighbours; "
        f"write {opcode}.rn.{type}"
    )


REFUSED = [
    "ex2.approx.f32 %r1, %r2",
    "div.full.f32 %r1, %r2, %r3",
    "sqrt.approx.f32 %r1, %r2",
    "mad.f32 %r1, %r2, %r3, %r4",
    "fma.rz.f32 %r1, %r2, %r3, %r4",
    "add.rz.f32 %r1, %r2, %r3",
    "add.cc.u32 %r1, %r2, %r3",
    "cvt.rna.tf32.f32 %r1, %r2",
    "bar.sync 0, 64",
    "wmma.load.a.sync %r1, %r2",
    "setp.lo.s32 %p1, %r1, %r2",
    "atom.global.min.f32 %r1, [%rd1], %r2",
]


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_not_covered_is_refused_by_name_when_loaded(statement: str) -> None:
    with pytest.raises(UnsupportedPtxError) as caught:
        Emulator().load_module(kernel(f"{statement};"))
    assert str(caught.value).startswith(f"PTX line 7: {statement}: the emulator does not cover ")
    assert str(caught.value).endswith("; runtime/cuda/README.md lists what it covers")


def test_special_register_that_is_not_covered() -> None:
    with pytest.raises(UnsupportedPtxError, match="does not cover the special register %clock;"):
        Emulator().load_module(kernel("mov.u32 %r1, %clock;"))


def test_fault_names_thread_and_block_of_a_grid_in_three_dimensions() -> None:
    body = "mov.u32 %r1, %tid.y;\nmov.u32 %r2, %ctaid.z;\nsetp.ne.u32 %p1, %r1, 2;\n@%p1 ret;\n"
    body += "setp.ne.u32 %p1, %r2, 1;\n@%p1 ret;\ntrap;"
    with pytest.raises(TrapError) as caught:
        Emulator().load_module(kernel(body, "")).launch("k", (2, 1, 2), (4, 3, 2), 0, [])
    assert caught.value.fault.block == (0, 0, 1)
    assert caught.value.fault.thread == (0, 2, 0)


def test_memory_keeps_what_was_written_before_the_fault() -> None:
    device = Emulator()
    out = device.alloc(4)
    module = device.load_module(kernel("ld.param.u64 %rd1, [out];\nst.global.u32 [%rd1], 7;\ntrap;"))
    with pytest.raises(TrapError):
        module.launch("k", (1, 1, 1), (1, 1, 1), 0, [out])
    result: Any = np.zeros(1, np.uint32)
    device.copy_to_host(result, out)
    assert result == [7]
