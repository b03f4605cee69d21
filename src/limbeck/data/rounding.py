"""Round numbers to suggest in a drafted schema: a round range tells less about the records than their extremes."""

from __future__ import annotations

import math

import numpy as np

from limbeck.data.records import Array
from limbeck.privacy.dates import iso_text, moment
from limbeck.privacy.entries import MOST_VALUE

CHUNK = 1 << 20
LEAST_SPREAD = 1e-20


def round_range(values: Array) -> tuple[float, float]:
    """A round range that holds all finite values, with low < high.

    >>> round_range(np.array([17.0, 90.0]))
    (10.0, 90.0)
    >>> round_range(np.array([0.02, 0.97]))
    (0.0, 1.0)
    """
    low, high = _extremes(values)
    if low > high:
        return 0.0, 1.0
    spread = high - low if high - low > LEAST_SPREAD else max(abs(high), LEAST_SPREAD) if high else 1.0
    step = 10.0 ** math.floor(math.log10(spread))
    digits = max(0, -round(math.log10(step)))
    low, high = round(math.floor(low / step) * step, digits), round(math.ceil(high / step) * step, digits)
    # Beside a large number a step may be too small to change it.
    return (low, high) if low < high else (low, low + max(step, abs(low) * 1e-9))


def round_years(numbers: Array, kind: str) -> tuple[float, float]:
    """The whole years that hold all days, or seconds, since 1970.

    >>> round_years(np.array([40.0, 800.0]), "date")
    (0.0, 1095.0)
    """
    low, high = (iso_text(float(end), kind)[:4] for end in (numbers.min(), numbers.max()))
    return moment(f"{low}-01-01", kind), moment(f"{high}-12-31T23:59:59", kind)


def _extremes(values: Array) -> tuple[float, float]:
    """The least and the greatest finite value, within what a schema may say; in pieces, for they become doubles."""
    low, high = math.inf, -math.inf
    rows = max(1, CHUNK // max(1, values[:1].size))
    for start in range(0, len(values), rows):
        with np.errstate(over="ignore"):
            piece = np.asarray(values[start : start + rows], dtype=np.float64)
        # A tenth of the bound leaves room for rounding outwards.
        piece = np.clip(piece[np.isfinite(piece)], -MOST_VALUE / 10, MOST_VALUE / 10)
        if piece.size:
            low, high = min(low, float(piece.min())), max(high, float(piece.max()))
    return low, high


def round_count(count: int) -> int:
    """The count to two digits.

    >>> round_count(1437), round_count(60000), round_count(7)
    (1400, 60000, 7)
    """
    step = int(10 ** max(0, len(str(count)) - 2))
    return max(1, round(count / step) * step)
