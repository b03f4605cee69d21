"""Drawing records until there are enough that keep to what was asked."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from limbeck.errors import BadInput
from limbeck.release.conditions import Conditions

MOST_RECORDS = 10_000_000
TRIED = 100_000  # records that are drawn before a condition counts as one that hardly any keeps
LEAST_SHARE = 1e-3  # of them that have to keep it
SPARE = 1.1  # how many more are drawn than should be needed

Drawn = tuple[NDArray[np.float32], NDArray[np.int64]]


def checked_count(count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_RECORDS:
        raise BadInput(f"count must lie in 1 ... {MOST_RECORDS}, got count={count!r:.40}.")
    return count


def seed_of(seed: int) -> int:
    """By way of a digest, so that neighbouring seeds have nothing in common."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**31:
        raise BadInput(f"seed must lie in 0 ... 2^31 - 1, got seed={seed!r:.40}.")
    return int.from_bytes(hashlib.sha256(f"sample {seed}".encode()).digest()[:7], "big")


def gathered(
    count: int, shape: tuple[int, ...], draw: Callable[[int], Drawn], conditions: Conditions, at_once: int
) -> Drawn:
    """`count` records that keep to the conditions, from draws of up to `at_once`. A draw may give fewer than it was asked for.

    Guarantee: ends. A condition that fewer than one record in a thousand keeps is refused.
    """
    x, y = np.empty((count, *shape), np.float32), np.empty(count, np.int64)
    found = tried = 0
    while found < count:
        rate = (found + 1) / (tried + 1) if tried else 1.0
        wanted = min(math.ceil((count - found) / rate * SPARE) if rate < 1 else count - found, at_once)
        records, labels = draw(wanted)
        kept = np.flatnonzero(conditions.hold(records, labels))[: count - found] if conditions else slice(count - found)
        records, labels = records[kept], labels[kept]
        x[found : found + len(records)], y[found : found + len(records)] = records.reshape(-1, *shape), labels
        found, tried = found + len(records), tried + wanted
        if found < count and tried >= TRIED and found < LEAST_SHARE * tried:
            raise none_fits(conditions, f"of {tried} that were drawn {found} did")
    return x, y


def none_fits(conditions: Conditions, found: str) -> BadInput:
    return BadInput(
        f"Hardly any record keeps to {conditions.text} ({found}), so there is nothing to draw from. Ask for less: drop a "
        "condition, or give a wider range."
    )
