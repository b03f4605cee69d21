"""A sweep on paper: its points, the sets to make at each, and what all of it costs. Reads no record, books nothing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbeck.data import DataSource
from limbeck.errors import BadInput
from limbeck.experiments.jobs import Job, repeated, require_repeats
from limbeck.runs.planning import plan_for
from limbeck.runs.request import DataReference

EPSILON = "epsilon"


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What is varied and what is not; equal specifications go on in the same folder.

    vary: the values of each varied setting; `epsilon` is one. repeat: sets at every point. networks: fits per set. size: as in
    `limbeck evaluate`; None leaves it to each release.
    """

    method: str
    vary: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, Any]
    epsilon: float | None
    delta: float
    repeat: int
    test: str
    models: tuple[str, ...] | None = None
    preset: str | None = None
    networks: int | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        if not self.vary:
            raise BadInput("Say what to vary, such as --vary epsilon=0.5,1,2.")
        require_repeats(self.repeat, "point", "--repeat")
        for key, values in self.vary.items():
            if not values or len(set(values)) != len(values):
                raise BadInput(f"--vary {key} needs different values, got '{','.join(values)}'.")
            if key in self.settings or (key == EPSILON and self.epsilon is not None):
                raise BadInput(f"'{key}' is given once for all points and varied as well; leave one of the two out.")


def plan_jobs(sweep: Sweep, data: DataReference, out: Path) -> tuple[list[Job], DataSource]:
    """All sets of all points. The points are the combinations of the varied values, the first one slowest."""
    jobs: list[Job] = []
    source = data.source()
    for number, values in enumerate(_points(sweep.vary), 1):
        settings = {**sweep.settings, **{key: value for key, value in values.items() if key != EPSILON}}
        epsilon = _epsilon_value(values[EPSILON]) if EPSILON in values else sweep.epsilon
        plan, _ = plan_for(data, sweep.method, settings, epsilon, sweep.delta)
        jobs += repeated(plan, sweep.repeat, values, out / "points" / f"{number:03d}")
    return jobs, source


def _points(vary: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    for chosen in itertools.product(*vary.values()):
        yield dict(zip(vary, chosen, strict=True))


def _epsilon_value(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value > 0:
        raise BadInput(f"epsilon must be a positive number or 'inf', got --vary epsilon={text}.")
    return value
