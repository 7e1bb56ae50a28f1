"""What loops of compiled code call now and then, so that Ctrl-C can end them.

Python runs its signal handlers between two of its own instructions, in the main thread. A loop in native code gives it
none to run; this callback does. What a handler raises cannot pass through native code, so it is kept, all loops are
ended, and it is raised afterwards.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from typing import Any

from halfulp.compiler.artifact import STATUS_LAUNCH, STATUS_ROUNDS, STATUS_WATCH

WATCH_PROTOTYPE = ctypes.CFUNCTYPE(None)
SHORT, LONG = 0.005, 0.05
"""Seconds between two calls: below, twice as many rounds pass until the next one; above, half as many."""
MOST_ROUNDS = 1 << 30
STOPPED = -1
"""In the word of the failed launch: no launch, but the watch ended the execution."""


class LoopWatch:
    """Watches the loops of one execution. Only the main thread gets signals, so loops of others are left alone.

    Args:
        words: the status words of the execution; where to call is written into them.
    """

    def __init__(self, words: ctypes.Array[ctypes.c_int64]) -> None:
        self._words = words
        self._errors: list[BaseException] = []
        self._rounds = 1
        self._last = time.monotonic()
        self._function: Any = WATCH_PROTOTYPE(self._called)  # lives as long as native code may call it
        self._hook = sys.unraisablehook
        if threading.current_thread() is threading.main_thread():
            # a handler may raise before the first line of the callback, where nothing can catch it but this hook
            sys.unraisablehook = self._raised
            words[STATUS_WATCH] = ctypes.cast(self._function, ctypes.c_void_p).value or 0
        words[STATUS_ROUNDS] = 1

    def _called(self) -> None:
        now = time.monotonic()
        if now - self._last < SHORT:
            self._rounds = min(2 * self._rounds, MOST_ROUNDS)
        elif now - self._last > LONG:
            self._rounds = max(self._rounds // 2, 1)
        self._last = now
        self._words[STATUS_ROUNDS] = self._rounds

    def _raised(self, unraisable: sys.UnraisableHookArgs) -> None:
        trace = unraisable.exc_traceback
        # what the callback is called in the message of the error depends on Python's version; its frame does not
        if trace is None or trace.tb_frame.f_locals.get("self") is not self or unraisable.exc_value is None:
            self._hook(unraisable)
            return
        self._errors.append(unraisable.exc_value)
        self._words[STATUS_LAUNCH] = STOPPED

    def finish(self) -> None:
        """Raises what came up while the execution ran."""
        if self._words[STATUS_WATCH]:
            sys.unraisablehook = self._hook
            self._words[STATUS_WATCH] = 0
        if self._errors:
            raise self._errors[0] from None
