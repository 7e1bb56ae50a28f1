"""Precompiled models: written, loaded without the compiler, and refused elsewhere."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler import CompileOptions, DType, Graph, GraphError, TensorType, Weight
from halfulp.compiler.codegen.cpu import host_target
from halfulp.runtime import InferenceSession, Model
from halfulp.runtime.loader import LoadError
from halfulp.runtime.precompiled import Origin, Precompiled, origin_of
from halfulp.runtime.serialization import decoder, encode

F32 = DType.float32
X = np.array([[1.0, 2.0, -3.0]], np.float32)
W = np.array([0.5, 2.0, 4.0], np.float32)


def model() -> Model:
    graph = Graph("scaled", lambda x: ops.exp(x) * Weight("w", F32, (3,)), [TensorType(F32, ["n", 3])])
    return InferenceSession().load(graph, CompileOptions(threads=3), {"w": W})


def saved(tmp_path: Path) -> Path:
    path = tmp_path / "scaled.halfulp"
    model().save(path)
    return path


def change_origin(path: Path, **changes: object) -> None:
    """Writes the file anew, as if it came from elsewhere."""
    found: Precompiled = decoder(Precompiled).decode(path.read_bytes()[40:])
    origin = msgspec.structs.replace(found.origin, **changes)
    content = encode(Precompiled(origin, found.graph))
    path.write_bytes(b"HALFULPM" + hashlib.sha256(content).digest() + content)


def refusal(path: Path) -> str:
    with pytest.raises(LoadError) as error:
        InferenceSession().load_compiled(path)
    return str(error.value)


def test_a_saved_model_gives_the_same_bits(tmp_path: Path) -> None:
    path = saved(tmp_path)
    loaded = InferenceSession().load_compiled(str(path), weights_registry={"w": W})
    assert repr(loaded) == repr(model())
    assert loaded.options == CompileOptions(threads=3)
    assert loaded(X)[0].to_numpy().tobytes() == model()(X)[0].to_numpy().tobytes()
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_loading_needs_no_compiler(tmp_path: Path) -> None:
    code = """
    import sys, numpy as np
    from halfulp.runtime import InferenceSession
    model = InferenceSession().load_compiled(sys.argv[1], {"w": np.float32([0.5, 2, 4])})
    (y,) = model(np.float32([[1, 2, -3]]))
    print(y.to_numpy().tobytes().hex(), "xdsl" in sys.modules)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(saved(tmp_path))]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (run.stdout, run.stderr) == (f"{model()(X)[0].to_numpy().tobytes().hex()} False\n", "")


def test_weights_are_checked(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="graph 'scaled' needs weights that the registry does not have: 'w'"):
        InferenceSession().load_compiled(saved(tmp_path))


def test_another_version_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    change_origin(path, version="0.0.9", abi=0)
    here = origin_of(host_target())
    assert refusal(path) == (
        f"compiled model {str(path)!r} was made by halfulp 0.0.9 (interface 0), and this is {here.version} (interface "
        f"{here.abi}); compile it here with InferenceSession.load() and save it again"
    )


def test_another_system_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    change_origin(path, triple="riscv64-unknown-linux-gnu")
    assert refusal(path) == (
        f"compiled model {str(path)!r} was made for riscv64-unknown-linux-gnu, and this is {host_target().triple}; "
        "compile it here with InferenceSession.load() and save it again"
    )


def test_another_cpu_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    change_origin(path, cpu="zen9", features=("fma", "avx4096", "time-travel"))
    assert refusal(path) == (
        f"compiled model {str(path)!r} was made for a CPU 'zen9' with avx4096, time-travel, which this CPU, "
        f"{host_target().cpu!r}, lacks; compile it here with InferenceSession.load() and save it again"
    )


def test_a_cpu_that_can_do_less_is_fine(tmp_path: Path) -> None:
    path = saved(tmp_path)
    change_origin(path, cpu="haswell", features=origin_of(host_target()).features[:3])
    assert InferenceSession().load_compiled(path, {"w": W}).name == "scaled"


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    data = path.read_bytes()
    for damaged in (data[:-1], data[:30], data[:100] + b"\0" + data[101:]):
        path.write_bytes(damaged)
        assert refusal(path) == f"compiled model {str(path)!r} is damaged: its checksum does not fit; save it again"
    path.write_bytes(b"\x7fELF" + data)
    assert refusal(path) == f"compiled model {str(path)!r}: this is no file that Model.save() wrote"


def test_a_file_of_an_unknown_form_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    origin = origin_of(host_target())
    content = encode(Precompiled(origin, msgspec.Raw(encode({"name": 3}))))
    path.write_bytes(b"HALFULPM" + hashlib.sha256(content).digest() + content)
    assert refusal(path).startswith(f"compiled model {str(path)!r} cannot be read: ")


def test_an_absent_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        InferenceSession().load_compiled(tmp_path / "absent")


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        model().save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_the_origin_names_features_that_are_on() -> None:
    origin = origin_of(host_target(128))
    assert isinstance(origin, Origin)
    assert not any(name.startswith(("+", "-", "avx512")) for name in origin.features)
