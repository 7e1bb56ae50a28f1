"""Tensors that other programs wrote: ``.npy``, ``.npz``, and torch's ``.pt``. Nothing but tensors is unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import GraphError, GraphTypeError, HalfulpError, NotFoundError

from .ulps import Array

SUFFIXES = (".npy", ".npz", ".pt")


def read_tensors(path: str | Path) -> dict[str, Array]:
    """The tensors of a file by name; the only one of a ``.npy`` or ``.pt`` that gives it no name has the name "".

    A ``.pt`` may hold a tensor, or a dict or list of them, and needs torch (``pip install torch``).

    Raises:
        NotFoundError: there is no such file, or torch is not installed.
        GraphError: the file is damaged or of another kind.
        GraphTypeError: it holds something else than tensors.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise GraphError(f"'{path}' must be a file of tensors: its name must end in {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise NotFoundError(f"there is no file '{path}'")
    try:
        return _torch_tensors(path) if path.suffix == ".pt" else _numpy_tensors(path)
    except HalfulpError:
        raise
    except (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise GraphError(f"'{path}' cannot be read as {path.suffix}: {reason}") from None


def _numpy_tensors(path: Path) -> dict[str, Array]:
    """By what the file holds; numpy does not look at its name either."""
    stored = np.load(path, allow_pickle=False)
    if isinstance(stored, np.ndarray):
        return {"": stored}
    with stored:
        return {name: stored[name] for name in stored.files}


def _torch_tensors(path: Path) -> dict[str, Array]:
    import pickle

    try:
        import torch
    except ImportError:
        raise NotFoundError(f"'{path}' needs torch, which is not installed; pip install torch") from None
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise GraphTypeError(f"'{path}' holds more than tensors, which is not read; save tensors alone") from None
    if isinstance(found, torch.Tensor):
        return {"": from_torch(found)}
    named = found if isinstance(found, Mapping) else dict(enumerate(found)) if isinstance(found, list | tuple) else {}
    if not named or not all(isinstance(value, torch.Tensor) for value in named.values()):
        raise GraphTypeError(f"'{path}' must hold a tensor, or a dict or list of tensors; save them so")
    return {str(name): from_torch(value) for name, value in named.items()}


def from_torch(tensor: Any) -> Array:
    """A torch tensor as a numpy array; bfloat16, which numpy lacks, by its bits."""
    import torch

    plain = tensor.detach().cpu().contiguous()
    if plain.dtype == torch.bfloat16:
        array: Array = plain.view(torch.int16).numpy().view(DType.bfloat16.to_numpy())
        return array
    return np.asarray(plain.numpy())
