"""The generator of DataLens: (latents, label) -> linear -> linear to maps of a quarter of the sides -> two deconvolutions.

For 28 x 28 digits at width 128 these are the paper's sizes: 1024, 128 x 7 x 7, 128 x 14 x 14. The label is joined to the input of
every layer. Tables: three linear layers. It sees answers only, never a record.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from limbeck.nets.architectures.network import Shape

DENSE = 8  # units of the first layer for each map


class DataLensGenerator(nn.Module):
    """Records in [-1, 1] from latents and labels. width: maps of a hidden layer."""

    def __init__(self, shape: Shape, classes: int, latent: int = 50, width: int = 128) -> None:
        super().__init__()
        self.shape, self.classes, self.latent, self.width = shape, classes, latent, width
        self.quarter = [math.ceil(side / 4) for side in shape[1:]]
        middle = width * math.prod(self.quarter) if self.is_image else DENSE * width
        self.first = nn.Linear(latent + classes, DENSE * width)
        self.second = nn.Linear(DENSE * width + classes, middle)
        if self.is_image:
            self.third: nn.Module = nn.ConvTranspose2d(width + classes, width, 5, 2, padding=2, output_padding=1)
            self.last: nn.Module = nn.ConvTranspose2d(width + classes, shape[0], 5, 2, padding=2, output_padding=1)
        else:
            self.last = nn.Linear(middle + classes, shape[0])

    @property
    def is_image(self) -> bool:
        return len(self.shape) == 3

    def forward(self, latents: Tensor, labels: Tensor) -> Tensor:
        label = F.one_hot(labels, self.classes).to(latents.dtype)
        hidden = F.relu(self.first(torch.cat([latents, label], dim=1)))
        hidden = F.relu(self.second(torch.cat([hidden, label], dim=1)))
        if not self.is_image:
            row: Tensor = torch.tanh(self.last(torch.cat([hidden, label], dim=1)) / 2)
            return row
        maps = F.relu(self.third(_joined(hidden.view(-1, self.width, *self.quarter), label)))
        # The paper ends in a sigmoid; this is the same, stretched to [-1, 1].
        pictures: Tensor = torch.tanh(self.last(_joined(maps, label)) / 2)
        return pictures[:, :, : self.shape[1], : self.shape[2]]


def _joined(maps: Tensor, label: Tensor) -> Tensor:
    return torch.cat([maps, label[:, :, None, None].expand(-1, -1, *maps.shape[2:])], dim=1)
