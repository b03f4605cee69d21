"""The accuracy of one model over several fits, as it is kept: rounded mean, standard deviation and every single fit."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from limbeck.evaluate.reading import finite, number

DIGITS = 4


@dataclass(frozen=True)
class Accuracy:
    """In percent. std is the sample's; None after a single fit, where it is not known.

    mean is None only where a file holds no number for it.
    """

    mean: float | None
    std: float | None = None
    runs: tuple[float, ...] = ()

    @classmethod
    def of(cls, runs: Sequence[float]) -> Accuracy:
        """
        >>> Accuracy.of([80.0, 90.0])
        Accuracy(mean=85.0, std=7.0711, runs=(80.0, 90.0))
        >>> Accuracy.of([80.0])
        Accuracy(mean=80.0, std=None, runs=(80.0,))
        """
        return cls(round(statistics.fmean(runs), DIGITS), std_of(runs), tuple(round(run, DIGITS) for run in runs))

    def to_dict(self) -> dict[str, Any]:
        """
        >>> Accuracy(85.0, None, (85.0,)).to_dict()
        {'mean': 85.0, 'std': None, 'runs': [85.0]}
        """
        return {"mean": self.mean, "std": self.std, "runs": list(self.runs)}

    @classmethod
    def from_dict(cls, value: object) -> Accuracy:
        """Reads what is there, also a bare mean.

        >>> Accuracy.from_dict({"mean": 85.0, "runs": "x"}), Accuracy.from_dict(85.0)
        (Accuracy(mean=85.0, std=None, runs=()), Accuracy(mean=85.0, std=None, runs=()))
        """
        if not isinstance(value, Mapping):
            return cls(number(value))
        runs = value.get("runs")
        listed = runs if isinstance(runs, list) else []
        return cls(
            number(value.get("mean")), number(value.get("std")), tuple(r for r in listed if finite(r) is not None)
        )


def std_of(runs: Sequence[float]) -> float | None:
    """Of a single run it is not known: None, not 0."""
    return round(statistics.stdev(runs), DIGITS) if len(runs) > 1 else None


def accuracies_in(value: object) -> dict[str, Accuracy] | None:
    """By model, from {"model": {"mean": ...}} or from the same under "accuracy"; None where there is neither.

    >>> accuracies_in({"accuracy": {"mlp": {"mean": 90.0}}})
    {'mlp': Accuracy(mean=90.0, std=None, runs=())}
    """
    if isinstance(value, Mapping) and isinstance(value.get("accuracy"), Mapping):
        value = value["accuracy"]
    return {str(name): Accuracy.from_dict(each) for name, each in value.items()} if isinstance(value, Mapping) else None
