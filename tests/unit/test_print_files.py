"""What graphs print into files: their names and contents, and what happens to files that exist."""

from __future__ import annotations

import os
import resource
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfulp import ops
from halfulp.compiler import DeviceRef, DType, Graph, GraphError, GraphTypeError, TensorType, TensorValue
from halfulp.runtime import (
    ExecutionError,
    InferenceSession,
    Model,
    PrintStyle,
    load_max_buffer,
    print_progress,
    read_max_checkpoint,
)
from halfulp.runtime.print_files import PrintFolder, file_stem

F32 = DType.float32
X = np.array([1.0, 2.5, -3.0], np.float32)


def printing(*labels: str, dtype: DType = F32, style: str = "BINARY_MAX_CHECKPOINT", **options: Any) -> Model:
    """A model that prints its input under each label, in a session with these options."""
    session = InferenceSession()
    session.set_debug_print_options(style, **options)
    with Graph("g", input_types=[TensorType(dtype, ["n"])]) as graph:
        for label in labels:
            graph.inputs[0].print(label)
        graph.output()
    return session.load(graph)


def names_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


# --- contents ---


@pytest.mark.parametrize("dtype", list(DType), ids=str)
def test_contents(dtype: DType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.array([0, 1, 1], dtype.to_numpy())
    printing("x", dtype=dtype, style="BINARY", output_directory=tmp_path).execute(x)
    assert (tmp_path / "x").read_bytes() == x.tobytes()
    printing("x", dtype=dtype, output_directory=str(tmp_path)).execute(x)
    buffer = load_max_buffer(tmp_path / "x.max")
    assert (buffer.dtype, buffer.to_numpy().tobytes()) == (dtype, x.tobytes())
    assert names_in(tmp_path) == ["x", "x.max"]
    assert capsys.readouterr().out == ""


def test_shapes(tmp_path: Path) -> None:
    session = InferenceSession()
    session.set_debug_print_options(PrintStyle.BINARY_MAX_CHECKPOINT, output_directory=tmp_path)

    def forward(x: TensorValue) -> TensorValue:
        ops.sum(ops.sum(x), axis=0).reshape(()).print("scalar")
        x.T.print("view")
        ops.reshape(x, (1, 2, 1, 3, 1)).print("rank 5")
        x[:, :0].print("empty")
        return x

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    session.load(Graph("g", forward, [TensorType(F32, [2, 3])])).execute(x)
    found = {path.stem: load_max_buffer(path).to_numpy() for path in tmp_path.iterdir()}
    assert {name: array.shape for name, array in found.items()} == {
        "scalar": (), "view": (3, 2), "rank_5": (1, 2, 1, 3, 1), "empty": (2, 0),
    }  # fmt: skip
    assert np.array_equal(found["view"], x.T)
    assert found["scalar"] == 15


def test_the_label_is_in_the_file_as_it_was(tmp_path: Path) -> None:
    printing("layer 0/größe", output_directory=tmp_path).execute(X)
    assert read_max_checkpoint(tmp_path / "layer_0_größe.max").name == "layer 0/größe"


def test_texts_still_go_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = InferenceSession()
    session.set_debug_print_options("BINARY", output_directory=tmp_path)
    with Graph("g", input_types=[TensorType(F32, ["n"])]) as graph:
        ops.print("first")
        graph.inputs[0].print("x")
        ops.print("last")
        graph.output()
    session.load(graph).execute(X)
    assert capsys.readouterr().out == "first\nlast\n"
    assert names_in(tmp_path) == ["x"]


# --- names ---


@pytest.mark.parametrize(
    ("label", "stem"),
    [
        ("x", "x"),
        ("a b/c\\d", "a_b_c_d"),
        ("layers.0.input_layernorm-output", "layers.0.input_layernorm-output"),
        ("大きさ 🙂", "大きさ_🙂"),
        ("a\n\x00\t\u2028", "a____"),
        ("", "_"),
        (".", "_"),
        ("..", "__"),
        ("../../etc/passwd", ".._.._etc_passwd"),
        ("ü" * 200, "ü" * 111 + "~cb26b0de5a63c843"),
    ],
)
def test_stems(label: str, stem: str) -> None:
    assert file_stem(label, ".max") == stem


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_any_label_is_a_name_in_the_folder(label: str) -> None:
    name = f"{file_stem(label, '.max')}(9999999999).max"
    assert os.path.basename(name) == name
    assert len(name.encode()) <= 255
    assert "\0" not in name


@given(st.lists(st.text("a/ .(2)", max_size=4), max_size=12))
def test_no_two_prints_share_a_file(tmp_path_factory: pytest.TempPathFactory, labels: list[str]) -> None:
    folder = PrintFolder(tmp_path_factory.mktemp("labels"))
    paths = [folder.write(label, "", [str(number).encode()]) for number, label in enumerate(labels)]
    assert len(set(paths)) == len(labels)
    assert [path.read_text() for path in paths] == [str(number) for number in range(len(labels))]


def test_repeats_get_numbers(tmp_path: Path) -> None:
    model = printing("x", "y", "x", "a b", "a/b", output_directory=tmp_path)
    model.execute(X)
    model.execute(X + 1)
    assert names_in(tmp_path) == [
        "a_b(2).max", "a_b(3).max", "a_b(4).max", "a_b.max",
        "x(2).max", "x(3).max", "x(4).max", "x.max", "y(2).max", "y.max",
    ]  # fmt: skip
    steps = [load_max_buffer(tmp_path / name).to_numpy()[0] for name in ("x.max", "x(2).max", "x(3).max", "x(4).max")]
    assert steps == [1, 1, 2, 2]
    for path in tmp_path.iterdir():
        path.unlink()
    model.execute(X)
    assert names_in(tmp_path) == ["a_b(2).max", "a_b.max", "x(2).max", "x.max", "y.max"]


def test_rounds_of_a_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each round's file is written when the round is over, so the execution that fails in the end has left them."""
    session = InferenceSession()
    session.set_debug_print_options("BINARY_MAX_CHECKPOINT", output_directory=tmp_path)

    def forward(x: TensorValue, rows: TensorValue) -> list[TensorValue]:
        def body(x: TensorValue, k: TensorValue) -> list[TensorValue]:
            ops.print("round")
            y = x * 2.0
            y.print("y")
            return [y, k + 1]

        start = ops.constant(0, DType.int64, DeviceRef.CPU())
        doubled, _ = ops.while_loop([x, start], lambda x, k: k < 3, body)
        return [doubled, ops.gather(x, rows + ops.cast(doubled[:1], DType.int64) - 8)]

    model = session.load(Graph("g", forward, [TensorType(F32, [3]), TensorType(DType.int64, [1])]))
    model.execute(np.array([1, 2, 3], np.float32), np.array([0], np.int64))
    assert capsys.readouterr().out == "round\nround\nround\n"
    names = ["y.max", "y(2).max", "y(3).max"]
    assert [load_max_buffer(tmp_path / name).to_numpy()[1] for name in names] == [4, 8, 16]
    with pytest.raises(ExecutionError):
        model.execute(np.array([1, 2, 3], np.float32), np.array([7], np.int64))
    assert capsys.readouterr().out == ""
    assert names_in(tmp_path) == ["y(2).max", "y(3).max", "y(4).max", "y(5).max", "y(6).max", "y.max"]


def test_a_folder_for_each_execution(tmp_path: Path) -> None:
    model = printing("x", "x", output_directory=tmp_path / "new" / "dump", folder_per_execute=True)
    model.execute(X)
    model.execute(X)
    printing("y", output_directory=tmp_path / "new" / "dump", folder_per_execute=True).execute(X)
    assert names_in(tmp_path) == [
        "new/dump/0/x(2).max", "new/dump/0/x.max", "new/dump/1/x(2).max", "new/dump/1/x.max", "new/dump/2/y.max",
    ]  # fmt: skip


def test_files_of_an_earlier_run_are_kept_with_a_warning(tmp_path: Path) -> None:
    printing("x", output_directory=tmp_path).execute(X)
    model = printing("x", output_directory=tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.execute(X + 1)
        model.execute(X + 2)
    assert [str(warning.message) for warning in caught] == [
        f"{str(tmp_path / 'x.max')!r} exists and is kept, so what is printed now gets another number; choose an empty "
        "output_directory to have the files of one run only"
    ]
    values = {path.name: load_max_buffer(path).to_numpy()[0] for path in tmp_path.iterdir()}
    assert values == {"x.max": 1, "x(2).max": 2, "x(3).max": 3}


def test_threads_never_write_to_one_file(tmp_path: Path) -> None:
    model = printing("x", output_directory=tmp_path)
    step_model = printing("x", output_directory=tmp_path / "steps", folder_per_execute=True)

    def run(number: int) -> None:
        for step in range(20):
            model.execute(np.array([number * 100 + step], np.float32))
            step_model.execute(X)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = sorted(load_max_buffer(path).to_numpy()[0] for path in tmp_path.glob("*.max"))
    assert values == [number * 100 + step for number in range(4) for step in range(20)]
    assert sorted(int(path.name) for path in (tmp_path / "steps").iterdir()) == list(range(80))


# --- failures ---


@contextmanager
def files_limited_to(nbytes: int) -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize(("style", "name"), [("BINARY", "x"), ("BINARY_MAX_CHECKPOINT", "x.max")])
def test_a_full_disk(style: str, name: str, tmp_path: Path) -> None:
    model = printing("x", style=style, output_directory=tmp_path)
    with files_limited_to(1000), pytest.raises(OSError, match="too large") as caught:
        model.execute(np.zeros(1000, np.float32))
    assert str(caught.value) == f"[Errno 27] File too large: {str(tmp_path / name)!r}"
    assert names_in(tmp_path) == []


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.touch()
    with pytest.raises(FileExistsError, match=f"'{taken}'"):
        printing("x", output_directory=taken)
    with pytest.raises(NotADirectoryError, match=f"'{taken}/below'"):
        printing("x", output_directory=taken / "below")
    directory = tmp_path / "later"
    model = printing("x", output_directory=directory)
    directory.rmdir()
    directory.touch()
    with pytest.raises(FileExistsError, match=f"'{directory}'"):
        model.execute(X)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({}, GraphError, "the output directory cannot be empty under BINARY; pass output_directory=..."),
        ({"output_directory": ""}, GraphError,
         "the output directory cannot be empty under BINARY; pass output_directory=..."),
        ({"output_directory": 3}, GraphTypeError, "output_directory must be a path, not 3"),
        ({"output_directory": b"x"}, GraphTypeError, "output_directory must be a path, not b'x'"),
        ({"folder_per_execute": 1}, GraphTypeError, "folder_per_execute must be a bool, not 1"),
    ],
)  # fmt: skip
def test_options(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        InferenceSession().set_debug_print_options("BINARY", **options)
    assert str(caught.value) == f"set_debug_print_options: {text}"


def test_a_relative_directory_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    model = printing("x", output_directory="dump")
    monkeypatch.chdir(tmp_path / "elsewhere")
    model.execute(X)
    assert names_in(tmp_path) == ["dump/x.max"]


# --- progress ---


class Terminal:
    """Standard error as a terminal that remembers what it was sent."""

    closed = False

    def __init__(self, is_terminal: bool) -> None:
        self.text = ""
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        """Nothing waits."""


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("style", ["FULL", "BINARY_MAX_CHECKPOINT"])
def test_progress_of_a_large_dump(
    style: str, is_terminal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = printing("x", style=style, precision=0, output_directory=tmp_path, dtype=DType.int8)
    terminal = Terminal(is_terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(print_progress, "PATIENCE", 0.0)
    monkeypatch.setattr(print_progress, "INTERVAL", 0.0)
    size = 1 << 15 if style == "FULL" else 1 << 25
    model.execute(np.zeros(size, np.int8))
    lines = terminal.text.split("\r")
    if not is_terminal:
        assert lines == [""]
    else:
        shown = list(dict.fromkeys(lines))
        assert shown == ["", "printing 'x': 0%", "printing 'x': 50%", "printing 'x': 100%", " " * 18]


def test_nothing_is_shown_of_a_quick_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(True)
    model = printing("x", output_directory=tmp_path)
    monkeypatch.setattr(sys, "stderr", terminal)
    model.execute(X)
    assert terminal.text == ""


def test_bf16_bits_are_kept(tmp_path: Path) -> None:
    x = np.arange(2**16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    printing("x", dtype=DType.bfloat16, output_directory=tmp_path).execute(x)
    assert load_max_buffer(tmp_path / "x.max").to_numpy().tobytes() == x.tobytes()
