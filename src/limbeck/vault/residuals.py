"""How records differ from what is already known of them: from a public centre, in numbers or in features of a network.

Most of a record is common to all records, and a clip that pays for the common part has less left for the rest. A map that
subtracts a public centre first, and is scaled by a public bound, spends the whole clip on news.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.nets import FrozenEmbedding, NetSpec
from limbeck.nets.warp import warp
from limbeck.vault.maps import Map, outer_sums

FORMS = ("vector", "length", "outer")


@dataclass(frozen=True, kw_only=True)
class Residual(Map):
    """(x - centre of the record's class) / scale, in coordinates of a public basis if one is given.

    centre  (classes, numbers), or (1, numbers) for all classes
    basis   (coordinates, numbers) or none
    form    'vector'; 'length': its norm alone; 'outer': its outer product with itself
    """

    kind: ClassVar[str] = "residual"
    chunk: ClassVar[int] = 1024
    centre: Tensor
    scale: float
    basis: Tensor | None = None
    form: str = "vector"

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise BadInput(f"form must be one of {', '.join(FORMS)}, got form={self.form!r}.")

    def _vectors(self, x: Tensor, y: Tensor) -> Tensor:
        centre = self.centre.to(x.device)
        flat = x.flatten(1) - (centre if len(centre) == 1 else centre[y])
        return (flat if self.basis is None else flat @ self.basis.to(x.device).T) / self.scale

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        vectors = self._vectors(x, y)
        if self.form == "length":
            lengths: Tensor = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
            return lengths
        return vectors if self.form == "vector" else torch.einsum("bi,bj->bij", vectors, vectors).flatten(1)

    def clipped_sum(self, x: Tensor, row: Tensor, y: Tensor, count: int, clip: float) -> Tensor:
        """Outer products without a row for every record. Guarantee: that of `outer_sums`, or of every map."""
        if self.form != "outer":
            return super().clipped_sum(x, row, y, count, clip)
        return outer_sums(self._vectors(x, y), row, count, clip)

    def parameters(self) -> dict[str, Any]:
        return {"centre": _hash(self.centre), "scale": self.scale, "basis": _hash(self.basis), "form": self.form}


@dataclass(frozen=True, kw_only=True)
class FeatureResidual(Map):
    """(features of the record - centre of its class) / scale, under one affine change of all records.

    weights  of the body of the network, as a method trained it on its set
    change   the six numbers of an affine map, or none
    cuts     (cuts, features) or none: normals of planes through the centre. They divide a class into 2 ** cuts cells, and a
             row then has room for every cell, of which the record fills its own; its norm stays what it was.
    """

    kind: ClassVar[str] = "feature_residual"
    chunk: ClassVar[int] = 512
    net: NetSpec
    shape: tuple[int, ...]
    weights: dict[str, Tensor]
    centre: Tensor
    scale: float
    change: tuple[float, ...] | None = None
    cuts: Tensor | None = None

    @functools.cached_property
    def _embeddings(self) -> dict[torch.device, FrozenEmbedding]:
        return {}

    def embed(self, x: Tensor) -> Tensor:
        """The features alone: what a method compares its own records by."""
        if x.device not in self._embeddings:
            self._embeddings[x.device] = FrozenEmbedding(self.net, self.shape, 0, device=x.device, weights=self.weights)
        return self._embeddings[x.device](x if self.change is None else warp(x, self.change))

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        residuals = (self.embed(x) - self.centre.to(x.device)[y]) / self.scale
        if self.cuts is None:
            return residuals
        above = (residuals.detach() @ self.cuts.to(x.device).T > 0).long()
        cell = (above << torch.arange(len(self.cuts), device=x.device)).sum(1)
        own = torch.nn.functional.one_hot(cell, 2 ** len(self.cuts)).to(residuals.dtype)
        return torch.einsum("bc,bf->bcf", own, residuals).flatten(1)

    def parameters(self) -> dict[str, Any]:
        hashes = {name: _hash(value) for name, value in self.weights.items()}
        plain = {"net": self.net.to_dict(), "shape": self.shape, "weights": hashes, "centre": _hash(self.centre)}
        cuts = {} if self.cuts is None else {"cuts": _hash(self.cuts)}
        return plain | {"scale": self.scale, "change": self.change, **cuts}


def _hash(tensor: Tensor | None) -> str | None:
    return None if tensor is None else hashlib.sha256(tensor.cpu().contiguous().numpy().tobytes()).hexdigest()
