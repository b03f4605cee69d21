"""Two .npy files: records in x.npy, labels in y.npy beside it (or train-x.npy and train-y.npy, and so on)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from limbeck.data import arrays
from limbeck.data.limits import require_count, require_room
from limbeck.data.records import Array, Records, as_records, require_form
from limbeck.errors import BadInput, DataNotFound, DataUnreadable, LimbeckError, ran_out
from limbeck.privacy.schema import Schema

RECORDS, LABELS = "x.npy", "y.npy"


def is_records(path: Path) -> bool:
    return path.name == RECORDS or path.name.endswith(("-" + RECORDS, "_" + RECORDS))


def labels_beside(records: Path) -> Path:
    """The labels that belong to an array of records, by its name."""
    if not is_records(records):
        raise BadInput(
            f"{records} is one array; give the one that ends in {RECORDS} and has its labels beside it in {LABELS}."
        )
    found = records.with_name(records.name.removesuffix(RECORDS) + LABELS)
    if not found.is_file():
        raise DataNotFound(f"{records} has no labels file beside it; expected {found}.")
    return found


@contextmanager
def sentences(path: Path) -> Iterator[None]:
    """What goes wrong with a file, as a sentence."""
    try:
        yield
    except FileNotFoundError:
        raise DataNotFound(f"There is no file {path}.") from None
    except LimbeckError:
        raise
    except Exception as error:  # NumPy raises several unrelated types on a damaged file
        if ran_out(error):
            raise
        raise DataUnreadable(f"{path} is not a readable .npy file of plain numbers.") from None


@dataclass(frozen=True)
class Announced:
    """What a file's header says, where its numbers begin, and whether they lie column by column."""

    header: arrays.Header
    begin: int
    by_columns: bool


def announced(path: Path) -> Announced:
    """The header, compared with the size of the file."""
    with sentences(path), path.open("rb") as file:
        header, by_columns = arrays.announced(file)
        begin = file.tell()
        size = file.seek(0, 2) - begin
        if size != header.size:
            raise DataUnreadable(f"{path} has {size} bytes in an array whose header announces {header.size}.")
    return Announced(header, begin, by_columns)


def load(records: Path, schema: Schema | None = None) -> tuple[Array, Array]:
    """Records and labels. Both headers are read, and judged, before either array."""
    labels = labels_beside(records)
    x, y = announced(records).header, announced(labels).header
    if schema is not None:
        require_form(x.shape, y.shape, schema, str(records))
        require_count(x.shape[0], schema, records)
    require_room(x.room + y.room, records, schema)
    return _values(records), _values(labels)


def _values(path: Path) -> Array:
    with sentences(path):
        values: Array = np.load(path, allow_pickle=False)
        return values


def require_records(records: Path, schema: Schema) -> None:
    if schema.by_person:
        raise DataUnreadable(
            f"{records} and its labels cannot say who a record is about, but the unit of '{schema.name}' is "
            f"{schema.unit_words}. Save x, y and the ids of the persons in an .npz archive."
        )


def read(records: Path, schema: Schema) -> Records:
    require_records(records, schema)
    x, y = load(records, schema)
    return as_records(x, y, schema, str(records))
