"""Evaluate a release on real test records."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch

from limbeck.data import DataSource
from limbeck.data.encoding import encode
from limbeck.errors import BadInput
from limbeck.evaluate.downstream import evaluate
from limbeck.evaluate.presets import preset_named
from limbeck.progress import Reporter
from limbeck.release import Release, read_release


def evaluate_release(
    release: Path,
    test: DataSource,
    models: list[str] | None,
    preset: str | None,
    repeats: int,
    seed: int,
    device: str,
    reporter: Reporter,
) -> dict[str, Any]:
    """Train on the set, score on the test records. The score belongs to whoever owns the test records."""
    found = read_release(release)
    _require_same_form(found, test)
    names = models or (["convnet", "mlp", "lenet"] if found.schema.is_image else ["mlp", "linear"])
    chosen = preset_named(preset or ("cpu" if device == "cpu" else "paper"))
    chosen = dataclasses.replace(chosen, augment=found.schema.augmentation if found.schema.is_image else ())
    records = test.load()
    total = len(names) * repeats
    reporter.start(f"evaluate, preset {chosen.name}", total, 0)
    scores = evaluate(
        torch.from_numpy(found.x),
        torch.from_numpy(found.y),
        encode(records.x, found.schema),
        torch.from_numpy(records.y),
        len(found.schema.classes),
        names,
        chosen,
        repeats,
        seed,
        device,
        lambda done, _: reporter.advance(done),
    )
    counts = np.bincount(records.y, minlength=len(found.schema.classes))
    return {
        "release": str(release),
        "test": test.where,
        "preset": chosen.name,
        "labels": "hard",
        "repeats": repeats,
        "records": len(found.y),
        "test_records": len(records.y),
        "epsilon": found.certificate["epsilon"],
        "adjacency": found.certificate["adjacency"],
        "method": found.certificate["method"],
        "accuracy": {
            name: {
                "mean": round(score.mean, 4),
                "std": round(score.std, 4),
                "runs": [round(run, 4) for run in score.runs],
            }
            for name, score in scores.items()
        },
        "majority_rate": round(100.0 * float(counts.max()) / max(len(records.y), 1), 4),
    }


def _require_same_form(found: Release, test: DataSource) -> None:
    if test.schema.shape != found.schema.shape or test.schema.classes != found.schema.classes:
        raise BadInput(
            f"The test records have shape {test.schema.shape} and {len(test.schema.classes)} classes, the set has shape "
            f"{found.schema.shape} and {len(found.schema.classes)} classes; they must be the same."
        )
