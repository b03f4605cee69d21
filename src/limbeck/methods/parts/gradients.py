"""What gradient-matching methods share: the schedule of networks, the distance of gradients, and the loop over both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from limbeck.methods.base import MOST_PER_CLASS, Chosen, Logbook, Method, SyntheticSet, given, unflattened
from limbeck.methods.settings import setting
from limbeck.nets import NetSpec, SetGradients, build
from limbeck.privacy.schema import Schema


@dataclass(frozen=True, kw_only=True)
class MatchingSchedule(Chosen):
    """How many runs, rounds of a run, and epochs of training after a round."""

    R: int
    T: int
    J: int


@dataclass(frozen=True, kw_only=True)
class GradientMatching(Method):
    """Settings left at none follow from per_class and epsilon as in the papers (`chosen`).

    R, T, K    runs, each with a fresh network; rounds of a run, between which the network is trained on the set; answers
               asked for, and steps taken, in a round
    J          epochs of that training (not after the last round); tau its step size, train_batch its batch
    eta        step size of the descent on the set; momentum
    start      standard deviation of the noise that the set starts from
    net, width the matched network ('auto': ConvNet for images, MLP for tables; width 0: its usual one)
    snapshots  how many sets are kept during the run, for the curve of accuracy against epsilon
    """

    per_class: int = setting(10, least=1, most=MOST_PER_CLASS)
    R: int | None = setting(None, least=1)
    T: int | None = setting(None, least=1)
    K: int = setting(10, least=1)
    J: int | None = setting(None, least=1)
    eta: float = setting(0.1, above=0)
    momentum: float = setting(0.5, least=0, below=1)
    start: float = setting(1.0, above=0)
    tau: float = setting(0.01, above=0)
    train_batch: int = setting(256, least=1)
    net: str = setting("auto")
    width: int = setting(0, least=0, note="where 0 is the usual width")
    snapshots: int = setting(10, least=0, most=1000)

    runs_at: ClassVar[tuple[int, int]] = (1000, 1000)  # for a large and for a small epsilon

    def chosen(self, schema: Schema, epsilon: float | None = None) -> MatchingSchedule:
        """The papers' schedule: (T, J) = (1, 1), (10, 50), (20, 25), (50, 10) for 1, 10, 20, 50 per class."""
        rounds = given(self.T, min(self.per_class, 50))
        epochs = 1 if rounds == 1 else max(1, 500 // rounds)
        large, small = self.runs_at
        runs = small if epsilon is not None and epsilon < 3 else large
        return MatchingSchedule(R=given(self.R, runs), T=rounds, J=given(self.J, epochs))

    def check(self, schema: Schema) -> None:
        super().check(schema)
        build(
            self.matched(schema), schema.shape, len(schema.classes), seed=0
        )  # says so now if it cannot read the records

    def matched(self, schema: Schema) -> NetSpec:
        kind = self.net if self.net != "auto" else "convnet" if schema.is_image else "mlp"
        return NetSpec(kind=kind, width=self.width or 128)

    def answers(self, schema: Schema) -> int:
        """How many answers are asked for: R x T x K."""
        schedule = self.chosen(schema)
        return schedule.R * schedule.T * self.K

    def initial_images(self, schema: Schema, labels: Tensor) -> Tensor:
        noise = torch.randn((len(labels), *schema.shape), generator=self.rng("start"))
        return (self.start * noise).to(labels.device)

    def walk(self, schema: Schema, labels: Tensor, logbook: Logbook, device: torch.device) -> Walk:
        gradients = SetGradients(self.matched(schema), schema.shape, len(schema.classes), device)
        return Walk(self, self.chosen(schema), gradients, labels, logbook)


class Walk:
    """R networks one after the other, each matched K times and then trained on the set, T times over. Resumable."""

    def __init__(
        self,
        method: GradientMatching,
        schedule: MatchingSchedule,
        gradients: SetGradients,
        labels: Tensor,
        logbook: Logbook,
    ) -> None:
        self._method, self._schedule, self._logbook = method, schedule, logbook
        self.gradients, self.labels = gradients, labels
        self.weights = gradients.fresh_weights(method.seed_at("network", 0))
        self._total, kept = schedule.R * schedule.T * method.K, method.snapshots
        self._kept_after = [round(self._total * (index + 1) / kept / method.K) * method.K for index in range(kept)]
        self._kept: Tensor | None = None

    def steps(self, state: dict[str, Tensor], answers: str, images: Tensor) -> Iterator[int]:
        """The indices of the answers; `state` is what the method itself changes, `images` the set as it is now."""
        method, in_a_run = self._method, self._schedule.T * self._method.K
        self._kept = torch.zeros((len(self._kept_after), *images.shape))
        state = state | {f"network.{name}": value for name, value in self.weights.items()} | {"kept": self._kept}
        for step in self._logbook.steps(self._total, state, answers):
            run, step_of_run = divmod(step, in_a_run)
            if step_of_run == 0:
                self._copy_weights(self.gradients.fresh_weights(method.seed_at("network", run)))
            yield step
            # Not after the last round: the next network starts afresh.
            if (step_of_run + 1) % method.K == 0 and step_of_run + 1 < in_a_run:
                self._train(images, method.rng("batches", step))
            for index, after in enumerate(self._kept_after):
                if after == step + 1:
                    self._kept[index] = images.detach().cpu()

    def _train(self, images: Tensor, rng: torch.Generator) -> None:
        """J epochs of plain gradient descent of the network on the set."""
        for _ in range(self._schedule.J):
            order = torch.randperm(len(images), generator=rng).to(images.device)
            for part in torch.split(order, self._method.train_batch):
                gradient = self.gradients.gradient(self.weights, images[part].detach(), self.labels[part])
                for name, value in self.weights.items():
                    value.sub_(self._method.tau * gradient[name])

    def _copy_weights(self, fresh: dict[str, Tensor]) -> None:
        for name, value in self.weights.items():
            value.copy_(fresh[name])

    def by_name(self, flat: Tensor) -> dict[str, Tensor]:
        """An answer as tensors like the weights."""
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
