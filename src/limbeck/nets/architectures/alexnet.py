"""The AlexNet of the condensation papers: five convolutions of 128, 192, 256, 192 and 192 filters, no norm."""

from __future__ import annotations

from torch import nn

from limbeck.nets.architectures.network import Network, Shape
from limbeck.nets.architectures.scaled import large_enough, padding_to_32, scaled

LAYERS = ((128, 5, True), (192, 5, True), (256, 3, False), (192, 3, False), (192, 3, True))  # filters, kernel, pooled


def alexnet(shape: Shape, classes: int, width: int) -> Network:
    channels, height, wide = large_enough("alexnet", shape)
    layers: list[nn.Module] = []
    for index, (filters, kernel, pooled) in enumerate(LAYERS):
        same = kernel // 2
        padding = padding_to_32(shape, 4, same) if index == 0 else same
        height, wide = height + 2 * (padding - same), wide + 2 * (padding - same)
        layers += [nn.Conv2d(channels, scaled(filters, width), kernel, padding=padding), nn.ReLU()]
        channels = scaled(filters, width)
        if pooled and min(height, wide) >= 2:  # small pictures run out of pixels before the last pooling
            layers.append(nn.MaxPool2d(2))
            height, wide = height // 2, wide // 2
    return Network(nn.Sequential(*layers, nn.Flatten()), channels * height * wide, classes)
