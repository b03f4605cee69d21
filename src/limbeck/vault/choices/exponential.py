"""The exponential mechanism, drawn exactly: candidate i with a chance of exp(score_i / scale) / Z, for whole scores.

One uniform number v in [0, 1) decides: with the candidates laid out in [0, 1) one after the other, each as long as its chance,
the one that v lies in is drawn. Neither v nor the chances are ever rounded to doubles:

  - v is known by its first n bits, so it lies in [k, k + 1) 2^-n. As many bits as are needed are drawn.
  - exp((score_i - highest) / scale) is bounded from both sides by whole numbers of 10^-digits. The quotient of whole numbers is
    off by at most one unit of its last digit, `decimal` rounds an exponential correctly, and SLACK units cover both; what is
    smaller than one unit lies between 0 and 1 units.
  - a candidate is drawn only if v lies within its piece however the bounds are read. If it is too close to an end, digits and
    bits are doubled. So every draw is that of exact arithmetic, and the sampler adds nothing to epsilon or delta.

With 256 bits and 96 digits to begin with, a second round comes once in 2^200 draws, so the time does not depend on the scores to
speak of. The first bits are drawn before a record is touched. (Weights of doubles would have chances that are 0 on one data set
and not on its neighbour; noise in doubles has gaps: Mironov 2012, Ilvento 2020.)
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

WORDS, DIGITS = 4, 96
SLACK = 4


class Bits(Protocol):
    """Uniform 64-bit words."""

    def integers(self, count: int) -> NDArray[np.uint64]: ...


class Uniform:
    """A secret number in [0, 1), known to as many bits as were asked for so far."""

    def __init__(self, stream: Bits) -> None:
        self._stream = stream
        self.first, self.bits = 0, 0
        self.refine(WORDS)

    def refine(self, words: int) -> None:
        for word in self._stream.integers(words):
            self.first, self.bits = self.first << 64 | int(word), self.bits + 64


def drawn(scores: Sequence[int], scale: Fraction, uniform: Uniform) -> int:
    """The place of the candidate that is drawn. scale: in the units of the scores; 0 takes the first of the highest.

    Guarantee: exactly the exponential mechanism, given uniform bits.

    >>> class Half:
    ...     integers = staticmethod(lambda count: np.full(count, 2**63, dtype=np.uint64))
    >>> drawn([0, 0, 0], Fraction(1), Uniform(Half())), drawn([0, 9, 0], Fraction(1), Uniform(Half()))
    (1, 1)
    """
    highest = max(scores)
    if scale == 0:
        return list(scores).index(highest)
    digits = DIGITS
    while True:
        bounds = [_bounds(highest - score, scale, digits) for score in scores]
        low, high = (list(accumulate(side, initial=0)) for side in zip(*bounds, strict=True))
        unit = 1 << uniform.bits
        for place in range(len(scores)):
            # v >= high / (the least total) and v + 1 <= low / (the largest total), in whole numbers.
            begins = uniform.first * low[-1] >= high[place] * unit
            ends = (uniform.first + 1) * high[-1] <= low[place + 1] * unit
            if begins and ends:
                return place
        digits *= 2
        uniform.refine(uniform.bits // 64)


def _bounds(gap: int, scale: Fraction, digits: int) -> tuple[int, int]:
    """Whole numbers of 10^-digits below and above exp(-gap / scale)."""
    if gap > 4 * digits * scale:  # e^-4 < 1 / 10
        return 0, 1
    with localcontext() as context:
        context.prec = digits + 30
        exponent = Decimal(-gap) * scale.denominator / Decimal(scale.numerator)
        whole = int(exponent.exp().scaleb(digits))
    return max(whole - SLACK, 0), whole + SLACK
