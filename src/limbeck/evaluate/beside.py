"""Real records to lay beside a set. For the owner's eyes: what this returns is private and in no release."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from limbeck.data import DataSource
from limbeck.data.records import Array
from limbeck.evaluate.neighbours import nearest
from limbeck.evaluate.release import require_same_form
from limbeck.release.reader import Release
from limbeck.vault.encoding import encode


@dataclass(frozen=True, eq=False, kw_only=True)
class Beside:
    """Encoded records of one class: real ones, and the nearest real one of each synthetic record."""

    real: Array
    nearest: Array


def beside(release: Release, source: DataSource, classes: int, count: int) -> list[Beside]:
    """For each of the first `classes` classes `count` real records, and the nearest ones of its first `count` records."""
    require_same_form(release, source)
    records = source.load()
    found = []
    for place in range(classes):
        real = encode(records.x[records.y == place], release.schema)
        synthetic = torch.nan_to_num(torch.from_numpy(release.x[np.flatnonzero(release.y == place)[:count]]))
        near = real[:0]
        if len(real) and len(synthetic):
            near = real[nearest(synthetic.flatten(1), real.flatten(1))[1][:, 0]]
        found.append(Beside(real=real[:count].numpy(), nearest=near.numpy()))
    return found


def real_rows(release: Release, source: DataSource) -> tuple[Array, Array]:
    """All real records, encoded, and their classes."""
    require_same_form(release, source)
    records = source.load()
    return encode(records.x, release.schema).numpy(), records.y
