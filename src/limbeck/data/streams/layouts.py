"""Which stream reads a file, by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from limbeck.data import idx
from limbeck.data.streams.array_stream import idx_stream, npy_stream, npz_stream
from limbeck.data.streams.folder_stream import folder_stream
from limbeck.data.streams.parquet_stream import ParquetStream
from limbeck.data.streams.stream import RecordStream, Shards
from limbeck.data.streams.table_stream import CsvStream
from limbeck.privacy.schema import Schema

# None where the file cannot be read in pieces.
Streamer = Callable[[Schema], RecordStream | None]


def streamer(path: Path) -> Streamer:
    """Of a file, or of a folder of images. Reads nothing until it is called."""
    kinds: dict[str, Callable[[Path, Schema], RecordStream | None]] = {
        ".npz": npz_stream,
        ".npy": npy_stream,
        ".parquet": ParquetStream,
        ".csv": CsvStream,
    }
    if path.is_dir():
        return lambda schema: folder_stream(path, schema)
    if idx.is_images(path):
        return lambda schema: idx_stream(path, schema)
    return lambda schema: kinds[path.suffix.lower()](path, schema)


def as_shards(files: Sequence[Path], where: str) -> Streamer:
    """Of several files, one after the other."""

    def stream(schema: Schema) -> RecordStream | None:
        found = [streamer(file)(schema) for file in files]
        parts = tuple(part for part in found if part is not None)
        return Shards(where, schema, parts) if len(parts) == len(found) else None

    return stream
