"""Runs a batch of blocks: which lanes execute which basic block next.

Every lane has a place in the program. The lanes at the lowest place run, so that lanes which took different sides of
a branch meet again behind it; while all are together, nothing is masked. Lanes wait at barriers until no lane can
run.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from .errors import DivergentBarrierError, KernelFaultError, StepLimitError, TrapError, UndefinedResultError
from .lanes import WARP, Lanes
from .program import Barrier, BasicBlock, Branch, Exit, Jump, Program, Switch
from .syntax import Instruction
from .types import S64, Array
from .warp import complete_warps

# A lane's place: the number of a block; waiting for others at a warp operation, or at a barrier, to go on at that
# block; or gone. So the minimum tells what is left to do.
_AT_GATE, _AT_BARRIER, _GONE = 1 << 40, 1 << 41, 1 << 42


class Scheduler:
    """Runs one batch to its end."""

    def __init__(self, program: Program, lanes: Lanes, max_steps: int) -> None:
        self.program = program
        self.lanes = lanes
        self.max_steps = max_steps
        self.steps = 0
        # Places of the lanes that do not run at present; those of the running ones are out of date.
        self.places = np.where(lanes.exists, 0, _GONE).astype(S64)
        self.alive = int(np.count_nonzero(lanes.exists))
        self.at = 0
        self.present: Array | None = None
        self.next_other = _GONE
        self.barriers: dict[int, Instruction] = {}

    def run(self) -> None:
        """Runs until all lanes are gone.

        Raises:
            KernelFaultError: what the steps find, a divergent barrier, or too many steps.
        """
        blocks, lanes = self.program.blocks, self.lanes
        self._choose()
        while self.at < _GONE:
            block = blocks[self.at]
            self.steps += len(block.steps) + 1
            if self.steps > self.max_steps:
                self._too_long(block)
            if block.gate is not None and not self._passes(block, block.gate):
                continue
            for step in block.steps:
                step(lanes)
            ending = block.ending
            if type(ending) is Branch:
                self._branch(ending)
            elif type(ending) is Jump:
                self._go(ending.target)
            else:
                self._special(block)

    def _special(self, block: BasicBlock) -> None:
        ending = block.ending
        if isinstance(ending, Barrier):
            self._wait(ending)
        elif isinstance(ending, Switch):
            self._switch(ending)
        elif isinstance(ending, Exit):
            self._leave()
        else:
            assert block.first is not None
            instruction = ending.instruction if ending is not None and not isinstance(ending, Branch | Jump) else None
            fault = self.lanes.fault(instruction or block.first, 0)
            raise TrapError(fault, "executed trap")

    # who runs

    def _choose(self) -> None:
        """The lanes at the lowest place run next."""
        places = self.places
        lowest = int(places.min())
        while _AT_GATE <= lowest < _GONE:
            self._settle(lowest)
            lowest = int(places.min())
        self.at = lowest
        if lowest < _GONE:
            self._set_group(places == lowest)

    def _set_group(self, present: Array) -> None:
        lanes = self.lanes
        number = int(np.count_nonzero(present))
        together = number == self.alive
        self.present = None if number == lanes.count else present
        self.next_other = _GONE if together else int(self.places[~present].min())
        lanes.activate(self.present, None if together else present)

    def _go(self, target: int) -> None:
        """All running lanes go on at the same block."""
        if target < self.next_other:
            self.at = target
        else:
            self._move(target)
            self._choose()

    def _move(self, places: Array | int) -> None:
        self.places[slice(None) if self.lanes.participants is None else self.lanes.participants] = places

    def _branch(self, branch: Branch) -> None:
        lanes = self.lanes
        predicate = lanes.taking_part(lanes.registers[branch.predicate])
        holds = int(np.count_nonzero(predicate))
        target, otherwise = (branch.otherwise, branch.target) if branch.negated else (branch.target, branch.otherwise)
        if holds == predicate.size:
            self._go(target)
        elif holds == 0:
            self._go(otherwise)
        else:
            self._move(np.where(predicate, target, otherwise))
            self._choose()

    def _switch(self, switch: Switch) -> None:
        lanes = self.lanes
        chosen = lanes.taking_part(lanes.registers[switch.slot])
        outside = chosen >= len(switch.targets)
        if outside.any():
            lane = int(np.argmax(outside))
            problem = f"chooses target {int(chosen[lane])} of {len(switch.targets)}"
            raise UndefinedResultError(lanes.fault(switch.instruction, lane), problem)
        self._move(np.array(switch.targets, S64)[chosen])
        self._choose()

    def _leave(self) -> None:
        self._move(_GONE)
        self.alive -= self.lanes.number_taking_part
        self._choose()

    # barriers

    def _wait(self, barrier: Barrier) -> None:
        self.barriers[barrier.target] = barrier.instruction
        if self.present is None:  # whole blocks, all of them
            if self.lanes.races is not None:
                self.lanes.races.barrier(None)
            self.at = barrier.target
            return
        self._move(_AT_BARRIER + barrier.target)
        self._choose()

    def _settle(self, lowest: int) -> None:
        """Nobody can run: opens gates whose missing lanes have exited, else barriers that whole blocks have reached."""
        if lowest < _AT_BARRIER:
            self._open_gates()
            return
        places = self.places.reshape(len(self.lanes.blocks), -1)
        exists = self.lanes.exists.reshape(places.shape)
        first = places[:, :1]
        if (exists & (places != first)).any():
            self._divergent(places, exists)
        waiting = exists & (places < _GONE)
        if self.lanes.races is not None:
            self.lanes.races.barrier(np.flatnonzero(waiting))
        places[waiting] -= _AT_BARRIER

    def _passes(self, block: BasicBlock, gate: int) -> bool:
        """Whether lanes may run a warp operation: those all of whose named partners are there too."""
        lanes = self.lanes
        if self.present is None:
            if block.meets and lanes.races is not None:
                lanes.races.warp_barrier(None)
            return True
        here = self.present | (self.places == _AT_GATE + self.at)
        ready = complete_warps(lanes, here, self.places == _GONE, lanes.registers[gate])
        self.places[here] = _AT_GATE + self.at
        self.places[ready] = self.at
        if not ready.any():
            self._choose()
            return False
        self._set_group(ready)
        if block.meets and lanes.races is not None:
            lanes.races.warp_barrier(lanes.participants)
        return True

    def _open_gates(self) -> None:
        """Nobody else will come: lanes whose partners have exited go on, others wait for ever."""
        gone = self.places == _GONE
        opened = False
        for place in np.unique(self.places[(self.places >= _AT_GATE) & (self.places < _AT_BARRIER)]):
            block = self.program.blocks[place - _AT_GATE]
            assert block.gate is not None
            assert block.first is not None
            here = self.places == place
            ready = complete_warps(self.lanes, here, gone, self.lanes.registers[block.gate])
            self.places[ready] = place - _AT_GATE
            opened = opened or bool(ready.any())
        if not opened:
            self._stuck(int(self.places.min()))

    # faults

    def _stuck(self, place: int) -> NoReturn:
        block = self.program.blocks[place - _AT_GATE]
        assert block.gate is not None
        assert block.first is not None
        lane = int(np.argmax(self.places == place))
        members = np.broadcast_to(self.lanes.registers[block.gate], (self.lanes.count,))
        start = lane - lane % WARP
        absent = next(
            other
            for other in range(start, start + WARP)
            if int(members[lane]) >> other % WARP & 1 and self.places[other] not in (place, _GONE)
        )
        thread = self.lanes.indices_of(absent)[1]
        raise DivergentBarrierError(
            self.lanes.fault_of_lane(block.first, lane),
            f"waits for lane {absent % WARP} of its warp, which its member mask names, but thread {thread} "
            f"{self._where(int(self.places[absent]))}; make all named lanes execute the same instruction",
        )

    def _divergent(self, places: Array, exists: Array) -> NoReturn:
        """Names a waiting thread, and one of its block that never comes."""
        row = int(np.argmax((exists & (places != places[:, :1])).any(axis=1)))
        start = row * self.lanes.width
        own = np.where(exists[row], places[row], _GONE)
        waiting = int(np.argmin(own))
        other = int(np.argmax(exists[row] & (places[row] != own[waiting])))
        thread = self.lanes.indices_of(start + other)[1]
        raise DivergentBarrierError(
            self.lanes.fault_of_lane(self.barriers[int(own[waiting]) - _AT_BARRIER], start + waiting),
            f"waits at a barrier, but thread {thread} of the same block {self._where(int(own[other]))}; make all "
            "threads of the block reach the same barrier",
        )

    def _where(self, place: int) -> str:
        if place == _GONE:
            return "has exited"
        if place >= _AT_BARRIER:
            return f"waits at the barrier of line {self.barriers[place - _AT_BARRIER].line}"
        first = self.program.blocks[place - _AT_GATE].first
        assert first is not None
        return f"waits at line {first.line}"

    def _too_long(self, block: BasicBlock) -> NoReturn:
        first = block.first or next(b.first for b in self.program.blocks if b.first is not None)
        assert first is not None
        error: type[KernelFaultError] = StepLimitError
        raise error(
            self.lanes.fault(first, 0),
            f"still runs after {self.max_steps} steps; if the loop does end, make the emulator with more max_steps",
        )
