"""The records of a part. Of a split by hash the vault alone can choose them, because only the ledger knows the key."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limbeck.data.parts import PartSource
from limbeck.data.records import Records
from limbeck.data.streams.streamed import Choice, StreamedRecords, first_pass
from limbeck.errors import WallBreach
from limbeck.privacy.part import PartOf
from limbeck.privacy.schema import Schema
from limbeck.privacy.unit import UNIT_RECORD
from limbeck.vault.keyed_hash import unit_hashes
from limbeck.vault.ledger import Ledger, Split
from limbeck.vault.source import PrivateSource, StreamedSource, checked_records


def part_of_source(source: PrivateSource) -> PartOf | None:
    """Which part a source holds; None for a whole data set."""
    return source.part if isinstance(source, PartSource) else None


def load_records(source: PrivateSource, ledger: Ledger) -> Records:
    """What a source holds, once it is paid for."""
    records = load_whole(source)
    chosen = chosen_records(records, source, ledger)
    return records if chosen is None else records.only(chosen)


def load_whole(source: PrivateSource) -> Records:
    """What a source holds; of a part by hash the whole that the vault takes it from."""
    part = part_of_source(source)
    if part is None or part.classes:
        return source.load()
    assert isinstance(source, PartSource)
    return source.whole.load()


def chosen_records(records: Records, source: PrivateSource, ledger: Ledger) -> NDArray[np.bool_] | None:
    """Which of the records that `load_whole` gave are the source's own; None for all of them."""
    part = part_of_source(source)
    if part is None or part.classes:
        return None
    split = split_of(part, ledger)
    if part.unit != UNIT_RECORD and records.units is None:
        raise WallBreach(
            f"The reader of {part.parent!r} does not say whose each record is, so persons cannot be kept apart."
        )
    return in_hash_part(records, split, part.part)


def stream_records(source: PrivateSource, ledger: Ledger, schema: Schema) -> StreamedRecords | None:
    """The same without holding it, where it would take more memory than is held; None where it would not.

    Guarantee: every record is read and checked once. What is chosen is what `load_records` chooses, in the same order.
    """
    part, choice = part_of_source(source), None
    whole: PrivateSource = source
    if isinstance(source, PartSource):
        by_hash = part is not None and not part.classes
        choice = hash_choice(split_of(part, ledger), part.part) if part is not None and by_hash else source.choice
        whole = source.whole
        if choice is None:
            return None
    stream = whole.stream() if isinstance(whole, StreamedSource) else None
    if stream is None:
        return None
    return first_pass(stream, whole.schema, lambda records: checked_records(records, schema), choice)


def split_of(part: PartOf, ledger: Ledger) -> Split:
    split = ledger.split(part.parent, part.split)
    if split is None or split.kind != "hash":
        raise WallBreach(f"The ledger knows no split {part.split!r} by hash of data set {part.parent!r}.")
    return split


def hash_choice(split: Split, part: int) -> Choice:
    return Choice(lambda records: in_hash_part(records, split, part))


def in_hash_part(records: Records, split: Split, part: int) -> NDArray[np.bool_]:
    """Whether each record is in one part, counted from 1.

    Guarantee: a unit is in exactly one part, which depends on the key and on that unit alone.
    """
    # The remainder of 64 random bits is uneven by less than parts / 2^64.
    places = unit_hashes(records, split.secret, split.by_value)[:, 0] % np.uint64(len(split.parts))
    chosen: NDArray[np.bool_] = places == part - 1
    return chosen
