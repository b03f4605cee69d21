"""Boosted trees, the strongest plain model on tables: XGBoost where it is installed, else scikit-learn's."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from typing import Any

ROUNDS, DEPTH, RATE = 150, 6, 0.1


def boosted_trees(seed: int, _: int) -> Any:
    """Neither draws rows or columns, so one fit is enough."""
    if has_xgboost():
        from xgboost import XGBClassifier

        return XGBClassifier(
            n_estimators=ROUNDS, max_depth=DEPTH, learning_rate=RATE, tree_method="hist", random_state=seed
        )
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Its own way of stopping early holds records back, of which a small set has none to spare.
    return HistGradientBoostingClassifier(
        max_iter=ROUNDS, max_depth=DEPTH, learning_rate=RATE, early_stopping=False, random_state=seed
    )


def boosted_regression(seed: int, _: int) -> Any:
    """The same for a number."""
    if has_xgboost():
        from xgboost import XGBRegressor

        return XGBRegressor(
            n_estimators=ROUNDS, max_depth=DEPTH, learning_rate=RATE, tree_method="hist", random_state=seed
        )
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        max_iter=ROUNDS, max_depth=DEPTH, learning_rate=RATE, early_stopping=False, random_state=seed
    )


def has_xgboost() -> bool:
    return importlib.util.find_spec("xgboost") is not None


def boosting_library() -> str:
    """Which of the two it is, with its version, as a result names it."""
    if has_xgboost():
        import xgboost

        return f"xgboost {xgboost.__version__}"
    return f"HistGradientBoosting of scikit-learn {importlib.metadata.version('scikit-learn')}"
