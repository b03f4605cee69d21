"""Records in pieces are the records that the readers hold, bit for bit, whatever is taken of them at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamed_files
from limbeck.data.records import Records
from limbeck.data.streams import rows
from limbeck.data.streams.streamed import Choice, StreamedRecords, first_pass
from streamed_files import COUNT, FORMS, source_of

SIZES = (1, 7, 4096)


def opened(folder: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Records, StreamedRecords]:
    source = source_of(folder, form)
    whole = source.load()
    monkeypatch.setenv("LIMBECK_MEMORY", "1")
    stream = source.stream()
    assert stream is not None and stream.room >= whole.x.nbytes
    return whole, first_pass(stream, source.schema, lambda records: None)


def same(one: Records, other: Records) -> bool:
    return one.x.dtype == other.x.dtype and one.x.tobytes() == other.x.tobytes() and (one.y == other.y).all()


@pytest.mark.parametrize("form", FORMS)
def test_pieces_of_every_form_are_the_whole(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, streamed = opened(tmp_path, form, monkeypatch)
    assert len(streamed) == len(whole) == COUNT
    for size in SIZES:
        with streamed.reading() as reading:
            for start in range(0, COUNT, size):
                stop = min(start + size, COUNT)
                assert same(reading.take(stop - start), whole.only(np.arange(start, stop)))


@pytest.mark.parametrize("form", FORMS)
def test_chosen_places_of_every_form(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, streamed = opened(tmp_path, form, monkeypatch)
    random = np.random.default_rng(0)
    for size in (7, 40, COUNT):
        for share in (0.0, 0.03, 0.5):
            with streamed.reading() as reading:
                for start in range(0, COUNT, size):
                    length = min(size, COUNT - start)
                    wanted = np.flatnonzero(random.random(length) < share)
                    found = reading.take(length, wanted)
                    expected = whole.only(start + wanted)
                    assert len(found) == len(wanted) and (not len(wanted) or same(found, expected))


@pytest.mark.parametrize("form", ["npz", "csv", "table", "folder"])
def test_a_rank_holds_a_range_and_knows_how_many_stand_before_it(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, streamed = opened(tmp_path, form, monkeypatch)
    place = 0
    for rank in range(3):
        part = streamed.part(rank, 3)
        assert part.before == place
        with part.reading() as reading:
            assert same(reading.take(len(part)), whole.only(np.arange(place, place + len(part))))
        place += len(part)
    assert place == COUNT


@pytest.mark.parametrize("form", ["npz", "packed idx", "csv", "table", "parquet"])
def test_a_choice_is_the_same_part_in_the_same_order(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(tmp_path, form)
    choice = Choice(lambda records: records.y == 1, np.zeros(len(source.schema.classes), dtype=np.int64))
    expected = choice.of(source.load())
    monkeypatch.setenv("LIMBECK_MEMORY", "1")
    monkeypatch.setattr("limbeck.data.streams.streamed.MOST_RECORDS", 7)  # no multiple of eight: bits are carried on
    stream = source.stream()
    assert stream is not None
    streamed = first_pass(stream, source.schema, lambda records: None, choice)
    assert len(streamed) == len(expected)
    for size in SIZES:
        with streamed.reading() as reading:
            for start in range(0, len(expected), size):
                stop = min(start + size, len(expected))
                assert same(reading.take(stop - start), expected.only(np.arange(start, stop)))
    ranks = [streamed.part(rank, 2) for rank in range(2)]
    assert ranks[1].before == len(ranks[0]) and sum(map(len, ranks)) == len(expected)


def test_a_row_group_of_which_nothing_is_wanted_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    _, streamed = opened(tmp_path, "table", monkeypatch)
    read: list[int] = []
    before = pq.ParquetFile.iter_batches

    def counting(file: object, *args: object, **named: object) -> object:
        read.extend(named["row_groups"])  # type: ignore[arg-type]
        return before(file, *args, **named)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counting)
    with streamed.reading() as reading:
        reading.take(COUNT, np.array([3, 44, 45]))
    assert read == [0, 4]


def test_rows_that_are_not_wanted_are_not_read_where_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setattr("limbeck.data.streams.rows.NEAR", 1)
    _, streamed = opened(tmp_path, "npz", monkeypatch)
    read: list[int] = []
    before = os.preadv

    def counting(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        read.append(len(buffers[0]))
        return before(descriptor, buffers, offset)

    monkeypatch.setattr("limbeck.data.streams.rows.os.preadv", counting)
    with streamed.reading() as reading:
        reading.take(COUNT, np.array([3, 60]))
    assert sorted(read) == [1, 1, 20, 20]  # two labels, two pictures of 20 bytes


def test_eight_bits_stay_eight_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, streamed = opened(tmp_path, "idx", monkeypatch)
    with streamed.reading() as reading:
        assert reading.take(5).x.dtype == np.uint8


def test_what_fits_is_held(tmp_path: Path) -> None:
    assert source_of(tmp_path, "npz").stream() is None


def test_arrays_column_by_column_and_persons_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = streamed_files.pictures()
    source = source_of(tmp_path, "npz")
    np.savez(tmp_path / "set" / "set.npz", x=np.asfortranarray(x), y=y)
    monkeypatch.setenv("LIMBECK_MEMORY", "1")
    assert source.stream() is None


@pytest.mark.parametrize("form", ["npz", "packed npz", "idx"])
def test_no_more_is_read_at_a_time_than_is_said(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, streamed = opened(tmp_path, form, monkeypatch)
    monkeypatch.setattr("limbeck.data.streams.rows.PIECE", 100)
    read: list[int] = []
    for kind in (rows._PlainCursor, rows._PackedCursor):

        def counting(*args: int, before: Any = kind._read) -> Any:
            found = before(*args)
            read.append(found.nbytes)
            return found

        monkeypatch.setattr(kind, "_read", counting)
    wanted = np.arange(0, COUNT, 2)
    with streamed.reading() as reading:
        assert same(reading.take(COUNT, wanted), whole.only(wanted))
    assert max(read) <= 160 and len(read) > 10
