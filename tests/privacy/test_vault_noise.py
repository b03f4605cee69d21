"""The noise of answers that went the whole way through a vault: its scale, its form, and that no two numbers share it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from through import answers, assert_independent, assert_standard_normal, noise_of
from tiny import MemorySource

from limbeck.data.records import Records
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.vault import clipped_sums
from limbeck.vault.api import Identity, Residual, SecondMoment
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.noise import Randomness, SecretStream, drawn_noise

SIDE, CLASSES = 64, 3
WIDE = Schema(name="wide", shape=(1, SIDE, SIDE), classes=("a", "b", "c"), records=30, high=16.0, low=0.0)
NUMBERS = SIDE * SIDE


def wide(seed: int = 0) -> MemorySource:
    random = np.random.default_rng(seed)
    x = random.integers(0, 17, (WIDE.records, *WIDE.shape)).astype(np.float32)
    return MemorySource(WIDE, Records(x, np.arange(WIDE.records) % CLASSES))


def sums(label: str = "sums", **changed: Any) -> ClippedSum:
    values: dict[str, Any] = {"map": "identity", "clip": 2.0, "noise_multiplier": 4.0, "count": 5}
    return ClippedSum(label=label, **{**values, **changed})


def identity(label: str, index: int) -> Identity:
    return Identity()


# Scale and form


@pytest.mark.parametrize(
    "query",
    [
        sums(),
        sums(rate=(0.5,)),
        sums(rate=(0.3, 1.0, 0.01), clip=0.01, noise_multiplier=30.0),
        sums(by_class=False, count=15, clip=500.0, noise_multiplier=0.7),
    ],
    ids=["by class", "sampled", "rates of classes", "one row"],
)
def test_a_sum_has_just_the_noise_that_was_paid_for(query: ClippedSum, tmp_path: Path) -> None:
    """61,440 numbers for each query: noise of 0.97 times the scale is found, and so is any other form than the normal one.

    A seed drawn anew would fail with a chance of 1e-9 for each query (see `assert_standard_normal`).
    """
    found = np.concatenate([part.ravel() for part in noise_of(wide(), tmp_path, identity, query)["sums"]])
    assert found.size == 15 * NUMBERS
    assert_standard_normal(found)


MAPPINGS: dict[str, Callable[[], Any]] = {
    "second_moment": lambda: SecondMoment(),
    "residual": lambda: Residual(centre=torch.zeros(1, 64), scale=1.0, form="outer"),
}


@pytest.mark.parametrize("kind", MAPPINGS)
def test_maps_with_a_sum_of_their_own_are_noised_alike(
    kind: str, schema: Schema, records: Records, tmp_path: Path
) -> None:
    """4096 numbers in 3 rows, five times: 61,440. A seed drawn anew would fail with a chance of 1e-9 for each map."""
    query = sums(map=kind)
    made = MAPPINGS[kind]()
    found = noise_of(MemorySource(schema, records), tmp_path, lambda *_: made, query)["sums"]
    assert_standard_normal(np.concatenate([part.ravel() for part in found]))


def test_noise_does_not_depend_on_the_sum_that_it_hides(tmp_path: Path) -> None:
    """Nothing is scaled by what is there: a sum of nothing and a large one get the same noise under one seed."""
    grey = Records(np.full((WIDE.records, *WIDE.shape), 8.0, np.float32), np.arange(WIDE.records) % CLASSES)
    query = sums(clip=30.0, count=1)
    one = noise_of(wide(), tmp_path / "one", identity, query)["sums"][0]
    other = noise_of(MemorySource(WIDE, grey), tmp_path / "other", identity, query)["sums"][0]
    assert np.abs(one - other).max() < 1e-5  # answers are kept in single precision


def test_a_run_of_an_older_version_goes_on_with_its_own_noise(tmp_path: Path) -> None:
    """Booked with doubles, answered with doubles: 61,440 numbers. A seed drawn anew would fail with a chance of 1e-9."""
    found = noise_of(wide(), tmp_path, identity, sums(on_grid=False))["sums"]
    assert_standard_normal(np.concatenate([part.ravel() for part in found]))


def test_noise_is_drawn_before_a_record_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long the sampler takes depends on the noise. Whoever watches must not see it beside a record's time."""
    seen: list[str] = []
    draw, sample = clipped_sums.drawn_noise, clipped_sums.poisson_sample
    monkeypatch.setattr(clipped_sums, "drawn_noise", lambda *given: seen.append("noise") or draw(*given))
    monkeypatch.setattr(clipped_sums, "poisson_sample", lambda *given: seen.append("sample") or sample(*given))
    answers(wide(), tmp_path, identity, sums(count=2))
    assert seen == ["noise", "sample"] * 2


def test_coins_and_noise_have_keys_of_their_own(tmp_path: Path) -> None:
    for seed in (None, 4):
        with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
            vault = LocalVault(wide(), ledger, Randomness(seed))
            coins, noise = vault._streams(sums(), 0)
            assert not set(coins.integers(50).tolist()) & set(noise.integers(50).tolist())


# Independence


def test_rows_answers_and_queries_share_no_noise(tmp_path: Path) -> None:
    """Every row of a table, every answer and every query has numbers of its own: 21 rows of 4096 numbers.

    A seed drawn anew would fail with a chance of 1e-9 (see `assert_independent`).
    """
    queries = sums(count=3), sums("others", count=3), sums("whole", count=3, by_class=False)
    found = noise_of(wide(), tmp_path, identity, *queries)
    rows = [row for label in found for answer in found[label] for row in np.atleast_2d(answer)]
    assert len(rows) == 21
    assert_independent(rows)


def test_numbers_of_one_row_share_no_noise(tmp_path: Path) -> None:
    """Neighbours, halves and quarters of a row. A seed drawn anew would fail with a chance of 1e-9."""
    (answer,) = noise_of(wide(), tmp_path, identity, sums(count=1))["sums"]
    assert_independent(np.split(answer, 16, axis=1))
    assert_independent([answer[:, ::2], answer[:, 1::2]])


def test_secret_keys_give_scale_form_and_independence_as_well(tmp_path: Path) -> None:
    """With keys of the operating system, over two runs of two queries: fails with a chance of 3e-9, each time that it is run."""
    grey = Records(np.full((WIDE.records, *WIDE.shape), 8.0, np.float32), np.arange(WIDE.records) % CLASSES)
    queries = sums(count=2, rate=(0.5,)), sums("others", count=2)
    rows: list[NDArray[np.float64]] = []
    for run in ("one", "two"):
        found = answers(MemorySource(WIDE, grey), tmp_path / run, identity, *queries, seed=None)
        rows += [row / (4.0 * 2.0) for label in found for answer in found[label] for row in answer]
    assert len(rows) == 24
    assert_independent(rows)
    assert_standard_normal(np.concatenate(rows))


# How a number is made


class Counted(SecretStream):
    """Chosen bits in place of secret ones, and how many were taken."""

    def __init__(self, bits: NDArray[np.uint64]) -> None:
        self.bits, self.taken = bits, 0

    def integers(self, count: int) -> NDArray[np.uint64]:
        self.taken += count
        assert self.taken <= len(self.bits), "more bits were taken than before"
        return self.bits[self.taken - count : self.taken]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_number_is_a_sum_of_several_draws(count: int) -> None:
    """Mironov's attack reads off the last bits which values one draw can reach. So a number comes of at least four 64-bit
    integers (two radii and two angles), no integer reaches two numbers, and of each integer more bits matter than a float
    of single precision holds.
    """
    bits = np.random.default_rng(1).integers(0, 2**64, 64 * count, dtype=np.uint64)
    first = Counted(bits)
    before = first.gaussian((count,))
    reach = np.zeros((first.taken, count), dtype=bool)
    for place in range(first.taken):
        for bit in (20, 40, 63):
            changed = bits.copy()
            changed[place] ^= np.uint64(1 << bit)
            moved = Counted(changed).gaussian((count,)) != before
            assert moved.sum() == 1
            reach[place] |= moved
    assert (reach.sum(1) == 1).all()
    assert (reach.sum(0) >= 4).all()


@pytest.mark.parametrize("bits", [0, 2**64 - 1, 2**11 - 1])
def test_no_bits_at_all_give_a_number_that_is_not_finite(bits: int) -> None:
    drawn = Counted(np.full(64, bits, dtype=np.uint64)).gaussian((5,))
    assert np.isfinite(drawn).all() and np.abs(drawn).max() < 20


def test_the_numbers_of_a_draw_have_scale_one_whatever_their_number() -> None:
    """One number alone, 60,000 times over: sums of draws are scaled back. Another seed would fail with a chance of 1e-9."""
    bits = np.random.default_rng(2).integers(0, 2**64, 16 * 60_000, dtype=np.uint64)
    stream = Counted(bits)
    assert_standard_normal(np.concatenate([stream.gaussian((1,)) for _ in range(60_000)]))
    assert stream.taken == 4 * 60_000


def test_the_stream_is_never_taken_twice() -> None:
    """What the sample was drawn from is not what the noise is made of: the numbers of one key run on."""
    key = b"k" * 32
    whole = SecretStream(key).integers(3000)
    parts = SecretStream(key)
    assert np.concatenate([parts.integers(1000) for _ in range(3)]).tolist() == whole.tolist()
    assert len(set(whole.tolist())) == 3000


def test_the_bounds_find_what_they_are_for() -> None:
    """On 61,440 numbers 0.97 of the noise is 10 standard deviations off, and the bound lies at 6.3 of them."""
    random = np.random.default_rng(3)
    drawn = random.standard_normal(15 * NUMBERS)
    assert_standard_normal(drawn)
    for wrong in (0.9 * drawn, 0.97 * drawn, 1.03 * drawn, drawn + 0.05, random.uniform(-1, 1, drawn.size) * 3**0.5):
        with pytest.raises(AssertionError):
            assert_standard_normal(wrong)
    with pytest.raises(AssertionError):
        assert_independent([drawn, np.roll(drawn, 1), drawn])


@pytest.mark.parametrize("clip", [0.01, 2.5, 300.0])
def test_a_query_states_the_noise_that_its_answers_have(clip: float) -> None:
    query = ClippedSum(label="sums", map="identity", clip=clip, noise_multiplier=3.0)
    drawn = drawn_noise(query, (200_000,), Randomness(insecure_seed=4).stream("noise", 0)) * query.step
    assert query.noise_std == pytest.approx(3.0 * clip)
    assert float(drawn.std()) == pytest.approx(query.noise_std, rel=0.01)
