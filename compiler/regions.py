"""The blocks that a graph under construction adds ops to: its own, and those of branches and loops that are open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from xdsl.ir import Block, Operation, SSAValue

from .errors import GraphError
from .locations import Located

MOST_NESTED = 64
"""Regions inside each other. The passes walk them by recursion, which Python ends at about twice as many."""


class OpenBlocks:
    """A stack of blocks; ops go to the innermost, and see the values of all.

    ``places`` says for each block that ever was open what it is in the user's program, for messages:
    ``then_fn of ops.cond at model.py:7``.
    """

    def __init__(self, root: Block) -> None:
        self.root = root
        self._open = [root]
        self._places: dict[Block, str] = {}

    @property
    def current(self) -> Block:
        """Where ops are added now."""
        return self._open[-1]

    @property
    def place(self) -> str | None:
        """The region that is being built; None outside of all."""
        return self._places.get(self.current)

    def inside(self, block: Block, place: str) -> AbstractContextManager[None]:
        """Adds ops to ``block`` inside the ``with``; ``place`` names it in messages.

        Raises:
            GraphError: too many regions are open.
        """
        with Located():
            if len(self._open) > MOST_NESTED:
                raise GraphError(
                    f"{place} would be inside {MOST_NESTED} other branches and loops, and no more may be nested; "
                    "carry the values through one loop"
                )
        return self._inside(block, place)

    @contextmanager
    def _inside(self, block: Block, place: str) -> Iterator[None]:
        self._places[block] = place
        self._open.append(block)
        try:
            yield
        finally:
            self._open.pop()

    def check_visible(self, value: SSAValue, subject: str, role: str) -> None:
        """Check that ops added now may use a value.

        Raises:
            GraphError: it is from inside a region that is over, or that is the other one of two.
        """
        if not self._places:
            return
        owner = value.owner
        block = owner.parent if isinstance(owner, Operation) else owner
        if block in self._open:
            return
        assert block is not None
        raise GraphError(
            f"{subject}: {role} is a value from inside {self._places[block]}, and exists only there; "
            "return it from that function, and use the result"
        )
