"""How much a synthetic set is like the real records: everything here is measured with private records, for the owner.

    inception score                 variety and clarity, by a reference classifier trained on the real training records
    frechet classifier distance     distance of its features from those of real test records; not an FID
    fid                             the same with Inception-v3, if the owner has its weights
    precision, recall               overlap of the two manifolds, in its features
    nearest records, memorisation   whether the set repeats training records
    marginals                       of a table: how far its 1-way and 2-way marginals are from those of the training rows

A table is measured on its decoded rows, and has no inception score.

Guarantee: a result is marked as the owner's edition, which no release takes.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from limbeck.data import DataSource
from limbeck.data.records import Records
from limbeck.errors import BadInput
from limbeck.evaluate.compatible import require_compatible
from limbeck.evaluate.decoded import decoded, is_table
from limbeck.evaluate.fidelity_result import Closeness, Fid, Fidelity, Reference
from limbeck.evaluate.frechet import frechet_distance
from limbeck.evaluate.inception import Inception, read_inception
from limbeck.evaluate.inception_score import InceptionScore, inception_score
from limbeck.evaluate.labelled import Labelled
from limbeck.evaluate.marginals import Rows, table_marginals
from limbeck.evaluate.neighbours import (
    NEIGHBOURS,
    Memorisation,
    PrecisionRecall,
    memorisation,
    nearest,
    precision_recall,
    summary,
)
from limbeck.evaluate.reference_classifier import PlainFeatures, ReferenceClassifier, reference_classifier
from limbeck.evaluate.table_marginals import TableMarginals
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.schema import Schema
from limbeck.privacy.unit import stated_unit
from limbeck.progress import Reporter
from limbeck.release.reader import Release, read_release
from limbeck.vault.encoding import encode

DIGITS = 6
Judge = ReferenceClassifier | PlainFeatures
T = TypeVar("T", InceptionScore, PrecisionRecall, Memorisation)


@dataclass(frozen=True, kw_only=True)
class Options:
    """inception: weights of Inception-v3. most: compare with at most this many real test records.

    epochs: of the reference classifier.
    """

    inception: Path | None = None
    most: int | None = None
    epochs: int | None = None
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.most is not None and self.most < 2:
            raise BadInput(f"At least 2 real records are needed to compare with, got {self.most}.")


def fidelity_of_release(
    release: Path, train: DataSource, test: DataSource, options: Options, reporter: Reporter
) -> Fidelity:
    """All scores of a release, beside those of as many real training records and of the real test records."""
    found = read_release(release)
    _require_measurable(found, train, test)
    inception = None if options.inception is None else _images_only(found, options.inception)
    train_records, test_records = train.load(), test.load()
    classifier = _judge(train_records, found.schema, reporter, options)
    x = torch.nan_to_num(decoded(found.x, found.schema))
    train_x, test_x = encode(train_records.x, found.schema), encode(test_records.x, found.schema)
    kept = _drawn(len(test_x), options.most, options.seed)
    test_x, test_y = test_x[kept], torch.from_numpy(test_records.y)[kept]
    train_y = torch.from_numpy(train_records.y)
    real_x = train_x[_drawn(len(train_x), len(x), options.seed)]
    reporter.say(f"comparing {len(x)} synthetic with {len(test_x)} real test records")
    features, probabilities = classifier.outputs(test_x)
    pictures = not is_table(found.schema)
    return Fidelity(
        release=str(release),
        method=found.certificate.method,
        epsilon=finite_or_word(found.certificate.epsilon),
        adjacency=found.certificate.adjacency,
        unit=stated_unit(found.certificate.unit),
        train=train.where,
        test=test.where,
        public_benchmark=train.benchmark is not None and test.benchmark is not None,
        records=len(x),
        test_records=len(test_x),
        reference=_reference(classifier, probabilities, test_y),
        set=_closeness(classifier, x, features, options.seed, pictures),
        real_train=_closeness(classifier, real_x, features, options.seed, pictures),
        real_test=_rounded(inception_score(probabilities, seed=options.seed)) if pictures else None,
        fid=None if inception is None else _fid(inception, x, real_x, test_x, reporter),
        nearest=_rounded(memorisation(x.flatten(1), train_x.flatten(1), test_x.flatten(1))),
        test_to_train_distance=_round(summary(nearest(test_x[: len(x)].flatten(1), train_x.flatten(1))[0])),
        marginals=None if pictures else _marginals(found, x, Labelled(train_x, train_y), Labelled(test_x, test_y)),
    )


def _judge(records: Records, schema: Schema, reporter: Reporter, options: Options) -> Judge:
    if not schema.has_label:
        return PlainFeatures()
    return reference_classifier(records, schema, reporter, options.epochs, options.device)


def _require_measurable(found: Release, train: DataSource, test: DataSource) -> None:
    for source in (train, test):
        require_compatible(found.schema, source.schema)
    if len(found.y) <= NEIGHBOURS:
        raise BadInput(f"The set has {len(found.y)} records; fidelity needs more than {NEIGHBOURS}.")
    if train.where == test.where:
        raise BadInput(
            f"{train.where} has no test split; name real records that the set was not made from with --test."
        )


def _marginals(found: Release, x: Tensor, train: Labelled, test: Labelled) -> TableMarginals:
    first, second = (Rows(part.x.numpy(), part.y.numpy()) for part in (train, test))
    return table_marginals(Rows(x.numpy(), found.y), first, second, found.schema)


def _reference(classifier: Judge, probabilities: Tensor, labels: Tensor) -> Reference:
    if classifier.spec is None:
        return Reference(spec={"kind": "none"}, epochs=None, kept=None, test_accuracy=None)
    return Reference(
        spec=classifier.spec.to_dict(),
        epochs=classifier.epochs,
        kept=classifier.kept,
        test_accuracy=round(100.0 * float((probabilities.argmax(1) == labels).double().mean()), 4),
    )


def _closeness(classifier: Judge, x: Tensor, real_features: Tensor, seed: int, pictures: bool) -> Closeness:
    features, probabilities = classifier.outputs(x)
    return Closeness(
        inception_score=_rounded(inception_score(probabilities, seed=seed)) if pictures else None,
        frechet_classifier_distance=round(frechet_distance(features, real_features), DIGITS),
        precision_recall=_rounded(precision_recall(real_features, features, seed=seed)),
    )


def _fid(inception: Inception, x: Tensor, real_x: Tensor, test_x: Tensor, reporter: Reporter) -> Fid:
    reference, ours, real = (inception.features(part, reporter) for part in (test_x, x, real_x))
    return Fid(
        set=round(frechet_distance(ours, reference), DIGITS),
        real_train=round(frechet_distance(real, reference), DIGITS),
        weights=inception.variant,
        weights_sha256=inception.sha256,
    )


def _images_only(found: Release, weights: Path) -> Inception:
    if not found.schema.is_image or found.schema.shape[0] not in (1, 3):
        raise BadInput(
            f"Inception reads pictures with 1 or 3 channels, not records of shape {found.schema.shape}; leave --inception out."
        )
    return read_inception(weights)


def _drawn(records: int, most: int | None, seed: int) -> Tensor:
    """Indices of at most `most` records, drawn without replacement."""
    order = torch.randperm(records, generator=torch.Generator().manual_seed(seed))
    return order[:most]


def _rounded(value: T) -> T:
    """Figures with six digits after the point, except for a p-value, whose size is what matters."""
    names = [field.name for field in dataclasses.fields(value) if field.name != "p_value"]
    return dataclasses.replace(value, **{name: _round(getattr(value, name)) for name in names})


def _round(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _round(each) for name, each in value.items()}
    return round(value, DIGITS) if isinstance(value, float) else value
