"""One small set in every form that can be read in pieces, for tests of readers and of vaults."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from limbeck.data.source import DataSource, open_source
from limbeck.privacy.schema import Schema
from schemas import PEOPLE

COUNT = 83
PICTURES = Schema(name="pictures", shape=(1, 5, 4), classes=("a", "b", "c"), records=COUNT, low=0, high=255)
ROWS = dataclasses.replace(PEOPLE, records=COUNT)
PICTURE_FORMS = ("npz", "packed npz", "npy", "idx", "packed idx", "parquet", "folder", "npz list", "parquet folder")
TABLE_FORMS = ("csv", "table", "csv glob", "table folder")
FORMS = (*PICTURE_FORMS, *TABLE_FORMS)


def schema_of(form: str) -> Schema:
    return ROWS if form in TABLE_FORMS else PICTURES


def pictures() -> tuple[Any, Any]:
    random = np.random.default_rng(4)
    return random.integers(0, 256, (COUNT, 5, 4), dtype=np.uint8), random.integers(0, 3, COUNT, dtype=np.uint8)


def rows() -> dict[str, list[str]]:
    random = np.random.default_rng(5)
    return {
        "age": [*map(str, random.integers(-5, 120, COUNT - 3).tolist()), "", "nan", "x"],
        "colour": random.choice(["blue", "green", "red", "odd, 'quoted' \"text\"", ""], COUNT).tolist(),
        "size": random.choice(["S", "M", "L"], COUNT).tolist(),
        "height": [f"{value:.3f}" for value in random.uniform(0.9, 2.1, COUNT)],
        "buys": random.choice(["no", "yes"], COUNT).tolist(),
    }


def written(folder: Path, form: str) -> str:
    """Write the set, and say how it is opened."""
    folder.mkdir(parents=True, exist_ok=True)
    return WRITERS[form](folder)


def source_of(folder: Path, form: str) -> DataSource:
    spec, schema = written(folder / "set", form), schema_of(form)
    path = folder / "schema.toml"
    path.write_text(toml_of(schema), encoding="utf-8")
    return open_source(spec, schema_path=path)


def toml_of(schema: Schema) -> str:
    """The few entries that these schemas have."""
    lines = [f'name = "{schema.name}"', f"shape = {list(schema.shape)}", f"classes = {list(schema.classes)}"]
    lines += [
        f"records = {schema.records}",
        f"low = {schema.low}",
        f"high = {schema.high}",
        f'label = "{schema.label}"',
    ]
    for column in schema.columns:
        lines += ["[[columns]]", f'name = "{column.name}"']
        if column.categories:
            lines += [f"categories = {list(column.categories)}", f"ordinal = {str(column.ordinal).lower()}"]
        else:
            lines += [f"low = {column.low}", f"high = {column.high}", f"integer = {str(column.integer).lower()}"]
    return "\n".join(lines) + "\n"


def _npz(folder: Path) -> str:
    x, y = pictures()
    np.savez(folder / "set.npz", x=x, y=y)
    return str(folder / "set.npz")


def _packed_npz(folder: Path) -> str:
    x, y = pictures()
    np.savez_compressed(folder / "set.npz", x=x.astype(np.float64), y=np.array(PICTURES.classes)[y])
    return str(folder / "set.npz")


def _npy(folder: Path) -> str:
    x, y = pictures()
    np.save(folder / "x.npy", x.astype(">i2"))
    np.save(folder / "y.npy", y)
    return str(folder)


def _idx(folder: Path, packed: bool = False) -> str:
    x, y = pictures()
    for name, values in (("train-images-idx3-ubyte", x), ("train-labels-idx1-ubyte", y)):
        head = bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
        content = head + values.tobytes()
        (folder / (name + ".gz" if packed else name)).write_bytes(gzip.compress(content) if packed else content)
    return str(folder)


def _png(pixels: Any) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return buffer.getvalue()


def _picture_rows(path: Path, x: Any, y: Any) -> None:
    cells = [{"bytes": _png(pixels), "path": "one.png"} for pixels in x]
    pq.write_table(pa.table({"image": cells, "label": pa.array(y.astype(np.int64))}), path, row_group_size=9)


def _parquet(folder: Path) -> str:
    _picture_rows(folder / "set.parquet", *pictures())
    return str(folder / "set.parquet")


def _parquet_folder(folder: Path) -> str:
    x, y = pictures()
    for index, part in enumerate(np.array_split(np.arange(COUNT), 3)):
        _picture_rows(folder / f"part-{index}.parquet", x[part], y[part])
    return str(folder)


def _folder(folder: Path) -> str:
    for index, (pixels, label) in enumerate(zip(*pictures(), strict=True)):
        sub = folder / PICTURES.classes[label]
        sub.mkdir(exist_ok=True)
        (sub / f"{index:03}.png").write_bytes(_png(pixels))
    return str(folder)


def _npz_list(folder: Path) -> str:
    x, y = pictures()
    for index, part in enumerate(np.array_split(np.arange(COUNT), 4)):
        np.savez(folder / f"{index}.npz", x=x[part], y=y[part])
    return ",".join(str(folder / f"{index}.npz") for index in (2, 0, 1, 3))


def _csv_rows(path: Path, start: int, stop: int) -> None:
    columns = rows()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(list(zip(*columns.values(), strict=True))[start:stop])


def _csv(folder: Path) -> str:
    _csv_rows(folder / "set.csv", 0, COUNT)
    return str(folder / "set.csv")


def _csv_glob(folder: Path) -> str:
    for index in range(3):
        _csv_rows(folder / f"rows-{index}.csv", 30 * index, min(30 * index + 30, COUNT))
    return str(folder / "rows-*.csv")


def _table(folder: Path) -> str:
    columns = {name: [cell or None for cell in cells] for name, cells in rows().items()}
    pq.write_table(pa.table(columns), folder / "set.parquet", row_group_size=10)
    return str(folder / "set.parquet")


def _table_folder(folder: Path) -> str:
    table = pa.table(rows())
    pq.write_table(table.slice(0, 50), folder / "a.parquet", row_group_size=7)
    pq.write_table(table.slice(50), folder / "b.parquet")
    return str(folder)


WRITERS: dict[str, Any] = {
    "npz": _npz,
    "packed npz": _packed_npz,
    "npy": _npy,
    "idx": _idx,
    "packed idx": lambda folder: _idx(folder, packed=True),
    "parquet": _parquet,
    "folder": _folder,
    "npz list": _npz_list,
    "parquet folder": _parquet_folder,
    "csv": _csv,
    "table": _table,
    "csv glob": _csv_glob,
    "table folder": _table_folder,
}
