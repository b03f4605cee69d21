"""The one interface of all networks: an embedding and a linear layer on top of it."""

from __future__ import annotations

import math

from torch import Tensor, nn

from limbeck.errors import BadInput

Shape = tuple[int, ...]


class Network(nn.Module):
    """A network with `embed(x) -> (B, d)` and `forward(x) -> logits`.

    Guarantee: no layer mixes records, so row i of the output depends on record i alone (no batch norm anywhere).
    """

    def __init__(self, body: nn.Module, features: int, classes: int) -> None:
        super().__init__()
        self.body = body
        self.features = features
        self.head = nn.Linear(features, classes)

    def embed(self, x: Tensor) -> Tensor:
        embedded: Tensor = self.body(x)
        return embedded

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.embed(x))
        return logits


def image_shape(kind: str, shape: Shape) -> tuple[int, int, int]:
    """The (channels, height, width) of a record, or a plain refusal."""
    if len(shape) != 3:
        raise BadInput(f"A {kind} reads images (channels, height, width), not records of shape={shape}. Use 'mlp'.")
    channels, height, width = shape
    return channels, height, width


def flat_size(shape: Shape) -> int:
    if not shape or min(shape) < 1:
        raise BadInput(f"Expected a record shape of positive sizes, got shape={shape}.")
    return math.prod(shape)
