"""How much a synthetic set is like the real records: everything here is measured with private records, for the owner.

    inception score                 variety and clarity, in the eyes of a judge trained on the real training records
    frechet classifier distance     distance of the judge's features from those of real test records; not an FID
    fid                             the same with Inception-v3, if the owner has its weights
    precision, recall               overlap of the two manifolds, in the judge's features
    nearest records, memorisation   whether the set repeats training records

Guarantee: a result is marked as the owner's edition, which no release takes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from limbeck.data import DataSource
from limbeck.errors import BadInput
from limbeck.evaluate.frechet import frechet_distance
from limbeck.evaluate.inception import Inception, read_inception
from limbeck.evaluate.inception_score import inception_score
from limbeck.evaluate.judge import Judge, judge_of
from limbeck.evaluate.neighbours import NEIGHBOURS, memorisation, nearest, precision_recall, summary
from limbeck.evaluate.release import require_same_form
from limbeck.privacy.queries import finite_or_word
from limbeck.progress import Reporter
from limbeck.release.editions import OWNER
from limbeck.release.reader import Release, read_release
from limbeck.vault.encoding import encode

DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class Options:
    """inception: weights of Inception-v3. most: compare with at most this many real test records. epochs: of the judge."""

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
) -> dict[str, Any]:
    """All scores of a release, beside those of as many real training records and of the real test records."""
    found = read_release(release)
    for source in (train, test):
        require_same_form(found, source)
    if len(found.y) <= NEIGHBOURS:
        raise BadInput(f"The set has {len(found.y)} records; fidelity needs more than {NEIGHBOURS}.")
    if train.where == test.where:
        raise BadInput(
            f"{train.where} has no test split; name real records that the set was not made from with --test."
        )
    inception = None if options.inception is None else _images_only(found, options.inception)
    train_records, test_records = train.load(), test.load()
    judge = judge_of(train_records, found.schema, reporter, options.epochs, options.device)
    x = torch.nan_to_num(torch.from_numpy(found.x))
    train_x, test_x = encode(train_records.x, found.schema), encode(test_records.x, found.schema)
    kept = _drawn(len(test_x), options.most, options.seed)
    test_x, test_y = test_x[kept], torch.from_numpy(test_records.y)[kept]
    real_x = train_x[_drawn(len(train_x), len(x), options.seed)]
    reporter.say(f"comparing {len(x)} synthetic with {len(test_x)} real test records")
    reference, opinion = judge.look(test_x)
    return {
        "edition": OWNER,
        "release": str(release),
        "method": found.certificate.method,
        "epsilon": finite_or_word(found.certificate.epsilon),
        "adjacency": found.certificate.adjacency,
        "train": train.where,
        "test": test.where,
        "public_benchmark": train.benchmark is not None and test.benchmark is not None,
        "records": len(x),
        "test_records": len(test_x),
        "judge": {
            **judge.spec.to_dict(),
            "epochs": judge.epochs,
            "kept": judge.kept,
            "test_accuracy": round(100.0 * float((opinion.argmax(1) == test_y).double().mean()), 4),
        },
        "set": _scores(judge, x, reference, options.seed),
        "real_train": _scores(judge, real_x, reference, options.seed),
        "real_test": {"inception_score": _rounded(asdict(inception_score(opinion, seed=options.seed)))},
        "fid": None if inception is None else _fid(inception, x, real_x, test_x, reporter),
        "nearest": _rounded(asdict(memorisation(x.flatten(1), train_x.flatten(1), test_x.flatten(1))))
        | {"test_to_train_distance": _rounded(summary(nearest(test_x[: len(x)].flatten(1), train_x.flatten(1))[0]))},
    }


def _scores(judge: Judge, x: Tensor, reference: Tensor, seed: int) -> dict[str, Any]:
    features, probabilities = judge.look(x)
    return {
        "inception_score": _rounded(asdict(inception_score(probabilities, seed=seed))),
        "frechet_classifier_distance": round(frechet_distance(features, reference), DIGITS),
        "precision_recall": _rounded(asdict(precision_recall(reference, features, seed=seed))),
    }


def _fid(inception: Inception, x: Tensor, real_x: Tensor, test_x: Tensor, reporter: Reporter) -> dict[str, Any]:
    reference, ours, real = (inception.features(part, reporter) for part in (test_x, x, real_x))
    return {
        "set": round(frechet_distance(ours, reference), DIGITS),
        "real_train": round(frechet_distance(real, reference), DIGITS),
        "weights": inception.variant,
        "weights_sha256": inception.sha256,
    }


def _images_only(found: Release, weights: Path) -> Inception:
    if not found.schema.is_image or found.schema.shape[0] not in (1, 3):
        raise BadInput(
            f"Inception reads pictures with 1 or 3 channels, not records of shape {found.schema.shape}; leave --inception out."
        )
    return read_inception(weights)


def _drawn(records: int, most: int | None, seed: int) -> Tensor:
    """Places of at most `most` records, drawn without replacement."""
    order = torch.randperm(records, generator=torch.Generator().manual_seed(seed))
    return order[:most]


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    """Figures with six digits after the point, except for a p-value, whose size is what matters."""
    return {
        name: _rounded(value) if isinstance(value, dict) else round(value, DIGITS) if _is_long(name, value) else value
        for name, value in values.items()
    }


def _is_long(name: str, value: object) -> bool:
    return isinstance(value, float) and name != "p_value"
