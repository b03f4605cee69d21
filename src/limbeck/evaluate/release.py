"""Evaluate a released set on real test records, and what its accuracies are compared with.

A table is trained on as it is opened: decoded rows, with hard categories and whole numbers. Other sets are trained on by
the exact numbers of `set.npz`; pictures that were made at a smaller size are averaged down to it, and the test records are, too.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import torch

from limbeck.data import DataSource
from limbeck.evaluate.accuracy import Accuracy
from limbeck.evaluate.baselines import Ceiling, ClassifiersMean, Control, calibrated
from limbeck.evaluate.compatible import require_compatible, require_learnable
from limbeck.evaluate.decoded import decoded, form_of_rows, is_table
from limbeck.evaluate.duration import convnet_seconds, duration_words, expected_seconds
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.labelled import Labelled, load_labelled, majority_rate
from limbeck.evaluate.protocol import EvaluationProtocol, Scoring
from limbeck.evaluate.provenance import Provenance
from limbeck.evaluate.real import TITLE, real_training, require_subsample
from limbeck.evaluate.row import Row
from limbeck.evaluate.scoring import Outcome, TrainingSet, accuracies, noise_like, score_models
from limbeck.evaluate.seen import seen, seen_records, seen_schema, seen_size, size_words
from limbeck.evaluate.target_score import TargetScore
from limbeck.evaluate.targets import score_targets, with_ceiling
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.schema import Schema
from limbeck.privacy.unit import stated_unit
from limbeck.progress import Reporter
from limbeck.release.reader import Release, read_release
from limbeck.release.working_size import working_size


@dataclass(frozen=True, kw_only=True)
class Baselines:
    """What else the models are trained on.

    real: the records that the set was made from, for the calibrated accuracy; at most `subsample` of them.
    control: noise with the labels of the set.
    """

    real: DataSource | None = None
    subsample: int | None = None
    control: bool = False

    def __post_init__(self) -> None:
        require_subsample(self.subsample)


NONE = Baselines()


def evaluate_release(
    release: Path,
    test: DataSource,
    protocol: EvaluationProtocol,
    reporter: Reporter,
    baselines: Baselines = NONE,
) -> Evaluation:
    """Train on the set, score on the test records. The score belongs to whoever owns the test records.

    Guarantee: a result that comes from real records other than a named set is marked as the owner's.
    """
    found = read_release(release)
    require_learnable(found.schema)
    require_compatible(found.schema, test.schema)
    as_seen = seen_schema(found.schema, protocol.size, working_size(found.certificate))
    scoring = _scoring(found, as_seen, protocol)
    real = _real(found, as_seen, protocol, baselines)
    records, own = seen_records(load_labelled(test, found.schema), as_seen), _training(found, as_seen)
    outcomes, control, ceiling = [], None, None
    if found.schema.has_label:
        _say_size(found.schema, as_seen, protocol, reporter)
        _say_how_long(own, scoring, reporter)
        outcomes = score_models(own, [records], scoring, reporter, "evaluate")
        control = _control(own, records, found.schema, scoring, reporter) if baselines.control else None
        ceiling = None if real is None else real.score(accuracies(outcomes), records, reporter)
    evaluation = Evaluation(
        release=str(release),
        test=test.where,
        preset=scoring.preset.name,
        protocol=scoring.preset.source,
        labels="hard",
        form=form_of_rows(found.schema),
        size=seen_size(found.schema, as_seen),
        repeats=scoring.repeats,
        records=len(found.y),
        test_records=len(records),
        epsilon=finite_or_word(found.certificate.epsilon),
        adjacency=found.certificate.adjacency,
        unit=stated_unit(found.certificate.unit),
        method=found.certificate.method,
        majority_rate=majority_rate(records.y, own.classes) if found.schema.has_label else None,
        targets=_targets(found.schema, own, records, real, scoring, reporter),
        accuracy=accuracies(outcomes),
        rows=_rows(outcomes, control, ceiling),
        control=control,
        ceiling=ceiling,
        provenance=Provenance.of(test=test, real=baselines.real),
    )
    return dataclasses.replace(evaluation, classifiers_mean=ClassifiersMean.of(evaluation.means))


def _control(own: TrainingSet, test: Labelled, schema: Schema, scoring: Scoring, reporter: Reporter) -> Control:
    noise = decoded(noise_like(own.x, scoring.seed).numpy(), schema)
    return Control(accuracies(score_models(dataclasses.replace(own, x=noise), [test], scoring, reporter, "control")))


def _targets(
    schema: Schema, own: TrainingSet, test: Labelled, real: _RealBaseline | None, scoring: Scoring, reporter: Reporter
) -> tuple[TargetScore, ...] | None:
    if not schema.targets:
        return None
    found = score_targets(Labelled(own.x, own.y), test, schema, scoring, reporter)
    if real is not None:
        ceiling = score_targets(Labelled(real.training.x, real.training.y), test, schema, real.scoring, reporter)
        found = with_ceiling(found, ceiling)
    return tuple(found)


def _scoring(found: Release, as_seen: Schema, protocol: EvaluationProtocol) -> Scoring:
    """A table often has as many rows as the real one: unless a preset was named, networks are then trained briefly."""
    if is_table(found.schema) and protocol.preset is None:
        return protocol.resolve_for_size(found.schema, len(found.y))
    return protocol.resolve(as_seen)


def _training(found: Release, as_seen: Schema) -> TrainingSet:
    x, y, names = seen(decoded(found.x, found.schema), as_seen), torch.from_numpy(found.y), found.schema.classes
    return TrainingSet(x=x, y=y, classes=len(names), names=names if is_table(found.schema) else ())


def _say_size(schema: Schema, as_seen: Schema, protocol: EvaluationProtocol, reporter: Reporter) -> None:
    if schema.shape == as_seen.shape:
        return
    small = size_words(as_seen)
    why = f"this set was made at {small} and enlarged" if protocol.size is None else "as --size says"
    reporter.say(f"{why}: its pictures and the test records of {size_words(schema)} are averaged down to {small}")


def _say_how_long(own: TrainingSet, scoring: Scoring, reporter: Reporter) -> None:
    if own.x.dim() == 4:
        seconds = convnet_seconds(scoring, len(own.y), own.x.shape[1:])
        if seconds is not None:
            times = "" if scoring.repeats == 1 else f", {scoring.repeats} times"
            reporter.say(f"one ConvNet on {len(own.y)} images{times}: {duration_words(seconds)} on one core")
        return
    seconds = expected_seconds(scoring, len(own.y), own.x.shape[1], own.classes) if own.names else None
    if seconds is not None:
        models = ", ".join(choice.model for choice in scoring.choices)
        reporter.say(f"{models} on {len(own.y)} decoded rows: {duration_words(seconds)} on one core")


@dataclass(frozen=True)
class _RealBaseline:
    """The real records to train on, and how; loaded before any model is trained."""

    source: DataSource
    training: TrainingSet
    scoring: Scoring

    def score(self, accuracy: dict[str, Accuracy], test: Labelled, reporter: Reporter) -> Ceiling:
        outcomes = score_models(self.training, [test], self.scoring, reporter, TITLE)
        reached = accuracies(outcomes)
        return Ceiling(
            data=self.source.where,
            preset=self.scoring.preset.name,
            repeats=self.scoring.repeats,
            records={each.model: each.records for each in outcomes},
            of_records=self.training.x.shape[0],
            accuracy=reached,
            calibrated=calibrated(accuracy, reached),
            note="trained on the private records themselves: the owner's figures, which nobody has paid for",
        )


def _real(found: Release, as_seen: Schema, protocol: EvaluationProtocol, baselines: Baselines) -> _RealBaseline | None:
    if baselines.real is None:
        return None
    require_compatible(found.schema, baselines.real.schema)
    training = real_training(baselines.real, baselines.subsample, as_seen)
    scoring = protocol.resolve_for_size(as_seen, training.x.shape[0])
    return _RealBaseline(baselines.real, training, scoring)


def _rows(outcomes: list[Outcome], control: Control | None, ceiling: Ceiling | None) -> tuple[Row, ...]:
    """Every row with the baselines of its model beside it."""
    rows = []
    for row in (outcome.row for outcome in outcomes):
        if control is not None and row.model in control.accuracy:
            row = dataclasses.replace(row, control=control.accuracy[row.model].mean)
        if ceiling is not None and row.model in ceiling.calibrated:
            share, best = ceiling.calibrated[row.model], ceiling.accuracy[row.model].mean
            row = dataclasses.replace(row, ceiling=best, calibrated=share)
        rows.append(row)
    return tuple(rows)
