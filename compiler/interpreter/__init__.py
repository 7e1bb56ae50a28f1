"""Runs tile IR step by step with numpy: the oracle for compiled code, bit for bit.

Programs run one after another as the dialect defines them (`halfulp.compiler.dialects.tile`); every operation is
exact or correctly rounded by `exact`, reductions follow order R, and elementary functions are halfulp's own
expansions. Numpy's ``sum``, ``exp`` and matmul, whose bits depend on the build, have no part in it.
"""

from __future__ import annotations

from .frame import FailedCheck
from .machine import InterpreterResult, interpret, interpret_kernel
from .values import InterpreterError

__all__ = ["FailedCheck", "InterpreterError", "InterpreterResult", "interpret", "interpret_kernel"]
