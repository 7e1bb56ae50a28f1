"""The operations that graphs are built from: ``from halfulp import ops``.

Importing this package registers the library's ops and kernels, so that a graph can name them, and gives `TensorValue`
its operators. Some ops have names of Python's own functions (`abs`, `max`, `round`); write ``ops.abs``, and do not
import them one by one.
"""

from __future__ import annotations

from halfulp.compiler.operators import install_operators

from . import logprobs
from .activation import gelu, relu, sigmoid, silu
from .arithmetic import add, div, fma, mul, negate, sub
from .attention import attention
from .bands import band_part, outer
from .broadcasting import broadcast_to
from .buffers import buffer_load, buffer_store
from .calling import call
from .casting import cast
from .comparison import (
    equal,
    greater,
    greater_equal,
    is_inf,
    is_nan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    not_equal,
    where,
)
from .constant import constant
from .control import cond, while_loop
from .convolution import conv2d
from .custom import custom, inplace_custom
from .elementary import (
    abs,
    acos,
    atanh,
    ceil,
    cos,
    erf,
    exp,
    floor,
    log,
    log1p,
    pow,
    round,
    rsqrt,
    sin,
    sqrt,
    tanh,
    trunc,
)
from .indexing import gather, gather_nd
from .integers import bitwise_and, bitwise_not, bitwise_or, bitwise_xor, floor_div, mod, shift_left, shift_right
from .joining import concat, pad, repeat_interleave, stack, tile
from .masking import masked_scatter, nonzero
from .matmul import matmul
from .normalization import group_norm, layer_norm, logsoftmax, rms_norm, softmax
from .ordering import argmax, argmin, argsort, bottom_k, cumsum, top_k
from .pooling import avg_pool2d, max_pool2d
from .printing import print
from .promotion import TensorValueLike
from .reduction import max, mean, min, prod, stdev, sum, var
from .reshaping import flatten, rebind, reshape, squeeze, unsqueeze
from .resizing import CoordinateTransform, InterpolationMode, resize, resize_linear, resize_nearest
from .scattering import (
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_nd,
    scatter_nd_add,
    scatter_nd_max,
    scatter_nd_min,
    scatter_nd_mul,
)
from .selection import chunk, getitem, permute, slice_tensor, split, transpose
from .sizes import range, shape_to_tensor
from .transfer import transfer_to

install_operators(
    {
        "add": add,
        "sub": sub,
        "mul": mul,
        "div": div,
        "floor_div": floor_div,
        "mod": mod,
        "pow": pow,
        "negate": negate,
        "abs": abs,
        "bitwise_and": bitwise_and,
        "bitwise_or": bitwise_or,
        "bitwise_xor": bitwise_xor,
        "bitwise_not": bitwise_not,
        "shift_left": shift_left,
        "shift_right": shift_right,
        "less": less,
        "less_equal": less_equal,
        "greater": greater,
        "greater_equal": greater_equal,
        "equal": equal,
        "not_equal": not_equal,
        "cast": cast,
        "broadcast_to": broadcast_to,
        "getitem": getitem,
        "reshape": reshape,
        "rebind": rebind,
        "permute": permute,
        "transpose": transpose,
        "flatten": flatten,
        "sum": sum,
        "mean": mean,
        "var": var,
        "stdev": stdev,
        "max": max,
        "min": min,
        "matmul": matmul,
        "argmax": argmax,
        "argmin": argmin,
        "print": print,
        "transfer_to": transfer_to,
        "buffer_load": buffer_load,
        "buffer_store": buffer_store,
    }
)

__all__ = [
    "CoordinateTransform",
    "InterpolationMode",
    "TensorValueLike",
    "abs",
    "acos",
    "add",
    "argmax",
    "argmin",
    "argsort",
    "atanh",
    "attention",
    "avg_pool2d",
    "band_part",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "bottom_k",
    "broadcast_to",
    "buffer_load",
    "buffer_store",
    "call",
    "cast",
    "ceil",
    "chunk",
    "concat",
    "cond",
    "constant",
    "conv2d",
    "cos",
    "cumsum",
    "custom",
    "div",
    "equal",
    "erf",
    "exp",
    "flatten",
    "floor",
    "floor_div",
    "fma",
    "gather",
    "gather_nd",
    "gelu",
    "greater",
    "greater_equal",
    "group_norm",
    "inplace_custom",
    "is_inf",
    "is_nan",
    "layer_norm",
    "less",
    "less_equal",
    "log",
    "log1p",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logprobs",
    "logsoftmax",
    "masked_scatter",
    "matmul",
    "max",
    "max_pool2d",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mod",
    "mul",
    "negate",
    "nonzero",
    "not_equal",
    "outer",
    "pad",
    "permute",
    "pow",
    "print",
    "prod",
    "range",
    "rebind",
    "relu",
    "repeat_interleave",
    "reshape",
    "resize",
    "resize_linear",
    "resize_nearest",
    "rms_norm",
    "round",
    "rsqrt",
    "scatter",
    "scatter_add",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_nd",
    "scatter_nd_add",
    "scatter_nd_max",
    "scatter_nd_min",
    "scatter_nd_mul",
    "shape_to_tensor",
    "shift_left",
    "shift_right",
    "sigmoid",
    "silu",
    "sin",
    "slice_tensor",
    "softmax",
    "split",
    "sqrt",
    "squeeze",
    "stack",
    "stdev",
    "sub",
    "sum",
    "tanh",
    "tile",
    "top_k",
    "transfer_to",
    "transpose",
    "trunc",
    "unsqueeze",
    "var",
    "where",
    "while_loop",
]
