"""Epsilon: the values of the papers, soundness of the search for noise, and what is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from limbeck.data.named import NAMED
from limbeck.errors import BadInput
from limbeck.methods import method_named
from limbeck.privacy import accountants, accounting, calibration
from limbeck.privacy.accountants import gaussian_epsilon
from limbeck.privacy.accounting import price, price_event, require_delta, sampled_gaussian
from limbeck.privacy.calibration import calibrate, calibrate_sampled_gaussian
from limbeck.privacy.grid import LEAST_CLIP
from limbeck.privacy.numbers import require_positive
from limbeck.privacy.queries import ClippedSum, TeacherGradient, TeacherVote

DELTA = 1e-5
BAD = (math.nan, 0.0, -0.0, -1.0, 5e-324, math.inf)

# (data set, epsilon by RDP, epsilon by PLD) with noise multiplier 1.
LDPDC = (("mnist", 1.1000, 0.537), ("fashion-mnist", 1.0588, 0.483), ("cifar10", 1.1358, 0.583))
NDPDC = (("mnist", 6.1145, 5.632), ("fashion-mnist", 5.4427, 5.008), ("cifar10", 6.7128, 6.188))


@pytest.mark.parametrize(("dataset", "rdp", "pld"), LDPDC)
def test_ldpdc_costs_what_the_paper_says_and_less_by_pld(dataset: str, rdp: float, pld: float) -> None:
    method = method_named("ldpdc", {"sigma": 1.0, "L": 50})
    cost = price(method.queries(NAMED[dataset].schema, 1.0), DELTA)
    assert cost.epsilon_rdp == pytest.approx(rdp, abs=2e-4)
    assert cost.epsilon_pld == pytest.approx(pld, abs=2e-3)
    assert cost.epsilon == cost.epsilon_pld


@pytest.mark.parametrize(("dataset", "rdp", "pld"), NDPDC)
def test_ndpdc_costs_what_the_paper_says_and_less_by_pld(dataset: str, rdp: float, pld: float) -> None:
    method = method_named("ndpdc", {"sigma": 1.0})
    cost = price(method.queries(NAMED[dataset].schema, 1.0), DELTA)
    assert cost.epsilon_rdp == pytest.approx(rdp, abs=2e-4)
    assert cost.epsilon_pld == pytest.approx(pld, abs=2e-3)
    assert cost.epsilon == cost.epsilon_pld


def test_ndpdc_needs_this_noise_for_epsilon_one_on_mnist() -> None:
    assert calibrate_sampled_gaussian(50 / 5421, 10_000, 1.0, DELTA, "rdp") == pytest.approx(3.817, abs=1e-3)
    # 3.57 on the coarse grid of 1e-3; the fine one wastes less and still bounds epsilon from above.
    found = calibrate_sampled_gaussian(50 / 5421, 10_000, 1.0, DELTA)
    assert accounting.epsilon_pld((accountants.Term(50 / 5421, 3.57, 10_000),), DELTA, 1e-3) == pytest.approx(
        1.0, abs=2e-3
    )
    assert 3.52 < found < 3.57


@pytest.mark.parametrize(("epsilon", "sigma"), [(1.0, 3.7306), (0.2, 16.304), (10.0, 0.49989)])
def test_an_unsampled_gaussian_is_accounted_exactly(epsilon: float, sigma: float) -> None:
    assert gaussian_epsilon(1 / sigma, DELTA) == pytest.approx(epsilon, rel=1e-4)
    found = calibrate_sampled_gaussian(1.0, 1, epsilon, DELTA)
    assert found == pytest.approx(sigma, abs=6e-4)
    cost = sampled_gaussian(1.0, 1, found, DELTA)
    assert cost.epsilon_exact == cost.epsilon <= epsilon


def test_unsampled_gaussians_compose_like_one() -> None:
    four = sampled_gaussian(1.0, 4, 2.0, DELTA)
    assert four.epsilon_exact == pytest.approx(gaussian_epsilon(1.0, DELTA), abs=2e-6)


@pytest.mark.parametrize(
    ("rate", "sigma", "alpha", "value"),
    [(0.01, 1.0, 4, 3.63154e-4), (0.01, 1.0, 16, 3.087851), (0.1, 2.0, 8, 1.372543e-2)],
)
def test_the_renyi_accountant_is_the_known_one(rate: float, sigma: float, alpha: int, value: float) -> None:
    accountant = RdpAccountant(orders=[alpha]).compose(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)))
    assert accountant._rdp[0] == pytest.approx(value, rel=1e-5)


def test_the_privacy_loss_grid_is_fine_enough_for_many_steps() -> None:
    assert accounting.DISCRETISATION <= 1e-4


def test_every_query_of_a_plan_is_in_its_price() -> None:
    one = ClippedSum(label="a", map="identity", clip=1.0, noise_multiplier=2.0)
    two = ClippedSum(label="b", map="one_hot", clip=1.0, noise_multiplier=2.0, by_class=False)
    assert price((one, two), DELTA).epsilon == sampled_gaussian(1.0, 2, 2.0, DELTA).epsilon
    free = ClippedSum(label="c", map="identity", clip=1.0, noise_multiplier=0.0)
    assert price((one, free), DELTA).epsilon == math.inf


@settings(max_examples=3, deadline=None, derandomize=True)
@given(st.floats(0.3, 2.0), st.floats(5e-3, 0.05), st.integers(50, 500))
def test_calibrated_noise_keeps_the_budget_and_wastes_none(epsilon: float, rate: float, steps: int) -> None:
    sigma = calibrate_sampled_gaussian(rate, steps, epsilon, DELTA)
    assert sampled_gaussian(rate, steps, sigma, DELTA).epsilon <= epsilon
    if sigma > 0.1:
        assert sampled_gaussian(rate, steps, sigma - 1e-3, DELTA).epsilon > epsilon * (1 - 1e-4)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.floats(0.01, 50.0), st.integers(1, 1000))
def test_calibrated_noise_is_tight_without_sampling(epsilon: float, steps: int) -> None:
    sigma = calibrate_sampled_gaussian(1.0, steps, epsilon, DELTA)
    assert accounting.round_up(gaussian_epsilon(math.sqrt(steps) / sigma, DELTA)) <= epsilon
    assert gaussian_epsilon(math.sqrt(steps) / (sigma - 2e-4), DELTA) > epsilon * (1 - 1e-6)


def test_the_rdp_accountant_alone_keeps_the_budget_too() -> None:
    sigma = calibrate_sampled_gaussian(0.01, 500, 1.0, DELTA, "rdp")
    assert sampled_gaussian(0.01, 500, sigma, DELTA).epsilon_rdp <= 1.0
    assert sampled_gaussian(0.01, 500, sigma - 1e-3, DELTA).epsilon_rdp > 1.0


def test_a_query_with_far_less_noise_than_the_others_is_calibrated_too() -> None:
    """One answer over a small sample: at a multiplier of 1, where the search begins, it has less noise than can be priced."""

    def queries_at(noise: float) -> tuple[ClippedSum, ...]:
        shape = {"map": "identity", "clip": 1.0}
        whole = ClippedSum(label="whole", noise_multiplier=2 * noise, rate=(1.0,), **shape)
        return whole, ClippedSum(label="sample", noise_multiplier=0.0128 * noise, rate=(0.011,), **shape)

    noise = calibrate(queries_at, 1.0, DELTA)
    assert price(queries_at(noise), DELTA).epsilon <= 1.0 < price(queries_at(noise * 0.999), DELTA).epsilon
    with pytest.raises(BadInput, match="cannot be reached"):
        calibrate(lambda s: queries_at(s * 1e-9), 1.0, DELTA)


@pytest.mark.parametrize("sample", [15, 65])
def test_the_search_begins_where_every_query_can_be_priced(sample: int) -> None:
    """Elixir's noise at a few settings: from the lowest multiplier a query's own came out a hair below what can be priced."""

    def queries_at(noise: float) -> tuple[ClippedSum, ...]:
        own = noise * (sample / 6000) * math.sqrt(2 / (1 - 0.25))
        return (
            ClippedSum(label="s", map="identity", clip=1.0, noise_multiplier=own, rate=(sample / 6000,), count=2),
            ClippedSum(label="whole", map="identity", clip=1.0, noise_multiplier=2 * noise),
        )

    assert queries_at(calibrate(queries_at, 5.0, DELTA, "rdp"))[0].noise_multiplier > accountants.SMALLEST_MULTIPLIER


def assert_kept(epsilon: float) -> None:
    noise = calibrate_sampled_gaussian(0.03, 250, epsilon, 1e-5)
    assert 0.5 * epsilon < sampled_gaussian(0.03, 250, noise, 1e-5).epsilon <= epsilon


@pytest.mark.parametrize("epsilon", [500.0, 1000.0, 2500.0])
def test_an_epsilon_that_promises_nothing_is_kept_as_well(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """No grid is laid for such a price, so none may choose the noise. A grid for 500 has millions of points: coarser here."""
    monkeypatch.setattr(accounting, "DISCRETISATION", 2e-3)
    monkeypatch.setattr(calibration, "DISCRETISATION", 2e-3)
    monkeypatch.setattr(calibration, "COARSE", 2e-2)
    assert_kept(epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [500.0, 1000.0, 2500.0])
def test_an_epsilon_that_promises_nothing_is_kept_on_the_fine_grid_as_well(epsilon: float) -> None:
    assert_kept(epsilon)


def test_a_tiny_epsilon_is_reached_although_epsilon_falls_to_zero() -> None:
    sigma = calibrate_sampled_gaussian(1.0, 10, 1e-7, DELTA)
    assert sampled_gaussian(1.0, 10, sigma, DELTA).epsilon <= 1e-7


def test_epsilon_rises_with_rate_and_steps_and_falls_with_noise() -> None:
    def cost(rate: float = 0.02, steps: int = 200, sigma: float = 1.5) -> tuple[float, float]:
        found = sampled_gaussian(rate, steps, sigma, DELTA)
        return found.epsilon_pld, found.epsilon_rdp

    for smaller, larger in (
        (cost(rate=0.01), cost()),
        (cost(), cost(rate=0.03)),
        (cost(steps=100), cost()),
        (cost(), cost(steps=201)),
        (cost(sigma=1.6), cost()),
        (cost(), cost(sigma=1.0)),
    ):
        assert smaller[0] < larger[0] and smaller[1] < larger[1]


@pytest.mark.parametrize("value", [0.1234561, 1.0000001, 0.1 + 0.2, 7.0, 123.4567891, 1e-9, 0.0])
def test_rounding_is_upwards_and_by_less_than_a_millionth(value: float) -> None:
    assert value <= accounting.round_up(value) <= value + 1.001e-6
    assert accounting.round_up(math.inf) == math.inf


@pytest.mark.parametrize("bad", BAD)
def test_bad_numbers_are_refused(bad: float) -> None:
    with pytest.raises(BadInput):
        require_positive("value", bad)
    with pytest.raises(BadInput):
        require_delta(bad)
    with pytest.raises(BadInput):
        sampled_gaussian(0.1, 10, bad, DELTA)
    with pytest.raises(BadInput):
        sampled_gaussian(0.1, 10, 1.0, bad)
    with pytest.raises(BadInput):
        calibrate_sampled_gaussian(0.1, 10, bad, DELTA)
    with pytest.raises(BadInput):
        calibrate_sampled_gaussian(0.1, 10, 1.0, bad)


@pytest.mark.parametrize("rate", [*BAD, 1.0000001, 2.0])
def test_bad_rates_are_refused(rate: float) -> None:
    with pytest.raises(BadInput):
        sampled_gaussian(rate, 10, 1.0, DELTA)
    with pytest.raises(BadInput):
        calibrate_sampled_gaussian(rate, 10, 1.0, DELTA)
    with pytest.raises(BadInput):
        ClippedSum(label="a", map="identity", clip=1.0, noise_multiplier=1.0, rate=(0.5, rate))


@pytest.mark.parametrize("count", [0, -1, 1.5, math.nan, True, 10**400, "3"])
def test_bad_counts_are_refused(count: int) -> None:
    with pytest.raises(BadInput):
        sampled_gaussian(0.1, count, 1.0, DELTA)
    with pytest.raises(BadInput):
        ClippedSum(label="a", map="identity", clip=1.0, noise_multiplier=1.0, count=count)


@pytest.mark.parametrize("bad", [math.nan, -1.0, 5e-324, math.inf])
def test_a_query_refuses_bad_noise_and_clip(bad: float) -> None:
    with pytest.raises(BadInput):
        ClippedSum(label="a", map="identity", clip=1.0, noise_multiplier=bad)
    with pytest.raises(BadInput):
        ClippedSum(label="a", map="identity", clip=bad, noise_multiplier=1.0)


def test_a_query_refuses_a_clip_that_no_gradient_can_be_cut_to() -> None:
    """A factor of 1e-320 has four digits, and with a clip of 1e-300 a gradient's parts were no numbers at all."""
    made: tuple[Callable[[float], object], ...] = (
        lambda clip: ClippedSum(label="a", map="identity", clip=clip, noise_multiplier=1.0),
        lambda clip: TeacherVote(label="a", map="sign_vote", clip=clip, noise_multiplier=1.0, teachers=2),
        lambda clip: TeacherGradient(
            label="a", map="critic_gradient", clip=clip, noise_multiplier=1.0, teachers=2, draws=1
        ),
    )
    for query_with in made:
        assert query_with(LEAST_CLIP)
        for clip in (LEAST_CLIP * (1 - 1e-9), 1e-160, 1e-300):
            with pytest.raises(BadInput, match="larger clip"):
                query_with(clip)


def test_a_tiny_rate_is_not_free_because_the_accountants_lose_their_digits() -> None:
    """The Renyi accountant alone says 0 for this, with a warning of its own numerical instability."""
    cost = sampled_gaussian(1e-15, 1000, 1.0, 1e-15)
    assert cost.epsilon > 0
    assert cost == sampled_gaussian(accountants.SMALLEST_RATE, 1000, 1.0, 1e-15)


@pytest.mark.parametrize("rate", [0.01, 1.0])
def test_a_hopeless_epsilon_is_priced_without_filling_the_memory(rate: float) -> None:
    cost = sampled_gaussian(rate, 2**52, 2.0, DELTA)
    assert cost.epsilon_pld == math.inf and 1e3 < cost.epsilon < math.inf


def test_noise_outside_of_what_the_accountants_can_price_is_refused() -> None:
    for sigma in (0.049, 1e-300, 1e300):
        with pytest.raises(BadInput):
            sampled_gaussian(0.1, 10, sigma, DELTA)


def test_delta_must_be_below_one_over_the_number_of_records() -> None:
    require_delta(0.9e-3, 1000)
    for delta in (1e-3, 0.5, 1.0):
        with pytest.raises(BadInput):
            require_delta(delta, 1000)


def test_nothing_has_no_price_and_an_unknown_event_is_refused() -> None:
    with pytest.raises(BadInput):
        price((), DELTA)
    with pytest.raises(BadInput):
        price_event(PoissonSampledDpEvent(0.1, PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0))), DELTA)


def test_queries_without_noise_cannot_be_calibrated() -> None:
    free = ClippedSum(label="a", map="identity", clip=1.0, noise_multiplier=0.0)
    with pytest.raises(BadInput):
        calibrate(lambda _: (free,), 1.0, DELTA)


@pytest.mark.parametrize("below", [1e-3, 1e-6, 1e-9, 1e-12, 7e-18])
def test_a_refusal_shows_two_numbers_that_differ(below: float) -> None:
    """Never "noise_multiplier=0.05 is below 0.05"."""
    refused = [
        lambda: sampled_gaussian(0.5, 10, 0.05 - below, DELTA),
        lambda: sampled_gaussian(0.5, 10, 1e9 * (1 + max(below, 1e-15)), DELTA),
        lambda: require_delta(1e-3 * (1 + max(below, 1e-15)), 1000),
    ]
    for ask in refused:
        with pytest.raises(BadInput) as caught:
            ask()
        numbers = re.findall(r"(?:=|below|above) ?(\d[\d.e+-]*\d|\d)", caught.value.message)
        assert len(numbers) >= 2 and numbers[0] != numbers[1], caught.value.message
