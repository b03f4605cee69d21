"""Critics inside the vault: the loss of the paper, a warm start of their own, and one record that reaches one of them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from limbeck.data.records import Records
from limbeck.errors import BadInput
from limbeck.nets.architectures.critic import VECTORS, critic_score
from limbeck.privacy.schema import Schema
from limbeck.vault.ensemble.critics import Critic, Rivals
from limbeck.vault.ensemble.ensemble import Ensemble, teachers_mix
from limbeck.vault.ensemble.partition import partition
from limbeck.vault.ensemble.teachers import Batch, EnsembleSpec, balanced
from limbeck.vault.ensemble.votes import CriticGradient

SCHEMA = Schema(name="s", shape=(1, 8, 8), classes=("a", "b", "c"), records=120, low=0, high=255)
CRITIC = Critic(shape=SCHEMA.shape, classes=3, width=2, warm=2, warm_steps=2, latent=4, generator_width=2, eta=1e-3)
SPEC = EnsembleSpec(teachers=6, batch=4, steps=2, block=4)


def records() -> Records:
    generator = np.random.default_rng(0)
    return Records(generator.integers(0, 256, (120, 1, 8, 8)).astype(np.uint8), np.arange(120) % 3)


def question(seed: int) -> CriticGradient:
    generator = torch.Generator().manual_seed(seed)
    fakes, x = (torch.rand((count, *SCHEMA.shape), generator=generator) * 2 - 1 for count in (8, 5))
    labels = torch.arange(8) % 3
    return CriticGradient(teacher=CRITIC, ensemble=SPEC, fakes=fakes, fake_labels=labels, x=x, y=labels[:5])


def trained(of: Records, chunk: int | None = None, ticks: int = 3) -> Ensemble:
    ensemble = Ensemble(CRITIC, SPEC, SCHEMA, torch.device("cpu"), chunk)
    ensemble.assign_records(of, partition(of, SPEC.teachers, b"k" * 32))
    ensemble.warm_up(lambda: None)
    for tick in range(ticks):
        ensemble.learn(question(tick))
    return ensemble


def test_one_record_alters_one_critic_bit_for_bit() -> None:
    """Over warm start and training: weights, moments, vectors of the norms, and what each would answer."""
    whole, place = records(), 17
    less = Records(np.delete(whole.x, place, axis=0), np.delete(whole.y, place))
    one, other = trained(whole), trained(less)
    changed = set()
    for name, value in one.state.items():
        for row in range(SPEC.teachers):
            if not torch.equal(value[row], other.state[name][row]):
                changed.add(row)
    parts = partition(whole, SPEC.teachers, b"k" * 32)
    owner = int(np.searchsorted(parts.bounds, np.flatnonzero(parts.order == place)[0], side="right")) - 1
    assert changed == {owner}
    asked = question(9)
    answers = [
        ensemble.scores_and_gradients(slice(0, SPEC.teachers), asked.x[None], asked.y[None])[1]
        for ensemble in (one, other)
    ]
    differs = [row for row in range(SPEC.teachers) if not torch.equal(answers[0][row], answers[1][row])]
    assert differs == [owner]


def test_critics_do_not_mix_and_chunks_do_not_matter() -> None:
    assert not teachers_mix(CRITIC)
    one, other = trained(records(), chunk=6), trained(records(), chunk=2)
    for name, value in one.state.items():
        assert torch.allclose(value.float(), other.state[name].float(), atol=1e-5), name


def test_who_learns_is_public_and_in_turn() -> None:
    assert trained(records(), ticks=0).moves.tolist() == [4] * 6  # the warm start: warm * warm_steps
    assert trained(records(), ticks=3).moves.tolist() == [8] * 6  # three blocks of four, two steps each
    assert trained(records(), ticks=1).moves.tolist() == [6, 6, 6, 6, 4, 4]


def test_the_loss_is_the_papers_where_records_and_fakes_have_the_same_labels() -> None:
    weights = CRITIC.start([1, 2])
    generator = torch.Generator().manual_seed(3)
    real = Batch(torch.rand((2, 4, 1, 8, 8), generator=generator), torch.zeros(2, 4).long(), torch.ones(2, 4))
    fake = Batch(-torch.rand((1, 4, 1, 8, 8), generator=generator), torch.zeros(1, 4).long(), torch.ones(1, 4))
    found = CRITIC.loss(weights, real, fake, torch.Generator().manual_seed(5))
    share = torch.rand((1, 4, 1, 1, 1), generator=torch.Generator().manual_seed(5))
    for row in range(2):
        single = {name: value[row : row + 1] for name, value in weights.items()}
        apart = critic_score(single, fake.x, fake.y).mean() - critic_score(single, real.x[row][None], real.y[:1]).mean()
        penalties = []
        for image in range(4):
            place = slice(image, image + 1)
            mid = (share[0, image] * real.x[row, place] + (1 - share[0, image]) * fake.x[0, place])[None]
            mid.requires_grad_(True)
            (slope,) = torch.autograd.grad(critic_score(single, mid, real.y[:1, place]).sum(), mid)
            penalties.append((slope.norm() - 1) ** 2)
        assert found[row].item() == pytest.approx((apart + 10 * torch.stack(penalties).mean()).item(), abs=1e-3)


def test_a_class_of_fakes_counts_for_as_much_as_among_the_records() -> None:
    x, y = torch.rand((1, 4, 1, 8, 8), generator=torch.Generator().manual_seed(3)), torch.tensor([[0, 0, 0, 1]])
    real, other = Batch(x, y, torch.ones(1, 4)), x.clone()
    other[0, 2:] = 0.5
    for labels, matters in (([0, 1, 2, 2], False), ([0, 1, 1, 1], True)):
        fakes = (Batch(-some, torch.tensor([labels]), torch.ones(1, 4)) for some in (x, other))
        critic = dataclasses.replace(
            CRITIC, penalty=1e-9
        )  # which looks between records and fakes whatever their labels
        one, two = (critic.loss(critic.start([1]), real, fake, torch.Generator().manual_seed(1)) for fake in fakes)
        assert torch.allclose(one, two, atol=1e-6) is not matters
    assert balanced(real, Batch(x, torch.tensor([[0, 1, 1, 2]]), torch.ones(1, 4)), 3).tolist() == [
        [3.0, 0.5, 0.5, 0.0]
    ]


def test_places_without_a_record_do_not_count() -> None:
    generator = torch.Generator().manual_seed(3)
    x, y = torch.rand((1, 4, 1, 8, 8), generator=generator), torch.zeros(1, 4).long()
    fake = Batch(-x, y, torch.ones(1, 4))
    weight = torch.tensor([[1.0, 1.0, 0.0, 0.0]])
    other = x.clone()
    other[:, 2:] = 0.5
    one, two = (
        CRITIC.loss(CRITIC.start([1]), Batch(some, y, weight), fake, torch.Generator().manual_seed(1))
        for some in (x, other)
    )
    assert torch.equal(one, two)


def test_the_warm_start_teaches_critics_and_leaves_no_generator_behind() -> None:
    cold = Ensemble(CRITIC, SPEC, SCHEMA, torch.device("cpu"))
    warm = trained(records(), ticks=0)
    assert set(warm.state) == set(cold.state)
    # The loss is a difference of scores, which the last bias does not move; a vector of one number is always 1.
    moving = set(warm.weights) - {"head.bias", "head.vector"}
    assert all(not torch.equal(warm.weights[name], cold.weights[name]) for name in moving)
    assert bool(warm.warmed.all()) and set(VECTORS) < set(warm.weights)


def test_a_throw_away_generator_learns_from_its_own_critic_alone() -> None:
    weights = CRITIC.start([1, 2])
    moved = {name: value.clone() for name, value in weights.items()}
    moved["conv2.weight"][1] = -moved["conv2.weight"][1]
    made = []
    for critics in (weights, moved):
        rivals = Rivals(CRITIC, 2, torch.device("cpu"))
        for step in range(2):
            fake = rivals.made(4, torch.Generator().manual_seed(step))
            rivals.move(-CRITIC.score(critics, fake.x, fake.y).mean(1))
        made.append(rivals.made(4, torch.Generator().manual_seed(7)).x)
    assert torch.equal(made[0][0], made[1][0]) and not torch.equal(made[0][1], made[1][1])


@pytest.mark.parametrize("wrong", [{"width": -1}, {"penalty": 0.0}, {"warm": -1}, {"warm_steps": 0}, {"latent": 0}])
def test_critics_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(BadInput):
        Critic(shape=(1, 8, 8), classes=2, **wrong)  # type: ignore[arg-type]
