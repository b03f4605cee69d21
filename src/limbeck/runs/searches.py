"""Fits that are part of a search over many: refused, because every fit of a condenser is booked and paid for."""

from __future__ import annotations

import sys
from types import FrameType

from limbeck.errors import BadInput

# Modules whose functions fit copies of an estimator again and again, on parts of the records or with other settings.
MANY_FITS = (
    "sklearn.model_selection", "sklearn.ensemble", "sklearn.calibration", "sklearn.multiclass", "sklearn.multioutput",
    "sklearn.feature_selection", "imblearn.ensemble", "dask_ml.model_selection", "skopt",
)  # fmt: skip


def require_single_fit() -> None:
    """Guarantee: returns only if nobody who called this fit, in this thread, is a search of the libraries above.

    Called before anything is opened or booked. A search hands a copy of the estimator to its own function and calls `fit` from
    there, also in another thread or process, so its module stands among the callers.
    """
    found: FrameType | None = sys._getframe(1)
    while found is not None:
        module = found.f_globals.get("__name__", "")
        if any(module == name or module.startswith(f"{name}.") for name in MANY_FITS):
            raise BadInput(
                f"A condenser cannot be fitted inside of {module.rsplit('._', 1)[0]}: each fit is a booking, so a search over k "
                "settings or folds spends k times the epsilon. limbeck.plan prices settings for nothing; to compare methods fit "
                "once and train any models on set_, with cross-validation if you like, or use 'limbeck sweep', which books the "
                "whole price first."
            )
        found = found.f_back
