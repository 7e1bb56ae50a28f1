"""The names that the pool's object exports."""

from __future__ import annotations

PARALLEL_FOR = "halfulp_parallel_for"
RENEW = "halfulp_pool_renew"
STOP = "halfulp_pool_stop"
WORKERS = "halfulp_pool_workers"
SYMBOLS = (PARALLEL_FOR, RENEW, STOP, WORKERS)
"""What the object exports: the function for compiled code; then, for the runtime, ``int renew(void)``, which starts
with a fresh pool without workers (once at first, and in the child of a fork) and gives 0 or an errno,
``int stop(void)``, which ends the workers and gives 1, or 0 if they are busy, and ``int64_t workers(void)``."""
