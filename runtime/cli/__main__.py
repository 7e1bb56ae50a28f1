"""``python -m halfulp.runtime.cli`` is `halfulp`."""

from __future__ import annotations

from . import main

if __name__ == "__main__":
    main(prog_name="halfulp")
