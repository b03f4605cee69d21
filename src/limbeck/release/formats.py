"""Writing a synthetic set: .npz for programs, Parquet for people and for the Hugging Face `datasets` library.

The same set gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from limbeck.data import images, table
from limbeck.data.records import Array
from limbeck.errors import BadInput, OutputFault
from limbeck.files import replacing
from limbeck.privacy.dates import DATE
from limbeck.privacy.schema import Column, Schema

SNAPSHOTS = "snapshots.npz"  # the set after some of the answers, where a method keeps that
AT_ONCE = 1 << 16  # rows of a table that are decoded together
TRAINING_CURVES = "course.json"  # numbers by step, made of answers, where a method writes them down


def _require_pairs(x: Array, y: Array, name: str = "y") -> None:
    if len(x) != len(y):
        raise BadInput(f"A synthetic set needs as many labels as records, got {len(x)} records and {name} of {len(y)}.")


def write_npz(path: Path, x: Array, y: Array) -> None:
    """Keys x (float32, encoded in [-1, 1]) and y (int64)."""
    _require_pairs(x, y)
    _write_arrays(path, {"x": np.asarray(x, dtype=np.float32), "y": np.asarray(y, dtype=np.int64)})


def write_snapshots(path: Path, x: Array, y: Array, after: Array) -> None:
    """Keys x (snapshots, records, ...), y (records) and after: how many answers each snapshot had seen."""
    _require_pairs(x, after, "after")
    _write_arrays(path, {"x": np.asarray(x, dtype=np.float32), "y": np.asarray(y, np.int64), "after": after})


def _write_arrays(path: Path, entries: dict[str, Array]) -> None:
    """Straight to the disk: a large set is not held in memory a second time."""
    try:
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez(
                file, allow_pickle=False, **entries
            )  # zip members carry a fixed date, so the bytes are deterministic
    except OSError as error:
        raise OutputFault(f"{path} could not be written: {error.strerror or error}.") from None


@dataclass(frozen=True)
class Sizes:
    """Bytes of a Parquet file: on the disk, and as an Arrow table in memory."""

    file: int
    memory: int


def write_parquet(path: Path, x: Array, y: Array, schema: Schema) -> Sizes:
    """Images as PNG bytes with class labels, tables as decoded columns, where they stand in the data, with the label as its class
    name."""
    x, y = np.asarray(x), np.asarray(y, dtype=np.int64)
    _require_pairs(x, y)
    if x.shape[1:] != schema.shape:
        raise BadInput(
            f"Records of shape {x.shape[1:]} do not fit the schema of '{schema.name}', which says {schema.shape}."
        )
    if y.size and (y.min() < 0 or y.max() >= len(schema.classes)):
        raise BadInput(f"The labels must lie in 0..{len(schema.classes) - 1}, got {y.min()}..{y.max()}.")
    if schema.is_image:
        return _written(path, [image_table(x, y, schema)], _packed)
    return _written(path, _value_parts(x, y, schema), _packed)


def _packed(path: Path, kind: Any) -> Any:
    return pq.ParquetWriter(path, kind, compression="zstd")


def write_csv(path: Path, x: Array, y: Array, schema: Schema) -> None:
    """A table as `write_parquet` has it, with a header line; a cell without a value is empty."""
    if schema.is_image:
        raise BadInput(f"'{schema.name}' holds pictures, and a .csv file holds a table. Choose .npz or .parquet.")
    _written(path, _value_parts(x, y, schema), pa_csv.CSVWriter)


def _value_parts(x: Array, y: Array, schema: Schema) -> Iterator[Any]:
    """A part at a time: a million wide rows as texts and whole numbers take more memory than their encoded numbers."""
    for begin in range(0, max(len(x), 1), AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        yield _value_table(x[part], y[part], schema)


def _written(path: Path, parts: Iterable[Any], kind: Any) -> Sizes:
    """Arrow tables, one after the other, as one file."""
    memory, writer = 0, None
    try:
        with replacing(path) as temporary:
            for part in parts:
                writer = writer or kind(temporary, part.schema)
                writer.write_table(part)
                memory += part.nbytes
            assert writer is not None
            writer.close()
            return Sizes(temporary.stat().st_size, memory)
    except OSError as error:
        raise OutputFault(f"{path} could not be written: {error.strerror or error}.") from None


def image_table(x: Array, y: Array, schema: Schema) -> Any:
    """Pictures as PNG bytes and class indices, in the layout of Hugging Face."""
    pictures = [{"bytes": images.encode_png(values), "path": None} for values in x]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    features = {
        "image": {"_type": "Image"},
        schema.label: {"names": list(schema.classes), "_type": "ClassLabel"},
    }
    return _described({"image": pa.array(pictures, type=kind), schema.label: pa.array(y)}, features)


def decoded_columns(x: Array, schema: Schema, only: Container[str] | None = None) -> dict[str, Array]:
    """The columns of a table by name, as a Parquet file holds them; None for a gap."""
    if schema.columns:
        return table.decode_rows(x, schema, only)
    raw = schema.low + (np.clip(np.nan_to_num(x, nan=-1.0), -1, 1) + 1) / 2 * (schema.high - schema.low)
    return {f"x{index}": raw[:, index] for index in range(schema.numbers)}


def arrow_columns(x: Array, y: Array, schema: Schema) -> dict[str, Any]:
    """The decoded columns of a table and its label as Arrow arrays, of the types that the schema says."""
    kinds = {column.name: _arrow_type(column) for column in schema.columns}
    # One column after the other: texts and gaps take many times the memory of what Arrow makes of them.
    parts: list[tuple[str] | None] = [(name,) for name in kinds] or [None]
    columns = {
        name: pa.array(column.tolist(), type=kinds.get(name))
        for part in parts
        for name, column in decoded_columns(x, schema, part).items()
    }
    if schema.has_label:
        columns[schema.label] = pa.array([schema.classes[label] for label in y], type=pa.string())
    if schema.columns:
        columns = {name: columns[name] for name in schema.order}
    return columns


def _value_table(x: Array, y: Array, schema: Schema) -> Any:
    return with_features(pa.table(arrow_columns(x, y, schema)))


def _arrow_type(column: Column) -> Any:
    """Said for every column: one of nothing but missing cells would have no type of its own."""
    if not column.numeric:
        return pa.string()
    if column.kind:
        return pa.date32() if column.kind == DATE else pa.timestamp("ms")  # Parquet has no seconds
    return pa.int64() if column.integer else pa.float64()


def _dtype_name(kind: Any) -> str:
    return {"double": "float64", "date32[day]": "date32"}.get(str(kind), str(kind))


def with_features(found: Any) -> Any:
    """An Arrow table that tells the Hugging Face `datasets` library what its columns are."""
    features = {name: {"dtype": _dtype_name(found.column(name).type), "_type": "Value"} for name in found.column_names}
    return found.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}}, sort_keys=True)})


def _described(columns: dict[str, Any], features: dict[str, Any]) -> Any:
    metadata = json.dumps({"info": {"features": features}}, sort_keys=True)
    return pa.table(columns).replace_schema_metadata({"huggingface": metadata})
