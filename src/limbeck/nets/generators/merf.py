"""The generators of DP-MERF: a code and a label become a picture or a row of a table; with an autoencoder, the code of one.

Batch norm is fine here: a generator never sees a private record, so there is nothing that it could mix.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from limbeck.nets.architectures.autoencoder import normed
from limbeck.nets.architectures.network import Shape

HIDDEN, FIRST_MAPS, SECOND_MAPS = 200, 16, 8


class MerfGenerator(nn.Module):
    """Records in [-1, 1] from codes and labels.

    Pictures: fc to 200, fc to 16 maps of a quarter of the sides, then twice: enlarge and convolve 5 x 5 (16 to 8 to the
    channels). For 28 x 28 digits and 5 numbers of code that is the paper's 15-200-784, 16-8-1. Tables: 200, 200, dimension.

    normed: maps before the last layer are normalised too, as rows of tables are. Without that, most
    pixels of a dark background draw all of a picture down within 20 steps of Adam, and all pictures become alike.
    """

    def __init__(self, shape: Shape, classes: int, code: int, normed: bool = False) -> None:
        super().__init__()
        self.shape, self.classes, self.code = shape, classes, code
        self.quarter = tuple(math.ceil(side / 4) for side in shape[1:])
        middle = FIRST_MAPS * math.prod(self.quarter) if self.is_image else HIDDEN
        self.first, self.first_norm = nn.Linear(code + classes, HIDDEN), nn.BatchNorm1d(HIDDEN)
        self.second, self.second_norm = nn.Linear(HIDDEN, middle), nn.BatchNorm1d(middle)
        if self.is_image:
            self.third: nn.Module = nn.Conv2d(FIRST_MAPS, SECOND_MAPS, 5, padding=2)
            self.third_norm: nn.Module = nn.BatchNorm2d(SECOND_MAPS) if normed else nn.Identity()
            self.last: nn.Module = nn.Conv2d(SECOND_MAPS, shape[0], 5, padding=2)
        else:
            self.last = nn.Linear(HIDDEN, shape[0])

    @property
    def is_image(self) -> bool:
        return len(self.shape) == 3

    def forward(self, codes: Tensor, labels: Tensor) -> Tensor:
        given = torch.cat([codes, F.one_hot(labels, self.classes).to(codes.dtype)], dim=1)
        hidden = F.relu(self.first_norm(self.first(given)))
        hidden = F.relu(self.second_norm(self.second(hidden)))
        if self.is_image:
            height, wide = self.shape[1:]
            hidden = F.interpolate(hidden.view(-1, FIRST_MAPS, *self.quarter), size=(-(-height // 2), -(-wide // 2)))
            hidden = F.interpolate(F.relu(self.third_norm(self.third(hidden))), size=(height, wide))
        made: Tensor = torch.tanh(self.last(hidden))
        return made


class CodedGenerator(nn.Module):
    """Latents and a label become the code of a record, and a decoder makes the record of it (DP-MERF with an autoencoder)."""

    def __init__(self, shape: Shape, classes: int, latent: int, code: int) -> None:
        super().__init__()
        self.shape = shape
        self.coder = MerfGenerator((code,), classes, latent)
        self.norm, self.decoder = normed(code), nn.Linear(code, math.prod(shape))

    def codes(self, latents: Tensor, labels: Tensor) -> Tensor:
        """Of the form that the encoder gives."""
        codes: Tensor = self.norm(self.coder(latents, labels))
        return codes

    def forward(self, latents: Tensor, labels: Tensor) -> Tensor:
        # The decoder's sigmoid is in [0, 1]; records are in [-1, 1].
        made: Tensor = torch.tanh(self.decoder(self.codes(latents, labels)) / 2)
        return made.view(-1, *self.shape)
