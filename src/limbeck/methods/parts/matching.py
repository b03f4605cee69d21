"""What feature-matching methods share: which network embeds, how the synthetic set starts, and the descent on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from limbeck.methods.base import Chosen, Logbook, Method, SyntheticSet, given
from limbeck.methods.settings import setting
from limbeck.nets import Augmentation, NetSpec, build
from limbeck.privacy.schema import Schema
from limbeck.vault.api import RandomFeatures


@dataclass(frozen=True, kw_only=True)
class DescentSchedule(Chosen):
    """Iterations, step size, standard deviation of the start, and the share of iterations that is averaged."""

    I: int  # noqa: E741  the papers' symbol
    eta: float
    start: float
    average: float


@dataclass(frozen=True, kw_only=True)
class FeatureMatching(Method):
    """Settings left at none are filled in by `chosen`: the papers' for images, ours for tables.

    I          iterations
    eta        step size of the descent on the set; momentum
    start      standard deviation of the noise that the set starts from
    average    share of the last iterations whose sets are averaged into the result (0: the last one, as in the papers)
    net, width the extractor ('auto': ConvNet for images, one linear layer of 64 for tables; width 0: its usual one)
    augment    siamese augmentation with the schema's families
    rows       'equal' per class, 'proportional' to the class sizes, or 'auto': equal for images, proportional for tables,
               whose models live by the base rates; the set has per_class x classes records either way
    """

    I: int | None = setting(None, least=1)  # noqa: E741  the papers' symbol
    eta: float | None = setting(None, above=0)
    momentum: float = setting(0.5, least=0, below=1)
    start: float | None = setting(None, above=0)
    average: float | None = setting(None, least=0, most=1)
    net: str = setting("auto")
    width: int = setting(0, least=0, note="where 0 is the usual width")
    augment: bool = setting(True)
    rows: str = setting("auto", choices=("auto", "equal", "proportional"))

    image_iterations: ClassVar[int] = 10_000

    def chosen(self, schema: Schema, epsilon: float | None = None) -> DescentSchedule:
        """The papers' settings are for images. With one linear layer only directions are matched, and a table's rows drift
        away from their start: a calmer start, smaller steps and averaging (chosen on held-out training rows of Adult)."""
        image = schema.is_image
        return DescentSchedule(
            I=given(self.I, self.image_iterations if image else 2000),
            eta=given(self.eta, 1.0 if image else 0.1),
            start=given(self.start, 1.0 if image else 0.5),
            average=given(self.average, 0.0 if image else 0.5),
        )

    def check(self, schema: Schema) -> None:
        super().check(schema)
        build(self.extractor(schema), schema.shape, 1, seed=0)  # a network that cannot read the records says so now

    def extractor(self, schema: Schema) -> NetSpec:
        kind = self.net if self.net != "auto" else "convnet" if schema.is_image else "linear"
        return NetSpec(kind=kind, width=self.width or (64 if kind == "linear" else 128))

    def features(self, schema: Schema, step: int, with_count: bool = False) -> RandomFeatures:
        """A fresh random network and fresh augmentation parameters for each iteration."""
        families = schema.augmentation if self.augment and schema.is_image else ()
        return RandomFeatures(
            net=self.extractor(schema),
            shape=schema.shape,
            seed=self.seed_at("network", step),
            augmentation=Augmentation(families) if families else None,
            with_count=with_count,
        )

    def set_labels(self, schema: Schema, sizes: Tensor | None) -> Tensor:
        """The labels of the set; `sizes` are public or bought class sizes."""
        proportional = self.rows == "proportional" or (self.rows == "auto" and not schema.is_image)
        if sizes is None or not proportional:
            return self.labels(schema)
        total = self.per_class * len(schema.classes)
        return self.labels(schema, shared_out(total, sizes.tolist()))

    def descent(self, schema: Schema, labels: Tensor, logbook: Logbook, device: torch.device) -> Descent:
        schedule = self.chosen(schema)
        noise = torch.randn((len(labels), *schema.shape), generator=self.rng("start"))
        x = (schedule.start * noise).to(device)
        return Descent(logbook, schedule.I, schedule.eta, self.momentum, schedule.average, labels.to(device), x)


class Descent:
    """Gradient descent with momentum on the synthetic set, which is resumable and may average its last iterates."""

    def __init__(
        self, logbook: Logbook, steps: int, eta: float, momentum: float, average: float, labels: Tensor, x: Tensor
    ) -> None:
        self._logbook, self._steps, self._eta, self._momentum = logbook, steps, eta, momentum
        self._averaged_from = steps - int(average * steps)
        self.labels, self.x = labels, x
        self._velocity, self._total = torch.zeros_like(x), torch.zeros_like(x)

    def steps(self, answers: str) -> Iterator[int]:
        state = {"images": self.x, "velocity": self._velocity, "total": self._total}
        for step in self._logbook.steps(self._steps, state, answers):
            self.x.requires_grad_(True)
            yield step
            if step >= self._averaged_from:
                self._total.add_(self.x)

    def move(self, loss: Tensor) -> None:
        """One step down the loss, in place."""
        (gradient,) = torch.autograd.grad(loss, self.x)
        self.x.requires_grad_(False)
        self._velocity.mul_(self._momentum).add_(gradient)
        self.x.sub_(self._eta * self._velocity)

    def result(self) -> SyntheticSet:
        averaged = self._steps - self._averaged_from
        x = self._total / averaged if averaged else self.x
        return SyntheticSet(x.detach().cpu().numpy(), self.labels.cpu().numpy())


def class_means(rows: Tensor, labels: Tensor, classes: int) -> Tensor:
    """(classes, dimension): the mean row of each class."""
    totals = rows.new_zeros(classes, rows.shape[1]).index_add(0, labels, rows)
    return totals / torch.bincount(labels, minlength=classes)[:, None]


def clipped_rows(rows: Tensor, bound: float) -> Tensor:
    """Clip the set's own rows like the records'; the factor is a constant of the step, so no gradient passes through it."""
    norms = rows.detach().norm(dim=1, keepdim=True)
    clipped: Tensor = rows * (bound / norms.clamp_min(1e-12)).clamp(max=1.0)
    return clipped


def shared_out(total: int, sizes: Sequence[float]) -> list[int]:
    """Share `total` rows out in proportion to `sizes`, at least one to each (largest remainders).

    >>> shared_out(100, [24720, 7841])
    [75, 25]
    """
    shares = [(total - len(sizes)) * size / sum(sizes) for size in sizes]
    rows = [1 + int(share) for share in shares]
    by_remainder = sorted(range(len(sizes)), key=lambda index: int(shares[index]) - shares[index])
    for index in by_remainder[: total - sum(rows)]:
        rows[index] += 1
    return rows
