"""Teachers over public random features: nobody learns the features, and one record reaches one teacher."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from limbeck.data.records import Records
from limbeck.errors import BadInput
from limbeck.nets.architectures.feature_discriminator import FeatureDiscriminator, public_filters
from limbeck.privacy.schema import Schema
from limbeck.vault.ensemble.ensemble import Ensemble
from limbeck.vault.ensemble.feature_discriminators import FeatureTeacher
from limbeck.vault.ensemble.partition import partition
from limbeck.vault.ensemble.teachers import Batch, EnsembleSpec
from limbeck.vault.ensemble.votes import SignVote

SCHEMA = Schema(name="s", shape=(1, 8, 8), classes=("a", "b", "c"), records=120, low=0, high=255)
TEACHER = FeatureTeacher(shape=SCHEMA.shape, classes=3, features=11, eta=0.01, decay=0.5)
SPEC = EnsembleSpec(teachers=6, batch=4, steps=2)


def records() -> Records:
    generator = np.random.default_rng(0)
    return Records(generator.integers(0, 256, (120, 1, 8, 8)).astype(np.uint8), np.arange(120) % 3)


def trained(of: Records) -> Ensemble:
    ensemble = Ensemble(TEACHER, SPEC, SCHEMA, torch.device("cpu"))
    ensemble.assign_records(of, partition(of, SPEC.teachers, b"k" * 32))
    x = torch.rand((8, 1, 8, 8), generator=torch.Generator().manual_seed(1)) * 2 - 1
    y = torch.arange(8) % 3
    for _ in range(3):
        ensemble.learn(SignVote(teacher=TEACHER, ensemble=SPEC, fakes=x, fake_labels=y, x=x, y=y, k=9))
    return ensemble


def test_one_record_alters_one_teacher_bit_for_bit() -> None:
    whole, place = records(), 17
    one = trained(whole)
    other = trained(Records(np.delete(whole.x, place, axis=0), np.delete(whole.y, place)))
    changed = {
        row
        for name, value in one.state.items()
        for row in range(SPEC.teachers)
        if not torch.equal(value[row], other.state[name][row])
    }
    parts = partition(whole, SPEC.teachers, b"k" * 32)
    assert changed == {int(np.searchsorted(parts.bounds, np.flatnonzero(parts.order == place)[0], side="right")) - 1}


def test_features_are_public_and_no_teacher_holds_or_moves_them() -> None:
    filters, bias = (value.clone() for value in public_filters((1, 8, 8), 11, 0))
    assert filters.shape == (64, 11) and torch.allclose(filters.norm(dim=0), torch.full((11,), 0.5))
    assert set(trained(records()).weights) == {"out.weight", "out.bias", "template.weight"}
    assert torch.equal(filters, public_filters((1, 8, 8), 11, 0)[0]) and torch.equal(
        bias, public_filters((1, 8, 8), 11, 0)[1]
    )
    assert not torch.equal(filters, public_filters((1, 8, 8), 11, 1)[0])


def test_the_logit_is_linear_in_features_and_record() -> None:
    net = FeatureDiscriminator(shape=(1, 8, 8), classes=3, features=11, seed=2)
    weights = net.start([3, 4])
    x = torch.rand((2, 5, 1, 8, 8), generator=torch.Generator().manual_seed(1)) * 2 - 1
    y = torch.tensor([[0, 1, 2, 0, 1], [2, 2, 1, 0, 0]])
    filters, bias = public_filters((1, 8, 8), 11, 2)
    found = net.logits(weights, x, y)
    for row in range(2):
        flat = x[row].flatten(1)
        units = torch.relu(flat @ filters + bias)
        every = units @ weights["out.weight"][row] + weights["out.bias"][row] + flat @ weights["template.weight"][row]
        assert torch.allclose(found[row], every[torch.arange(5), y[row]], atol=0.05)  # products may be in bfloat16


def test_what_a_teacher_wants_depends_on_the_picture() -> None:
    """That of templates alone does not, but for its length."""
    weights = TEACHER.start([1])
    x = torch.rand((1, 2, 1, 8, 8), generator=torch.Generator().manual_seed(1)) * 2 - 1
    x.requires_grad_(True)
    (slope,) = torch.autograd.grad(TEACHER.score(weights, x, torch.zeros(1, 2).long()).sum(), x)
    one, other = slope[0].flatten(1)
    assert torch.cosine_similarity(one, other, dim=0) < 0.99


def test_places_without_a_record_do_not_count() -> None:
    weights = TEACHER.start([1])
    x, y = torch.rand((1, 4, 1, 8, 8), generator=torch.Generator().manual_seed(3)), torch.tensor([[0, 1, 2, 2]])
    fake = Batch(-x, y, torch.ones(1, 4))
    weight = torch.tensor([[1.0, 1.0, 1.0, 0.0]])
    other = x.clone()
    other[0, 3] = 5.0
    losses = [TEACHER.loss(weights, Batch(some, y, weight), fake, torch.Generator()) for some in (x, other)]
    assert torch.equal(*losses)


def test_decay_pulls_weights_to_zero() -> None:
    weights = TEACHER.start([1])
    x, y = torch.zeros(1, 2, 1, 8, 8), torch.tensor([[0, 1]])
    batch = Batch(x, y, torch.ones(1, 2))
    with_decay, without = (
        dataclasses.replace(TEACHER, decay=decay).loss(weights, batch, batch, torch.Generator()) for decay in (2.0, 0.0)
    )
    assert torch.allclose(with_decay - without, sum(value.square().sum() for value in weights.values()))


@pytest.mark.parametrize(("wrong", "said"), [({"features": 0}, "features"), ({"decay": -1.0}, "decay=-1.0")])
def test_teachers_that_make_no_sense_are_refused(wrong: dict[str, float], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        FeatureTeacher(shape=(1, 8, 8), classes=2, **wrong)  # type: ignore[arg-type]
