"""A part of a data set: some of its classes, held by a party of its own, with a name and so a budget of its own.

Parts with different classes hold different records. Adding or removing one record changes one part, so what the parts
spend does not add up: all of their releases together cost what the dearest part costs (parallel composition).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from limbeck.data.records import Records
from limbeck.data.source import DataSource
from limbeck.errors import BadInput
from limbeck.privacy.schema import Schema

ALL = " of all"


def part_text(name: str, classes: Sequence[int], keep_all: bool = False) -> str:
    """
    >>> part_text("stage-1", [0, 1]), part_text("stage-1", [0, 1], keep_all=True)
    ('stage-1:0,1', 'stage-1:0,1 of all')
    """
    return f"{name}:{','.join(map(str, classes))}{ALL if keep_all else ''}"


def part_of(source: DataSource, text: str) -> DataSource:
    """The part that `part_text` describes.

    Its classes are those with these indices, numbered from 0; with "of all" it keeps all classes, and the others have no
    record.

    Guarantee: reads no record. A record is in the part because of its own class and nothing else.
    """
    name, _, listed = text.partition(":")
    keep_all = listed.endswith(ALL)
    try:
        indices = [int(index) for index in listed.removesuffix(ALL).split(",")]
        chosen = [source.schema.classes[index] for index in indices]
    except (ValueError, IndexError):
        raise BadInput(f"A part is written like stage-1:0,1 with places of classes, got '{text}'.") from None
    if not name or len(set(chosen)) != len(chosen) or min(indices) < 0:
        raise BadInput(f"A part needs a name and different classes, got '{text}'.")
    schema = _part_schema(source.schema, name, indices, keep_all)

    def read(_: Schema) -> Records:
        return _chosen(source.load(), indices, keep_all)

    return DataSource(schema, f"{source.where}, {name}", read, finder=source.finder)


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
    )


def _chosen(records: Records, indices: list[int], keep_all: bool) -> Records:
    mine = np.isin(records.y, indices)
    if keep_all:
        return Records(records.x[mine], records.y[mine])
    numbered = {old: new for new, old in enumerate(indices)}
    y = np.array([numbered[label] for label in records.y[mine].tolist()], dtype=np.int64)
    return Records(records.x[mine], y)
