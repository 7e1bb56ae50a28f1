"""The cache folder: whole entries or none, private, bounded; whatever is wrong with it costs time only."""

from __future__ import annotations

import logging
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from halfulp.compiler.errors import GraphError
from halfulp.runtime.cache import DiskCache, default_folder, disk_cache, size_limit


def run_python(code: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def only_entry(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_what_is_stored_comes_back(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "new" / "folder")
    assert cache.get("a") is None
    assert cache.put("a", b"code")
    assert cache.put("b", b"")
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (b"code", b"", None)


def test_folder_and_entries_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        DiskCache(tmp_path / "cache").put("a", b"code")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
    assert stat.S_IMODE(only_entry(tmp_path / "cache").stat().st_mode) == 0o600


@pytest.mark.parametrize("position", [0, 7, 8, 39, 40, 1039])
def test_an_entry_with_a_flipped_bit_is_replaced(position: int, tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    cache.put("a", bytes(1000))
    path = only_entry(cache.folder)
    data = bytearray(path.read_bytes())
    data[position] ^= 4
    path.write_bytes(data)
    assert cache.get("a") is None
    assert not path.exists()
    assert cache.put("a", b"again")
    assert cache.get("a") == b"again"


@pytest.mark.parametrize("length", [0, 5, 8, 39, 40, 1039])
def test_a_truncated_entry_is_absent(length: int, tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    cache.put("a", bytes(1000))
    path = only_entry(cache.folder)
    path.write_bytes(path.read_bytes()[:length])
    assert cache.get("a") is None
    assert not path.exists()


def test_the_least_recently_used_entries_go_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache", limit=3200)
    for number, key in enumerate("abc"):
        cache.put(key, bytes(1000))
        os.utime(cache.folder / f"{key}.bin", (1000 + number, 1000 + number))
    assert cache.get("a") is not None  # now b is the oldest
    cache.put("d", bytes(1000))
    assert [key for key in "abcd" if cache.get(key) is not None] == ["a", "c", "d"]
    assert cache.info().nbytes <= 3200


def test_an_entry_larger_than_the_limit_is_not_stored(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache", limit=100)
    assert not cache.put("a", bytes(100))
    assert not cache.folder.exists()


def test_clear_removes_entries_and_unfinished_files_only(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    tmp_path.chmod(0o700)
    cache.put("a", b"1")
    (tmp_path / "b.1.tmp").write_bytes(b"half")
    (tmp_path / "notes.txt").write_bytes(b"mine")
    assert cache.clear() == 2
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert cache.info().entries == 0


def test_a_folder_that_belongs_to_someone_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cache = DiskCache(tmp_path / "cache")
    cache.put("a", b"code")
    owner = os.geteuid()
    if owner == 0:
        os.chown(cache.folder, 12345, 12345)
        expected = "belongs to user 12345, not to user 0"
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
        expected = f"belongs to user {owner}, not to user {owner + 1}"
    with caplog.at_level(logging.WARNING, "halfulp"):
        assert cache.get("a") is None
    assert not cache.put("b", b"code")
    assert cache.clear() == 0
    assert cache.info().problem == expected
    assert set(caplog.messages) == {f"the cache folder {cache.folder} is not used: it {expected}"}
    assert len(list(cache.folder.iterdir())) == 1


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_is_refused(mode: int, tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    cache.put("a", b"code")
    cache.folder.chmod(mode)
    assert cache.get("a") is None
    assert not cache.put("b", b"code")
    assert cache.info().problem == "can be written by other users; run chmod go-w on it"


def test_a_file_in_the_place_of_the_folder_is_no_cache(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_bytes(b"")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        cache = DiskCache(folder)
        assert cache.get("a") is None
        assert not cache.put("a", b"code")
        assert cache.info().entries == 0
    assert DiskCache(tmp_path / "file").info().problem == "is not a folder"
    assert any(message.startswith("cannot make the cache folder") for message in caplog.messages)


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    code = """
    import resource, sys
    from pathlib import Path
    from halfulp.runtime.cache import DiskCache
    cache = DiskCache(Path(sys.argv[1]))
    assert cache.put("small", bytes(100))
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))  # as if there were no room for more
    assert not cache.put("large", bytes(100_000))
    assert cache.get("large") is None and cache.get("small") == bytes(100)
    print([path.name for path in cache.folder.iterdir()])
    """
    process = run_python(code, str(tmp_path / "cache"))
    assert process.communicate(timeout=60) == ("['small.bin']\n", "")


def test_a_writer_that_is_killed_leaves_whole_entries_only(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    code = """
    import sys
    from pathlib import Path
    from halfulp.runtime.cache import DiskCache
    cache = DiskCache(Path(sys.argv[1]))
    print("go", flush=True)
    for number in range(1 << 30):
        cache.put(f"k{number % 7}", bytes([number % 256]) * 3_000_000)
    """
    cache = DiskCache(folder)
    for wait in (0.0, 0.013, 0.031, 0.057):
        process = run_python(code, str(folder))
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        for number in range(7):
            content = cache.get(f"k{number}")
            assert content is None or content == content[:1] * 3_000_000
    old = time.time() - 7200
    for path in folder.glob("*.tmp"):
        os.utime(path, (old, old))
    assert cache.put("k0", b"whole")
    assert not list(folder.glob("*.tmp"))


def test_several_processes_write_one_entry(tmp_path: Path) -> None:
    code = """
    import sys
    from pathlib import Path
    from halfulp.runtime.cache import DiskCache
    cache = DiskCache(Path(sys.argv[1]))
    for _ in range(100):
        assert cache.put("key", b"same" * 50_000)
        assert cache.get("key") == b"same" * 50_000
    """
    processes = [run_python(code, str(tmp_path / "cache")) for _ in range(3)]
    assert [process.communicate(timeout=60) for process in processes] == [("", "")] * 3
    assert only_entry(tmp_path / "cache").name == "key.bin"


def test_the_environment_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HALFULP_CACHE_DIR", str(tmp_path / "here"))
    assert default_folder() == tmp_path / "here"
    monkeypatch.delenv("HALFULP_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_folder() == tmp_path / "halfulp"
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("HOME", "/Users/me")
    assert default_folder() == Path("/Users/me/Library/Caches/halfulp")


def test_the_environment_turns_the_cache_off(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("0", "off", " No "):
        monkeypatch.setenv("HALFULP_CACHE", value)
        assert disk_cache() is None
    monkeypatch.setenv("HALFULP_CACHE", "1")
    assert disk_cache() is not None


def test_the_environment_sets_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_CACHE_SIZE", "3")
    assert size_limit() == 3 << 20
    monkeypatch.setenv("HALFULP_CACHE_SIZE", "3 GB")
    with pytest.raises(GraphError) as error:
        size_limit()
    assert str(error.value) == "HALFULP_CACHE_SIZE must be a number of MiB, not '3 GB'"
