"""Arrays of a function that is registered as an op: while it runs, each `pallas_call` in it becomes a launch.

The function computes nothing. It is called once for each use of the op, when a graph is compiled, with an `OpArray` for
each operand; it passes them to `pallas_call`, which emits the launch and returns an `OpArray` for each output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType
from xdsl.rewriter import Rewriter

from halfulp.compiler import DType, GraphTypeError, StaticDim, TensorType
from halfulp.compiler.dialects import tile
from halfulp.compiler.kernel_call import KernelCall
from halfulp.compiler.passes.graph_to_tile.copies import emit_copy
from halfulp.compiler.passes.graph_to_tile.entry import dim_texts
from halfulp.compiler.tile_builder import EntryBuilder, Value
from halfulp.compiler.types import shape_text

from . import tree
from .emission import emit_call
from .errors import fault
from .op_scalar import OpScalar
from .prepare import Prepared


class OpArray:
    """An operand of the op, or what one of its kernels has computed: a type, and the memory that will hold it.

    ``x.shape`` has ints and `Dim`, ``x[i]`` is an element as an `OpScalar`, if the array holds integers.
    """

    def __init__(self, build: OpBuild, tensor: TensorType, memory: Value, *, mutable: bool = False) -> None:
        self.type = tensor
        self.memory = memory
        self.mutable = mutable
        self._build = build

    @property
    def shape(self) -> tuple[Any, ...]:
        """The size of each axis; an int where it is known while the graph is built."""
        return tuple(int(size) if isinstance(size, StaticDim) else size for size in self.type.shape)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.type.rank

    def __getitem__(self, index: Any) -> OpScalar:
        """The element at ``index``, read before the next kernel runs; outside of the array it is 0."""
        indices = index if isinstance(index, tuple) else (index,)
        if not self.dtype.is_integral or len(indices) != self.ndim:
            raise fault(
                f"{self!r}[{index!r}]: reads one integer, with an index for each axis; compute the rest in a kernel",
                GraphTypeError,
            )
        entry = self._build.entry
        places = [self._place(axis, at) for axis, at in enumerate(indices)] or [0]
        read = entry.read(self.memory, *places)
        return OpScalar(entry.cast(read, IndexType(), unsigned_source=self.dtype.kind == "unsigned"))

    def _place(self, axis: int, index: Any) -> Value | int:
        if isinstance(index, OpScalar):
            return index.value
        if isinstance(index, bool) or not isinstance(index, int | np.integer):
            raise fault(
                f"{self!r}[...]: an index must be an int or an integer of the op, not {index!r}", GraphTypeError
            )
        entry = self._build.entry
        return int(index) if index >= 0 else entry.dim(self.memory, axis) + int(index)

    def __repr__(self) -> str:
        return f"an array of type {self.dtype}{shape_text(self.type.shape)}"


class OpBuild:
    """One use of an op while its function runs.

    Attributes:
        name: of the op; its kernels are named after it.
        entry: where the launches go.
    """

    def __init__(self, name: str, entry: EntryBuilder) -> None:
        self.name = name
        self.entry = entry
        self._made: list[OpArray] = []

    def array(self, tensor: TensorType, memory: Value, *, mutable: bool = False) -> OpArray:
        """An operand; ``mutable``: kernels change the caller's memory, not a copy."""
        return OpArray(self, tensor, memory, mutable=mutable)

    def _new(self, tensor: TensorType) -> OpArray:
        made = self.array(tensor, self.entry.buffer(dim_texts(tensor), tensor.dtype.to_element_type()))
        self._made.append(made)
        return made

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside the ``with``, `pallas_call` emits launches here."""
        token = _builds.set((*_builds.get(), self))
        try:
            yield
        finally:
            _builds.reset(token)

    def call(self, prepared: Prepared, operands: Sequence[Any]) -> list[OpArray]:
        """Launches a kernel.

        Raises:
            GraphError: options that belong to the graph.
            GraphTypeError: an operand that is no array of the op.
        """
        call = prepared.call
        for number, operand in enumerate(operands):
            if not isinstance(operand, OpArray):
                raise fault(
                    f"op {self.name!r}: kernel {call.name!r} takes arrays of the op, but args[{number}] is "
                    f"{operand!r}; make it an operand or a parameter of the op",
                    GraphTypeError,
                )
        if call.params.compile_options or call.params.fastmath:
            raise fault(
                f"op {self.name!r}: compiler_params of kernel {call.name!r} may hold dimension_semantics only; the "
                "rest belongs to the graph that calls the op"
            )
        outputs = [self._new(t) for t in prepared.output_types]
        memory = [array.memory for array in operands], [array.memory for array in outputs]
        in_place = [number for number, array in enumerate(operands) if array.mutable]
        for number in prepared.plan.kernel.written.intersection(in_place):
            if list(operands).count(operands[number]) > 1:
                raise fault(
                    f"op {self.name!r}: kernel {call.name!r} writes to args[{number}], which is another of its "
                    "operands, too, and no copy, since it is mutable; pass it once"
                )
        prefix = "" if call.name == self.name else self.name
        emit_call(self.entry, prepared.plan, *memory, prefix=prefix, in_place=in_place)
        return outputs

    def finish(self, returned: Any, call: KernelCall, outputs: Sequence[Value]) -> None:
        """What the function returned goes to the outputs of the op: the memory of a result becomes theirs.

        Raises:
            GraphError: another number of arrays, or one of another type.
            GraphTypeError: something else than arrays of the op.
        """
        results = [returned] if isinstance(returned, OpArray) else tree.leaves(returned)
        names = [output.name for output in call.kernel.outputs]
        if not all(isinstance(result, OpArray) for result in results):
            raise fault(f"op {self.name!r} must return arrays of the op, not {returned!r}", GraphTypeError)
        if len(results) != len(outputs):
            raise fault(f"op {self.name!r} returns {len(results)} arrays for its outputs {', '.join(names)}")
        for name, wanted, result, output in zip(names, _output_types(call), results, outputs, strict=True):
            if (result.dtype, result.type.shape) != (wanted.dtype, wanted.shape):
                raise fault(
                    f"op {self.name!r} returns {result!r} as output {name!r}, which is declared as "
                    f"{wanted.dtype}{shape_text(wanted.shape)}"
                )
            self._place_result(result, output)

    def _place_result(self, result: OpArray, output: Value) -> None:
        buffer = result.memory.ssa
        made = buffer.owner
        if result not in self._made or buffer.type != output.type:  # an operand, or returned before; or a stated size
            emit_copy(self.entry, result.memory, output)
            return
        self._made.remove(result)
        assert isinstance(made, tile.BufferOp)
        buffer.replace_all_uses_with(output.ssa)
        Rewriter.erase_op(made)
        result.memory = output


def _output_types(call: KernelCall) -> Iterator[TensorType]:
    """The types of the outputs, each computed size under the first name that the caller has given it."""
    for spec, given in zip(call.kernel.outputs, call.outputs, strict=True):
        patterns = given.shape if spec.shape is None else spec.shape
        pairs = zip(patterns, given.shape, strict=True)
        sizes = [call.computed[p][0] if isinstance(p, str) and p in call.computed else n for p, n in pairs]
        yield TensorType(given.dtype, sizes, given.device)


_builds: ContextVar[tuple[OpBuild, ...]] = ContextVar("_builds", default=())


def current_build() -> OpBuild | None:
    """The op whose function is running."""
    builds = _builds.get()
    return builds[-1] if builds else None
