"""What the lanes of a warp do together: shuffles, votes, the mask of active lanes.

The scheduler sees to it that all lanes that an instruction names execute it at once (see `machine`); here is what
they compute.
"""

from __future__ import annotations

import numpy as np

from .access import Step
from .errors import InvalidShuffleError
from .lanes import WARP, Lanes
from .syntax import Instruction
from .types import BOOL, S64, U32, Array

SHUFFLE_MODES = ("up", "down", "bfly", "idx")
VOTE_MODES = ("all", "any", "uni", "ballot")


def shuffle(instruction: Instruction, mode: str, slots: tuple[int, int, int, int], result: int, in_range: int) -> Step:
    """``shfl.sync``. ``slots``: the value, the lane operand b, the clamp operand c, the member mask.

    ``result`` and ``in_range`` are the slots of the value that is read and of whether its lane is within the segment;
    -1 for none.
    """
    value, b, c, members = slots

    def step(lanes: Lanes) -> None:
        registers = lanes.registers
        fixed = registers[b].size == 1 and registers[c].size == 1
        key = instruction.line if fixed else -1
        found = lanes.sources.get(key) if fixed else None
        source, valid = found if found is not None else _sources(mode, lanes, registers[b], registers[c])
        if found is None or lanes.participants is not None or registers[members].size != 1:
            _check_sources(instruction, lanes, source, registers[members])
        if fixed:
            lanes.sources[key] = (source, valid)
        if result >= 0:
            values = registers[value]
            taken = values if values.size == 1 else values[lanes.taking_part(source)]
            lanes.put(result, taken)
        if in_range >= 0:
            lanes.put(in_range, lanes.taking_part(valid))

    return step


def _sources(mode: str, lanes: Lanes, b: Array, c: Array) -> tuple[Array, Array]:
    """For each lane of the batch the lane that it reads, and whether that is in range (else it reads its own)."""
    lane = lanes.lane_in_warp.astype(S64)
    offset, clamp = (b & np.uint32(31)).astype(S64), (c & np.uint32(31)).astype(S64)
    segment = ((c >> np.uint32(8)) & np.uint32(31)).astype(S64)
    last = (lane & segment) | (clamp & ~segment)
    if mode == "up":
        source = lane - offset
        valid = source >= last
    elif mode == "idx":
        source = (lane & segment) | (offset & ~segment)
        valid = source <= last
    else:
        source = lane + offset if mode == "down" else lane ^ offset
        valid = source <= last
    return lanes.first_of_warp + np.where(valid, source, lane), valid


def _check_sources(instruction: Instruction, lanes: Lanes, source: Array, members: Array) -> None:
    """Each lane must name itself a member, and read from a lane that takes part."""
    taking_part = np.zeros(lanes.count, BOOL)
    taking_part[lanes.all_lanes()] = True
    named = (members >> lanes.lane_in_warp) & np.uint32(1) != 0
    wrong = taking_part & ~named
    if wrong.any():
        lane = int(np.argmax(wrong))
        raise InvalidShuffleError(lanes.fault_of_lane(instruction, lane), "is not in the member mask that it names")
    absent = taking_part & ~(taking_part & named)[source]
    if absent.any():
        lane = int(np.argmax(absent))
        raise InvalidShuffleError(
            lanes.fault_of_lane(instruction, lane),
            f"reads the register of lane {int(source[lane]) % WARP}, which takes no part; its value is undefined",
        )


def vote(mode: str, slot: int, negated: bool, members: int, result: int) -> Step:
    """``vote.sync``: of a predicate over the members of a warp."""

    def step(lanes: Lanes) -> None:
        holds = np.zeros(lanes.count, BOOL)
        everyone = lanes.all_lanes()
        predicate = np.broadcast_to(lanes.registers[slot], (lanes.count,))
        holds[everyone] = predicate[everyone] ^ negated
        named = (lanes.registers[members] >> lanes.lane_in_warp) & np.uint32(1) != 0
        takes_part = np.zeros(lanes.count, BOOL)
        takes_part[everyone] = True
        takes_part &= named
        yes, all_of_them = _ballot(holds & takes_part), _ballot(takes_part)
        outcome = {
            "ballot": yes,
            "any": yes != 0,
            "all": yes == all_of_them,
            "uni": (yes == 0) | (yes == all_of_them),
        }[mode]
        lanes.put(result, lanes.taking_part(np.repeat(outcome, WARP)))

    return step


def active_mask(result: int) -> Step:
    """``activemask``: the lanes that execute it together."""

    def step(lanes: Lanes) -> None:
        active = np.zeros(lanes.count, BOOL)
        active[lanes.all_lanes()] = True
        lanes.put(result, lanes.taking_part(np.repeat(_ballot(active), WARP)))

    return step


def _ballot(bits: Array) -> Array:
    """One u32 per warp."""
    ballots: Array = np.packbits(bits.reshape(-1, WARP), axis=1, bitorder="little").view(U32).reshape(-1)
    return ballots


def complete_warps(lanes: Lanes, here: Array, exited: Array, members: Array) -> Array:
    """Of the lanes ``here`` at a warp operation, those all of whose named partners are here too or have exited."""
    missing = np.repeat(_ballot(~here & ~exited), WARP)
    return np.asarray(here & ((members & missing) == 0))
