"""A part of a data set: some of its classes, or some of its records by a keyed hash. It spends from the whole's budget.

Parts of one split hold different records. Adding or removing one record changes one part, so what the parts spend does
not add up: all of their releases together cost what the dearest part costs (parallel composition). The ledger keeps the
splits and does the sums.

Not so where the unit is a person: one person's records may be of several classes, so they are in several parts, and what these
spend adds up. `limbeck continual`, which counts on parallel parts, refuses such a schema.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from limbeck.data.records import Records
from limbeck.data.source import DataSource
from limbeck.data.streams.streamed import Choice
from limbeck.errors import BadInput, WallBreach
from limbeck.privacy.part import PartOf
from limbeck.privacy.schema import Schema

ALL = " of all"
HASH = "hash "
# SPLIT/NUMBER; a name without a slash is that of a stage which an earlier version began.
_PLACE = re.compile(r"(?P<split>[^/:]+)/(?P<part>[1-9][0-9]{0,8})")


@dataclass(frozen=True)
class PartSource(DataSource):
    """A part as a source. `part` is None for a stage that an earlier version began; `whole` is what it is a part of;
    `choice` says which records it has, where classes do.

    Guarantee: nothing but the records of the part can be loaded from it. Of a part by hash the vault alone knows which
    these are: it takes them from `whole`.
    """

    part: PartOf | None = None
    whole: DataSource = dataclasses.field(kw_only=True, repr=False)
    choice: Choice | None = dataclasses.field(default=None, repr=False)


def part_text(name: str, classes: Sequence[int], keep_all: bool = False) -> str:
    """
    >>> part_text("stages-5/1", [0, 1]), part_text("stages-5/1", [0, 1], keep_all=True)
    ('stages-5/1:0,1', 'stages-5/1:0,1 of all')
    """
    return f"{name}:{','.join(map(str, classes))}{ALL if keep_all else ''}"


def hash_part_text(name: str, parts: int) -> str:
    """
    >>> hash_part_text("thirds/2", 3)
    'thirds/2:hash 3'
    """
    return f"{name}:{HASH}{parts}"


def part_of(source: DataSource, text: str) -> PartSource:
    """The part that `part_text` or `hash_part_text` describes.

    Of a split by class its classes are those with these indices, numbered from 0; with "of all" it keeps all classes, and the
    others have no record. A part by hash has all classes.

    Guarantee: reads no record. A record is in the part because of its own class, or its own hash, and nothing else.
    """
    name, _, listed = text.partition(":")
    if listed.startswith(HASH):
        return _hash_part(source, name, listed.removeprefix(HASH))
    keep_all = listed.endswith(ALL)
    try:
        indices = [int(index) for index in listed.removesuffix(ALL).split(",")]
        classes = [source.schema.classes[index] for index in indices]
    except (ValueError, IndexError):
        raise BadInput(f"A part is written like stages-5/1:0,1 with places of classes, got '{text}'.") from None
    if not name or len(set(classes)) != len(classes) or min(indices) < 0:
        raise BadInput(f"A part needs a name and different classes, got '{text}'.")
    schema = _part_schema(source.schema, name, indices, keep_all)
    choice = _of_classes(indices, len(source.schema.classes), keep_all)

    def read(_: Schema) -> Records:
        return choice.of(source.load())

    part, where = _place_of(source.schema, name, tuple(indices)), f"{source.where}, {name}"
    return PartSource(schema, where, read, finder=source.finder, part=part, whole=source, choice=choice)


def _hash_part(source: DataSource, name: str, count: str) -> PartSource:
    part = _place_of(source.schema, name, ())
    if part is None or not count.isdecimal() or not part.part <= int(count):
        raise BadInput(f"A part by hash is written like thirds/2:hash 3, got '{name}:{HASH}{count}'.")
    whole = source.schema
    # How many records of which class, or persons, a part has is a secret of the key; only the expected number is public.
    records = max(1, whole.records // int(count))
    schema = dataclasses.replace(
        whole,
        name=part.account,
        records=records,
        class_sizes=None,
        units=None if whole.units is None else max(1, whole.units // int(count)),
        unit_records=None if whole.unit_records is None else min(whole.unit_records, records),
    )

    def read(_: Schema) -> Records:
        raise WallBreach(
            f"Only a vault can read '{schema.name}': the ledger keeps the key that says which records it has."
        )

    return PartSource(schema, f"{source.where}, {name}", read, finder=source.finder, part=part, whole=source)


def _place_of(whole: Schema, name: str, classes: tuple[int, ...]) -> PartOf | None:
    place = _PLACE.fullmatch(name)
    if place is None:
        return None
    return PartOf(
        parent=whole.name,
        split=place["split"],
        part=int(place["part"]),
        classes=classes,
        unit=whole.unit,
        reading=_reading(whole, by_class=bool(classes)),
    )


def _reading(whole: Schema, by_class: bool) -> str:
    """A digest of the entries that decide which part a record is in.

    By class these are the order of the classes and where the label stands. A hash of a record is one of its encoded numbers, so
    the columns and how pictures are resized, too; a person's is one of the id alone.
    """
    if whole.by_person:
        return ""
    entries = ["classes", "label", *([] if by_class else ["shape", "columns"])]
    values = whole.to_dict()
    if whole.resize is not None and not by_class:  # a picture at another size, or depth, has other numbers
        entries += ["resize", "low", "high"]
    text = json.dumps({entry: values[entry] for entry in entries if entry in values}, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    # A deep picture is cut to the range as it is read. The range stands beside the digest, which is as it was before 0.6.0.
    ranged = whole.is_image and whole.resize is None and not by_class and (whole.low, whole.high) != (0, 255)
    return f"{digest} in {whole.low:.17g}..{whole.high:.17g}" if ranged else digest


def _part_schema(whole: Schema, name: str, indices: list[int], keep_all: bool) -> Schema:
    sizes = None if whole.class_sizes is None else tuple(whole.class_sizes[index] for index in indices)
    # Without public class sizes, that classes are about equally large is an assumption; rates and the limit on delta
    # are taken from it, and no promise is.
    records = sum(sizes) if sizes else max(1, whole.records * len(indices) // len(whole.classes))
    return dataclasses.replace(
        whole,
        name=f"{whole.name}/{name}",
        classes=whole.classes if keep_all else tuple(whole.classes[index] for index in indices),
        class_sizes=None if keep_all else sizes,
        records=records,
        # Each person may be in this part, so their number is no smaller here. Nobody is in it without a record.
        units=None if whole.units is None else min(whole.units, records),
        unit_records=None if whole.unit_records is None else min(whole.unit_records, records),
    )


def _of_classes(indices: list[int], classes: int, keep_all: bool) -> Choice:
    numbered = np.zeros(classes, dtype=np.int64)
    numbered[indices] = np.arange(len(indices))
    return Choice(lambda records: np.isin(records.y, indices), None if keep_all else numbered)
