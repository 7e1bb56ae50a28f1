"""A call on arrays: compiled through the executor that the runtime registers, or interpreted step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region

from halfulp.compiler import CompileOptions, DeviceRef, Graph, TensorType
from halfulp.compiler.device import HOST
from halfulp.compiler.errors import FailedCheckError
from halfulp.compiler.interpreter import interpret
from halfulp.compiler.interpreter.overlaps import OverlapDetector
from halfulp.compiler.interpreter.program_log import ProgramLog
from halfulp.compiler.registry import find_executor
from halfulp.compiler.tile_builder import EntryBuilder, Value

from .cache import Cache
from .call import place_of
from .emission import emit_call
from .errors import BlockIndexError, KernelCheckError, OverlapError, fault, program_text
from .fingerprint import sources_of
from .in_graph import call_in_graph, kernel_name
from .kernel_trace import ref_type
from .prepare import Prepared
from .specs import CompilerParams, InterpretParams, MemorySpace

Array = np.ndarray[Any, np.dtype[Any]]

loaded_calls: Cache[Callable[..., Sequence[Any]]] = Cache(256)


def call_on_arrays(prepared: Prepared, arrays: Sequence[Any]) -> list[Any]:
    """Runs a call on numpy arrays, Buffers and the like. The results are Buffers if an argument is one.

    Raises:
        BlockIndexError: a block or slice outside of its array, where bounds are checked.
        KernelCheckError: a ``pl.check`` did not hold.
        OverlapError: two programs touch one element and one of them writes it, where that is looked for.
    """
    call = prepared.call
    if call.interpret or call.debug == "trace":
        return interpreted(prepared, arrays)
    return CompiledCall(prepared, arrays).run(arrays)


class CompiledCall:
    """A call that is compiled for arrays of certain types and places; it may be run again as long as `is_current`."""

    def __init__(self, prepared: Prepared, arrays: Sequence[Any]) -> None:
        self._prepared = prepared
        self._loaded = _loaded_call(prepared, _common_place(prepared, arrays))
        maps = [block.index_map for block in prepared.mapping.block_mappings]
        self._sources = sources_of([prepared.call.kernel, *maps])

    def is_current(self) -> bool:
        """Whether kernel and index maps still read from their variables what they read when they were traced."""
        return self._sources is not None and self._sources.are_unchanged()

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """As `call_on_arrays`."""
        try:
            outputs = self._loaded(*arrays)
        except FailedCheckError as error:
            prepared = self._prepared
            _raise(prepared, error.message, _program(prepared, error.program), is_bounds=error.is_bounds)
        if any(not isinstance(array, np.ndarray) and hasattr(array, "to_numpy") for array in arrays):
            return list(outputs)
        return [output.to_numpy() for output in outputs]


def _program(prepared: Prepared, number: int) -> tuple[int, ...]:
    """The program id of a program that was counted row-major."""
    ids = []
    for size in reversed(prepared.mapping.static_grid):
        ids.append(number % size if size else number)
        number //= size or 1
    return tuple(reversed(ids))


def _raise(prepared: Prepared, message: str, program: tuple[int, ...], *, is_bounds: bool) -> NoReturn:
    own = program[prepared.mapping.batch_rank :]
    text = f"kernel {prepared.call.name!r}, {program_text(own)}: {message}"
    raise (BlockIndexError if is_bounds else KernelCheckError)(text, own)


def _options(prepared: Prepared) -> CompileOptions:
    params = prepared.call.params
    return CompileOptions(**params.compile_options, fastmath=params.fastmath)


def _common_place(prepared: Prepared, arrays: Sequence[Any]) -> Any:
    """The accelerator whose buffers are among the arguments; None if all are in host memory."""
    places = list(dict.fromkeys(place for array in arrays if (place := place_of(array)) is not None))
    if len(places) > 1:
        listed = " and ".join(map(repr, places))
        raise fault(
            f"kernel {prepared.call.name!r} is called on buffers of {listed}; move them to one device with .to()"
        )
    return places[0] if places else None


def _loaded_call(prepared: Prepared, place: Any = None) -> Callable[..., Sequence[Any]]:
    options = _options(prepared)
    device = DeviceRef.CPU() if place is None else DeviceRef.GPU(0)
    key = (kernel_name(prepared), options.key(), options.threads, place)
    return loaded_calls.get(key, lambda: find_executor("pl.pallas_call")(_graph(prepared, device), options, place))


def _graph(prepared: Prepared, device: DeviceRef = HOST) -> Graph:
    """A graph that does nothing but this call, on ``device``."""
    types = [
        TensorType(m.dtype, m.shape, HOST if m.memory_space is MemorySpace.HOST else device)
        for m in prepared.mapping.inputs
    ]
    inside = replace(prepared, call=replace(prepared.call, params=CompilerParams()))
    with Graph(prepared.call.name, input_types=types) as graph:
        graph.output(*call_in_graph(inside, graph.inputs))
    return graph


# -- interpreted


def entry_module(prepared: Prepared) -> ModuleOp:
    """The call as a module of tile IR: an entry function on inputs and outputs, and the kernels it launches."""
    blocks = prepared.mapping.inputs
    types = [ref_type(block.shape, block.dtype) for block in blocks]
    types += [ref_type(output.shape, output.dtype) for output in prepared.output_types]
    module, block = ModuleOp([]), Block(arg_types=types)
    function = FuncOp("main", (types, []), Region(block))
    entry = EntryBuilder(module, function)
    entry.fp_contract = _options(prepared).fp_contract
    arguments = [Value(entry, argument) for argument in block.args]
    count = len(blocks)
    emit_call(entry, prepared.plan, arguments[:count], arguments[count:])
    entry.finish()
    module.body.block.add_op(function)
    return module


def interpreted(prepared: Prepared, arrays: Sequence[Any]) -> list[Any]:
    """Runs a call step by step; the results are numpy arrays.

    Raises:
        BlockIndexError, KernelCheckError, OverlapError: as `call_on_arrays`.
    """
    call = prepared.call
    inputs = [np.array(array) for array in arrays]
    outputs = [np.zeros(tuple(map(int, t.shape)), t.dtype.to_numpy()) for t in prepared.output_types]
    flat = [array.reshape(array.shape or (1,)) for array in (*inputs, *outputs)]
    detector = _detector(prepared)
    log = ProgramLog() if call.debug == "trace" else None
    observers = [observer for observer in (detector, log) if observer is not None]
    result = interpret(entry_module(prepared), "main", flat, observers=observers)
    if result.failed is not None:
        _raise(prepared, result.failed.message, result.failed.program or (), is_bounds=result.failed.is_bounds)
    if detector is not None and detector.found is not None:
        raise OverlapError(f"kernel {call.name!r}: {detector.found}")
    for printed in result.printed:
        print(printed.line)
    return list(outputs)


def _detector(prepared: Prepared) -> OverlapDetector | None:
    params = prepared.call.interpret
    if not isinstance(params, InterpretParams) or not params.detect_overlaps:
        return None
    words = prepared.call.params.dimension_semantics or ()
    ordered = [prepared.mapping.batch_rank + axis for axis, word in enumerate(words) if word == "arbitrary"]
    names = [repr(name) for name in prepared.names[: len(prepared.mapping.block_mappings)]]
    return OverlapDetector(prepared.plan.kernel.op.sym_name.data, names, ordered)
