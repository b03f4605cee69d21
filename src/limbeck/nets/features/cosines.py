"""The low frequencies of pictures: an orthonormal basis of at most `COORDINATES` cosines."""

from __future__ import annotations

import math

import torch
from torch import Tensor

COORDINATES = 200  # fixed: answers that are kept, and released generators, are in this basis


def low_frequencies(shape: tuple[int, ...]) -> Tensor:
    """(coordinates, numbers of a picture), orthonormal.

    >>> low_frequencies((1, 28, 28)).shape
    torch.Size([196, 784])
    """
    channels, height, width = shape
    side = max(1, math.isqrt(COORDINATES // channels))
    down, across = _cosines(height, min(side, height)), _cosines(width, min(side, width))
    cosines = torch.einsum("ih,jw->ijhw", down, across).flatten(0, 1).flatten(1)
    return torch.kron(torch.eye(channels), cosines)


def _cosines(size: int, count: int) -> Tensor:
    """The first `count` rows of the orthonormal cosine transform (DCT-II)."""
    position, frequency = torch.arange(size) + 0.5, torch.arange(count)
    cosines = torch.cos(math.pi * frequency[:, None] * position / size) * math.sqrt(2 / size)
    cosines[0] /= math.sqrt(2)
    return cosines
