"""How long a run takes: within 1.35 of the times that were kept with the results."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from limbeck.data.named import named_set
from limbeck.forecast.duration import generator_seconds, reference_seconds, seconds_for, slowness
from limbeck.runs.planning import make_plan, method_for

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


@pytest.mark.parametrize(
    ("data", "epsilon", "size", "name"),
    [
        ("mnist", 1.0, 50, "elixir-mnist-epsilon-1-cpu"),
        ("mnist", 10.0, 50, "elixir-mnist-epsilon-10-cpu"),
        ("mnist", 1.0, 200, "elixir-mnist-epsilon-1-200-per-class-cpu"),
        ("fashion-mnist", 10.0, 200, "elixir-fashion-mnist-epsilon-10-200-per-class-cpu"),
        ("cifar10", 1.0, 50, "elixir-cifar10-epsilon-1-cpu"),
        ("cifar10", 1.0, 200, "elixir-cifar10-epsilon-1-200-per-class-cpu"),
    ],
)
def test_a_kept_time_is_met(data: str, epsilon: float, size: int, name: str) -> None:
    kept = json.loads((RESULTS / f"{name}.json").read_text())["condense_seconds"]
    schema = named_set(data).schema
    # These runs were timed before a generator came with every release.
    plan = make_plan(schema, method_for(schema, None, {"per_class": size, "generator": 0}), epsilon, 1e-5)
    found = reference_seconds(schema, plan)
    assert found is not None and 1 / 1.35 < found / kept < 1.35
    slower = seconds_for(schema, plan, slower=2.0)
    assert slower is not None and 1.9 < slower / found < 2.0


def test_a_generator_takes_as_long_as_a_kept_one() -> None:
    """Beside the set, which the command that was timed did not move."""
    (kept,) = json.loads((RESULTS / "distilled-fashion-mnist-epsilon-1-generator.json").read_text())["sets"]["drawn"]
    schema = named_set("fashion-mnist").schema
    plans = [
        make_plan(schema, method_for(schema, None, {"generator": steps}), 1.0, 1e-5)
        for steps in (0, kept["settings"]["generator"], None)
    ]
    without, found, usual = (reference_seconds(schema, plan) or 0 for plan in plans)
    assert 1 / 1.35 < (found - without) / kept["cpu_seconds"] < 1.35
    assert 0.1 < (usual - without) / without < 0.4  # what it adds to a run where nobody says anything


def test_a_generator_of_large_pictures_is_made_at_the_size_at_which_they_are_looked_at() -> None:
    schema = dataclasses.replace(named_set("cifar10").schema, shape=(3, 256, 256))
    plan = make_plan(schema, method_for(schema, None, {}), 1.0, 1e-5)
    before = {name: value for name, value in plan.settings.items() if name != "generator_kind"}
    assert generator_seconds(schema, plan) < 600 < generator_seconds(schema, dataclasses.replace(plan, settings=before))


def test_a_method_that_nobody_timed_has_no_forecast() -> None:
    schema = named_set("mnist").schema
    assert reference_seconds(schema, make_plan(schema, method_for(schema, "dc", {}), float("inf"), 1e-5)) is None
    assert 0.25 <= slowness() <= 8
