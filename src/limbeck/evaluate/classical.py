"""The classifiers that are not PyTorch networks: those of GS-WGAN's Tables A1 and A2, and boosted trees for tables.

The paper says "default hyper-parameters", but the accuracies in its column "Real" come from those of its published
evaluation, which shortens bagging and boosting. Ours follow the latter. Where that gives every tree a tenth of the
records, a small set would starve: below 10,000 records each tree gets up to FEWEST of them. Inputs lie in [0, 1].
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limbeck.errors import BadInput
from limbeck.evaluate.boosted import boosted_trees

Array = NDArray[Any]
Make = Callable[[int, int], Any]  # (seed, records) -> an estimator that is not fitted yet

FEWEST = 1000


class Untrainable(BadInput):
    """A classifier that cannot be fitted to this set; the others may be."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """`random` says whether the seed matters; a classifier without chance is fitted once."""

    make: Make
    random: bool


def accuracy_of(name: str, x: Array, y: Array, test_x: Array, test_y: Array, seed: int) -> float:
    """Percent right on the test records, of a classifier fitted to (x, y). x: (records, ...) in [0, 1]; y: class indices."""
    return 100.0 * float((_answers(*_fit(name, _flat(x), y, seed), _flat(test_x)) == test_y).mean())


def answers_of(name: str, x: Array, y: Array, test_x: Array, classes: int, seed: int) -> tuple[Array, Array]:
    """The class that a fitted classifier gives each test record, and how likely it holds each one: (records, classes)."""
    fitted, known = _fit(name, _flat(x), y, seed)
    return _answers(fitted, known, _flat(test_x)), _scores(fitted, known, _flat(test_x), classes)


def _answers(fitted: Any, known: Array, x: Array) -> Array:
    with _quietly():
        answers: Array = known[np.asarray(fitted.predict(x)).astype(np.int64)]
    return answers


def _scores(fitted: Any, known: Array, x: Array, classes: int) -> Array:
    """A class that the set has no record of is the least likely everywhere."""
    with _quietly():
        told = getattr(fitted, "predict_proba", None) or getattr(fitted, "decision_function", None)
        found = np.eye(len(known))[fitted.predict(x)] if told is None else np.asarray(told(x), dtype=np.float64)
    if found.ndim == 1:
        found = np.stack([-found, found], axis=1)
    scores = np.full((len(x), classes), found.min())
    scores[:, known] = found
    return scores


def _fit(name: str, x: Array, y: Array, seed: int) -> tuple[Any, Array]:
    """The fitted estimator, and the class that each of its labels stands for (XGBoost wants labels without gaps)."""
    classes, labels = np.unique(y, return_inverse=True)
    estimator = _constant() if len(classes) == 1 else RECIPES[name].make(seed, len(y))
    if name == "lda" and len(classes) > 1 and not _varies_within(x, labels):
        # No scatter inside the classes: linear discriminants shrink to the nearest class mean.
        estimator = _nearest_mean()
    try:
        with _quietly():
            return estimator.fit(x, labels), classes
    except (ValueError, np.linalg.LinAlgError):
        # The library's own words may quote values, and real records pass through here too.
        raise Untrainable(f"{name} cannot be fitted to this set of {len(y)} records.") from None


def _varies_within(x: Array, labels: Array) -> bool:
    centres = np.stack([x[labels == label].mean(0) for label in range(int(labels.max()) + 1)])
    return bool(np.abs(x - centres[labels]).max() > 1e-7)


def _flat(x: Array) -> Array:
    return np.ascontiguousarray(x.reshape(len(x), -1), dtype=np.float32)


def _quietly() -> warnings.catch_warnings[None]:
    """Sets of a few records are met with warnings about each; the scores say it better."""
    return warnings.catch_warnings(action="ignore")


def _tenth(records: int) -> int:
    return max(records // 10, min(records, FEWEST))


def _mlp(seed: int, _: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(hidden_layer_sizes=(100,), max_iter=200, tol=1e-3, random_state=seed)


def _adaboost(seed: int, _: int) -> Any:
    from sklearn.ensemble import AdaBoostClassifier

    # The paper has 100 stumps by SAMME.R, which scikit-learn gave up; by SAMME it takes 120 to come as far.
    return AdaBoostClassifier(n_estimators=120, random_state=seed)


def _bagging(seed: int, records: int) -> Any:
    from sklearn.ensemble import BaggingClassifier

    return BaggingClassifier(n_estimators=20, max_samples=_tenth(records), random_state=seed)


def _bernoulli_nb(_: int, __: int) -> Any:
    from sklearn.naive_bayes import BernoulliNB

    return BernoulliNB(binarize=0.5)


def _decision_tree(seed: int, _: int) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(class_weight="balanced", random_state=seed)


def _gaussian_nb(_: int, __: int) -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def _gbm(seed: int, records: int) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(n_estimators=50, subsample=_tenth(records) / records, random_state=seed)


def _lda(_: int, __: int) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.5)


def _linear_svc(seed: int, _: int) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(loss="hinge", random_state=seed)


def _logistic_reg(_: int, __: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=200)


def _random_forest(seed: int, _: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, class_weight="balanced", random_state=seed)


def _xgboost(seed: int, _: int) -> Any:
    from xgboost import XGBClassifier

    # Depth and learning rate are the library's defaults of 2020, the year of the paper.
    return XGBClassifier(n_estimators=50, max_depth=3, learning_rate=0.1, colsample_bytree=0.1, random_state=seed)


def _constant() -> Any:
    from sklearn.dummy import DummyClassifier

    return DummyClassifier(strategy="most_frequent")


def _nearest_mean() -> Any:
    from sklearn.neighbors import NearestCentroid

    return NearestCentroid()


RECIPES = {
    "mlp-100": Recipe(make=_mlp, random=True),
    "boosted-trees": Recipe(make=boosted_trees, random=False),
    "adaboost": Recipe(make=_adaboost, random=True),
    "bagging": Recipe(make=_bagging, random=True),
    "bernoulli-nb": Recipe(make=_bernoulli_nb, random=False),
    "decision-tree": Recipe(make=_decision_tree, random=True),
    "gaussian-nb": Recipe(make=_gaussian_nb, random=False),
    "gbm": Recipe(make=_gbm, random=True),
    "lda": Recipe(make=_lda, random=False),
    "linear-svc": Recipe(make=_linear_svc, random=True),
    "logistic-reg": Recipe(make=_logistic_reg, random=False),
    "random-forest": Recipe(make=_random_forest, random=True),
    "xgboost": Recipe(make=_xgboost, random=True),
}
