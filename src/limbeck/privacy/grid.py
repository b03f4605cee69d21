"""The grid: sums are whole numbers of a public step, and so is their noise.

A record's vector is clipped, rounded to whole steps and added up as integers; Gaussian noise is rounded to whole steps and added.
For a whole number S and a real Z, S + round(Z) = round(S + Z). So the answer is the Gaussian mechanism of real numbers,
rounded afterwards, and rounding afterwards costs nothing: every price is that of the plain Gaussian.

The step is a function of two public numbers of a query and of nothing else. With it

    noise      is at least 2^20 steps wide
    clip       is at least 2^30 steps, so 2^10 sqrt(d) steps for vectors of up to d = 2^40 numbers, and below 2^32 steps, so
               that 2^30 records cannot overflow 64 bits. (If more did, the sum would wrap round, which is a function of the
               whole sum as well: it would be useless, and still private.)
    step       is a power of 4: scaling by it is exact, and so is scaling by its root, for outer products

Noise that is more than 2^16 times as wide as the clip has a coarser step, because its sampler has 48 bits; the clip is lost in
such noise anyway.
"""

from __future__ import annotations

import math

CLIP_BITS = 30
NOISE_BITS = 20
MOST_NOISE_BITS = 48  # the sampler's limit (limbeck.vault.rounded_gaussian)
# Of a smaller clip, what a record's gradient is multiplied with would be no normal double any more, and its rounding a large part
# of it. Answers are kept in single precision, where such a clip is 0.
LEAST_CLIP = 1e-100

# How far the sampler is from a rounded Gaussian, a number: `limbeck.vault.rounded_gaussian` proves it.
SAMPLER_ERROR_BITS = 1000
MOST_NUMBERS_BITS = 40  # numbers of one answer; more do not fit any machine


def step_of(clip: float, noise_multiplier: float) -> float:
    """The step of a query: the largest power of 4 with `clip` and noise as wide as said above. 0 without a clip.

    >>> step_of(1.0, 1.0) == 2.0**-30, step_of(4.0, 0.5) == 2.0**-28, step_of(1.0, 1e9) == 2.0**-16
    (True, True, True)
    """
    if math.isinf(clip):
        return 0.0
    exponent = _bits(clip) - CLIP_BITS
    if noise_multiplier > 0:
        noise = _bits(clip) + _bits(noise_multiplier)  # at most one below the bits of the product
        exponent = max(min(exponent, noise - NOISE_BITS), noise + 2 - MOST_NOISE_BITS + 1)
    # Scaling by steps below 2^-1020 would overflow; clips that small are made a little coarser, which is on the safe side.
    return math.ldexp(1.0, max(exponent // 2 * 2, -1020))


def _bits(value: float) -> int:
    """The largest n with 2^n <= value."""
    return math.frexp(value)[1] - 1


def sampler_delta(answers: int) -> float:
    """What the sampler's error adds to delta, for so many answers of up to 2^40 numbers each.

    Guarantee: an upper bound. It is far below what a double can add to any delta of use.
    """
    return math.ldexp(float(answers), MOST_NUMBERS_BITS - SAMPLER_ERROR_BITS)
