"""The conditional discriminator of DataLens, over stacked weights: is a record with this label real?

Pictures: convolution 5 x 5 with stride 2 (11 filters), again (42 filters), linear (256), linear (1); leaky ReLU; the label is
joined to the input of every layer, as constant maps to that of a convolution. Tables, and pictures without filters: linear (256),
linear (256), linear (1), plus the record's product with a template of its class: without it such small networks hardly learn that
their gradient should depend on the class. Without hidden units the templates are all: a linear discriminator for each class.

Constant maps need no convolution: what class c adds to a filter's map is the same for every record, so it is worked out once
per class and looked up. That is exact, borders included, and saves ten of eleven channels in the first layer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.nets.architectures.network import Shape
from limbeck.nets.kernels.stacked import Shapes, conv, linear, out_side, patches, product, start_weights

KERNEL, STRIDE, PADDING, SLOPE = 5, 2, 2, 0.2


@dataclass(frozen=True, kw_only=True)
class StackedDiscriminator:
    """first, second: filters of the two convolutions; first = 0 leaves both out. hidden: units of the linear layer(s); 0,
    which needs first = 0 for pictures, leaves templates only."""

    shape: Shape
    classes: int
    first: int = 11
    second: int = 42
    hidden: int = 256

    @property
    def convolves(self) -> bool:
        return len(self.shape) == 3 and self.first > 0

    def _sides(self, halvings: int) -> tuple[int, int]:
        height, width = self.shape[1:]
        for _ in range(halvings):
            height, width = (out_side(side, KERNEL, STRIDE, PADDING) for side in (height, width))
        return height, width

    def shapes(self) -> Shapes:
        if not self.convolves:
            flat, layers = math.prod(self.shape), {"middle": (self.hidden, self.hidden)}
        else:
            flat, layers = self.second * math.prod(self._sides(2)), {}
        layers = {"joint": (flat, self.hidden), **layers, "last": (self.hidden, 1)} if self.hidden else {}
        shapes: dict[str, tuple[int, ...]] = {}
        if self.convolves:
            for name, channels, out in (("conv1", self.shape[0], self.first), ("conv2", self.first, self.second)):
                shapes[f"{name}.weight"] = (KERNEL * KERNEL, channels, out)
                shapes[f"{name}.label"] = (KERNEL * KERNEL, self.classes, out)
                shapes[f"{name}.bias"] = (out,)
        for name, (before, after) in layers.items():
            shapes[f"{name}.weight"], shapes[f"{name}.label"] = (before, after), (self.classes, after)
            shapes[f"{name}.bias"] = (after,)
        if not self.convolves:
            shapes["template.weight"], shapes["template.bias"] = (math.prod(self.shape), self.classes), (self.classes,)
        return shapes

    def start(self, seeds: Sequence[int]) -> dict[str, Tensor]:
        return start_weights(self.shapes(), seeds)

    def logits(self, weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        """(networks, records) for x (networks or 1, records, *shape) and y (networks or 1, records)."""
        label = F.one_hot(y, self.classes).to(x.dtype)
        if not self.convolves:
            x = x.flatten(2)
            by_template = (linear(x, weights["template.weight"], weights["template.bias"]) * label).sum(2)
            if not self.hidden:
                return by_template
            return by_template + self._joint(weights, ("joint", "middle", "last"), x, label)
        x = x.movedim(2, -1)
        for name in ("conv1", "conv2"):
            x = F.leaky_relu(self._conv(weights, name, x, label), SLOPE)
        return self._joint(weights, ("joint", "last"), x.flatten(2), label)

    def _joint(self, weights: dict[str, Tensor], layers: tuple[str, ...], x: Tensor, label: Tensor) -> Tensor:
        for name in layers:
            x = linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])
            x = x + product(label, weights[f"{name}.label"])
            x = x if name == "last" else F.leaky_relu(x, SLOPE)
        return x[:, :, 0]

    def _conv(self, weights: dict[str, Tensor], name: str, x: Tensor, label: Tensor) -> Tensor:
        made = conv(x, weights[f"{name}.weight"].flatten(1, 2), weights[f"{name}.bias"], KERNEL, STRIDE, PADDING)
        ones = patches(torch.ones_like(x[:1, :1, :, :, :1])[0], KERNEL, STRIDE, PADDING)  # 0 outside of the border
        by_place = product(ones, weights[f"{name}.label"].flatten(2))
        by_class = by_place.view(*by_place.shape[:2], self.classes, -1).transpose(1, 2).flatten(2)
        return made + product(label, by_class).view(-1, label.shape[1], *made.shape[2:])
