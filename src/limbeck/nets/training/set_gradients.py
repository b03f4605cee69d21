"""The gradient of a set's loss with respect to a network's weights, and of a function of that gradient with respect to the
set: the two halves of gradient matching."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.nets.architectures.build import build
from limbeck.nets.architectures.network import Shape
from limbeck.nets.architectures.spec import NetSpec
from limbeck.nets.training.passes import ConvNetPasses, Weights

NUMBERS_AT_ONCE = 4_000_000  # of the largest map, so that a chunk stays in the cache

Measure = Callable[[dict[str, Tensor]], Tensor]


class SetGradients:
    """Gradients of the mean cross-entropy of a small set. ConvNets take the written-out passes, others autograd."""

    def __init__(self, spec: NetSpec, shape: Shape, classes: int, device: torch.device) -> None:
        self._spec, self._shape, self._classes, self._device = spec, shape, classes, device
        self._network = build(spec, shape, classes, seed=0, device=device).requires_grad_(False)
        self._passes = ConvNetPasses(self._network, shape, device) if ConvNetPasses.fit(self._network) else None
        self._at_once = max(1, NUMBERS_AT_ONCE // (spec.width * math.prod(shape[1:])))

    def fresh_weights(self, seed: int) -> dict[str, Tensor]:
        network = build(self._spec, self._shape, self._classes, seed, self._device)
        return {name: value.detach() for name, value in network.named_parameters()}

    def gradient(self, weights: Weights, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        """With respect to every weight."""
        if self._passes is None:
            return _detached(self._autograd(weights, x, y, keep=False))
        total: dict[str, Tensor] = {}
        with torch.no_grad():
            for part, labels in self._chunks(x, y):
                part_sum = self._passes.gradient(weights, self._passes.trace(weights, part, labels, 1 / len(x)))
                total = {name: total.get(name, 0) + value for name, value in part_sum.items()}
        return total

    def pull_back(self, weights: Weights, x: Tensor, y: Tensor, measure: Measure) -> tuple[Tensor, Tensor]:
        """measure(gradient of the weights), and its gradient with respect to x.

        `measure` must not look at vectors (biases and gains of norms): the papers' distance does not.
        """
        if self._passes is None:
            with torch.enable_grad():
                records = x.detach().requires_grad_(True)
                loss = measure(self._autograd(weights, records, y, keep=True))
                return loss.detach(), torch.autograd.grad(loss, records)[0]
        with torch.no_grad():
            traces = [self._passes.trace(weights, *part, 1 / len(x)) for part in self._chunks(x.detach(), y)]
            sums = [self._passes.gradient(weights, trace) for trace in traces]
            gradient = {name: torch.stack([part[name] for part in sums]).sum(0) for name in weights}
        loss, direction = _slope(measure, gradient)
        with torch.no_grad():
            parts = [self._passes.pixel_gradient(weights, trace, direction, 1 / len(x)) for trace in traces]
        return loss, torch.cat(parts)

    def _chunks(self, x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        # Equal parts, because the compiled passes would rather not meet a new size.
        count = math.ceil(len(x) / self._at_once)
        return zip(x.tensor_split(count), y.tensor_split(count), strict=True)

    def _autograd(self, weights: Weights, x: Tensor, y: Tensor, keep: bool) -> dict[str, Tensor]:
        with torch.enable_grad():
            leaves = {name: value.detach().requires_grad_(True) for name, value in weights.items()}
            loss = F.cross_entropy(torch.func.functional_call(self._network, leaves, (x,)), y)
            gradients = torch.autograd.grad(loss, list(leaves.values()), create_graph=keep)
        return dict(zip(leaves, gradients, strict=True))


def _slope(measure: Measure, gradient: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """The measure and its derivative with respect to the gradient's matrices."""
    with torch.enable_grad():
        leaves = {name: value.requires_grad_(value.dim() > 1) for name, value in gradient.items()}
        loss = measure(leaves)
        matrices = {name: value for name, value in leaves.items() if value.dim() > 1}
        slopes = torch.autograd.grad(loss, list(matrices.values()))
    return loss.detach(), dict(zip(matrices, slopes, strict=True))


def _detached(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach() for name, value in tensors.items()}
