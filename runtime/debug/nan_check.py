"""``session.debug.nan_check``: which op made the first NaN or infinity, in the order of the program.

An op made it if its result has one and none of its operands has: NaN out of no NaN, an infinity out of neither. What an
op does beyond that cannot be told apart, so one that makes an infinity beside one that it was given counts as
passing on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from halfulp.compiler.device import DeviceRef
from halfulp.compiler.errors import SourceLocation
from halfulp.compiler.graph import Graph
from halfulp.compiler.options import CompileOptions

from ..arrays import shape_text
from ..buffer import Buffer
from ..device import Device
from ..errors import NanCheckError
from ..loading import load_graph
from ..memory import Array
from ..native_model import NativeModel
from ..offload.loading import compile_for_devices
from ..offload.model import DeviceModel
from ..printing import PrintedExecution, Printer
from .options import DebugOptions
from .watching import SHOWN, WATCHED, Watched, WatchedGraph, watch

PIECE = 1 << 20
"""Elements that are looked at together: what this needs memory for."""

Kind = Literal["NaN", "inf"]


@dataclass(frozen=True)
class NonFinite:
    """The NaN and the infinities of a value. ``first`` is the index of the first, ``value`` what is there."""

    nan_count: int
    inf_count: int
    first: tuple[int, ...]
    value: float
    dtype: str
    shape: tuple[int, ...]

    @property
    def counts(self) -> str:
        """``2 NaN and 1 inf``."""
        return f"{self.nan_count} NaN and {self.inf_count} inf"

    def has(self, kind: Kind) -> bool:
        """Whether there is one of the kind."""
        return bool(self.nan_count if kind == "NaN" else self.inf_count)


def non_finite(array: Array, allow_inf: bool = False) -> NonFinite | None:
    """What is not finite in an array of floats; None if all is. ``allow_inf``: ``first`` is a NaN if there is one."""
    flat = array.reshape(-1)
    nan_count = inf_count = 0
    first: int | None = None
    first_nan: int | None = None
    for start in range(0, flat.size, PIECE):
        piece = flat[start : start + PIECE]
        finite = np.isfinite(piece)
        if finite.all():
            continue
        is_nan = np.isnan(piece)
        nans = int(np.count_nonzero(is_nan))
        nan_count += nans
        inf_count += int(np.count_nonzero(~finite)) - nans
        if first is None:
            first = start + int(np.argmin(finite))
        if first_nan is None and nans:
            first_nan = start + int(np.argmax(is_nan))
    if allow_inf and first_nan is not None:
        first = first_nan
    if first is None:
        return None
    index = tuple(int(i) for i in np.unravel_index(first, array.shape))
    return NonFinite(nan_count, inf_count, index, float(flat[first]), array.dtype.name, array.shape)


class CheckedModel(NativeModel):
    """A model that runs op by op and looks at every value. Outputs and prints are those of the plain model."""

    def __init__(
        self,
        graph: Graph,
        options: CompileOptions,
        weights: Mapping[str, Array],
        printer: Printer,
        debug: DebugOptions,
    ) -> None:
        """The graph is compiled under ``options``; ``weights`` are bound already."""
        watched = watch(graph)
        loaded = load_graph(watched.graph, options)
        super().__init__(loaded.compiled, loaded.code, weights, printer)
        self._watched = watched
        self._debug_options = debug

    def _print_target(self) -> NanCheck:
        return NanCheck(self.name, self._watched, self._debug_options.allow_inf, self._printer.start())


class CheckedDeviceModel(DeviceModel):
    """The same on accelerators."""

    def __init__(
        self,
        graph: Graph,
        options: CompileOptions,
        devices: Mapping[DeviceRef, Device],
        weights: Mapping[str, Buffer],
        printer: Printer,
        debug: DebugOptions,
    ) -> None:
        watched = watch(graph)
        super().__init__(compile_for_devices(watched.graph, options, devices), devices, weights, printer)
        self._watched = watched
        self._debug_options = debug

    def _print_target(self) -> NanCheck:
        return NanCheck(self.name, self._watched, self._debug_options.allow_inf, self._printer.start())


class NanCheck:
    """One execution: what its values hold, and what was found first. Takes what the model prints."""

    def __init__(self, model: str, watched: WatchedGraph, allow_inf: bool, shown: PrintedExecution | None) -> None:
        """``shown`` takes what the graph itself prints."""
        self._model = model
        self._watched = watched
        self._allow_inf = allow_inf
        self._shown = shown
        self._found: dict[int, NonFinite] = {}  # by number; only values that hold any
        self._origins: dict[tuple[Kind, int], int] = {}  # the number of the value in which it appeared first
        self._runs = [0] * len(watched.values)
        self._finding: _Finding | None = None

    def tensor(self, label: str, array: Array) -> None:
        """Looks at a watched value; shows what the graph prints."""
        if label.startswith(WATCHED):
            self._look(int(label.removeprefix(WATCHED)), array)
        elif self._shown is not None:
            self._shown.tensor(label.removeprefix(SHOWN), array)

    def line(self, text: str) -> None:
        """Shows a line of text."""
        if self._shown is not None:
            self._shown.line(text)

    def finish(self) -> None:
        """Writes what the graph printed; raises NanCheckError if something was found."""
        if self._shown is not None:
            self._shown.finish()
        finding = self._finding or self._passed_through()
        if finding is not None:
            raise self._error(finding)

    def _look(self, number: int, array: Array) -> None:
        self._runs[number] += 1
        self._found.pop(number, None)  # of the round before
        found = non_finite(array, self._allow_inf)
        if found is None:
            return
        self._found[number] = found
        value = self._watched.values[number]
        nan_made = found.has("NaN") and self._trace("NaN", number, value)
        inf_made = found.has("inf") and self._trace("inf", number, value)
        if self._finding is not None or not value.computes:
            return
        if nan_made or (inf_made and not self._allow_inf):
            self._finding = _Finding(number, number, found, self._operands_text(value), self._runs[number])
        elif found.has("NaN"):
            # No op has made one so far: it came with an input, a weight or a constant.
            source = self._origins["NaN", number]
            self._finding = _Finding(source, number, self._found[source], "", self._runs[number])

    def _trace(self, kind: Kind, number: int, value: Watched) -> bool:
        """Whether it appeared here; notes where it came from."""
        causes: tuple[Kind, ...] = ("NaN",) if kind == "NaN" else ("inf", "NaN")
        for cause in causes:
            for operand in value.operands:
                held = self._found.get(operand.number)
                if held is not None and held.has(cause):
                    self._origins[kind, number] = self._origins[cause, operand.number]
                    return False
        self._origins[kind, number] = number
        return True

    def _operands_text(self, value: Watched) -> str:
        held = [
            f"operand {operand.name} holds {found.counts}, the first at {list(found.first)}"
            for operand in dict.fromkeys(value.operands)
            if (found := self._found.get(operand.number)) is not None
        ]
        return "; ".join(held) or ("its operands hold neither" if value.operands else "")

    def _passed_through(self) -> _Finding | None:
        """A NaN of an input that is an output as it is: no op had it."""
        for number in self._watched.outputs:
            found = None if number is None else self._found.get(number)
            if number is not None and found is not None and found.has("NaN"):
                source = self._origins["NaN", number]
                return _Finding(source, None, self._found[source], "", 1)
        return None

    def _error(self, finding: _Finding) -> NanCheckError:
        values, found = self._watched.values, finding.found
        source = values[finding.source]
        op = None if finding.op is None else values[finding.op]
        where = f"{found.dtype} {shape_text(found.shape)}"
        first = f"the first, {found.value}, at {list(found.first)} of"
        if source is op:
            text = f"{source.subject} made {found.counts}, {first} its result {where}"
        else:
            text = f"{source.subject} holds {found.counts}, {first} {where}"
            text += "" if op is None else f"; {op.subject} is the first to pass on NaN"
        if finding.run > 1:
            text += f", when it ran for the {_ordinal(finding.run)} time"
        if finding.operands:
            text += f"; {finding.operands}"
        if not found.nan_count:
            text += "; session.debug.allow_inf = True lets infinities pass"
        return NanCheckError(
            f"model '{self._model}': {text}",
            source.location if op is None else op.location,
            op=None if op is None else op.subject.removeprefix("op '").removesuffix("'"),
            subject=source.subject,
            nan_count=found.nan_count,
            inf_count=found.inf_count,
            index=found.first,
            shape=found.shape,
            outputs=tuple(self._output_lines()),
        )

    def _output_lines(self) -> list[str]:
        lines = []
        for index, number in enumerate(self._watched.outputs):
            found = None if number is None else self._found.get(number)
            if number is None or found is None:
                continue
            kind: Kind = "NaN" if found.nan_count else "inf"
            source = self._watched.values[self._origins[kind, number]]
            lines.append(f"output {index} holds {found.counts}, from {source.subject}{_place(source.location)}")
        return lines


@dataclass(frozen=True)
class _Finding:
    """``source`` is the value in which it appeared, ``op`` the first op whose result has it; by number."""

    source: int
    op: int | None
    found: NonFinite
    operands: str
    run: int


def _place(location: SourceLocation | None) -> str:
    return "" if location is None else f" at {location}"


def _ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
