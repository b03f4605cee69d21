"""Renyi curves against published values and against dp-accounting's own, slower routines."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from dp_accounting.rdp import rdp_privacy_accountant as oracle

from limbeck.privacy import renyi
from limbeck.privacy.accounting import price
from limbeck.privacy.queries import TeacherGradient, TeacherVote

DELTA = 1e-5


def at(curve: np.ndarray, order: int) -> float:
    return float(curve[renyi.ORDERS.tolist().index(order)])


@pytest.mark.parametrize(
    ("rate", "sigma", "order", "value"),
    [(0.01, 1, 4, 3.63154e-4), (0.01, 1, 16, 3.087851), (0.1, 2, 8, 1.372543e-2)],
)
def test_poisson_samples(rate: float, sigma: float, order: int, value: float) -> None:
    assert at(renyi.poisson_gaussian(rate, sigma), order) == pytest.approx(value, rel=1e-5)


def test_conversions_at_one_order() -> None:
    curve, order = np.array([0.5]), np.array([8.0])
    assert renyi.epsilon_mironov(curve, DELTA, order) == pytest.approx(2.144704, abs=1e-6)
    assert renyi.epsilon(curve, DELTA, order) == pytest.approx(1.714109, abs=1e-6)


def test_six_hundred_and_forty_thousand_draws_of_one_in_a_thousand() -> None:
    curve = 640_000 * renyi.subset_gaussian(1e-3, 1.07)
    assert renyi.epsilon_mironov(curve, DELTA) == pytest.approx(9.9926, abs=1e-4)
    assert renyi.epsilon(curve, DELTA) == pytest.approx(9.2428, abs=1e-4)


@pytest.mark.parametrize("sigma", [0.6, 1.07, 7.0])
@pytest.mark.parametrize("share", [1e-3, 0.05])
def test_subsets_agree_with_the_slow_routine(share: float, sigma: float) -> None:
    ours = renyi.subset_gaussian(share, sigma)
    for order in (2, 3, 4, 7, 16, 40):
        theirs = oracle._compute_rdp_sample_wor_gaussian_int(share, sigma, order) / (order - 1)
        assert at(ours, order) == pytest.approx(min(theirs, order / (2 * sigma**2)), rel=1e-6)


def test_a_subset_is_never_worse_than_all_and_all_is_plain() -> None:
    assert (renyi.subset_gaussian(0.5, 1.0) <= renyi.gaussian(1.0)).all()
    assert np.array_equal(renyi.subset_gaussian(1.0, 1.0), renyi.gaussian(1.0))
    assert np.array_equal(renyi.poisson_gaussian(1.0, 1.0), renyi.gaussian(1.0))


@pytest.mark.parametrize("steps", [1, 100])
def test_plain_gaussians_agree_with_the_accountant_of_the_other_queries(steps: int) -> None:
    theirs = RdpAccountant(orders=renyi.ORDERS).compose(
        TeacherVote(label="v", map="m", clip=1.0, noise_multiplier=20.0, teachers=3, count=steps).event()
    )
    assert renyi.epsilon(steps * renyi.gaussian(20.0), DELTA) == pytest.approx(theirs.get_epsilon(DELTA), rel=1e-9)


def test_a_draw_from_one_teacher_hides_nothing() -> None:
    alone = TeacherGradient(label="g", map="m", clip=2.0, noise_multiplier=3.0, teachers=1, draws=4, count=2)
    voted = TeacherVote(label="v", map="m", clip=2.0, noise_multiplier=3.0, teachers=1, count=8)
    assert price([alone], DELTA) == price([voted], DELTA)


def test_draws_and_samples_add_up_in_one_plan() -> None:
    drawn = TeacherGradient(label="g", map="m", clip=2.0, noise_multiplier=3.0, teachers=100, draws=4, count=50)
    voted = TeacherVote(label="v", map="m", clip=2.0, noise_multiplier=30.0, teachers=100, count=3)
    both = price([drawn, voted], DELTA)
    assert both.epsilon > max(price([drawn], DELTA).epsilon, price([voted], DELTA).epsilon)
    assert both.epsilon == both.epsilon_rdp and both.epsilon_exact is None
