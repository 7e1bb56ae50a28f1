"""The thread pool's protocol, explored through every interleaving of 2 callers and 2 workers.

The model transcribes `compiler/codegen/thread_pool` step by step: each atomic access, each plain access to the region's
fields, and each call of pthread is one step; a step of any thread may come next. Spinning is a choice between looking
again and going to sleep. In every state that can be reached: each round runs once, in its own region, while its caller
waits; no two workers of it have the same number; no worker sleeps through an open region; nobody touches the fields of
a region that may be set anew; and the callers can still come to their end.

A model that finds nothing could be blind, so each rule of the protocol is also broken, and the breach must show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

ROUNDS = 2
FINISHED = "finished"

Local = tuple[str, int, int]
"""A thread: where it is, and two values: callers (regions still to run, joined), workers (gate seen, which becomes
their number, and region joined)."""


class BrokenError(Exception):
    """The protocol does what it must never do."""


@dataclass(frozen=True)
class State:
    """Everything shared, and every thread. ``gate`` counts the places that are left in the open region."""

    callers: tuple[Local, ...]
    workers: tuple[Local, ...]
    lock: int = 0
    gate: int = 0
    next: int = 0
    left: int = 0
    sleepers: int = 0
    waiting: int = 0
    mutex: str = ""
    owner: int = -1  # the caller whose region the fields describe
    done: tuple[int, ...] = ()  # how often each round of the region has run


@dataclass(frozen=True)
class Rules:
    """The protocol, and its breaches."""

    workers_look_again: bool = True
    gate_opens_before_sleepers_are_read: bool = True
    caller_waits_for_workers: bool = True
    caller_looks_again: bool = True
    lock_is_tried: bool = True
    gate_gives_numbers: bool = True


def explore(rules: Rules, regions: tuple[int, ...], workers: int) -> int:
    """The number of states; BrokenError if a rule is broken in one of them."""
    start = State(tuple(("try", n, 0) for n in regions), (("look", 0, 0),) * workers)
    seen = {start}
    back: dict[State, list[State]] = {}
    frontier = [start]
    while frontier:
        state = frontier.pop()
        for following in steps(state, rules):
            back.setdefault(following, []).append(state)
            if following not in seen:
                seen.add(following)
                frontier.append(following)
    ends = [state for state in seen if all(caller[0] == FINISHED for caller in state.callers)]
    reaches_end = set(ends)
    while ends:
        for before in back.get(ends.pop(), ()):
            if before not in reaches_end:
                reaches_end.add(before)
                ends.append(before)
    if stuck := seen - reaches_end:
        raise BrokenError(f"{len(stuck)} states from which the callers never end, such as {next(iter(stuck))}")
    return len(seen)


def steps(state: State, rules: Rules) -> Iterator[State]:
    """The states that one step of one thread leads to."""
    for number in range(len(state.callers)):
        yield from caller_steps(state, number, rules)
    for number in range(len(state.workers)):
        for following in worker_steps(state, number, rules):
            # Workers are alike: which of two is where makes no difference.
            yield replace(following, workers=tuple(sorted(following.workers)))


def move(state: State, kind: str, number: int, local: Local, **changes: object) -> State:
    threads = list(state.callers if kind == "callers" else state.workers)
    threads[number] = local
    return replace(state, **{kind: tuple(threads)}, **changes)  # type: ignore[arg-type]


def signal(state: State, place: str) -> Iterator[State]:
    """Wakes one of those who wait at ``place``; nothing happens if nobody does."""
    found = False
    for kind in ("callers", "workers"):
        threads = state.callers if kind == "callers" else state.workers
        for number, (where, a, b) in enumerate(threads):
            if where == place:
                found = True
                yield move(state, kind, number, (f"{place}.woken", a, b))
    if not found:
        yield state


def touch_fields(state: State) -> None:
    if any(where in ("take", "run", "leave") for where, _, _ in state.workers):
        raise BrokenError("the fields of a region change while a worker is in it")


def run_round(state: State, region: int) -> State:
    """Runs the next round for whoever takes it."""
    if state.owner != region:
        raise BrokenError("a worker runs rounds of a region that it has not joined")
    if state.callers[region][0] in ("try", "set", "unflag", "unlock", "release", FINISHED):
        raise BrokenError("a round runs while its caller is not in the region")
    done = list(state.done)
    done[state.next] += 1
    return replace(state, next=state.next + 1, done=tuple(done))


def caller_steps(state: State, me: int, rules: Rules) -> Iterator[State]:
    where, todo, joined = state.callers[me]

    def to(place: str, a: int = todo, b: int = joined, **changes: object) -> State:
        return move(state, "callers", me, (place, a, b), **changes)

    mine = f"caller {me}"
    helpers = len(state.workers)
    if where == "try":
        if state.lock and rules.lock_is_tried:
            yield to("try" if todo > 1 else FINISHED, todo - 1)  # does all rounds itself
        else:
            yield to("set", lock=1)
    elif where == "set":
        touch_fields(state)
        place = "open" if rules.gate_opens_before_sleepers_are_read else "early"
        yield to(place, next=0, left=0, owner=me, done=(0,) * ROUNDS)
    elif where == "early":
        yield to("open early", b=min(state.sleepers, helpers))
    elif where in ("open", "open early"):
        after = "count sleepers" if where == "open" else "ring" if joined else "take"
        yield to(after, gate=helpers)
    elif where == "count sleepers":
        yield to("ring" if state.sleepers else "take", b=min(state.sleepers, helpers))
    elif where == "ring":
        if not state.mutex:
            yield to("signal", mutex=mine)
    elif where == "signal":
        for following in signal(state, "wake"):
            yield move(following, "callers", me, ("signal" if joined > 1 else "signalled", todo, joined - 1))
    elif where == "signalled":
        yield to("take", b=0, mutex="")
    elif where == "take":
        if state.gate and any(place == "wake" for place, _, _ in state.workers):
            raise BrokenError("a worker sleeps through an open region")
        yield run_round(state, me) if state.next < ROUNDS else to("close")
    elif where == "close":
        yield to("look", b=helpers - state.gate, gate=0)
    elif where == "look":
        if state.left == joined or not rules.caller_waits_for_workers:
            yield to("release")
        else:
            yield to("sleep")
    elif where == "sleep":
        if not state.mutex:
            yield to("flag", mutex=mine)
    elif where == "flag":
        yield to(
            "check" if rules.caller_looks_again else "done", waiting=1, mutex=mine if rules.caller_looks_again else ""
        )
    elif where == "check":
        yield to("unflag") if state.left == joined else to("done", mutex="")
    elif where == "done.woken":
        if not state.mutex:
            yield to("check", mutex=mine)
    elif where == "unflag":
        yield to("unlock", waiting=0)
    elif where == "unlock":
        yield to("release", mutex="")
    elif where == "release":
        if state.done != (1,) * ROUNDS:
            raise BrokenError(f"a region ends with rounds run {state.done} times")
        yield to("try" if todo > 1 else FINISHED, todo - 1, 0, lock=0)


def worker_steps(state: State, me: int, rules: Rules) -> Iterator[State]:
    where, seen, region = state.workers[me]
    mine = f"worker {me}"

    def to(place: str, a: int = 0, b: int = 0, **changes: object) -> State:
        return move(state, "workers", me, (place, a, b), **changes)

    if where == "look":
        if state.gate:
            yield to("join", state.gate)
        else:
            yield to("sleep")
    elif where == "join":
        if state.gate == seen:
            yield to("fields", seen if rules.gate_gives_numbers else 1, gate=seen - 1)
        else:
            yield to("look")
    elif where == "fields":
        yield to("take", seen, b=state.owner)
    elif where == "take":
        if [number for place, number, _ in state.workers if place == "take"].count(seen) > 1:
            raise BrokenError("two workers of a region have the same number")
        yield run_round(state, region) if state.next < ROUNDS else to("leave", b=region)
    elif where == "leave":
        yield to("tell?", left=state.left + 1)
    elif where == "tell?":
        yield to("tell") if state.waiting else to("look")
    elif where == "tell":
        if not state.mutex:
            yield to("telling", mutex=mine)
    elif where == "telling":
        for following in signal(state, "done"):
            yield move(following, "workers", me, ("told", 0, 0))
    elif where == "told":
        yield to("look", mutex="")
    else:
        yield from sleeper_steps(state, me, rules)


def sleeper_steps(state: State, me: int, rules: Rules) -> Iterator[State]:
    """A worker on its way to sleep, asleep, or on its way back."""
    where = state.workers[me][0]
    mine = "a sleeper"

    def to(place: str, **changes: object) -> State:
        return move(state, "workers", me, (place, 0, 0), **changes)

    if where == "sleep":
        if not state.mutex:
            yield to("count", mutex=mine)
    elif where == "count":
        yield to("check", sleepers=state.sleepers + 1)
    elif where == "check":
        awake = state.gate and rules.workers_look_again
        yield to("rise") if awake else to("wake", mutex="")
    elif where == "wake.woken":
        if not state.mutex:
            # Whoever was woken looks at the gate, also where the look before sleeping is left out.
            yield to("check" if rules.workers_look_again else "rise", mutex=mine)
    elif where == "rise":
        yield to("up", sleepers=state.sleepers - 1)
    elif where == "up":
        yield to("look", mutex="")


@pytest.mark.parametrize(("regions", "workers"), [((1,), 1), ((2,), 2), ((1, 1), 2), ((2, 1), 2)])
def test_every_interleaving_runs_each_round_once_and_ends(regions: tuple[int, ...], workers: int) -> None:
    assert explore(Rules(), regions, workers) > 100


@pytest.mark.parametrize(
    ("broken", "regions", "complaint"),
    [
        (
            Rules(caller_waits_for_workers=False),
            (2,),
            "the fields of a region change while a worker is in it|ends with rounds",
        ),
        (Rules(workers_look_again=False), (2,), "a worker sleeps through an open region"),
        (Rules(gate_opens_before_sleepers_are_read=False), (2,), "a worker sleeps through an open region"),
        (Rules(caller_looks_again=False), (1,), "never end"),
        (Rules(gate_gives_numbers=False), (1,), "two workers of a region have the same number"),
        (Rules(lock_is_tried=False), (1, 1), "the fields of a region change|not in the region|ends with rounds"),
    ],
)
def test_a_broken_rule_shows(broken: Rules, regions: tuple[int, ...], complaint: str) -> None:
    with pytest.raises(BrokenError, match=complaint):
        explore(broken, regions, 2)
