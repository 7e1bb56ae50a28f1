"""The process's thread pool (`halfulp.compiler.codegen.thread_pool`): loaded once, renewed after a fork, ended at exit.

It has no workers until a kernel is worth sharing, so a process that never runs one has no threads.
"""

from __future__ import annotations

import atexit
import os
from ctypes import CFUNCTYPE, c_int, c_int64
from functools import cache

from halfulp.compiler.codegen.thread_pool import PARALLEL_FOR, RENEW, STOP, SYMBOLS, WORKERS, thread_pool_text

from .loader import LoadError, NativeLibrary


class ThreadPool:
    """The pool as the runtime sees it. One per process: `thread_pool`."""

    def __init__(self, library: NativeLibrary) -> None:
        self._library = library
        self._renew = CFUNCTYPE(c_int)(library.address(RENEW))
        self._stop = CFUNCTYPE(c_int)(library.address(STOP))
        self._workers = CFUNCTYPE(c_int64)(library.address(WORKERS))
        self.renew()

    @property
    def symbols(self) -> dict[str, int]:
        """What compiled code calls, with its address."""
        return {PARALLEL_FOR: self._library.address(PARALLEL_FOR)}

    @property
    def workers(self) -> int:
        """The threads that the pool has now, beside those that call it."""
        return int(self._workers())

    def renew(self) -> None:
        """Starts over without workers. In the child of a fork there are none, whatever the memory says.

        Raises:
            LoadError: the system refuses the memory or the locks.
        """
        if reason := self._renew():
            raise LoadError(f"the thread pool cannot be set up: {os.strerror(reason)}")

    def stop(self) -> bool:
        """Ends the workers, and from then on every call does its own work. False, and no change, while they work."""
        return bool(self._stop())


@cache
def thread_pool() -> ThreadPool:
    """The pool of this process."""
    from halfulp.compiler.codegen.cpu import host_target

    from .loading import cached_object

    target = host_target()
    pool = ThreadPool(NativeLibrary(cached_object(thread_pool_text(target), target, 2), SYMBOLS))
    os.register_at_fork(after_in_child=pool.renew)
    # If a daemon thread is inside a kernel now, the workers go on with it until the process ends.
    atexit.register(pool.stop)
    return pool
