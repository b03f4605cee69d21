"""The unit is a person: sampled by one coin, clipped together, in one teacher, whatever they have."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from test_sensitivity import CLASSES, MAPPINGS, SHAPE
from test_teachers import KINDS, question
from through import FALSE_ALARM, answers, assert_standard_normal, noise_of, plan_for
from tiny import DELTA, MemorySource

from limbeck.data.records import Records
from limbeck.errors import BudgetRefused
from limbeck.privacy.plan import for_unit
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Identity, OneHot
from limbeck.vault.clipped_sums import ClippedSums
from limbeck.vault.ensemble.partition import partition
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.noise import Randomness
from limbeck.vault.persons import PersonSums, sample_persons

SCHEMA = Schema(
    name="tiny", shape=SHAPE, classes=("a", "b", "c"), records=1200, low=-1.0, high=1.0, unit="patient", units=90
)
CLIP = 0.5
MANY = (1, 7, 300)  # records of the persons 0, 1 and 2


def some(seed: int = 0, aligned: bool = False) -> Records:
    """Three persons as in MANY, and 20 with one to five records; all records of a person alike where `aligned`."""
    random = np.random.default_rng(seed)
    sizes = [*MANY, *random.integers(1, 6, 20)]
    units = np.repeat(np.arange(len(sizes)) * 7919 - 3, sizes).astype(np.int64)
    x = random.uniform(-1.2, 1.2, (len(units), *SHAPE)).astype(np.float32)
    y = random.integers(0, CLASSES, len(units))
    if aligned:
        x, y = x[np.searchsorted(units, units)], y[np.searchsorted(units, units)]
    order = random.permutation(len(units))
    return Records(x[order], y[order].astype(np.int64), units[order])


def only(records: Records, chosen: np.ndarray) -> Records:
    assert records.units is not None
    return Records(records.x[chosen], records.y[chosen], records.units[chosen])


def summed(records: Records, schema: Schema, query: ClippedSum, mapping: Any) -> np.ndarray:
    """Without noise, in whole steps."""
    sums = ClippedSums(schema, torch.device("cpu"), in_file_order=False)
    stream = Randomness(3).stream("sums", 0)
    found = sums.noised(dataclasses.replace(query, noise_multiplier=0.0), mapping, records, stream, stream)
    return np.rint(found / dataclasses.replace(query, noise_multiplier=0.0).step).astype(np.int64)


def asked(kind: str, **changes: Any) -> ClippedSum:
    return ClippedSum(**{"label": "sums", "map": kind, "clip": CLIP, "noise_multiplier": 1.0, **changes})


# The worst neighbour: a person with 1, 7 or 300 records


@pytest.mark.parametrize(
    ("name", "most"),
    [
        # The widest vectors by far: with one limit here, with the others in the slow tests.
        pytest.param(name, most, marks=[pytest.mark.slow] if name == "gradient of a lenet" and most != 4 else [])
        for name in MAPPINGS
        for most in (None, 4, 300)
    ],
)
def test_a_person_moves_the_sum_by_at_most_the_clip_and_nobody_else(name: str, most: int | None) -> None:
    """Without any one person the sum is that of the others, bit for bit; the difference is what the person adds alone."""
    schema, records = dataclasses.replace(SCHEMA, unit_records=most), some()
    mapping = MAPPINGS[name]
    for by_class in (True, False):
        query = asked(mapping.kind, by_class=by_class, clip=CLIP * schema.reach)
        step = dataclasses.replace(query, noise_multiplier=0.0).step
        whole = summed(records, schema, query, mapping)
        for code in np.unique(records.units)[[0, 1, 2, 12] if by_class else [2]]:
            mine = records.units == code
            moved = whole - summed(only(records, ~mine), schema, query, mapping)
            assert np.array_equal(moved, summed(only(records, mine), schema, query, mapping))
            assert np.linalg.norm(moved.astype(np.float64)) * step <= query.clip


@pytest.mark.parametrize("most", [None, 25])
def test_the_clip_is_reached_by_a_person_whose_records_agree_and_not_passed(most: int | None) -> None:
    schema, records = dataclasses.replace(SCHEMA, unit_records=most), some(aligned=True)
    query = asked("identity", clip=CLIP * schema.reach)
    step = dataclasses.replace(query, noise_multiplier=0.0).step
    for code, size in zip(np.unique(records.units)[:3], MANY, strict=True):
        alone = summed(only(records, records.units == code), schema, query, Identity())
        expected = min(CLIP * min(size, most or size), query.clip)
        assert np.linalg.norm(alone.astype(np.float64)) * step == pytest.approx(expected, rel=1e-4)


def test_one_record_of_a_person_weighs_as_much_as_without_persons() -> None:
    """Where every person has one record, the sum is that of the records."""
    records = some()
    apart = Records(records.x, records.y, np.arange(len(records), dtype=np.int64))
    plain = Records(records.x, records.y)
    schema = dataclasses.replace(SCHEMA, unit_records=9)
    by_person = asked("identity", clip=3 * CLIP)
    found = summed(apart, schema, by_person, Identity()) * dataclasses.replace(by_person, noise_multiplier=0.0).step
    query = asked("identity")
    whole = dataclasses.replace(SCHEMA, unit="record", units=None)
    expected = summed(plain, whole, query, Identity()) * dataclasses.replace(query, noise_multiplier=0.0).step
    assert np.abs(found - expected).max() < 1e-6 * len(records)


def test_rows_that_a_person_touches_are_clipped_together() -> None:
    """Ten records in each of three classes: the table of one person is within the clip, not each of its rows."""
    x = np.ones((30, *SHAPE), dtype=np.float32)
    records = Records(x, np.arange(30, dtype=np.int64) % 3, np.zeros(30, dtype=np.int64))
    query = asked("identity")
    found = summed(records, SCHEMA, query, Identity()) * dataclasses.replace(query, noise_multiplier=0.0).step
    assert np.linalg.norm(found) == pytest.approx(CLIP, rel=1e-4)
    assert np.linalg.norm(found, axis=1) == pytest.approx([CLIP / math.sqrt(3)] * 3, rel=1e-4)


@pytest.mark.parametrize("pieces", [1, 3, 50])
def test_a_person_is_the_same_in_whatever_pieces_their_records_come(pieces: int) -> None:
    random = np.random.default_rng(2)
    person, row = np.sort(random.integers(0, 9, 400)), random.integers(0, 3, 400)
    vectors = random.integers(-(2**30), 2**30, (400, 11))
    whole, split = PersonSums((3, 11), 2.0**31), PersonSums((3, 11), 2.0**31)
    whole.add(person, row, vectors)
    for part in np.array_split(np.arange(400), pieces):
        split.add(person[part], row[part], vectors[part])
    assert np.array_equal(whole.finish(), split.finish())
    none = PersonSums((3, 11), 1.0)
    none.add(person[:0], row[:0], vectors[:0])
    assert not none.finish().any()


def test_memory_does_not_grow_with_the_records_of_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    close = PersonSums.add
    monkeypatch.setattr(
        PersonSums, "add", lambda sums, person, row, rows: held.append(len(rows)) or close(sums, person, row, rows)
    )
    monkeypatch.setattr("limbeck.vault.clipped_sums.MOST_HELD", 64 * 16)
    summed(some(), SCHEMA, asked("identity"), Identity())
    assert len(held) > 15 and max(held) <= 16


# Coins


def test_a_person_has_one_coin() -> None:
    units = np.repeat(np.arange(2000), 5)
    taken = sample_persons(np.zeros(10_000, dtype=np.int64), units, (0.3,), Randomness(1).stream("s", 0))
    counts = np.bincount(units[taken], minlength=2000)
    assert set(counts.tolist()) == {0, 5}
    assert stats.binomtest(int((counts > 0).sum()), 2000, 0.3).pvalue > FALSE_ALARM


def test_rates_of_classes_share_the_coin_of_their_person() -> None:
    """A person who is in at the smaller rate is in at the larger one: the chance to be in at all is the largest rate."""
    labels, units = np.tile([0, 1], 4000), np.repeat(np.arange(4000), 2)
    taken = sample_persons(labels, units, (0.1, 0.4), Randomness(2).stream("s", 0))
    small, large = (set(units[taken][labels[taken] == place].tolist()) for place in (0, 1))
    assert small < large
    for found, rate in ((small, 0.1), (large, 0.4)):
        assert stats.binomtest(len(found), 4000, rate).pvalue > FALSE_ALARM


def test_at_most_the_declared_records_of_a_person_are_taken_and_all_have_the_same_chance() -> None:
    labels, units = np.zeros(30, dtype=np.int64), np.array([5] * 20 + [6] * 4 + [7] * 6)
    counts, contents = np.zeros(30), np.random.default_rng(9).integers(0, 2**64, (30, 2), dtype=np.uint64)
    for index in range(3000):
        taken = sample_persons(labels, units, (1.0,), Randomness(3).stream("s", index), 4, contents)
        assert np.bincount(units[taken])[5:].tolist() == [4, 4, 4]
        counts[taken] += 1
    assert (counts[20:24] == 3000).all()
    assert stats.chisquare(counts[:20]).pvalue > 1e-6 and stats.chisquare(counts[24:]).pvalue > 1e-6


def test_no_record_and_records_of_one_person() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert not len(sample_persons(none, none, (0.5,), Randomness(0).stream("s", 0)))
    one = np.zeros(9, dtype=np.int64)
    assert len(sample_persons(one, one, (1.0,), Randomness(0).stream("s", 0))) == 9


# Through the vault


def test_the_noise_is_made_for_a_whole_person(tmp_path: Path) -> None:
    schema = dataclasses.replace(SCHEMA, unit_records=16)
    method = asked("identity", count=40, noise_multiplier=3.0)
    query = for_unit(method, schema)
    assert query.clip == 4 * method.clip and query.event() == method.event()
    found = noise_of(MemorySource(schema, some()), tmp_path, lambda *_: Identity(), query)["sums"]
    assert_standard_normal(np.concatenate([part.ravel() for part in found]))


@pytest.mark.parametrize("rate", [(1.0,), (0.5, 1.0, 0.7)])
def test_answers_are_the_same_bits_for_shuffled_records(rate: tuple[float, ...], tmp_path: Path) -> None:
    schema, records = dataclasses.replace(SCHEMA, unit_records=3), some()
    order = np.random.default_rng(4).permutation(len(records))
    found = [
        answers(MemorySource(schema, held), tmp_path / name, lambda *_: OneHot(classes=3), asked("one_hot", rate=rate))
        for name, held in (("one", records), ("other", only(records, order)))
    ]
    assert found[0]["sums"][0].tobytes() == found[1]["sums"][0].tobytes()


def test_a_method_asks_with_the_clip_of_a_person_only_where_records_are_declared() -> None:
    query = asked("identity")
    assert for_unit(query, SCHEMA) == query
    assert for_unit(query, dataclasses.replace(SCHEMA, unit="record", units=None)) == query
    assert for_unit(query, dataclasses.replace(SCHEMA, unit_records=4)).clip == 2 * query.clip


# Teachers


def test_a_person_changes_one_teacher_bit_for_bit() -> None:
    records, key = some(), b"k" * 32
    whole = partition(records, 5, key)
    for code in np.unique(records.units)[:3]:
        mine = np.flatnonzero(records.units == code)
        fewer = only(records, np.flatnonzero(records.units != code))
        parts = partition(fewer, 5, key)
        changed = 0
        for teacher in range(5):
            before = records.x[whole.order[whole.bounds[teacher] : whole.bounds[teacher + 1]]]
            after = fewer.x[parts.order[parts.bounds[teacher] : parts.bounds[teacher + 1]]]
            changed += before.tobytes() != after.tobytes()
        assert changed == 1
        owners = np.searchsorted(whole.bounds, np.flatnonzero(np.isin(whole.order, mine)), side="right")
        assert len(set(owners.tolist())) == 1


def test_there_are_no_more_teachers_than_persons() -> None:
    from limbeck.errors import BadInput
    from limbeck.vault.ensemble.partition import check_ensemble

    spec = question(next(iter(KINDS))).ensemble
    with pytest.raises(BadInput, match="90 persons"):
        check_ensemble(dataclasses.replace(spec, teachers=91), SCHEMA)
    with pytest.raises(BadInput, match="persons"):
        check_ensemble(dataclasses.replace(spec, teachers=40), SCHEMA)


def test_delta_is_taken_from_the_number_of_persons() -> None:
    assert SCHEMA.privacy_units == 90 and DELTA < 1 / 90


def test_records_and_persons_are_not_booked_on_one_account(tmp_path: Path) -> None:
    """Two plans for records do not bound what a person with many records loses, and are not added to one that does."""
    record = dataclasses.replace(SCHEMA, unit="record", units=None)
    plain = Records(some().x, some().y)
    for first, second in (((SCHEMA, some()), (record, plain)), ((record, plain), (SCHEMA, some()))):
        path = tmp_path / f"{first[0].unit}.sqlite"
        with Ledger.open(path) as ledger:
            ledger.set_budget("tiny", 50.0, 1e-3)
            plan = plan_for("tiny", asked("identity"))
            LocalVault(MemorySource(*first), ledger).grant(plan)
            with pytest.raises(BudgetRefused, match="do not add up"):
                LocalVault(MemorySource(*second), ledger).grant(plan)
            LocalVault(MemorySource(*first), ledger).grant(plan)
