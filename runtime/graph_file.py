"""Graphs that a Python file defines, by name: ``model.py:graph``."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from halfulp.compiler.errors import GraphError, GraphTypeError, HalfulpError, NotFoundError, near_names, quoted_list
from halfulp.compiler.graph import Graph

MODULE = "halfulp_graph_file"
"""The name under which a file is imported: it cannot hide a module that the file itself imports."""


def graph_from_file(place: str) -> Graph:
    """The graph at ``FILE.py:NAME``: a `Graph`, or what a function without arguments returns.

    The file is run as an imported module, with its folder first on ``sys.path``.

    Raises:
        NotFoundError: no such file, or no such name in it.
        GraphError: ``place`` has another form, or running the file or the function fails.
        GraphTypeError: the name stands for something else.
    """
    value, name, path = _found(place, _may_be_graph, "graphs and functions without arguments")
    return _graph(value, name, path)


def function_from_file(place: str) -> Callable[..., Any]:
    """The function at ``FILE.py:NAME``.

    Raises:
        NotFoundError, GraphError: as for `graph_from_file`.
        GraphTypeError: the name stands for something that cannot be called.
    """
    value, name, path = _found(place, _is_own_function, "functions")
    if not callable(value):
        raise GraphTypeError(f"{path}: '{name}' must be a function, not {value!r}")
    found: Callable[..., Any] = value
    return found


def _found(place: str, fits: Callable[[Any], bool], what: str) -> tuple[Any, str, Path]:
    """What the name of a place stands for, the name and the file; ``what`` names the values that fit, for messages."""
    file, colon, name = place.rpartition(":")
    if not colon or not file or not name.isidentifier():
        raise GraphError(f"'{place}' must be a file and a name in it, as in model.py:graph")
    path = Path(file)
    if not path.is_file():
        raise NotFoundError(f"there is no file '{file}'")
    content = vars(_module(path))
    if name not in content:
        known = [key for key, value in content.items() if fits(value)]
        hint = near_names(name, known) or f"; its {what} are {quoted_list(known)}"
        raise NotFoundError(f"{file} defines no '{name}'{hint}")
    return content[name], name, path


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise GraphError(f"{path} is no Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module  # dataclasses look their module up
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _failure(path, error) from error
    return module


def _graph(value: Any, name: str, path: Path) -> Graph:
    if isinstance(value, Graph):
        return value
    if not callable(value):
        raise GraphTypeError(f"{path}: '{name}' must be a Graph, or a function that returns one, not {value!r}")
    if required := _required(value):
        raise GraphTypeError(
            f"{path}: '{name}' needs values for {quoted_list(required)}; name a Graph, or a function without arguments"
        )
    try:
        result = value()
    except Exception as error:
        raise _failure(path, error) from error
    if not isinstance(result, Graph):
        raise GraphTypeError(f"{path}: '{name}' must return a Graph, not {result!r}")
    return result


def _may_be_graph(value: Any) -> bool:
    return isinstance(value, Graph) or (_is_own_function(value) and not _required(value))


def _is_own_function(value: Any) -> bool:
    return inspect.isfunction(value) and value.__module__ == MODULE


def _required(function: Any) -> list[str]:
    """The parameters that have no default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # built in, and silent about it
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]


def _failure(path: Path, error: Exception) -> GraphError:
    """What went wrong and on which line of the file."""
    if isinstance(error, HalfulpError) and error.location is not None:
        return GraphError(error.message, error.location)
    if isinstance(error, SyntaxError) and error.filename is not None:
        return GraphError(f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}")
    frames = traceback.extract_tb(error.__traceback__)
    line = next((f":{frame.lineno}" for frame in reversed(frames) if Path(frame.filename) == path.absolute()), "")
    return GraphError(f"{path}{line}: {type(error).__name__}: {error}")
