"""A convolutional generator that enlarges and then convolves, so that every pixel is made like its neighbours.

A transposed convolution with a stride reaches some pixels more often than others, and one sees a checkerboard. Here a map of a
quarter of the side is made of (latent, one-hot label); then come 3 x 3 convolutions, with a bilinear enlargement by two before
the second and the third; ReLU and pixel norm in between. What stands over is cropped.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from limbeck.nets.architectures.network import Shape, image_shape
from limbeck.nets.generators.dcgan import pixel_norm


class UpsamplingGenerator(nn.Module):
    """Pictures in [-1, 1] from latents and labels. width: maps at the full size."""

    def __init__(self, shape: Shape, classes: int, latent: int, width: int) -> None:
        super().__init__()
        channels, height, wide = image_shape("upsampling", shape)
        self.classes, self.sides = classes, (height, wide)
        self.first = [math.ceil(side / 4) for side in self.sides]
        self.linear = nn.Linear(latent + classes, 8 * width * math.prod(self.first))
        self.small = nn.Conv2d(8 * width, 4 * width, 3, padding=1)
        self.middle = nn.Conv2d(4 * width, 2 * width, 3, padding=1)
        self.large = nn.Conv2d(2 * width, width, 3, padding=1)
        self.last = nn.Conv2d(width, channels, 3, padding=1)

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        given = torch.cat([z, F.one_hot(y, self.classes).to(z.dtype)], dim=1)
        maps = pixel_norm(torch.relu(self.linear(given)).view(len(z), -1, *self.first))
        maps = pixel_norm(torch.relu(self.small(maps)))
        maps = pixel_norm(torch.relu(self.middle(enlarged(maps))))
        maps = pixel_norm(torch.relu(self.large(enlarged(maps))))
        pictures = torch.tanh(self.last(maps))
        return pictures[:, :, : self.sides[0], : self.sides[1]]


def enlarged(maps: Tensor) -> Tensor:
    return F.interpolate(maps, scale_factor=2, mode="bilinear", align_corners=False)
