"""A comparison on paper: its methods, the sets to make with each, and what all of it costs. Reads no record, books nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from limbeck.data import DataSource
from limbeck.errors import BadInput
from limbeck.experiments.jobs import Job, repeated, require_repeats
from limbeck.methods import method_named
from limbeck.privacy.numbers import finite_or_word
from limbeck.runs.planning import plan_for
from limbeck.runs.request import DataReference

METHOD = "method"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Which methods, with which settings each, at which price; equal specifications go on in the same folder.

    repeats: sets by each method. networks: fits per set. epsilon: of every set; None where settings fix the noise.
    size: as in `limbeck evaluate`; None leaves it to each release.
    """

    methods: Mapping[str, Mapping[str, Any]]
    epsilon: float | None
    delta: float
    repeats: int
    test: str
    models: tuple[str, ...] | None = None
    preset: str | None = None
    networks: int | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        if not self.methods:
            raise BadInput("Name at least one method, with commas between them.", "limbeck methods")
        for name, settings in self.methods.items():
            method_named(name, settings)  # a misspelt one is refused before anything else is looked at
        require_repeats(self.repeats, "method", "--repeats")

    def described(self) -> dict[str, Any]:
        """What a folder of this comparison is recognised by."""
        return {**asdict(self), "epsilon": None if self.epsilon is None else finite_or_word(self.epsilon)}


def plan_comparison(comparison: Comparison, data: DataReference, out: Path) -> tuple[list[Job], DataSource]:
    """All sets of all methods: the first set of each, then the second of each. So whatever is there when the comparison is
    stopped compares the methods."""
    source = data.source()
    by_method = []
    for name, settings in comparison.methods.items():
        plan, _ = plan_for(data, name, settings, comparison.epsilon, comparison.delta)
        by_method.append(repeated(plan, comparison.repeats, {METHOD: name}, out / name))
    return [job for round_of_sets in zip(*by_method, strict=True) for job in round_of_sets], source
