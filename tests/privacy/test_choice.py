"""What a choice costs: the proof of limbeck.privacy.bounded_range, tried by brute force, and how choices join other queries."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp

from limbeck.errors import BadInput
from limbeck.privacy.accountants import epsilon_pld, epsilon_rdp, terms_of
from limbeck.privacy.accounting import price
from limbeck.privacy.bounded_range import BoundedRangeDpEvent, loss_distribution, profile, renyi
from limbeck.privacy.calibration import calibrate
from limbeck.privacy.plan import for_unit
from limbeck.privacy.queries import Choice, ClippedSum, Query, TeacherGradient, query_from_dict
from limbeck.privacy.schema import Schema
from limbeck.vault.ledger.renyi_filter import divergence

DELTA = 1e-5
Chances = NDArray[np.float64]


def choice(noise: float = 2.0, count: int = 1) -> Choice:
    return Choice(label="choice", map="marginal_errors", clip=1.0, noise_multiplier=noise, count=count)


def neighbours(random: np.random.Generator, noise: float) -> tuple[Chances, Chances]:
    """The exponential mechanism on two neighbours, each of whose scores differs by up to 1."""
    size = int(random.integers(2, 6))
    scores, moves = random.normal(0, 3, size), random.choice([-1.0, 1.0, 0.3], size)
    weights = [np.exp(scores / noise), np.exp((scores + moves) / noise)]
    return weights[0] / weights[0].sum(), weights[1] / weights[1].sum()


def hockey_stick(p: Chances, q: Chances, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("noise", [0.5, 2.0, 10.0])
def test_no_exponential_mechanism_is_outside_of_the_profile_and_the_curve(noise: float) -> None:
    random, orders = np.random.default_rng(3), np.array([1.5, 2.0, 8.0, 60.0])
    for _ in range(300):
        p, q = neighbours(random, noise)
        for epsilon in (0.0, 0.3 / noise, 1 / noise, 1.9 / noise):
            assert hockey_stick(p, q, epsilon) <= profile(2 / noise, epsilon) + 1e-12
        logs = [logsumexp(order * np.log(p) + (1 - order) * np.log(q)) for order in orders]
        found = logs / (orders - 1)
        assert (found <= renyi(2 / noise, orders) + 1e-12).all()


def test_the_profile_is_reached_and_not_only_a_bound() -> None:
    """Two candidates, one of which gains what the other loses."""
    range_, epsilon = 1.0, 0.2
    top = math.exp((range_ + epsilon) / 2)
    q = (1 - top / math.e) / (top - top / math.e)
    p, q_both = np.array([q * top, 1 - q * top]), np.array([q, 1 - q])
    assert math.log(p[0] / q_both[0]) - math.log(p[1] / q_both[1]) == pytest.approx(range_)
    assert hockey_stick(p, q_both, epsilon) == pytest.approx(profile(range_, epsilon))


@pytest.mark.parametrize(("range_", "interval"), [(1.0, 1e-3), (0.1, 0.07), (3.0, 0.5), (1e-6, 1e-4)])
def test_losses_on_a_grid_are_never_below_the_profile(range_: float, interval: float) -> None:
    losses = loss_distribution(range_, interval)
    for epsilon in np.linspace(0, range_ * 1.2, 37):
        found = losses.get_delta_for_epsilon(float(epsilon))
        assert found >= profile(range_, float(epsilon)) - 1e-13
    assert losses._pmf_remove._probs.sum() == pytest.approx(1.0, abs=1e-12)
    close = loss_distribution(range_, range_ / 5000).get_delta_for_epsilon(range_ / 3)
    assert close == pytest.approx(profile(range_, range_ / 3), rel=1e-3)


@pytest.mark.parametrize("count", [1, 2, 6])
def test_the_price_covers_composed_choices(count: int) -> None:
    """All outcomes of several choices, one by one, on the worst of many neighbours."""
    random, noise, delta = np.random.default_rng(5), 1.0, 0.01
    cost = price((choice(noise, count),), delta)
    worst = 0.0
    for _ in range(200):
        p, q = neighbours(random, noise)
        together, other = p, q
        for _ in range(count - 1):
            together, other = np.outer(together, p).ravel(), np.outer(other, q).ravel()
        worst = max(worst, hockey_stick(together, other, cost.epsilon))
    assert worst <= delta
    assert cost.epsilon_exact is None and cost.epsilon <= 2 * count / noise


def test_a_price_of_half_the_range_would_not_cover_it() -> None:
    random, half = np.random.default_rng(5), price((choice(2.0, 2),), 0.01).epsilon
    pairs = [neighbours(random, 1.0) for _ in range(200)]
    assert max(hockey_stick(np.outer(p, p).ravel(), np.outer(q, q).ravel(), half) for p, q in pairs) > 0.01


def test_both_accountants_and_the_filter_price_it() -> None:
    queries: tuple[Query, ...] = (
        choice(20.0, 10),
        ClippedSum(label="sums", map="cells", clip=1.0, noise_multiplier=10.0, count=10),
        ClippedSum(label="some", map="cells", clip=1.0, noise_multiplier=2.0, rate=(0.1,), count=5),
    )
    cost = price(queries, DELTA)
    assert cost.epsilon == min(cost.epsilon_pld, cost.epsilon_rdp) and cost.epsilon_exact is None
    alone = price(queries[1:], DELTA)
    assert alone.epsilon < cost.epsilon and alone.epsilon_rdp < cost.epsilon_rdp
    booked = json.dumps({"plan": {"queries": [choice(20.0, 10).to_dict()]}})
    found = divergence(booked, json.dumps({"choice": 10}), 12)
    assert float(found or 0) == pytest.approx(10 * 12 / (2 * 20.0**2), rel=1e-6)
    assert float(divergence(booked, json.dumps({"choice": 10}), 1024) or 0) == pytest.approx(10 * 2 / 20.0, rel=1e-6)


def test_beside_subsets_only_renyi_prices_it() -> None:
    part = TeacherGradient(label="part", map="critic_gradient", clip=1.0, noise_multiplier=2.0, teachers=50, draws=1)
    cost, alone = price((part, choice(20.0, 10)), DELTA), price((part,), DELTA)
    assert math.isinf(cost.epsilon_pld) and cost.epsilon == cost.epsilon_rdp > alone.epsilon_rdp


def test_a_choice_weighs_as_much_as_a_gaussian_of_its_noise() -> None:
    terms = terms_of(choice(8.0, 40).event())
    gaussian = terms_of(ClippedSum(label="a", map="cells", clip=1.0, noise_multiplier=8.0, count=40).event())
    assert terms and gaussian
    assert epsilon_rdp(terms, DELTA) == pytest.approx(epsilon_rdp(gaussian, DELTA), rel=1e-6)
    assert epsilon_pld(terms, DELTA, 1e-3) > epsilon_pld(gaussian, DELTA, 1e-3)


def test_noise_is_found_for_an_epsilon_and_no_less() -> None:
    def queries(noise: float) -> tuple[Query, ...]:
        sums = ClippedSum(label="sums", map="cells", clip=1.0, noise_multiplier=noise, count=4)
        return (choice(3 * noise, 4), sums)

    noise = calibrate(queries, 1.0, DELTA)
    assert price(queries(noise), DELTA).epsilon <= 1.0 < price(queries(noise * 0.999), DELTA).epsilon


def test_without_noise_it_is_not_private() -> None:
    assert math.isinf(price((choice(0.0),), DELTA).epsilon)
    with pytest.raises(BadInput, match="noise_multiplier"):
        price((choice(0.01),), DELTA)
    with pytest.raises(BadInput, match="No accountant"):
        from dp_accounting import PoissonSampledDpEvent

        terms_of(PoissonSampledDpEvent(0.1, BoundedRangeDpEvent(0.5)))


def test_a_choice_comes_back_from_a_file_and_nothing_else_does() -> None:
    stated = choice().to_dict()
    assert stated["kind"] == "choice" and query_from_dict(stated) == choice()
    for change in (
        {"step": 0.5}, {"clip": "infinity"}, {"count": 0}, {"rate": [1.0]}, {"noise_multiplier": -1.0}, {"map": ""},
        {"clip": 0.0},
    ):  # fmt: skip
        with pytest.raises(BadInput):
            query_from_dict({**stated, **change})
    for clip in (math.inf, math.nan, 1e-200):
        with pytest.raises(BadInput, match="clip"):
            Choice(label="choice", map="marginal_errors", clip=clip, noise_multiplier=2.0)
    with pytest.raises(BadInput, match="whole steps"):
        query_from_dict({key: value for key, value in stated.items() if key != "step"})


def test_a_person_moves_scores_by_more_than_a_record() -> None:
    schema = Schema(
        name="visits",
        shape=(3,),
        classes=("a", "b"),
        records=900,
        low=0,
        high=1,
        unit="patient",
        units=100,
        unit_records=9,
    )
    assert for_unit(choice(), schema).clip == 3.0
    assert price((for_unit(choice(), schema),), DELTA) == price((choice(),), DELTA)
