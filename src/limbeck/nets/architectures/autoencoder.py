"""An autoencoder of two linear layers: a record's code, of bounded length, and the record's numbers made of it."""

from __future__ import annotations

from torch import Tensor, nn

from limbeck.nets.architectures.network import Network, Shape, flat_size


class Unit(nn.Module):
    """[-1, 1] to [0, 1]: the background of a picture is 0 then, and moves no weight."""

    def forward(self, x: Tensor) -> Tensor:
        return (x.flatten(1) + 1) / 2


def autoencoder(shape: Shape, numbers: int, code: int) -> Network:
    """`embed` gives the code; a record's numbers in [0, 1] are the sigmoid of what `forward` gives.

    A code has mean 0 and mean square 1, by a norm over its own numbers. With tanh in its place all codes ended at -1 and 1: what
    most pixels have in common reached them before any difference did.
    """
    body = nn.Sequential(Unit(), nn.Linear(flat_size(shape), code), normed(code))
    return Network(body, code, numbers)


def normed(code: int) -> nn.Module:
    """What every code went through, and what a generator of codes ends with."""
    return nn.LayerNorm(code, elementwise_affine=False)
