"""What a Python program gives as data: a path, a name, a vault's socket, or a frame."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from limbeck.data import DataSource
from limbeck.data.frames import frame_kind, frame_source
from limbeck.errors import BadInput
from limbeck.privacy.schema import Schema
from limbeck.runs.request import DataReference


def given_data(
    data: Any,
    schema: str | Path | Schema | None,
    label: str | None,
    root: str | Path | None,
    vault: str | Path | None = None,
) -> DataReference | DataSource:
    """Where the records are; of a frame, which is in this process, their source."""
    if frame_kind(data) is not None:
        if vault is not None or root is not None:
            raise BadInput("A frame is in this process; leave vault= and root= out.")
        return frame_source(data, _schema_of_frame(schema, label))
    if isinstance(schema, Schema):
        raise BadInput(
            "schema=Schema(...) is for frames; of data by path give the path of the file, so that a run can be resumed."
        )
    if data is None and vault is None:
        raise BadInput("Give data, or the socket of a vault that holds the records as vault=.")
    return DataReference(
        data=as_text(data), schema=as_text(schema), label=label, root=as_text(root), vault=as_text(vault)
    )


def given_source(
    data: Any, schema: str | Path | Schema | None, label: str | None, root: str | Path | None, stated: Schema | None
) -> DataSource:
    """Test records for a release. stated: what it says is public about them, where they have no schema of their own."""
    found = given_data(data, stated if schema is None and frame_kind(data) else schema, label, root)
    return found if isinstance(found, DataSource) else found.source("test", stated)


def _schema_of_frame(schema: str | Path | Schema | None, label: str | None) -> Schema:
    if schema is None:
        raise BadInput(
            "A frame needs schema=, which says what is public about it. limbeck.draft(frame, name=..., label=...) gives a "
            "first one."
        )
    found = schema if isinstance(schema, Schema) else Schema.read(Path(schema))
    return found if label is None else dataclasses.replace(found, label=label)


def as_text(path: str | Path | None) -> str | None:
    return None if path is None else str(path)
