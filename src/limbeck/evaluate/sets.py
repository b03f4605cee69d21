"""Score any set of encoded records, released or real, on the test records of a public benchmark."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from limbeck.data import DataSource
from limbeck.evaluate.accuracy import Accuracy
from limbeck.evaluate.labelled import Labelled, load_labelled
from limbeck.evaluate.protocol import Scoring
from limbeck.evaluate.scoring import TrainingSet, accuracies, score_models
from limbeck.progress import Reporter
from limbeck.vault.encoding import encode


def real_subset(train: DataSource, per_class: int, seed: int) -> Labelled:
    """`per_class` real records of each class, drawn at random, or all of a smaller class. Not private: a reference only."""
    records = train.load()
    order = np.random.default_rng(seed).permutation(len(records.y))
    chosen = np.concatenate(
        [order[records.y[order] == label][:per_class] for label in range(len(train.schema.classes))]
    )
    return Labelled(encode(records.x[chosen], train.schema), torch.from_numpy(records.y[chosen]))


def score_set(x: Tensor, y: Tensor, test: DataSource, scoring: Scoring, reporter: Reporter) -> dict[str, Accuracy]:
    """The accuracy of each model that can be trained here."""
    training = TrainingSet(x=x, y=y, classes=len(test.schema.classes))
    return accuracies(score_models(training, [load_labelled(test, test.schema)], scoring, reporter))
