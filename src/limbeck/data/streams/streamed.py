"""Streamed records as a vault holds them: nothing but how many there are, which of them belong to it, and marks of the files.

The first pass reads every record once, so that whatever is wrong with a file is found before the first answer, and found whoever
is in a sample later on. Every pass after it expects the same files: their marks are compared when it begins and when it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from limbeck.data.records import Records
from limbeck.data.streams.marks import Mark, has_changed
from limbeck.data.streams.stream import NONE, Cursor, Places, RecordStream, sentences
from limbeck.errors import DataNotFound, DataUnreadable
from limbeck.privacy.schema import Schema

MOST_RECORDS, MOST_NUMBERS = 1 << 15, 1 << 22  # of one piece


def records_at_once(numbers: int) -> int:
    return max(1, min(MOST_RECORDS, MOST_NUMBERS // numbers))


@dataclass(frozen=True)
class Choice:
    """Which records of a whole set are a part of it, and the numbers of their classes there.

    keeps: for records, which of them are in the part: a function of each record alone. renumbered: the new number of each class;
    None where they stay.
    """

    keeps: Callable[[Records], NDArray[np.bool_]]
    renumbered: NDArray[np.int64] | None = None

    def of(self, records: Records) -> Records:
        return renumbered(records.only(self.keeps(records)), self.renumbered)


def renumbered(records: Records, numbers: NDArray[np.int64] | None) -> Records:
    return records if numbers is None else replace(records, y=numbers[records.y])


@dataclass(frozen=True, eq=False)
class StreamedRecords:
    """Those of the records from `first` up to `last` of a stream that are `kept`: one bit for each; None for all.

    before: how many of them stand before `first` in the whole set, so that coins for the whole fall on the same records here.
    """

    stream: RecordStream
    first: int
    last: int
    marks: tuple[Mark, ...]
    kept: NDArray[np.uint8] | None = None
    renumbered: NDArray[np.int64] | None = None
    before: int = 0

    def __len__(self) -> int:
        if self.kept is None:
            return self.last - self.first
        return sum(len(self.kept_places(start, stop)) for start, stop in _spans(self.first, self.last))

    def kept_places(self, start: int, stop: int) -> Places:
        """The places in the stream of the kept ones among these records."""
        if self.kept is None:
            return np.arange(start, stop, dtype=np.int64)
        bits = np.unpackbits(self.kept[start // 8 : (stop + 7) // 8])[start % 8 :][: stop - start]
        places: Places = start + np.flatnonzero(bits)
        return places

    def part(self, rank: int, world: int) -> StreamedRecords:
        """The records that one of `world` ranks holds: a contiguous range. All ranges together are the whole, in order."""
        count = self.last - self.first
        first, last = (self.first + count * place // world for place in (rank, rank + 1))
        return replace(self, first=first, last=last, before=self.before + len(replace(self, last=first)))

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """One pass. It takes exactly as many records as there are.

        Guarantee: it ends well only if the files are what the first pass read, at its beginning and at its end. Whatever else
        happens to them is one sentence, whichever records were to be read.
        """
        with _as_before(self):
            self._require_marks()
        with _later(self) as cursor:
            reading = Reading(self, cursor)
            yield reading
        with _as_before(self):
            self._require_marks()

    def _require_marks(self) -> None:
        if self.stream.marks() != self.marks:
            raise has_changed(self.stream.where)


@contextmanager
def _as_before(records: StreamedRecords) -> Iterator[None]:
    try:
        with sentences(records.stream.where):
            yield
    except (DataUnreadable, DataNotFound):
        raise has_changed(records.stream.where) from None


@contextmanager
def _later(records: StreamedRecords) -> Iterator[Cursor]:
    """A cursor of a later pass. What the caller does with its records raises as it is."""
    with _as_before(records):
        opened = records.stream.opened()
        cursor = opened.__enter__()
    try:
        yield cursor
    finally:
        opened.__exit__(None, None, None)


class Reading:
    """One pass over streamed records."""

    def __init__(self, records: StreamedRecords, cursor: Cursor) -> None:
        self._records, self._cursor = records, cursor
        self._next = 0
        self._pass_to(records.first, NONE)

    def take(self, count: int, wanted: Places | None = None) -> Records:
        """Of the next `count` kept records those at `wanted`, which rise from 0; None for all."""
        places = self._places_of(count)
        stop = int(places[-1]) + 1 if len(places) else self._next
        chosen = places if wanted is None else places[wanted]
        return self._pass_to(stop, chosen - self._next)

    def _places_of(self, count: int) -> Places:
        records, start = self._records, self._next
        if records.kept is None:
            return np.arange(start, start + count, dtype=np.int64)
        found: list[Places] = [NONE]
        for begin, end in _spans(start, records.last):
            places = records.kept_places(begin, end)[:count]
            found.append(places)
            count -= len(places)
            if not count:
                break
        return np.concatenate(found)

    def _pass_to(self, stop: int, wanted: Places) -> Records:
        count = stop - self._next
        # All of them is said so: most readers are faster then.
        with _as_before(self._records):
            passed, found = self._cursor.take(count, None if len(wanted) == count else wanted)
            if passed < count:
                raise has_changed(self._records.stream.where)
        self._next = stop
        return renumbered(found, self._records.renumbered)


def _spans(first: int, last: int) -> Iterator[tuple[int, int]]:
    for start in range(first, last, 1 << 20):
        yield start, min(start + (1 << 20), last)


def first_pass(
    stream: RecordStream, schema: Schema, check: Callable[[Records], object], choice: Choice | None = None
) -> StreamedRecords:
    """Read every record once, check it, and remember which ones are chosen.

    check: raises if records are not what the vault expects; it sees those that are chosen, with their new numbers.
    """
    size, count = records_at_once(schema.numbers), 0
    kept: list[NDArray[np.uint8]] = []
    left: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)  # fewer than eight, which fill no byte yet
    with sentences(stream.where):
        marks = stream.marks()
        stream.check()
        with stream.opened() as cursor:
            while True:
                passed, found = cursor.take(size)
                count += passed
                check(found if choice is None else choice.of(found))
                if choice is not None:
                    bits = np.concatenate([left, choice.keeps(found)])
                    whole = len(bits) // 8 * 8
                    kept.append(np.packbits(bits[:whole]))
                    left = bits[whole:]
                if passed < size:
                    break
        if stream.marks() != marks:
            raise DataUnreadable(
                f"{stream.where} has changed while it was read; run the command again when it is at rest."
            )
    if not count:
        raise DataUnreadable(f"{stream.where} holds no record.")
    if choice is None:
        return StreamedRecords(stream, 0, count, marks)
    return StreamedRecords(stream, 0, count, marks, np.concatenate([*kept, np.packbits(left)]), choice.renumbered)
