"""Train on the real records themselves: the ceiling that a synthetic set is measured against.

Guarantee: a result that comes from real training records is marked as the owner's edition, which no release takes, unless
training and test records are public benchmarks that were opened by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from limbeck.data import DataSource
from limbeck.errors import BadInput
from limbeck.evaluate.downstream import require_repeats
from limbeck.evaluate.marks import marks
from limbeck.evaluate.models import choose
from limbeck.evaluate.presets import Preset, preset_named
from limbeck.evaluate.scoreboard import Training, accuracies, classifiers_mean, score_rows
from limbeck.privacy.schema import Schema
from limbeck.progress import Reporter
from limbeck.vault.encoding import encode


def evaluate_real(
    real: DataSource,
    test: DataSource,
    models: list[str] | None,
    preset: str | None,
    repeats: int | None,
    seed: int,
    device: str,
    reporter: Reporter,
    subsample: int | None = None,
) -> dict[str, Any]:
    """Train on real records, score on real test records. Both readings are the owner's."""
    require_subsample(subsample)
    require_repeats(1 if repeats is None else repeats)
    if not same_form(real.schema, test.schema):
        raise BadInput(
            f"The test records have shape {test.schema.shape} and {len(test.schema.classes)} classes, the training records "
            f"have shape {real.schema.shape} and {len(real.schema.classes)} classes; they must be the same."
        )
    asked = preset_named(preset or ("cpu" if device == "cpu" else "paper")).fitted(real.schema)
    choices = choose(default_models(asked, real.schema) if models is None else models, real.schema.shape)
    training = real_training(real, asked, repeats, subsample, keep=preset is not None)
    records = test.load()
    classes = len(real.schema.classes)
    scored = (encode(records.x, real.schema), torch.from_numpy(records.y))
    rows = score_rows(training, choices, scored, classes, seed, device, reporter)
    accuracy = accuracies(rows)
    counts = np.bincount(records.y, minlength=classes)
    return {
        "trained_on": real.where,
        "test": test.where,
        "preset": training.preset.name,
        "protocol": training.preset.source,
        "labels": "hard",
        "repeats": training.repeats,
        "records": training.x.shape[0],
        "test_records": len(records.y),
        "majority_rate": round(100.0 * float(counts.max()) / max(len(records.y), 1), 4),
        "accuracy": accuracy,
        "rows": [row.to_dict() for row in rows],
        "classifiers_mean": classifiers_mean({model: score["mean"] for model, score in accuracy.items()}),
        "note": "trained on the real records themselves: the owner's figures, which nobody has paid for",
        **marks(test=test, real=real),
    }


def real_training(
    real: DataSource, preset: Preset, repeats: int | None, subsample: int | None, keep: bool = False
) -> Training:
    """Load the real records. `keep` trains by this very preset, also where its stand-in for large sets would be faster."""
    records = real.load()
    chosen = preset if keep else preset.for_size(len(records)).fitted(real.schema)
    return Training(
        title="train on real records",
        x=encode(records.x, real.schema),
        y=torch.from_numpy(records.y),
        preset=chosen,
        repeats=chosen.networks if repeats is None else repeats,
        real=True,
        most=subsample,
    )


def default_models(preset: Preset, schema: Schema) -> list[str]:
    """What the preset's paper trains, else a few networks that read such records."""
    if preset.models:
        return list(preset.models)
    return ["convnet", "mlp", "lenet"] if schema.is_image else ["mlp", "linear"]


def same_form(schema: Schema, other: Schema) -> bool:
    return schema.shape == other.shape and schema.classes == other.classes


def require_subsample(subsample: int | None) -> None:
    if subsample is not None and subsample < 1:
        raise BadInput(f"Expected --subsample {subsample} to be at least 1 record.")
