"""`Model`: a compiled graph, ready to run; what is the same wherever it runs."""

from __future__ import annotations

import operator
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, SupportsIndex

from halfulp.compiler.artifact import BufferRole, BufferSpec, CompiledGraph
from halfulp.compiler.device import HOST, DeviceRef
from halfulp.compiler.dims import Dim, StaticDim
from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import GraphError
from halfulp.compiler.numerics import Contraction
from halfulp.compiler.options import CompileOptions

from .arguments import check_count, positional
from .arrays import shape_text
from .binding import ShapePlan
from .buffer import Buffer
from .cpu_count import default_threads
from .memory_report import MemoryReport, memory_report
from .print_callback import FinishedTarget
from .printing import Printer

if TYPE_CHECKING:
    from halfulp.compiler.ptx_artifact import CompiledPtx

    from .debug.options import DebugOptions

CACHED_LAYOUTS = 128
"""Layouts kept per model; the least recently used goes. Each takes about a kilobyte."""


@dataclass(frozen=True)
class TensorMetadata:
    """An input or output of a model. ``shape`` has None for sizes that change from call to call, ``dims`` all names.

    ``device`` is the one that the graph names.
    """

    name: str
    dtype: DType
    shape: tuple[int | None, ...]
    dims: tuple[Dim, ...]
    device: DeviceRef = HOST


class Model(ABC):
    """A compiled graph with its weights. Made by `halfulp.runtime.InferenceSession.load`.

    Several threads may call one model at once: nothing that an execution writes is shared.

    Args:
        compiled: what the compiler made.
        printer: writes what the graph prints; a printer of the session, by default one with the default style.
        debug: the options of the session, which are looked at before each execution.
        checked: makes the model that runs instead under ``debug.nan_check``, when it is first needed.
    """

    def __init__(
        self,
        compiled: CompiledGraph | CompiledPtx,
        printer: Printer | None = None,
        debug: DebugOptions | None = None,
        checked: Callable[[], Model] | None = None,
    ) -> None:
        self._compiled = compiled
        self._metadata = {
            role: [_metadata(spec) for spec in compiled.role(role)] for role in (BufferRole.INPUT, BufferRole.OUTPUT)
        }
        self._changes_inputs = any(spec.mutable for spec in compiled.role(BufferRole.INPUT))
        self._input_names = tuple(spec.name for spec in compiled.role(BufferRole.INPUT))
        self._output_count = len(compiled.role(BufferRole.OUTPUT))
        self._printer = printer or Printer()
        self._debug = debug
        self._make_checked = checked
        self._checked: Model | None = None
        self._plan = ShapePlan(compiled)
        self._start = lru_cache(CACHED_LAYOUTS)(self._plan.start)
        self._threads = compiled.options.threads or default_threads()

    @property
    def name(self) -> str:
        """The name of the graph."""
        return self._compiled.name

    @property
    def options(self) -> CompileOptions:
        """The options that the graph was compiled with, defaults and environment filled in."""
        return self._compiled.options

    def numerics_report(self) -> list[Contraction]:
        """Every product and sum of the graph that became one fma, in the order of the graph.

        Empty under ``strategy="llvm"``, where LLVM decides later on. ``print(*model.numerics_report(), sep="\\n")``
        shows one line for each: where it is, what was fused, and the flags.
        """
        return list(self._compiled.contractions)

    @property
    def input_metadata(self) -> list[TensorMetadata]:
        """Name, type and shape of each input, in order."""
        return list(self._metadata[BufferRole.INPUT])

    @property
    def output_metadata(self) -> list[TensorMetadata]:
        """Name, type and shape of each output, in order."""
        return list(self._metadata[BufferRole.OUTPUT])

    def memory_report(self, *shapes: Iterable[SupportsIndex], **dims: int) -> MemoryReport:
        """What an execution needs memory for, and when. ``print(model.memory_report((8, 128)))`` shows a table.

        Args:
            shapes: the shape of each input, in order. They may be left out if all inputs have static shapes.
            dims: the dims that the graph computes from data, by name; what depends on others is left out.

        Raises:
            GraphTypeError: the number of shapes is wrong.
            ExecutionError: a rank or size is wrong, or symbolic dimensions disagree.
        """
        given = [tuple(map(operator.index, shape)) for shape in shapes]
        if not given and all(None not in m.shape for m in self._metadata[BufferRole.INPUT]):
            given = [tuple(map(int, m.dims)) for m in self._metadata[BufferRole.INPUT]]
        check_count(self.name, self._input_names, len(given))
        return memory_report(self._compiled, self._plan, given, dims, self._threads)

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the compiled code to a file for `InferenceSession.load_compiled`.

        Weights are not part of it. A file that exists is replaced, all at once.

        Raises:
            GraphError: the model is for an accelerator.
            OSError: the file cannot be written.
        """

    def __call__(self, *arguments: Any, **keywords: Any) -> list[Buffer]:
        """`execute`, with inputs by position or by name."""
        if keywords:
            arguments = tuple(positional(self.name, self._input_names, arguments, keywords))
        return self.execute(*arguments)

    @abstractmethod
    def execute(self, *arguments: Any) -> list[Buffer]:
        """Run the model.

        Args:
            arguments: for each input a `Buffer`, a numpy array, or an object with DLPack or ``__array__``, of exactly
                the input's type. It is read in place where native code can, and written only if the input is a
                buffer (`halfulp.compiler.BufferType`). An input on an accelerator takes a `Buffer` that is there.

        Returns:
            The outputs: new buffers that share memory with nothing else.

        Raises:
            GraphTypeError: the number of arguments, or the type or device of one, is wrong.
            ExecutionError: a rank or size is wrong, symbolic dimensions disagree, or a check in a kernel failed.
            MemoryError: the system refuses the memory of an output or of the intermediate results.
            NanCheckError: under ``session.debug.nan_check``, an op made a NaN or an infinity.
            OSError: what the graph prints cannot be written.

        What the graph prints as text is written to ``sys.stdout`` when the execution is over, in the order of the
        program; nothing of it if the execution fails. What it prints into files is written while it runs.
        """

    def _checked_model(self) -> Model:
        if self._checked is None:
            if self._make_checked is None:
                raise GraphError(
                    f"model '{self.name}': nan_check needs the graph, and this model was loaded from compiled code; "
                    "load the graph instead, or set session.debug.nan_check = False"
                )
            self._checked = self._make_checked()
        return self._checked

    def _print_target(self) -> FinishedTarget | None:
        """What takes the prints of an execution; None if nothing is to be printed."""
        return self._printer.start()

    def __repr__(self) -> str:
        inputs = ", ".join(f"{m.name}: {m.dtype} {shape_text(m.dims)}" for m in self.input_metadata)
        outputs = ", ".join(f"{m.dtype} {shape_text(m.dims)}" for m in self.output_metadata)
        return f"Model({self.name}: ({inputs}) -> ({outputs}))"


def _metadata(spec: BufferSpec) -> TensorMetadata:
    shape = tuple(int(dim) if isinstance(dim, StaticDim) else None for dim in spec.shape)
    return TensorMetadata(spec.name, spec.dtype, shape, spec.shape, spec.device)
