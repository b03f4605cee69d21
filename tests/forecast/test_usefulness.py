"""The forecast of usefulness: what was fitted, what it says, and its error on cases that it has not seen."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import forecast_fit
from limbeck.forecast.fitted import COEFFICIENTS, MARGIN
from limbeck.forecast.usefulness import USEFUL, Facts, epsilon_for, records_for, usefulness

KEPT = json.loads((Path(__file__).parents[2] / "benchmarks" / "results" / "forecast-fit.json").read_text())
HARD = Facts(method="elixir", kind="colour", classes=2, records=150, numbers=3072, epsilon=0.5, size=50)


def test_the_kept_error_is_that_of_what_is_shipped() -> None:
    off = []
    for point in forecast_fit.points():
        if point["held_out"]:
            kind = point["facts"].kind
            line = sum(
                COEFFICIENTS[kind][name] * value for name, value in forecast_fit.features(point["facts"]).items()
            )
            kept = next(case for case in KEPT["cases"] if case["case"] == point["name"])
            if not point["short"]:
                chance = 100 / point["facts"].classes
                assert kept["forecast"] == pytest.approx(chance + (100 - chance) / (1 + math.exp(-line)), abs=0.02)
            off.append(abs(kept["forecast"] - point["accuracy"]))
    assert len(off) >= 12
    assert KEPT["held_out"]["mean_absolute_error"] == pytest.approx(sum(off) / len(off), abs=0.02)


def test_more_records_and_more_epsilon_never_forecast_less() -> None:
    for kind, method in (("grey", "elixir"), ("colour", "elixir"), ("table", "mosaic")):
        facts = replace(HARD, kind=kind, method=method)
        found = usefulness(facts)
        assert found is not None and found.low <= found.accuracy <= found.high and found.chance == 50
        for more in (replace(facts, records=3000.0), replace(facts, epsilon=8.0)):
            better = usefulness(more)
            assert better is not None and better.accuracy >= found.accuracy
        assert MARGIN[kind] > 0


def test_what_is_needed_reaches_what_it_says() -> None:
    records, epsilon = records_for(HARD), epsilon_for(HARD)
    assert records is not None and records > 300
    reached = usefulness(replace(HARD, records=records / 2))
    assert reached is not None and reached.share >= USEFUL - 0.01
    if epsilon is not None:
        reached = usefulness(replace(HARD, epsilon=epsilon))
        assert reached is not None and reached.share >= USEFUL - 0.01


def test_nothing_is_said_of_what_nobody_has_scored() -> None:
    assert usefulness(replace(HARD, method="pategan")) is None
    assert usefulness(replace(HARD, epsilon=math.inf)) is None
    assert usefulness(replace(HARD, classes=1)) is None


def test_no_model_does_worse_than_the_largest_class() -> None:
    found = usefulness(replace(HARD, least=0.9))
    assert found is not None and found.low >= 90 and found.chance == 90
