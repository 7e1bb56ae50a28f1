"""PyTorch as the more precise reference: a function of torch tensors, called with the inputs in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from halfulp.compiler.errors import GraphError, GraphTypeError, NotFoundError

from .tensor_files import from_torch
from .ulps import Array


def torch_reference(function: Callable[..., Any]) -> Callable[..., Sequence[Array]]:
    """A reference for `fastmath_matrix` from a function of torch tensors that gives one tensor or several.

    Raises:
        NotFoundError: torch is not installed.
        GraphError: when it is called: the function fails.
        GraphTypeError: when it is called: the function gives something else than tensors.
    """
    try:
        import torch
    except ImportError:
        raise NotFoundError("a reference by torch needs torch, which is not installed; pip install torch") from None
    name = getattr(function, "__name__", "the function")

    def run(*arrays: Array) -> Sequence[Array]:
        try:
            result = function(*(torch.from_numpy(np.ascontiguousarray(array)) for array in arrays))
        except Exception as error:
            raise GraphError(f"{name} fails on the inputs in float64: {type(error).__name__}: {error}") from error
        results = list(result) if isinstance(result, list | tuple) else [result]
        if not all(isinstance(value, torch.Tensor) for value in results):
            raise GraphTypeError(f"{name} must return a tensor, or a list or tuple of them, not {result!r}")
        return [from_torch(value) for value in results]

    run.__name__ = f"torch's {name} in float64"
    return run
