"""Layers over stacked weights: many small networks of one shape at once, each with weights and records of its own.

Every tensor has a leading axis of networks (1 where all share the same records), which no operation here mixes: row i of
a result depends on row i of weights and records alone, and so do all derivatives, the second ones included. Maps have their
channels last, because then a convolution is one batch of matrix products over patches. On a CPU with bfloat16 products
those are several times as fast as single precision; sums, weights and everything else stay in single precision.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.nets.kernels.hardware import has_fast_bfloat16

Shapes = Mapping[str, tuple[int, ...]]


def product(a: Tensor, b: Tensor) -> Tensor:
    """Matrix products (networks, n, k) x (networks, k, m); an axis of 1 is stretched."""
    networks = max(a.shape[0], b.shape[0])
    a, b = a.expand(networks, -1, -1), b.expand(networks, -1, -1)
    if not has_fast_bfloat16(a.device):
        return torch.bmm(a, b)
    return torch.bmm(a.bfloat16(), b.bfloat16()).float()


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (networks or 1, records, in), weight (networks, in, out), bias (networks, out)."""
    made = product(x, weight)
    return made if bias is None else made + bias[:, None]


def conv(x: Tensor, weight: Tensor, bias: Tensor | None, kernel: int, stride: int = 1, padding: int = 0) -> Tensor:
    """x (networks or 1, records, height, width, channels), weight (networks, kernel * kernel * channels, out)."""
    networks, records, height, width, channels = x.shape
    if has_fast_bfloat16(x.device):
        x = x.bfloat16()  # before it is copied into patches, not after
    rows, columns = (out_side(side, kernel, stride, padding) for side in (height, width))
    taken = patches(x.reshape(-1, height, width, channels), kernel, stride, padding)
    made = linear(taken.view(networks, records * rows * columns, -1), weight, bias)
    return made.view(weight.shape[0], records, rows, columns, -1)


def out_side(side: int, kernel: int, stride: int, padding: int) -> int:
    return (side + 2 * padding - kernel) // stride + 1


def patches(x: Tensor, kernel: int, stride: int, padding: int) -> Tensor:
    """(n, height, width, channels) to (n, positions, kernel * kernel * channels), zeros around the border."""
    taken: Tensor = _Patches.apply(x, kernel, stride, padding)  # type: ignore[no-untyped-call]
    return taken


class _Patches(torch.autograd.Function):
    """Its derivative adds the patches up again, whose derivative takes patches: so it can be derived twice."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: int, stride: int, padding: int) -> Tensor:
        n, height, width, channels = x.shape
        ctx.form = (height, width, kernel, stride, padding)
        taken = _looked_up(x.flatten(1, 2), _pixels_of_taps(*ctx.form))
        return taken.view(n, -1, kernel * kernel * channels)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        return _AddedUp.apply(grad, *ctx.form), None, None, None  # type: ignore[no-untyped-call]


class _AddedUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, grad: Tensor, height: int, width: int, kernel: int, stride: int, padding: int) -> Tensor:
        ctx.form = (kernel, stride, padding)
        taps = _taps_of_pixels(height, width, kernel, stride, padding)
        found = _looked_up(grad.reshape(len(grad), grad.shape[1] * kernel**2, -1), taps.flatten())
        return found.view(len(grad), len(taps), height, width, -1).sum(1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        return _Patches.apply(grad, *ctx.form), None, None, None, None, None  # type: ignore[no-untyped-call]


def _looked_up(table: Tensor, indices: Tensor) -> Tensor:
    """Rows of (n, rows, channels) by index; the index past the last row gives zeros. Faster than strided copies."""
    return F.pad(table, (0, 0, 0, 1)).index_select(1, indices.to(table.device))


@functools.lru_cache(maxsize=64)
def _pixels_of_taps(height: int, width: int, kernel: int, stride: int, padding: int) -> Tensor:
    """For every tap of every patch, in order, the index of its pixel; past the border, the index after the last one."""
    starts = [torch.arange(out_side(side, kernel, stride, padding)) * stride - padding for side in (height, width)]
    row = starts[0][:, None, None, None] + torch.arange(kernel)[:, None]
    column = starts[1][:, None, None] + torch.arange(kernel)
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    return torch.where(inside, row * width + column, height * width).flatten()


@functools.lru_cache(maxsize=64)
def _taps_of_pixels(height: int, width: int, kernel: int, stride: int, padding: int) -> Tensor:
    """The other way round: (most taps of a pixel, pixels), filled up with the index after the last tap."""
    pixels = _pixels_of_taps(height, width, kernel, stride, padding)
    order = torch.argsort(pixels, stable=True)
    counts = torch.bincount(pixels, minlength=height * width + 1)[: height * width]
    most = max(int(counts.max()), 1)
    first = torch.cumsum(counts, 0) - counts
    turn = torch.arange(most)[:, None]
    return torch.where(turn < counts, order[(first + turn).clamp_max(len(order) - 1)], len(order))


def start_weights(shapes: Shapes, seeds: Sequence[int]) -> dict[str, Tensor]:
    """First weights of one network per seed: uniform up to 1 / sqrt(fan in), as PyTorch starts its layers.

    A weight of two or more axes, (..., in, out), has that fan in; a bias, named like its weight, has the weight's.
    """
    sizes = {name: math.prod(shape) for name, shape in shapes.items()}
    flat = torch.empty(len(seeds), sum(sizes.values()))
    for row, seed in zip(flat, seeds, strict=True):
        row.uniform_(-1.0, 1.0, generator=torch.Generator().manual_seed(seed))
    parts = torch.split(flat, list(sizes.values()), dim=1)
    return {
        name: (part.view(len(seeds), *shapes[name]) / math.sqrt(_fan_in(name, shapes))).contiguous()
        for name, part in zip(shapes, parts, strict=True)
    }


def _fan_in(name: str, shapes: Shapes) -> int:
    shape = shapes[name] if len(shapes[name]) > 1 else shapes[name.replace("bias", "weight")]
    return math.prod(shape[:-1])
