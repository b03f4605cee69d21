"""What the accuracies of a set are compared with, as it is kept: noise with the same labels, and the real records."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from limbeck.evaluate.accuracy import DIGITS, Accuracy, accuracies_in
from limbeck.evaluate.models import CLASSIFIERS
from limbeck.evaluate.reading import finite, mapping, number, text, whole

NOISE = "uniform noise with the same labels"


@dataclass(frozen=True)
class ClassifiersMean:
    """The last line of GS-WGAN's tables: the mean over its classifiers, and over how many of the thirteen."""

    classifiers: int
    mean: float

    @classmethod
    def of(cls, values: Mapping[str, float]) -> ClassifiersMean | None:
        """Of values by model; None for fewer than two classifiers.

        >>> ClassifiersMean.of({"lda": 50.0, "cnn": 60.0, "convnet": 0.0})
        ClassifiersMean(classifiers=2, mean=55.0)
        """
        found = [values[model] for model in CLASSIFIERS if model in values]
        return cls(len(found), round(statistics.fmean(found), DIGITS)) if len(found) > 1 else None

    def to_dict(self) -> dict[str, Any]:
        return {"classifiers": self.classifiers, "mean": self.mean}

    @classmethod
    def from_dict(cls, value: object) -> ClassifiersMean | None:
        found = mapping(value)
        count, mean = finite(found.get("classifiers")), finite(found.get("mean"))
        return None if count is None or mean is None else cls(int(count), mean)


@dataclass(frozen=True)
class Control:
    """Accuracies of models trained on noise: what is learnt from it was in the labels alone."""

    accuracy: Mapping[str, Accuracy]
    records: str | None = NOISE

    def to_dict(self) -> dict[str, Any]:
        return {"records": self.records, "accuracy": {model: each.to_dict() for model, each in self.accuracy.items()}}

    @classmethod
    def from_dict(cls, value: object) -> Control | None:
        found = accuracies_in(value)
        return None if found is None else cls(found, text(mapping(value).get("records")))


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """Accuracies of models trained on the real records themselves, of which `of_records` there are.

    records: how many each model was trained on. calibrated: the accuracy of the set in percent of the ceiling.
    """

    accuracy: Mapping[str, Accuracy]
    data: str | None = None
    preset: str | None = None
    repeats: int | None = None
    records: Mapping[str, int] = field(default_factory=dict)
    of_records: int | None = None
    calibrated: Mapping[str, float] = field(default_factory=dict)
    note: str | None = None

    def to_dict(self) -> dict[str, Any]:
        mean = ClassifiersMean.of(self.calibrated)
        return {
            "data": self.data,
            "preset": self.preset,
            "repeats": self.repeats,
            "records": dict(self.records),
            "of_records": self.of_records,
            "accuracy": {model: each.to_dict() for model, each in self.accuracy.items()},
            "calibrated": dict(self.calibrated),
            "calibrated_classifiers_mean": None if mean is None else mean.to_dict(),
            "note": self.note,
        }

    @classmethod
    def from_dict(cls, value: object) -> Ceiling | None:
        found, values = accuracies_in(value), mapping(value)
        if found is None:
            return None
        counts, shares = mapping(values.get("records")), mapping(values.get("calibrated"))
        return cls(
            accuracy=found,
            data=text(values.get("data")),
            preset=text(values.get("preset")),
            repeats=whole(values.get("repeats")),
            records={model: count for model, each in counts.items() if (count := whole(each)) is not None},
            of_records=whole(values.get("of_records")),
            calibrated={model: share for model, each in shares.items() if (share := number(each)) is not None},
            note=text(values.get("note")),
        )


def calibrated(accuracy: Mapping[str, Accuracy], ceiling: Mapping[str, Accuracy]) -> dict[str, float]:
    """The accuracy in percent of the one that the same model reaches when it is trained on real records."""
    return {
        model: round(100.0 * score.mean / best, DIGITS)
        for model, score in accuracy.items()
        if score.mean is not None and model in ceiling and (best := ceiling[model].mean) is not None and best > 0
    }
