"""What gradient-matching methods share: the schedule of networks, the distance of gradients, the walk through it all."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from limbeck.errors import BadSettings
from limbeck.methods.base import Logbook, Method, SyntheticSet, unflattened
from limbeck.nets import NetSpec, SetGradients, build
from limbeck.privacy.schema import Schema


@dataclass(frozen=True, kw_only=True)
class GradientMatching(Method):
    """Settings left at none follow from per_class and epsilon as in the papers (`resolved`).

    R, T, K    runs, each with a fresh network; rounds of a run, between which the network is trained on the set; answers
               asked for, and steps taken, in a round
    J          epochs of that training (not after the last round); tau its step size, train_batch its batch
    eta        step size of the descent on the set; momentum
    start      standard deviation of the noise that the set starts from
    net, width the matched network ('auto': ConvNet for images, MLP for tables; width 0: its usual one)
    snapshots  how many sets on the way are kept, for the curve of accuracy against epsilon
    """

    per_class: int = 10
    R: int | None = None
    T: int | None = None
    K: int = 10
    J: int | None = None
    eta: float = 0.1
    momentum: float = 0.5
    start: float = 1.0
    tau: float = 0.01
    train_batch: int = 256
    net: str = "auto"
    width: int = 0
    snapshots: int = 10

    runs_at: ClassVar[tuple[int, int]] = (1000, 1000)  # for a large and for a small epsilon

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("R", "T", "K", "J", "train_batch"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadSettings(f"{name} must be at least 1, got {name}={value}.")
        for name in ("eta", "tau", "start"):
            if not 0 < getattr(self, name) < math.inf:
                raise BadSettings(f"{name} must be positive, got {name}={getattr(self, name)}.")
        if not 0 <= self.momentum < 1:
            raise BadSettings(f"momentum must lie in [0, 1), got momentum={self.momentum}.")
        if self.width < 0 or not 0 <= self.snapshots <= 1000:
            raise BadSettings(
                f"width must be 0 (the usual one) or positive and snapshots lie in 0 ... 1000, "
                f"got width={self.width}, snapshots={self.snapshots}."
            )

    def resolved(self, schema: Schema, epsilon: float | None = None) -> Self:
        """The papers' schedule: (T, J) = (1, 1), (10, 50), (20, 25), (50, 10) for 1, 10, 20, 50 per class."""
        rounds = min(self.per_class, 50) if self.T is None else self.T
        epochs = (1 if rounds == 1 else max(1, 500 // rounds)) if self.J is None else self.J
        large, small = self.runs_at
        runs = (small if epsilon is not None and epsilon < 3 else large) if self.R is None else self.R
        return dataclasses.replace(self, R=runs, T=rounds, J=epochs)

    def check(self, schema: Schema) -> None:
        super().check(schema)
        build(
            self.matched(schema), schema.shape, len(schema.classes), seed=0
        )  # says so now if it cannot read the records

    def matched(self, schema: Schema) -> NetSpec:
        kind = self.net if self.net != "auto" else "convnet" if schema.is_image else "mlp"
        return NetSpec(kind=kind, width=self.width or 128)

    @property
    def answers(self) -> int:
        """R x T x K, of settings that are resolved."""
        assert self.R is not None and self.T is not None
        return self.R * self.T * self.K

    def first_images(self, schema: Schema, labels: Tensor) -> Tensor:
        noise = torch.randn((len(labels), *schema.shape), generator=self.generator("start"))
        return (self.start * noise).to(labels.device)

    def walk(self, schema: Schema, labels: Tensor, logbook: Logbook, device: torch.device) -> Walk:
        return Walk(
            self, SetGradients(self.matched(schema), schema.shape, len(schema.classes), device), labels, logbook
        )


class Walk:
    """R networks one after the other, each matched K times and then trained on the set, T times over. Resumable."""

    def __init__(self, method: GradientMatching, gradients: SetGradients, labels: Tensor, logbook: Logbook) -> None:
        self._method, self._logbook, self.gradients, self.labels = method, logbook, gradients, labels
        self.weights = gradients.fresh_weights(method.seed_at("network", 0))
        total, kept = method.answers, method.snapshots
        self._kept_after = [round(total * (place + 1) / kept / method.K) * method.K for place in range(kept)]
        self._kept: Tensor | None = None

    def steps(self, state: dict[str, Tensor], answers: str, images: Tensor) -> Iterator[int]:
        """The numbers of the answers; `state` is what the method itself changes, `images` the set as it is now."""
        method = self._method
        assert method.T is not None
        self._kept = torch.zeros((len(self._kept_after), *images.shape))
        state = state | {f"network.{name}": value for name, value in self.weights.items()} | {"kept": self._kept}
        for step in self._logbook.steps(method.answers, state, answers):
            run, place = divmod(step, method.T * method.K)
            if place == 0:
                self._copy_weights(self.gradients.fresh_weights(method.seed_at("network", run)))
            yield step
            # Not after the last round: the next network starts afresh.
            if (place + 1) % method.K == 0 and place + 1 < method.T * method.K:
                self._train(images, method.generator("batches", step))
            for index, after in enumerate(self._kept_after):
                if after == step + 1:
                    self._kept[index] = images.detach().cpu()

    def _train(self, images: Tensor, generator: torch.Generator) -> None:
        """J epochs of plain gradient descent of the network on the set."""
        assert self._method.J is not None
        for _ in range(self._method.J):
            order = torch.randperm(len(images), generator=generator).to(images.device)
            for part in torch.split(order, self._method.train_batch):
                gradient = self.gradients.gradient(self.weights, images[part].detach(), self.labels[part])
                for name, value in self.weights.items():
                    value.sub_(self._method.tau * gradient[name])

    def _copy_weights(self, fresh: dict[str, Tensor]) -> None:
        for name, value in self.weights.items():
            value.copy_(fresh[name])

    def by_name(self, flat: Tensor) -> dict[str, Tensor]:
        """An answer's numbers as tensors like the weights."""
        return unflattened(flat, self.weights)

    def result(self, images: Tensor) -> SyntheticSet:
        kept = None if self._kept is None or not len(self._kept) else self._kept.numpy()
        return SyntheticSet(
            images.detach().cpu().numpy(), self.labels.cpu().numpy(), kept, tuple(self._kept_after)
        )  # fmt: skip


def distance(one: dict[str, Tensor], other: dict[str, Tensor]) -> Tensor:
    """Sum over all rows of all weight matrices of 1 - cosine; vectors (biases, gains of norms) count nothing."""
    total = torch.zeros(())
    for name, gradient in one.items():
        if gradient.dim() > 1:
            a, b = gradient.flatten(1), other[name].flatten(1)
            total = total.to(a.device) + (1 - (a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1) + 1e-6)).sum()
    return total
