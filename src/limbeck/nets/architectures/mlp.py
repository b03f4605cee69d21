"""A multilayer perceptron, for images and flat tables alike."""

from __future__ import annotations

from torch import nn

from limbeck.nets.architectures.network import Network, Shape, flat_size


def mlp(shape: Shape, classes: int, width: int, depth: int) -> Network:
    """depth counts linear layers, the last one included: 3 is the papers' 128-128, 1 is softmax regression."""
    layers: list[nn.Module] = [nn.Flatten()]
    size = flat_size(shape)
    for _ in range(depth - 1):
        layers += [nn.Linear(size, width), nn.ReLU()]
        size = width
    return Network(nn.Sequential(*layers), size, classes)
