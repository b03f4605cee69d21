"""How a choice is made: draws that are exact, scores that no unit moves by more than the clip, records of any content."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from limbeck.data.records import Records
from limbeck.errors import BadInput
from limbeck.privacy.queries import Choice
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Cells, Cut, MarginalErrors, Randomness
from limbeck.vault.choices.chooser import Chooser
from limbeck.vault.choices.exponential import Uniform, drawn
from limbeck.vault.choices.scores import ONE

SCHEMA = Schema(name="pairs", shape=(2,), classes=("a", "b"), records=40, low=-1.0, high=1.0)
HALVES = tuple(Cut(start=start, numbers=1, edges=torch.zeros(1, dtype=torch.float64)) for start in (0, 1))
EVERY = Cells(cuts=HALVES, tuples=((0,), (1,), (0, 1), (1, 2)), classes=2)
DOUBLE = torch.float64


class Fixed:
    """Words that are written down."""

    def __init__(self, *words: int) -> None:
        self._words = list(words)

    def integers(self, count: int) -> np.ndarray:
        taken, self._words = self._words[:count], self._words[count:]
        return np.array(taken + [0] * (count - len(taken)), dtype=np.uint64)


def errors(cells: Cells = EVERY, weights: float = 1.0, penalty: float = 0.0, estimate: float = 3.25) -> MarginalErrors:
    count = len(cells.tuples)
    return MarginalErrors(
        cells=cells,
        estimates=torch.full((cells.width,), estimate, dtype=DOUBLE),
        weights=torch.full((count,), weights, dtype=DOUBLE),
        penalties=torch.full((count,), penalty, dtype=DOUBLE),
    )


def query(noise: float = 1.0, clip: float = 1.0) -> Choice:
    return Choice(label="choice", map="marginal_errors", clip=clip, noise_multiplier=noise)


# The draw


@pytest.mark.parametrize(
    ("scores", "scale"),
    [
        ([0, 0], Fraction(1)),
        ([3, 1, 2], Fraction(2)),
        ([10**12, 10**12 + 5, 10**12 - 7], Fraction(10, 3)),
        ([0, -(10**30)], Fraction(7)),
    ],
)
def test_every_candidate_gets_just_its_share_of_the_unit_interval(scores: list[int], scale: Fraction) -> None:
    """The uniform number goes once through an even grid, so counts are the chances up to one."""
    fine = 1 << 11
    counts = Counter(drawn(scores, scale, Uniform(Fixed((2 * k + 1) << 52, 0, 0, 0))) for k in range(fine))
    weights = np.exp(np.array([float((score - max(scores)) / scale) for score in scores]))
    for place, chance in enumerate(weights / weights.sum()):
        assert abs(counts[place] - fine * chance) <= 1.0


@pytest.mark.parametrize(
    ("words", "place"), [((2**63, 0, 0, 0, 0, 1), 1), ((2**63 - 1, *[2**64 - 1] * 3, 2**64 - 2), 0)]
)
def test_a_number_too_close_to_an_end_gets_more_bits(words: tuple[int, ...], place: int) -> None:
    uniform = Uniform(Fixed(*words))
    assert drawn([5, 5], Fraction(3, 7), uniform) == place and uniform.bits > 256


def test_without_noise_the_first_of_the_highest_is_taken() -> None:
    assert drawn([1, 4, 4], Fraction(0), Uniform(Fixed())) == 1


# The scores


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(0, 10**9), min_size=EVERY.width, max_size=EVERY.width),
    cells=st.tuples(*(st.integers(0, size - 1) for size in EVERY.sizes)),
    weights=st.lists(st.floats(1e-6, 1.0), min_size=4, max_size=4),
    worth=st.integers(0, 3 * ONE),
    noise=st.sampled_from([0.06, 1.0, 1e4]),
    clip=st.sampled_from([1.0, 3.0, 0.37]),
)
def test_a_unit_moves_no_score_by_more_than_its_worth(
    counts: list[int], cells: tuple[int, ...], weights: list[float], worth: int, noise: float, clip: float
) -> None:
    asked = MarginalErrors(
        cells=EVERY,
        estimates=torch.linspace(0, 9e8, EVERY.width, dtype=DOUBLE),
        weights=torch.tensor(weights, dtype=DOUBLE),
        penalties=torch.linspace(-5, 1e6, 4, dtype=DOUBLE),
    )
    step = Fraction(query(noise, clip).step)
    before = np.array(counts, dtype=np.int64) * ONE
    after = before.copy()
    for cell, size, end in zip(cells, EVERY.sizes, np.cumsum(EVERY.sizes), strict=True):
        after[end - size + cell] += worth
    moves = [abs(a - b) for a, b in zip(asked.in_steps(before, step), asked.in_steps(after, step), strict=True)]
    assert all(move <= Fraction(weight) * worth / ONE / step for move, weight in zip(moves, weights, strict=True))


def test_scores_are_what_they_say() -> None:
    counts = np.arange(EVERY.width, dtype=np.int64) * ONE
    step = Fraction(query().step)
    expected, begin = [], 0
    for size in EVERY.sizes:
        expected.append(0.5 * (np.abs(np.arange(begin, begin + size) - 3.25).sum() - 2.0))
        begin += size
    found = [float(score * step) for score in errors(weights=0.5, penalty=2.0).in_steps(counts, step)]
    assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("estimates", [math.nan] * EVERY.width), ("estimates", [0.0]), ("estimates", [1e12] * EVERY.width),
        ("weights", [1.0, 1.0, 1.0, 1.0001]), ("weights", [1.0, 0.0, 1.0, 1.0]), ("weights", [1.0, -1.0, 1.0, 1.0]),
        ("penalties", [math.inf, 0, 0, 0]), ("penalties", [1e13, 0, 0, 0]),
    ],
)  # fmt: skip
def test_numbers_that_cannot_be_compared_are_refused(name: str, values: list[float]) -> None:
    kept = {key: getattr(errors(), key) for key in ("estimates", "weights", "penalties")}
    with pytest.raises(BadInput):
        MarginalErrors(cells=EVERY, **{**kept, name: torch.tensor(values, dtype=DOUBLE)})


def test_other_numbers_are_another_question() -> None:
    other = (errors(weights=0.5), errors(penalty=1.0), errors(estimate=3.0), errors(Cells(cuts=HALVES, tuples=((0,),))))
    assert len({asked.digest() for asked in (errors(), *other)}) == 5


# The records


def records(count: int = 40, units: list[int] | None = None) -> Records:
    random = np.random.default_rng(1)
    x, y = random.uniform(-1, 1, (count, 2)).astype(np.float32), random.integers(0, 2, count)
    return Records(x, y, units=None if units is None else np.array(units))


def counts_of(held: Records, clip: float = 1.0, schema: Schema = SCHEMA) -> np.ndarray:
    chooser = Chooser(schema, torch.device("cpu"))
    return chooser._counts(query(clip=clip), errors(), held, Randomness(insecure_seed=1).stream("coins", 0))


def test_records_are_counted_once_whatever_they_hold() -> None:
    held = records()
    held.x[0], held.x[1], held.x[2] = np.nan, np.inf, -1e30
    found = counts_of(held)
    assert found.sum() == 4 * 40 * ONE
    for gone in range(5):
        left = [index for index in range(40) if index != gone]
        moved = np.abs(found - counts_of(Records(held.x[left], held.y[left])))
        assert moved.sum() == 4 * ONE and moved.max() == ONE
    assert (counts_of(records(), clip=0.25) * 4 == counts_of(records())).all()


@pytest.mark.parametrize("limit", [None, 4])
def test_a_person_counts_for_no_more_than_the_clip(limit: int | None) -> None:
    schema = Schema(
        name="pairs", shape=(2,), classes=("a", "b"), records=40, low=-1.0, high=1.0, unit="who", units=10,
        unit_records=limit,
    )  # fmt: skip
    clip = 2.0 if limit else 1.0
    units = [0] * 25 + [1] * 4 + [2] * 2 + list(range(3, 12))
    found = counts_of(records(units=units), clip, schema)
    for person, most in ((0, clip), (1, clip), (2, min(2.0, clip)), (5, 1.0)):
        left = [index for index, unit in enumerate(units) if unit != person]
        held = records(units=units)
        moved = np.abs(found - counts_of(Records(held.x[left], held.y[left], units=held.units[left]), clip, schema))
        for part in np.split(moved, np.cumsum(EVERY.sizes)[:-1]):
            assert most * ONE * 0.95 < part.sum() <= most * ONE


def test_neighbours_are_told_apart_by_just_what_was_paid_for() -> None:
    """The worst neighbour: a record that one score gains by, and the other one loses by. The log odds move by 2 / noise."""
    cells = Cells(cuts=HALVES, tuples=((0,), (1,)))
    asked = MarginalErrors(
        cells=cells,
        estimates=torch.tensor([0.0, 0, 30, 30], dtype=DOUBLE),
        weights=torch.ones(2, dtype=DOUBLE),
        penalties=torch.tensor([20.0, 40], dtype=DOUBLE),
    )
    x = np.full((20, 2), 0.5, dtype=np.float32)
    chooser, draws, odds = Chooser(SCHEMA, torch.device("cpu")), 1500, []
    for held in (Records(x, np.zeros(20, dtype=np.int64)), Records(x[1:], np.zeros(19, dtype=np.int64))):
        streams = (
            (Randomness(insecure_seed=4).stream(kind, len(held.y) * 10_000 + i) for kind in "cn") for i in range(draws)
        )
        firsts = sum(chooser.chosen(query(2.0), asked, held, *pair)[0, 0] == 0 for pair in streams)
        odds.append(math.log(firsts / (draws - firsts)))
    spread = 2 * math.sqrt(2 / draws) * 1.2
    assert abs(odds[0] - odds[1] - 2 / 2.0) < 4.5 * spread < 0.5  # twice the epsilon, or half of it, is further off
