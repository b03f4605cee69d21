"""Score a released model on real test records. Nothing is trained: the model is what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from limbeck.data import DataSource
from limbeck.errors import BadInput
from limbeck.evaluate.downstream import accuracy
from limbeck.evaluate.marks import marks
from limbeck.evaluate.spread import spread
from limbeck.privacy.queries import finite_or_word
from limbeck.release.model import read_model
from limbeck.vault.encoding import encode


def evaluate_model(release: Path, test: DataSource, device: str) -> dict[str, Any]:
    """One accuracy, of the model itself. The score belongs to whoever owns the test records."""
    found = read_model(release)
    if test.schema.shape != found.schema.shape or test.schema.classes != found.schema.classes:
        raise BadInput(
            f"The test records have shape {test.schema.shape} and {len(test.schema.classes)} classes, the model takes shape "
            f"{found.schema.shape} and tells {len(found.schema.classes)} classes apart; they must be the same."
        )
    records = test.load()
    score = accuracy(found.network.to(device), encode(records.x, found.schema), torch.from_numpy(records.y))
    counts = np.bincount(records.y, minlength=len(found.schema.classes))
    return {
        "release": str(release),
        "content": "model",
        "test": test.where,
        "test_records": len(records.y),
        "epsilon": finite_or_word(found.certificate.epsilon),
        "adjacency": found.certificate.adjacency,
        "method": found.certificate.method,
        "network": found.model.net.to_dict(),
        "accuracy": {"model": spread([score])},
        "majority_rate": round(100.0 * float(counts.max()) / max(len(records.y), 1), 4),
        **marks(test=test),
    }
