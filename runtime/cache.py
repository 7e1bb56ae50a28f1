"""A folder of compiled code that processes of one user share. Whatever is wrong with it costs time, never a result.

An entry is a file ``<key>.bin``: eight bytes that name the format, the SHA-256 of the content, the content. It is
written under another name and renamed, so a reader sees all of it or nothing; two writers of one key
write the same content. A damaged entry is removed and counts as absent. The folder must belong to the user alone:
code from it is executed.

``HALFULP_CACHE_DIR`` names the folder, ``HALFULP_CACHE_SIZE`` its limit in MiB, ``HALFULP_CACHE=0`` turns it off.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from halfulp.compiler.errors import GraphError

from .logger import logger

FOLDER_VARIABLE = "HALFULP_CACHE_DIR"
SIZE_VARIABLE = "HALFULP_CACHE_SIZE"
SWITCH_VARIABLE = "HALFULP_CACHE"

DEFAULT_MEBIBYTES = 1024
_MAGIC = b"HALFULP1"
_HEADER = len(_MAGIC) + hashlib.sha256().digest_size
_SUFFIX, _UNFINISHED = ".bin", ".tmp"
_ABANDONED_SECONDS = 3600.0
"""An unfinished file this old belongs to a process that was killed."""

_PUTS_BETWEEN_LOOKS = 64
"""Entries of this process after which it looks at the folder again: a look takes a few microseconds for each entry."""

_known_sizes: dict[Path, tuple[int, int]] = {}  # bytes in a folder when last looked at or added to, entries since

_log = logger("cache")


def is_enabled() -> bool:
    """Whether ``HALFULP_CACHE`` leaves the caches on."""
    return os.environ.get(SWITCH_VARIABLE, "1").strip().lower() not in ("0", "off", "false", "no")


def default_folder() -> Path:
    """``HALFULP_CACHE_DIR``, or ``halfulp`` in the place that the system has for caches of the user."""
    if chosen := os.environ.get(FOLDER_VARIABLE):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "halfulp"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "halfulp"


def size_limit() -> int:
    """The limit in bytes, from ``HALFULP_CACHE_SIZE``.

    Raises:
        GraphError: the variable is not a number of MiB.
    """
    text = os.environ.get(SIZE_VARIABLE, "").strip() or str(DEFAULT_MEBIBYTES)
    if not text.isascii() or not text.isdigit():
        raise GraphError(f"{SIZE_VARIABLE} must be a number of MiB, not {text!r}")
    return int(text) << 20


@dataclass(frozen=True)
class CacheInfo:
    """What is in a cache folder. ``problem`` says why it is not used, None if it is."""

    folder: Path
    entries: int
    nbytes: int
    limit: int
    problem: str | None


class DiskCache:
    """The entries of one folder, which is made when the first one is written.

    Args:
        folder: where they lie.
        limit: the bytes that they may take; the entries used least recently go first.
    """

    def __init__(self, folder: Path, limit: int = DEFAULT_MEBIBYTES << 20) -> None:
        self.folder = folder
        self.limit = limit

    def get(self, key: str) -> bytes | None:
        """The content stored under the key; None if there is none that is whole."""
        if self._problem() is not None:
            return None
        path = self._path(key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.warning("cannot read %s: %s", path, error)
            return None
        content = data[_HEADER:]
        if data[:_HEADER] != _MAGIC + hashlib.sha256(content).digest():
            _log.warning("%s is damaged; it is removed and made anew", path)
            self._remove(path)
            return None
        try:
            os.utime(path)  # used now, for the order in which entries go
        except OSError as error:
            _log.info("cannot note the use of %s: %s", path, error)
        return content

    def put(self, key: str, content: bytes) -> bool:
        """Stores the content; False, with the reason in the log, where that is not possible."""
        if len(content) + _HEADER > self.limit:
            return False
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            _log.warning("cannot make the cache folder %s: %s", self.folder, error)
            return False
        if self._problem() is not None:
            return False
        unfinished = self.folder / f"{key}.{os.getpid()}.{secrets.token_hex(4)}{_UNFINISHED}"
        try:
            with open(unfinished, "xb", opener=_private) as file:
                file.write(_MAGIC + hashlib.sha256(content).digest())
                file.write(content)
            os.replace(unfinished, self._path(key))
        except OSError as error:
            _log.warning("cannot write to the cache folder %s: %s", self.folder, error)
            self._remove(unfinished)
            return False
        except BaseException:
            self._remove(unfinished)
            raise
        self._account(len(content) + _HEADER)
        return True

    def clear(self) -> int:
        """Removes all entries; gives how many there were."""
        if self._problem() is not None:
            return 0
        return sum(self._remove(path) for path, _ in self._files(_SUFFIX, _UNFINISHED))

    def info(self) -> CacheInfo:
        """What the folder holds now."""
        files = self._files(_SUFFIX)
        nbytes = sum(status.st_size for _, status in files)
        return CacheInfo(self.folder, len(files), nbytes, self.limit, self._problem())

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _problem(self) -> str | None:
        """Why the folder must not be used; a folder that does not exist yet has no problem."""
        try:
            status = os.stat(self.folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            return self._refuse(f"cannot be read: {error.strerror}")
        if not stat.S_ISDIR(status.st_mode):
            return self._refuse("is not a folder")
        if status.st_uid != os.geteuid():
            return self._refuse(f"belongs to user {status.st_uid}, not to user {os.geteuid()}")
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return self._refuse("can be written by other users; run chmod go-w on it")
        return None

    def _refuse(self, reason: str) -> str:
        _log.warning("the cache folder %s is not used: it %s", self.folder, reason)
        return reason

    def _files(self, *suffixes: str) -> list[tuple[Path, os.stat_result]]:
        """Our files with these suffixes, the least recently used first."""
        found = []
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.name.endswith(suffixes):
                        found.append((Path(entry.path), entry.stat(follow_symlinks=False)))
        except OSError as error:
            # another process may be clearing the folder
            _log.info("cannot list %s: %s", self.folder, error)
        return sorted(found, key=lambda file: file[1].st_mtime_ns)

    def _account(self, nbytes: int) -> None:
        """Looks at the whole folder when it may be full, at first, and now and then, for what others have put there."""
        known, count = _known_sizes.get(self.folder, (self.limit, 0))
        if known + nbytes > self.limit or count >= _PUTS_BETWEEN_LOOKS:
            _known_sizes[self.folder] = (self._trim(), 0)
        else:
            _known_sizes[self.folder] = (known + nbytes, count + 1)

    def _trim(self) -> int:
        """Removes abandoned files, and entries beyond the limit; gives the bytes that are left."""
        now = time.time()
        for path, status in self._files(_UNFINISHED):
            if now - status.st_mtime > _ABANDONED_SECONDS:
                self._remove(path)
        files = self._files(_SUFFIX)
        total = sum(status.st_size for _, status in files)
        for path, status in files:
            if total <= self.limit:
                break
            self._remove(path)
            total -= status.st_size
        return total

    @staticmethod
    def _remove(path: Path) -> bool:
        try:
            path.unlink()
        except OSError:
            return False  # gone already, or not ours to remove
        return True


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def disk_cache() -> DiskCache | None:
    """The cache that the environment asks for; None if it asks for none, or there is no home to put it in."""
    if not is_enabled():
        return None
    try:
        return DiskCache(default_folder(), size_limit())
    except RuntimeError as error:  # no home folder
        _log.warning("no cache folder: %s", error)
        return None
