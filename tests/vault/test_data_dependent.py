"""Bounds that depend on the data: published values, Figure 2's order, and that no release can reach them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import limbeck
from limbeck.vault.ensemble.data_dependent import (
    both_epsilons,
    data_dependent_curve,
    log_unlikely_class,
    log_unlikely_direction,
)


def test_pates_published_values() -> None:
    log_q = log_unlikely_class(np.array([220.0, 20.0, 5.0, 5.0]), 40.0)
    assert log_q == pytest.approx(-7.963985, abs=1e-6)
    curve = data_dependent_curve(log_q, 1 / 40**2, np.array([2.0, 5.0, 10.0, 20.0]))
    assert curve == pytest.approx([1.0540e-4, 1.1875e-4, 1.5208e-4, 3.0370e-4], rel=1e-4)


def test_the_chance_of_another_direction_is_what_a_trial_says() -> None:
    sums, sigma, threshold = np.array([30.0, -25.0, 2.0, 9.0]), 5.0, 12.0
    noisy = sums + sigma * np.random.default_rng(0).normal(size=(200_000, 4))
    hit = np.sign(noisy) * (np.abs(noisy) >= threshold) == np.array([1, -1, 0, 0])
    assert math.exp(log_unlikely_direction(sums, sigma, threshold)) == pytest.approx(1 - hit.all(1).mean(), abs=5e-3)


def test_more_coordinates_make_the_likeliest_direction_less_likely() -> None:
    few, many = (log_unlikely_direction(np.full(count, 30.0), 5.0, 12.0) for count in (10, 784))
    assert few < many < 0
    assert log_unlikely_direction(np.full(784, 4000.0), 5000.0, 2800.0) == pytest.approx(0, abs=1e-6)
    assert log_unlikely_direction(np.full(3, 1e9), 1.0, 1.0) == -math.inf


def test_never_above_the_plain_curve_and_nothing_where_all_is_certain() -> None:
    orders = np.arange(2.0, 60.0)
    for log_q in (-1e-9, -0.5, -3.0, -40.0, -4000.0):
        assert (data_dependent_curve(log_q, 0.001, orders) <= 0.001 * orders + 1e-15).all()
    assert not data_dependent_curve(-math.inf, 0.001, orders).any()


def test_figure_two() -> None:
    """At the paper's size the data do not help: no direction of 784 coordinates is likely. With little noise they would."""
    random = np.random.default_rng(0)
    votes = [random.uniform(-4000, 4000, (15, 784)) for _ in range(4)]
    plain, dependent = both_epsilons(votes, k=200, sigma=5000.0, threshold=2800.0, delta=1e-5)
    assert plain == dependent and plain == sorted(plain)
    sure = [np.full((2, 3), 4000.0)] * 2
    plain, dependent = both_epsilons(sure, k=3, sigma=200.0, threshold=2000.0, delta=1e-5)
    assert dependent[-1] < plain[-1]


def test_no_other_module_knows_them() -> None:
    root = Path(limbeck.__file__).parent
    users = [path for path in root.rglob("*.py") if "data_dependent" in path.read_text(encoding="utf-8")]
    assert [path.name for path in users] == ["data_dependent.py"]
