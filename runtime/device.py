"""Devices that a session computes on and that buffers live on.

A `Device` is something this machine has; the compiler's `DeviceRef`, which graph types carry, only names one.
"""

from __future__ import annotations

from halfulp.compiler.device import DeviceRef


class Device:
    """A device of this machine. Two objects for the same device compare equal; `ref` is its name in graph types."""

    __slots__ = ("ref",)

    def __init__(self, ref: DeviceRef) -> None:
        self.ref = ref

    @property
    def is_host(self) -> bool:
        """Whether numpy can read the device's memory in place."""
        return self.ref.is_host

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.ref == other.ref

    def __hash__(self) -> int:
        return hash(self.ref)

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
