"""Evaluate a release on real test records, and what its scores are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from limbeck.data import DataSource
from limbeck.errors import BadInput
from limbeck.evaluate.downstream import require_repeats
from limbeck.evaluate.marks import marks
from limbeck.evaluate.models import choose
from limbeck.evaluate.presets import Preset, preset_named
from limbeck.evaluate.real import default_models, real_training, require_subsample, same_form
from limbeck.evaluate.scoreboard import (
    Row,
    Training,
    accuracies,
    calibrated,
    classifiers_mean,
    noise_like,
    score_rows,
)
from limbeck.privacy.queries import finite_or_word
from limbeck.progress import Reporter
from limbeck.release.reader import Release, read_release
from limbeck.vault.encoding import encode


@dataclass(frozen=True, kw_only=True)
class Yardsticks:
    """What else the models are trained on.

    real: the records that the set was made from, for the calibrated accuracy; at most `subsample` of them.
    control: noise with the labels of the set.
    """

    real: DataSource | None = None
    subsample: int | None = None
    control: bool = False


NONE = Yardsticks()


def evaluate_release(
    release: Path,
    test: DataSource,
    models: list[str] | None,
    preset: str | None,
    repeats: int | None,
    seed: int,
    device: str,
    reporter: Reporter,
    yardsticks: Yardsticks = NONE,
) -> dict[str, Any]:
    """Train on the set, score on the test records. The score belongs to whoever owns the test records.

    Guarantee: a result that comes from real records other than a named set is marked as the owner's.
    """
    found = read_release(release)
    require_same_form(found, test)
    chosen = preset_named(preset or ("cpu" if device == "cpu" else "paper")).fitted(found.schema)
    choices = choose(default_models(chosen, found.schema) if models is None else models, found.schema.shape)
    require_subsample(yardsticks.subsample)
    require_repeats(1 if repeats is None else repeats)
    trainings = _trainings(found, chosen, repeats, seed, yardsticks)
    records = test.load()
    classes = len(found.schema.classes)
    scored = (encode(records.x, found.schema), torch.from_numpy(records.y))
    rows = {
        name: score_rows(each, choices, scored, classes, seed, device, reporter) for name, each in trainings.items()
    }
    counts = np.bincount(records.y, minlength=classes)
    return {
        "release": str(release),
        "test": test.where,
        "preset": chosen.name,
        "protocol": chosen.source,
        "labels": "hard",
        "repeats": trainings["set"].repeats,
        "records": len(found.y),
        "test_records": len(records.y),
        "epsilon": finite_or_word(found.certificate.epsilon),
        "adjacency": found.certificate.adjacency,
        "method": found.certificate.method,
        "majority_rate": round(100.0 * float(counts.max()) / max(len(records.y), 1), 4),
        **_scores(rows, trainings, yardsticks),
        **marks(test=test, real=yardsticks.real),
    }


def _trainings(
    found: Release, preset: Preset, repeats: int | None, seed: int, yardsticks: Yardsticks
) -> dict[str, Training]:
    x, y = torch.from_numpy(found.x), torch.from_numpy(found.y)
    count = preset.networks if repeats is None else repeats
    trainings = {"set": Training(title="evaluate", x=x, y=y, preset=preset, repeats=count)}
    if yardsticks.control:
        noise = noise_like(x, seed)
        trainings["control"] = Training(title="control", x=noise, y=y, preset=preset, repeats=count)
    if yardsticks.real is not None:
        require_same_form(found, yardsticks.real)
        trainings["ceiling"] = real_training(yardsticks.real, preset, repeats, yardsticks.subsample)
    return trainings


def _scores(rows: dict[str, list[Row]], trainings: dict[str, Training], yardsticks: Yardsticks) -> dict[str, Any]:
    accuracy = accuracies(rows["set"])
    listed = {row.model: row.to_dict() for row in rows["set"]}
    values: dict[str, Any] = {"accuracy": accuracy, "rows": list(listed.values())}
    means = classifiers_mean({model: score["mean"] for model, score in accuracy.items()})
    if means is not None:
        values["classifiers_mean"] = means
    if "control" in rows:
        control = accuracies(rows["control"])
        values["control"] = {"records": "uniform noise with the same labels", "accuracy": control}
        for model, score in control.items():
            listed[model]["control"] = score["mean"]
    if yardsticks.real is not None:
        ceiling = _ceiling(rows["ceiling"], trainings["ceiling"], accuracy, yardsticks.real)
        for model, share in ceiling["calibrated"].items():
            listed[model] |= {"ceiling": ceiling["accuracy"][model]["mean"], "calibrated": share}
        values["ceiling"] = ceiling
    return values


def _ceiling(rows: list[Row], training: Training, accuracy: dict[str, Any], real: DataSource) -> dict[str, Any]:
    reached = accuracies(rows)
    shares = calibrated(accuracy, reached)
    return {
        "data": real.where,
        "preset": training.preset.name,
        "repeats": training.repeats,
        "records": {row.model: row.records for row in rows},
        "of_records": training.x.shape[0],
        "accuracy": reached,
        "calibrated": shares,
        "calibrated_classifiers_mean": classifiers_mean(shares),
        "note": "trained on the private records themselves: the owner's figures, which nobody has paid for",
    }


def require_same_form(found: Release, records: DataSource) -> None:
    if not same_form(found.schema, records.schema):
        raise BadInput(
            f"The test records have shape {records.schema.shape} and {len(records.schema.classes)} classes, the set has shape "
            f"{found.schema.shape} and {len(found.schema.classes)} classes; they must be the same."
        )
