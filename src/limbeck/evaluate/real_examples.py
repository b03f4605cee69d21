"""Real records to compare a set with by eye. For the owner: what this returns is private and in no release."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from limbeck.data import DataSource
from limbeck.data.records import Array
from limbeck.evaluate.compatible import require_compatible
from limbeck.evaluate.neighbours import nearest
from limbeck.release.reader import Release
from limbeck.vault.encoding import encode


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassExamples:
    """Encoded records of one class: real ones, and the nearest real one of each synthetic record."""

    real: Array
    nearest: Array


def class_examples(release: Release, source: DataSource, classes: int, count: int) -> list[ClassExamples]:
    """For each of the first `classes` classes `count` real records, and the nearest ones of its first `count` records."""
    require_compatible(release.schema, source.schema)
    records = source.load()
    found = []
    for label in range(classes):
        real = encode(records.x[records.y == label], release.schema)
        synthetic = torch.nan_to_num(torch.from_numpy(release.x[np.flatnonzero(release.y == label)[:count]]))
        near = real[:0]
        if len(real) and len(synthetic):
            near = real[nearest(synthetic.flatten(1), real.flatten(1))[1][:, 0]]
        found.append(ClassExamples(real=real[:count].numpy(), nearest=near.numpy()))
    return found


def real_rows(release: Release, source: DataSource) -> tuple[Array, Array]:
    """All real records, encoded, and their classes."""
    require_compatible(release.schema, source.schema)
    records = source.load()
    return encode(records.x, release.schema).numpy(), records.y
