"""What is asked of one column of the rows to be drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Values in [low, high] but for those in `without`; places in the list of categories count as values.

    values, gaps: whether a row that has a value may come, and one that has none.

    >>> Limit(low=3).together(Limit(high=7, gaps=False))
    Limit(low=3, high=7, without=frozenset(), values=True, gaps=False)
    """

    low: float = -math.inf
    high: float = math.inf
    without: frozenset[float] = frozenset()
    values: bool = True
    gaps: bool = True

    def together(self, other: Limit) -> Limit:
        """What both ask."""
        return Limit(
            low=max(self.low, other.low),
            high=min(self.high, other.high),
            without=self.without | other.without,
            values=self.values and other.values,
            gaps=self.gaps and other.gaps,
        )
