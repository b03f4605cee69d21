"""round(Z) for a Gaussian Z of standard deviation s, s in steps: sampled exactly, and fast.

The half line |z| is cut into strips of 2^m steps, 64 to 128 of them to a standard deviation. Over each strip stands a column as
high as the density at the strip's inner edge. A point is drawn uniformly from all columns together: 64 random bits choose strip
and height at once (columns are whole numbers that add up to 2^64), 50 more the position within the strip, one the sign. The
point is kept if it lies under the density. Then its position is a Gaussian, and its nearest whole step is what is wanted. This
is rejection sampling from a proposal that is itself sampled exactly. 97 of 100 points lie below the density at the strip's
outer edge, and are kept without looking; for most others one exponential in double precision decides. Where the double is too
close to decide, exact arithmetic does, with more random bits (`_is_under`).

How far this is from round(Z), given perfect random bits:

  - Strips, heights and positions are uniform over whole numbers, exactly. Bits of height and position that were not drawn are
    uniform too; they are drawn when a decision needs them.
  - A decision in double precision is taken only if |height - density| is more than MARGIN = 2^-36 of the density. The exponent
    is at most 8192 and has a relative error below 2^-50, so its exponential is off by little more than 2^-37; its own rounding
    adds a few units of 2^-53. So all decisions are those of exact arithmetic.
  - Columns end beyond 64 s. Noise that is cut off there still hides a sum that moves by D: outside of the noise's support for
    the other sum lies a chance of at most P(|Z| > 64 s - D), and inside the two chances have the same ratio as without the
    cut. With D <= 20 s (noise multipliers from 0.05 on) that is below 2^-1000 a number.

So a number adds less than 2^-1000 to delta (`limbeck.privacy.grid`), and nothing to epsilon. How many points are drawn, and so
the time, depends on the noise: draw it before any record is touched.
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal, localcontext
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

FINE = 1024  # strips of width 1, in units of 2^m steps
WIDE, WIDE_BITS = 112, 6  # strips of width 64 beyond them, up to 8192 >= 64 s
COLUMN_BITS = 53  # columns of the table of aliases: 2^11 of 2^53 each
COLUMNS = 1 << (64 - COLUMN_BITS)
POSITION_BITS = 50
MARGIN = 2.0**-36
AT_ONCE = 1 << 14  # points whose arrays fit the cache together
LEAST_STEPS, MOST_STEPS = 2.0**-8, 2.0**48

Words = NDArray[np.uint64]


class Bits(Protocol):
    """Uniform 64-bit words."""

    def integers(self, count: int) -> Words: ...


class Segment(NamedTuple):
    """A piece of a strip's column that lies in one column of the table."""

    strip: int
    base: int  # add it to the place in the table's column to get the place in the strip's


class RoundedGaussian:
    """The tables for one standard deviation, in steps.

    >>> class Counted:
    ...     random = np.random.default_rng(3)
    ...     def integers(self, count: int) -> Words:
    ...         return self.random.integers(0, 2**64, count, dtype=np.uint64)
    >>> drawn = RoundedGaussian(1000.0).draw(Counted(), 10_000)
    >>> drawn.dtype, 980 < float(drawn.std()) < 1020
    (dtype('int64'), True)
    """

    def __init__(self, steps: float) -> None:
        if not LEAST_STEPS <= steps < MOST_STEPS:
            raise ValueError(f"The sampler takes widths from {LEAST_STEPS} to {MOST_STEPS:g} steps, got {steps}.")
        exponent = math.frexp(steps)[1] - 7
        # The standard deviation in units of 2^m steps, in [64, 128), without rounding.
        self._s = math.ldexp(steps, -exponent)
        self._shift = np.uint64(POSITION_BITS - 1 - exponent)
        left = np.concatenate([np.arange(FINE), FINE + np.arange(WIDE) * 2**WIDE_BITS])
        inner = self._shape(left.astype(np.float64))
        outer = self._shape(np.append(left[1:], left[-1] + 2**WIDE_BITS).astype(np.float64))
        widths = np.repeat([0, WIDE_BITS], [FINE, WIDE])
        # The total with room for rounding up: the rest of 2^64 is rejected.
        self._height = (2.0**64 - 2.0**30) / (float((inner * 2.0**widths).sum()) * (1 + 2 * MARGIN))
        heights = [max(1, math.ceil(self._height * float(value) * (1 + MARGIN))) for value in inner]
        areas = [height << int(width) for height, width in zip(heights, widths, strict=True)]
        self._left, self._widths = left, widths
        self._tables(areas, [math.floor(self._height * float(value) * (1 - MARGIN)) for value in outer])

    def _shape(self, at: NDArray[np.float64]) -> NDArray[np.float64]:
        """The density, 1 at 0."""
        density: NDArray[np.float64] = np.exp(-0.5 * (at / self._s) ** 2)
        return density

    def _tables(self, areas: list[int], safe: list[int]) -> None:
        """By place in the table: where a second piece begins, and for each piece its strip, base and safe height."""
        splits, segments = aliases(areas)
        self._splits = np.array(splits, dtype=np.uint64)
        self._strips = np.array([segment.strip for segment in segments], dtype=np.int64)
        self._bases = np.array([segment.base % 2**64 for segment in segments], dtype=np.uint64)
        is_fine = [0 <= segment.strip < FINE for segment in segments]
        safes = [safe[s.strip] if fine else 0 for s, fine in zip(segments, is_fine, strict=True)]
        starts = [s.strip << POSITION_BITS if fine else 0 for s, fine in zip(segments, is_fine, strict=True)]
        self._safe, self._starts = np.array(safes, dtype=np.uint64), np.array(starts, dtype=np.uint64)

    def draw(self, bits: Bits, count: int) -> NDArray[np.int64]:
        """So many independent numbers, in steps."""
        drawn = np.empty(count, dtype=np.int64)
        filled = 0
        while filled < count:
            wanted = min(count - filled, AT_ONCE)
            kept = self._kept(bits, wanted + wanted // 40 + 8)[:wanted]
            drawn[filled : filled + len(kept)] = kept
            filled += len(kept)
        return drawn

    def _kept(self, bits: Bits, tries: int) -> NDArray[np.int64]:
        words, more = bits.integers(tries), bits.integers(tries)
        column = (words >> np.uint64(COLUMN_BITS)).view(np.int64)
        place = words & np.uint64((1 << COLUMN_BITS) - 1)
        piece = 2 * column + (place >= self._splits[column])
        height = place + self._bases[piece]  # modulo 2^64, as bases are
        at = self._starts[piece] + (more >> np.uint64(64 - POSITION_BITS))
        keep = height < self._safe[piece]
        unsure = np.flatnonzero(~keep)
        at[unsure], keep[unsure] = self._decided(self._strips[piece[unsure]], height[unsure], more[unsure], bits)
        # Half a step is 2^shift units of the position.
        whole = ((at >> self._shift) + np.uint64(1) >> np.uint64(1)).view(np.int64)
        sign = (more & np.uint64(1)).view(np.int64)
        chosen: NDArray[np.int64] = ((whole ^ -sign) + sign)[keep]
        return chosen

    def _decided(
        self, strip: NDArray[np.int64], area: Words, more: Words, bits: Bits
    ) -> tuple[Words, NDArray[np.bool_]]:
        """Positions, and whether each point lies under the density."""
        there = strip >= 0
        strip = np.where(there, strip, 0)
        width = self._widths[strip].astype(np.uint64)
        height = area >> width
        at = (self._left[strip].astype(np.uint64) << np.uint64(POSITION_BITS)) + (
            (more >> np.uint64(64 - POSITION_BITS)) << width
        )
        density = self._height * self._shape(at * 2.0**-POSITION_BITS)
        keep = there & (height + 1.0 <= density * (1 - MARGIN))
        # Below height 1 the bits that were not drawn decide.
        drop = ~there | ((height >= density * (1 + MARGIN)) & (height > 0))
        for index in np.flatnonzero(~keep & ~drop):
            keep[index] = self._is_under(int(height[index]), int(at[index]), int(width[index]), bits)
        return at, keep

    def _is_under(self, height: int, at: int, spare: int, bits: Bits) -> bool:
        """Whether height + f < density at (at + u 2^spare) 2^-50; the bits of f and u in [0, 1) are drawn as they are needed."""
        f = u = drawn = 0
        while True:
            for _ in range(2):
                f, u = (value << 64 | int(word) for value, word in zip((f, u), bits.integers(2), strict=True))
                drawn += 64
            with localcontext() as context:
                context.prec = 60 + drawn
                unit, one = Decimal(2) ** -drawn, 1 + Decimal(10) ** -(drawn // 2 + 40)
                near, far = ((at + (u + end) * unit * 2**spare) * Decimal(2) ** -POSITION_BITS for end in (0, 1))
                low, high = (
                    Decimal(self._height) * (-((x / Decimal(self._s)) ** 2) / 2).exp() * slack
                    for x, slack in ((far, 1 / one), (near, one))
                )
                if height + (f + 1) * unit <= low:
                    return True
                if height + f * unit >= high:
                    return False


def aliases(areas: list[int]) -> tuple[list[int], list[Segment]]:
    """Lay areas out in COLUMNS columns of 2^COLUMN_BITS, at most two pieces to a column (Walker's aliases, in whole numbers).

    Guarantee: each area is laid out exactly, piece after piece from its base on; what is left is strip -1.
    """
    full, rest = 1 << COLUMN_BITS, (1 << 64) - sum(areas)
    assert rest >= 0
    left = {strip: area for strip, area in [*enumerate(areas), (-1, rest)] if area}
    laid = dict.fromkeys(left, 0)
    small = [strip for strip, area in left.items() if area < full]
    large = [strip for strip, area in left.items() if area >= full]
    splits, segments = [], []
    for _ in range(COLUMNS):
        first = small.pop() if small else large[-1]
        size = min(left[first], full)
        second = first if size == full else large[-1]
        splits.append(size)
        for strip, begin, end in ((first, 0, size), (second, size, full)):
            segments.append(Segment(strip, laid[strip] - begin))
            laid[strip] += end - begin
            left[strip] -= end - begin
        if large and left[large[-1]] < full:
            shrunk = large.pop()
            if left[shrunk]:
                small.append(shrunk)
    return splits, segments


@functools.lru_cache(maxsize=64)
def rounded_gaussian(steps: float) -> RoundedGaussian:
    """The tables are made once for each width: they take a few milliseconds."""
    return RoundedGaussian(steps)
