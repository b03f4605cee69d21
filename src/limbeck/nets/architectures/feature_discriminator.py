"""A conditional discriminator over stacked weights that is linear in public random features.

A record's product with a template of its class tells no more than the mean of the class; teachers with hidden units see more, but
a few dozen records do not train them. Here the hidden units are the same for all networks and never learn: filters of smooth
noise, a bias, ReLU. What is learnt is linear in them and in the record, and its gradient depends on the record all the same.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.nets.architectures.network import Shape
from limbeck.nets.kernels.stacked import linear, product, start_weights

GRAIN = 3  # pixels between two independent numbers of a filter
LENGTH = 0.5  # of a filter: about 1 is then what it makes of a picture's deviation from the mean


@dataclass(frozen=True, kw_only=True)
class FeatureDiscriminator:
    """features: how many; seed: which ones."""

    shape: Shape
    classes: int
    features: int
    seed: int

    def start(self, seeds: Sequence[int]) -> dict[str, Tensor]:
        numbers = math.prod(self.shape)
        shapes = {
            "out.weight": (self.features, self.classes),
            "out.bias": (self.classes,),
            "template.weight": (numbers, self.classes),
        }
        return start_weights(shapes, seeds)

    def logits(self, weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        """(networks, records) for x (networks or 1, records, *shape) and y (networks or 1, records)."""
        x = x.flatten(2)
        filters, bias = (value.to(x.device) for value in public_filters(self.shape, self.features, self.seed))
        # One product for all networks; every record's row of it is its own.
        units = torch.relu(product(x.flatten(0, 1)[None], filters[None])[0] + bias).view(*x.shape[:2], -1)
        by_class = linear(units, weights["out.weight"], weights["out.bias"]) + linear(x, weights["template.weight"])
        return (by_class * F.one_hot(y, self.classes).to(x.dtype)).sum(2)


@functools.lru_cache(maxsize=8)
def public_filters(shape: Shape, features: int, seed: int) -> tuple[Tensor, Tensor]:
    """(numbers, features) and (features,): of pictures smooth, of rows plain noise."""
    rng = torch.Generator().manual_seed(seed)
    if len(shape) == 3:
        coarse = [math.ceil(side / GRAIN) + 1 for side in shape[1:]]
        noise = torch.randn((features, shape[0], *coarse), generator=rng)
        fine = [GRAIN * (side - 1) + 1 for side in coarse]
        drawn = F.interpolate(noise, size=fine, mode="bilinear", align_corners=True)[:, :, : shape[1], : shape[2]]
        drawn = drawn.flatten(1)
    else:
        drawn = torch.randn((features, math.prod(shape)), generator=rng)
    filters = LENGTH * drawn / drawn.norm(dim=1, keepdim=True)
    return filters.T.contiguous(), torch.rand(features, generator=rng) * 2 - 1
