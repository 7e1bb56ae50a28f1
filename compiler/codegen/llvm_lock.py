"""LLVM and fork: no other thread is inside LLVM while the process forks.

llvmlite holds one lock around every call into LLVM, without the GIL. A child that was forked while another thread held
it would wait forever for a thread that it does not have, so the forking thread takes it first. A fork
waits for LLVM's part of a compilation in another thread, therefore.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import cache


@cache
def llvm_lock() -> AbstractContextManager[object]:
    """The lock around LLVM, reentrant; from the first call on, the process forks under it."""
    from llvmlite.binding import ffi

    lock: AbstractContextManager[object] = ffi.lib._lock  # llvmlite 0.50 has no public name for it

    def release() -> None:
        lock.__exit__(None, None, None)

    os.register_at_fork(before=lock.__enter__, after_in_parent=release, after_in_child=release)
    return lock
