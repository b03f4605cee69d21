"""Random Fourier features of a record: their sum is the data's mean embedding (DP-MERF)."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from limbeck.nets import FrozenEmbedding, NetSpec
from limbeck.nets.features.fourier import FourierSpec, fourier_features
from limbeck.vault.maps.base import Map, digest_of


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


@dataclass(frozen=True, kw_only=True)
class CodeFourier(Map):
    """The same of a record's code, which a public network makes of it (DP-MERF with an autoencoder).

    weights  of the network's body, as a method trained it on answers; spec.numbers is the size of the code

    Guarantee: every row has norm 1 up to rounding, whatever the record and the network, and is made of its record alone.
    """

    kind: ClassVar[str] = "code_fourier"
    chunk: ClassVar[int] = 256
    net: NetSpec
    shape: tuple[int, ...]
    weights: dict[str, Tensor]
    spec: FourierSpec

    @functools.cached_property
    def _embeddings(self) -> dict[torch.device, FrozenEmbedding]:
        return {}

    @functools.cached_property
    def _of_codes(self) -> RandomFourier:
        return RandomFourier(spec=self.spec)

    def of_codes(self, codes: Tensor, y: Tensor) -> Tensor:
        """The rows of records with these codes: what a method compares its own codes by."""
        return self._of_codes.rows(codes, y)

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        if x.device not in self._embeddings:
            self._embeddings[x.device] = FrozenEmbedding(self.net, self.shape, 0, device=x.device, weights=self.weights)
        return self.of_codes(self._embeddings[x.device](x), y)

    def parameters(self) -> dict[str, Any]:
        hashes = {name: digest_of(value) for name, value in self.weights.items()}
        return {"net": self.net.to_dict(), "shape": self.shape, "weights": hashes, "spec": asdict(self.spec)}
