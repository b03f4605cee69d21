"""LDPDC: groups that suit the budget, and a run that was booked with others keeps them."""

from __future__ import annotations

import pytest

from limbeck.methods import method_named
from limbeck.privacy.schema import Schema
from working import make_plan

DIGITS = Schema(
    name="m", shape=(1, 28, 28), low=0, high=255, classes=tuple("0123456789"), records=60_000, class_sizes=(6000,) * 10
)


@pytest.mark.parametrize(("epsilon", "group"), [(0.2, 15), (1.0, 15), (2.9, 15), (3.0, 6), (10.0, 6)])
def test_groups_are_small_where_there_is_little_noise(epsilon: float, group: int) -> None:
    plan = make_plan(DIGITS, method_named("ldpdc", {}), epsilon, 1e-5)
    (query,) = plan.queries
    assert plan.settings["L"] == group and set(query.rate) == {group / 6000}
    assert plan.price.epsilon <= epsilon


def test_pictures_in_colour_keep_the_large_groups() -> None:
    colour = Schema(
        name="c", shape=(3, 32, 32), low=0, high=255, classes=("a", "b"), records=10_000, class_sizes=(5000, 5000)
    )
    assert make_plan(colour, method_named("ldpdc", {}), 10.0, 1e-5).settings["L"] == 15


@pytest.mark.parametrize("settings", [{"L": 15}, {"L": 50, "sigma": 1.0}])
def test_a_group_that_was_booked_is_kept(settings: dict[str, float]) -> None:
    method = method_named("ldpdc", settings)
    assert method.resolved(DIGITS, 10.0) == method
    assert set(method.queries(DIGITS, 1.0)[0].rate) == {settings["L"] / 6000}  # type: ignore[union-attr]


def test_with_a_noise_of_its_own_groups_are_the_large_ones() -> None:
    assert method_named("ldpdc", {"sigma": 1.0}).resolved(DIGITS, None).L == 15  # type: ignore[attr-defined]
