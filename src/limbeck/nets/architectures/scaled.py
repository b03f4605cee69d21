"""What the larger image networks share: filters that scale with the width, and sides that stay large enough to normalise."""

from __future__ import annotations

from torch import nn

from limbeck.errors import BadInput
from limbeck.nets.architectures.network import Shape, image_shape

PAPERS_WIDTH = 128  # the width at which a network has the sizes of the condensation papers
SMALLEST_SIDE = 2  # an instance norm over a single pixel gives zero


def scaled(filters: int, width: int) -> int:
    """The papers' number of filters at width 128, and in proportion at others."""
    return max(1, round(filters * width / PAPERS_WIDTH))


def large_enough(kind: str, shape: Shape) -> tuple[int, int, int]:
    """(channels, height, width) of records that the network can read, or a plain refusal."""
    channels, height, wide = image_shape(kind, shape)
    if min(height, wide) < SMALLEST_SIDE:
        raise BadInput(f"The {kind} needs images of at least 2x2 pixels, got shape={shape}. Use 'mlp'.")
    return channels, height, wide


def padding_to_32(shape: Shape, padding: int, usual: int) -> int:
    """The first convolution's padding: 28x28 pictures of one channel grow to 32x32, all others keep their size."""
    return padding if tuple(shape) == (1, 28, 28) else usual


def instance_norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(channels, channels)
