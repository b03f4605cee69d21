"""Teachers in the vault: one record reaches one teacher, a vote moves the sum by its bound, and nothing of a teacher gets out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import DELTA, MemorySource
from torch import Tensor

from limbeck.data.records import Records
from limbeck.errors import BadInput, RunConflict, WallBreach
from limbeck.privacy.accounting import price
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import TeacherGradient, TeacherVote, query_from_dict
from limbeck.privacy.schema import Schema
from limbeck.vault.api import (
    BeliefVote,
    BinVote,
    CriticGradient,
    Discriminator,
    EnsembleSpec,
    Grant,
    LevelVote,
    Question,
    SignVote,
    SketchVote,
)
from limbeck.vault.ensemble.desk import drawn_gradients, vote_sum
from limbeck.vault.ensemble.ensemble import Ensemble, teachers_mix
from limbeck.vault.ensemble.kinds import TEACHERS
from limbeck.vault.ensemble.partition import check_ensemble, partition
from limbeck.vault.ensemble.teachers import Batch, Weights
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.maps.bound import Bound
from limbeck.vault.noise import Randomness, drawn_noise, with_noise

KEY = b"k" * 32
TEACHERS_HELD, IMAGES, TICKS = 12, 3, 4
SPEC = EnsembleSpec(teachers=TEACHERS_HELD, batch=4, steps=2, first=3, seed=1)
TEACHER = Discriminator(shape=(1, 8, 8), classes=3, first=2, second=3, hidden=4)
COMMON: dict[str, Any] = {"teacher": TEACHER, "ensemble": SPEC}
KINDS: dict[type[Question], tuple[dict[str, Any], float]] = {
    SignVote: ({"k": 10}, 2 * math.sqrt(10 * IMAGES)),
    SketchVote: ({"k": 10, "rows": 3, "columns": 20, "sketch_seed": 1}, 2 * math.sqrt(3 * 10 * IMAGES)),
    LevelVote: ({"c": 1e-5, "levels": 4, "reach": 2.0, "rotation_seed": 1}, 2 * 3 * math.sqrt(64 * IMAGES)),
    BeliefVote: ({"threshold": math.log(0.5)}, math.sqrt(IMAGES)),
    BinVote: ({"kept": 5, "bins": 4, "c": 1e-3, "projection_seed": 1}, math.sqrt(2 * 5 * IMAGES)),
}


def question(kind: type[Question] = SignVote, tick: int = 0, **changed: Any) -> Any:
    random = torch.Generator().manual_seed(100 + tick)
    batches = {
        "fakes": torch.rand((8, 1, 8, 8), generator=random) * 2 - 1,
        "fake_labels": torch.randint(0, 3, (8,), generator=random),
        "x": torch.rand((IMAGES, 1, 8, 8), generator=random) * 2 - 1,
        "y": torch.randint(0, 3, (IMAGES,), generator=random),
    }
    extra = KINDS[kind][0] if kind in KINDS else {}
    return kind(**{**COMMON, **batches, **extra, **changed})


def query_for(kind: type[Question] = SignVote, **changed: Any) -> TeacherVote:
    values: dict[str, Any] = {"label": "votes", "map": kind.kind, "clip": KINDS[kind][1], "noise_multiplier": 5.0}
    return TeacherVote(**{**values, "teachers": TEACHERS_HELD, "count": TICKS, **changed})


def with_one_more(records: Records, at: int = 60) -> Records:
    """A neighbour: one more record, in the middle of the file."""
    extra = np.full((1, 1, 8, 8), 3.0, np.float32)
    return Records(np.insert(records.x, at, extra, axis=0), np.insert(records.y, at, 2))


def grown(records: Records, schema: Schema, spec: EnsembleSpec = SPEC, ticks: int = TICKS) -> Ensemble:
    ensemble = Ensemble(TEACHER, spec, schema, torch.device("cpu"), chunk=5)
    ensemble.assign_records(records, partition(records, spec.teachers, KEY))
    for tick in range(ticks):
        ensemble.learn(question(tick=tick, ensemble=spec))
    return ensemble


def changed_rows(one: Ensemble, other: Ensemble) -> set[int]:
    """Teachers whose weights or moments differ in any bit."""
    pairs = zip(one.state.items(), other.state.values(), strict=True)
    return {
        row
        for (name, before), after in pairs
        for row in range(one.spec.teachers)
        if not torch.equal(before[row], after[row])
    }


# One record, one teacher


def test_a_records_part_depends_on_the_record_alone(records: Records) -> None:
    parts = partition(records, 7, KEY)
    shuffled = np.random.default_rng(1).permutation(len(records))
    moved = partition(Records(records.x[shuffled], records.y[shuffled]), 7, KEY)
    for row in range(7):
        here = parts.order[parts.bounds[row] : parts.bounds[row + 1]]
        there = shuffled[moved.order[moved.bounds[row] : moved.bounds[row + 1]]]
        assert here.tolist() == there.tolist()
    assert sorted(parts.order.tolist()) == list(range(len(records))) and len(parts.bounds) == 8


def test_copies_share_a_teacher_and_another_key_shares_out_otherwise(records: Records) -> None:
    twice = partition(Records(np.concatenate([records.x] * 2), np.concatenate([records.y] * 2)), 7, KEY)
    assert (np.diff(twice.bounds) == 2 * np.diff(partition(records, 7, KEY).bounds)).all()
    other = partition(records, 7, b"o" * 32)
    assert not np.array_equal(other.bounds, partition(records, 7, KEY).bounds)


@pytest.mark.parametrize("block", [None, 5])
def test_one_record_changes_one_teacher_bit_for_bit(records: Records, schema: Schema, block: int | None) -> None:
    spec = replace(SPEC, block=block)
    one, other = grown(records, schema, spec), grown(with_one_more(records), schema, spec)
    sizes = [np.diff(partition(held, TEACHERS_HELD, KEY).bounds) for held in (records, with_one_more(records))]
    (expected,) = np.flatnonzero(sizes[1] - sizes[0])
    assert changed_rows(one, other) == {int(expected)}


def test_the_whole_vault_changes_one_teacher_only(records: Records, schema: Schema, tmp_path: Path) -> None:
    """From the records to the answers, with the vault's own key: neighbours are asked the same questions."""
    held = {}
    for name, chosen in (("one", records), ("other", with_one_more(records))):
        (tmp_path / name).mkdir()
        with Ledger.open(tmp_path / name / "ledger.sqlite") as ledger:
            vault = LocalVault(MemorySource(schema, chosen), ledger, Randomness(3))
            grant = vault.grant(plan_of(query_for()))
            answers = [vault.ask(grant, "votes", tick, question(tick=tick)).values for tick in range(TICKS)]
            held[name] = (vault._desks[grant.id, "votes"]._ensemble, answers)
    assert len(changed_rows(held["one"][0], held["other"][0])) == 1
    for one, other in zip(held["one"][1], held["other"][1], strict=True):
        # The same seed draws the same noise, so the answers are as far apart as the sums.
        assert np.linalg.norm(one.astype(np.float64) - other) <= KINDS[SignVote][1] * (1 + 1e-5)


def plan_of(*queries: TeacherVote | TeacherGradient) -> Plan:
    return Plan(dataset="tiny", method="datalens", settings={}, queries=queries, price=price(queries, DELTA))


# The sum of votes


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_a_neighbour_moves_the_sum_of_votes_by_its_bound_at_most(
    records: Records, schema: Schema, kind: type[Question]
) -> None:
    asked, query = question(kind), query_for(kind)
    sums = [
        vote_sum(grown(held, schema), asked, query, Randomness(5).stream("v", 0))
        for held in (records, with_one_more(records))
    ]
    moved = np.linalg.norm(sums[0] - sums[1]) * query.step
    assert np.linalg.norm(sums[0]) > 0 and moved <= query.clip * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
@pytest.mark.parametrize("wild", [1e30, math.nan, math.inf, 0.0])
def test_a_teacher_gone_wild_moves_the_sum_by_its_bound_at_most(
    records: Records, schema: Schema, kind: type[Question], wild: float
) -> None:
    """The worst that any data could do to one teacher, and more."""
    ensemble, asked, query = grown(records, schema, ticks=1), question(kind), query_for(kind)
    before = vote_sum(ensemble, asked, query, Randomness(5).stream("v", 0))
    for value in ensemble.weights.values():
        value[3] = -value[3] * wild
    after = vote_sum(ensemble, asked, query, Randomness(5).stream("v", 0))
    assert np.isfinite(after).all() and np.linalg.norm(after - before) * query.step <= query.clip * (1 + 1e-9)


def test_flipped_votes_reach_the_bound() -> None:
    """2 sqrt(k) for each image is not only an upper bound: a teacher that votes the other way moves the sum by just that."""
    gradients = torch.randn(1, IMAGES, 64, generator=torch.Generator().manual_seed(0))
    asked, clip = question(c=1e-9), KINDS[SignVote][1]
    sure = lambda shape: torch.full(shape, 0.5)  # noqa: E731  every sign is its likelier one
    for_it, against = (asked.bounded(asked.votes(None, g, sure), Bound(clip)) for g in (gradients, -gradients))
    assert (for_it - against).norm().item() == pytest.approx(clip, rel=1e-5)
    assert (asked.votes(None, gradients, sure) != 0).sum(-1).tolist() == [[10] * IMAGES]


def test_stochastic_signs_are_unbiased() -> None:
    gradients = torch.linspace(-1, 1, 9).repeat(4000, 1, 1)
    asked = question(k=9, c=1.0)
    random = torch.Generator().manual_seed(1)
    votes = asked.votes(None, gradients, lambda shape: torch.rand(shape, generator=random))
    assert torch.allclose(votes.mean((0, 1)), torch.linspace(-1, 1, 9), atol=0.06)


def test_too_small_a_clip_for_votes_on_bins_is_refused(records: Records, schema: Schema) -> None:
    small = query_for(BinVote, clip=1.0)
    with pytest.raises(WallBreach, match="more than 1"):
        vote_sum(grown(records, schema, ticks=1), question(BinVote), small, Randomness(5).stream("v", 0))


# Secret draws


def gradient_query(draws: int, clip: float = 0.02) -> TeacherGradient:
    values: dict[str, Any] = {"label": "g", "map": "critic_gradient", "noise_multiplier": 1.0, "count": TICKS}
    return TeacherGradient(**values, clip=clip, teachers=TEACHERS_HELD, draws=draws)


@pytest.mark.parametrize("draws", [1, IMAGES])
def test_every_part_is_clipped_and_comes_from_a_teacher_of_its_own(
    records: Records, schema: Schema, draws: int
) -> None:
    ensemble, asked = grown(records, schema, ticks=1), question(CriticGradient)
    answered, drawn = [], set()
    for place in range(30):
        parts = drawn_gradients(ensemble, asked, gradient_query(draws), Randomness(place).stream("g", 0))
        assert (np.linalg.norm(parts.reshape(draws, -1), axis=1) * gradient_query(draws).step <= 0.01).all()
        answered.append(parts.reshape(IMAGES, -1)[0])
    wide = gradient_query(draws, clip=1e3)
    loose = drawn_gradients(ensemble, asked, wide, Randomness(0).stream("g", 0)) * wide.step
    rows = range(TEACHERS_HELD)
    own = [ensemble.scores_and_gradients(slice(row, row + 1), asked.x[None], asked.y[None])[1] for row in rows]
    for image in range(IMAGES):
        near = [np.abs(loose.reshape(IMAGES, -1)[image] - own[row][0, image].flatten().numpy()).max() for row in rows]
        drawn.add(int(np.argmin(near)))
        assert min(near) < 1e-3 * np.abs(loose).max()
    assert len({part.tobytes() for part in answered}) > 5
    assert draws > 1 or len(drawn) == 1


def test_draws_are_uniform() -> None:
    stream = Randomness(1).stream("g", 0)
    counts = np.bincount((stream.integers(24_000) % np.uint64(12)).astype(np.int64), minlength=12)
    assert counts.min() > 1800 and counts.max() < 2200


# Learning


def test_all_of_a_block_learn_equally_often_whoever_is_asked(records: Records, schema: Schema) -> None:
    spec = replace(SPEC, block=5)
    ensemble = grown(records, schema, spec, ticks=3)
    expected = np.zeros(TEACHERS_HELD, int)
    for tick in range(3):
        expected[list(spec.block_at(tick))] += spec.steps_at(tick)
    assert ensemble.moves.tolist() == expected.tolist() == [5] * 3 + [3] * 2 + [2] * 7
    before = {name: value.clone() for name, value in ensemble.state.items()}
    drawn_gradients(ensemble, question(CriticGradient), gradient_query(1), Randomness(1).stream("g", 0))
    vote_sum(ensemble, question(), query_for(), Randomness(1).stream("v", 0))
    assert all(torch.equal(before[name], value) for name, value in ensemble.state.items())


def test_chunks_do_not_change_what_is_learned(records: Records, schema: Schema) -> None:
    one = grown(records, schema, ticks=2)
    whole = Ensemble(TEACHER, SPEC, schema, torch.device("cpu"), chunk=TEACHERS_HELD)
    whole.assign_records(records, partition(records, TEACHERS_HELD, KEY))
    for tick in range(2):
        whole.learn(question(tick=tick))
    for name, value in one.weights.items():
        assert torch.allclose(value, whole.weights[name], atol=2e-3), name


def test_an_empty_part_and_a_class_that_is_missing_are_no_error(records: Records, schema: Schema) -> None:
    few = Records(records.x[:4], records.y[:4])  # of one class, for twelve teachers
    ensemble = grown(few, schema)
    empty = int(np.flatnonzero(np.diff(partition(few, TEACHERS_HELD, KEY).bounds) == 0)[0])
    assert all(bool(torch.isfinite(value).all()) for value in ensemble.weights.values())
    nobody = grown(Records(records.x[:0], records.y[:0]), schema)
    # A teacher without records is what it is with no records at all anywhere: nothing of the others reached it.
    assert all(torch.equal(value[empty], nobody.weights[name][empty]) for name, value in ensemble.weights.items())
    assert np.isfinite(vote_sum(nobody, question(), query_for(), Randomness(1).stream("v", 0))).all()


def test_poisoned_records_stay_with_their_teacher(records: Records, schema: Schema) -> None:
    poisoned = Records(np.concatenate([records.x, np.full((1, 1, 8, 8), np.nan, np.float32)]), np.append(records.y, 0))
    assert len(changed_rows(grown(records, schema), grown(poisoned, schema))) == 1


@dataclass(frozen=True, kw_only=True)
class Mixing(Discriminator):
    """Takes the mean over teachers away: what batch norm over a stack would do."""

    def loss(self, weights: Weights, real: Batch, fake: Batch, random: torch.Generator) -> Tensor:
        loss = super().loss(weights, real, fake, random)
        return loss * loss.detach().mean()


def test_teachers_that_mix_are_found(schema: Schema) -> None:
    assert not teachers_mix(TEACHER)
    assert teachers_mix(Mixing(shape=(1, 8, 8), classes=3, first=2, second=3, hidden=4))


@pytest.mark.parametrize("name", sorted(TEACHERS))
def test_no_kind_of_teacher_mixes(name: str) -> None:
    small: dict[str, dict[str, Any]] = {"discriminator": {"first": 2, "second": 3, "hidden": 4}, "critic": {"width": 2}}
    assert not teachers_mix(TEACHERS[name](shape=(1, 28, 28), classes=3, **small.get(name, {})))


# The wall


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda q: replace(q, ensemble=replace(SPEC, teachers=24)), "booked with 12 teachers"),
        (lambda q: replace(q, teacher=replace(TEACHER, classes=4)), "made for other records"),
        (lambda q: replace(q, x=q.x[:, :, :7]), "wrong form"),
        (lambda q: replace(q, fake_labels=q.fake_labels + 3), "outside of the 3 classes"),
        (lambda q: question(BeliefVote), "booked with the map 'sign_vote'"),
        (lambda q: replace(q, teacher=Mixing(shape=(1, 8, 8), classes=3)), "no teacher of the kind|learn from"),
    ],
)
def test_questions_that_were_not_paid_for_are_refused(
    vault: LocalVault, ledger: Ledger, change: Callable[[Any], Any], sentence: str
) -> None:
    grant = vault.grant(plan_of(query_for()))
    with pytest.raises(WallBreach, match=sentence):
        vault.ask(grant, "votes", 0, change(question()))
    assert ledger.drawn(grant.id) == {"votes": 0}


def test_a_tick_out_of_turn_is_refused(vault: LocalVault) -> None:
    grant = vault.grant(plan_of(query_for()))
    with pytest.raises(RunConflict, match="stand at tick 0"):
        vault.ask(grant, "votes", 2, question(tick=2))
    vault.ask(grant, "votes", 0, question())
    with pytest.raises(WallBreach, match="other teachers"):
        vault.ask(grant, "votes", 1, question(tick=1, teacher=replace(TEACHER, eta=0.1)))


def test_images_that_cannot_be_shared_out_are_refused(vault: LocalVault) -> None:
    grant = vault.grant(plan_of(gradient_query(draws=2)))
    with pytest.raises(WallBreach, match="3 images cannot be shared out into 2"):
        vault.ask(grant, "g", 0, question(CriticGradient))


@pytest.mark.parametrize(("teachers", "sentence"), [(121, "more than the 120 records"), (60, "2.0 records of 'tiny'")])
def test_ensembles_that_are_too_large_are_refused_by_public_numbers(
    schema: Schema, teachers: int, sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        check_ensemble(EnsembleSpec(teachers=teachers, batch=1), schema)


@pytest.mark.parametrize(
    "wrong", [{"teachers": 0}, {"batch": 0}, {"steps": 0}, {"first": 0}, {"block": 13}, {"block": 0}]
)
def test_ensembles_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(BadInput):
        replace(SPEC, **wrong)


def test_a_vote_that_was_not_noised_has_no_price_and_a_query_survives_the_trip() -> None:
    assert math.isinf(price([query_for(noise_multiplier=0.0)], DELTA).epsilon)
    for query in (query_for(), gradient_query(2)):
        assert query_from_dict(query.to_dict()) == query
        with pytest.raises(BadInput, match="Unknown query fields"):
            query_from_dict({**query.to_dict(), "rate": [0.1]})
    for wrong in ({"clip": 0.0}, {"clip": math.inf}, {"teachers": 0}, {"count": 0}, {"noise_multiplier": -1.0}):
        with pytest.raises(BadInput):
            query_for(**wrong)


def test_the_answer_has_the_noise_that_was_paid_for(vault: LocalVault) -> None:
    grant, asked = vault.grant(plan_of(query_for(noise_multiplier=50.0))), question()
    vault.ask(grant, "votes", 0, asked)
    desk = vault._desks[grant.id, "votes"]
    query = query_for(noise_multiplier=50.0)

    def noised(seed: int) -> np.ndarray:
        stream = Randomness(seed).stream("v", 0)
        total = desk.answered(asked, stream)
        return with_noise(query, total, drawn_noise(query, total.shape, stream))

    spread = np.stack([noised(seed) for seed in range(25)]).std(0, ddof=1)
    assert np.sqrt(np.mean(spread**2)) == pytest.approx(50 * KINDS[SignVote][1], rel=0.05)


def test_a_stored_answer_is_not_asked_for_with_another_plan(vault: LocalVault, ledger: Ledger) -> None:
    """A plan without noise, under the name of one that was paid for: teachers made for it would answer without noise later on."""
    paid = plan_of(query_for(noise_multiplier=50.0))
    grant = vault.grant(paid)
    vault.ask(grant, "votes", 0, question())
    vault._desks.clear()  # as after a restart
    forged = Grant(grant.id, plan_of(query_for(noise_multiplier=1.0)))
    with pytest.raises(WallBreach, match="another plan"):
        vault.ask(forged, "votes", 0, question())
    assert not vault._desks
