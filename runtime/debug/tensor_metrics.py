"""How far apart two tensors are: every number of a comparison, in one pass over pieces of them.

Differences are taken in float64, which holds all narrower types exactly; with 64-bit integers in long double, which
holds those and float64 exactly. A NaN beside a number, or an infinity beside something else, is infinitely far from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from .chunks import CHUNK, flat_piece, release
from .ulps import Array, bits_of, histogram, ulp_distance

SMALLEST_SCALE = 1e-10
"""What a relative difference is divided by at least, as in the tools that this one follows."""


@dataclass(frozen=True)
class Tolerance:
    """How far apart elements may be.

    An element must satisfy all that is given: ``|torch - max| <= atol + rtol * |torch|``, where one that is None counts
    as 0, and at most ``ulp`` numbers of the type between the two. Integers have no ulp and must then be equal.
    """

    rtol: float | None = None
    atol: float | None = None
    ulp: float | None = None

    @property
    def given(self) -> bool:
        """Whether there is anything to fail."""
        return not (self.rtol is None and self.atol is None and self.ulp is None)


@dataclass
class Greatest:
    """The greatest value so far, and the first place where it was, counted in C order."""

    value: float | None = None
    place: int = 0

    def see(self, values: Array, start: int) -> None:
        """More values, the first of them at ``start``."""
        place = int(np.argmax(values))
        if self.value is None or values[place] > self.value:
            self.value, self.place = float(values[place]), start + place


class SquareSum:
    """The sum of squares of any floats, without overflow: ``scale**2 * total``."""

    def __init__(self) -> None:
        self.scale = 0.0
        self.total = 0.0
        self.count = 0

    def add(self, values: Array) -> None:
        """More values; one that is infinite makes the sum infinite."""
        self.count += values.size
        largest = largest_magnitude(values)
        if largest > self.scale:
            self.total *= (self.scale / largest) ** 2 if np.isfinite(largest) else 1.0
            self.scale = largest
        if self.scale and np.isfinite(self.scale):
            scaled = values / self.scale
            self.total += float(np.sum(scaled * scaled))  # np.dot would start threads

    def root_mean(self) -> float | None:
        """The root of the mean; None of no values."""
        if not self.count:
            return None
        return self.scale if not np.isfinite(self.scale) else self.scale * float(np.sqrt(self.total / self.count))


@dataclass
class Metrics:
    """What is known of two tensors of equally many elements: counts, the greatest differences and their places."""

    elements: int = 0
    differing: int = 0
    absolute: Greatest = field(default_factory=Greatest)
    relative: Greatest = field(default_factory=Greatest)
    ulp: Greatest = field(default_factory=Greatest)
    failing: int | None = None
    torch_nan: int = 0
    max_nan: int = 0
    torch_inf: int = 0
    max_inf: int = 0
    largest: float = 0.0
    rmse: float | None = None
    cosine: float | None = None
    histogram: list[int] = field(default_factory=lambda: [0] * 34)


def measure(torch: Array, other: Array, tolerance: Tolerance, nan_equal: bool = True) -> Metrics:
    """Compare two tensors element by element, in the order in which they lie."""
    found = Metrics(elements=torch.size, failing=0 if tolerance.given else None)
    pair = _Pair(found, torch.dtype, other.dtype, tolerance, nan_equal)
    for start in range(0, torch.size, CHUNK):
        pair.add(flat_piece(torch, start, CHUNK), flat_piece(other, start, CHUNK), start)
        release(torch)
        release(other)
    pair.finish()
    return found


class _Pair:
    """What goes on from piece to piece."""

    def __init__(
        self, found: Metrics, torch: np.dtype[Any], other: np.dtype[Any], tolerance: Tolerance, nan_equal: bool
    ) -> None:
        self.found, self.tolerance, self.nan_equal = found, tolerance, nan_equal
        self.same_type = torch.newbyteorder("=") == other.newbyteorder("=")
        self.floats = is_float(torch) and is_float(other)
        self.coarser = coarser_type(torch, other) if self.floats else None
        long_integers = any(dtype.kind in "iu" and dtype.itemsize == 8 for dtype in (torch, other))
        self.wide: type[np.floating[Any]] = np.longdouble if long_integers else np.float64
        self.may_have_nan = is_float(torch) or is_float(other)
        self.errors, self.ours, self.theirs = SquareSum(), SquareSum(), SquareSum()
        self.product = 0.0

    def add(self, torch: Array, other: Array, start: int) -> None:
        with np.errstate(all="ignore"):
            equal = self.same_type and np.array_equal(bits_of(torch), bits_of(other))
            if equal and (not self.may_have_nan or np.isfinite(torch).all()):
                self._add_equal(torch.astype(np.float64), start)
                return
            ours, theirs = torch.astype(self.wide), other.astype(self.wide)
            finite = self._count_special(ours, theirs)
            absolute = self._absolute(ours, theirs)
            self._add_differences(torch, other, ours, theirs, absolute, start)
            self.errors.add(absolute.astype(np.float64))
            self._add_product(ours[finite].astype(np.float64), theirs[finite].astype(np.float64))

    def _count_special(self, ours: Array, theirs: Array) -> Array:
        """Where both are finite, having counted what is not."""
        found = self.found
        if not self.may_have_nan:
            finite = np.ones(ours.shape, bool)
        else:
            our_nan, their_nan = np.isnan(ours), np.isnan(theirs)
            our_finite, their_finite = np.isfinite(ours), np.isfinite(theirs)
            found.torch_nan += int(our_nan.sum())
            found.max_nan += int(their_nan.sum())
            found.torch_inf += int((~our_finite & ~our_nan).sum())
            found.max_inf += int((~their_finite & ~their_nan).sum())
            finite = our_finite & their_finite
        return finite

    def _add_equal(self, values: Array, start: int) -> None:
        """A piece whose bits are equal needs one sum only."""
        found = self.found
        zeros = np.zeros(1)
        for greatest in (found.absolute, found.relative, *([found.ulp] if self.floats else [])):
            greatest.see(zeros, start)
        found.histogram[0] += values.size
        self.errors.count += values.size
        self._add_product(values, values)

    def _absolute(self, ours: Array, theirs: Array) -> Array:
        difference = np.abs(ours - theirs)
        same = ours == theirs
        if self.nan_equal:
            same |= np.isnan(ours) & np.isnan(theirs)
        return np.where(same, 0, np.where(np.isnan(difference), np.inf, difference))

    def _add_differences(
        self, torch: Array, other: Array, ours: Array, theirs: Array, absolute: Array, start: int
    ) -> None:
        found = self.found
        relative = absolute / np.maximum(np.abs(ours), SMALLEST_SCALE)
        relative = np.where(absolute == 0, 0, np.where(np.isnan(relative), np.inf, relative))
        found.absolute.see(absolute, start)
        found.relative.see(relative, start)
        ulps = self._ulps(torch, other, ours, theirs, absolute) if self.floats else absolute.astype(np.float64)
        if self.floats:
            found.ulp.see(ulps, start)
        for place, count in enumerate(histogram(ulps)):
            found.histogram[place] += count
        if not self.same_type:
            found.differing += int((absolute != 0).sum())
        else:
            unequal = bits_of(torch) != bits_of(other)
            if self.floats and self.nan_equal:
                unequal &= ~(np.isnan(ours) & np.isnan(theirs))
            elif self.floats:
                unequal |= np.isnan(ours)
            found.differing += int(unequal.sum())
        if found.failing is not None:
            found.failing += int(self._failing(ours, theirs, absolute, ulps).sum())

    def _ulps(self, torch: Array, other: Array, ours: Array, theirs: Array, absolute: Array) -> Array:
        """Numbers of the type between the two; of two types, the difference in ulp of the coarser one."""
        if self.same_type:
            found = ulp_distance(torch, other)
            apart = np.isinf(ours) != np.isinf(theirs)
        else:
            assert self.coarser is not None
            found, apart = absolute / spacing(ours, self.coarser), np.isinf(absolute)
        apart |= np.isinf(absolute)
        return np.where(apart, np.inf, np.where(absolute == 0, 0.0, found))

    def _failing(self, ours: Array, theirs: Array, absolute: Array, ulps: Array) -> Array:
        tolerance = self.tolerance
        failing = np.zeros(ours.shape, bool)
        if tolerance.rtol is not None or tolerance.atol is not None:
            allowed = self.wide(tolerance.atol or 0.0) + self.wide(tolerance.rtol or 0.0) * np.abs(ours)
            beyond = ~(absolute <= allowed) | ~np.isfinite(absolute)
            # an infinity is near to nothing but itself, whatever a share of it would allow
            failing |= beyond | (np.isinf(ours) != np.isinf(theirs))
            failing &= absolute != 0
        if tolerance.ulp is not None:
            failing |= ulps > tolerance.ulp if self.floats else absolute != 0
        return failing

    def _add_product(self, ours: Array, theirs: Array) -> None:
        """More of the cosine's product, which is kept relative to the scales of both sums."""
        before = self.ours.scale, self.theirs.scale
        self.ours.add(ours)
        self.theirs.add(theirs)
        scales = self.ours.scale, self.theirs.scale
        if all(scales):
            self.product *= (before[0] / scales[0]) * (before[1] / scales[1])
            self.product += float(np.sum((ours / scales[0]) * (theirs / scales[1])))

    def finish(self) -> None:
        """The means."""
        self.found.largest = max(self.ours.scale, self.theirs.scale)
        self.found.rmse = self.errors.root_mean()
        size = float(np.sqrt(self.ours.total) * np.sqrt(self.theirs.total))
        if size:
            exact = self.found.rmse == 0  # the quotient is rounded
            self.found.cosine = 1.0 if exact else min(1.0, max(-1.0, self.product / size))


def largest_magnitude(values: Array) -> float:
    """Of values without NaN; 0 of none."""
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether it is one of numpy's or ml_dtypes' floats; those of the latter have a kind of their own."""
    return dtype.kind not in "biu"


@cache
def _limits(dtype: np.dtype[Any]) -> Any:
    return ml_dtypes.finfo(dtype.newbyteorder("="))  # type: ignore[no-untyped-call]


def coarser_type(one: np.dtype[Any], other: np.dtype[Any]) -> np.dtype[Any]:
    """The type with fewer digits."""
    return one if _limits(one).nmant <= _limits(other).nmant else other


def spacing(scale: Any, dtype: np.dtype[Any]) -> Array:
    """The distance between neighbouring numbers of the type at ``scale``; of subnormals below those."""
    limits = _limits(dtype)
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(np.abs(np.asarray(scale, np.float64)))
        exponent = np.where(np.asarray(scale) == 0, limits.minexp, np.maximum(exponent - 1, limits.minexp))
        return np.asarray(np.ldexp(1.0, exponent - limits.nmant))
