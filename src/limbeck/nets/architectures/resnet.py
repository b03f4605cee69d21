"""ResNet18 for small pictures, with instance norm: a 3x3 stem and four stages of two residual blocks each."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from limbeck.nets.architectures.network import Network, Shape
from limbeck.nets.architectures.scaled import SMALLEST_SIDE, instance_norm, large_enough, padding_to_32, scaled

STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # filters, stride of the first of two blocks


class ResidualBlock(nn.Module):
    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False)
        self.norm1 = instance_norm(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.norm2 = instance_norm(channels_out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, 1, stride, bias=False), instance_norm(channels_out)
            )

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(hidden)) + self.shortcut(x))


class MeanOfMap(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))


def resnet18(shape: Shape, classes: int, width: int) -> Network:
    channels, height, wide = large_enough("resnet18", shape)
    padding = padding_to_32(shape, 3, 1)
    height, wide = height + 2 * (padding - 1), wide + 2 * (padding - 1)
    stem = scaled(64, width)
    layers: list[nn.Module] = [
        nn.Conv2d(channels, stem, 3, padding=padding, bias=False),
        instance_norm(stem),
        nn.ReLU(),
    ]
    channels = stem
    for filters, step in STAGES:
        # Small pictures keep their size where another halving would leave one pixel to normalise.
        stride = step if (min(height, wide) + 1) // 2 >= SMALLEST_SIDE else 1
        height, wide = -(-height // stride), -(-wide // stride)
        out = scaled(filters, width)
        layers += [ResidualBlock(channels, out, stride), ResidualBlock(out, out, 1)]
        channels = out
    return Network(nn.Sequential(*layers, MeanOfMap()), channels, classes)
