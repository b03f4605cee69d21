"""Pictures of a published set in pieces: the lists are read, and a picture is decoded when it is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from limbeck.data import images
from limbeck.data.records import Array, Records
from limbeck.data.streams.marks import Mark
from limbeck.data.streams.stream import Cursor, Places
from limbeck.privacy.schema import Schema

# The raw values of a picture, by its place among the records.
Decoder = Callable[[int], Array]


@dataclass(frozen=True)
class PictureStream:
    """decode: of the record at a place. y: the class of each. marks_now: of all files that the records are in."""

    where: str
    schema: Schema
    y: Sequence[int] = field(repr=False)
    decode: Decoder = field(repr=False)
    marks_now: Callable[[], tuple[Mark, ...]] = field(repr=False)

    @property
    def room(self) -> int:
        return len(self.y) * self.schema.numbers * np.dtype(images.raw_dtype(self.schema)).itemsize

    def marks(self) -> tuple[Mark, ...]:
        return self.marks_now()

    def check(self) -> None:
        """Reading shows all."""

    @contextmanager
    def opened(self) -> Iterator[Cursor]:
        yield _PictureCursor(self)


class _PictureCursor:
    def __init__(self, stream: PictureStream) -> None:
        self._stream, self._passed = stream, 0

    def take(self, count: int, wanted: Places | None = None) -> tuple[int, Records]:
        stream = self._stream
        count = min(count, len(stream.y) - self._passed)
        places = self._passed + (np.arange(count) if wanted is None else wanted[wanted < count])
        x = np.empty((len(places), *stream.schema.shape), dtype=images.raw_dtype(stream.schema))
        for row, place in enumerate(places.tolist()):
            x[row] = stream.decode(place)
        self._passed += count
        return count, Records(x, np.array([stream.y[place] for place in places.tolist()], dtype=np.int64))
