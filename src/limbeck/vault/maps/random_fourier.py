"""Random Fourier features of a record: their sum is the data's mean embedding (DP-MERF)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from limbeck.nets.features.fourier import FourierSpec, fourier_features
from limbeck.vault.maps.base import Map


@dataclass(frozen=True, kw_only=True)
class RandomFourier(Map):
    """Cosines and sines of random projections of the record, of norm 1.

    With one row per class the sum is that of the features of (x, label): the label's one-hot vector only says which row.

    Guarantee: every row has norm 1 up to rounding, whatever the record; the vault clips it like any other, so a clip of 1
    takes nothing away and is a true bound.
    """

    kind: ClassVar[str] = "random_fourier"
    chunk: ClassVar[int] = 256
    spec: FourierSpec

    @functools.cached_property
    def _frequencies(self) -> dict[torch.device, Tensor]:
        return {}

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        if x.device not in self._frequencies:
            self._frequencies[x.device] = self.spec.frequencies(x.device)
        return fourier_features(x, self._frequencies[x.device])
