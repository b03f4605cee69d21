"""Bins of a column from noised counts of its fine cells, each by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

SURE = 4.0  # standard deviations of noise that the records of a bin outnumber
LIGHTEST = 0.0015  # share of the records below which no single value is a bin of its own
FEW = 120  # fine cells up to which a single one is treated like every other bin
AROUND, MANY_MORE = 8, 4.0  # cells on both sides, and how often their mean a cell has to hold to stand out


def bin_starts(counts: Numbers, noise: float, records: float, most: int, alone: Sequence[int] = ()) -> list[int]:
    """Where bins begin among fine cells, from the noised number of records in each. Those at the places `alone` are bins.

    A bin is closed when it surely holds a fair share of the records. A cell that stands out by itself, such as a 0 that most
    records have, is a bin of its own.
    """
    fair = max(records / most, SURE * noise)
    heavy = counts > fair if len(counts) <= FEW else _stand_out(counts, noise, records, most)
    heavy[np.asarray(alone, dtype=np.int64)] = True
    starts, is_new, held, cells = [], True, 0.0, 0
    for place, (count, is_heavy) in enumerate(zip(counts.tolist(), heavy.tolist(), strict=True)):
        if is_heavy:
            starts.append(place)
            is_new = True
            continue
        if is_new:
            starts.append(place)
            is_new, held, cells = False, 0.0, 0
        held, cells = held + count, cells + 1
        is_new = held - 0.5 * noise * math.sqrt(cells) >= fair
    return starts


def _stand_out(counts: Numbers, noise: float, records: float, most: int) -> NDArray[np.bool_]:
    """Cells with many more records than those around them, surely not by noise; no more of them than bins are wanted."""
    window = np.ones(2 * AROUND + 1)
    around = (np.convolve(counts, window, "same") - counts) / (np.convolve(np.ones(len(counts)), window, "same") - 1)
    surely = noise * (math.sqrt(2 * math.log(len(counts))) + 0.7)
    found = (counts > max(surely, LIGHTEST * records)) & (counts > MANY_MORE * np.maximum(around, 0))
    kept = np.zeros(len(counts), dtype=np.bool_)
    kept[np.argsort(np.where(found, counts, -np.inf))[-most:]] = True
    result: NDArray[np.bool_] = kept & found
    return result
