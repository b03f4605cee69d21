"""About how long the models of a table take, said before they are trained."""

from __future__ import annotations

import math
from collections.abc import Sequence

from limbeck.evaluate.downstream import fits
from limbeck.evaluate.models import BOOSTED, TABLES
from limbeck.evaluate.protocol import Scoring

# Seconds on one core of 2024: for each number of the records, and for each step of the network.
PER_NUMBER = {"logistic-reg": 1e-7, BOOSTED: 8e-7}
PER_STEP = 7e-4
# Of the ConvNet: for each pass of a record, there and back, and each number of its first and largest map (training_step.json).
PER_MAP_NUMBER = 1e-8


def expected_seconds(scoring: Scoring, records: int, numbers: int, classes: int) -> float | None:
    """None where a model was chosen whose time is not known.

    Boosted trees grow one for each class, of two classes one for both.
    """
    models = [choice.model for choice in scoring.choices if choice.skipped is None]
    if not set(models) <= set(TABLES):
        return None
    steps = scoring.preset.epochs * math.ceil(records / scoring.preset.batch)
    trees = 1 if classes == 2 else classes
    each = {model: records * numbers * trees * share for model, share in PER_NUMBER.items()} | {"mlp": steps * PER_STEP}
    return sum(each[model] * fits(model, scoring.repeats) for model in models)


def convnet_seconds(scoring: Scoring, records: int, shape: Sequence[int]) -> float | None:
    """Of images; None where other models were chosen."""
    if [choice.model for choice in scoring.choices if choice.skipped is None] != ["convnet"]:
        return None
    preset, (_, height, wide) = scoring.preset, shape
    return scoring.repeats * preset.epochs * records * preset.width * height * wide * PER_MAP_NUMBER


def duration_words(seconds: float) -> str:
    """
    >>> duration_words(3.2), duration_words(41), duration_words(200)
    ('about 5 seconds', 'about 45 seconds', 'about 4 minutes')
    """
    if seconds <= 90:
        return f"about {max(5, math.ceil(seconds / 5) * 5)} seconds"
    return f"about {math.ceil(seconds / 60)} minutes"
