"""The rows of an evaluation: every chosen model, trained on the set and, where asked, on a yardstick beside it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from limbeck.evaluate.classical import Untrainable
from limbeck.evaluate.downstream import Score, Task, fits, score_model
from limbeck.evaluate.models import ARCHITECTURES, CLASSIFIERS, SCALED, Choice
from limbeck.evaluate.presets import OPTIMISTIC, Preset
from limbeck.evaluate.spread import spread
from limbeck.progress import Reporter

# On real data these take many minutes for each 10,000 records and pass; what more records add is a fraction of a point.
SLOW = ("convnet", "alexnet", "vgg11", "resnet18", "adaboost")
SLOW_RECORDS = 10_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Training:
    """Records to train on, and how. `real` records are thinned out for slow models, or for all to `most` of them."""

    title: str
    x: Tensor
    y: Tensor
    preset: Preset
    repeats: int
    real: bool = False
    most: int | None = None

    def records(self, model: str) -> int:
        whole = self.x.shape[0]
        if not self.real:
            return whole
        limit = self.most if self.most is not None else SLOW_RECORDS if model in SLOW else whole
        return min(whole, limit)

    def task(self, model: str, test_x: Tensor, test_y: Tensor, classes: int, seed: int) -> Task:
        count = self.records(model)
        if count == self.x.shape[0]:
            return Task(self.x, self.y, test_x, test_y, classes)
        rows = torch.randperm(self.x.shape[0], generator=torch.Generator().manual_seed(seed))[:count]
        return Task(self.x[rows], self.y[rows], test_x, test_y, classes)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One model. `score` is None where `skipped` says why there is none."""

    model: str
    records: int
    preset: Preset
    score: Score | None
    skipped: str | None = None

    def to_dict(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            "model": self.model,
            "family": "architecture" if self.model in ARCHITECTURES else "classifier",
            "records": self.records,
        }
        if self.model in SCALED:
            values["width"] = self.preset.width
        if self.score is None:
            return {**values, "skipped": self.skipped}
        values |= {**spread(self.score.runs), "labels": self.score.labels, "seconds": round(self.score.seconds, 1)}
        if self.score.best:
            values["best_on_test"] = {**spread(self.score.best), "selection": OPTIMISTIC}
        if self.score.areas:
            values["area_under_curve"] = spread(self.score.areas)
        return values


def score_rows(
    training: Training,
    choices: Sequence[Choice],
    test: tuple[Tensor, Tensor],
    classes: int,
    seed: int,
    device: str,
    reporter: Reporter,
) -> list[Row]:
    """A row for every choice, in order."""
    total = sum(fits(choice.model, training.repeats) for choice in choices if not choice.skipped)
    done = 0
    reporter.start(f"{training.title}, preset {training.preset.name}", total, 0)

    def tick() -> None:
        nonlocal done
        done += 1
        reporter.advance(done)

    rows = []
    for choice in choices:
        before, model = done, choice.model
        score, skipped = None, choice.skipped
        if skipped is None:
            task = training.task(model, *test, classes, seed)
            try:
                score = score_model(model, task, training.preset, training.repeats, seed, device, tick)
            except Untrainable as reason:
                skipped = reason.message
                done = before + fits(model, training.repeats)
                reporter.advance(done)
        rows.append(
            Row(
                model=model,
                records=training.records(model),
                preset=training.preset,
                score=score,
                skipped=skipped,
            )
        )
    return rows


def noise_like(x: Tensor, seed: int) -> Tensor:
    """A control: as many records of uniform noise. What is learnt from it was in the labels alone."""
    return torch.rand(x.shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def accuracies(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    return {row.model: spread(row.score.runs) for row in rows if row.score is not None}


def calibrated(accuracy: Mapping[str, Any], ceiling: Mapping[str, Any]) -> dict[str, float]:
    """The accuracy in percent of the one that the same model reaches when it is trained on real records."""
    return {
        model: round(100.0 * score["mean"] / ceiling[model]["mean"], 4)
        for model, score in accuracy.items()
        if model in ceiling and ceiling[model]["mean"] > 0
    }


def classifiers_mean(values: Mapping[str, float]) -> dict[str, float] | None:
    """The last line of GS-WGAN's tables: the mean over its classifiers, and over how many of the thirteen."""
    found = [values[model] for model in CLASSIFIERS if model in values]
    return {"classifiers": len(found), "mean": round(statistics.fmean(found), 4)} if len(found) > 1 else None
