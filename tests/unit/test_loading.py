"""Compiled code is found again in the process and on disk, under keys that nothing but the code depends on."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler import CompileOptions, DType, Graph, TensorType, Weight
from halfulp.compiler.codegen.cpu import host_target
from halfulp.compiler.registry import KernelDef, OperandSpec, OutputSpec, find_op, register_kernel, unregister_kernel
from halfulp.runtime import InferenceSession, Model
from halfulp.runtime.cache import DiskCache
from halfulp.runtime.code_text import code_text
from halfulp.runtime.fingerprint import graph_key
from halfulp.runtime.loading import forget_loaded

F32 = DType.float32
X = np.array([[1.0, 2.0, -3.0]], np.float32)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DiskCache]:
    """The caches are on, and empty."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("HALFULP_CACHE", "1")
    monkeypatch.setenv("HALFULP_CACHE_DIR", str(folder))
    forget_loaded()
    yield DiskCache(folder)
    forget_loaded()


def graph(name: str = "g") -> Graph:
    return Graph(name, lambda x: ops.exp(x) + x, [TensorType(F32, ["n", 3])])


def compile_fails(*arguments: object, **keywords: object) -> object:
    raise AssertionError("compiled again")


def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, what is not cached fails."""
    monkeypatch.setattr("halfulp.compiler.pipeline.compile_graph", compile_fails)


def result(model: Model) -> bytes:
    return model(X)[0].to_numpy().tobytes()


def test_the_process_knows_a_graph_again(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    first = InferenceSession().load(graph())
    cache.clear()
    no_compiler(monkeypatch)
    second = InferenceSession().load(graph())
    assert result(first) == result(second)


def test_the_disk_knows_a_graph_again(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = result(InferenceSession().load(graph()))
    forget_loaded()
    no_compiler(monkeypatch)
    assert result(InferenceSession().load(graph())) == expected


def test_another_process_uses_the_disk(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = result(InferenceSession().load(graph()))
    code = """
    import sys, numpy as np
    sys.path.insert(0, sys.argv[1])
    import test_loading as t, halfulp.compiler.pipeline as pipeline
    pipeline.compile_graph = t.compile_fails
    print(t.result(t.InferenceSession().load(t.graph())).hex())
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(Path(__file__).parent)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (run.stdout.strip(), run.stderr) == (expected.hex(), "")


def test_processes_that_race_for_one_graph_agree(cache: DiskCache) -> None:
    code = """
    import sys
    sys.path.insert(0, sys.argv[1])
    import test_loading as t
    print(t.result(t.InferenceSession().load(t.graph())).hex())
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(Path(__file__).parent)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert outputs[0] == outputs[1]
    assert outputs[0][1] == b""
    assert not list(cache.folder.glob("*.tmp"))


def test_the_number_of_threads_is_not_part_of_the_key(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    InferenceSession().load(graph(), CompileOptions(threads=2))
    no_compiler(monkeypatch)
    assert InferenceSession().load(graph(), CompileOptions(threads=3)).options.threads == 3
    forget_loaded()
    assert InferenceSession().load(graph(), CompileOptions(threads=4)).options.threads == 4


def test_weights_are_not_part_of_the_key(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def scaled() -> Graph:
        return Graph("scaled", lambda x: x * Weight("w", F32, (3,)), [TensorType(F32, ["n", 3])])

    first = InferenceSession().load(scaled(), weights_registry={"w": np.array([1, 2, 3], np.float32)})
    no_compiler(monkeypatch)
    second = InferenceSession().load(scaled(), weights_registry={"w": np.array([3, 2, 1], np.float32)})
    assert first(X)[0].to_numpy().tolist() == [[1, 4, -9]]
    assert second(X)[0].to_numpy().tolist() == [[3, 4, -3]]


@pytest.mark.parametrize(
    "options",
    [
        CompileOptions(fp_contract="off"),
        CompileOptions(fastmath="nsz"),
        CompileOptions(vector_bits=128),
        CompileOptions(opt_level=1),
    ],
)
def test_options_that_decide_on_the_code_are_part_of_the_key(options: CompileOptions) -> None:
    default = CompileOptions()
    assert graph_key(graph(), options, host_target(options.vector_bits)) != graph_key(graph(), default, host_target())


def test_the_graph_is_part_of_the_key() -> None:
    other = Graph("g", lambda x: ops.exp(x) - x, [TensorType(F32, ["n", 3])])
    keys = [graph_key(g, CompileOptions(), host_target()) for g in (graph(), graph("h"), other, graph())]
    assert keys[0] == keys[3]
    assert len(set(keys)) == 3


def test_a_damaged_entry_is_compiled_again(cache: DiskCache, caplog: pytest.LogCaptureFixture) -> None:
    expected = result(InferenceSession().load(graph()))
    for path in cache.folder.glob("*.bin"):
        forget_loaded()
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
        assert result(InferenceSession().load(graph())) == expected
        assert f"{path} is damaged; it is removed and made anew" in caplog.messages
        assert path.read_bytes() == data


def test_an_entry_of_an_unknown_form_is_made_anew(cache: DiskCache, caplog: pytest.LogCaptureFixture) -> None:
    expected = result(InferenceSession().load(graph()))
    key = graph_key(graph(), CompileOptions(), host_target())
    assert key is not None
    cache.put(key, b"\x93\x01\x02\x03")
    forget_loaded()
    with caplog.at_level(logging.WARNING, "halfulp"):
        assert result(InferenceSession().load(graph())) == expected
    assert any("cannot be used and is made anew" in message for message in caplog.messages)


def test_a_cache_that_cannot_be_written_costs_time_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: DiskCache, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("HALFULP_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert len(result(InferenceSession().load(graph()))) == 12
    assert capfd.readouterr() == ("", "")


def test_nothing_is_stored_when_the_cache_is_off(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_CACHE", "0")
    InferenceSession().load(graph())
    assert not cache.folder.exists()


def build_nothing(*arguments: object) -> None:
    """A kernel of a user: it computes nothing, and its code is not part of the package."""


def test_a_graph_that_calls_the_users_code_has_no_key(cache: DiskCache) -> None:
    operands, outputs = (OperandSpec("x", F32, ("n",)),), (OutputSpec("y", F32, ("n",)),)
    register_kernel(KernelDef("test_loading_user", operands, outputs, build_nothing))
    try:
        input_type = TensorType(F32, ["n"])
        custom = Graph("g", lambda x: ops.custom("test_loading_user", x.device, [x], [input_type]), [input_type])
        assert graph_key(custom, CompileOptions(), host_target()) is None
    finally:
        unregister_kernel("test_loading_user")


def wrapped(function: Callable[..., object], *captured: object) -> Callable[[], object]:
    """A function of ours, by its module, that holds another and some data."""

    def inner() -> object:
        return function(*captured)

    inner.__module__ = "halfulp.ops.somewhere"
    return inner


def test_code_that_reaches_the_users_functions_has_no_text() -> None:
    assert code_text(find_op("exp", "test")) is not None
    assert code_text(build_nothing) is None
    assert code_text(wrapped(build_nothing)) is None
    assert code_text(wrapped(partial(build_nothing))) is None
    assert code_text({"a": [build_nothing]}) is None
    assert code_text(Path("of the user")) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (4, 5),
        (1.0, -1.0),
        ("a", "b"),
        ((1, 2), (2, 1)),
        (np.ones(3), np.zeros(3)),
        (DType.int8, DType.int16),
        (abs, len),
    ],
)
def test_what_a_function_has_captured_is_part_of_its_text(one: object, other: object) -> None:
    texts = [code_text(wrapped(len, value)) for value in (one, other, one)]
    assert None not in texts
    assert texts[0] == texts[2]
    assert texts[0] != texts[1]


def test_data_that_holds_itself_has_a_text() -> None:
    inside: list[object] = [1]
    inside.append(inside)
    assert code_text(inside) == "(1, ...)"


def test_progress_counts_up_to_the_last_step() -> None:
    calls: list[tuple[int, int, str]] = []
    InferenceSession().load(graph(), progress=lambda *step: calls.append(step))
    total = len(calls)
    assert [call[:2] for call in calls] == [(number, total) for number in range(1, total + 1)]
    assert [calls[0][2], calls[-1][2]] == ["verify-graph", "emit-object"]


@pytest.mark.parametrize("last", [1, 5, 99])
def test_an_interrupted_compilation_leaves_nothing(last: int, cache: DiskCache) -> None:
    def interrupt(done: int, total: int, step: str) -> None:
        if done == min(last, total):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        InferenceSession().load(graph(), progress=interrupt)
    assert not list(cache.folder.glob("*.tmp"))
    key = graph_key(graph(), CompileOptions(), host_target())
    assert key is not None
    assert cache.get(key) is None
    assert len(result(InferenceSession().load(graph()))) == 12


def test_dumps_are_numbered_and_do_not_overwrite_each_other(
    cache: DiskCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALFULP_DUMP", str(tmp_path / "dump"))
    for _ in range(2):
        forget_loaded()
        InferenceSession().load(graph("my graph"))
    folders = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert folders == ["my_graph-1", "my_graph-2"]
    names = sorted(os.listdir(tmp_path / "dump" / "my_graph-2"))
    assert names[0] == "01-verify-graph.mlir"
    assert names[-1].endswith("-emit-llvm.ll")
    assert [int(name[:2]) for name in names] == list(range(1, len(names) + 1))
    assert "graph.graph" in (tmp_path / "dump" / "my_graph-2" / names[0]).read_text()
    assert "define" in (tmp_path / "dump" / "my_graph-2" / names[-1]).read_text()
