"""A Gaussian model of each class as a generator: latents say how far a picture lies along each component of its class.

Components are held by their coordinates among the low frequencies.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from limbeck.nets.architectures.network import Shape, image_shape
from limbeck.nets.features.cosines import low_frequencies


class GaussianGenerator(nn.Module):
    """Pictures in [-1, 1] from latents and labels."""

    basis: Tensor

    def __init__(self, shape: Shape, classes: int, latent: int) -> None:
        super().__init__()
        self.shape = image_shape("gaussian", shape)
        self.register_buffer("basis", low_frequencies(self.shape), persistent=False)
        self.means = nn.Parameter(torch.zeros(classes, math.prod(self.shape)))
        self.axes = nn.Parameter(torch.zeros(classes, latent, len(self.basis)))

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        rows = self.means[y]
        for label in sorted(set(y.tolist())):  # the components of a class once, not once for every picture
            own = torch.nonzero(y == label)[:, 0]
            rows = rows.index_add(0, own, z[own] @ self.axes[label] @ self.basis)
        return rows.clamp(-1, 1).view(-1, *self.shape)
