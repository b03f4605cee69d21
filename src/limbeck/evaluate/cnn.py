"""The small CNN of GS-WGAN's and DataLens's tables: 3x3 convolutions of 32 and 64 filters with dropout, then 64 units.

It is no network of the vault: dropout draws at random inside the forward pass, so two questions would get two answers.
"""

from __future__ import annotations

from torch import nn

from limbeck.errors import BadInput
from limbeck.nets import Network, Shape
from limbeck.nets.architectures.network import image_shape

SMALLEST_SIDE = 8


def cnn(shape: Shape, classes: int) -> Network:
    channels, height, wide = image_shape("cnn", shape)
    if min(height, wide) < SMALLEST_SIDE:
        raise BadInput(f"The cnn needs images of at least 8x8 pixels, got shape={shape}. Use 'convnet' or 'mlp'.")
    sides = [(side - 2) // 2 - 2 for side in (height, wide)]
    body = nn.Sequential(
        nn.Conv2d(channels, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.2),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(64 * sides[0] * sides[1], 64),
        nn.ReLU(),
    )
    return Network(body, 64, classes)
