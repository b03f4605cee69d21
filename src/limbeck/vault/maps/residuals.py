"""Residuals: how records differ from a public centre, as they are or in the features of a network.

Most of a record is common to all records, and a clip that pays for the common part has less left for the rest. A map that
subtracts a public centre first, and is scaled by a public bound, spends the whole clip on what is not known yet.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.nets import FrozenEmbedding, NetSpec
from limbeck.nets.features.embedding import records_at_once
from limbeck.nets.features.pooled import pooled
from limbeck.nets.training.warp import warp
from limbeck.vault.maps.base import Map, digest_of, in_blocks, outer_sums
from limbeck.vault.maps.blocks import TILE, block_size
from limbeck.vault.maps.bound import Bound, clip_rows

FORMS = ("vector", "length", "outer")
LARGEST_SIDE = 1 << 14


@dataclass(frozen=True, kw_only=True)
class Residual(Map):
    """(x - centre of the record's class) / scale, in coordinates of a public basis if one is given.

    centre  (classes, dimension), or (1, dimension) for all classes
    basis   (coordinates, dimension) or none
    form    'vector'; 'length': its norm alone; 'outer': its outer product with itself
    size    (height, width) that pictures are averaged down to first, or none: as they are
    """

    kind: ClassVar[str] = "residual"
    chunk: ClassVar[int] = 1024
    centre: Tensor
    scale: float
    basis: Tensor | None = None
    form: str = "vector"
    size: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        _require_size(self.size)
        if self.form not in FORMS:
            raise BadInput(f"form must be one of {', '.join(FORMS)}, got form={self.form!r}.")
        _require_tables(centre=self.centre, **({} if self.basis is None else {"basis": self.basis}))

    @property
    def block(self) -> int:
        """Pictures that are averaged down are large, and so are the records that kernels are tried with."""
        return super().block if self.size is None else 2 * TILE

    def _vectors(self, x: Tensor, y: Tensor) -> Tensor:
        centre = self.centre.to(x.device)
        flat = pooled(x, self.size).flatten(1) - (centre if len(centre) == 1 else centre[y])
        return (flat if self.basis is None else flat @ self.basis.to(x.device).T) / self.scale

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        vectors = self._vectors(x, y)
        if self.form == "length":
            lengths: Tensor = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
            return lengths
        return vectors if self.form == "vector" else torch.einsum("bi,bj->bij", vectors, vectors).flatten(1)

    def trial(self, x: Tensor, y: Tensor) -> Tensor:
        return clip_rows(self._vectors(x, y), 1.0) if self.form == "outer" else super().trial(x, y)

    def clipped_sum(
        self, x: Tensor, row: Tensor, y: Tensor, count: int, bound: Bound, block: int | None = None
    ) -> Tensor:
        """Outer products without a row for every record. Guarantee: that of `outer_sums`, or of every map."""
        if self.form != "outer":
            return super().clipped_sum(x, row, y, count, bound, block)
        return outer_sums(in_blocks(self._vectors, x, y, bound.root(), block or self.block), row, count)

    def parameters(self) -> dict[str, Any]:
        plain = {"centre": _hash(self.centre), "scale": self.scale, "basis": _hash(self.basis), "form": self.form}
        return plain | _stated_size(self.size)


@dataclass(frozen=True, kw_only=True)
class ResidualFourier:
    """Random Fourier features of residuals, minus a public centre, divided by a public scale.

    The mean residual of a class tells where it lies; the means of these features tell how it is spread about its mean.

    directions  (dimension, features); phases (features,); centre (classes, features)
    """

    directions: Tensor
    phases: Tensor
    centre: Tensor
    scale: float

    def __post_init__(self) -> None:
        _require_tables(directions=self.directions, phases=self.phases[None], centre=self.centre)

    def features(self, residuals: Tensor) -> Tensor:
        """Of norm near 1, however many there are."""
        turned = residuals @ self.directions.to(residuals.device) + self.phases.to(residuals.device)
        return turned.cos() * math.sqrt(2 / len(self.phases))

    def rows(self, residuals: Tensor, y: Tensor) -> Tensor:
        return (self.features(residuals) - self.centre.to(residuals.device)[y]) / self.scale

    def parameters(self) -> dict[str, Any]:
        tensors = {"directions": self.directions, "phases": self.phases, "centre": self.centre}
        return {name: _hash(value) for name, value in tensors.items()} | {"scale": self.scale}


@dataclass(frozen=True, kw_only=True)
class FeatureResidual(Map):
    """(features of the record - centre of its class) / scale, under one affine change of all records.

    weights  of the body of the network, as a method trained it on its set
    change   the six numbers of an affine map, or none
    waves    random Fourier features of the residual, or none. A row then holds both, each times the root of one half, so
             that its norm stays near 1. The field keeps its first name: it is part of the digest of stored answers.
    size     (height, width) that pictures are averaged down to first, which `shape` then has; or none: as they are
    """

    kind: ClassVar[str] = "feature_residual"
    chunk: ClassVar[int] = 512
    net: NetSpec
    shape: tuple[int, ...]
    weights: dict[str, Tensor]
    centre: Tensor
    scale: float
    change: tuple[float, ...] | None = None
    waves: ResidualFourier | None = None
    size: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        _require_size(self.size)
        _require_tables(centre=self.centre)

    @functools.cached_property
    def _embeddings(self) -> dict[torch.device, FrozenEmbedding]:
        return {}

    @property
    def block(self) -> int:
        return block_size(records_at_once(self.net, self.shape))

    def embed(self, x: Tensor) -> Tensor:
        """The features alone: what a method compares its own records by. Its own may have the size already."""
        x = pooled(x, self.size)
        if x.device not in self._embeddings:
            self._embeddings[x.device] = FrozenEmbedding(self.net, self.shape, 0, device=x.device, weights=self.weights)
        return self._embeddings[x.device](x if self.change is None else warp(x, self.change))

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        residuals = (self.embed(x) - self.centre.to(x.device)[y]) / self.scale
        if self.waves is None:
            return residuals
        return torch.cat([residuals, self.waves.rows(residuals, y)], dim=1) * math.sqrt(0.5)

    def parameters(self) -> dict[str, Any]:
        hashes = {name: _hash(value) for name, value in self.weights.items()}
        plain = {"net": self.net.to_dict(), "shape": self.shape, "weights": hashes, "centre": _hash(self.centre)}
        waves = {} if self.waves is None else {"waves": self.waves.parameters()}
        return plain | {"scale": self.scale, "change": self.change, **waves, **_stated_size(self.size)}


def _require_size(size: tuple[int, ...] | None) -> None:
    if size is not None and (len(size) != 2 or not all(1 <= side <= LARGEST_SIDE for side in size)):
        raise BadInput(f"size must be a height and a width of 1 ... {LARGEST_SIDE}, got {size}.")


def _stated_size(size: tuple[int, ...] | None) -> dict[str, Any]:
    """Said only where there is one: the digest of a question without it is what it was before there were sizes."""
    return {} if size is None else {"size": list(size)}


def _require_tables(**tensors: Tensor) -> None:
    """Guarantee: no axis of these lies along the records, so that subtracting or multiplying one never mixes them (rule 7)."""
    for name, value in tensors.items():
        if value.dim() != 2:
            raise BadInput(f"A residual takes tables with rows and columns; {name} has the shape {tuple(value.shape)}.")


def _hash(tensor: Tensor | None) -> str | None:
    return None if tensor is None else digest_of(tensor)
