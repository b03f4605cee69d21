"""Parquet files: images in the Hugging Face layout (image{bytes, path}, label), or plain columns of a table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from limbeck.data import faults, images, table
from limbeck.data.limits import BYTES_PER_CELL, most_bytes, require_count, require_few_columns, require_room
from limbeck.data.parquet_sizes import sizes
from limbeck.data.records import Records, as_records, class_indices
from limbeck.data.units import no_unit, unit_codes
from limbeck.errors import DataUnreadable
from limbeck.privacy.schema import Schema

IMAGE_COLUMNS = ("image", "img")
LABEL_COLUMNS = ("label", "labels", "fine_label")
CHUNK = 4096


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    with sentences(path), parquet_file(path) as file:
        yield file


def parquet_file(path: Path, buffer: int = 0) -> Any:
    """The file with its texts as dictionaries: a text that stands in a million rows is unpacked once.

    buffer: bytes that are read at a time; 0 for a row group's column at once.
    """
    with pq.ParquetFile(path) as file:
        leaves = [file.schema.column(index) for index in range(_few_columns(file, path))]
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    file = pq.ParquetFile(path, read_dictionary=texts, buffer_size=buffer)
    if len(set(file.schema_arrow.names)) != len(file.schema_arrow.names):
        file.close()
        raise DataUnreadable(f"{path} has two columns of the same name.")
    return file


def sentences(path: Path) -> AbstractContextManager[None]:
    """What goes wrong with a file, as a sentence: errors of Arrow, of text, of numbers and of the system."""
    return faults.sentences(path, lambda error: f"is not a readable Parquet file ({type(error).__name__})")


def _few_columns(file: Any, path: Path) -> int:
    count = int(file.metadata.num_columns)
    require_few_columns(count, path)
    return count


def batches(file: Any, names: list[str], path: Path, schema: Schema | None, size: int) -> Iterator[Any]:
    """The columns in pieces of at most `size` rows."""
    most = rows_at_once(file, names, path, schema, size)
    # Row group by row group: Arrow cannot join images of two of them in one piece.
    groups = range(file.metadata.num_row_groups)
    return (batch for group in groups for batch in file.iter_batches(most, row_groups=[group], columns=names))


def rows_at_once(file: Any, names: list[str], path: Path, schema: Schema | None, size: int) -> int:
    """At most `size`; what unpacking rows takes stands in the headers of their pages."""
    rows = int(file.metadata.num_rows)
    if schema is not None:
        require_count(rows, schema, path)
    else:  # a billion rows of one number are a few kilobytes
        require_room(BYTES_PER_CELL * rows * len(names), path)
    found = sizes(path, set(names))
    require_room(2 * found.page, path, schema)
    for index in range(file.metadata.num_columns):
        leaf = file.schema.column(index)
        if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" and (leaf.path in names or leaf.path.split(".")[0] in names):
            require_room(leaf.length * min(rows, size), path, schema)
    room = most_bytes(schema) // 4
    if found.growing:  # any text may be as long as all before it together
        size = max(1, min(size, room // max(found.chunk, 1)))
    elif found.chunk > room:
        size = max(1, size * room // found.chunk)
    return size


def is_nested(field: Any) -> bool:
    return bool(pa.types.is_nested(field.type))


def cells(column: Any, as_text: bool = False) -> list[Any]:
    """Python values of an Arrow array. One that Python cannot hold (a date of the year 30,000) is None: a missing cell.

    `as_text` turns what a dictionary holds into texts, each once; a table has no use for bytes.
    """
    if pa.types.is_dictionary(column.type):
        used, codes = np.unique(column.indices.cast(pa.int64()).fill_null(-1).to_numpy(), return_inverse=True)
        known = cells(column.dictionary.take(pa.array(used[used >= 0])))
        if as_text:
            known = [None if value is None else str(value) for value in known]
        values = known if len(known) == len(used) else [None, *known]
        return [values[code] for code in codes.tolist()]
    try:
        if getattr(column.type, "unit", None) == "ns":
            column = column.cast(_microseconds(column.type), safe=False)
        return list(column.to_pylist())
    except MemoryError:
        raise
    except Exception:  # content of a record must not raise, and Arrow raises many kinds
        return [_cell(value) for value in column]


def _microseconds(kind: Any) -> Any:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.duration("us") if pa.types.is_duration(kind) else pa.time64("us")


def _cell(value: Any) -> Any:
    try:
        return value.as_py()
    except MemoryError:
        raise
    except Exception:
        return None


def image_column(names: list[str]) -> str | None:
    return next((name for name in IMAGE_COLUMNS if name in names), None)


def label_column(names: list[str], wanted: str, path: Path) -> str:
    found = next((name for name in (wanted, *LABEL_COLUMNS) if name in names), None)
    if found is None:
        raise DataUnreadable(f"{path} has no label column '{wanted}' among its {len(names)} columns.")
    return found


def class_names(metadata: dict[bytes, bytes] | None, label: str) -> tuple[str, ...]:
    """The class names in the file's Hugging Face metadata, if it has any."""
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
        names = tuple(str(name) for name in features[label]["names"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return ()
    return names if len(set(names)) == len(names) else ()


def pictures(column: Any) -> list[Any]:
    """The bytes of an image column: bytes, or {bytes, path}. What is neither is None."""
    if pa.types.is_struct(column.type):
        if column.type.get_field_index("bytes") < 0:
            return [None] * len(column)
        column = column.field("bytes")  # a null image has null bytes, as Arrow reads it
    return [cell if isinstance(cell, bytes) else None for cell in cells(column)]


def picture_bytes(cell: Any, where: str) -> bytes:
    if not isinstance(cell, bytes):
        raise DataUnreadable(f"{where} holds no image bytes; expected a column image{{bytes, path}}.")
    return cell


def read(path: Path, schema: Schema) -> Records:
    return _read_images(path, schema) if schema.is_image else _read_table(path, schema)


def _read_images(path: Path, schema: Schema) -> Records:
    with opened(path) as file:
        image, label, unit = image_columns(file, schema, path)
        kind = images.raw_dtype(schema)
        found = batches(file, [image, label, *unit], path, schema, CHUNK)
        each = schema.numbers * np.dtype(kind).itemsize + 16 * len(unit)
        require_room(file.metadata.num_rows * each, path, schema)
        x = np.empty((file.metadata.num_rows, *schema.shape), dtype=kind)
        labels, start = [np.empty(0, dtype=np.int64)], 0
        persons = [np.empty(0, dtype=np.int64) for _ in unit]
        for batch in found:
            for row, cell in enumerate(pictures(batch.column(image)), start=start):
                where = f"{path}, row {row}"
                x[row] = images.decode(picture_bytes(cell, where), schema, where)
            labels.append(class_indices(cells(batch.column(label)), schema, str(path)))
            persons += [unit_codes(cells(batch.column(name)), str(path)) for name in unit]
            start += len(batch)
    units = np.concatenate(persons) if persons else None
    return as_records(x, np.concatenate(labels), schema, str(path), units)


def image_columns(file: Any, schema: Schema, path: Path) -> tuple[str, str, tuple[str, ...]]:
    """The columns of the image and the label, and of the person where the schema names one."""
    names = list(file.schema_arrow.names)
    if schema.by_person and schema.unit not in names:
        raise no_unit(path, f"column '{schema.unit}'", schema, f"it has {len(names)} columns")
    others = [name for name in names if name != schema.unit or not schema.by_person]
    image = image_column(others)
    if image is None:
        raise DataUnreadable(f"{path} has no column 'image' among its {len(names)} columns.")
    unit = (schema.unit,) if schema.by_person else ()
    _require_single(file, unit, path)
    return image, label_column(others, schema.label, path), unit


def _read_table(path: Path, schema: Schema) -> Records:
    with opened(path) as file:
        wanted = table_columns(file, schema, path)
        found = batches(file, wanted, path, schema, table.rows_at_once(schema))
        return table.as_table((table_piece(batch, wanted, schema) for batch in found), schema, path)


def table_columns(file: Any, schema: Schema, path: Path) -> list[str]:
    """All that is read of a table."""
    table.require_columns(list(file.schema_arrow.names), schema, path)
    wanted = table.wanted_columns(schema)
    _require_single(file, wanted, path)
    return wanted


def _require_single(file: Any, names: Sequence[str], path: Path) -> None:
    nested = [name for name in names if is_nested(file.schema_arrow.field(name))]
    if nested:
        raise DataUnreadable(f"{path} has lists or records in the column {nested[0]}; a cell must be one value.")


def table_piece(batch: Any, wanted: list[str], schema: Schema) -> dict[str, list[Any]]:
    # An id stays what it is: bytes and numbers have their own way to become a text.
    columns = {name: cells(batch.column(name), as_text=name != schema.unit) for name in wanted}
    if schema.has_label:
        columns[schema.label] = table.class_words(columns[schema.label], schema)
    return columns
