"""The largest error of every elementary function: f32 over all 2^32 inputs, f64 over many random ones.

    python benchmarks/ulp_sweep.py                      all functions, f32 and f64; records docs/ulp_results.json
    python benchmarks/ulp_sweep.py exp log --type f32   some of them
    python benchmarks/ulp_sweep.py --step 1001          every 1001st input: seconds, not recorded

The expansions run as machine code of this CPU. f32 is judged by the C library's double function (off by less than one
ulp of a double, 2e-9 ulp of an f32), f64 by its long double function (x86: 11 bits more, 0.002 ulp). An error is
|computed - exact| / ulp(exact) as ``halfulp.compiler.codegen.math.table`` defines it; it counts as infinite where the
result should be a NaN, an infinity or a zero of a certain sign and is not, or is one and should not be.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from llvm_emitter import Library, loop_over_arrays
from numpy.typing import NDArray

from halfulp.compiler.codegen.math.emitter import ElementType
from halfulp.compiler.codegen.math.table import EXPANSIONS, Expansion

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "ulp_results.json"
CHUNK = 1 << 16
LANES = {"f32": 16, "f64": 8}
RANDOM_INPUTS = 1 << 26

Floats = NDArray[Any]


@dataclass
class Worst:
    """The largest error so far and the bits of the inputs it belongs to."""

    ulp: float = -1.0
    inputs: tuple[int, ...] = ()
    count: int = 0

    def join(self, other: Worst) -> None:
        count = self.count + other.count
        if other.ulp > self.ulp:
            self.ulp, self.inputs = other.ulp, other.inputs
        self.count = count


def ulp_errors(computed: Floats, exact: Floats) -> Floats:
    """|computed - exact| / ulp(exact) for each element; ``exact`` is of a wider type."""
    rounded = exact.astype(computed.dtype)
    distance: Floats = np.abs(computed - exact)
    errors: Floats = (distance * _reciprocal_ulp(exact, np.finfo(computed.dtype))).astype(np.float64)
    special = ~(np.isfinite(rounded) & np.isfinite(computed))
    if special.any():
        same = (computed == rounded) | (np.isnan(computed) & np.isnan(rounded))
        errors[special] = np.where(same[special], 0.0, np.inf)
    wrong_sign = (np.signbit(computed) != np.signbit(exact)) & ~np.isnan(exact)
    errors[wrong_sign] = np.inf
    return errors


def _reciprocal_ulp(exact: Floats, info: np.finfo[Any]) -> Floats:
    if exact.dtype != np.float64:
        exponents = np.maximum(np.frexp(exact)[1] - 1, info.minexp)
        return np.asarray(np.ldexp(exact.dtype.type(1), info.nmant - exponents))
    biased: NDArray[np.int64] = np.maximum((exact.view(np.int64) >> 52) & 0x7FF, info.minexp + 1023)
    return ((2 * 1023 + info.nmant - biased) << 52).view(np.float64)


def compile_expansion(expansion: Expansion, type: ElementType) -> Callable[..., Floats]:
    """A function of arrays whose length is a multiple of 16. It keeps the machine code alive."""
    text = loop_over_arrays("f", expansion.expand, type, expansion.arity, LANES[type])
    library = Library([text])
    function = library.function("f", expansion.arity + 1)

    def call(*arrays: Floats) -> Floats:
        assert library  # owns the machine code
        assert len(arrays[0]) % LANES[type] == 0
        out = np.empty_like(arrays[0])
        function(out.ctypes.data, *(a.ctypes.data for a in arrays), len(out))
        return out

    return call


def compile_reference(name: str, type: str, arity: int) -> Callable[..., Floats]:
    """The C library's function in the next wider type, over arrays of ``type``; rsqrt is 1 / sqrt in that type."""
    wide = np.dtype({"f32": np.float64, "f64": np.longdouble}[type])
    if name == "rsqrt":
        return lambda x: 1 / np.sqrt(x.astype(wide))
    narrow_llvm, wide_llvm = {"f32": ("float", "double"), "f64": ("double", "x86_fp80")}[type]
    function = name if type == "f32" else name + "l"
    library = Library([_reference_loop(function, arity, narrow_llvm, wide_llvm)])
    loop = library.function("reference", arity + 1)

    def call(*arrays: Floats) -> Floats:
        assert library  # owns the machine code
        out = np.empty(len(arrays[0]), wide)
        loop(out.ctypes.data, *(a.ctypes.data for a in arrays), len(out))
        return out

    return call


def _reference_loop(function: str, arity: int, narrow: str, wide: str) -> str:
    """LLVM IR of ``void reference(wide *out, narrow *in..., i64 n)``, which calls ``wide function(wide...)``."""
    numbers = range(arity)
    loads = "\n".join(
        f"  %p{i} = getelementptr {narrow}, ptr %in{i}, i64 %i\n"
        f"  %n{i} = load {narrow}, ptr %p{i}\n"
        f"  %x{i} = fpext {narrow} %n{i} to {wide}"
        for i in numbers
    )
    return f"""declare {wide} @{function}({", ".join([wide] * arity)})
define void @reference(ptr %out, {", ".join(f"ptr %in{i}" for i in numbers)}, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{loads}
  %y = call {wide} @{function}({", ".join(f"{wide} %x{i}" for i in numbers)})
  %q = getelementptr {wide}, ptr %out, i64 %i
  store {wide} %y, ptr %q
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""


def all_f32_inputs(step: int) -> Iterator[tuple[Floats, ...]]:
    """Every ``step``-th f32 by its bits, in chunks; the last chunk is filled up with ones."""
    span = CHUNK * step
    for start in range(0, 1 << 32, span):
        bits = np.full(CHUNK, 0x3F800000, np.uint32)
        values = np.arange(start, min(start + span, 1 << 32), step, dtype=np.uint64)
        bits[: len(values)] = values
        yield (bits.view(np.float32),)


# Where the values of a function of one double are not trivial, and where its errors are largest. A quarter of the
# inputs each are uniform over the first interval, uniform over the second, near zero, and random bits.
INTERVALS = {
    "exp": ((-746.0, 710.0), (-0.4, 0.4)),
    "exp2": ((-1076.0, 1025.0), (-0.5, 0.5)),
    "expm1": ((-40.0, 710.0), (0.34, 0.42)),
    "log": ((0.4, 3.0), (1.35, 1.42)),
    "log2": ((0.4, 3.0), (1.33, 1.42)),
    "log1p": ((-1.0, 3.0), (0.45, 0.55)),
    "sin": ((-400.0, 400.0), (0.7, 0.9)),
    "cos": ((-400.0, 400.0), (0.7, 0.9)),
    "tanh": ((-22.0, 22.0), (0.9, 1.1)),
    "erf": ((-6.0, 6.0), (0.94, 1.02)),
    "rsqrt": ((0.2, 5.0), (0.99, 1.01)),
}


def random_inputs(name: str, type: str, arity: int, count: int) -> Iterator[tuple[Floats, ...]]:
    """``count`` random inputs, in chunks of four kinds in turn (see ``INTERVALS``), with a fixed seed."""
    generator = np.random.default_rng(20240229)
    for chunk in range(count // CHUNK):
        kind = chunk % 4
        if arity == 2:
            yield _random_pow_inputs(generator, type, kind)
        elif kind == 3:
            yield (_random_bits(generator, type),)
        else:
            x = generator.uniform(*INTERVALS[name][kind % 2], CHUNK)
            yield (x if kind < 2 else x * np.exp2(-generator.exponential(8.0, CHUNK)),)


def _random_bits(generator: np.random.Generator, type: str) -> Floats:
    if type == "f32":
        return generator.integers(0, 1 << 32, CHUNK, np.uint32).view(np.float32)
    return generator.integers(0, 1 << 64, CHUNK, np.uint64).view(np.float64)


def _random_pow_inputs(generator: np.random.Generator, type: str, kind: int) -> tuple[Floats, Floats]:
    """Random bits; or x near 1 or anywhere, with y such that x^y is about anywhere between underflow and overflow."""
    if kind == 3:
        return _random_bits(generator, type), _random_bits(generator, type)
    exponents = 151.0 if type == "f32" else 1076.0
    if kind < 2:
        x = 1 + generator.uniform(-0.5, 1.0, CHUNK) * np.exp2(-generator.exponential(4.0, CHUNK))
    else:
        x = np.exp2(generator.uniform(-0.95 * exponents, 0.8 * exponents, CHUNK))
    narrow = np.dtype({"f32": np.float32, "f64": np.float64}[type])
    x = x.astype(narrow)
    with np.errstate(divide="ignore", over="ignore"):
        y = (generator.uniform(-exponents, exponents, CHUNK) / np.log2(x.astype(np.float64))).astype(narrow)
    return x, y


def sweep(name: str, type: ElementType, inputs: Iterator[tuple[Floats, ...]], threads: int) -> Worst:
    """The largest error of one function over ``inputs``."""
    expansion = EXPANSIONS[name][type]
    compute = compile_expansion(expansion, type)
    reference = compile_reference(name, type, expansion.arity)
    worst = Worst()
    bits = np.dtype({"f32": np.uint32, "f64": np.uint64}[type])

    def judge(arrays: tuple[Floats, ...]) -> Worst:
        with np.errstate(all="ignore"):
            errors = ulp_errors(compute(*arrays), reference(*arrays))
        at = int(np.argmax(errors))
        return Worst(float(errors[at]), tuple(int(a.view(bits)[at]) for a in arrays), len(errors))

    with ThreadPoolExecutor(threads) as pool:
        # One batch at a time: map() would take all the inputs at once.
        while batch := [chunk for _, chunk in zip(range(16 * threads), inputs, strict=False)]:
            for result in pool.map(judge, batch):
                worst.join(result)
    return worst


def record(name: str, type: str, worst: Worst, exhaustive: bool) -> dict[str, Any]:
    """One entry of the results file."""
    dtype, bits = {"f32": (np.float32, np.uint32), "f64": (np.float64, np.uint64)}[type]
    values = [float(np.array([b], bits).view(dtype)[0]) for b in worst.inputs]
    return {
        "max_ulp": round(worst.ulp, 5),
        "at": [value.hex() for value in values],
        "inputs": worst.count,
        "exhaustive": exhaustive,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", help="names in EXPANSIONS; all if none is given")
    parser.add_argument("--type", choices=("f32", "f64"), help="one type only")
    parser.add_argument("--step", type=int, default=1, help="f32: every step-th input; nothing is recorded")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--random", type=int, default=RANDOM_INPUTS, help="the number of random inputs")
    options = parser.parse_args()
    for name in options.functions or EXPANSIONS:
        for type, expansion in EXPANSIONS[name].items():
            if options.type not in (None, type):
                continue
            start = time.perf_counter()
            exhaustive = type == "f32" and expansion.arity == 1
            inputs = (
                all_f32_inputs(options.step)
                if exhaustive
                else random_inputs(name, type, expansion.arity, options.random)
            )
            worst = sweep(name, type, inputs, options.threads)
            entry = record(name, type, worst, exhaustive)
            seconds = time.perf_counter() - start
            print(f"{name:6} {type}  {worst.ulp:.5f} ulp at {entry['at']}  {worst.count} inputs  {seconds:.0f} s")
            if options.step == 1:
                results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
                results.setdefault(name, {})[type] = entry
                RESULTS.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
