"""The forecast of usefulness: what was fitted, what it says, and its error on cases that it has not seen."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks import forecast_fit
from limbeck.forecast.facts import Facts
from limbeck.forecast.fitted import MARGIN
from limbeck.forecast.separation import accuracies_of, accuracy_of, separation_of
from limbeck.forecast.surface import ease, likeness, place, weights
from limbeck.forecast.usefulness import USEFUL, epsilon_for, records_for, shipped, usefulness

KEPT = json.loads((Path(__file__).parents[2] / "benchmarks" / "results" / "forecast-fit.json").read_text())
HARD = Facts(method="elixir", kind="colour", classes=2, records=150, numbers=3072, epsilon=0.5, size=50)


def test_the_kept_forecasts_are_those_of_what_is_shipped() -> None:
    kept, off = {case["case"]: case for case in KEPT["cases"]}, []
    for point in forecast_fit.points():
        said = usefulness(point.facts)
        unsaid = usefulness(replace(point.facts, real_accuracy=None))
        assert said is not None and unsaid is not None
        case = kept.pop(point.name)
        assert case["accuracy"] == pytest.approx(point.accuracy, abs=0.01)
        assert case["forecast"] == pytest.approx(unsaid.accuracy, abs=0.2)
        assert case["forecast_where_real_accuracy_is_said"] == pytest.approx(said.accuracy, abs=0.2)
        if point.held_out:
            off.append(abs(said.accuracy - point.accuracy))
    assert not kept
    stated = KEPT["held_out"]["real_accuracy_said"]
    assert stated["cases"] == len(off)
    if off:
        assert stated["mean_absolute_error"] == pytest.approx(sum(off) / len(off), abs=0.1)


def test_the_page_states_the_kept_errors() -> None:
    page = (Path(__file__).parents[2] / "docs" / "forecast.md").read_text()
    for part in ("held_out", "each_left_out_in_turn"):
        for stated in KEPT[part].values():
            if stated["cases"]:
                cells = (stated["cases"], stated["mean_absolute_error"], stated["largest"])
                assert " | ".join(map(str, cells)) in page, part


def test_on_cases_that_no_fit_has_seen_it_is_what_was_wanted_of_it() -> None:
    """By at least twelve, of all kinds, where it is said how hard the data is."""
    stated = KEPT["held_out"]["real_accuracy_said"]
    assert stated["cases"] >= 12 and set(stated["by_kind"]) == {"grey", "colour", "table"}
    assert stated["mean_absolute_error"] < 5


def test_margins_are_wide_where_noise_begins_to_win_and_narrow_where_it_has_not() -> None:
    """Of easy data sets of the very same plan differ by tens of points in between."""
    facts = replace(HARD, kind="grey", numbers=784, epsilon=1.0, real_accuracy=99.0)
    widths = []
    for records in (2.0, 100.0, 5000.0):
        found = usefulness(replace(facts, records=records))
        assert found is not None and found.low <= found.accuracy <= found.high
        widths.append(found.high - found.low)
    assert widths[1] > 2 * widths[2] and widths[1] > 10


def test_a_margin_holds_the_sets_that_it_says() -> None:
    """Of single sets, not of their mean; one that does worse than guessing counts as guessing."""
    for part in KEPT["each_left_out_in_turn"].values():
        assert part["sets_within_margin"] >= 0.78
    point = replace(forecast_fit.points()[0], sets=(40.0, 70.0, 90.0, 99.0))
    point = replace(point, facts=replace(point.facts, classes=2, shares=()))
    assert [point.covered(*ends) for ends in ((50.0, 95.0), (60.0, 95.0), (50.0, 60.0))] == [0.75, 0.5, 0.25]


def test_who_says_how_hard_the_data_are_is_heard() -> None:
    easy, hard = (usefulness(replace(HARD, records=3000.0, real_accuracy=said)) for said in (99.0, 70.0))
    assert easy is not None and hard is not None and easy.accuracy > hard.accuracy > hard.chance
    assert hard.accuracy < 75


def test_more_records_and_more_epsilon_never_forecast_less() -> None:
    for kind, method in (("grey", "elixir"), ("colour", "elixir"), ("table", "mosaic")):
        facts = replace(HARD, kind=kind, method=method)
        found = usefulness(facts)
        assert found is not None and found.low <= found.accuracy <= found.high and found.chance == 50
        for more in (replace(facts, records=3000.0), replace(facts, epsilon=8.0)):
            better = usefulness(more)
            assert better is not None and better.accuracy >= found.accuracy
        assert MARGIN[kind]["signal"] + MARGIN[kind]["share"] > 0


@pytest.mark.parametrize("kind", ["grey", "colour", "table"])
@pytest.mark.parametrize("said", [None, 70.0, 97.0, 100.0])
def test_what_other_sets_were_off_never_makes_more_records_worth_less(kind: str, said: float | None) -> None:
    """The correction alone would, beside a set that was lucky."""
    found = []
    for records in np.geomspace(20, 900, 60):
        facts = replace(HARD, kind=kind, method="mosaic" if kind == "table" else "elixir", records=float(records))
        useful = usefulness(replace(facts, real_accuracy=said))
        assert useful is not None
        found.append(useful.accuracy)
    assert all(later >= earlier - 0.3 for earlier, later in pairwise(found)), found


def test_a_case_moves_the_forecast_of_those_that_are_like_it_and_of_no_other() -> None:
    surface = shipped()
    alone = replace(surface, cases=np.zeros((0, 6)))
    facts = replace(HARD, kind="grey", numbers=784, records=40.0, epsilon=1.0, real_accuracy=97.0)
    assert alone.moved(facts) == pytest.approx(0, abs=0.01)
    at = place(facts, surface.apart(facts))
    one = replace(surface, cases=np.array([[0.0, *at, 6.0]]))
    assert one.moved(facts) > 3
    far = [
        replace(facts, records=facts.records * 400),
        replace(facts, real_accuracy=60.0),
        replace(facts, kind="table"),
    ]
    assert all(abs(one.moved(each)) < 0.2 for each in far)
    # With networks that ask it is another method, which is alike by half.
    assert 0 < one.moved(replace(facts, answers=500)) < one.moved(facts)


def test_where_a_case_lies_the_forecast_is_near_it_and_the_nearer_the_surer_it_is() -> None:
    way, at, curve = np.zeros(1), np.array([[4.0, 3.0, 0.0, 0.0]]), np.array([75.0])
    for unsure, share in ((0.1, 0.95), (14.0, 0.5)):
        worth = weights(way, at, curve, np.array([50.0]), curve + 10, np.array([unsure]))
        moved = ease(curve, 50.0) * (likeness(way, at, way, at) @ worth)
        assert moved[0] == pytest.approx(10 * share, abs=0.3)


def test_what_is_needed_reaches_what_it_says() -> None:
    records, epsilon = records_for(HARD), epsilon_for(HARD)
    assert records is not None and records > 300
    reached = usefulness(
        replace(HARD, records=records / 2, answers=500 if records >= 2000 else 0)
    )  # its networks ask then
    assert reached is not None and reached.share >= USEFUL - 0.01
    if epsilon is not None:
        reached = usefulness(replace(HARD, epsilon=epsilon))
        assert reached is not None and reached.share >= USEFUL - 0.01


def test_nothing_is_said_of_what_nobody_has_scored() -> None:
    assert usefulness(replace(HARD, method="pategan")) is None
    assert usefulness(replace(HARD, epsilon=math.inf)) is None
    assert usefulness(replace(HARD, classes=1)) is None


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.1,) * 10, (0.76, 0.24)])
def test_accuracy_and_separation_are_each_others_inverse(shares: tuple[float, ...]) -> None:
    assert accuracy_of(0, shares) == pytest.approx(100 * max(shares))
    for apart in (0.8, 2.0, 4.0):
        assert separation_of(accuracy_of(apart, shares), shares) == pytest.approx(apart, abs=1e-6)
    assert separation_of(5, shares) == 0
    assert accuracies_of(np.array([0.83]), shares)[0] == pytest.approx(accuracy_of(0.83, shares), abs=0.01)
    # Of two equal classes it is the normal distribution function.
    assert accuracy_of(1.3, (0.5, 0.5)) == pytest.approx(100 * norm.cdf(1.3 / math.sqrt(2)), abs=1e-3)


def test_no_model_does_worse_than_the_largest_class() -> None:
    found = usefulness(replace(HARD, shares=(0.9, 0.1)))
    assert found is not None and found.low >= 90 and found.chance == 90


def test_many_classes_of_about_the_same_share_count_as_one() -> None:
    exact = [share / 210 for share in range(1, 21)]
    many = [share / 420 for share in exact for _ in range(2)]
    many = [share / sum(many) for share in many]
    assert accuracy_of(2.0, many) == pytest.approx(accuracy_of(2.0, many[::-1]))
    uneven = [(1 + place / 400) / 60 for place in range(60)]
    uneven = [share / sum(uneven) for share in uneven]
    assert accuracy_of(2.0, uneven) == pytest.approx(accuracy_of(2.0, [1 / 60] * 60), abs=0.3)
