"""The sampler of noise: whole steps, exactly those of a rounded Gaussian. Keys are fixed, so that no test fails by chance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from limbeck.privacy.grid import SAMPLER_ERROR_BITS, sampler_delta, step_of
from limbeck.privacy.queries import ClippedSum
from limbeck.vault import rounded_gaussian as sampler
from limbeck.vault.noise import Randomness, SecretStream, drawn_noise, with_noise
from limbeck.vault.rounded_gaussian import COLUMN_BITS, COLUMNS, RoundedGaussian, aliases

MANY = 10_000_000
WIDE = 1.37 * 2.0**20  # as many steps as the noise of a query has, and more


def stream(seed: int = 0) -> SecretStream:
    return Randomness(seed).stream("noise", 0)


@pytest.fixture(scope="module")
def many() -> NDArray[np.float64]:
    return RoundedGaussian(WIDE).draw(stream(), MANY) / WIDE


def test_moments_of_ten_million_draws(many: NDArray[np.float64]) -> None:
    assert abs(many.mean()) < 5 / math.sqrt(MANY)
    assert abs(np.square(many).mean() - 1) < 5 * math.sqrt(2 / MANY)
    assert abs((many**3).mean()) < 5 * math.sqrt(15 / MANY)
    assert abs((many**4).mean() - 3) < 5 * math.sqrt(96 / MANY)


@pytest.mark.parametrize("beyond", [1.0, 3.0, 4.0, 5.0])
def test_tails_of_ten_million_draws(many: NDArray[np.float64], beyond: float) -> None:
    for tail in (many > beyond, many < -beyond):
        expected = MANY * stats.norm.sf(beyond)
        assert stats.poisson.cdf(np.count_nonzero(tail), expected) > 1e-7
        assert stats.poisson.sf(np.count_nonzero(tail) - 1, expected) > 1e-7


def test_form_of_ten_million_draws(many: NDArray[np.float64]) -> None:
    """In 4096 cells of equal chance, which do not fall together with the strips of the sampler."""
    counts = np.bincount((stats.norm.cdf(many) * 4096).astype(np.int64).clip(0, 4095), minlength=4096)
    assert stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize("steps", [0.3, 0.5, 1.0, 2.0, 3.7, 10.0, 63.99, 64.0, 100.3])
def test_small_steps_have_exactly_the_chances_of_a_rounded_gaussian(steps: float) -> None:
    drawn = RoundedGaussian(steps).draw(stream(1), 2_000_000)
    most = math.ceil(6 * steps)
    whole = np.arange(-most, most + 1)
    chances = stats.norm.cdf((whole + 0.5) / steps) - stats.norm.cdf((whole - 0.5) / steps)
    counts = np.bincount(drawn.clip(-most, most) + most, minlength=len(whole))
    often = chances * len(drawn) > 20
    observed = np.append(counts[often], counts[~often].sum())
    expected = np.append(chances[often], 1 - chances[often].sum()) * len(drawn)
    kept = expected > 1e-3
    found = float((np.square(observed - expected)[kept] / expected[kept]).sum())
    assert stats.chi2.sf(found, kept.sum() - 1) > 1e-6


def test_neighbouring_numbers_are_independent() -> None:
    drawn = RoundedGaussian(WIDE).draw(stream(2), 400_000) / WIDE
    for lag in (1, 2, 7, sampler.AT_ONCE):
        first, second = drawn[:-lag], drawn[lag:]
        assert abs(np.mean(first * second)) < 5 / math.sqrt(len(first))
        assert abs(np.mean((first**2 - 1) * (second**2 - 1))) < 10 / math.sqrt(len(first))


def test_every_last_bit_is_as_good_as_a_coin() -> None:
    """The noise is 2^20 steps wide, so its low bits tell nothing."""
    drawn = RoundedGaussian(WIDE).draw(stream(3), 1_000_000)
    for bit in range(12):
        ones = np.count_nonzero(drawn >> bit & 1)
        assert abs(ones - 500_000) < 5 * 500


def test_exact_arithmetic_decides_as_the_double_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a margin of a twentieth, exact arithmetic decides about every point near the density. Numbers agree."""
    calls = []
    exact = RoundedGaussian._is_under

    class Same:
        """The same bits for both; those that only exact arithmetic takes come from elsewhere."""

        def __init__(self) -> None:
            self.random, self.more = np.random.default_rng(5), np.random.default_rng(6)

        def integers(self, count: int) -> NDArray[np.uint64]:
            source = self.more if count == 2 else self.random
            return source.integers(0, 2**64, count, dtype=np.uint64)

    plain = RoundedGaussian(1000.0)
    expected = plain.draw(Same(), 30_000)
    monkeypatch.setattr(RoundedGaussian, "_is_under", lambda *given: calls.append(1) or exact(*given))
    monkeypatch.setattr(sampler, "MARGIN", 0.05)  # the tables are those of before
    assert plain.draw(Same(), 30_000).tolist() == expected.tolist()
    assert len(calls) > 150


def test_a_tie_is_decided_by_bits_that_are_drawn_then() -> None:
    """At the very height of the density half of the undrawn fractions lie below it, and half above."""
    table = RoundedGaussian(1.0)
    at = 3 << sampler.POSITION_BITS
    density = table._height * math.exp(-0.5 * (3 / table._s) ** 2)
    decided = [table._is_under(int(density), at, 0, Randomness(seed).stream("tie", 0)) for seed in range(400)]
    share = density - int(density)
    assert share == 0.0 or stats.binomtest(sum(decided), 400, share).pvalue > 1e-6
    assert table._is_under(int(density) - 10**9, at, 0, stream()) and not table._is_under(
        int(density * 2), at, 0, stream()
    )


def test_far_out_where_a_double_is_zero_exact_arithmetic_still_answers() -> None:
    table = RoundedGaussian(2.0**30)
    assert not table._is_under(0, 8000 << sampler.POSITION_BITS, sampler.WIDE_BITS, stream())


@pytest.mark.parametrize("areas", [[5, 1 << 63, 1 << 53, (1 << 53) + 1], [1] * 900, [(1 << 64) - 1], [1 << 64]])
def test_the_table_holds_every_area_exactly(areas: list[int]) -> None:
    splits, segments = aliases(areas)
    laid: dict[int, list[tuple[int, int]]] = {}
    for column in range(COLUMNS):
        ends = (0, splits[column], 1 << COLUMN_BITS)
        for half in range(2):
            strip, base = segments[2 * column + half]
            if ends[half] < ends[half + 1]:
                laid.setdefault(strip, []).append((ends[half] + base, ends[half + 1] + base))
    for strip, area in [*enumerate(areas), (-1, (1 << 64) - sum(areas))]:
        pieces = sorted(laid.get(strip, []))
        assert [begin for begin, _ in pieces] == [0, *(end for _, end in pieces[:-1])][: len(pieces)]
        assert (pieces[-1][1] if pieces else 0) == area


@pytest.mark.parametrize("word", [0, 2**64 - 1, 2**53 - 1, 1])
def test_no_word_gives_a_number_beyond_the_columns(word: int) -> None:
    class Stuck:
        def integers(self, count: int) -> NDArray[np.uint64]:
            return np.full(count, word, dtype=np.uint64)

    for steps in (1.0, WIDE, 2.0**47):
        kept = RoundedGaussian(steps)._kept(Stuck(), 5) if word != 2**64 - 1 else np.zeros(0)
        assert np.abs(kept).max(initial=0) <= 129 * steps


@pytest.mark.parametrize("steps", [0.0, -1.0, 2.0**-9, 2.0**48, math.inf, math.nan])
def test_widths_without_a_proof_are_refused(steps: float) -> None:
    with pytest.raises(ValueError, match="widths"):
        RoundedGaussian(steps)


# The attack on the last bits


def on_fine_grid(values: NDArray[np.float64]) -> float:
    """How many of the small answers are multiples of 2^-53: what a sum near 1 leaves of them, and an ideal Gaussian does not."""
    small = values[np.abs(values) < 2.0**-6]
    return float(np.mean(small * 2.0**53 == np.round(small * 2.0**53)))


def test_doubles_gave_the_sum_away_and_whole_steps_do_not() -> None:
    """Noise of doubles, added to 0 or to 1: answers near 0 have fewer bits if the sum was 1. Every second one tells the sum.

    On the grid the answers to both sums are whole steps, all of them.
    """
    query = ClippedSum(label="sum", map="identity", clip=1.0, noise_multiplier=1.0)
    before = ClippedSum(label="sum", map="identity", clip=1.0, noise_multiplier=1.0, on_grid=False)
    told, hidden = [], []
    for true in (0.0, 1.0):
        total = np.full(500_000, true)
        told.append(on_fine_grid(with_noise(before, total, drawn_noise(before, total.shape, stream(7)))))
        whole = np.full(500_000, round(true / query.step), dtype=np.int64)
        answers = with_noise(query, whole, drawn_noise(query, whole.shape, stream(7)))
        assert (answers / query.step == np.round(answers / query.step)).all()
        hidden.append(on_fine_grid(answers))
    assert told[0] < 0.6 and told[1] == 1.0
    assert hidden == [1.0, 1.0]


def test_noise_and_sum_are_added_as_integers() -> None:
    """A sum that a double cannot hold is not rounded before the noise comes to it, and one beyond 64 bits wraps round."""
    query = ClippedSum(label="sum", map="identity", clip=2.0**30, noise_multiplier=1.0)
    assert query.step == 1.0
    noise = np.array([1, -(2**60), 0], dtype=np.int64)
    total = np.array([-(2**53) - 1 + 2**53, 2**60 + 1, 2**63 - 1], dtype=np.int64)
    assert with_noise(query, total, noise)[:2].tolist() == [0.0, 1.0]


# Steps


@pytest.mark.parametrize("clip", [1e-300, 1e-30, 1e-3, 0.5, 1.0, 3.0, 1e6, 1e300])
@pytest.mark.parametrize("noise", [0.05, 0.3, 1.0, 50.0, 1e4, 1e6, 1e9])
def test_a_step_is_fine_enough_and_not_too_fine(clip: float, noise: float) -> None:
    step = step_of(clip, noise)
    assert math.frexp(step)[0] == 0.5 and math.frexp(step)[1] % 2 == 1  # a power of 4
    if clip > 1e-290:
        assert 2**20 <= clip / step * noise < 2**48
        assert 2**16 <= clip / step < 2**32
        assert noise > 2**14 or clip / step >= 2**30
    assert step == step_of(clip, noise)


def test_without_noise_or_without_a_clip() -> None:
    assert 2**30 <= 3.0 / step_of(3.0, 0.0) < 2**32
    assert step_of(math.inf, 0.0) == 0.0
    assert not ClippedSum(label="a", map="identity", clip=math.inf, noise_multiplier=0.0).on_grid


def test_the_error_of_the_sampler_is_bounded_in_writing() -> None:
    """P(|Z| > 44 s), for a cut at 64 s and a sum that moves by 20 s, is below the stated bound."""
    assert 2 * stats.norm.logsf(44.0) / math.log(2) < -SAMPLER_ERROR_BITS
    assert 0 < sampler_delta(10**9) < 1e-270
