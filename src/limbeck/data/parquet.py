"""Parquet files: images in the Hugging Face layout (image{bytes, path}, label), or plain columns of a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from limbeck.data import images, table
from limbeck.data.records import Records, as_records
from limbeck.errors import DataNotFound, DataUnreadable
from limbeck.schema import Schema

IMAGE_COLUMNS = ("image", "img")
LABEL_COLUMNS = ("label", "labels", "fine_label")
CHUNK = 4096


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except FileNotFoundError:
        raise DataNotFound(f"There is no file {path}.") from None
    except (pa.ArrowException, OSError) as error:
        raise DataUnreadable(f"{path} is not a readable Parquet file ({type(error).__name__}).") from None


def image_column(names: list[str]) -> str | None:
    return next((name for name in IMAGE_COLUMNS if name in names), None)


def label_column(names: list[str], wanted: str, path: Path) -> str:
    found = next((name for name in (wanted, *LABEL_COLUMNS) if name in names), None)
    if found is None:
        raise DataUnreadable(f"{path} has no label column '{wanted}'; its columns are: {', '.join(names)}.")
    return found


def class_names(metadata: dict[bytes, bytes] | None, label: str) -> tuple[str, ...]:
    """The class names in the file's Hugging Face metadata, if it has any."""
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
        return tuple(str(name) for name in features[label]["names"])
    except (KeyError, TypeError, ValueError):
        return ()


def picture_bytes(cell: Any, where: str) -> bytes:
    data = cell.get("bytes") if isinstance(cell, dict) else cell
    if not isinstance(data, bytes):
        raise DataUnreadable(f"{where} holds no image bytes; expected a column image{{bytes, path}}.")
    return data


def read(path: Path, schema: Schema) -> Records:
    return _read_images(path, schema) if schema.is_image else _read_table(path, schema)


def _read_images(path: Path, schema: Schema) -> Records:
    with opened(path) as file:
        names = list(file.schema_arrow.names)
        image = image_column(names)
        if image is None:
            raise DataUnreadable(f"{path} has no column 'image'; its columns are: {', '.join(names)}.")
        label = label_column(names, schema.label, path)
        x = np.empty((file.metadata.num_rows, *schema.shape), dtype=images.raw_dtype(schema))
        labels: list[Any] = []
        for batch in file.iter_batches(batch_size=CHUNK, columns=[image, label]):
            start = len(labels)
            for place, cell in enumerate(batch.column(0).to_pylist(), start=start):
                where = f"{path}, row {place}"
                x[place] = images.decode(picture_bytes(cell, where), schema, where)
            labels += batch.column(1).to_pylist()
    return as_records(x, labels, schema, str(path))


def _read_table(path: Path, schema: Schema) -> Records:
    with opened(path) as file:
        names = list(file.schema_arrow.names)
        table.require_columns(names, schema, path)
        wanted = [column.name for column in schema.columns]
        content = file.read(columns=[*wanted, schema.label])
        columns = {name: content.column(name).to_pylist() for name in wanted}
        labels = [str(label) for label in content.column(schema.label).to_pylist()]
    return as_records(table.encode_rows(columns, schema), labels, schema, str(path))
