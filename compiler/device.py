"""Where a tensor lives, as graph types write it: ``cpu`` or ``gpu:0``."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import Literal, SupportsIndex

from .errors import GraphError, GraphTypeError


@dataclass(frozen=True)
class DeviceRef:
    """A device by kind and number. It names a device; whether the machine has one is the session's question.

    >>> str(DeviceRef.GPU(1))
    'gpu:1'
    """

    kind: Literal["cpu", "gpu"]
    index: int = 0

    @classmethod
    def CPU(cls) -> DeviceRef:  # noqa: N802  (the spelling of MAX, which users bring with them)
        """The host: there is one, whatever its number of cores."""
        return cls("cpu")

    @classmethod
    def GPU(cls, index: SupportsIndex = 0) -> DeviceRef:  # noqa: N802
        """The accelerator of this number, counted from 0.

        Raises:
            GraphError: the number is negative.
            GraphTypeError: it is no integer.
        """
        return cls("gpu", device_number("DeviceRef.GPU()", index))

    @classmethod
    def parse(cls, text: str) -> DeviceRef:
        """The device that ``str()`` writes as ``text``.

        Raises:
            GraphError: ``text`` is neither ``cpu`` nor ``gpu:N``.
        """
        if text == "cpu":
            return cls.CPU()
        if match := re.fullmatch(r"gpu:(\d+)", text):
            return cls.GPU(int(match.group(1)))
        raise GraphError(f"device must be written cpu or gpu:N, not {text!r}")

    @property
    def is_host(self) -> bool:
        """Whether plain host code can read the device's memory."""
        return self.kind == "cpu"

    def __str__(self) -> str:
        return "cpu" if self.is_host else f"gpu:{self.index}"

    def __repr__(self) -> str:
        return "DeviceRef.CPU()" if self.is_host else f"DeviceRef.GPU({self.index})"


HOST = DeviceRef.CPU()
"""The host."""


def device_number(subject: str, index: SupportsIndex) -> int:
    """A number that counts devices from 0, checked; ``subject`` begins the messages.

    Raises:
        GraphError: it is negative.
        GraphTypeError: it is no integer.
    """
    try:
        number = operator.index(index)
    except TypeError:
        raise GraphTypeError(f"{subject} takes the number of a device, an int, not {index!r}") from None
    if number < 0:
        raise GraphError(f"{subject} counts devices from 0, got {number}")
    return number
