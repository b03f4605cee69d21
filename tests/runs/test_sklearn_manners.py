"""Beside scikit-learn and imbalanced-learn: copies, pipelines and resampling work; searches are refused before they book."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate, learning_curve
from sklearn.pipeline import Pipeline, make_pipeline

from frames import SCHEMA as TABLE
from frames import rows
from limbeck import Condenser, Ledger, Schema
from limbeck.errors import BadInput

SCHEMA = Schema(name="own", shape=(4,), classes=("a", "b"), records=200, low=0, high=10, augmentation=())
X = np.random.default_rng(0).uniform(0, 10, (200, 4)).astype(np.float32)
Y = np.arange(200) % 2
X[Y == 1] = X[Y == 1] / 4
SMALL: dict[str, Any] = {"method": "ldpdc", "epsilon": None, "per_class": 3, "settings": {"L": 10, "sigma": 2.0}}


def spent() -> int:
    with Ledger.open() as ledger:
        return sum(len(account.bookings) for account in ledger.accounts())


@pytest.mark.parametrize("jobs", [None, 2])
@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "in a pipeline"])
def test_a_grid_search_is_refused_with_the_reason_and_books_nothing(wrapped: bool, jobs: int | None) -> None:
    own = Condenser(**SMALL, schema=SCHEMA)
    estimator = Pipeline([("condense", own)]) if wrapped else own
    name = "condense__per_class" if wrapped else "per_class"
    search = GridSearchCV(estimator, {name: [2, 3]}, cv=2, scoring=lambda *_: 0.0, n_jobs=jobs)
    from joblib import parallel_config

    with parallel_config(backend="threading"), pytest.raises(ValueError, match="each fit is a booking") as caught:
        search.fit(X, Y)
    assert "sklearn.model_selection" in str(caught.value) and spent() == 0


def test_a_search_that_raises_says_it_itself() -> None:
    search = GridSearchCV(Condenser(**SMALL, schema=SCHEMA), {"per_class": [2]}, cv=2, error_score="raise")
    with pytest.raises(BadInput, match="each fit is a booking"):
        search.fit(X, Y)
    assert spent() == 0


def test_so_are_cross_validation_and_ensembles() -> None:
    own = Condenser(**SMALL, schema=SCHEMA)
    sampling = pytest.importorskip("imblearn.pipeline").make_pipeline(own, LogisticRegression())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for attempt in (
            lambda: cross_validate(own, X, Y, scoring=lambda *_: 0.0),
            lambda: learning_curve(own, X, Y, scoring=lambda *_: 0.0, error_score="raise"),
            lambda: BaggingClassifier(sampling).fit(X, Y),
        ):
            with pytest.raises((ValueError, BadInput), match="each fit is a booking"):
                attempt()
    assert spent() == 0


def test_a_search_over_models_of_the_set_is_nobodys_harm() -> None:
    made = Condenser(**SMALL, schema=SCHEMA).fit(X, Y)
    GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3).fit(*made.set_)
    assert spent() == 1


def test_it_has_no_score() -> None:
    with pytest.raises(BadInput, match="no score"):
        Condenser().score(X, Y)


def test_a_copy_has_the_schema_and_a_pipeline_fits() -> None:
    own = Condenser(**SMALL, schema=SCHEMA)
    assert clone(own).get_params() == own.get_params()
    assert make_pipeline(clone(own)).fit(X, Y)[-1].X_.shape == (6, 4)
    assert "Condenser" in repr(make_pipeline(own)) and "per_class=3" in repr(own)


def test_resampled_records_are_in_the_terms_of_the_given_ones() -> None:
    own = Condenser(**SMALL, schema=SCHEMA)
    x, y = own.fit_resample(X, Y)
    assert x.shape == (6, 4) and x.min() >= 0 and x.max() <= 10 and y.tolist() == [0, 0, 0, 1, 1, 1]
    np.testing.assert_allclose(x, (np.clip(own.X_, -1, 1) + 1) * 5, atol=1e-5)
    named = Condenser(**SMALL, schema=SCHEMA, ledger=None).set_params(insecure_seed=1)
    with pytest.raises(Exception, match="budget"):  # each fit is a booking here, too
        named.fit_resample(X, np.array(SCHEMA.classes)[Y])


def test_pictures_keep_their_axes_and_their_type() -> None:
    schema = Schema(name="scans", shape=(3, 4, 5), classes=("a", "b"), records=60, low=0, high=255)
    pictures = np.random.default_rng(0).integers(0, 256, (60, 4, 5, 3), dtype=np.uint8)
    x, y = Condenser(**SMALL, schema=schema).fit_resample(pictures, np.array(["a", "b"])[np.arange(60) % 2])
    assert x.shape == (6, 4, 5, 3) and x.dtype == np.uint8 and set(y) == {"a", "b"}


def test_a_frame_is_resampled_to_a_frame_and_its_labels() -> None:
    pd = pytest.importorskip("pandas")
    import dataclasses

    frame = pd.DataFrame(rows(400))
    labels = frame.pop("ill")
    settings = {"T": 20, "components": 10, "rows": 25, "sigma": 0.5, "bins": 6, "search": 0}
    own = Condenser(epsilon=None, settings=settings, insecure_seed=3, schema=dataclasses.replace(TABLE, records=400))
    x, y = own.fit_resample(frame, labels)
    assert list(x.columns) == list(frame.columns) and y.dtype == labels.dtype and len(x) == len(y) == 25


def test_in_a_pipeline_of_imbalanced_learn() -> None:
    pipeline = pytest.importorskip("imblearn.pipeline").make_pipeline(
        Condenser(**SMALL, schema=SCHEMA, insecure_seed=1), LogisticRegression()
    )
    pipeline.fit(X, Y)
    assert pipeline.predict(X).shape == (200,) and spent() == 1
