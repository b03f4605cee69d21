"""Who is in a sample, read off answers that went the whole way through a vault.

Every record lights up a number of its own, and the noise is small, so that an answer shows its sample. Seeds are fixed; each
docstring says with what chance a seed drawn anew would fail.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from through import FALSE_ALARM, answers
from tiny import MemorySource

from limbeck.data.records import Records
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Identity
from limbeck.vault.noise import SecretStream
from limbeck.vault.sampling import poisson_sample

SIDE, CLASSES, TIMES = 18, 3, 150
RECORDS = SIDE * SIDE
RATES = (0.5, 0.2, 0.03)
LABELS = np.arange(RECORDS) % CLASSES
SHOWN = Schema(name="shown", shape=(1, SIDE, SIDE), classes=("a", "b", "c"), records=RECORDS, high=16.0, low=0.0)
Masks = NDArray[np.bool_]


def query(label: str, rate: tuple[float, ...], by_class: bool = False) -> ClippedSum:
    values = {"map": "identity", "clip": 1.0, "noise_multiplier": 0.05, "count": TIMES}
    return ClippedSum(label=label, rate=rate, by_class=by_class, **values)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def masks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Masks]:
    """(answers, records) for three queries. Noise of 0.05 hides 1/2 with a chance of 1e-23."""
    x = np.full((RECORDS, RECORDS), 8.0, np.float32)
    np.fill_diagonal(x, 16.0)
    source = MemorySource(SHOWN, Records(x.reshape(RECORDS, *SHOWN.shape), LABELS))
    queries = query("by rate", RATES), query("again", RATES), query("table", (0.3,), by_class=True)
    found = answers(source, Path(tmp_path_factory.mktemp("shown")), lambda *_: Identity(), *queries, seed=11)
    shown = {label: np.stack([np.atleast_2d(answer) for answer in given]) for label, given in found.items()}
    assert all(np.minimum(np.abs(given), np.abs(given - 1)).max() < 0.45 for given in shown.values())
    own_row = shown["table"][:, LABELS, np.arange(RECORDS)] > 0.5
    assert (shown["table"].sum(1) > 0.5).sum() == own_row.sum()  # nobody is in the row of another class
    return {"by rate": shown["by rate"][:, 0] > 0.5, "again": shown["again"][:, 0] > 0.5, "table": own_row}


def unlikely(drawn: int, of: int, chance: float) -> bool:
    return bool(stats.binomtest(int(drawn), int(of), chance).pvalue <= FALSE_ALARM)


@pytest.mark.parametrize("label", ["by rate", "again", "table"])
def test_each_class_is_sampled_at_its_own_rate(masks: dict[str, Masks], label: str) -> None:
    """16,200 coins for each class, by the exact binomial law: fails with a chance of 1e-9 for each of nine."""
    for place in range(CLASSES):
        tossed = masks[label][:, place == LABELS]
        assert not unlikely(tossed.sum(), tossed.size, 0.3 if label == "table" else RATES[place])


@pytest.mark.parametrize("label", ["by rate", "again", "table"])
def test_no_record_is_favoured(masks: dict[str, Masks], label: str) -> None:
    """Each record's own count over 150 answers is binomial: fails with a chance of 1e-9 for each of 972."""
    rates = np.full(CLASSES, 0.3) if label == "table" else np.array(RATES)
    for record, drawn in enumerate(masks[label].sum(0)):
        assert not unlikely(drawn, TIMES, rates[LABELS[record]])


def test_sizes_of_samples_are_secret(masks: dict[str, Masks]) -> None:
    """They spread as independent coins do, neither fixed nor all alike; chi-square of 150 sizes, about 1e-9 for each of three."""
    for place, rate in enumerate(RATES):
        sizes = masks["by rate"][:, place == LABELS].sum(1)
        of = int((place == LABELS).sum())
        spread = float(np.square(sizes - of * rate).sum() / (of * rate * (1 - rate)))
        # Few coins have a longer tail than the normal law: 1e-12 leaves room for it.
        assert stats.chi2.ppf(1e-12, TIMES) < spread < stats.chi2.isf(1e-12, TIMES)


@pytest.mark.parametrize("lag", [1, 2, 7, 75])
def test_answers_do_not_share_a_sample(masks: dict[str, Masks], lag: int) -> None:
    """A record is in two answers with the chance of two coins: fails with a chance of 1e-9 for each of three classes."""
    for place, rate in enumerate(RATES):
        drawn = masks["by rate"][:, place == LABELS]
        both = drawn[lag:] & drawn[:-lag]
        assert not unlikely(both.sum(), both.size, rate * rate)


def test_queries_do_not_share_a_sample(masks: dict[str, Masks]) -> None:
    """Fails with a chance of 1e-9 for each of three classes and two pairs of queries."""
    for place, rate in enumerate(RATES):
        for label, other in (("again", rate), ("table", 0.3)):
            both = (masks["by rate"] & masks[label])[:, place == LABELS]
            assert not unlikely(both.sum(), both.size, rate * other)


@pytest.mark.parametrize("lag", [1, 2, 3, 5, 108, 162])
def test_records_do_not_share_a_coin(masks: dict[str, Masks], lag: int) -> None:
    """Neighbours in the file, in a class and further off: fails with a chance of 1e-9 for each lag and pair of classes."""
    drawn, labels = masks["by rate"], LABELS
    for first in range(CLASSES):
        for second in range(CLASSES):
            pairs = (labels[:-lag] == first) & (labels[lag:] == second)
            both = (drawn[:, :-lag] & drawn[:, lag:])[:, pairs]
            if both.size:
                assert not unlikely(both.sum(), both.size, RATES[first] * RATES[second])


class Chosen(SecretStream):
    """Chosen coins in place of secret ones."""

    def __init__(self, coins: list[int]) -> None:
        self.coins = np.array(coins, dtype=np.uint64)

    def integers(self, count: int) -> NDArray[np.uint64]:
        assert count == len(self.coins)
        return self.coins


@pytest.mark.parametrize("rate", [0.5, 0.25, 1e-5])
def test_the_chance_is_never_above_the_rate(rate: float) -> None:
    """Of all 2^64 coins rate * 2^64 take a record, rounded down: the first that does not is that very number."""
    limit = int(rate * 2**64)
    coins = [0, limit - 1, limit, limit + 1, 2**64 - 1]
    assert poisson_sample(np.zeros(5, dtype=np.int64), (rate,), Chosen(coins)).tolist() == [0, 1]
