"""A first schema for data in the hands of a Python program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from limbeck.data.draft import draft_of, draft_of_frame
from limbeck.data.frames import frame_kind
from limbeck.data.surveyed import Wanted
from limbeck.errors import BadInput
from limbeck.privacy.schema import Schema
from limbeck.progress import Lines, Reporter


def draft(
    data: Any,
    *,
    name: str | None = None,
    label: str | None = None,
    targets: Sequence[str] = (),
    unit: str | None = None,
    reporter: Reporter | None = None,
) -> Schema:
    """A first schema for your data, like `limbeck schema draft`. Whatever was read off the records waits for your word.

    No plan is made while an entry is left under `unconfirmed`; `to_confirm` shows them. Change what is only known from the
    records (`dataclasses.replace`), then call `confirmed()`: by that you declare the entries public, and they will be on
    certificates.

    Args:
        data: a frame of pandas, polars or Arrow, or a path.
        name: the account in the ledger: one name, one data set. Of a frame it has to be said.
        label: the column with the classes; a frame may have none.
        targets: columns that models are to predict; a number by regression.
        unit: the column that says who a record is about, where a person may have several.
        reporter: told what is left out and why; None says it on standard error, because it must not go unnoticed.

    >>> import pyarrow as pa
    >>> from limbeck.progress import Silent
    >>> frame = pa.table({"age": [30, 41, 52, 63] * 9, "ill": [False, True] * 18})
    >>> found = draft(frame, name="clinic", label="ill", reporter=Silent())
    >>> print(found.to_confirm)
    classes: False, True
    records: 36
    columns.age: 30 to 70, integer
    >>> found.confirmed().unconfirmed
    ()
    """
    wanted = Wanted(label=label, unit=unit, targets=tuple(targets), unlabelled=label is None)
    if frame_kind(data) is None:
        found = draft_of(Path(data), wanted, name)
    elif name is None:
        raise BadInput("A frame has no name; say name=, which stands for the data in the ledger: one name, one budget.")
    else:
        found = draft_of_frame(data, name, wanted)
    for sentence in found.aloud:
        (reporter or Lines()).say(sentence)
    return found.schema
