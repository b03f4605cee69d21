"""What a query says that it costs, and that a price follows from all of it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from tiny import DELTA

from limbeck.errors import BadInput, BudgetRefused
from limbeck.privacy import renyi
from limbeck.privacy.accounting import price, price_event, round_up
from limbeck.privacy.calibration import _polish
from limbeck.privacy.plan import draw_up
from limbeck.privacy.queries import ClippedSum, TeacherGradient, TeacherVote
from limbeck.privacy.schema import Schema


def vote(**changed: Any) -> TeacherVote:
    values: dict[str, Any] = {"noise_multiplier": 30.0, "teachers": 20, "count": 7}
    return TeacherVote(label="votes", map="sign_vote", clip=2.0, **{**values, **changed})


def gradient(**changed: Any) -> TeacherGradient:
    values: dict[str, Any] = {"noise_multiplier": 3.0, "teachers": 20, "draws": 4, "count": 7}
    return TeacherGradient(label="gradients", map="critic_gradient", clip=2.0, **{**values, **changed})


def sums(**changed: Any) -> ClippedSum:
    values: dict[str, Any] = {"noise_multiplier": 30.0, "rate": (0.5,), "count": 7}
    return ClippedSum(label="sums", map="identity", clip=2.0, **{**values, **changed})


def test_votes_are_gaussians_one_for_each_answer() -> None:
    assert vote().event() == SelfComposedDpEvent(GaussianDpEvent(30.0), 7)
    assert isinstance(vote(noise_multiplier=0.0).event(), NonPrivateDpEvent)


def test_gradients_are_one_teacher_of_all_for_each_part_of_each_answer() -> None:
    once = SampledWithoutReplacementDpEvent(20, 1, GaussianDpEvent(3.0))
    assert gradient().event() == SelfComposedDpEvent(once, 28)
    assert gradient(teachers=1).event() == SelfComposedDpEvent(GaussianDpEvent(3.0), 28)
    assert isinstance(gradient(noise_multiplier=0.0).event(), NonPrivateDpEvent)


def test_a_draw_is_priced_as_a_subset_and_not_as_a_poisson_sample() -> None:
    """A record changes what one teacher holds, so that one gradient gives way to another: a Poisson sample would be cheaper,
    and no privacy-loss grid is proved for it."""
    found = price((gradient(),), DELTA)
    subset, poisson = (
        renyi.epsilon(28 * curve(1 / 20, 3.0), DELTA) for curve in (renyi.subset_gaussian, renyi.poisson_gaussian)
    )
    assert poisson < 0.9 * subset
    assert subset <= found.epsilon == found.epsilon_rdp <= subset + 2e-6
    assert found.epsilon_pld == math.inf and found.epsilon_exact is None


def test_repetitions_of_repetitions_multiply() -> None:
    nested = SelfComposedDpEvent(SelfComposedDpEvent(GaussianDpEvent(30.0), 5), 7)
    assert price_event(nested, DELTA) == price_event(SelfComposedDpEvent(GaussianDpEvent(30.0), 35), DELTA)
    assert price_event(ComposedDpEvent([nested]), DELTA) == price_event(nested, DELTA)


def test_an_unknown_event_is_refused_among_known_ones_too() -> None:
    for event in (LaplaceDpEvent(1.0), PoissonSampledDpEvent(0.1, LaplaceDpEvent(1.0))):
        for events in ([event], [GaussianDpEvent(30.0), event], [SelfComposedDpEvent(event, 3), GaussianDpEvent(30.0)]):
            with pytest.raises(BadInput, match="No accountant is proved"):
                price_event(ComposedDpEvent(events), DELTA)


def test_calibrated_noise_is_raised_until_the_price_holds() -> None:
    """Where secants end a hair too low: a price that falls in steps, of which the last one is near."""
    found = _polish(lambda s: 1.00005 if s < 1.0007 else 0.9, 1.0005, 1.0)
    assert found == 1.0007


@pytest.mark.parametrize("value", [0.021167, 0.1, 1.0, 9.9926, 12.72797, 72.515639])
def test_what_is_rounded_up_is_never_below(value: float) -> None:
    """Also where the product with a million rounds to a whole number that the value lies above."""
    for _ in range(20):
        assert value <= round_up(value) <= value + 2e-6
        value = math.nextafter(value, math.inf)


@pytest.mark.parametrize("change", ["count", "noise_multiplier", "rate", "draws", "teachers"])
@pytest.mark.parametrize("query", [sums(), vote(), gradient()], ids=lambda query: query.label)
def test_whatever_makes_a_query_worse_makes_it_dearer(query: Any, change: str) -> None:
    worse = {
        "count": 14,
        "noise_multiplier": query.noise_multiplier / 2,
        "rate": (0.5, 0.9),
        "draws": 8,
        "teachers": 10,
    }
    if not hasattr(query, change) or (change == "teachers" and isinstance(query, TeacherVote)):
        return  # all vote, however many there are
    kind = {"sums": sums, "votes": vote, "gradients": gradient}[query.label]
    assert price((kind(**{change: worse[change]}),), DELTA).epsilon > price((query,), DELTA).epsilon * 1.05


def test_every_query_counts_wherever_it_stands() -> None:
    alone = [price((query,), DELTA).epsilon for query in (sums(), vote())]
    for queries in ((sums(), vote()), (vote(), sums())):
        assert price(queries, DELTA).epsilon > max(alone) * 1.02


def test_a_plan_never_costs_more_than_was_asked_for(schema: Schema) -> None:
    """Neither with noise that was chosen nor with noise that the user fixed; delta is below 1/N, and nothing is guessed."""

    def drawn_up(epsilon: float | None, delta: float = DELTA, sigma: float | None = None, of: Schema = schema) -> Any:
        at = lambda s: (sums(noise_multiplier=s),)  # noqa: E731
        return draw_up(
            schema=of, method="m", settings={}, queries_at=at, epsilon=epsilon, delta=delta, noise_multiplier=sigma
        )

    free = drawn_up(None, sigma=5.0).price.epsilon
    assert drawn_up(free, sigma=5.0).price.epsilon == free
    assert 0.99 * free < drawn_up(free).price.epsilon <= free
    for asked in (free - 1e-6, free / 1.5):
        with pytest.raises(BudgetRefused, match="more than the"):
            drawn_up(asked, sigma=5.0)
    for delta in (1 / 120, 0.02):
        with pytest.raises(BadInput, match="whole records"):
            drawn_up(1.0, delta)
    guessed = replace(schema, unconfirmed=("high",))
    with pytest.raises(BadInput, match="high"):
        drawn_up(1.0, of=guessed)
