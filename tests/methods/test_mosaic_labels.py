"""Mosaic's model of the label and its rows: terms that stray as far as was measured, and rows that add up in pairs of cells."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from limbeck.methods.mosaic import even
from limbeck.methods.mosaic.even import even_cells
from limbeck.methods.mosaic.labels import LabelModel, Rows, fitted, likeliest
from limbeck.methods.mosaic.measured import Measured, as_matrix
from limbeck.methods.mosaic.mixture import Mixture

SIZES = (8, 3, 4)
STARTS = np.array([0, 8, 11])
RECORDS = 8000


def table(classes: int, both: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Cells of three columns, and labels that go by the first, smoothly, and by the second alone; or by both together."""
    random = np.random.default_rng(4)
    cells = np.stack([random.integers(0, size, RECORDS) for size in SIZES], axis=1)
    push = 0.5 * (cells[:, :1] - 3.5) * np.linspace(-1, 1, classes) + (cells[:, 1:2] == 1) * (np.arange(classes) == 0)
    if both:
        push = 3.0 * ((cells[:, :1] > 3) ^ (cells[:, 1:2] == 1)) * np.linspace(-1, 1, classes)
    gumbel = random.gumbel(size=(RECORDS, classes))
    return cells, (push + gumbel).argmax(1)


def measured(cells: np.ndarray, labels: np.ndarray, classes: int, noise: float) -> Measured:
    random = torch.Generator().manual_seed(3)
    hot = torch.zeros(len(cells), sum(SIZES)).scatter_(1, torch.from_numpy(cells + STARTS), 1.0)
    by_class = [hot[torch.from_numpy(labels == label)] for label in range(classes)]
    single = torch.stack([part.sum(0) for part in by_class])
    starts = [*STARTS.tolist(), sum(SIZES)]
    blocks = [slice(*pair) for pair in itertools.pairwise(starts)]
    pairs = torch.stack(
        [
            torch.cat([(part[:, one].T @ part[:, two]).flatten() for one, two in itertools.combinations(blocks, 2)])
            for part in by_class
        ]
    )
    single, pairs = (each + noise * torch.randn(each.shape, generator=random) for each in (single, pairs))
    precision = as_matrix(torch.full((1, pairs.shape[1]), (RECORDS / noise) ** 2), SIZES)[0]
    variance = torch.full((sum(SIZES),), (noise / RECORDS) ** 2)
    return Measured(SIZES, single / RECORDS, variance, as_matrix(pairs / RECORDS, SIZES), precision)


def rows(cells: np.ndarray, opinions: np.ndarray) -> Rows:
    return Rows(cells, opinions, (8, 0, 0))


@pytest.mark.parametrize("classes", [2, 3])
def test_a_model_of_the_label_finds_what_it_goes_by_and_nothing_else(classes: int) -> None:
    cells, labels = table(classes)
    found = fitted(measured(cells, labels, classes, 12.0), rows(cells, np.zeros((RECORDS, classes))), RECORDS)
    assert found.opinion == 0
    odds = found.terms[:, -1] - found.terms[:, 0]
    assert (odds[7] - odds[0]) / 7 == pytest.approx(1.0, abs=0.15) and np.diff(odds[:8]).min() > 0
    assert odds[9] - odds[8] == pytest.approx(-1.0, abs=0.3)
    assert np.abs(odds[11:]).max() < 0.15
    assert found.chances().mean(0) == pytest.approx(np.bincount(labels) / RECORDS, abs=0.01)


def test_terms_are_held_back_the_more_the_noisier_they_were_measured() -> None:
    cells, labels = table(2)
    spreads = []
    for noise in (2.0, 200.0, 8000.0):
        model = LabelModel(measured(cells, labels, 2, noise), rows(cells, np.zeros((RECORDS, 2))), RECORDS, 0.0)
        model.fit()
        assert np.isfinite(model.terms).all() and np.isfinite(model.constant).all()
        spreads.append(np.abs(model.terms).max())
    assert spreads[0] > 0.8 > spreads[2]


@pytest.mark.parametrize("ordered", [0, 8])
def test_each_class_strays_as_far_as_its_own_terms_say(ordered: int) -> None:
    """Eleven classes of little noise that hardly stray do not hold back the twelfth."""
    terms = np.zeros((12, 8))
    terms[:11] = 0.02 * np.random.default_rng(7).standard_normal((11, 8))
    terms[11] = np.linspace(-2, 2, 8)
    variance = np.full((12, 8), 0.01)
    variance[11] = 1.0
    found = likeliest(terms, variance, ordered)
    assert np.abs(found[:11]).max() < 0.1
    assert found[11, 7] - found[11, 0] > 1.0


def test_the_mixtures_opinion_is_kept_where_two_columns_decide_together() -> None:
    cells, labels = table(2, both=True)
    is_yes = 3.0 * ((cells[:, 0] > 3) ^ (cells[:, 1] == 1))
    opinions = np.stack([-is_yes, is_yes], axis=1)
    found = fitted(measured(cells, labels, 2, 8.0), rows(cells, opinions), RECORDS)
    assert found.opinion >= 0.75
    made_up = np.random.default_rng(0).normal(0, 2.0, opinions.shape)
    additive = measured(*table(2), 2, 8.0)
    assert fitted(additive, rows(table(2)[0], made_up), RECORDS).opinion == 0


@pytest.mark.parametrize(("deviations", "opinion", "asked"), [(-0.8, 0.25, 5), (2.9, 0.25, 5), (-3.0, 0.0, 1)])
def test_additive_terms_do_only_where_the_pairs_surely_ask_for_no_more(
    deviations: float, opinion: float, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What noise alone would leave is no proof that there is nothing else: a fit takes some of the noise away, too."""
    cells, labels = table(2)
    found = measured(cells, labels, 2, 12.0)
    count = float((found.precision > 0).sum()) / 2 * 2
    left = iter([count + deviations * (2 * count) ** 0.5, *(share * count for share in (0.6, 0.58, 0.57, 0.57))])
    seen = []
    monkeypatch.setattr("limbeck.methods.mosaic.labels._misfit", lambda *_: seen.append(next(left)) or seen[-1])
    assert fitted(found, rows(cells, np.zeros((RECORDS, 2))), RECORDS).opinion == opinion
    assert len(seen) == asked


def test_terms_of_a_walk_are_those_of_the_plain_formula() -> None:
    random = np.random.default_rng(1)
    walk = np.cumsum(random.normal(0, 0.5, 30))
    seen = (walk - walk.mean() + random.normal(0, 0.5, 30))[None]
    found = likeliest(np.concatenate([seen, -seen]), np.full((2, 30), 0.25), 30)
    assert np.abs(found[0] - (walk - walk.mean())).mean() < 0.8 * np.abs(seen[0] - (walk - walk.mean())).mean()
    assert found[1] == pytest.approx(-found[0])
    apart = likeliest(np.concatenate([seen, -seen]), np.full((2, 30), 0.25), 0)
    shrunk = apart / np.concatenate([seen, -seen])
    assert shrunk == pytest.approx(np.full(shrunk.shape, shrunk[0, 0])) and 0 < shrunk[0, 0] < 1


def mixture() -> Mixture:
    random = torch.Generator().manual_seed(0)
    return Mixture.of(SIZES, 1.5 * torch.randn(2, 6, sum(SIZES), generator=random), torch.randn(2, 6, generator=random))


def test_even_rows_have_the_mixtures_pairs_more_closely_than_free_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    made = mixture()

    def off(cells: np.ndarray) -> tuple[float, float]:
        hot = np.zeros((len(cells), sum(SIZES)))
        hot[np.arange(len(cells))[:, None], cells + STARTS] = 1
        lacking = (hot.T @ hot) / len(cells) - made.pairs()
        lacking[np.arange(sum(SIZES)), np.arange(sum(SIZES))] = 0
        same = [slice(0, 8), slice(8, 11), slice(11, 15)]
        for block in same:
            lacking[block, block] = 0
        return float(np.abs(lacking).sum()), float(np.abs(lacking).max())

    evened = off(even_cells(made, 3000, np.random.default_rng(0)))
    monkeypatch.setattr(even, "MOST_PAIRS", 0)
    free = off(even_cells(made, 3000, np.random.default_rng(0)))
    assert evened[0] < 0.5 * free[0] and evened[1] < free[1]


@pytest.mark.parametrize("count", [1, 2, 700])
def test_even_rows_are_cells_and_the_same_for_the_same_seed(count: int) -> None:
    cells = even_cells(mixture(), count, np.random.default_rng(0))
    assert cells.shape == (count, 3) and (cells >= 0).all() and (cells < SIZES).all()
    again = even_cells(mixture(), count, np.random.default_rng(0))
    assert np.array_equal(cells, again)


def test_a_part_of_a_table_that_is_too_long_is_drawn_freely(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is for the whole table, however small its parts are."""
    evened, free = (even_cells(mixture(), 50, np.random.default_rng(0), rows) for rows in (50, 1 << 30))
    assert not np.array_equal(evened, free)
    monkeypatch.setattr(even, "MOST_PAIRS", 0)
    assert np.array_equal(free, even_cells(mixture(), 50, np.random.default_rng(0)))
