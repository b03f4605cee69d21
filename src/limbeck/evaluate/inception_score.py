"""Inception Score (Salimans et al., 2016) with a classifier trained on the real data instead of ImageNet.

exp of the mean divergence between what the classifier says of one record and what it says of all: high where every record is
clearly of one class and all classes are there; from 1 to the number of classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from limbeck.errors import BadInput

MOST_SPLITS = 10
RECORDS_PER_SPLIT = 1000  # fewer records would be scored too low: they cannot show every class in its share


@dataclass(frozen=True)
class InceptionScore:
    """Mean and standard deviation over the splits; std is None for one split, the others only where a file lacks them."""

    mean: float | None
    std: float | None
    splits: int | None
    records: int | None


def inception_score(probabilities: Tensor, splits: int | None = None, seed: int = 0) -> InceptionScore:
    """probabilities: (records, classes), rows that add to 1. Rows are shuffled, since sets come sorted by class."""
    records = len(probabilities)
    chosen = max(1, min(MOST_SPLITS, records // RECORDS_PER_SPLIT)) if splits is None else splits
    if records < 1 or not 1 <= chosen <= records:
        raise BadInput(f"An Inception Score needs 1 <= splits <= records, got splits={chosen} and {records} records.")
    order = torch.randperm(records, generator=torch.Generator().manual_seed(seed))
    scores = torch.tensor([_score(part) for part in probabilities[order].double().tensor_split(chosen)])
    return InceptionScore(float(scores.mean()), float(scores.std()) if chosen > 1 else None, chosen, records)


def _score(rows: Tensor) -> float:
    overall = rows.mean(0, keepdim=True)
    # 0 log 0 = 0: a class that is ruled out adds nothing.
    divergence = torch.special.xlogy(rows, rows) - torch.special.xlogy(rows, overall)
    return float(divergence.sum(1).mean().exp())
