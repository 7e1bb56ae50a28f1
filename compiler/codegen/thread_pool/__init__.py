"""The thread pool as LLVM text: one object per process, which compiled graphs call by symbol.

It is a fork-join pool: ``halfulp_parallel_for(threads, count, body, context)`` calls ``body(context, round, thread)``
for every round 0 .. count - 1 and returns when all are done. The calling thread works too. One call at a time owns the
workers (a *region*); a call that finds them busy, a call from inside a body, and a call for one thread or one round
do all rounds themselves. Nobody ever waits for a worker that has not joined, so a worker that sleeps, starts late or
could not be started costs time only.

The protocol, all of it on one block of memory (``block.py``), all atomic accesses sequentially consistent:

- ``lock`` is 1 while a region runs; it is only ever tried, never waited for.
- ``gate`` counts how many more workers may join. A worker joins by subtracting 1 with a compare-and-swap from what it
  saw, which was not 0. The owner closes the gate by swapping in a 0 and learns from the old value how many joined.
- A thread of a region has a number below ``threads``: 0 the owner, and a worker what it saw at the gate when it joined,
  which nobody else did. A call that does all rounds itself is thread 0, of its own region.
- ``next`` hands out rounds; ``left`` counts the workers that have joined and are done. The owner returns when
  ``left`` is the number that joined: from then on nobody touches the region's fields, and the next owner may set them.
- A worker without work spins for 50 us, then counts itself in ``sleepers``, looks at the gate once more under the
  mutex and waits for ``wake``. The owner opens the gate first and reads ``sleepers`` afterwards: one of
  the two sees the other. The owner waits for ``done`` in the same way, with ``waiting`` as the flag.

``tests/unit/test_thread_pool_model.py`` runs this protocol through every interleaving of 2 callers and 2 workers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .control import CONTROL
from .names import PARALLEL_FOR, RENEW, STOP, SYMBOLS, WORKERS
from .regions import PARALLEL_FOR_TEXT, TAKE_ROUNDS, region
from .system import LINUX, MACOS, declarations, now
from .workers import hire, worker

if TYPE_CHECKING:
    from ..cpu import CpuTarget

__all__ = ["PARALLEL_FOR", "RENEW", "STOP", "SYMBOLS", "WORKERS", "thread_pool_text"]


def thread_pool_text(target: CpuTarget) -> str:
    """The pool's LLVM text for a target: x86-64 or aarch64, Linux or macOS."""
    system = MACOS if _is_macos(target.triple) else LINUX
    arch = target.arch
    parts = (
        "@pool = internal global ptr null, align 8",
        now(system),
        TAKE_ROUNDS,
        worker(arch),
        hire(system),
        region(arch),
        PARALLEL_FOR_TEXT,
        CONTROL,
        "",
        declarations(arch),
        "",
    )
    return "\n".join(parts)


def _is_macos(triple: str) -> bool:
    return any(name in triple for name in ("darwin", "macos"))
