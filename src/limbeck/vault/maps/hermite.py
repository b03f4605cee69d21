"""Hermite features of a record: their sum is the data's mean embedding (DP-HP)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from limbeck.nets.features.hermite import HermiteSpec, hermite_features
from limbeck.vault.maps.base import Map


@dataclass(frozen=True, kw_only=True)
class Hermite(Map):
    """Hermite features of all numbers of the record and of pairs of them, of norm 1 at most.

    Guarantee: every row has a norm of at most 1, whatever the record; the vault clips it like any other, so a clip of 1 takes
    nothing away and is a true bound. All that is done to a number is done to it alone, so no record meets another.
    """

    kind: ClassVar[str] = "hermite"
    chunk: ClassVar[int] = 256
    spec: HermiteSpec

    @functools.cached_property
    def _places(self) -> tuple[Tensor, Tensor]:
        return self.spec.places()

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        return hermite_features(x, self.spec, self._places)
