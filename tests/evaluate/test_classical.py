"""The classifiers that are not networks: they learn, they repeat themselves, and no set makes them crash."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

from limbeck.evaluate import classical
from limbeck.evaluate.classical import RECIPES, Untrainable, accuracy_of

NAMES = sorted(RECIPES)
Arrays = tuple[Any, Any]


@pytest.fixture(autouse=True)
def xgboost_or_skip(request: pytest.FixtureRequest) -> None:
    if "xgboost" in str(getattr(request.node, "callspec", "")) and "xgboost" in request.node.name:
        pytest.importorskip("xgboost")


def clusters(records: int = 90, classes: int = 3, seed: int = 0) -> Arrays:
    """Pictures of 6x6 in [0, 1], each class around a pattern of its own."""
    centres = np.random.default_rng(9).uniform(0.2, 0.8, (classes, 1, 6, 6))
    y = np.arange(records) % classes
    noise = np.random.default_rng(seed).normal(0, 0.05, (records, 1, 6, 6))
    return (centres[y] + noise).astype(np.float32), y


@pytest.mark.parametrize("name", NAMES)
def test_separable_classes_are_learnt(name: str) -> None:
    assert accuracy_of(name, *clusters(), *clusters(seed=1), seed=0) > 85


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_fixes_the_score(name: str) -> None:
    x, y = clusters(60)
    hard = x + np.random.default_rng(3).normal(0, 0.4, x.shape).astype(np.float32)
    first, again, other = (accuracy_of(name, hard, y, *clusters(200, seed=1), seed=seed) for seed in (0, 0, 5))
    assert first == again
    assert RECIPES[name].random or first == other


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "odd",
    ["one record each", "one class only", "gaps", "one record", "all alike", "nothing to tell", "far outside"],
)
def test_odd_sets_are_scored_or_refused_in_a_sentence(name: str, odd: str) -> None:
    x, y = clusters(6, classes=3)
    test = clusters(30, classes=3, seed=1)
    if odd == "one record each":
        x, y = x[:3], y[:3]
    elif odd == "one class only":
        y = np.full_like(y, 2)
    elif odd == "gaps":
        x, y = x[y != 1], y[y != 1]
    elif odd == "one record":
        x, y = x[:1], y[:1]
    elif odd == "all alike":
        x = np.repeat(x[:1], len(x), 0)
    elif odd == "nothing to tell":
        x = np.zeros_like(x)
    else:
        x = 40 * x - 20
    try:
        score = accuracy_of(name, x, y, *test, seed=0)
    except Untrainable as refused:
        assert odd in ("all alike", "nothing to tell") and name in refused.message
        return
    assert 0 <= score <= 100
    if odd == "one class only":
        assert score == pytest.approx(100 / 3)
    if odd == "one record each" and name in ("lda", "logistic-reg", "linear-svc"):
        assert score > 85


def test_only_classes_of_the_set_are_answered() -> None:
    """Labels 0 and 2 come back as 0 and 2, not as the first and the second."""
    x, y = clusters()
    kept = y != 1
    assert accuracy_of("decision-tree", x[kept], y[kept], x[kept], y[kept], seed=0) == 100


def test_small_sets_do_not_starve_the_trees() -> None:
    assert [classical._tenth(records) for records in (5, 500, 5_000, 10_000, 60_000)] == [5, 500, 1000, 1000, 6000]


def test_a_refusal_quotes_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def fit(self, *_: object) -> None:
            raise ValueError("record 3 is 0.123")

    monkeypatch.setitem(RECIPES, "lda", classical.Recipe(make=lambda *_: Broken(), random=False))
    with pytest.raises(Untrainable) as refused:
        accuracy_of("lda", *clusters(), *clusters(), seed=0)
    assert "0.123" not in str(refused.value) and refused.value.__cause__ is None


def test_xgboost_is_imported_by_its_own_row_only(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def guarded(name: str, *rest: Any) -> Any:
        assert name.split(".")[0] != "xgboost"
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", guarded)
    assert accuracy_of("gaussian-nb", *clusters(), *clusters(seed=1), seed=0) > 85
