"""From the name of a part, such as thirds/2, to a part of a data set: the ledger knows how it was split."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from limbeck.data.parts import hash_part_text, part_text
from limbeck.errors import BadInput
from limbeck.runs.request import DataReference
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.commands import on_ledger
from limbeck.vault.ledger.splits import checked_name

_NAME = re.compile(r"(?P<split>[^/:]+)/(?P<part>[1-9][0-9]{0,8})")


def with_part(data: DataReference, name: str | None, ledger: Path) -> DataReference:
    """The same data, restricted to one part of a declared split. name: SPLIT/NUMBER, counted from 1; None for the whole.

    Guarantee: reads no record, and makes no ledger. What is kept of a part by hash does not tell its key.
    """
    if name is None:
        return data
    place = _NAME.fullmatch(name)
    if place is None:
        command = on_ledger("limbeck budget show", ledger)
        raise BadInput(f"A part is named SPLIT/NUMBER, such as thirds/2, got --part {name!r}.", command)
    dataset, number = data.whole().schema.name, int(place["part"])
    with Ledger.open_to_read(ledger) as book:
        split = book.split(dataset, place["split"])
    if split is None or split.kind == "stages":  # of those nobody knows the records
        raise BadInput(
            f"Data set {dataset!r} has no split {place['split']!r}. Declare it first.",
            on_ledger(f"limbeck budget split {data.words} {checked_name(place['split'])} --hash 2", ledger),
        )
    if number > len(split.parts):
        raise BadInput(f"Split {split.name!r} of {dataset!r} has {len(split.parts)} parts, got --part {name!r}.")
    if split.kind == "hash":
        return replace(data, part=hash_part_text(name, len(split.parts)))
    classes = split.parts[number - 1]
    # A set of one class alone would teach nothing, so the others stay as classes without records.
    return replace(data, part=part_text(name, classes, keep_all=len(classes) == 1))
