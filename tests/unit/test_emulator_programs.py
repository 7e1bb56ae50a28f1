"""Whole PTX programs on the emulator: divergence, loops, calls, warps, atomics, state spaces; and LLVM's own PTX."""

from __future__ import annotations

import re

import numpy as np
import pytest
from ptx_kernels import HEADER, download, kernel, run, upload

from halfulp.compiler.codegen.ptx import compile_to_ptx, ptx_target
from halfulp.runtime.cuda.emulator import Emulator, EmulatorError, PtxSyntaxError, UnsupportedPtxError

# %r1 is the thread, %rd1 its place in the output of one word a thread
THREAD = "mov.u32 %r1, %tid.x;\nld.param.u64 %rd1, [out];\nmad.wide.u32 %rd1, %r1, 4, %rd1;\n"
STORE = "\nst.global.u32 [%rd1], %r2;"


def per_thread(body: str, count: int = 32, before: str = "") -> list[int]:
    """What each thread of a block leaves in %r2."""
    result: list[int] = run(kernel(THREAD + body + STORE, before=before), count, "u4", block=count).tolist()
    return result


def test_nested_branches_meet_again() -> None:
    body = """
    mov.u32 %r2, 0;
    and.b32 %r3, %r1, 1;
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra even;
    setp.lt.u32 %p2, %r1, 16;
    @%p2 add.u32 %r2, %r2, 1;
    @!%p2 add.u32 %r2, %r2, 2;
    bra.uni join;
    even: mov.u32 %r2, 100;
    join: shfl.sync.idx.b32 %r4, %r2, 0, 31, -1;
    add.u32 %r2, %r2, %r4;"""
    assert per_thread(body) == [200 if t % 2 == 0 else 101 if t < 16 else 102 for t in range(32)]


def test_loops_of_different_lengths() -> None:
    body = "mov.u32 %r2, 0;\nmov.u32 %r3, 0;\nloop: add.u32 %r2, %r2, %r3;\nadd.u32 %r3, %r3, 1;\n"
    body += "setp.le.u32 %p1, %r3, %r1;\n@%p1 bra loop;"
    assert per_thread(body, 100) == [t * (t + 1) // 2 for t in range(100)]


def test_uniform_values_become_different_in_a_branch() -> None:
    body = "mov.u32 %r2, 5;\nmov.u32 %r3, %r2;\nsetp.eq.u32 %p1, %r1, 3;\n@%p1 mov.u32 %r2, 9;\nadd.u32 %r2, %r2, %r3;"
    assert per_thread(body) == [14 if t == 3 else 10 for t in range(32)]


def test_exited_threads_do_not_hold_up_the_rest() -> None:
    body = "setp.ge.u32 %p1, %r1, 20;\n@%p1 exit;\nmov.u32 %r2, 1;\nshfl.sync.down.b32 %r3|%p2, %r1, 1, 31, 0xfffff;"
    with pytest.raises(Exception, match="reads the register of lane 20, which takes no part"):
        per_thread(body)
    body = body.replace(", 31, 0xfffff", ", 0x1c03, 0xfffff")  # segments of four lanes
    assert per_thread(body + "\nselp.u32 %r2, %r3, 77, %p2;")[:20] == [t + 1 if t % 4 < 3 else 77 for t in range(20)]


@pytest.mark.parametrize(
    ("mode", "clamp", "expected"),
    [
        ("up", 0, [t - 3 if t >= 3 else t for t in range(32)]),
        ("down", 31, [t + 3 if t < 29 else t for t in range(32)]),
        ("bfly", 31, [t ^ 3 for t in range(32)]),
        ("idx", 31, [3] * 32),
        ("idx", 0x1807, [t // 8 * 8 + 3 for t in range(32)]),
        ("bfly", 0x1C03, [t ^ 3 for t in range(32)]),
    ],
)
def test_shuffles(mode: str, clamp: int, expected: list[int]) -> None:
    assert per_thread(f"shfl.sync.{mode}.b32 %r2|%p1, %r1, 3, {clamp}, -1;") == expected
    in_range = per_thread(f"shfl.sync.{mode}.b32 %r3|%p1, %r1, 3, {clamp}, -1;\nselp.u32 %r2, 1, 0, %p1;")
    assert in_range == [int({"up": t >= 3, "down": t < 29}.get(mode, True)) for t in range(32)]


def test_shuffle_of_lanes_that_come_one_after_the_other() -> None:
    """Even and odd lanes come from different sides; the first to arrive wait."""
    body = "and.b32 %r3, %r1, 1;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra meet;\nadd.u32 %r1, %r1, 100;\nmeet:\n"
    body += "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;"
    assert per_thread(body) == [t + 101 if t % 2 == 0 else t - 1 for t in range(32)]


def test_votes() -> None:
    body = "setp.lt.u32 %p1, %r1, {limit};\nvote.sync.{mode}.pred %p2, %p1, -1;\nselp.u32 %r2, 1, 0, %p2;"
    expected = {("any", 0): 0, ("any", 1): 1, ("all", 31): 0, ("all", 32): 1, ("uni", 0): 1, ("uni", 5): 0}
    for (mode, limit), value in expected.items():
        assert per_thread(body.format(limit=limit, mode=mode)) == [value] * 32
    assert per_thread("setp.lt.u32 %p1, %r1, 5;\nvote.sync.ballot.b32 %r2, !%p1, -1;") == [0xFFFFFFE0] * 32
    assert per_thread("activemask.b32 %r2;", 20) == [0xFFFFF] * 20


def test_jump_table() -> None:
    body = "and.b32 %r3, %r1, 3;\ntable: .branchtargets a, b, c, a;\nbrx.idx %r3, table;\n"
    body += "a: mov.u32 %r2, 1; bra d;\nb: mov.u32 %r2, 2; bra d;\nc: mov.u32 %r2, 3;\nd:"
    assert per_thread(body) == [[1, 2, 3, 1][t % 4] for t in range(32)]


FUNCTION = """.func (.param .b32 result) twice_or_more(.param .b32 first, .param .b64 second)
{
.reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p<2>;
ld.param.b32 %r1, [first];
ld.param.b64 %rd1, [second];
setp.gt.u32 %p1, %r1, 7;
@%p1 bra more;
add.u32 %r2, %r1, %r1;
st.param.b32 [result], %r2;
ret;
more: cvt.u32.u64 %r3, %rd1;
st.param.b32 [result], %r3;
ret;
}
"""


def test_calls_have_registers_of_their_own() -> None:
    call = """{{
    .param .b32 p0; .param .b64 p1; .param .b32 r0;
    st.param.b32 [p0], {argument};
    st.param.b64 [p1], 55;
    call.uni (r0), twice_or_more, (p0, p1);
    ld.param.b32 {result}, [r0];
    }}
    """
    body = call.format(argument="%r1", result="%r3") + call.format(argument="%r3", result="%r2")
    body += "add.u32 %r2, %r2, %r1;"  # %r1 is still the thread

    def function(x: int) -> int:
        return 55 if x > 7 else 2 * x

    assert per_thread(body, before=FUNCTION) == [function(function(t)) + t for t in range(32)]
    recursive = FUNCTION.replace("ret;\nmore:", "call (result), twice_or_more, (first, second);\nmore:")
    with pytest.raises(UnsupportedPtxError, match="recursion: twice_or_more -> twice_or_more;"):
        per_thread(body, before=recursive)
    with pytest.raises(UnsupportedPtxError, match="a call of 'vprintf', which the module does not define;"):
        per_thread("call.uni vprintf;")


def test_atomic_operations() -> None:
    body = "ld.param.u64 %rd2, [out];\natom.global.add.u32 %r2, [%rd2], 3;"
    old = sorted(run(kernel("ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\n" + body), 1, "u4", (), 1, 32).tolist())
    assert old == [3 * 32 - 1]
    shared = ".shared .align 8 .b8 word[8];\n"
    start = "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra go;\nst.shared.u32 [word], 10;\ngo: bar.sync 0;\n"
    assert per_thread(start + "atom.shared.add.u32 %r2, [word], 2;", before=shared) == [10 + 2 * t for t in range(32)]
    taken = per_thread(start + "atom.shared.cas.b32 %r2, [word], 10, 99;", before=shared)
    assert taken == [10] + [99] * 31
    assert per_thread(start + "atom.shared.exch.b32 %r2, [word], %r1;", before=shared) == [10, *range(31)]
    largest = start + "red.shared.max.u32 [word], %r1;\nbar.sync 0;\nld.shared.u32 %r2, [word];"
    assert per_thread(largest, before=shared) == [31] * 32
    floats = start + "setp.eq.u32 %p2, %r1, 0;\n@%p2 st.shared.b32 [word], 0f3F800000;\nbar.sync 0;\n"
    floats += "atom.shared.add.f32 %r2, [word], 0f40000000;"
    assert np.array(per_thread(floats, before=shared), np.uint32).view(np.float32).tolist() == [
        1.0 + 2 * t for t in range(32)
    ]


def test_vectors_and_extension() -> None:
    device = Emulator()
    data = upload(device, np.array([0x80, 0x7F, 0xFF, 1, 2, 3, 4, 5], np.uint8))
    body = """
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [in];
    ld.global.v4.s8 {%r1, %r2, %r3, _}, [%rd2];
    ld.global.nc.L1::no_allocate.u8 %rd3, [%rd2+2];
    st.global.v2.b32 [%rd1], {%r1, %r2};
    st.global.b32 [%rd1+8], %r3;
    st.global.b16 [%rd1+12], %rd3;
    st.global.b8 [%rd1+14], 300;
    """
    out = device.alloc(16)
    module = device.load_module(kernel(body, ".param .u64 .ptr .global .align 1 out, .param .u64 in"))
    module.launch("k", (1, 1, 1), (1, 1, 1), 0, [out, data])
    assert download(device, out, 3, np.dtype("i4")).tolist() == [-128, 127, -1]
    assert download(device, out + 12, 4, np.dtype("u1")).tolist() == [255, 0, 300 % 256, 255]


def test_generic_addresses_in_several_spaces_at_once() -> None:
    """Even threads read shared memory, odd ones global memory, by the same instruction."""
    before = ".shared .align 4 .b8 tile[128];\n.global .align 4 .b32 numbers[2] = {40, 41};\n"
    before += ".const .align 4 .b32 c[1] = {7};\n"
    body = """
    mov.u64 %rd2, tile;
    mad.wide.u32 %rd2, %r1, 4, %rd2;
    st.shared.u32 [%rd2], %r1;
    cvta.shared.u64 %rd2, %rd2;
    mov.u64 %rd3, numbers;
    cvta.const.u64 %rd4, c;
    and.b32 %r3, %r1, 1;
    setp.eq.u32 %p1, %r3, 0;
    selp.b64 %rd5, %rd2, %rd3, %p1;
    setp.eq.u32 %p2, %r1, 31;
    selp.b64 %rd5, %rd4, %rd5, %p2;
    ld.u32 %r2, [%rd5];
    isspacep.shared %p3, %rd5;
    @%p3 add.u32 %r2, %r2, 1000;
    """
    expected = [1000 + t if t % 2 == 0 else 7 if t == 31 else 40 for t in range(32)]
    assert per_thread(body, before=before) == expected


def test_local_memory_belongs_to_the_thread() -> None:
    body = ".local .align 8 .b8 depot[16];\nmov.u64 %rd2, depot;\ncvta.local.u64 %rd3, %rd2;\nst.u32 [%rd3+4], %r1;\n"
    body += "ld.local.u32 %r2, [%rd2+4];"
    assert per_thread(body, 70) == list(range(70))


def test_shared_memory_of_the_launch() -> None:
    before = ".extern .shared .align 16 .b8 dynamic[];\n.shared .align 4 .b8 fixed[4];\n"
    body = THREAD + "mov.u64 %rd2, dynamic;\nmad.wide.u32 %rd2, %r1, 4, %rd2;\nst.shared.u32 [%rd2], %r1;\n"
    body += "ld.shared.u32 %r2, [%rd2];\nmov.u32 %r3, %dynamic_smem_size;\nadd.u32 %r2, %r2, %r3;" + STORE
    device = Emulator()
    module = device.load_module(kernel(body, before=before))
    out = device.alloc(4 * 96)
    for threads in (32, 96):
        module.launch("k", (1, 1, 1), (threads, 1, 1), 4 * threads, [out])
        expected = [t + 4 * threads for t in range(threads)]
        assert download(device, out, threads, np.dtype("u4")).tolist() == expected
    with pytest.raises(Exception, match="it is 0 bytes after the end of 'dynamic'"):
        module.launch("k", (1, 1, 1), (33, 1, 1), 128, [out])


def test_parameters_of_every_kind() -> None:
    parameters = ".param .u64 out, .param .f32 f, .param .align 8 .b8 s[16], .param .u8 b, .param .s16 h, .param .f64 d"
    body = """
    ld.param.u64 %rd1, [out];
    ld.param.f32 %r1, [f];
    ld.param.v2.b64 {%rd2, %rd3}, [s];
    ld.param.u8 %rs1, [b];
    ld.param.s16 %r4, [h];
    ld.param.f64 %rd5, [d];
    st.global.b32 [%rd1], %r1;
    st.global.b8 [%rd1+4], %rs1;
    st.global.b32 [%rd1+8], %r4;
    st.global.b64 [%rd1+16], %rd3;
    st.global.b64 [%rd1+24], %rd5;
    """
    device = Emulator()
    out = device.alloc(32)
    module = device.load_module(kernel(body, parameters))
    struct = np.array([1, -2], np.int64).tobytes()
    module.launch("k", (1, 1, 1), (1, 1, 1), 0, [out, 1.5, struct, 200, np.int16(-3), 0.1])
    assert download(device, out, 1, np.dtype("f4")) == [1.5]
    assert download(device, out + 4, 1, np.dtype("u1")) == [200]
    assert download(device, out + 8, 1, np.dtype("i4")) == [-3]
    assert download(device, out + 16, 1, np.dtype("i8")) == [-2]
    assert download(device, out + 24, 1, np.dtype("f8")) == [0.1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mov.u32 %r1", "PTX line 7: mov.u32 %r1: mov.u32 does not take 1 operands"),
        ("mov.u32 %r1, %r99;", "PTX line 7: mov.u32 %r1, %r99: '%r99' is not declared"),
        ("mov.u32 %r1, %rd2;", "PTX line 7: mov.u32 %r1, %rd2: an operand has 64 bits where .u32 needs 32"),
        ("mov.u32 %r1, [;", "PTX line 7: mov.u32 %r1, [: '[' is no address [base+offset]"),
        (".reg .b32 %q<2> %w;", "PTX line 7: .reg .b32 %q<2> %w: expected .reg, a type and names"),
        ("bra nowhere;", "there is no label 'nowhere' to jump to"),
        ("a: a: ret;", "the label 'a' stands twice in one function"),
        ("%r1 = 4;", "PTX line 7: %r1 = 4: expected an instruction"),
    ],
)
def test_text_that_is_no_ptx(text: str, message: str) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        Emulator().load_module(kernel(text if text.endswith(";") else text + ";"))
    assert str(caught.value) == message


def test_module_that_is_no_ptx() -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        Emulator().load_module(HEADER + "int main() {}")
    assert str(caught.value) == "PTX line 4: int main() {}: expected a directive"
    with pytest.raises(PtxSyntaxError) as caught:
        Emulator().load_module(HEADER + ".visible .entry k() { ret;")
    assert str(caught.value) == "PTX line 4: end of text: expected '}'"
    with pytest.raises(UnsupportedPtxError) as wide:
        Emulator().load_module(kernel(".reg .b128 %q<2>;"))
    assert (
        str(wide.value) == "PTX line 7: .reg .b128 %q<2>: the emulator has registers of up to 64 bits, without vectors"
    )


def test_damaged_text_is_refused_or_runs_but_never_crashes() -> None:
    """Words of a kernel are left out, doubled or moved. Whatever is left is wrong PTX, a fault, or runs."""
    body = "mov.u32 %r2, 1;\n{ .param .b32 p0; .param .b64 p1; .param .b32 r0; st.param.b32 [p0], %r1;\n"
    body += "call.uni (r0), twice_or_more, (p0, p1); ld.param.b32 %r2, [r0]; }\nbar.sync 0;"
    words = re.split(r"(\s+|[,;{}()\[\]])", kernel(THREAD + body + STORE, before=FUNCTION + ".shared .b32 s[4];\n"))
    generator = np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        damaged = list(words)
        at, other = generator.integers(0, len(words), 2)
        damaged[at] = "" if generator.random() < 0.5 else words[other]
        try:
            run("".join(damaged), 32, "u4", max_steps=1000)
        except EmulatorError:
            refused += 1
    assert 100 < refused < 400


SOFTMAX_SUM = r"""
target triple = "nvptx64-nvidia-cuda"
@tile = internal addrspace(3) global [64 x float] undef, align 16
@weights = internal addrspace(4) constant [4 x float] [float 1.0, float 0.5, float 0.25, float 0.125]
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.maximum.f32(float, float)
declare float @llvm.sqrt.f32(float)

define internal float @scaled(float %x, i32 %i) noinline {
  %low = and i32 %i, 3
  %p = getelementptr [4 x float], ptr addrspace(4) @weights, i32 0, i32 %low
  %w = load float, ptr addrspace(4) %p
  %s = fmul float %x, %w
  ret float %s
}

; out[b] = the sum of sqrt(max(x, 0)) * weight over the 64 elements of row b, in a halving tree
define ptx_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %row = mul i32 %b, 64
  %at = add i32 %row, %t
  %p = getelementptr float, ptr addrspace(1) %in, i32 %at
  %x = load float, ptr addrspace(1) %p
  %positive = call float @llvm.maximum.f32(float %x, float 0.0)
  %root = call float @llvm.sqrt.f32(float %positive)
  %s = call float @scaled(float %root, i32 %t)
  %mine = getelementptr [64 x float], ptr addrspace(3) @tile, i32 0, i32 %t
  store float %s, ptr addrspace(3) %mine
  br label %loop
loop:
  %width = phi i32 [ 32, %entry ], [ %half, %next ]
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %works = icmp ult i32 %t, %width
  br i1 %works, label %add, label %next
add:
  %other = add i32 %t, %width
  %theirs = getelementptr [64 x float], ptr addrspace(3) @tile, i32 0, i32 %other
  %a = load float, ptr addrspace(3) %mine
  %c = load float, ptr addrspace(3) %theirs
  %sum = fadd float %a, %c
  store float %sum, ptr addrspace(3) %mine
  br label %next
next:
  %half = lshr i32 %width, 1
  %more = icmp ne i32 %half, 0
  br i1 %more, label %loop, label %end
end:
  %first = icmp eq i32 %t, 0
  br i1 %first, label %write, label %done
write:
  %total = load float, ptr addrspace(3) @tile
  %q = getelementptr float, ptr addrspace(1) %out, i32 %b
  store float %total, ptr addrspace(1) %q
  br label %done
done:
  ret void
}
"""


@pytest.mark.parametrize("opt_level", [0, 2])
def test_llvm_makes_a_reduction(opt_level: int) -> None:
    rows = np.random.default_rng(0).standard_normal((300, 64)).astype(np.float32)
    rows[5, 7] = np.nan
    device = Emulator()
    module = device.load_module(compile_to_ptx(SOFTMAX_SUM, ptx_target("sm_90"), opt_level))
    out = device.alloc(4 * len(rows))
    module.launch("k", (len(rows), 1, 1), (64, 1, 1), 0, [out, upload(device, rows)])
    values = np.sqrt(np.maximum(rows, 0)) * np.resize(np.array([1, 0.5, 0.25, 0.125], np.float32), 64)
    while values.shape[1] > 1:
        half = values.shape[1] // 2
        values = values[:, :half] + values[:, half:]
    np.testing.assert_array_equal(download(device, out, len(rows), np.dtype("f4")), values[:, 0])


def planted(change: tuple[str, str], grid: int = 2) -> str:
    """The name of the error that a changed text of LLVM leads to."""
    text = compile_to_ptx(SOFTMAX_SUM, ptx_target("sm_90"))
    assert change[0] in text

    def load_and_launch() -> None:
        device = Emulator()
        module = device.load_module(text.replace(*change))
        rows = upload(device, np.ones((2, 64), np.float32))
        module.launch("k", (grid, 1, 1), (64, 1, 1), 0, [device.alloc(8), rows])

    with pytest.raises(EmulatorError) as caught:
        load_and_launch()
    return type(caught.value).__name__


def test_faults_planted_in_the_ptx_of_llvm() -> None:
    assert planted(("bar.sync", "// bar.sync")) == "DataRaceError"
    assert planted(("add.rn.f32", "add.f32")) == "UnroundedOperationError"
    assert planted(("%ctaid.x", "%tid.y")) == "DataRaceError"  # all blocks write the result of the first
    assert planted(("", ""), grid=3) == "OutOfBoundsError"
    one_thread_waits = ("\t@%p3 bra", "\t@%p3 ret;\n\tbar.sync 0;\n\t@%p3 bra")  # where only the first thread writes
    assert planted(one_thread_waits) == "DivergentBarrierError"
