"""Runs one graph on the CPU and on an accelerator, the emulated one if not said otherwise, and compares every bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from differential import Array, assert_same_bits

from halfulp.compiler import CompileOptions, DeviceRef, Graph
from halfulp.runtime import CPU, Accelerator, Buffer, ExecutionError, InferenceSession, Model

DEVICE = Accelerator(emulated=True)
GPU = DeviceRef.GPU(0)

Outcome = list[Array] | str
"""The outputs, or the message of the failed check."""


class BothDevices:
    """A graph on the CPU and on an accelerator; ``build`` makes it for the device that it is given."""

    def __init__(
        self,
        build: Callable[[DeviceRef], Graph],
        options: CompileOptions | None = None,
        device: Accelerator = DEVICE,
    ) -> None:
        self.device = device
        self.on_cpu = InferenceSession().load(build(DeviceRef.CPU()), options)
        self.on_device = InferenceSession(devices=[device]).load(build(GPU), options)

    def check(self, arrays: Sequence[Array], where: str = "") -> Outcome:
        """Both give the same bits, or fail with the same message; what they give."""
        expected = run(self.on_cpu, arrays, self.device)
        actual = run(self.on_device, arrays, self.device)
        if isinstance(expected, str) or isinstance(actual, str):
            assert actual == expected
            return expected
        for number, (some, other) in enumerate(zip(actual, expected, strict=True)):
            assert_same_bits(some, other, f"{where} output {number}")
        return expected


def run(model: Model, arrays: Sequence[Array], device: Accelerator) -> Outcome:
    """A model on copies of arrays, each where the model wants it."""
    places = [CPU() if given.device.is_host else device for given in model.input_metadata]
    try:
        outputs = model.execute(
            *[Buffer.from_numpy(array, copy=True).to(place) for array, place in zip(arrays, places, strict=True)]
        )
    except ExecutionError as error:
        return str(error)
    return [output.to(CPU()).to_numpy() for output in outputs]
