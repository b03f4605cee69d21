"""A split of a published set as its own files hold it: pictures one by one, or two arrays. Both can be read, and looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from limbeck.data import images, pairs
from limbeck.data.limits import require_count, require_room
from limbeck.data.published.pieces import PictureStream
from limbeck.data.records import Array, Records, as_records
from limbeck.data.streams.marks import Mark
from limbeck.data.streams.memory import require_memory
from limbeck.data.streams.stream import RecordStream
from limbeck.data.survey_pictures import form_of, looks_medical
from limbeck.data.surveyed import Survey
from limbeck.errors import DataUnreadable
from limbeck.privacy.schema import Schema

MOST_LOOKED_AT = 20_000  # headers of pictures, while a schema is drafted


class Found(Protocol):
    """One split, not read yet."""

    def records(self, schema: Schema) -> Records: ...

    def stream(self, schema: Schema) -> RecordStream | None:
        """None where the records cannot be read in pieces."""
        ...

    def survey(self) -> Survey: ...


@dataclass(frozen=True)
class Pictures:
    """Image files, or members of an archive, each with its class.

    pictures: of each record what gives the file or its bytes. labels: indices of `classes`, None for a record that is of no class
    of this label. label: what the classes are of. marks: what tells its files from other ones.
    """

    where: str
    label: str
    classes: tuple[str, ...]
    pictures: Sequence[Callable[[], bytes | Path]] = field(repr=False)
    labels: Sequence[int | None] = field(repr=False)
    marks: Callable[[], tuple[Mark, ...]] = field(repr=False)

    def stream(self, schema: Schema) -> PictureStream:
        """Records of the schema's classes; one of any other class is left out, which depends on that record alone."""
        pairs.require_records(schema, self.where)
        index = {name: place for place, name in enumerate(schema.classes)}
        unknown = [name for name in schema.classes if name not in self.classes]
        if unknown:
            raise DataUnreadable(
                f"{self.where} has no class '{unknown[0]}' among its {len(self.classes)} by the label '{self.label}'."
            )
        places = [index.get(name) for name in self.classes]
        classed = [(row, places[label]) for row, label in enumerate(self.labels) if label is not None]
        rows = [(row, place) for row, place in classed if place is not None]
        if not rows:
            raise DataUnreadable(f"{self.where} holds no record of the classes of '{schema.name}'.")
        require_count(len(rows), schema, self.where)

        def decoded(place: int) -> Array:
            row = rows[place][0]
            return images.decode(self.pictures[row](), schema, f"{self.where}, picture {row + 1}")

        return PictureStream(self.where, schema, [place for _, place in rows], decoded, self.marks)

    def records(self, schema: Schema) -> Records:
        stream = self.stream(schema)
        require_room(stream.room, self.where, schema)
        with stream.opened() as cursor:
            _, found = cursor.take(len(stream.y))
        return as_records(found.x, found.y, schema, self.where)

    def survey(self) -> Survey:
        counts = Counter(label for label in self.labels if label is not None)
        sizes = {name: counts[place] for place, name in enumerate(self.classes) if counts[place]}
        of_a_class = [row for row, label in enumerate(self.labels) if label is not None]
        form = form_of(
            (self.pictures[row](), f"{self.where}, picture {row + 1}") for row in of_a_class[:MOST_LOOKED_AT]
        )
        if form is None:
            raise DataUnreadable(f"{self.where} holds no record.")
        found = Survey(shape=form.shape, low=form.low, high=form.high, sizes=sizes, label=self.label)
        medical = form.dicom or looks_medical(Path(self.where).name, *sizes)
        return replace(found, resize=form.resize, careful=medical, picture_remarks=form.remarks)


@dataclass(frozen=True)
class Header:
    """What is known of an array before it is unpacked."""

    shape: tuple[int, ...]
    room: int


@dataclass(frozen=True)
class Arrays:
    """Two arrays in files whose headers tell their sizes. load: gives x as (records, channels, height, width), and class
    indices.
    """

    where: str
    label: str
    classes: tuple[str, ...]
    headers: tuple[Header, Header]
    load: Callable[[], tuple[Array, Array]] = field(repr=False)

    def records(self, schema: Schema) -> Records:
        pairs.require_records(schema, self.where)
        if len(schema.classes) != len(self.classes):
            raise DataUnreadable(
                f"{self.where} has {len(self.classes)} classes by the label '{self.label}', but the schema of "
                f"'{schema.name}' lists {len(schema.classes)}."
            )
        pairs.judge(*self.headers, schema, Path(self.where))
        require_memory(sum(header.room for header in self.headers), self.where)
        x, y = self.load()
        return as_records(x, y, schema, self.where)

    def stream(self, schema: Schema) -> None:
        """Packed as a whole, and turned: these are held."""

    def survey(self) -> Survey:
        pairs.judge(*self.headers, None, Path(self.where))
        x, y = self.load()
        if not len(x) or len(x) != len(y):
            raise DataUnreadable(f"{self.where} holds {len(x)} records and {len(y)} labels.")
        if y.min() < 0 or y.max() >= len(self.classes):
            raise DataUnreadable(f"{self.where} holds labels outside 0..{len(self.classes) - 1}.")
        counts = np.bincount(y, minlength=len(self.classes)).tolist()
        sizes = dict(zip(self.classes, counts, strict=True))
        medical = looks_medical(Path(self.where).name, *sizes)
        return Survey(shape=x.shape[1:], low=0, high=255, sizes=sizes, label=self.label, careful=medical)


def channels_first(x: Array, where: str) -> Array:
    """(records, height, width) or (records, height, width, channels) of whole bytes, as records are here."""
    if x.dtype != np.uint8 or x.ndim not in (3, 4) or (x.ndim == 4 and x.shape[3] not in (1, 3)):
        raise DataUnreadable(
            f"{where} holds pictures of shape {x.shape} and type {x.dtype}; expected 8 bits, 1 or 3 channels."
        )
    return x[:, None] if x.ndim == 3 else np.ascontiguousarray(np.moveaxis(x, 3, 1))
