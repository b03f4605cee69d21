"""Small affine changes of images, drawn at random."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

BACKGROUND = -1.0  # what moves in from outside: the low end of the range, as around a digit or a garment


def warp(x: Tensor, change: Sequence[float]) -> Tensor:
    """The same change for every image of (B, C, H, W), differentiable in x.

    Guarantee: row i of the result depends on record i alone.
    """
    if not len(x):
        return x
    theta = torch.tensor(change, dtype=x.dtype, device=x.device).view(1, 2, 3)
    # One grid serves all: making it takes longer than an image needs to be moved.
    grid = F.affine_grid(theta, [1, *x.shape[1:]], align_corners=False).expand(len(x), -1, -1, -1)
    # The sampler fills with zeros, so the background is moved there and back. Continuing the rim instead
    # would say nothing about how dark a record's own background is: networks with instance norm do not see it otherwise.
    return F.grid_sample(x - BACKGROUND, grid, align_corners=False) + BACKGROUND


def draw_change(
    rng: torch.Generator, angle: float, scale: float, shift: float, mirror: bool = False
) -> tuple[float, ...]:
    """Turn by up to `angle`, stretch each axis by up to the share `scale`, move by up to `shift` half-sides; and `mirror` left
    and right every other time."""
    u = (torch.rand(6, generator=rng) * 2 - 1).tolist()
    turn, wide, high = u[0] * angle, 1 + u[1] * scale, 1 + u[2] * scale
    if mirror and u[5] > 0:
        wide = -wide
    cosine, sine = math.cos(turn), math.sin(turn)
    return (cosine * wide, -sine * high, u[3] * shift, sine * wide, cosine * high, u[4] * shift)
