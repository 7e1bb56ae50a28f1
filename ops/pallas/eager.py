"""A call on arrays: compiled through the executor that the runtime registers, or interpreted step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region

from halfulp.compiler import CompileOptions, Graph
from halfulp.compiler.errors import FailedCheckError
from halfulp.compiler.interpreter import interpret
from halfulp.compiler.interpreter.overlaps import OverlapDetector
from halfulp.compiler.interpreter.program_log import ProgramLog
from halfulp.compiler.registry import find_executor
from halfulp.compiler.tile_builder import EntryBuilder, Value

from .cache import Cache
from .emission import emit_call
from .errors import BlockIndexError, KernelCheckError, OverlapError, program_text
from .in_graph import build_custom, kernel_name
from .indexing import OUT_OF_BOUNDS
from .kernel_trace import ref_type
from .prepare import Prepared
from .printing import printed_lines
from .specs import InterpretParams

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
    return _compiled(prepared, arrays)


def _compiled(prepared: Prepared, arrays: Sequence[Any]) -> list[Any]:
    wants_buffers = any(not isinstance(array, np.ndarray) and hasattr(array, "to_numpy") for array in arrays)
    run = _loaded_call(prepared)
    try:
        outputs = run(*arrays)
    except FailedCheckError as error:
        _raise(prepared, error.message, _program(prepared, error.program))
    results = _without_log(prepared, list(outputs))
    return results if wants_buffers else [output.to_numpy() for output in results]


def _without_log(prepared: Prepared, outputs: list[Any]) -> list[Any]:
    """The outputs of the kernel; what it printed is printed."""
    sites = prepared.plan.kernel.prints
    if not sites:
        return outputs
    *results, log = outputs
    for line in printed_lines(np.asarray(log), sites):
        print(line)
    return results


def _program(prepared: Prepared, number: int) -> tuple[int, ...]:
    """The program id of a program that was counted row-major."""
    ids = []
    for size in reversed(prepared.mapping.static_grid):
        ids.append(number % size if size else number)
        number //= size or 1
    return tuple(reversed(ids))


def _raise(prepared: Prepared, message: str, program: tuple[int, ...]) -> NoReturn:
    own = program[prepared.mapping.batch_rank :]
    text = f"kernel {prepared.call.name!r}, {program_text(own)}: {message}"
    raise (BlockIndexError if message.startswith(OUT_OF_BOUNDS) else KernelCheckError)(text, own)


def _options(prepared: Prepared) -> CompileOptions:
    params = prepared.call.params
    return CompileOptions(**params.compile_options, fastmath=params.fastmath)


def _loaded_call(prepared: Prepared) -> Callable[..., Sequence[Any]]:
    options = _options(prepared)
    key = (kernel_name(prepared), options.key(), options.threads)
    return loaded_calls.get(key, lambda: find_executor("pl.pallas_call")(_graph(prepared), options))


def _graph(prepared: Prepared) -> Graph:
    """A graph that does nothing but this call."""
    from dataclasses import replace

    from halfulp.compiler import TensorType

    from .specs import CompilerParams

    types = [TensorType(m.dtype, m.shape) for m in prepared.mapping.inputs]
    inside = replace(prepared, call=replace(prepared.call, params=CompilerParams()))
    with Graph(prepared.call.name, input_types=types) as graph:
        graph.output(*build_custom(inside, graph.inputs))
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
        _raise(prepared, result.failed.message, result.failed.program or ())
    if detector is not None and detector.found is not None:
        raise OverlapError(f"kernel {call.name!r}: {detector.found}")
    return _without_log(prepared, outputs)


def _detector(prepared: Prepared) -> OverlapDetector | None:
    params = prepared.call.interpret
    if not isinstance(params, InterpretParams) or not params.detect_overlaps:
        return None
    words = prepared.call.params.dimension_semantics or ()
    ordered = [prepared.mapping.batch_rank + axis for axis, word in enumerate(words) if word == "arbitrary"]
    names = [repr(name) for name in prepared.names[: len(prepared.mapping.block_mappings)]]
    return OverlapDetector(prepared.plan.kernel.op.sym_name.data, names, ordered)
