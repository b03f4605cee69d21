"""Train on the real records themselves: the ceiling that a synthetic set is measured against.

Guarantee: a result that comes from real training records is marked as the owner's edition, which no release takes, unless
training and test records are public benchmarks that were opened by name.
"""

from __future__ import annotations

import dataclasses

from limbeck.data import DataSource
from limbeck.errors import BadInput
from limbeck.evaluate.baselines import ClassifiersMean
from limbeck.evaluate.compatible import TRAINING, require_compatible, require_learnable
from limbeck.evaluate.decoded import is_table
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.labelled import Labelled, load_labelled, majority_rate
from limbeck.evaluate.protocol import EvaluationProtocol
from limbeck.evaluate.provenance import Provenance
from limbeck.evaluate.scoring import TrainingSet, accuracies, score_models
from limbeck.evaluate.seen import seen, seen_records, seen_schema, seen_size
from limbeck.evaluate.targets import score_targets
from limbeck.privacy.schema import Schema
from limbeck.progress import Reporter

TITLE = "train on real records"


def evaluate_real(
    real: DataSource,
    test: DataSource,
    protocol: EvaluationProtocol,
    reporter: Reporter,
    subsample: int | None = None,
) -> Evaluation:
    """Train on real records, score on real test records. Both readings are the owner's.

    A preset that was named is used as it is, also where its stand-in for large sets would be faster.
    """
    require_subsample(subsample)
    require_learnable(real.schema)
    require_compatible(real.schema, test.schema, TRAINING)
    as_seen = seen_schema(real.schema, protocol.size)
    scoring = protocol.resolve(as_seen)
    training = real_training(real, subsample, as_seen)
    if protocol.preset is None:
        scoring = protocol.resolve_for_size(as_seen, training.x.shape[0])
    records = seen_records(load_labelled(test, real.schema), as_seen)
    labelled = real.schema.has_label
    outcomes = score_models(training, [records], scoring, reporter, TITLE) if labelled else []
    targets = score_targets(Labelled(training.x, training.y), records, real.schema, scoring, reporter)
    evaluation = Evaluation(
        trained_on=real.where,
        test=test.where,
        preset=scoring.preset.name,
        protocol=scoring.preset.source,
        labels="hard",
        size=seen_size(real.schema, as_seen),
        repeats=scoring.repeats,
        records=training.x.shape[0],
        test_records=len(records),
        majority_rate=majority_rate(records.y, training.classes) if labelled else None,
        targets=tuple(targets) if real.schema.targets else None,
        accuracy=accuracies(outcomes),
        rows=tuple(outcome.row for outcome in outcomes),
        note="trained on the real records themselves: the owner's figures, which nobody has paid for",
        provenance=Provenance.of(test=test, real=real),
    )
    return dataclasses.replace(evaluation, classifiers_mean=ClassifiersMean.of(evaluation.means))


def real_training(real: DataSource, subsample: int | None, as_seen: Schema) -> TrainingSet:
    """Load the real records, to be thinned out for slow models. as_seen: their schema as models see them."""
    records = load_labelled(real, real.schema)
    return TrainingSet(
        x=seen(records.x, as_seen),
        y=records.y,
        classes=len(real.schema.classes),
        real=True,
        subsample=subsample,
        names=real.schema.classes if is_table(real.schema) else (),
    )


def require_subsample(subsample: int | None) -> None:
    if subsample is not None and subsample < 1:
        raise BadInput(f"Expected --subsample {subsample} to be at least 1 record.")
