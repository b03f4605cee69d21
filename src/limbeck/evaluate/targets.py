"""Judge a table by its targets: models learn each from all other columns, on decoded rows, and are scored on real test rows.

A number is a regression, by ridge regression, boosted trees and a small network. A category is told apart by the models of a
label: logistic regression, boosted trees and a network.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.errors import BadInput
from limbeck.evaluate.boosted import boosted_regression, boosting_library
from limbeck.evaluate.labelled import Labelled
from limbeck.evaluate.models import BOOSTED, Choice
from limbeck.evaluate.protocol import Scoring
from limbeck.evaluate.scoring import TrainingSet, score_models
from limbeck.evaluate.target_score import CLASSES, TargetScore, figures
from limbeck.privacy.schema import Column, Schema
from limbeck.progress import Reporter, Silent

Array = NDArray[Any]

# For each model of a label its like for a number.
REGRESSORS: Mapping[str, str] = {"logistic-reg": "ridge", "linear": "ridge", BOOSTED: BOOSTED, "mlp": "mlp"}
FEWEST = 3  # rows with a value, to learn from and to score on
MOST_FOR_NETWORK = 50_000


@dataclass(frozen=True, eq=False)
class Problem:
    """The other columns and the label as features, and the target, of the rows that have a value there."""

    x: Array
    y: Array


def score_targets(
    train: Labelled, test: Labelled, schema: Schema, scoring: Scoring, reporter: Reporter
) -> list[TargetScore]:
    """A row for each target and each kind of model that was chosen. train, test: encoded rows with hard categories."""
    found: list[TargetScore] = []
    models = list(dict.fromkeys(choice.model for choice in scoring.choices if choice.model in REGRESSORS))
    if schema.targets and not models and not schema.has_label:
        raise BadInput(f"Targets are predicted by {', '.join(REGRESSORS)}; name one of these, or none.")
    for column in (column for column in schema.columns if column.name in schema.targets):
        reporter.say(f"target {column.name}")
        learnt, asked = problem(train, column, schema), problem(test, column, schema)
        if len(learnt.y) < FEWEST or len(asked.y) < FEWEST:
            why = f"fewer than {FEWEST} rows have a value to learn from, or to score on"
            found.append(TargetScore(target=column.name, model="-", skipped=why))
        elif column.numeric:
            names = dict.fromkeys(REGRESSORS[model] for model in models)
            found += [_regression(column.name, name, learnt, asked, scoring) for name in names]
        else:
            found += _classes(column, learnt, asked, dataclasses.replace(scoring, choices=tuple(map(Choice, models))))
    return found


def with_ceiling(scores: Sequence[TargetScore], real: Sequence[TargetScore]) -> list[TargetScore]:
    """Each with what the same model reaches when it is trained on real rows."""
    best = {(each.target, each.model): each.main for each in real}
    return [dataclasses.replace(each, ceiling=best.get((each.target, each.model))) for each in scores]


def problem(rows: Labelled, column: Column, schema: Schema) -> Problem:
    x, y = rows.x.numpy(), rows.y.numpy()
    start = sum(each.width for each in schema.columns[: [each.name for each in schema.columns].index(column.name)])
    own = x[:, start : start + column.width]
    others = np.delete(x, np.s_[start : start + column.width], axis=1)
    if schema.has_label:
        others = np.concatenate([others, np.eye(len(schema.classes), dtype=x.dtype)[y]], axis=1)
    has_value = own[:, -1] < 0.5 if column.missing else np.ones(len(own), dtype=bool)
    if not column.numeric and not column.ordinal:
        has_value &= own[:, : len(column.categories)].max(axis=1) > 0
    return Problem(np.ascontiguousarray(others[has_value], np.float32), _values(column, own[has_value]))


def _values(column: Column, own: Array) -> Array:
    if column.numeric:
        low, high = column.range
        return np.asarray(low + (own[:, 0].astype(np.float64) + 1) / 2 * (high - low))
    if column.ordinal:
        return np.rint((own[:, 0] + 1) / 2 * (len(column.categories) - 1)).astype(np.int64)
    return np.asarray(own[:, : len(column.categories)].argmax(axis=1))


def _regression(target: str, model: str, train: Problem, test: Problem, scoring: Scoring) -> TargetScore:
    """Targets are learnt as multiples of their spread among the training rows, and scored in their own unit."""
    centre, spread = float(train.y.mean()), float(train.y.std()) or 1.0
    repeats = scoring.repeats if model == "mlp" else 1
    r2, mae = [], []
    for seed in range(scoring.seed, scoring.seed + repeats):
        with warnings.catch_warnings(action="ignore"):  # about small sets and epochs; the scores say it better
            fitted = MODELS[model](seed, len(train.y)).fit(*_thinned(train, model, seed, centre, spread))
            answers = centre + spread * np.asarray(fitted.predict(test.x), dtype=np.float64)
        left, whole = float(((test.y - answers) ** 2).sum()), float(((test.y - test.y.mean()) ** 2).sum())
        r2.append(1 - left / whole if whole > 0 else float(left == 0))
        mae.append(float(np.abs(test.y - answers).mean()))
    return TargetScore(
        target=target,
        model=model,
        records=len(train.y),
        test_records=len(test.y),
        r2=figures(r2),
        mae=figures(mae),
        library=boosting_library() if model == BOOSTED else None,
    )


def _thinned(train: Problem, model: str, seed: int, centre: float, spread: float) -> tuple[Array, Array]:
    y = (train.y - centre) / spread
    if model != "mlp" or len(y) <= MOST_FOR_NETWORK:
        return train.x, y
    kept = np.random.default_rng(seed).permutation(len(y))[:MOST_FOR_NETWORK]
    return train.x[kept], y[kept]


def _classes(column: Column, train: Problem, test: Problem, scoring: Scoring) -> list[TargetScore]:
    names = column.categories
    training = TrainingSet(x=torch.from_numpy(train.x), y=torch.from_numpy(train.y), classes=len(names), names=names)
    asked = Labelled(torch.from_numpy(test.x), torch.from_numpy(test.y))
    return [
        TargetScore(
            target=column.name,
            model=outcome.model,
            kind=CLASSES,
            records=len(train.y),
            test_records=len(test.y),
            accuracy=outcome.row.accuracy,
            area_under_curve=outcome.row.area_under_curve,
            library=outcome.row.library,
            skipped=outcome.row.skipped,
        )
        for outcome in score_models(training, [asked], scoring, Silent())
    ]


def _ridge(_: int, __: int) -> Any:
    from sklearn.linear_model import RidgeCV

    return RidgeCV(alphas=(0.1, 1.0, 10.0, 100.0))


def _network(seed: int, records: int) -> Any:
    from sklearn.neural_network import MLPRegressor

    # About as many steps whatever the number of rows, within bounds.
    epochs = min(max(400_000 // max(records, 1), 10), 300)
    return MLPRegressor(
        hidden_layer_sizes=(128, 128), batch_size=min(256, records), max_iter=epochs, alpha=1e-4, random_state=seed
    )


MODELS = {"ridge": _ridge, BOOSTED: boosted_regression, "mlp": _network}
