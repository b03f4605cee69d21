"""One linear layer as the embedding (the extractor for Adult, 14 -> 64)."""

from __future__ import annotations

from torch import nn

from limbeck.nets.architectures.network import Network, Shape, flat_size


def linear(shape: Shape, classes: int, width: int) -> Network:
    return Network(nn.Sequential(nn.Flatten(), nn.Linear(flat_size(shape), width)), width, classes)
