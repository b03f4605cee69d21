"""The scoring loop: train every chosen model on a set, and score it on real test records.

Every accuracy of this package comes from here: of released sets and of real records, of the sets on the way of a run,
of the stages of continual learning, of the papers' tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from limbeck.evaluate.accuracy import Accuracy
from limbeck.evaluate.boosted import boosting_library
from limbeck.evaluate.classical import Untrainable
from limbeck.evaluate.downstream import Score, Task, fits, score_model
from limbeck.evaluate.labelled import Labelled
from limbeck.evaluate.models import ARCHITECTURES, BOOSTED, SCALED, Choice
from limbeck.evaluate.presets import OPTIMISTIC, Preset
from limbeck.evaluate.protocol import Scoring
from limbeck.evaluate.row import Row
from limbeck.progress import Reporter

# On real data these take many minutes for each 10,000 records and pass; what more records add is a fraction of a point.
SLOW = ("convnet", "alexnet", "vgg11", "resnet18", "adaboost")
SLOW_RECORDS = 10_000


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingSet:
    """Records to train on. Of `real` ones slow models get a part, and with `subsample` all models get at most so many.

    names: of the classes of a table. Where they are given, every class is scored for itself.
    """

    x: Tensor
    y: Tensor
    classes: int
    real: bool = False
    subsample: int | None = None
    names: tuple[str, ...] = ()

    def records(self, model: str) -> int:
        """How many records this model is trained on."""
        available = self.x.shape[0]
        if not self.real:
            return available
        limit = self.subsample if self.subsample is not None else SLOW_RECORDS if model in SLOW else available
        return min(available, limit)

    def task(self, model: str, tests: Sequence[Labelled], seed: int) -> Task:
        count = self.records(model)
        if count == self.x.shape[0]:
            return Task(self.x, self.y, tuple(tests), self.classes, bool(self.names))
        rows = torch.randperm(self.x.shape[0], generator=torch.Generator().manual_seed(seed))[:count]
        return Task(self.x[rows], self.y[rows], tuple(tests), self.classes, bool(self.names))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Of one model. `score` is None where `skipped` says why there is none."""

    model: str
    records: int
    preset: Preset
    score: Score | None
    skipped: str | None = None
    names: tuple[str, ...] = ()

    @property
    def row(self) -> Row:
        """The outcome as it is kept."""
        score = self.score
        return Row(
            model=self.model,
            family="architecture" if self.model in ARCHITECTURES else "classifier",
            records=self.records,
            width=self.preset.width if self.model in SCALED else None,
            accuracy=None if score is None else Accuracy.of(score.runs),
            labels=None if score is None else score.labels,
            seconds=None if score is None else round(score.seconds, 1),
            best_on_test=Accuracy.of(score.best) if score and score.best else None,
            selection=OPTIMISTIC if score and score.best else None,
            area_under_curve=Accuracy.of(score.areas) if score and score.areas else None,
            f1=self._f1(score) if score and score.f1 else None,
            confusion=score.confusion if score and score.confusion else None,
            library=boosting_library() if score and self.model == BOOSTED else None,
            skipped=self.skipped if score is None else None,
        )

    def _f1(self, score: Score) -> dict[str, Accuracy]:
        """By class, of those that the test records have."""
        runs = {name: [fit[index] for fit in score.f1] for index, name in enumerate(self.names)}
        return {
            name: Accuracy.of([f1 for f1 in each if f1 is not None])
            for name, each in runs.items()
            if each[0] is not None
        }


def score_models(
    training: TrainingSet,
    tests: Sequence[Labelled],
    scoring: Scoring,
    reporter: Reporter,
    title: str = "score",
) -> list[Outcome]:
    """An outcome for every choice, in order. Each model is trained with the seeds seed, seed + 1, ...

    A model that cannot be fitted to this set is skipped; the others go on. The reporter advances after every fit.
    """
    total = sum(fits(choice.model, scoring.repeats) for choice in scoring.choices if not choice.skipped)
    done = 0
    reporter.start(f"{title}, preset {scoring.preset.name}", total, 0)

    def advance(fitted: int = 1) -> None:
        nonlocal done
        done += fitted
        reporter.advance(done)

    return [_outcome(choice, training, tests, scoring, advance) for choice in scoring.choices]


def _outcome(
    choice: Choice,
    training: TrainingSet,
    tests: Sequence[Labelled],
    scoring: Scoring,
    advance: Callable[[int], None],
) -> Outcome:
    model, score, skipped, fitted = choice.model, None, choice.skipped, 0

    def tick() -> None:
        nonlocal fitted
        fitted += 1
        advance(1)

    if skipped is None:
        task = training.task(model, tests, scoring.seed)
        try:
            score = score_model(
                model, task, scoring.preset, scoring.repeats, seed=scoring.seed, device=scoring.device, tick=tick
            )
        except Untrainable as reason:
            skipped = reason.message
            advance(fits(model, scoring.repeats) - fitted)
    return Outcome(
        model=model,
        records=training.records(model),
        preset=scoring.preset,
        score=score,
        skipped=skipped,
        names=training.names,
    )


def accuracies(outcomes: Sequence[Outcome]) -> dict[str, Accuracy]:
    """By model, of those that were trained."""
    return {each.model: Accuracy.of(each.score.runs) for each in outcomes if each.score is not None}


def noise_like(x: Tensor, seed: int) -> Tensor:
    """A control: as many records of uniform noise. What is learnt from it was in the labels alone."""
    return torch.rand(x.shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1
