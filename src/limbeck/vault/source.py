"""What a vault is handed: private records that have not been read yet, and the check of what a reader then gives."""

from __future__ import annotations

from typing import Protocol

from limbeck.data.records import Records
from limbeck.errors import WallBreach
from limbeck.privacy.schema import Schema


class PrivateSource(Protocol):
    """Private records that have not been read yet."""

    @property
    def schema(self) -> Schema: ...

    def load(self) -> Records: ...


def checked_records(records: Records, schema: Schema) -> Records:
    """The reader's promise, checked by the vault itself: shapes and labels are what the schema says."""
    if records.x.shape != (len(records.y), *schema.shape):
        raise WallBreach(
            f"The reader of '{schema.name}' gave records of shape {records.x.shape[1:]}, not {schema.shape}."
        )
    if len(records.y) and not (records.y.min() >= 0 and records.y.max() < len(schema.classes)):
        raise WallBreach(f"The reader of '{schema.name}' gave a label outside of its {len(schema.classes)} classes.")
    return records
