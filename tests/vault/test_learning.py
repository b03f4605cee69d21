"""A teacher's step is Adam's, number by number, whatever its network is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from limbeck.data.records import Records
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Critic, CriticGradient, Discriminator, EnsembleSpec, FeatureTeacher
from limbeck.vault.ensemble.ensemble import Ensemble
from limbeck.vault.ensemble.partition import partition
from limbeck.vault.ensemble.teachers import Batch, Teacher

SHAPE, CLASSES, TEACHERS = (1, 12, 12), 3, 2
SPEC = EnsembleSpec(teachers=TEACHERS, batch=6)
SCHEMA = Schema(name="few", shape=SHAPE, classes=tuple("abc"), records=40, low=0, high=255)
KINDS: list[Teacher] = [
    Critic(shape=SHAPE, classes=CLASSES, width=0),
    Critic(shape=SHAPE, classes=CLASSES, width=0, hidden=3),
    Critic(shape=SHAPE, classes=CLASSES, width=4),
    Critic(shape=SHAPE, classes=CLASSES, width=20),
    Discriminator(shape=SHAPE, classes=CLASSES, first=3, second=4, hidden=5),
    Discriminator(shape=SHAPE, classes=CLASSES, first=0, hidden=5),
    Discriminator(shape=SHAPE, classes=CLASSES, first=0, hidden=0, decay=1.0),
    FeatureTeacher(shape=SHAPE, classes=CLASSES, features=7, decay=0.5),
]


def ensemble_of(teacher: Teacher) -> Ensemble:
    random = np.random.default_rng(0)
    records = Records(random.integers(0, 256, (40, *SHAPE), dtype=np.uint8), random.integers(0, CLASSES, 40))
    ensemble = Ensemble(teacher, SPEC, SCHEMA, torch.device("cpu"))
    ensemble.assign_records(records, partition(records, TEACHERS, bytes(32)))
    return ensemble


@pytest.mark.parametrize("teacher", KINDS, ids=lambda kind: f"{kind.kind}-{getattr(kind, 'width', kind)}"[:24])
def test_a_step_is_adams(teacher: Teacher, monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble, seen = ensemble_of(teacher), []
    before = {name: value.clone() for name, value in ensemble.weights.items()}
    asked = type(teacher).loss

    def watched(self: Teacher, weights: dict[str, torch.Tensor], *given: Batch) -> torch.Tensor:
        loss = asked(self, weights, *given)
        moving = {name: value for name, value in weights.items() if name not in self.fixed}
        seen.append(
            dict(zip(moving, torch.autograd.grad(loss.sum(), list(moving.values()), retain_graph=True), strict=True))
        )
        return loss

    monkeypatch.setattr(type(teacher), "loss", watched)
    x = torch.rand((6, *SHAPE), generator=torch.Generator().manual_seed(1)) * 2 - 1
    y = torch.arange(6) % CLASSES
    ensemble.learn(CriticGradient(teacher=teacher, ensemble=SPEC, fakes=x, fake_labels=y, x=x, y=y))
    for name, gradient in seen[0].items():
        # After one step both of Adam's means are the gradient's own, so it moves by eta against the sign.
        moved = -teacher.eta * gradient / (gradient.abs() + 1e-8)
        assert torch.allclose(ensemble.weights[name], before[name] + moved, atol=1e-6), name
