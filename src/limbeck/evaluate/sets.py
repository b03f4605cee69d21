"""Score any set of encoded records, released or real, on the test records of a public benchmark."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from limbeck.data import DataSource
from limbeck.evaluate.models import choose
from limbeck.evaluate.presets import Preset
from limbeck.evaluate.scoreboard import Training, accuracies, score_rows
from limbeck.progress import Reporter
from limbeck.vault.encoding import encode


def real_subset(train: DataSource, per_class: int, seed: int) -> tuple[Tensor, Tensor]:
    """`per_class` real records of each class, drawn at random, or all of a smaller class. Not private: a reference only."""
    records = train.load()
    order = np.random.default_rng(seed).permutation(len(records.y))
    chosen = np.concatenate(
        [order[records.y[order] == place][:per_class] for place in range(len(train.schema.classes))]
    )
    return encode(records.x[chosen], train.schema), torch.from_numpy(records.y[chosen])


def score_set(
    x: Tensor,
    y: Tensor,
    test: DataSource,
    models: tuple[str, ...],
    preset: Preset,
    networks: int,
    reporter: Reporter,
    seed: int = 0,
    device: str = "cpu",
) -> dict[str, dict[str, Any]]:
    """Mean, std and runs of `networks` fits of each model that can be trained here."""
    records = test.load()
    choices = choose(models, test.schema.shape)
    training = Training(title="score", x=x, y=y, preset=preset.fitted(test.schema), repeats=networks)
    scored = (encode(records.x, test.schema), torch.from_numpy(records.y))
    return accuracies(score_rows(training, choices, scored, len(test.schema.classes), seed, device, reporter))
