"""VGG11 with instance norm: eight 3x3 convolutions in five stages, each stage pooled by 2, one linear layer on top."""

from __future__ import annotations

from torch import nn

from limbeck.nets.architectures.network import Network, Shape
from limbeck.nets.architectures.scaled import SMALLEST_SIDE, instance_norm, large_enough, padding_to_32, scaled

STAGES = ((64,), (128,), (256, 256), (512, 512), (512, 512))


def vgg11(shape: Shape, classes: int, width: int) -> Network:
    channels, height, wide = large_enough("vgg11", shape)
    layers: list[nn.Module] = []
    for index, stage in enumerate(STAGES):
        for filters in stage:
            padding = padding_to_32(shape, 3, 1) if not layers else 1
            height, wide = height + 2 * (padding - 1), wide + 2 * (padding - 1)
            out = scaled(filters, width)
            layers += [nn.Conv2d(channels, out, 3, padding=padding), instance_norm(out), nn.ReLU()]
            channels = out
        last = index == len(STAGES) - 1
        # Small pictures skip poolings: only after the last norm may a map shrink to one pixel.
        if min(height, wide) // 2 >= (1 if last else SMALLEST_SIDE):
            layers.append(nn.MaxPool2d(2))
            height, wide = height // 2, wide // 2
    return Network(nn.Sequential(*layers, nn.Flatten()), channels * height * wide, classes)
