"""Answers of teachers that went the whole way through a vault: bounds, noise, and who was drawn.

Seeds are fixed; where chance decides, the docstring says how often a seed drawn anew would fail.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats
from through import FALSE_ALARM, answers, assert_independent, assert_standard_normal, noise_of, plan_for
from tiny import MemorySource
from torch import Tensor

from limbeck.data.records import Records
from limbeck.errors import WallBreach
from limbeck.privacy.queries import TeacherGradient, TeacherVote
from limbeck.privacy.schema import Schema
from limbeck.vault.api import (
    BeliefVote,
    BinVote,
    CriticGradient,
    Discriminator,
    EnsembleSpec,
    LevelVote,
    Question,
    SignVote,
    SketchVote,
)
from limbeck.vault.ensemble.desk import Desk
from limbeck.vault.ensemble.kinds import QUESTIONS
from limbeck.vault.ensemble.votes import Vote
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.maps.bound import Bound
from limbeck.vault.noise import Randomness

TEACHERS = 6
TEACHER = Discriminator(shape=(1, 8, 8), classes=3, first=2, second=3, hidden=4)
SETTINGS: dict[type[Question], dict[str, Any]] = {
    SignVote: {"k": 10},
    SketchVote: {"k": 10, "rows": 3, "columns": 20, "sketch_seed": 1},
    LevelVote: {"c": 1e-5, "levels": 4, "reach": 2.0, "rotation_seed": 1},
    BeliefVote: {"threshold": math.log(0.5)},
    BinVote: {"kept": 5, "bins": 4, "c": 1e-3, "projection_seed": 1},
    CriticGradient: {},
}
VOTES = [kind for kind in SETTINGS if issubclass(kind, Vote)]
kinds_of_votes = pytest.mark.parametrize("kind", VOTES, ids=lambda kind: kind.kind)
# How far votes for bins may lie apart follows from their number; all others are cut.
cut_votes = pytest.mark.parametrize("kind", [kind for kind in VOTES if kind is not BinVote], ids=lambda kind: kind.kind)


def question(kind: type[Question], images: int, tick: int = 0, teachers: int = TEACHERS, alike: bool = False) -> Any:
    random = torch.Generator().manual_seed(100 + tick)
    x = torch.rand((1 if alike else images, 1, 8, 8), generator=random) * 2 - 1
    return kind(
        teacher=TEACHER,
        ensemble=EnsembleSpec(teachers=teachers, batch=4, seed=1),
        fakes=torch.rand((8, 1, 8, 8), generator=random) * 2 - 1,
        fake_labels=torch.arange(8) % 3,
        x=x.expand(images, 1, 8, 8).contiguous(),
        y=torch.zeros(images, dtype=torch.long) if alike else torch.arange(images) % 3,
        **SETTINGS[kind],
    )


def vote(kind: type[Question], **changed: Any) -> TeacherVote:
    values: dict[str, Any] = {"clip": 3.0, "noise_multiplier": 4.0, "teachers": TEACHERS, "count": 2}
    return TeacherVote(label="votes", map=kind.kind, **{**values, **changed})


def gradient(draws: int, **changed: Any) -> TeacherGradient:
    values: dict[str, Any] = {"clip": 0.02, "noise_multiplier": 4.0, "teachers": TEACHERS, "count": 2}
    return TeacherGradient(label="gradients", map="critic_gradient", draws=draws, **{**values, **changed})


@pytest.fixture
def held(schema: Schema, records: Records) -> MemorySource:
    return MemorySource(schema, records)


def test_every_question_is_tried_here() -> None:
    assert set(SETTINGS) == set(QUESTIONS.values())


# Bounds


@cut_votes
@pytest.mark.parametrize("clip", [0.5, 3.0])
def test_one_teachers_vote_has_half_of_the_clip(
    kind: type[Question], clip: float, held: MemorySource, tmp_path: Path
) -> None:
    """An ensemble of one, without noise: the whole answer is its vote, and however long, at most half of the clip is left of
    it. A teacher that turns round then moves the sum by the clip, and not by twice that."""
    query = vote(kind, clip=clip, noise_multiplier=0.0, teachers=1)
    given = answers(held, tmp_path, lambda _, tick: question(kind, 50, tick, teachers=1), query)["votes"]
    for answer in given:
        assert np.linalg.norm(answer) == pytest.approx(clip / 2, rel=1e-5)


@cut_votes
@pytest.mark.parametrize("length", [1e-3, 1.0, 1e30])
def test_two_votes_are_never_further_apart_than_the_clip(kind: type[Question], length: float) -> None:
    """The worst pair there is: opposite votes, of any length. Long ones reach the bound, so that none of it is wasted."""
    asked, clip = question(kind, 3), 5.0
    votes = torch.randn((1, 3, 64), generator=torch.Generator().manual_seed(1)) * length
    one, other = asked.bounded(torch.cat([votes, -votes]), Bound(clip)).double()
    assert (one - other).norm().item() <= clip
    if length >= 1:
        assert one.norm().item() == pytest.approx(clip / 2, rel=1e-5)


def test_two_votes_for_bins_are_never_further_apart_than_the_clip() -> None:
    votes, clip = torch.tensor([[[0] * 5] * 3, [[3] * 5] * 3]), math.sqrt(2 * 15)
    one, other = question(BinVote, 3).bounded(votes, Bound(clip)).double()
    assert (one - other).norm().item() == pytest.approx(clip, rel=1e-12)


@pytest.mark.parametrize("length", [1e30, 3e38])
def test_a_teacher_that_has_gone_wild_votes_for_some_bin(length: float) -> None:
    """A projection adds and subtracts: of huge numbers that is no number. Whether a vote can be had must not tell of a record."""
    asked = question(BinVote, 3)
    signs = torch.randn((2, 3, 64), generator=torch.Generator().manual_seed(1)).sign()
    votes = asked.votes(torch.zeros(2, 3), signs * length, torch.rand)
    assert votes.min() >= 0 and votes.max() < 4
    assert asked.bounded(votes, Bound(math.sqrt(2 * 15))).sum(1).tolist() == [15.0, 15.0]


@pytest.mark.parametrize("images", [1, 3])
def test_votes_for_bins_need_a_clip_of_the_root_of_twice_their_number(
    images: int, held: MemorySource, tmp_path: Path
) -> None:
    """All votes of a teacher may move to other bins: each leaves one number and enters another."""
    numbers = 5 * images
    asked = lambda _, tick: question(BinVote, images, tick)  # noqa: E731
    enough = vote(BinVote, clip=math.sqrt(2 * numbers), noise_multiplier=0.0, count=1)
    (answer,) = answers(held, tmp_path / "enough", asked, enough)["votes"]
    assert answer.sum() == TEACHERS * numbers
    for name, clip in (("hair", math.sqrt(2 * numbers) * (1 - 1e-6)), ("root", math.sqrt(numbers))):
        with pytest.raises(WallBreach, match="more than"):
            answers(held, tmp_path / name, asked, vote(BinVote, clip=clip, noise_multiplier=0.0))


@pytest.mark.parametrize("draws", [1, 4, 20])
def test_every_part_of_a_gradient_has_half_of_the_clip(draws: int, held: MemorySource, tmp_path: Path) -> None:
    """Without noise and with a clip far below the gradients: each part is cut by itself, to half of the clip."""
    query = gradient(draws, clip=1e-6, noise_multiplier=0.0)
    for answer in answers(held, tmp_path, lambda _, tick: question(CriticGradient, 20, tick), query)["gradients"]:
        norms = np.linalg.norm(answer.reshape(draws, -1), axis=1)
        assert norms == pytest.approx(np.full(draws, 5e-7), rel=1e-5)


# Noise


@kinds_of_votes
def test_votes_have_just_the_noise_that_was_paid_for(kind: type[Question], held: MemorySource, tmp_path: Path) -> None:
    """48,000 numbers or more: a scale that is off by 3 % is found. A seed drawn anew would fail with a chance of 2e-9 for each
    kind."""
    images = {BeliefVote: 24_000, BinVote: 1500}.get(kind, 400)
    query = vote(kind, clip=math.sqrt(2 * 5 * images))
    found = noise_of(held, tmp_path, lambda _, tick: question(kind, images, tick), query)["votes"]
    assert np.concatenate(found).size >= 48_000
    assert_standard_normal(np.concatenate(found))
    assert_independent(found)


@pytest.mark.parametrize("draws", [1, 100, 400])
def test_gradients_have_just_the_noise_that_was_paid_for(draws: int, held: MemorySource, tmp_path: Path) -> None:
    """51,200 numbers; parts and answers share none. A seed drawn anew would fail with a chance of 3e-9."""
    query = gradient(draws, clip=0.3)
    found = noise_of(held, tmp_path, lambda _, tick: question(CriticGradient, 400, tick), query)["gradients"]
    assert_standard_normal(np.concatenate(found))
    assert_independent(found)
    assert_independent(np.split(found[0], 20))


# Draws


def own_gradients(desk: Desk, x: Tensor, y: Tensor) -> NDArray[np.float64]:
    """(teachers, numbers): what each teacher would say to one image."""
    _, found = desk._ensemble.scores_and_gradients(slice(0, TEACHERS), x[None, :1], y[None, :1])
    return found.flatten(1).double().numpy()


@pytest.fixture
def drawn(held: MemorySource, tmp_path: Path) -> list[NDArray[np.int64]]:
    """Who was drawn, in eight answers of 300 parts each. All parts are one image, and each teacher says another thing to it."""
    query = gradient(300, clip=1e3, noise_multiplier=0.0, count=8)
    found = []
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        ledger.set_budget("tiny", math.inf, 0.5)
        vault = LocalVault(held, ledger, Randomness(21))
        grant = vault.grant(plan_for("tiny", query))
        for tick in range(query.count):
            asked = question(CriticGradient, 300, tick, alike=True)
            parts = vault.ask(grant, "gradients", tick, asked).values.astype(np.float64).reshape(300, -1)
            own = own_gradients(vault._desks[grant.id, "gradients"], asked.x, asked.y)
            apart = np.linalg.norm(parts[:, None] - own[None], axis=2)
            found.append(apart.argmin(1))
            others = np.linalg.norm(own[:, None] - own[None], axis=2) + np.diag([np.inf] * TEACHERS)
            assert apart.min(1).max() < 0.01 * others.min()
    return found


def test_every_part_has_a_teacher_of_its_own(drawn: list[NDArray[np.int64]]) -> None:
    """Teachers are drawn uniformly; so are pairs of neighbouring parts, of parts a half or a chunk apart, and of the same part
    in two answers. Chi-square tests of 2400 draws: a seed drawn anew would fail with a chance of 1e-9 for each of eight."""
    whole = np.concatenate(drawn)
    assert all(len(set(answer.tolist())) == TEACHERS for answer in drawn)
    assert stats.chisquare(np.bincount(whole, minlength=TEACHERS)).pvalue > FALSE_ALARM
    pairs = [(whole[:-lag], whole[lag:]) for lag in (1, 2, 64, 150, 300, 600)]
    pairs.append((whole[::2], whole[1::2]))
    for one, other in pairs:
        assert stats.chisquare(np.bincount(one * TEACHERS + other, minlength=TEACHERS**2)).pvalue > FALSE_ALARM


def test_secret_draws_are_not_those_of_the_run_before(held: MemorySource, tmp_path: Path) -> None:
    """Keys of the operating system: 60 draws of two runs agree with a chance of 6^-60."""
    found = []
    for name in ("one", "two"):
        query = gradient(60, clip=1e3, noise_multiplier=0.0, count=1)
        asked = lambda _, tick: question(CriticGradient, 60, tick, alike=True)  # noqa: E731
        (answer,) = answers(held, tmp_path / name, asked, query, seed=None)["gradients"]
        rows = answer.reshape(60, -1)
        found.append([int(np.flatnonzero((rows == row).all(1))[0]) for row in rows])  # who agrees with whom
    assert found[0] != found[1]
    assert all(len(set(pattern)) > 1 for pattern in found)


@pytest.mark.parametrize("bins", [4, 2**25])
def test_no_gradient_is_beyond_all_bins(bins: int) -> None:
    """Whether an answer fails must not depend on what teachers have learned: whoever asks would see that for nothing."""
    asked = question(BinVote, 1)
    object.__setattr__(asked, "bins", bins)
    huge = torch.full((1, 1, 64), 3e38)
    crossed = huge * torch.tensor([1.0, -1.0]).repeat(32)
    # Which numbers overflow first depends on the processor; infinities of both signs are no number on any.
    endless = crossed * torch.inf
    assert not asked.projection()(crossed).isfinite().all() and asked.projection()(endless).isnan().all()
    for gradients in (huge, -huge, crossed, endless, torch.zeros_like(huge)):
        votes = asked.votes(torch.zeros(1, 1), gradients, torch.zeros)
        assert votes.min() >= 0 and votes.max() < bins


@pytest.mark.parametrize(
    ("field", "dtype"),
    [
        ("x", torch.float64),
        ("fakes", torch.int64),
        ("y", torch.float32),
        ("y", torch.bool),
        ("fake_labels", torch.int32),
    ],
)
def test_records_of_another_type_are_refused_before_anybody_learns(
    field: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    schema = Schema(name="tiny", shape=(1, 8, 8), classes=("a", "b", "c"), records=60, low=0, high=1)
    source = MemorySource(schema, Records(np.zeros((60, 1, 8, 8), dtype=np.float32), np.arange(60) % 3))
    asked = question(SignVote, 3)
    object.__setattr__(asked, field, getattr(asked, field).to(dtype))
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        ledger.set_budget("tiny", 100.0, 0.01)
        vault = LocalVault(source, ledger)
        grant = vault.grant(plan_for("tiny", vote(SignVote)))
        with pytest.raises(WallBreach, match="labels of"):
            vault.ask(grant, "votes", 0, asked)
    assert not source.loads
