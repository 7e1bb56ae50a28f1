"""Compiling for a GPU: what a kernel's record says, faults of LLVM, ptxas, symbols."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from halfulp import ops
from halfulp.compiler import CompileError, CompileOptions, DeviceRef, DType, Graph, TensorType
from halfulp.compiler.artifact import BufferRole
from halfulp.compiler.codegen import ptx, ptxas
from halfulp.compiler.codegen.ptx import ARCHITECTURES, PtxTarget, compile_to_ptx, ptx_target
from halfulp.compiler.codegen.ptxas import KernelUsage, assemble, disassemble
from halfulp.compiler.compile_ptx import compile_graph_to_ptx
from halfulp.compiler.passes.tile_to_gpu.symbols import symbols_of
from halfulp.compiler.ptx_artifact import NO_FAILURE, PtxKernel, PtxParameter

GPU = DeviceRef.GPU(0)
KERNEL = """define ptx_kernel void @kernel_{name}(ptr addrspace(1) %x) {{
  %a = load float, ptr addrspace(1) %x
  %b = call float @llvm.{function}.f32(float %a)
  store float %b, ptr addrspace(1) %x
  ret void
}}
declare float @llvm.{function}.f32(float)
"""


def softmax() -> Graph:
    return Graph("rows", ops.softmax, [TensorType(DType.float32, ["rows", 100], GPU)])


def test_record_says_what_the_launcher_must_know() -> None:
    compiled = compile_graph_to_ptx(softmax(), target="sm_80")
    (kernel,) = compiled.kernels
    assert kernel == compiled.kernel(kernel.name)
    assert kernel.symbol == f"kernel_{kernel.name}"
    assert f".visible .entry {kernel.symbol}(" in compiled.ptx
    assert ".target sm_80" in compiled.ptx
    assert (kernel.threads, kernel.scratch_bytes, kernel.checks) == (128, 0, 0)
    assert kernel.grid_rank == kernel.split == 1
    kinds = " ".join(parameter.kind for parameter in kernel.parameters)
    assert kinds == "status scratch grid pointer extent extent pointer extent extent scalar"
    assert compiled.ptx.count(".param .u64") == len(kernel.parameters)
    assert [spec.role for spec in compiled.buffers] == [BufferRole.INPUT, BufferRole.OUTPUT]
    assert "tile.launch" in compiled.entry
    assert compiled.steps == (kernel.name,)


def test_shared_bytes_are_those_of_ptxas() -> None:
    compiled = compile_graph_to_ptx(softmax())
    _, usage = assemble(compiled.ptx, compiled.target)
    assert [kernel.shared_bytes for kernel in compiled.kernels] == [kernel.shared_bytes for kernel in usage]


@pytest.mark.parametrize("target", ARCHITECTURES)
def test_every_target_is_accepted_by_ptxas(target: str) -> None:
    compiled = compile_graph_to_ptx(softmax(), target=target)
    code, usage = assemble(compiled.ptx, target)
    assert code.startswith(b"\x7fELF")
    assert [kernel.kernel for kernel in usage] == [kernel.symbol for kernel in compiled.kernels]


def test_progress_is_told_of_each_step() -> None:
    told: list[tuple[int, int, str]] = []
    compile_graph_to_ptx(softmax(), progress=lambda *step: told.append(step))
    assert [done for done, _, _ in told] == list(range(1, len(told) + 1))
    assert told[-1][0] == told[-1][1]
    assert told[-1][2] == "emit-ptx"


KERNEL_RECORD = PtxKernel("k", "kernel_k", 64, 0, 0, 3, 1, (PtxParameter("status", "i64"),), 2)


def test_tasks_are_points_of_the_leading_parallel_axes() -> None:
    assert KERNEL_RECORD.tasks([5, 3, 2]) == 5
    assert KERNEL_RECORD.tasks([5, 0, 2]) == 0
    assert replace(KERNEL_RECORD, split=0).tasks([5, 3, 2]) == 1
    assert replace(KERNEL_RECORD, split=0, grid_rank=0).tasks([]) == 1


def test_failure_says_where_its_values_are() -> None:
    assert KERNEL_RECORD.status_words(4) == 17
    assert replace(KERNEL_RECORD, checks=0).status_words(4) == 0
    assert KERNEL_RECORD.failure(NO_FAILURE, [5, 3, 2], 4) is None
    assert KERNEL_RECORD.failure(-1, [5, 3, 2], 4) is None  # the same word, signed
    # program 29 is of task 4, which block 0 of 4 takes
    assert KERNEL_RECORD.failure(29 << 15 | 1, [5, 3, 2], 4) == (29, 1, 1)
    assert KERNEL_RECORD.failure(13 << 15, [5, 3, 2], 4) == (13, 0, 9)


def test_symbols_are_plain_and_no_two_alike() -> None:
    assert symbols_of(["a.b", "a_b", "a-b", "add", "größe"]) == {
        "a.b": "kernel_a_b",
        "a_b": "kernel_a_b_2",
        "a-b": "kernel_a_b_3",
        "add": "kernel_add",
        "größe": "kernel_gr__e",
    }


def test_unknown_target_is_refused() -> None:
    with pytest.raises(CompileError) as caught:
        ptx_target("sm_70")
    assert caught.value.message == ("target 'sm_70' is none that halfulp compiles for; use 'sm_80', 'sm_90', 'sm_100'")


def test_what_ends_llvm_ends_the_child_only_and_names_the_kernel() -> None:
    target = PtxTarget("sm_90")
    with pytest.raises(CompileError) as caught:
        compile_to_ptx(KERNEL.format(name="bad", function="exp"), target)
    assert caught.value.message == (
        "LLVM cannot make PTX of the kernel 'kernel_bad': error: no libcall available for fexp"
    )
    assert "sqrt.rn.f32" in compile_to_ptx(KERNEL.format(name="good", function="sqrt"), target)


def test_of_several_kernels_the_one_that_llvm_dies_over_is_named() -> None:
    good, bad = (KERNEL.format(name=name, function=name).split("declare") for name in ("sqrt", "exp"))
    text = "".join([good[0], bad[0], "declare", good[1], "declare", bad[1]])
    with pytest.raises(CompileError) as caught:
        compile_to_ptx(text, PtxTarget("sm_80"))
    assert caught.value.message == (
        "LLVM cannot make PTX of the kernel 'kernel_exp': error: no libcall available for fexp"
    )


def test_text_that_llvm_rejects_is_an_error() -> None:
    with pytest.raises(CompileError) as caught:
        compile_to_ptx("define ptx_kernel void @k() { ret i32 }", PtxTarget("sm_90"))
    assert caught.value.message.startswith("LLVM rejects the module: ")
    assert "ret i32" in caught.value.message


def test_child_ends_with_its_parent() -> None:
    program = (
        "from halfulp.compiler.codegen import ptx\n"
        f"ptx.compile_to_ptx({KERNEL.format(name='good', function='sqrt')!r}, ptx.PtxTarget('sm_90'))\n"
        "print(ptx._children[0].process.pid)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_a_fork_makes_its_own_child_and_ends_without_its_parent() -> None:
    program = (
        "import os\n"
        "from halfulp.compiler.codegen import ptx\n"
        f"text, target = {KERNEL.format(name='good', function='sqrt')!r}, ptx.PtxTarget('sm_90')\n"
        "expected = ptx.compile_to_ptx(text, target)\n"
        "with ptx._lock:\n"
        "    forked = os.fork()\n"
        "if forked == 0:\n"
        "    assert ptx.compile_to_ptx(text, target) == expected\n"
        "    raise SystemExit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]))\n"
        "print(ptx.compile_to_ptx(text, target) == expected)"
    )
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("7\nTrue\n", "")


def test_an_answer_that_is_cut_short_is_none() -> None:
    whole = io.BytesIO()
    ptx._write(whole, ".version 7.8")
    assert ptx._read(io.BytesIO(whole.getvalue())) == ".version 7.8"
    assert ptx._read(io.BytesIO(whole.getvalue()[:-1])) is None


def test_an_interrupted_text_takes_its_child_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text, target = KERNEL.format(name="good", function="sqrt"), PtxTarget("sm_90")
    compile_to_ptx(text, target)
    (child,) = ptx._children

    def interrupted(stream: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ptx, "_read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compile_to_ptx(KERNEL.format(name="other", function="sqrt"), target)
    assert child.process.returncode is not None
    assert "kernel_good" in compile_to_ptx(text, target)


def test_ptxas_errors_name_the_line() -> None:
    with pytest.raises(CompileError) as caught:
        assemble(".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k() { nonsense; }\n", "sm_90")
    assert caught.value.message.startswith("ptxas rejects the code: ")
    assert "line 4" in caught.value.message


def test_usage_is_read_from_what_ptxas_says() -> None:
    text = compile_to_ptx(KERNEL.format(name="good", function="sqrt"), PtxTarget("sm_90"))
    (usage,) = assemble(text, "sm_90")[1]
    assert usage == KernelUsage("kernel_good", usage.registers, 0, 0, 0, 0)
    assert str(usage) == (
        f"kernel_good: {usage.registers} registers, 0 bytes of shared memory, 0 of stack, 0 of spill stores,"
        " 0 of spill loads"
    )
    assert usage.registers > 0
    assert "MUFU.RSQ" in disassemble(text, "sm_90")


def test_missing_tool_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(ptxas, "find_spec", lambda name: None)
    ptxas.find_tool.cache_clear()
    try:
        with pytest.raises(CompileError) as caught:
            ptxas.find_tool("ptxas")
    finally:
        ptxas.find_tool.cache_clear()
    assert caught.value.message == (
        "ptxas is not installed; pip install nvidia-cuda-nvcc, or put a CUDA toolkit on the path"
    )


@pytest.mark.parametrize(("mode", "fused"), [("off", False), ("on", False), ("fast", True)])
def test_contraction_is_as_asked_for(mode: str, fused: bool) -> None:
    graph = Graph("chain", lambda x, y: x * y + x, [TensorType(DType.float32, [100], GPU)] * 2)
    text = compile_graph_to_ptx(graph, CompileOptions(fp_contract=mode)).ptx  # type: ignore[arg-type]
    assert ("fma.rn.f32" in text) == fused
    assert ("mul.rn.f32" in text) == (not fused)
    assert "mul.f32" not in text
    assert "add.f32" not in text
