"""A pool of networks that learn from a set while the set changes, each of another age."""

from __future__ import annotations

import torch
from torch import Tensor

from limbeck.nets.architectures.build import build
from limbeck.nets.architectures.network import Network, Shape
from limbeck.nets.architectures.spec import NetSpec
from limbeck.nets.training.descent import TrainingSchedule, descend, prepare


class Pool:
    """`size` networks as rows of tensors that a checkpoint can hold: weights, momentum and age in epochs."""

    def __init__(self, spec: NetSpec, shape: Shape, classes: int, size: int, device: torch.device) -> None:
        self._spec, self._shape, self._classes, self._device = spec, shape, classes, device
        self._network = prepare(self._fresh(0), shape).train()
        dimension = sum(value.numel() for value in self._network.parameters())
        self.weights = torch.zeros(size, dimension, device=device)
        self.velocity = torch.zeros(size, dimension, device=device)
        self.ages = torch.zeros(size)
        names = [name for name, _ in self._network.named_parameters()]
        self._sizes = [value.numel() for value in self._network.parameters()]
        self._body = [(name.removeprefix("body."), name) for name in names if name.startswith("body.")]
        self._shapes = {name: value.shape for name, value in self._network.named_parameters()}
        self.body_dimension = sum(self._shapes[name].numel() for _, name in self._body)
        self.features = self._network.features

    @property
    def state(self) -> dict[str, Tensor]:
        return {"pool.weights": self.weights, "pool.velocity": self.velocity, "pool.ages": self.ages}

    def _fresh(self, seed: int) -> Network:
        return build(self._spec, self._shape, self._classes, seed, self._device)

    def renew(self, index: int, seed: int) -> None:
        """A new network at this index."""
        fresh = self._fresh(seed).parameters()
        self.weights[index] = torch.cat([value.detach().flatten() for value in fresh])
        self.velocity[index] = 0
        self.ages[index] = 0

    def learn(self, index: int, x: Tensor, y: Tensor, schedule: TrainingSchedule, seed: int) -> None:
        """Train one network on the set, from where it stands."""
        parameters = list(self._network.parameters())
        moving = [torch.empty_like(value).detach() for value in parameters]
        for rows, targets in ((self.weights[index], parameters), (self.velocity[index], moving)):
            for part, target in zip(torch.split(rows, self._sizes), targets, strict=True):
                target.data.copy_(part.view(target.shape))
        descend(self._network, x, y, schedule, seed, velocity=moving)
        self.weights[index] = torch.cat([value.detach().reshape(-1) for value in parameters])
        self.velocity[index] = torch.cat([value.reshape(-1) for value in moving])
        self.ages[index] += schedule.epochs

    def body(self, index: int) -> Tensor:
        """The weights below the last layer as one vector."""
        parts = dict(zip(self._shapes, torch.split(self.weights[index], self._sizes), strict=True))
        return torch.cat([parts[name] for _, name in self._body])

    def body_weights(self, flat: Tensor) -> dict[str, Tensor]:
        """A vector from `body` as weights by name."""
        sizes = [self._shapes[name].numel() for _, name in self._body]
        parts = zip(self._body, torch.split(flat, sizes), strict=True)
        return {short: part.view(self._shapes[name]).clone() for (short, name), part in parts}
