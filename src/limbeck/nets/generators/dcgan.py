"""The small convolutional generator of PSG's prior and of GS-WGAN (DCGAN without batch norm).

(latent, one-hot label) -> linear to 256 x 4 x 4 -> transposed convolution 5 to 128, cropped to 7 x 7 -> 5 to 64 -> 8 with
stride 2 to the picture; ReLU and pixel norm in between. The sizes are those of 28 x 28 pictures; for others the first map
is as large as it has to be, and what stands over is cropped.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from limbeck.nets.architectures.network import Shape, image_shape


class DCGAN(nn.Module):
    """Pictures in [-1, 1] from latents and labels."""

    def __init__(self, shape: Shape, classes: int, latent: int = 10, width: int = 64) -> None:
        super().__init__()
        channels, height, wide = image_shape("dcgan", shape)
        self.classes, self.latent = classes, latent
        self.sides = height, wide
        # The last layer makes 2 s + 14 pixels out of s, by way of s + 4.
        self.cropped = [max(1, math.ceil((side - 14) / 2)) for side in self.sides]
        self.first = [max(1, side - 3) for side in self.cropped]
        self.linear = nn.Linear(latent + classes, 4 * width * math.prod(self.first))
        self.deconv1 = nn.ConvTranspose2d(4 * width, 2 * width, 5)
        self.deconv2 = nn.ConvTranspose2d(2 * width, width, 5)
        self.deconv3 = nn.ConvTranspose2d(width, channels, 8, stride=2)

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        given = torch.cat([z, F.one_hot(y, self.classes).to(z.dtype)], dim=1)
        maps = torch.relu(self.linear(given)).view(len(z), -1, *self.first)
        maps = torch.relu(self.deconv1(pixel_norm(maps)))[:, :, : self.cropped[0], : self.cropped[1]]
        maps = torch.relu(self.deconv2(pixel_norm(maps)))
        # The papers end in a sigmoid; this is the same, stretched to [-1, 1].
        pictures: Tensor = torch.tanh(self.finished(self.deconv3(pixel_norm(maps))) / 2)
        return pictures[:, :, : self.sides[0], : self.sides[1]]

    def finished(self, pictures: Tensor) -> Tensor:
        """What becomes of the last layer's numbers before they are bounded."""
        return pictures


class SmoothDCGAN(DCGAN):
    """The same without a checkerboard. A transposed convolution of stride 2 makes even and odd pixels by weights of their own; a
    weighted mean over three neighbours, 1 2 1 along either axis, lets no pattern pass that changes its sign at every pixel."""

    def finished(self, pictures: Tensor) -> Tensor:
        across = F.pad(pictures, (1, 1, 1, 1), mode="replicate")
        down = (across[:, :, :-2] + 2 * across[:, :, 1:-1] + across[:, :, 2:]) / 4
        return (down[..., :-2] + 2 * down[..., 1:-1] + down[..., 2:]) / 4


def pixel_norm(maps: Tensor) -> Tensor:
    """Every pixel's features to a mean square of 1; mixes no records."""
    return maps * torch.rsqrt(maps.square().mean(1, keepdim=True) + 1e-8)
