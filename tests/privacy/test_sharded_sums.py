"""Records on several ranks: the answers are those of one process, bit for bit, with one noise and one coin for each record."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_person_sums as persons
from test_sensitivity import CLASSES, MAPPINGS, SHAPE
from through import plan_for
from tiny import MemorySource

from limbeck.data.records import Records
from limbeck.errors import BadInput, WallBreach
from limbeck.privacy.queries import ClippedSum, TeacherVote
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Identity, OneHot
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.noise import Randomness, SecretStream
from limbeck.vault.sharded import vault as sharded_vault
from limbeck.vault.sharded.shard import Shard, shard_of
from ranks_in_threads import Sharded

SCHEMA = Schema(name="tiny", shape=SHAPE, classes=("a", "b", "c"), records=200, low=-1.0, high=1.0)
RATES = (0.5, 1.0, 0.2)
QUICK = (
    "identity", "second moment", "convnet with count", "gradient", "outer product in a basis", "residual and waves of features",
    "cells of a table",
)  # fmt: skip


def some(count: int = 201, seed: int = 0) -> Records:
    random = np.random.default_rng(seed)
    x = random.uniform(-1.2, 1.2, (count, *SHAPE)).astype(np.float32)
    x[:1] = np.nan
    return Records(x, random.integers(0, CLASSES, count).astype(np.int64))


def asked(kind: str, **changes: Any) -> ClippedSum:
    plain = {"label": "sums", "map": kind, "clip": 0.5, "noise_multiplier": 1.0, "count": 2, "rate": RATES}
    return ClippedSum(**{**plain, **changes})


def answered(vault: LocalVault, mapping: Any, *queries: ClippedSum) -> list[bytes]:
    grant = vault.grant(plan_for(vault.describe().name, *queries))
    return [
        vault.ask(grant, query.label, index, mapping).values.tobytes()
        for query in queries
        for index in range(query.count)
    ]


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    with Ledger.open(tmp_path / "ledger.sqlite") as book:
        book.set_budget("tiny", math.inf, 0.5)
        yield book


def of_both(source: MemorySource, ledger: Ledger, mapping: Any, sizes: tuple[int, ...], *queries: ClippedSum) -> None:
    expected = answered(LocalVault(source, ledger, Randomness(3)), mapping, *queries)
    for size in sizes:
        with Sharded(source, ledger, size, Randomness(3)) as at:
            assert answered(at.vault, mapping, *queries) == expected, size


# The same bits


@pytest.mark.parametrize(
    "name", [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in MAPPINGS]
)
def test_an_answer_has_the_same_bits_for_any_number_of_ranks(name: str, ledger: Ledger) -> None:
    mapping = MAPPINGS[name]
    queries = (
        asked(mapping.kind),
        asked(mapping.kind, label="whole", by_class=False, rate=(1.0,), count=1),
    )
    of_both(MemorySource(SCHEMA, some()), ledger, mapping, (1, 2, 4), *queries)


@pytest.mark.parametrize("most", [None, 4])
@pytest.mark.parametrize("name", ["identity", "one hot", "residual", "convnet"])
def test_persons_are_on_one_rank_each_and_their_sum_has_the_same_bits(
    name: str, most: int | None, ledger: Ledger
) -> None:
    mapping = MAPPINGS[name]
    schema = dataclasses.replace(persons.SCHEMA, unit_records=most)
    query = asked(mapping.kind, rate=(0.7,), clip=0.5 * schema.reach)
    of_both(MemorySource(schema, persons.some()), ledger, mapping, (2, 4), query)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_ranks_without_a_record_are_normal(count: int, ledger: Ledger) -> None:
    source = MemorySource(SCHEMA, some(count))
    of_both(source, ledger, Identity(), (4,), asked("identity", count=1))


def test_the_order_of_the_file_changes_no_bit(ledger: Ledger) -> None:
    """Under one seed: coins that can be predicted fall on a record, not on its place."""
    records, order = some(), np.random.default_rng(1).permutation(201)
    found = []
    for held in (records, records.only(order)):
        with Sharded(MemorySource(SCHEMA, held), ledger, 3, Randomness(3)) as at:
            found.append(answered(at.vault, Identity(), asked("identity")))
    assert found[0] == found[1]


# Shards and coins


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("shuffled", [True, False])
def test_every_record_is_in_one_shard_and_has_its_own_coin(size: int, shuffled: bool) -> None:
    records, key = some(101), b"k" * 32
    shards = [shard_of(records, rank, size, shuffled) for rank in range(size)]
    np.testing.assert_array_equal(np.concatenate([shard.records.x for shard in shards]), records.x)
    np.testing.assert_array_equal(np.concatenate([shard.records.y for shard in shards]), records.y)
    assert max(map(len, shards)) - min(map(len, shards)) <= 1
    coins = np.concatenate([shard.coins(key).integers(len(shard)) for shard in shards])
    stream = SecretStream(key).integers(101)
    if shuffled:
        assert sorted(coins.tolist()) == sorted(stream.tolist())
        np.testing.assert_array_equal(coins, shard_of(records, 0, 1, True).coins(key).integers(101))
    else:
        np.testing.assert_array_equal(coins, stream)


def test_a_shard_keeps_nothing_of_the_rest() -> None:
    shard = shard_of(some(), 1, 4, False)
    for values in (shard.records.x, shard.records.y):
        assert values.base is None


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_a_person_is_on_one_rank_with_all_records(size: int) -> None:
    records = persons.some()
    shards: list[Shard] = [shard_of(records, rank, size, True) for rank in range(size)]
    held = [set(shard.records.units.tolist()) for shard in shards if shard.records.units is not None]
    assert sum(map(len, held)) == len(set.union(*held)) and sum(map(len, shards)) == len(records)


def test_each_record_is_sampled_by_a_coin_of_its_own(ledger: Ledger) -> None:
    """Secret coins: over 40 answers of 4 ranks, no two records are always drawn together, and about half are drawn."""
    x = np.zeros((32, 1, 1, 32), dtype=np.float32)
    x[np.arange(32), 0, 0, np.arange(32)] = 1.0
    schema = Schema(name="tiny", shape=(1, 1, 32), classes=("a", "b"), records=32, low=0.0, high=1.0)
    source = MemorySource(schema, Records(x, np.zeros(32, dtype=np.int64)))
    query = asked("identity", clip=10.0, noise_multiplier=0.0, rate=(0.5,), count=40, by_class=False)
    with Sharded(source, ledger, 4) as at:
        grant = at.vault.grant(plan_for("tiny", query))
        sums = np.array([at.vault.ask(grant, "sums", index, Identity()).values for index in range(40)])
    # A record in the sample adds 1 at its own place and -1 elsewhere.
    sizes = -sums.sum(1) / 30
    drawn = np.rint((sums + sizes[:, None]) / 2)
    assert set(np.unique(drawn)) == {0.0, 1.0} and 400 < drawn.sum() < 880
    assert len({tuple(column) for column in drawn.T.tolist()}) == 32


# One noise, at rank 0


def test_noise_is_drawn_once_at_rank_0_before_any_record_is_touched(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    draw, add = sharded_vault.drawn_noise, sharded_vault.tell
    monkeypatch.setattr(sharded_vault, "drawn_noise", lambda *given: seen.append("noise") or draw(*given))
    monkeypatch.setattr(sharded_vault, "tell", lambda group, said: seen.append(said.kind) or add(group, said))
    with Sharded(MemorySource(SCHEMA, some()), ledger, 3) as at:
        answered(at.vault, Identity(), asked("identity"))
    assert seen == ["read_records", "take_shard", "noise", "try_block", "add_up", "noise", "add_up"]


def test_the_key_of_the_noise_and_the_noise_stay_with_rank_0(ledger: Ledger) -> None:
    randomness, query = Randomness(3), asked("identity", count=1)
    with Sharded(MemorySource(SCHEMA, some()), ledger, 3, randomness) as at:
        answer = answered(at.vault, Identity(), query)[0]
        wires = at.ranks.wires
    said = b"".join([*wires.told, *wires.replied])
    assert randomness.key("sums", 0) in said
    assert randomness.key("sums: noise", 0) not in said and answer not in said
    # What the others add is theirs alone, without noise: their parts are whole steps of their own records' sum.
    assert len(wires.partial) == 2
    for part in wires.partial:
        assert part[-1] == 0 and np.abs(part).max() * query.step <= 0.5 * 201


def test_no_record_travels(ledger: Ledger) -> None:
    records = some()
    with Sharded(MemorySource(SCHEMA, records), ledger, 3) as at:
        answered(at.vault, Identity(), asked("identity"))
        said = b"".join([*at.ranks.wires.told, *at.ranks.wires.replied])
    assert not any(record.tobytes() in said for record in records.x)
    assert not any(record[0, 0, :4].tobytes() in said for record in records.x[1:])


# What is refused


def test_teachers_and_doubles_are_refused_before_they_are_booked(ledger: Ledger) -> None:
    vote = TeacherVote(label="votes", map="sign_vote", clip=1.0, noise_multiplier=2.0, teachers=5)
    doubles = asked("identity", on_grid=False)
    with Sharded(MemorySource(SCHEMA, some()), ledger, 2) as at:
        for query in (vote, doubles):
            with pytest.raises(BadInput, match="without torchrun"):
                at.vault.grant(plan_for("tiny", query))
        account = ledger.account("tiny")
        assert account is not None and not account.bookings


def test_what_was_not_booked_reaches_no_rank(ledger: Ledger) -> None:
    with Sharded(MemorySource(SCHEMA, some()), ledger, 2) as at:
        grant = at.vault.grant(plan_for("tiny", asked("identity")))
        for label, index, mapping in (
            ("sums", 2, Identity()),
            ("other", 0, Identity()),
            ("sums", 0, OneHot(classes=3)),
        ):
            with pytest.raises(WallBreach):
                at.vault.ask(grant, label, index, mapping)
        assert not at.ranks.wires.told
