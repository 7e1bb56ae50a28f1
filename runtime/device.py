"""Devices that a session computes on and that buffers live on.

A `Device` is something this machine has; the compiler's `DeviceRef`, which graph types carry, only names one: `GPU(i)`
is the i-th accelerator of the session that loads the graph.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, SupportsIndex

from halfulp.compiler.device import DeviceRef, device_number
from halfulp.compiler.errors import GraphError

if TYPE_CHECKING:
    from .offload.memory import DeviceHeap


class Device:
    """A device of this machine. Two objects for the same device compare equal; `ref` is its name in graph types."""

    __slots__ = ("ref",)

    def __init__(self, ref: DeviceRef) -> None:
        self.ref = ref

    @property
    def is_host(self) -> bool:
        """Whether numpy can read the device's memory in place."""
        return self.ref.is_host

    @property
    def heap(self) -> DeviceHeap:
        """The memory of a device that is not the host."""
        raise GraphError(f"{self!r} is no accelerator, so no buffer can be on it; make one with Accelerator(...)")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __str__(self) -> str:
        return str(self.ref)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.ref!r})"


class CPU(Device):
    """The host: all its cores together are one device.

    >>> CPU().ref
    DeviceRef.CPU()
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(DeviceRef.CPU())

    def __repr__(self) -> str:
        return "CPU()"


class Accelerator(Device):
    """A GPU of NVIDIA's, or an emulated one.

    Args:
        id: which one, counted from 0. There are as many emulated ones as one asks for.
        emulated: a device that runs PTX with numpy: exactly, with every mistake found, and slowly. It is there on every
            machine, for tests.

    Raises:
        GraphError: a negative number.
        GraphTypeError: a number that is no integer.
        DeviceError: there is no such GPU, no driver, or no ``cuda-bindings``; the message says which.

    >>> Accelerator(emulated=True)
    Accelerator(0, emulated=True)
    """

    __slots__ = ("_heap", "emulated")

    def __init__(self, id: SupportsIndex = 0, *, emulated: bool = False) -> None:
        number = device_number("Accelerator()", id)
        super().__init__(DeviceRef.GPU(number))
        self.emulated = emulated
        self._heap = _heap_of(number, emulated)

    @property
    def heap(self) -> DeviceHeap:
        return self._heap

    @property
    def name(self) -> str:
        """What the device calls itself."""
        return self._heap.driver.name

    @property
    def architecture(self) -> str:
        """The architecture that graphs are compiled for on it: ``sm_90``."""
        return self._heap.architecture

    def __str__(self) -> str:
        return f"{'emulated ' if self.emulated else ''}{self.ref}"

    def __repr__(self) -> str:
        return f"Accelerator({self.ref.index}{', emulated=True' if self.emulated else ''})"


_heaps: dict[tuple[int, bool], DeviceHeap] = {}
_lock = threading.Lock()


def _heap_of(number: int, emulated: bool) -> DeviceHeap:
    """One for each device, made when it is first named, and kept as long as the process."""
    with _lock:
        if (number, emulated) not in _heaps:
            _heaps[number, emulated] = _open(number, emulated)
        return _heaps[number, emulated]


def _open(number: int, emulated: bool) -> DeviceHeap:
    from .offload.memory import DeviceHeap

    if emulated:
        from halfulp.compiler.codegen.ptx import DEFAULT_ARCHITECTURE

        from .cuda.emulator import Emulator

        return DeviceHeap(Emulator(), DEFAULT_ARCHITECTURE, f"Accelerator({number}, emulated=True)")
    from .cuda.cuda_driver import open_gpu

    driver = open_gpu(number)
    return DeviceHeap(driver, driver.architecture, f"Accelerator({number})")
