"""Pictures at another size: averaged down to a working size, and set up again so that they average to what they were."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from limbeck.errors import BadInput

ROUNDS = 8  # of correction; each takes away more than half of what is left


def smaller(shape: tuple[int, ...], longest: int) -> tuple[int, ...]:
    """The shape of pictures whose longer side is averaged down to `longest`; of no more, as it is.

    >>> smaller((3, 128, 96), 32), smaller((3, 128, 96), 500)
    ((3, 32, 24), (3, 128, 96))
    """
    now = max(shape[1:])
    if now <= longest:
        return shape
    # Sides of 2 pixels at least: an instance norm needs a map.
    return (shape[0], *(min(side, max(2, round(side * longest / now))) for side in shape[1:]))


def pooled(x: Tensor, size: tuple[int, ...] | None) -> Tensor:
    """(B, C, H, W) averaged over areas to `size`, (height, width); as it is where that is its size, or none is said.

    Guarantee: row i of the result depends on record i alone, and means of numbers in [-1, 1] stay there.
    """
    if size is None or tuple(x.shape[2:]) == tuple(size):
        return x
    if x.dim() != 4 or x.shape[2] < size[0] or x.shape[3] < size[1]:
        raise BadInput(
            f"Records of shape {tuple(x.shape[1:])} cannot be averaged down to {size[0]} x {size[1]} pixels."
        )
    averaged: Tensor = F.adaptive_avg_pool2d(x, (size[0], size[1]))
    return averaged


def enlarged(x: Tensor, size: tuple[int, ...]) -> Tensor:
    """(B, C, h, w) at a larger size: smooth, and with the means over areas that it came with."""
    small = tuple(x.shape[2:])
    if small == tuple(size):
        return x
    larger = F.interpolate(x, size, mode="bilinear", align_corners=False)
    for _ in range(ROUNDS):
        larger = larger + F.interpolate(x - pooled(larger, small), size, mode="bilinear", align_corners=False)
    return larger
