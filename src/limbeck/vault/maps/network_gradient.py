"""The gradient of a network's loss on one record (PSG, DP-SGD)."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.nets import Augmentation, NetSpec, build
from limbeck.vault.maps.base import Map, digest_of
from limbeck.vault.maps.blocks import blocks
from limbeck.vault.maps.bound import Bound
from limbeck.vault.maps.clipped_gradients import ENTROPY, RECONSTRUCTION, SCORE, ClippedGradients
from limbeck.vault.maps.random_features import augmented_block, changed_by_each


@dataclass(frozen=True, kw_only=True)
class NetworkGradient(Map):
    """The gradient of the cross-entropy of one record with respect to all parameters of a network.

    clipping      'joint': all parameters together; 'per_layer': each weight tensor to an equal share of the bound
    augmentation  drawn per class from `seed`, before the network sees the record
    """

    kind: ClassVar[str] = "network_gradient"
    chunk: ClassVar[int] = 1024  # the engine takes as few of them at a time as the cache holds
    net: NetSpec
    shape: tuple[int, ...]
    classes: int
    weights: dict[str, Tensor]
    clipping: str = "joint"
    augmentation: Augmentation | None = None
    seed: int = 0

    loss: ClassVar[str] = ENTROPY

    def __post_init__(self) -> None:
        if self.clipping not in ("joint", "per_layer"):
            raise BadInput(f"clipping must be 'joint' or 'per_layer', got clipping={self.clipping!r}.")

    @functools.cached_property
    def _engines(self) -> dict[torch.device, ClippedGradients]:
        return {}

    def _engine(self, device: torch.device) -> ClippedGradients:
        if device not in self._engines:
            network = build(self.net, self.shape, self.classes, seed=0)
            self._engines[device] = ClippedGradients(network, self.shape, self.weights, device, self.loss)
        return self._engines[device]

    @property
    def block(self) -> int:
        return _gradient_block(self.net, self.shape, self.classes)

    @property
    def width(self) -> int:
        return sum(value.numel() for value in self.weights.values())

    def augmented(self, x: Tensor, y: Tensor) -> Tensor:
        return augmented_block(x, y, self.augmentation, self.seed, self.shape)

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        return self._engine(x.device).rows(self.augmented(x, y), y)

    def trial(self, x: Tensor, y: Tensor) -> Tensor:
        rows = self._engine(x.device).measured_rows(self.augmented(x, y), y)
        return torch.cat([rows, changed_by_each(x, self.augmentation)], dim=1)

    def clipped_sum(
        self, x: Tensor, row: Tensor, y: Tensor, count: int, bound: Bound, block: int | None = None
    ) -> Tensor:
        """Without a row for every record.

        Guarantee: `ClippedGradients.add_clipped` bounds each record's part by the clip; a record is in one row.
        """
        engine, per_layer = self._engine(x.device), self.clipping == "per_layer"
        total = engine.zeros(count)
        for real, (part, labels, rows) in blocks(block or self.block, x, y, row):
            engine.add_clipped(total, self.augmented(part, labels), labels, rows, real, bound, per_layer)
        return total

    def clipped_rows(self, x: Tensor, y: Tensor, bound: Bound, block: int) -> Tensor:
        if self.clipping == "joint":
            return super().clipped_rows(x, y, bound, block)
        sizes, each = [value.numel() for value in self.weights.values()], bound.share(len(self.weights))

        def clipped(rows: Tensor) -> Tensor:
            return torch.cat([each.rows(part) for part in torch.split(rows, sizes, dim=1)], dim=1)

        return torch.cat([clipped(self.rows(part, labels))[:real] for real, (part, labels) in blocks(block, x, y)])

    @torch.no_grad()
    def public_sum(self, x: Tensor, y: Tensor, clip: float) -> Tensor:
        """(width,): the sum over records that are public, such as a generator's, clipped as the vault clips the private ones."""
        return self._engine(x.device).clipped_sum(self.augmented(x, y), y, Bound(clip)).float()

    def parameters(self) -> dict[str, Any]:
        hashes = {name: digest_of(value) for name, value in self.weights.items()}
        plain = {"net": self.net.to_dict(), "shape": self.shape, "classes": self.classes, "weights": hashes}
        return plain | {"clipping": self.clipping, "augmentation": self.augmentation, "seed": self.seed}


@dataclass(frozen=True, kw_only=True)
class ScoreGradient(NetworkGradient):
    """The gradient of -logit[y] in place of the cross-entropy: a step along it raises what a critic gives a record (DP-GAN).

    A label beyond the outputs is refused on public records, by `records_mix`, before a private one is touched.
    """

    kind: ClassVar[str] = "score_gradient"
    loss: ClassVar[str] = SCORE


@dataclass(frozen=True, kw_only=True)
class ReconstructionGradient(NetworkGradient):
    """The gradient of how badly an autoencoder makes the record of its code: the cross-entropy of its numbers, as shares of
    [0, 1] (DP-MERF with an autoencoder). `classes` are the numbers of a record; its label counts for nothing.

    Guarantee: that of `ClippedGradients`, whatever the loss: a record's part of the sum is its own gradient within the clip.
    """

    kind: ClassVar[str] = "reconstruction_gradient"
    loss: ClassVar[str] = RECONSTRUCTION

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.classes != math.prod(self.shape):
            raise BadInput(
                f"An autoencoder of records of {math.prod(self.shape)} numbers makes as many, got classes={self.classes}."
            )


@functools.cache
def _gradient_block(net: NetSpec, shape: tuple[int, ...], classes: int) -> int:
    return ClippedGradients.block_of(build(net, shape, classes, seed=0), shape)
