"""How long a run takes here: what it took on a machine of ours, times how much slower this one is at the same small work.

Elixir's time goes into its T answers: each maps the sampled records once through a network, and the set about nine times, there
and back. Both are in proportion to the first and largest map of the network, at the size at which Elixir looks at pictures;
larger ones are averaged down at every answer. The generator that follows takes about a quarter as long. The unit costs come from
the kept results in benchmarks/results, and stay within 1.35 of all of them (tests/forecast/test_duration.py). Of methods that
nobody has timed there is no forecast.
"""

from __future__ import annotations

import math
import time

import torch

from limbeck.methods.elixir.generating import SMOOTH, UPSAMPLING, GeneratorSchedule
from limbeck.methods.elixir.working_size import at_size
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Schema

# Seconds on one core of the machine that made benchmarks/results, for each number of the largest map.
PER_SAMPLED_RECORD, PER_SET_RECORD = 1.8e-9, 7.0e-8
PER_AVERAGED = 2.4e-9  # for each number of a sampled picture that is averaged down first
# For each picture that a generator makes at a step: of each pixel, and for each answer, of each number of the largest map.
PER_DRAWN = {SMOOTH: 3.5e-7, UPSAMPLING: 6e-7}
PER_DRAWN_AND_MATCHED = 5e-9
PER_NUMBER = 6.7e-4  # of the first set, for each number of a record
START = 3.0  # to load libraries, and to write release and report
PROBE_SECONDS = 0.012  # what `probe` takes there
SLOWEST, FASTEST = 8.0, 0.25  # a machine that seems further off was only busy, or asleep
MANY_RECORDS = 32_561  # of Adult, on which Mosaic was timed
# Of other methods: seconds at their own settings for so many numbers of all records of the set, which they are in proportion to.
KEPT = {
    "dpmerf": (771.0, 500 * 784),
    "datalens": (91.0, 500 * 784),
    "gpate": (63.0, 500 * 784),
    "pategan": (80.0, 500 * 784),
}


def seconds_for(schema: Schema, plan: Plan, slower: float = 1.0) -> float | None:
    """None where nobody knows. slower: than the machine of the benchmarks, as `slowness` finds it."""
    found = reference_seconds(schema, plan)
    return None if found is None else round(START + (found - START) * slower, 1)


def reference_seconds(schema: Schema, plan: Plan) -> float | None:
    if plan.method == "elixir":
        return START + _elixir(schema, plan)
    if plan.method == "mosaic":
        return START + _mosaic(schema, plan)
    if plan.method in KEPT:
        seconds, numbers = KEPT[plan.method]
        return START + seconds * _set_size(schema, plan) * schema.numbers / numbers
    return None


def _set_size(schema: Schema, plan: Plan) -> float:
    return float((plan.settings.get("per_class") or 1) * len(schema.classes))


def _elixir(schema: Schema, plan: Plan) -> float:
    """The initial set takes a moment; the rest goes into answers of networks."""
    answers = plan.query("features")
    work = at_size(schema, plan.settings.get("size"))
    initial = PER_NUMBER * work.numbers + 6e-8 * schema.records * schema.numbers * math.sqrt(len(schema.classes))
    if not isinstance(answers, ClippedSum):
        return initial
    sizes = schema.class_sizes or (schema.records / len(schema.classes),) * len(schema.classes)
    rates = answers.rate if len(answers.rate) == len(sizes) else (answers.chance,) * len(sizes)
    sampled = sum(rate * size for rate, size in zip(rates, sizes, strict=True))
    # What is left of the records: the network sees the set as often as earlier answers are matched again.
    matched = float(1 + plan.settings["replay"]) / 8 * _set_size(schema, plan)
    step = _largest_map(work, plan) * (PER_SAMPLED_RECORD * sampled + PER_SET_RECORD * matched)
    if work is not schema:
        step += PER_AVERAGED * sampled * schema.numbers
    return initial + float(answers.count * step) + generator_seconds(schema, plan)


def generator_seconds(schema: Schema, plan: Plan) -> float:
    """What a generator takes that is matched when the set is done; 0 without one. Plans from before there were kinds have the
    first one, and pictures of the full size."""
    steps, kind, size = (plan.settings.get(name) for name in ("generator", "generator_kind", "size"))
    if not steps:
        return 0.0
    schedule = GeneratorSchedule(steps=steps, kind=kind or UPSAMPLING)
    work = at_size(schema, size)
    drawn = PER_DRAWN[schedule.kind] * math.prod((work if kind else schema).shape[1:])
    matched = PER_DRAWN_AND_MATCHED * _largest_map(work, plan) * schedule.answers
    return float(steps * schedule.pictures * len(schema.classes) * (drawn + matched))


def _largest_map(schema: Schema, plan: Plan) -> float:
    width = plan.settings.get("width") or 16
    if not schema.is_image:
        return 128.0
    _, height, wide = schema.shape
    edge = 4 if schema.shape == (1, 28, 28) else 0  # padded to 32 by the ConvNet
    return float(width * (height + edge) * (wide + edge))


def _mosaic(schema: Schema, plan: Plan) -> float:
    """Measuring and fitting take longer for more pairs of columns, of which more are asked about where there are more records; a
    small set is searched for, too."""
    columns, rows = max(len(schema.columns), 1), plan.settings.get("rows")
    made = rows if rows else schema.records
    search = plan.settings.get("search") or 0
    condensed = 5.0 + 0.008 * search if search else 0.0
    pairs = 0.03 * columns**2 * math.sqrt(min(1.0, schema.records / MANY_RECORDS))
    return 1.2 + pairs + 4e-6 * made * columns + condensed


def slowness() -> float:
    """How many times slower than the machine of the benchmarks this one is, by a convolution of a few hundredths of a second.

    >>> FASTEST <= slowness() <= SLOWEST
    True
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        least = min(probe() for _ in range(5))
    finally:
        torch.set_num_threads(before)
    return min(max(least / PROBE_SECONDS, FASTEST), SLOWEST)


def probe() -> float:
    """Seconds of a fixed piece of work, of the kind that runs are made of."""
    maps, weight = torch.ones(16, 32, 32, 32), torch.full((32, 32, 3, 3), 0.01)
    began = time.perf_counter()
    for _ in range(2):
        torch.relu(torch.nn.functional.conv2d(maps, weight, padding=1)).sum()
    return time.perf_counter() - began
