"""Round numbers to suggest in a drafted schema: a round range tells less about the records than their extremes."""

from __future__ import annotations

import math

import numpy as np

from limbeck.data.records import Array


def round_range(values: Array) -> tuple[float, float]:
    """A round range that holds all finite values, with low < high.

    >>> round_range(np.array([17.0, 90.0]))
    (10.0, 90.0)
    >>> round_range(np.array([0.02, 0.97]))
    (0.0, 1.0)
    """
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    if not finite.size:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    spread = high - low or abs(high) or 1.0
    step = 10.0 ** math.floor(math.log10(spread))
    digits = max(0, -round(math.log10(step)))
    low, high = round(math.floor(low / step) * step, digits), round(math.ceil(high / step) * step, digits)
    return (low, high) if low < high else (low, low + step)


def round_count(count: int) -> int:
    """The count to two digits.

    >>> round_count(1437), round_count(60000), round_count(7)
    (1400, 60000, 7)
    """
    step = int(10 ** max(0, len(str(count)) - 2))
    return max(1, round(count / step) * step)
