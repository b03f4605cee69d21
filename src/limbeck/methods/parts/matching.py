"""What feature-matching methods share: which network embeds, how the synthetic set starts, and the descent on it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from limbeck.errors import BadSettings
from limbeck.methods.base import Logbook, Method, SyntheticSet
from limbeck.nets import Augmentation, NetSpec, build
from limbeck.privacy.schema import Schema
from limbeck.vault.api import RandomFeatures


@dataclass(frozen=True, kw_only=True)
class FeatureMatching(Method):
    """Settings left at none are chosen by `resolved`: the papers' for images, ours for tables.

    I          iterations
    eta        step size of the descent on the set; momentum
    start      standard deviation of the noise that the set starts from
    average    share of the last iterations whose sets are averaged into the result (0: the last one, as in the papers)
    net, width the extractor ('auto': ConvNet for images, one linear layer of 64 for tables; width 0: its usual one)
    augment    siamese augmentation with the schema's families
    rows       'equal' per class, 'proportional' to the class sizes, or 'auto': equal for images, proportional for tables,
               whose models live by the base rates; the set has per_class x classes records either way
    """

    I: int | None = None  # noqa: E741  the papers' symbol
    eta: float | None = None
    momentum: float = 0.5
    start: float | None = None
    average: float | None = None
    net: str = "auto"
    width: int = 0
    augment: bool = True
    rows: str = "auto"

    image_iterations: ClassVar[int] = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.I is not None and self.I < 1:
            raise BadSettings(f"I must be at least 1, got I={self.I}.")
        if self.eta is not None and not 0 < self.eta < math.inf:
            raise BadSettings(f"eta must be positive, got eta={self.eta}.")
        if not 0 <= self.momentum < 1:
            raise BadSettings(f"momentum must lie in [0, 1), got momentum={self.momentum}.")
        if self.start is not None and not 0 < self.start < math.inf:
            raise BadSettings(f"start must be positive, got start={self.start}.")
        if self.average is not None and not 0 <= self.average <= 1:
            raise BadSettings(f"average must lie in [0, 1], got average={self.average}.")
        if self.width < 0:
            raise BadSettings(f"width must be 0 (the usual one) or positive, got width={self.width}.")
        if self.rows not in ("auto", "equal", "proportional"):
            raise BadSettings(f"rows must be 'auto', 'equal' or 'proportional', got rows={self.rows!r}.")

    def resolved(self, schema: Schema, epsilon: float | None = None) -> Self:
        """The papers' settings are for images. With one linear layer only directions are matched, and a table's rows drift
        away from their start: a calmer start, smaller steps and averaging (chosen on held-out training rows of Adult)."""
        image = schema.is_image
        usual: dict[str, Any] = {
            "I": self.image_iterations if image else 2000,
            "eta": 1.0 if image else 0.1,
            "start": 1.0 if image else 0.5,
            "average": 0.0 if image else 0.5,
        }
        missing = {name: value for name, value in usual.items() if getattr(self, name) is None}
        return dataclasses.replace(self, **missing)

    def iterations(self, schema: Schema) -> int:
        count = self.resolved(schema).I
        assert count is not None
        return count

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
        noise = torch.randn((len(labels), *schema.shape), generator=self.generator("start"))
        assert self.I is not None and self.eta is not None and self.start is not None and self.average is not None
        return Descent(
            logbook, self.I, self.eta, self.momentum, self.average, labels.to(device), (self.start * noise).to(device)
        )


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
    """(classes, numbers): the mean row of each class."""
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
    [76, 24]
    """
    shares = [(total - len(sizes)) * size / sum(sizes) for size in sizes]
    rows = [1 + int(share) for share in shares]
    by_remainder = sorted(range(len(sizes)), key=lambda place: int(shares[place]) - shares[place])
    for place in by_remainder[: total - sum(rows)]:
        rows[place] += 1
    return rows
