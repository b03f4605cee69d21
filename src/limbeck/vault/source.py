"""What a vault is handed: private records that have not been read yet, and the check of what a reader then gives."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from limbeck.data.records import Records
from limbeck.data.streams.stream import RecordStream
from limbeck.data.streams.streamed import StreamedRecords
from limbeck.errors import WallBreach
from limbeck.privacy.schema import Schema


class PrivateSource(Protocol):
    """Private records that have not been read yet."""

    @property
    def schema(self) -> Schema: ...

    def load(self) -> Records: ...


@runtime_checkable
class StreamedSource(Protocol):
    """A private source that may be larger than memory. `stream`: None where `load` is the way to read it."""

    @property
    def schema(self) -> Schema: ...

    def load(self) -> Records: ...

    def stream(self) -> RecordStream | None: ...


# What a vault has of a source that it has opened.
Held = Records | StreamedRecords


def checked_records(records: Records, schema: Schema) -> Records:
    """The reader's promise, checked by the vault itself: shapes, labels and persons are what the schema says.

    Guarantee: where the unit is a person, every record has its person; nothing is answered by record instead.
    """
    if records.x.shape != (len(records.y), *schema.shape):
        raise WallBreach(
            f"The reader of '{schema.name}' gave records of shape {records.x.shape[1:]}, not {schema.shape}."
        )
    if len(records.y) and not (records.y.min() >= 0 and records.y.max() < len(schema.classes)):
        raise WallBreach(f"The reader of '{schema.name}' gave a label outside of its {len(schema.classes)} classes.")
    if (records.units is not None) != schema.by_person:
        gave = "persons" if records.units is not None else "no persons"
        raise WallBreach(f"The reader of '{schema.name}' gave {gave}, but its unit is {schema.unit_words}.")
    if records.units is not None and not _is_code_each(records.units, len(records.y)):
        raise WallBreach(f"The reader of '{schema.name}' did not give one whole number per record for its persons.")
    return records


def _is_code_each(units: NDArray[np.int64], count: int) -> bool:
    return units.shape == (count,) and units.dtype == np.int64
