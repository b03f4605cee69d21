"""Encoded records with their labels, as models are trained and scored on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from limbeck.data import DataSource
from limbeck.privacy.schema import Schema
from limbeck.vault.encoding import encode


@dataclass(frozen=True, eq=False)
class Labelled:
    """x: encoded records. y: class indices, or soft labels of shape (records, classes)."""

    x: Tensor
    y: Tensor

    def __len__(self) -> int:
        return len(self.y)


def load_labelled(source: DataSource, schema: Schema) -> Labelled:
    """All records of a source, encoded by this schema."""
    records = source.load()
    return Labelled(encode(records.x, schema), torch.from_numpy(records.y))


def majority_rate(labels: Tensor, classes: int) -> float:
    """The accuracy in percent of always answering the largest class.

    >>> majority_rate(torch.tensor([0, 1, 1, 2]), 3)
    50.0
    """
    counts = np.bincount(labels.numpy(), minlength=classes)
    return round(100.0 * float(counts.max()) / max(len(labels), 1), 4)
