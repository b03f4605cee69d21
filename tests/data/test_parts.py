"""Parts of a data set: the right records under the right numbers, and a name of their own in the ledger."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from limbeck.data.parts import part_of, part_text
from limbeck.data.records import Records
from limbeck.data.source import DataSource
from limbeck.errors import BadInput
from limbeck.privacy.schema import Column, Schema
from schemas import PEOPLE

SCHEMA = Schema(
    name="all",
    shape=(1,),
    classes=tuple("abcdef"),
    records=60,
    class_sizes=(5, 6, 7, 8, 9, 25),
    augmentation=(),
    low=0.0,
    high=255.0,
)
Y = np.repeat(np.arange(6), SCHEMA.class_sizes or ())


def source(schema: Schema = SCHEMA) -> DataSource:
    return DataSource(schema, "here", lambda _: Records(Y[:, None].astype(np.float32), Y))


def test_a_part_has_its_classes_numbered_anew() -> None:
    part = part_of(source(), part_text("stage-2", [2, 3]))
    assert (part.schema.name, part.schema.classes, part.schema.class_sizes) == ("all/stage-2", ("c", "d"), (7, 8))
    assert part.schema.records == 15
    records = part.load()
    assert np.bincount(records.y).tolist() == [7, 8]
    assert np.array_equal(records.x[:, 0], records.y + 2)


def test_a_part_may_keep_all_classes() -> None:
    part = part_of(source(), part_text("stage-2", [2, 3], keep_all=True))
    assert part.schema.classes == SCHEMA.classes and part.schema.class_sizes is None and part.schema.records == 15
    assert sorted(set(part.load().y.tolist())) == [2, 3]


def test_parts_are_disjoint_and_together_the_whole() -> None:
    parts = [part_of(source(), part_text(f"s{start}", [start, start + 1], True)) for start in (0, 2, 4)]
    labels = np.concatenate([part.load().y for part in parts])
    assert np.array_equal(np.sort(labels), Y) and len({part.schema.name for part in parts}) == 3


def test_without_public_sizes_none_are_made_up() -> None:
    part = part_of(source(dataclasses.replace(SCHEMA, class_sizes=None)), "s:0,1")
    assert part.schema.class_sizes is None and part.schema.records == 20


def test_a_part_reads_nothing_until_it_is_loaded() -> None:
    def never(_: Schema) -> Records:
        raise AssertionError("read")

    part_of(DataSource(SCHEMA, "here", never), "s:0,1")


@pytest.mark.parametrize("text", ["", "s", "s:", "s:a", "s:0,9", "s:0,0", ":0,1", "s:-1,0", "s:0"])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        part_of(source(), text)


def test_a_part_keeps_the_person_of_each_record() -> None:
    units = np.arange(len(Y), dtype=np.int64) % 7 + 100
    schema = dataclasses.replace(SCHEMA, unit="patient", units=7, unit_records=20)
    whole = DataSource(schema, "here", lambda _: Records(Y[:, None].astype(np.float32), Y, units))
    for keep_all in (False, True):
        part = part_of(whole, part_text("s", [2, 3], keep_all))
        records = part.load()
        assert records.units is not None and records.units.tolist() == units[np.isin(Y, [2, 3])].tolist()
        assert part.schema.unit == "patient" and part.schema.units == 7 and part.schema.unit_records == 15


@pytest.mark.parametrize("count", [2, 3, 10, 50, 1000])
def test_a_part_by_hash_has_its_share_of_the_persons(count: int) -> None:
    """A person is in one part, so there are fewer in each; what one of them has may be all of it."""
    schema = dataclasses.replace(SCHEMA, unit="patient", units=50, unit_records=40)
    part = part_of(source(schema), f"parts/1:hash {count}").schema
    assert part.units == max(1, 50 // count)
    assert part.unit_records == min(40, part.records) and part.records == max(1, SCHEMA.records // count)


def test_a_part_has_no_more_persons_than_records() -> None:
    """And no fewer than the whole otherwise: everybody may be in it, and delta must be small enough for all of them."""
    schema = dataclasses.replace(SCHEMA, unit="patient", units=50)
    assert part_of(source(schema), "s:2,3").schema.units == 15
    assert part_of(source(schema), "s:0,5").schema.units == 30


def test_entries_of_columns_that_came_later_do_not_move_anybody_to_another_part() -> None:
    """The digest of what decides on a record's part, as it was before columns had digits, special values and kinds."""
    readings = []
    for columns in (PEOPLE.columns, (dataclasses.replace(PEOPLE.columns[3], digits=2), *PEOPLE.columns[:3])):
        part = part_of(source(dataclasses.replace(PEOPLE, columns=columns)), "thirds/2:hash 3").part
        assert part is not None
        readings.append(part.reading)
    assert readings[0] == "a295d111801abe8e9d132c82529c86eed61dceaf800d61fc7450530d120fb7b2" != readings[1]
    gaps = (Column(name="a", low=0, high=1.5, missing=True), Column(name="b", categories=("x",)))
    part = part_of(source(dataclasses.replace(PEOPLE, columns=gaps, shape=(3,))), "thirds/2:hash 3").part
    assert part is not None and part.reading.startswith("9f38731c3c6aa1c3")
