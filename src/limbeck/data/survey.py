"""A look at private data, for its owner, to draft a schema. What it finds is private until the owner says otherwise."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from limbeck.data import arrays, folder, idx, parquet, table
from limbeck.data.records import Array
from limbeck.data.rounding import round_range
from limbeck.errors import BadInput, DataUnreadable
from limbeck.schema import Column

MOST_CATEGORIES = 100


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What was found. `left_out` are columns that look like free text or identifiers."""

    shape: tuple[int, ...]
    low: float
    high: float
    sizes: dict[str, int]
    columns: tuple[Column, ...] = ()
    label: str = "label"
    left_out: tuple[str, ...] = ()


def survey(path: Path, label: str | None) -> Survey:
    """Look at a file, or at the train split of a folder that has one."""
    if path.is_dir():
        return _survey_folder(path, label)
    suffix = path.suffix.lower()
    if idx.is_images(path):
        return _survey_idx(path)
    if suffix == ".npz":
        x, y = arrays.arrays(path)
        return _survey_arrays(x, y, str(path))
    if suffix == ".parquet":
        return _survey_parquet(path, label)
    if suffix == ".csv":
        return survey_columns(table.read_columns(path), label, path)
    raise BadInput(f"{path} is of no known kind; known are a folder of images, .npz, .parquet, .csv and IDX files.")


def _survey_folder(path: Path, label: str | None) -> Survey:
    for suffix in (".parquet", ".csv", ".npz"):
        if (path / f"train{suffix}").is_file():
            return survey(path / f"train{suffix}", label)
    images = idx.images_in(path, "train")
    if images is not None:
        return _survey_idx(images)
    if (path / "train").is_dir():
        path = path / "train"
    sizes = {sub.name: len(folder.image_files(sub)) for sub in folder.class_folders(path)}
    first = next((file for sub in folder.class_folders(path) for file in folder.image_files(sub)), None)
    if first is None:
        raise DataUnreadable(f"{path} holds no image; expected one sub-folder of images per class.")
    shape, high = _picture_form(first, str(first))
    return Survey(shape=shape, low=0, high=high, sizes=sizes)


def _picture_form(file: Any, where: str) -> tuple[tuple[int, int, int], float]:
    try:
        with Image.open(file) as picture:
            deep = picture.mode.startswith(("I", "F"))
            channels = 1 if deep or picture.mode in ("L", "1") else len(picture.convert("RGB").getbands())
            return (channels, picture.height, picture.width), 65535 if deep else 255
    except Exception as error:  # Pillow's decoders raise a dozen unrelated types on a damaged file
        raise DataUnreadable(f"{where} is not a readable image ({type(error).__name__}).") from None


def _survey_idx(path: Path) -> Survey:
    labels = idx.labels_beside(path)
    x, y = idx.parse(idx.content(path), str(path)), idx.parse(idx.content(labels), str(labels))
    return _survey_arrays(x, y, str(path))


def _survey_arrays(x: Array, y: Array, where: str) -> Survey:
    if x.ndim not in (2, 3, 4) or not len(x) or x.dtype.kind not in "iufb":
        raise DataUnreadable(f"{where} holds x of shape {x.shape} and type {x.dtype}; expected a batch of records.")
    shape = x.shape[1:]
    if len(shape) == 2:
        shape = (1, *shape)
    elif len(shape) == 3 and shape[2] in (1, 3, 4) and shape[0] not in (1, 3, 4):
        shape = (shape[2], *shape[:2])
    low, high = (0.0, 255.0) if x.dtype == np.uint8 else round_range(x)
    return Survey(shape=shape, low=low, high=high, sizes=_sizes(y.tolist()))


def _sizes(labels: Sequence[Any], names: tuple[str, ...] = ()) -> dict[str, int]:
    """Class sizes; whole numbers are class indices, so the classes are 0 to the largest."""
    counts = Counter(labels)
    if all(isinstance(value, int) and value >= 0 for value in counts) and counts:
        top = max(max(counts) + 1, len(names))
        if top > 100_000:
            raise BadInput(f"The labels go up to {top - 1}; they must be class indices that count from 0.")
        return {names[i] if i < len(names) else str(i): counts.get(i, 0) for i in range(top)}
    texts = [name for name in counts if isinstance(name, str) and name]
    digits = all(name.isdecimal() for name in texts)
    return {name: counts[name] for name in sorted(texts, key=lambda name: (int(name) if digits else 0, name))}


def _survey_parquet(path: Path, label: str | None) -> Survey:
    with parquet.opened(path) as file:
        names = list(file.schema_arrow.names)
        image = parquet.image_column(names)
        if image is None:
            content = file.read()
            return survey_columns({name: _texts(content.column(name).to_pylist()) for name in names}, label, path)
        found = parquet.label_column(names, label or "label", path)
        labels = file.read(columns=[found]).column(0).to_pylist()
        first = next(file.iter_batches(batch_size=1, columns=[image]), None)
        if first is None:
            raise DataUnreadable(f"{path} holds no record.")
        data = parquet.picture_bytes(first.column(0).to_pylist()[0], str(path))
        shape, high = _picture_form(io.BytesIO(data), str(path))
        class_names = parquet.class_names(file.schema_arrow.metadata, found)
    return Survey(shape=shape, low=0, high=high, sizes=_sizes(labels, class_names), label=found)


def _texts(cells: list[Any]) -> list[str]:
    return ["" if cell is None else str(cell) for cell in cells]


def survey_columns(columns: dict[str, list[str]], label: str | None, path: Path) -> Survey:
    """Numeric columns with a rounded range, categorical ones with their categories."""
    if label is None or label not in columns:
        said = "say which column is the label" if label is None else f"there is no column '{label}' for the label"
        raise BadInput(
            f"{path}: {said}; the columns are: {', '.join(columns)}.", f"limbeck schema draft {path} --label COLUMN"
        )
    kept, left_out = [], []
    for name, cells in columns.items():
        column = None if name == label else _column(name, cells)
        if column is not None:
            kept.append(column)
        elif name != label:
            left_out.append(name)
    return Survey(
        shape=(sum(column.width for column in kept),),
        low=-1,
        high=1,
        sizes=_sizes(columns[label]),
        columns=tuple(kept),
        label=label,
        left_out=tuple(left_out),
    )


def _column(name: str, cells: list[str]) -> Column | None:
    present = [cell for cell in cells if cell]
    try:
        values = np.array([float(cell) for cell in present])
    except ValueError:
        categories = sorted(set(cells) - {""})
        return Column(name=name, categories=tuple(categories)) if len(categories) <= MOST_CATEGORIES else None
    if not np.isfinite(values).any():
        return None
    low, high = round_range(values)
    finite = values[np.isfinite(values)]
    return Column(name=name, low=low, high=high, integer=bool((finite == np.rint(finite)).all()))
