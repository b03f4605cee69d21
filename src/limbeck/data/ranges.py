"""Whether the declared range of values can be right: a look at an owner's own records, for the owner's own eyes.

Arrays in [0, 1] under a schema that says 0 to 255 are all black once they are scaled, and the set is noise. Nobody else may learn
that from us: the message goes to the owner's terminal or log, into no release, no answer and no reply of a vault, and changes
nothing that is asked. docs/forecast.md says what an owner should know who acts on it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from limbeck.data.records import Records
from limbeck.data.source import DataSource
from limbeck.errors import LimbeckError
from limbeck.privacy.schema import Schema

LOWEST = 0.01  # of the declared range
PIECE = 4096  # records of a set that is read in pieces


class Held(Protocol):
    """Records that are in this process already: the arrays of whoever calls `fit`."""

    @property
    def schema(self) -> Schema: ...

    def load(self) -> Records: ...


def range_warning(source: DataSource | Held) -> str | None:
    """What to say of the range, or None. A set that has a name is known; one that cannot be read is left to its reader.

    Guarantee: nothing but this sentence comes of it, and whatever goes wrong here goes wrong again where it is accounted for.
    """
    if isinstance(source, DataSource) and source.benchmark is not None:
        return None
    try:
        stream = source.stream() if isinstance(source, DataSource) else None
        if stream is None:
            records = source.load()
        else:
            with stream.opened() as cursor:
                _, records = cursor.take(PIECE)
        return unfit(records, source.schema)
    except (LimbeckError, OSError, ValueError, TypeError, MemoryError):
        return None


def unfit(records: Records, schema: Schema) -> str | None:
    """The sentence, where all values are in the lowest hundredth of their range."""
    if not len(records):
        return None
    if not schema.columns:
        if not _all_low(records.x, schema.low, schema.high):
            return None
        return (
            f"All values lie in the lowest hundredth of the declared range, {schema.low:g} to {schema.high:g}, so all "
            "records would look the same. Declare the range that such values have (low and high in the schema; for arrays in "
            "[0, 1]: low = 0, high = 1). Only you see this message."
        )
    names, start = [], 0
    for column in schema.columns:
        if column.numeric and len(records) > 1 and _all_low(records.x[:, start : start + 1], schema.low, schema.high):
            names.append(column.name)
        start += column.width
    if not names:
        return None
    return (
        f"All values of {', '.join(names[:5])}{' and others' if len(names) > 5 else ''} lie in the lowest hundredth of the "
        "declared range. Check low and high of these columns in the schema. Only you see this message."
    )


def _all_low(values: NDArray[Any], low: float, high: float) -> bool:
    """Values that are not finite are read as the low end."""
    top = low + LOWEST * (high - low)
    return not bool(np.any(np.isfinite(values) & (values > top)))
