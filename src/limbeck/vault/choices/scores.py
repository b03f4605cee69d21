"""How candidates are scored: what every kind of scores is. Whole numbers only, so that a score has no last bits to leak.

To add a kind: subclass `Scores` in a file of its own, give it a `kind` that no other ever had, prove the bound of `in_steps` in
a `Guarantee:` line and a test, and add it to the list in `limbeck.vault.choices`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from limbeck.vault.maps.cells import Cells

ONE = 1 << 16  # what a record counts for, in whole numbers; a person's records may count for less each

Counts = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Scores:
    """A score for each of several candidates, from how many records lie in which cells."""

    kind: ClassVar[str] = ""

    cells: Cells

    @property
    def candidates(self) -> int:
        raise NotImplementedError

    def in_steps(self, counts: Counts, step: Fraction) -> list[int]:
        """The score of each candidate, in whole steps, from the count of each cell, where a record counts for ONE.

        Guarantee to keep: if a unit adds at most n to the cells of every tuple, in all, it moves every score by at most
        n / (ONE * step). Nothing else of the counts decides, and whatever they are, nothing is raised (rule 8).
        """
        raise NotImplementedError

    def parameters(self) -> dict[str, Any]:
        raise NotImplementedError

    def digest(self) -> str:
        """A fingerprint of kind and parameters: a resumed run must ask with the same ones to get its stored answer."""
        text = json.dumps({"kind": self.kind, **self.parameters()}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()
