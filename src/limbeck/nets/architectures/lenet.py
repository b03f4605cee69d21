"""LeNet: two 5x5 convolutions of 6 and 16 filters, then 120 and 84 units."""

from __future__ import annotations

from torch import nn

from limbeck.errors import BadInput
from limbeck.nets.architectures.network import Network, Shape, image_shape


def lenet(shape: Shape, classes: int) -> Network:
    channels, height, wide = image_shape("lenet", shape)
    padding = 2 if channels == 1 else 0
    sides = [((side + 2 * padding - 4) // 2 - 4) // 2 for side in (height, wide)]
    if min(sides) < 1:
        # Small pictures (8x8 digits) would vanish in the unpadded second convolution.
        padding, second_padding = 2, 2
        sides = [side // 2 // 2 for side in (height, wide)]
    else:
        second_padding = 0
    if min(sides) < 1:
        raise BadInput(f"A lenet needs images of at least 4x4 pixels, got shape={shape}. Use 'mlp'.")
    body = nn.Sequential(
        nn.Conv2d(channels, 6, 5, padding=padding),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5, padding=second_padding),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * sides[0] * sides[1], 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
    )
    return Network(body, 84, classes)
