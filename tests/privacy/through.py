"""Answers as they leave the vault, of one seed with and without noise, so that the noise itself can be looked at."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from tiny import DELTA, MemorySource

from limbeck.privacy.accounting import price
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import Query
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.noise import Randomness

Array = NDArray[np.float64]
# Each statistical test of this folder fails with at most this chance for a seed that was drawn anew. Its own seed is fixed.
FALSE_ALARM = 1e-9


def plan_for(dataset: str, *queries: Query) -> Plan:
    return Plan(dataset=dataset, method="ldpdc", settings={}, queries=queries, price=price(queries, DELTA))


def answers(
    source: MemorySource, folder: Path, asked: Any, *queries: Query, seed: int | None = 0
) -> dict[str, list[Array]]:
    """Every answer of every query; `asked(label, index)` is the map or the question."""
    folder.mkdir(parents=True, exist_ok=True)
    with Ledger.open(folder / "ledger.sqlite") as ledger:
        ledger.set_budget(source.schema.name, math.inf, 0.5)
        vault = LocalVault(source, ledger, Randomness(seed))
        grant = vault.grant(plan_for(source.schema.name, *queries))
        return {
            query.label: [
                vault.ask(grant, query.label, index, asked(query.label, index)).values.astype(np.float64)
                for index in range(query.count)
            ]
            for query in queries
        }


def noise_of(source: MemorySource, folder: Path, asked: Any, *queries: Query, seed: int = 0) -> dict[str, list[Array]]:
    """The noise of every answer in units of what was paid for: two vaults of one seed differ by nothing else.

    The unit is computed here, and not by the query, which might be wrong about it.
    """
    silent = [replace(query, noise_multiplier=0.0) for query in queries]
    noised = answers(source, folder / "noised", asked, *queries, seed=seed)
    plain = answers(source, folder / "plain", asked, *silent, seed=seed)
    return {
        query.label: [
            (one - other) / (query.noise_multiplier * query.clip)
            for one, other in zip(noised[query.label], plain[query.label], strict=True)
        ]
        for query in queries
    }


def assert_standard_normal(numbers: Array) -> None:
    """Scale by the exact law of the sum of squares, place by that of the mean, form by Kolmogorov and Smirnov.

    Each has a false-alarm rate of FALSE_ALARM / 3. The squares of 50,000 numbers find a scale that is off by 2 % in every
    second case, and one that is off by 3 % in all but one case of a thousand.
    """
    n, rate = numbers.size, FALSE_ALARM / 3
    squares = float(np.square(numbers).sum())
    assert stats.chi2.ppf(rate / 2, n) < squares < stats.chi2.isf(rate / 2, n), f"scale {math.sqrt(squares / n):.4f}"
    assert abs(float(numbers.sum())) / math.sqrt(n) < stats.norm.isf(rate / 2)
    assert stats.kstest(numbers.ravel(), "norm").pvalue > rate


def assert_independent(parts: list[Array]) -> None:
    """No two of the parts are correlated, themselves or their sizes.

    Guarantee: a false-alarm rate of FALSE_ALARM for all pairs together. The law of Pearson's r is exact for normal numbers, and
    nearly so for ranks, which are what is compared of the sizes.
    """
    flat = [part.ravel() for part in parts]
    pairs = [(one, other) for place, one in enumerate(flat) for other in flat[:place]]
    for one, other in pairs:
        assert stats.pearsonr(one, other).pvalue > FALSE_ALARM / (2 * len(pairs))
        assert stats.spearmanr(np.abs(one), np.abs(other)).pvalue > FALSE_ALARM / (2 * len(pairs))
