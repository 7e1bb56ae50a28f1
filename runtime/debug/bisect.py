"""Which ops make the difference between two numeric modes: delta debugging over the ops of a graph.

Each trial compiles the graph with the mode on some ops and the baseline on all others (the pass ``set-op-numerics``),
and asks whether every output has the mode's bits. First go the ops on which the two modes compile to the same IR, which
costs no run. Then Zeller's ddmin ("Simplifying and isolating failure-inducing input", 2002) takes ops away as long as
the bits stay; last comes a look for a single op that does as well. So no op of the answer can be left out, and it is a
single op wherever one suffices.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec
import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from halfulp.compiler.codegen.cpu import host_target
from halfulp.compiler.dialects.graph import ApplyOp, RegisteredOp
from halfulp.compiler.errors import GraphError
from halfulp.compiler.graph import Graph
from halfulp.compiler.locations import location_of
from halfulp.compiler.op_numerics import OpNumerics, numbered_ops
from halfulp.compiler.options import CompileOptions, ordered_flags
from halfulp.compiler.passes.set_op_numerics import SetOpNumericsPass
from halfulp.compiler.pipeline import lower
from halfulp.compiler.registry import find_op

from .fastmath import same_bits
from .graph_inputs import bound_inputs, bound_weights, origin_text
from .modes import BASELINE, mode_options
from .running import run_once
from .ulps import Array, differing

MOST_SINGLES = 256
"""So many ops are tried alone where several were found; of more, only those found."""

Sites = tuple[int, ...]


class Site(msgspec.Struct, frozen=True):
    """An op that makes a difference.

    Attributes:
        number: its place in the graph, from 0 (`halfulp.compiler.op_numerics.numbered_ops`).
        op: its name.
        location: ``file:line`` of the user's program, None if it is not known.
        source: the text of that line.
        effect: what the mode changes about it.
        alone: how many elements change where the mode holds for this op alone.
    """

    number: int
    op: str
    location: str | None
    source: str | None
    effect: str
    alone: int


class Bisection(msgspec.Struct, frozen=True):
    """The smallest set of ops found that gives the mode's bits. ``print(bisection)`` shows it.

    Attributes:
        graph: the graph's name.
        mode: the mode.
        baseline: what it differs from.
        inputs: where the inputs came from, and their shapes.
        differing: elements of all outputs that differ.
        elements: elements of all outputs.
        sites: the ops; none if nothing differs.
        interacting: whether some element has a value that none of the ops gives alone.
        runs: how many times the graph was compiled and run.
        note: what else there is to say, if anything.
    """

    graph: str
    mode: str
    baseline: str
    inputs: str
    differing: int
    elements: int
    sites: tuple[Site, ...]
    interacting: bool
    runs: int
    note: str | None = None

    def to_json(self) -> str:
        """All of it, as JSON."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        from .fastmath_text import bisection_text

        return bisection_text(self)


def bisect_flags(
    graph: Graph,
    inputs: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    mode: str = "fast",
    baseline: str = BASELINE,
    weights: Mapping[str, Any] | None = None,
    options: CompileOptions | None = None,
) -> Bisection:
    """Find the ops whose flags or roundings make the difference between two modes, for these inputs.

    The same arguments give the same answer. Ops with flags of their own keep them, as they do under the mode.

    Args:
        graph: a complete graph.
        inputs: an array for each input, by name or in order; None makes seeded ones.
        mode: the mode to explain, from `halfulp.runtime.debug.modes.MODES`.
        baseline: the mode that it is compared with.
        weights: by name; those that are missing are seeded.
        options: target, threads and effort.

    Raises:
        NotFoundError: an unknown mode.
        GraphError, GraphTypeError: inputs or weights do not fit the graph, or the two modes cannot be mixed.
        CompileError: the graph cannot be compiled under one of the modes.
    """
    trial = _Trial(graph, mode_options(mode, options), mode_options(baseline, options))
    arrays = bound_inputs(graph, inputs)
    trial.bind(arrays, bound_weights(graph, weights))
    base, target = trial.outputs_of(trial.baseline), trial.outputs_of(trial.mode)
    sites, interacting, note = trial.explain(base, target)
    return Bisection(
        graph=graph.name,
        mode=mode,
        baseline=baseline,
        inputs=origin_text(graph, arrays, seeded=inputs is None),
        differing=_elements(base, target),
        elements=sum(array.size for array in base),
        sites=sites,
        interacting=interacting,
        runs=trial.runs,
        note=note,
    )


def smallest_set(everything: Sites, reproduces: Callable[[Sites], bool]) -> Sites:
    """A smallest set that reproduces, of one element if any suffices; ``everything`` must reproduce.

    ``reproduces`` may be any function, also one for which a larger set fails where a smaller one does not.
    """
    found = _minimised(everything, reproduces)
    if len(found) > 1:
        singles = everything if len(everything) <= MOST_SINGLES else found
        found = next(((number,) for number in singles if reproduces((number,))), found)
    return found


def _minimised(sites: Sites, reproduces: Callable[[Sites], bool]) -> Sites:
    """ddmin: no single element can be left out of the result."""
    parts = 2
    while len(sites) >= 2:
        bounds = [len(sites) * i // parts for i in range(parts + 1)]
        chunks = [sites[a:b] for a, b in itertools.pairwise(bounds)]
        smaller = next((chunk for chunk in chunks if reproduces(chunk)), None)
        if smaller is not None:
            sites, parts = smaller, 2
            continue
        rests = [tuple(s for s in sites if s not in chunk) for chunk in chunks] if parts > 2 else []
        smaller = next((rest for rest in rests if reproduces(rest)), None)
        if smaller is not None:
            sites, parts = smaller, max(parts - 1, 2)
        elif parts < len(sites):
            parts = min(2 * parts, len(sites))
        else:
            break
    return sites


def _elements(base: Sequence[Array], other: Sequence[Array]) -> int:
    return sum(int(differing(a, b).sum()) for a, b in zip(base, other, strict=True))


def _explained(target: Sequence[Array], alone: Sequence[Sequence[Array]]) -> bool:
    """Whether each element of the target is what one of the sets of outputs has there."""
    for index, wanted in enumerate(target):
        missing = np.ones(wanted.shape, bool)
        for outputs in alone:
            missing &= differing(outputs[index], wanted)
        if missing.any():
            return False
    return True


class _Trial:
    """A graph that runs with the mode on some ops and the baseline on the others; each set of ops once."""

    def __init__(self, graph: Graph, mode: CompileOptions, baseline: CompileOptions) -> None:
        self.graph, self.mode, self.baseline = graph, mode, baseline
        self.ops: dict[int, RegisteredOp] = dict(numbered_ops(graph.module))
        self.known: dict[str, list[Array]] = {}
        self.keys: dict[Sites, str] = {}
        self.runs = 0
        for one, other in ((mode, baseline), (baseline, mode)):
            if one.strategy != other.strategy and one.strategy == "explicit" and OpNumerics.of(one).permits_contraction:
                raise GraphError(
                    f"graph '{graph.name}': ops that we contract and ops that LLVM contracts cannot be mixed, so "
                    "strategy='llvm' is bisected against a mode without contraction; choose the baseline 'on' or 'off'"
                )

    def bind(self, inputs: Sequence[Array], weights: Mapping[str, Array]) -> None:
        """Set what the graph runs on."""
        self.inputs, self.weights = inputs, weights

    def outputs_of(self, options: CompileOptions) -> list[Array]:
        """The outputs under one mode everywhere."""
        self.runs += 1
        return run_once(self.graph, options, self.inputs, self.weights)

    def candidates(self) -> Sites:
        """Ops that round: all but views and reshapes, which pass on what they get."""
        return tuple(number for number, op in self.ops.items() if _may_round(op))

    def explain(self, base: list[Array], target: list[Array]) -> tuple[tuple[Site, ...], bool, str | None]:
        """The ops that make ``target`` of ``base``, whether they interact, and what is in the way if there are none."""
        if same_bits(base, target):
            return (), False, None
        everything = self.effective(self.candidates())
        if not same_bits(self.run(everything), target):
            # Only where LLVM chooses: it may choose otherwise when the baseline's ops carry flags of their own.
            return (), False, "set op by op, the mode gives other bits than for the whole graph: LLVM decided otherwise"
        found = smallest_set(everything, lambda subset: same_bits(self.run(subset), target))
        alone = {number: self.run((number,)) for number in found}
        interacting = len(found) > 1 and not _explained(target, list(alone.values()))
        return tuple(self.site(number, _elements(base, alone[number])) for number in found), interacting, None

    def effective(self, sites: Sites) -> Sites:
        """Those of the sites where the modes compile to different IR; all if they do so in combination only."""
        found = self._halved(sites)
        return found if self.key(found) == self.key(sites) else sites

    def _halved(self, sites: Sites) -> Sites:
        if self.key(sites) == self.key(()):
            return ()
        middle = len(sites) // 2
        return (*self._halved(sites[:middle]), *self._halved(sites[middle:])) if middle else sites

    def run(self, sites: Sites) -> list[Array]:
        """The outputs with the mode on ``sites`` alone."""
        key = self.key(sites)
        if key not in self.known:
            self.runs += 1
            self.known[key] = run_once(self._mixed(sites), self._options, self.inputs, self.weights)
        return self.known[key]

    def key(self, sites: Sites) -> str:
        """A hash of the tile IR with the mode on ``sites``: every rounding is decided there."""
        if sites not in self.keys:
            module = self._mixed(sites).module
            lower(module, "tile", self._options, host_target(self._options.vector_bits))
            self.keys[sites] = sha256(str(module).encode()).hexdigest()
        return self.keys[sites]

    @property
    def _options(self) -> CompileOptions:
        return self.baseline.replace(strategy="llvm") if self.mode.strategy == "llvm" else self.baseline

    def _mixed(self, sites: Sites) -> Graph:
        own = {"fp_contract": self.mode.fp_contract, "bf16": self.mode.bf16}
        flags = tuple(ordered_flags(self.mode.fastmath))

        def change(module: ModuleOp) -> None:
            SetOpNumericsPass(ops=sites, fastmath=flags, **own).apply(Context(), module)

        return self.graph.rewritten(change)

    def site(self, number: int, alone: int) -> Site:
        """What there is to say about an op of the answer."""
        op = self.ops[number]
        location = location_of(op)
        place = None if location is None else str(location)
        source = None if location is None else location.with_source().removeprefix(f"{location}").lstrip(": ") or None
        return Site(number, op.callee.data, place, source, self._effect(number), alone)

    def _effect(self, number: int) -> str:
        """In words: the fma that it becomes, the rounding that it loses, the flags that it gets."""
        from halfulp.compiler.numerics import contractions_of
        from halfulp.compiler.passes.contract_fma import ContractFmaPass
        from halfulp.compiler.passes.widen_small_floats import WidenSmallFloatsPass

        module = self._mixed((number,)).module
        WidenSmallFloatsPass(mode=self.baseline.bf16).apply(Context(), module)
        ContractFmaPass(mode=self.baseline.fp_contract, strategy=self.mode.strategy).apply(Context(), module)
        notes = contractions_of(module)
        if self.baseline.fp_contract != "fast" and notes:
            note = notes[0]
            origin = "" if note.product_location is None else f" of {note.product_location}"
            return f"it fuses with its operand {note.operand}, the {note.product}{origin}: one rounding instead of two"
        parts = []
        if self.mode.bf16 != self.baseline.bf16 and any(t.dtype.bits == 16 for t in self.ops[number].output_types):
            parts.append(f"its result is {'not ' if self.mode.bf16 == 'excess' else ''}rounded before the next op")
        if self.mode.fp_contract != self.baseline.fp_contract:
            parts.append(f"fp_contract is {self.mode.fp_contract} instead of {self.baseline.fp_contract}")
        if self.mode.fastmath != self.baseline.fastmath:
            parts.append(f"its fastmath flags are {', '.join(ordered_flags(self.mode.fastmath)) or 'none'}")
        return "; ".join(parts) or "it computes under the mode"


def _may_round(op: RegisteredOp) -> bool:
    if not any(t.dtype.is_float for t in (*op.argument_types, *op.output_types)):
        return False
    return not isinstance(op, ApplyOp) or find_op(op.callee.data, op.subject).kind not in ("view", "alias")
