"""Runs graphs on arrays at once: what an eager call of a kernel reaches the runtime through.

Importing this module registers it; the entry point ``halfulp.executor`` does so on the first such call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from halfulp.compiler.errors import FailedCheckError
from halfulp.compiler.registry import register_executor

from .buffer import Buffer
from .device import CPU, Device
from .errors import BoundsError, ExecutionError
from .session import InferenceSession

if TYPE_CHECKING:
    from halfulp.compiler import CompileOptions, Graph


def load_for_eager_calls(
    graph: Graph, options: CompileOptions, device: Device | None = None
) -> Callable[..., Sequence[Buffer]]:
    """Compiles a graph, for ``device`` if it is not for the host; the function returned runs it on its inputs.

    The function raises `FailedCheckError` where a check in a kernel fails, else what `Model.execute` raises.
    """
    model = InferenceSession([CPU() if device is None else device]).load(graph, options)

    def run(*arrays: Any) -> Sequence[Buffer]:
        try:
            return model.execute(*arrays)
        except ExecutionError as error:
            if error.kernel is None or error.program is None or error.check is None:
                raise
            is_bounds = isinstance(error, BoundsError)
            raise FailedCheckError(error.check, error.kernel, error.program, is_bounds=is_bounds) from None

    return run


register_executor(load_for_eager_calls)
