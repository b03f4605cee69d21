"""Features of a freshly initialised network (NDPDC, DM), under the augmentation that the synthetic set gets, too."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from limbeck.nets import Augmentation, FrozenEmbedding, NetSpec, apply
from limbeck.nets.features.embedding import records_at_once
from limbeck.nets.training.augment import NUMBERS, AugmentationDraw
from limbeck.vault.maps.base import Map
from limbeck.vault.maps.blocks import block_size


@dataclass(frozen=True, kw_only=True)
class RandomFeatures(Map):
    """The embedding of the record by a freshly initialised network, after an augmentation drawn per class.

    `with_count` appends a 1 to every row, so that the sum tells how many records it is over. The 1 is clipped together
    with the features, like everything that one record touches (rule 2).
    """

    kind: ClassVar[str] = "random_features"
    chunk: ClassVar[int] = 256
    net: NetSpec
    shape: tuple[int, ...]
    seed: int
    augmentation: Augmentation | None = None
    with_count: bool = False

    @functools.cached_property
    def _embeddings(self) -> dict[torch.device, FrozenEmbedding]:
        return {}

    @property
    def block(self) -> int:
        return block_size(records_at_once(self.net, self.shape))

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        """Of records that are sorted by class."""
        return self._embedded(augmented_by_class(x, y, self.augmentation, self.seed, self.shape))

    def block_rows(self, x: Tensor, y: Tensor) -> Tensor:
        return self._embedded(augmented_block(x, y, self.augmentation, self.seed, self.shape))

    def trial(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([super().trial(x, y), changed_by_each(x, self.augmentation)], dim=1)

    def _embedded(self, x: Tensor) -> Tensor:
        if x.device not in self._embeddings:
            self._embeddings[x.device] = FrozenEmbedding(self.net, self.shape, self.seed, device=x.device)
        embedded = self._embeddings[x.device](x)
        return torch.cat([embedded, embedded.new_ones(len(embedded), 1)], dim=1) if self.with_count else embedded


def augmented_by_class(
    x: Tensor, y: Tensor, augmentation: Augmentation | None, seed: int, shape: tuple[int, ...]
) -> Tensor:
    """Records of one class share their parameters, and the synthetic set gets the same ones. Sorted by class."""
    if augmentation is None or not len(x):
        return x
    classes, sizes = torch.unique_consecutive(y, return_counts=True)
    parts = zip(classes.tolist(), torch.split(x, sizes.tolist()), strict=True)
    return torch.cat([apply(part, augmentation.draw(seed * 1009 + c, shape)) for c, part in parts])


def augmented_block(
    x: Tensor, y: Tensor, augmentation: Augmentation | None, seed: int, shape: tuple[int, ...]
) -> Tensor:
    """The same for one block, in any order: the whole block is changed for each class in it, and each record takes its own.

    Guarantee: every change has the block's shape. Means over a picture would else round by how many of its class stand there.
    """
    if augmentation is None:
        return x
    made = torch.zeros_like(x)
    for c in sorted(set(y.tolist())):
        made = torch.where(
            (y == c).view(-1, *[1] * (x.dim() - 1)), apply(x, augmentation.draw(seed * 1009 + c, shape)), made
        )
    return made


def changed_by_each(x: Tensor, augmentation: Augmentation | None) -> Tensor:
    """(records, dimension): under every family of the augmentation, whichever a run will draw."""
    families = augmentation.families if augmentation is not None and x.dim() == 4 else ()
    draws = [AugmentationDraw(family, (0.3, 0.7, 0.2)[: NUMBERS[family]]) for family in families]
    return torch.cat([x.new_zeros(len(x), 0), *(apply(x, draw).flatten(1) for draw in draws)], dim=1).double()
