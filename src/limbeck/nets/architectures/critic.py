"""The critic of GS-WGAN over stacked weights: three convolutions 5 x 5 with stride 2, and a projection on the label.

Every matrix is divided by its largest singular value (spectral norm), which a vector per matrix keeps track of by power
iteration. Without filters a critic is a template for each class, whose product with the image is its score, and beside it one
hidden layer: templates see the mean of a class alone, but learn that in a few steps; hidden units see how its images vary.
All functions keep the leading axis of networks apart (see `limbeck.nets.kernels.stacked`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.nets.architectures.network import Shape, image_shape
from limbeck.nets.kernels.stacked import conv, linear, out_side, start_weights

KERNEL, STRIDE, PADDING = 5, 2, 2
LEAK = 0.2
NARROW = 16  # filters of the first layer, up to which convolutions in groups are the faster way
CONVOLUTIONS = ("conv1", "conv2", "conv3")
NORMED = (*CONVOLUTIONS, "head", "label")
VECTORS = tuple(f"{name}.vector" for name in NORMED)
TEMPLATES = "template.weight"
FIRST_ITERATIONS = 10  # of the power method, so that the first steps see about the right norms


def critic_weights(shape: Shape, classes: int, width: int, seeds: Sequence[int], hidden: int = 0) -> dict[str, Tensor]:
    """First weights of one critic per seed, with `width`, 2 `width` and 4 `width` filters; if `width` is 0, with templates and
    `hidden` units."""
    channels, height, wide = image_shape("critic", shape)
    if not width:
        numbers = math.prod(shape)
        units = {"hidden.weight": (numbers, hidden), "hidden.bias": (hidden,), "out.weight": (hidden, classes + 1)}
        return start_weights({TEMPLATES: (numbers, classes), **(units if hidden else {})}, seeds)
    shapes: dict[str, tuple[int, ...]] = {}
    for depth, name in enumerate(CONVOLUTIONS):
        filters = width * 2**depth
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (KERNEL**2 * channels, filters), (filters,)
        channels, height, wide = filters, _half(height), _half(wide)
    features = height * wide * channels
    shapes["head.weight"], shapes["head.bias"] = (features, 1), (1,)
    shapes["label.weight"] = (features, classes)
    weights = start_weights(shapes, seeds)
    for name, vector in zip(NORMED, VECTORS, strict=True):
        columns = shapes[f"{name}.weight"][-1]
        weights[vector] = torch.ones(len(seeds), columns) / columns**0.5
    for _ in range(FIRST_ITERATIONS):
        turn_vectors(weights)
    return weights


def critic_score(weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
    """(critics, images) of x (critics or 1, images, channels, height, width), y (critics or 1, images)."""
    if TEMPLATES in weights:
        return _by_templates(weights, x.flatten(2), y)
    narrow = weights["conv1.bias"].shape[1] <= NARROW
    features = _by_groups(weights, x) if narrow else _by_patches(weights, x)
    table = weights["label.weight"].transpose(1, 2) / _norm(weights, "label")[:, None, None]
    rows = table[torch.arange(len(table), device=y.device)[:, None], y.expand(len(table), -1)]
    head = weights["head.weight"].transpose(1, 2) / _norm(weights, "head")[:, None, None]
    return (features * (head + rows)).sum(2) + weights["head.bias"]


def _by_templates(weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
    by_class = linear(x, weights[TEMPLATES])
    classes = by_class.shape[2]
    common: Tensor | float = 0.0
    if "hidden.weight" in weights:
        units = F.leaky_relu(linear(x, weights["hidden.weight"], weights["hidden.bias"]), LEAK)
        out = linear(units, weights["out.weight"])
        by_class, common = by_class + out[:, :, :classes], out[:, :, classes]
    return (by_class * F.one_hot(y, classes)).sum(2) + common


def _by_patches(weights: dict[str, Tensor], x: Tensor) -> Tensor:
    """Features (critics, images, numbers) by matrix products over patches: the faster way for many filters."""
    maps = x.movedim(2, -1)
    for name in CONVOLUTIONS:
        made = conv(maps, weights[f"{name}.weight"], None, KERNEL, STRIDE, PADDING)
        # The result is divided by the norm, not the matrix: that is the same, and a matrix may be far larger.
        made = made / _norm(weights, name)[:, None, None, None, None]
        maps = F.leaky_relu(made + weights[f"{name}.bias"][:, None, None, None], LEAK)
    return maps.flatten(2)


def _by_groups(weights: dict[str, Tensor], x: Tensor) -> Tensor:
    """The same by convolutions with a group per critic: twice as fast for few filters."""
    critics = len(weights["head.bias"])
    maps = x.expand(critics, -1, -1, -1, -1).transpose(0, 1).flatten(1, 2)
    for name in CONVOLUTIONS:
        matrix = weights[f"{name}.weight"] / _norm(weights, name)[:, None, None]
        filters, channels = matrix.shape[2], maps.shape[1] // critics
        kernels = matrix.view(critics, KERNEL, KERNEL, channels, filters).permute(0, 4, 3, 1, 2)
        bias = weights[f"{name}.bias"].flatten()
        made = F.conv2d(maps, kernels.flatten(0, 1), bias, STRIDE, PADDING, groups=critics)
        maps = F.leaky_relu(made, LEAK)
    features = maps.view(len(maps), critics, -1, *maps.shape[2:])
    return features.permute(1, 0, 3, 4, 2).flatten(2)


@torch.no_grad()
def turn_vectors(weights: dict[str, Tensor]) -> None:
    """One power iteration for every matrix, in place; templates have none, because the penalty alone holds them."""
    if TEMPLATES in weights:
        return
    for name, vector in zip(NORMED, VECTORS, strict=True):
        matrix, turned = weights[f"{name}.weight"], weights[vector]
        left = F.normalize(torch.einsum("kio,ko->ki", matrix, turned), dim=1)
        turned.copy_(F.normalize(torch.einsum("kio,ki->ko", matrix, left), dim=1))


def _norm(weights: dict[str, Tensor], name: str) -> Tensor:
    """(critics,): the matrix's largest singular value. The vector stands still under gradients."""
    image = torch.bmm(weights[f"{name}.weight"], weights[f"{name}.vector"][:, :, None])
    norm: Tensor = torch.linalg.vector_norm(image, dim=(1, 2))
    return norm


def _half(side: int) -> int:
    return out_side(side, KERNEL, STRIDE, PADDING)
