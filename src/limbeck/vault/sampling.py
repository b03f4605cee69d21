"""Poisson sampling: every record is in the sample by a coin of its own, so the sample's size is itself secret."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Coins(Protocol):
    """Secret 64-bit numbers, one for each record: a `SecretStream`, or the part of one that falls to a shard."""

    def integers(self, count: int) -> NDArray[np.uint64]: ...


def poisson_sample(labels: NDArray[np.int64], rates: Sequence[float], stream: Coins) -> NDArray[np.int64]:
    """Indices of the sampled records, grouped by class.

    Guarantee: each record is drawn independently with a chance of at most its class's rate (the chance is rounded down to
    a multiple of 2^-64); an empty sample is a normal sample (rule 3).
    """
    if min(rates) >= 1:
        drawn = np.arange(len(labels), dtype=np.int64)
    else:
        drawn = np.flatnonzero(stream.integers(len(labels)) < rate_limits(rates)[labels]).astype(np.int64)
    grouped: NDArray[np.int64] = drawn[np.argsort(labels[drawn], kind="stable")]
    return grouped


def rate_limits(rates: Sequence[float]) -> NDArray[np.uint64]:
    """Below which of 2^64 words a coin says yes, for each class. Guarantee: a chance of at most the rate."""
    # rate 1 would overflow 64 bits; 2^64 - 1 as the limit loses a chance of 2^-64, which is on the safe side.
    return np.array([min(int(rate * 2**64), 2**64 - 1) for rate in rates], dtype=np.uint64)


def canonical_order(contents: NDArray[np.uint64]) -> NDArray[np.int64]:
    """An order of the records that does not depend on the order of their file: by the hashes of their contents, (records, 2).

    With it a test's predictable coins fall on the same records however the file is shuffled. Secret coins need no order.
    """
    order: NDArray[np.int64] = np.lexsort((contents[:, 1], contents[:, 0])).astype(np.int64)
    return order
