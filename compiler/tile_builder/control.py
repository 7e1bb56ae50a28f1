"""Structured control flow and kernels for the tile builder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from xdsl.builder import Builder
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region
from xdsl.rewriter import InsertPoint

from ..device import DeviceRef
from ..dialects import tile
from ..dialects.tile.types import RefType
from ..dtypes import DType
from .builder import TileBuilder
from .value import Value

Values = Sequence[Value]


class ControlBuilder(TileBuilder):
    """A tile builder with loops and branches; their bodies are Python functions called once."""

    @contextmanager
    def at(self, block: Block) -> Iterator[None]:
        """Builds at the end of ``block`` inside the ``with``."""
        self._builders.append(Builder(InsertPoint.at_end(block)))
        try:
            yield
        finally:
            self._builders.pop()

    def _region(self, types: Sequence[Attribute], body: Callable[[list[Value]], None]) -> Region:
        block = Block(arg_types=types)
        with self.at(block):
            body([Value(self, arg) for arg in block.args])
        return Region(block)

    def _results(self, op: scf.ForOp | scf.WhileOp | scf.IfOp) -> list[Value]:
        self.insert(op)
        return [Value(self, result) for result in op.results]

    def for_loop(
        self,
        lower: Value | int,
        upper: Value | int,
        carried: Values,
        body: Callable[..., Values | None],
        step: Value | int = 1,
    ) -> list[Value]:
        """``body(i, *carried)`` returns the next carried values; the result is what the last round returned."""
        index = IndexType()
        first, last, stride = (self.value(bound, index).ssa for bound in (lower, upper, step))

        def build(arguments: list[Value]) -> None:
            self.insert(scf.YieldOp(*[value.ssa for value in body(*arguments) or ()]))

        region = self._region([index, *[value.type for value in carried]], build)
        return self._results(scf.ForOp(first, last, stride, [value.ssa for value in carried], region))

    def while_loop(
        self,
        carried: Values,
        condition: Callable[..., Value],
        body: Callable[..., Values],
    ) -> list[Value]:
        """``while condition(*carried): carried = body(*carried)``."""
        types = [value.type for value in carried]

        def before(arguments: list[Value]) -> None:
            self.insert(scf.ConditionOp(condition(*arguments).ssa, *[value.ssa for value in arguments]))

        def after(arguments: list[Value]) -> None:
            self.insert(scf.YieldOp(*[value.ssa for value in body(*arguments)]))

        regions = self._region(types, before), self._region(types, after)
        return self._results(scf.WhileOp([value.ssa for value in carried], types, *regions))

    def if_(
        self,
        condition: Value,
        then: Callable[[], Values | None],
        otherwise: Callable[[], Values | None] | None = None,
    ) -> list[Value]:
        """The values of the branch taken; both branches give the same types."""
        yielded: list[Value] = []

        def branch(function: Callable[[], Values | None]) -> Region:
            def build(_: list[Value]) -> None:
                yielded[:] = function() or ()
                self.insert(scf.YieldOp(*[value.ssa for value in yielded]))

            return self._region([], build)

        then_region = branch(then)
        types = [value.type for value in yielded]
        else_region = branch(otherwise or (lambda: ()))
        return self._results(scf.IfOp(condition.ssa, types, then_region, else_region))


class KernelBuilder(ControlBuilder):
    """Builds the body of one ``kernel``; ``arguments``, ``program_ids`` and ``grid_sizes`` are its values."""

    def __init__(self, kernel: tile.KernelOp) -> None:
        super().__init__(kernel.body.block)
        self.kernel = kernel
        self.arguments = [Value(self, arg) for arg in kernel.arguments]
        self.program_ids = [Value(self, arg) for arg in kernel.program_ids]
        self.grid_sizes = [Value(self, arg) for arg in kernel.grid_sizes]


class EntryBuilder(ControlBuilder):
    """Builds the entry function of a graph and the kernels that it launches."""

    def __init__(self, module: ModuleOp, entry: FuncOp, names: set[str] | None = None) -> None:
        """``names`` are the symbols that a kernel must not take; it takes in those of the kernels built here."""
        super().__init__(entry.body.block)
        self.module = module
        self.device = DeviceRef.CPU()  # of the op being lowered: where the memory between its kernels lies
        self._names = set() if names is None else names

    def buffer(self, shape: Sequence[str], element: Attribute, device: DeviceRef | None = None) -> Value:
        """Memory between kernels; ``shape`` holds symbolic dims or numbers as text, None is the device of now."""
        extents = [int(text) if text.isdecimal() else tile.DYNAMIC for text in shape]
        op, where = tile.BufferOp(shape, RefType(extents, element)), device or self.device
        if not where.is_host:
            op.attributes[tile.DEVICE] = StringAttr(str(where))
        return self._emit(op)

    def transfer(self, source: Value, target: Value) -> None:
        """Copies a buffer to one on another device."""
        self.insert(tile.TransferOp(source.ssa, target.ssa))

    def set_dim(self, symbol: str, value: Value) -> None:
        """Gives the symbolic dim ``symbol`` its value (index) from data."""
        self.insert(tile.SetDimOp(symbol, value.ssa))

    def print_tensor(self, ref: Value, label: str, dtype: DType, *, is_scalar: bool = False) -> None:
        """Shows a whole buffer under a label (see ``tile.print_tensor``)."""
        self.insert(tile.PrintTensorOp(ref.ssa, label, dtype, is_scalar=is_scalar))

    def launch(
        self,
        name: str,
        arguments: Values,
        grid: Values,
        body: Callable[[KernelBuilder], None],
        *,
        axes: Sequence[str] | None = None,
    ) -> None:
        """Builds a kernel with ``body`` and launches it over ``grid``; axes are parallel unless said otherwise."""
        kernel = tile.KernelOp(
            self._unique(name), [value.type for value in arguments], axes or [tile.PARALLEL] * len(grid)
        )
        builder = KernelBuilder(kernel)
        builder.fastmath, builder.fp_contract = self.fastmath, self.fp_contract
        body(builder)
        builder.insert(tile.ReturnOp())
        self._launch(kernel, arguments, grid)

    def launch_kernel(self, kernel: tile.KernelOp, arguments: Values, grid: Values) -> None:
        """Launches a kernel that is built already; it gets a name that no other has."""
        kernel.sym_name = StringAttr(self._unique(kernel.sym_name.data))
        self._launch(kernel, arguments, grid)

    def _unique(self, name: str) -> str:
        unique, count = name, 1
        while unique in self._names:
            count += 1
            unique = f"{name}_{count}"
        self._names.add(unique)
        return unique

    def _launch(self, kernel: tile.KernelOp, arguments: Values, grid: Values) -> None:
        self.module.body.block.add_op(kernel)
        name = kernel.sym_name.data
        self.insert(tile.LaunchOp(name, [size.ssa for size in grid], [value.ssa for value in arguments]))

    def finish(self) -> None:
        """Ends the entry function."""
        self.insert(ReturnOp())
