"""`InferenceSession`: compiles graphs and loads them for the devices of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfulp.compiler.artifact import BufferRole
from halfulp.compiler.device import DeviceRef
from halfulp.compiler.errors import GraphError, GraphTypeError
from halfulp.compiler.options import CompileOptions

from .debug.options import DebugOptions
from .device import CPU, Device
from .loading import load_code, load_graph
from .model import Model
from .native_model import NativeModel
from .precompiled import read_precompiled
from .printing import Printer, PrintOptions, PrintStyle
from .weights import bind_device_weights, bind_weights

if TYPE_CHECKING:
    from halfulp.compiler.graph import Graph
    from halfulp.compiler.steps import Progress


class InferenceSession:
    """The devices to run on, and the way from a graph to a `Model`.

    Args:
        devices: what models may use. The host always belongs to it. ``DeviceRef.GPU(i)`` of a graph is the i-th
            accelerator among them.

    Raises:
        GraphTypeError: something in ``devices`` is not a device.

    Example::

        session = InferenceSession(devices=[CPU()])
        model = session.load(graph, options=CompileOptions(fp_contract="fast"))
        (y,) = model.execute(x)
    """

    def __init__(self, devices: Iterable[Device] = (CPU(),)) -> None:
        given: object = devices  # a name of a device is iterable too
        chosen: list[Any] = [given] if isinstance(given, str) else list(devices)
        for device in chosen:
            if not isinstance(device, Device):
                raise GraphTypeError(f"InferenceSession(devices=...) takes devices such as CPU(), not {device!r}")
        # each device once, in the order given
        self._devices = tuple(dict.fromkeys([*chosen, CPU()]))
        self._printer = Printer()
        self._debug = DebugOptions()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices, the host included."""
        return self._devices

    @property
    def debug(self) -> DebugOptions:
        """What the session looks for while its models run: ``session.debug.nan_check = True``."""
        return self._debug

    def set_debug_print_options(
        self,
        style: PrintStyle | str = PrintStyle.COMPACT,
        precision: int = 6,
        output_directory: str | os.PathLike[str] | None = None,
        folder_per_execute: bool = False,
    ) -> None:
        """Choose what becomes of what `halfulp.ops.print` prints in this session, in models loaded already too.

        Args:
            style: a `PrintStyle` or its name. NONE prints nothing.
            precision: digits after the point under FULL, 0 to 766 (no number of the library has more). COMPACT has 4.
            output_directory: where BINARY and BINARY_MAX_CHECKPOINT write their files. It is made where it is missing.
            folder_per_execute: each execution writes to a folder of its own in there: ``0``, ``1``, ``2``, ...

        Raises:
            GraphTypeError: an unknown style, or an option of another type (a TypeError).
            GraphError: a precision out of range, or a style that writes files without a directory (a ValueError).
            OSError: the directory cannot be made.
        """
        options = PrintOptions.of(style, precision, output_directory, folder_per_execute)
        if options.style.writes_files and options.output_directory is not None:
            options.output_directory.mkdir(parents=True, exist_ok=True)
        self._printer.options = options

    def load(
        self,
        graph: Graph,
        options: CompileOptions | None = None,
        weights_registry: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Model:
        """Compile a graph and make it ready to run. One graph may be loaded any number of times.

        What has been compiled before, in this process or another one, is not compiled again (`halfulp.runtime.cache`).

        Args:
            graph: a complete graph.
            options: rounding, target and effort; None reads the environment for what `CompileOptions` takes from it.
            weights_registry: by name, an array for each `Weight` of the graph. The model reads them in place where
                it can and keeps them alive; do not change them while it exists.
            progress: called as ``progress(done, total, step)`` after each step of the compilation. What it raises
                ends it, as Ctrl-C does between two steps; nothing is left half done.

        Raises:
            GraphError: the graph has no outputs or needs a device that the session does not have, or a weight is
                missing, unexpected or of the wrong shape.
            GraphTypeError: an argument of the wrong type, or a weight of the wrong element type.
            CompileError: the graph cannot be compiled for this machine and these options.
        """
        # Here because both bring xDSL with them, which a process that only loads precompiled models can do without.
        from halfulp.compiler.graph import Graph

        if not isinstance(graph, Graph):
            raise GraphTypeError(f"load() takes a Graph, not {type(graph).__name__}; load_compiled() takes a file")
        if options is not None and not isinstance(options, CompileOptions):
            raise GraphTypeError(f"load(options=...) takes a CompileOptions, not {options!r}")
        devices = self._devices_of(graph)
        chosen = CompileOptions() if options is None else options
        if devices:
            return self._load_on_devices(graph, chosen, devices, weights_registry or {}, progress)
        weights = bind_weights(graph.name, graph.weights.values(), weights_registry or {})
        loaded = load_graph(graph, chosen, progress)

        def checked() -> Model:
            from .debug.nan_check import CheckedModel

            return CheckedModel(graph, chosen, weights, self._printer, self._debug)

        return NativeModel(loaded.compiled, loaded.code, weights, self._printer, self._debug, checked)

    def load_compiled(self, path: str | os.PathLike[str], weights_registry: Mapping[str, Any] | None = None) -> Model:
        """Load what `Model.save` wrote. Nothing is compiled.

        The file is code that this process will run: load only files whose origin you trust.

        Args:
            path: the file.
            weights_registry: as for `load`.

        Raises:
            LoadError: the file is no such file, is damaged, or was made for another CPU or by another version.
            GraphError: a weight is missing, unexpected or of the wrong shape.
            GraphTypeError: a weight of the wrong element type.
            OSError: the file cannot be read.
        """
        loaded = load_code(read_precompiled(Path(path)))
        compiled = loaded.compiled
        weights = bind_weights(compiled.name, compiled.role(BufferRole.WEIGHT), weights_registry or {})
        return NativeModel(compiled, loaded.code, weights, self._printer, self._debug)

    def _load_on_devices(
        self,
        graph: Graph,
        options: CompileOptions,
        devices: Mapping[DeviceRef, Device],
        registry: Mapping[str, Any],
        progress: Progress | None,
    ) -> Model:
        from .offload.loading import compile_for_devices
        from .offload.model import DeviceModel

        compiled = compile_for_devices(graph, options, devices, progress)
        weights = bind_device_weights(compiled, devices, registry)

        def checked() -> Model:
            from .debug.nan_check import CheckedDeviceModel

            return CheckedDeviceModel(graph, options, devices, weights, self._printer, self._debug)

        return DeviceModel(compiled, devices, weights, self._printer, self._debug, checked)

    def _devices_of(self, graph: Graph) -> dict[DeviceRef, Device]:
        """The accelerators that a graph uses, by the names that it has for them."""
        accelerators = [device for device in self._devices if not device.is_host]
        available = {DeviceRef.GPU(index): device for index, device in enumerate(accelerators)}
        used: dict[DeviceRef, Device] = {}
        for subject, device in _places(graph):
            if device in available:
                used[device] = available[device]
            elif not device.is_host:
                names = ", ".join(str(d) for d in self._devices)
                raise GraphError(
                    f"graph '{graph.name}': {subject} is on {device}, but the session has only {names}; "
                    "build the graph for a device of the session"
                )
        return used


def _places(graph: Graph) -> Iterator[tuple[str, DeviceRef]]:
    """The inputs, weights and outputs of a graph, and where each lives."""
    for index, (name, value) in enumerate(zip(graph.input_names, graph.inputs, strict=True)):
        yield f"input {index} ('{name}')", value.device
    for name, weight in graph.weights.items():
        yield f"weight '{name}'", weight.device
    for index, value in enumerate(graph.outputs):
        yield f"output {index}", value.device
    for device in sorted(graph.devices, key=str):
        yield "a value between ops", device
