"""Noise and sampling masks. All statistics are drawn under fixed keys, so that no test can fail by chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from limbeck.vault.noise import Randomness, SecretStream
from limbeck.vault.sampling import poisson_sample

MANY = 100_000


def stream(seed: int = 0, label: str = "noise", index: int = 0) -> SecretStream:
    return Randomness(seed).stream(label, index)


def test_noise_is_standard_normal() -> None:
    drawn = stream().gaussian((MANY,))
    assert abs(drawn.mean()) < 4 / np.sqrt(MANY)
    assert abs(drawn.var() - 1) < 4 * np.sqrt(2 / MANY)
    assert abs(stats.skew(drawn)) < 4 * np.sqrt(6 / MANY)
    assert abs(stats.kurtosis(drawn)) < 4 * np.sqrt(24 / MANY)
    assert stats.kstest(drawn, "norm").pvalue > 1e-3


def test_noise_has_tails() -> None:
    beyond = np.count_nonzero(np.abs(stream(1).gaussian((MANY,))) > 3.5)
    expected = MANY * 2 * stats.norm.sf(3.5)
    assert abs(beyond - expected) < 4 * np.sqrt(expected)


@pytest.mark.parametrize("shape", [(3, 5), (7,), (1, 1), (0,), (2, 0)])
def test_noise_has_the_shape_that_was_asked_for_and_is_finite(shape: tuple[int, ...]) -> None:
    drawn = stream().gaussian(shape)
    assert drawn.shape == shape and drawn.dtype == np.float64 and np.isfinite(drawn).all()


def test_numbers_of_one_draw_are_independent() -> None:
    drawn = stream(2).gaussian((MANY,))
    for lag in (1, 2, MANY // 4, MANY // 2, MANY - 100):
        first, second = drawn[:-lag], drawn[lag:]
        assert abs(np.mean(first * second)) < 4 / np.sqrt(len(first))
        assert abs(np.mean((first**2 - 1) * (second**2 - 1))) < 8 / np.sqrt(len(first))


def test_one_stream_never_repeats_itself() -> None:
    one = stream()
    first, second = one.gaussian((1000,)), one.gaussian((1000,))
    assert not np.intersect1d(first, second).size
    assert len(np.unique(one.integers(1000))) == 1000


def test_streams_differ_by_seed_label_and_index() -> None:
    drawn = [stream(*place).integers(4).tolist() for place in ((0, "a", 0), (0, "a", 1), (0, "b", 0), (1, "a", 0))]
    assert len({tuple(numbers) for numbers in drawn}) == 4
    assert stream(0, "a", 0).integers(4).tolist() == drawn[0]


def test_secure_streams_differ_even_for_the_same_answer() -> None:
    drawn = {tuple(Randomness().stream("a", 0).integers(4).tolist()) for _ in range(10)}
    assert len(drawn) == 10
    assert Randomness().releasable and not Randomness(0).releasable


def test_integers_are_uniform_over_all_bits() -> None:
    drawn = stream(3).integers(MANY)
    for bit in range(64):
        ones = np.count_nonzero(drawn & np.uint64(1 << bit))
        assert abs(ones - MANY / 2) < 5 * np.sqrt(MANY) / 2


def test_sample_sizes_are_binomial() -> None:
    records, rate, times = 500, 0.1, 2000
    labels = np.zeros(records, dtype=np.int64)
    sizes = np.array([len(poisson_sample(labels, (rate,), stream(4, "s", index))) for index in range(times)])
    mean, variance = records * rate, records * rate * (1 - rate)
    assert abs(sizes.mean() - mean) < 4 * np.sqrt(variance / times)
    assert abs(sizes.var() - variance) < 4 * variance * np.sqrt(2 / times)
    edges = [0, 44, 47, 50, 53, 56, records + 1]
    observed = np.histogram(sizes, edges)[0]
    chances = np.diff(stats.binom.cdf(np.array(edges) - 1, records, rate))
    assert stats.chisquare(observed, times * chances).pvalue > 1e-3


def test_each_record_is_drawn_at_the_rate_of_its_own_class() -> None:
    labels = np.array([0, 1, 2, 3] * 25_000)
    rates = (0.5, 0.01, 1.0, 0.2)
    drawn = labels[poisson_sample(labels, rates, stream(5))]
    for place, rate in enumerate(rates):
        count = np.count_nonzero(drawn == place)
        assert abs(count - 25_000 * rate) <= 4 * np.sqrt(25_000 * rate * (1 - rate))


def test_records_are_drawn_independently_of_each_other() -> None:
    labels, times = np.zeros(2, dtype=np.int64), 4000
    both = [len(poisson_sample(labels, (0.5,), stream(6, "s", index))) for index in range(times)]
    observed = np.bincount(both, minlength=3)
    assert stats.chisquare(observed, times * np.array([0.25, 0.5, 0.25])).pvalue > 1e-3


def test_a_sample_is_grouped_by_class_and_holds_no_record_twice() -> None:
    labels = np.random.default_rng(0).integers(0, 3, 1000)
    drawn = poisson_sample(labels, (0.5,) * 3, stream(7))
    assert (np.diff(labels[drawn]) >= 0).all() and len(set(drawn.tolist())) == len(drawn)


def test_rate_one_takes_every_record() -> None:
    assert sorted(poisson_sample(np.array([1, 0, 1]), (1.0, 1.0), stream()).tolist()) == [0, 1, 2]


def test_a_rate_below_the_resolution_takes_no_record_and_no_record_gives_no_sample() -> None:
    assert not len(poisson_sample(np.zeros(1000, dtype=np.int64), (1e-25,), stream()))
    assert not len(poisson_sample(np.zeros(0, dtype=np.int64), (0.5,), stream()))
