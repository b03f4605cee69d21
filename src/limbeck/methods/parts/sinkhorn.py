"""Entropic transport between public records, in the log domain."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def costs(x: Tensor, y: Tensor) -> Tensor:
    """(..., n, m): mean squared differences of rows."""
    squares = x.square().mean(-1)[..., :, None] + y.square().mean(-1)[..., None, :]
    return squares - 2 * (x @ y.transpose(-1, -2)) / x.shape[-1]


@torch.no_grad()
def transport_plan(cost: Tensor, blur: float, turns: int) -> Tensor:
    """(..., n, m): the plan between even masses, after so many turns of Sinkhorn's iteration.

    >>> transport_plan(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), 0.01, 5).round(decimals=3)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]])
    """
    rows, columns = (-math.log(cost.shape[-2]), -math.log(cost.shape[-1]))
    scaled = -cost / blur
    first = torch.zeros_like(cost[..., :, 0])
    for _ in range(turns):
        second = columns - torch.logsumexp(scaled + first[..., :, None], dim=-2)
        first = rows - torch.logsumexp(scaled + second[..., None, :], dim=-1)
    return torch.exp(first[..., :, None] + scaled + second[..., None, :])


def self_transport(x: Tensor, blur: float, turns: int) -> Tensor:
    """The transport cost of records to themselves, (classes, n, dimension), summed over classes; gradients pass the costs only.

    By the envelope theorem that is the gradient of the entropic cost, up to what the iteration has not converged.
    """
    between = costs(x, x)
    return (transport_plan(between.detach(), blur, turns) * between).sum()
