"""How well each class is told from the rest. Where classes are of unequal size, accuracy alone says little."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def area_under_curves(truth: Array, scores: Array) -> float | None:
    """The area under the ROC curve in percent: of two classes, or the mean of one class against the rest over more.

    truth: class indices. scores: (records, classes), higher where a class is likelier. A class that no test record has, or
    that all have, has no curve; None where no class has one.

    >>> area_under_curves(np.array([0, 0, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]]))
    50.0
    """
    from sklearn.metrics import roc_auc_score

    if scores.shape[1] == 2:
        # A difference, because the larger of two unscaled scores is the answer.
        scores = np.stack([scores[:, 0] - scores[:, 1], scores[:, 1] - scores[:, 0]], axis=1)
    there = [index for index in range(scores.shape[1]) if 0 < (truth == index).sum() < len(truth)]
    if not there:
        return None
    return 100.0 * float(np.mean([roc_auc_score(truth == index, scores[:, index]) for index in there]))


def f1_of_classes(truth: Array, answers: Array, classes: int) -> tuple[float | None, ...]:
    """F1 in percent of each class: of precision and recall the harmonic mean. None for a class that no test record has.

    >>> f1_of_classes(np.array([0, 0, 1]), np.array([0, 1, 1]), 3)
    (66.66666666666667, 66.66666666666667, None)
    """
    found: list[float | None] = []
    for index in range(classes):
        actual, claimed = truth == index, answers == index
        both = int(actual.sum()) + int(claimed.sum())
        found.append(200.0 * int((actual & claimed).sum()) / both if actual.any() else None)
    return tuple(found)


def confusions(truth: Array, answers: Array, classes: int) -> Array:
    """(classes, classes): how many test records of the row's class were taken for the column's.

    >>> confusions(np.array([0, 0, 1]), np.array([0, 1, 1]), 2).tolist()
    [[1, 1], [0, 1]]
    """
    return np.bincount(truth * classes + answers, minlength=classes * classes).reshape(classes, classes)
