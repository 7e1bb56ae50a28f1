"""`InferenceSession`: compiles graphs and loads them for the devices of this machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from halfulp.compiler.artifact import BufferRole
from halfulp.compiler.errors import GraphTypeError
from halfulp.compiler.options import CompileOptions

from .device import CPU, Device
from .loader import NativeLibrary
from .model import Model
from .weights import bind_weights

if TYPE_CHECKING:
    from halfulp.compiler.graph import Graph


class InferenceSession:
    """The devices to run on, and the way from a graph to a `Model`.

    Args:
        devices: what models may use. The host always belongs to it.

    Raises:
        GraphTypeError: something in ``devices`` is not a device.

    Example::

        session = InferenceSession(devices=[CPU()])
        model = session.load(graph, options=CompileOptions(fp_contract="fast"))
        (y,) = model.execute(x)
    """

    def __init__(self, devices: Iterable[Device] = (CPU(),)) -> None:
        chosen = list(devices)
        for device in chosen:
            if not isinstance(device, Device):
                raise GraphTypeError(f"InferenceSession(devices=...) takes devices such as CPU(), not {device!r}")
        # each device once, in the order given
        self._devices = tuple(dict.fromkeys([*chosen, CPU()]))

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices, the host included."""
        return self._devices

    def load(
        self,
        graph: Graph,
        options: CompileOptions | None = None,
        weights_registry: Mapping[str, Any] | None = None,
    ) -> Model:
        """Compile a graph and make it ready to run. One graph may be loaded any number of times.

        Args:
            graph: a complete graph.
            options: rounding, target and effort; None reads the environment for what `CompileOptions` takes from it.
            weights_registry: by name, an array for each `Weight` of the graph. The model reads them in place where
                it can and keeps them alive; do not change them while it exists.

        Raises:
            GraphError: the graph breaks a rule, or a weight is missing, unexpected or of the wrong shape.
            GraphTypeError: ``graph`` or ``options`` is of the wrong type, or a weight's element type is wrong.
            CompileError: the graph cannot be compiled for this machine and these options.
        """
        from halfulp.compiler.pipeline import compile_graph  # brings xDSL with it

        if options is not None and not isinstance(options, CompileOptions):
            raise GraphTypeError(f"load(options=...) takes a CompileOptions, not {options!r}")
        compiled = compile_graph(graph, CompileOptions() if options is None else options)
        weights = bind_weights(compiled.name, compiled.role(BufferRole.WEIGHT), weights_registry or {})
        code = NativeLibrary(compiled.object_code, [segment.symbol for segment in compiled.segments])
        return Model(compiled, code, weights)
