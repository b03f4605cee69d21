"""Several measurements of one thing, as they are kept: their mean, how far they lie apart, and each of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

DIGITS = 4


def std_of(runs: Sequence[float]) -> float | None:
    """Of a single run it is not known: None, not 0."""
    return round(statistics.stdev(runs), DIGITS) if len(runs) > 1 else None


def spread(runs: Sequence[float]) -> dict[str, Any]:
    """
    >>> spread([80.0, 90.0])
    {'mean': 85.0, 'std': 7.0711, 'runs': [80.0, 90.0]}
    >>> spread([80.0])
    {'mean': 80.0, 'std': None, 'runs': [80.0]}
    """
    return {
        "mean": round(statistics.fmean(runs), DIGITS),
        "std": std_of(runs),
        "runs": [round(run, DIGITS) for run in runs],
    }
