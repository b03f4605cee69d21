"""A look at private data, for its owner, to draft a schema. What it finds is private until the owner says otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from limbeck.data import arrays, csv_file, folder, idx, images, npy, parquet
from limbeck.data.limits import require_room
from limbeck.data.records import Array, require_one_label, require_pairs
from limbeck.data.rounding import round_range
from limbeck.data.survey_column import look
from limbeck.data.survey_table import parquet_columns
from limbeck.data.survey_units import Persons, looks_like_persons, maybe_persons, tally
from limbeck.data.units import unit_codes
from limbeck.errors import BadInput, DataUnreadable
from limbeck.privacy.schema import Column

MOST_CLASSES = 100_000


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What was found. `says` is what the owner should know of a column; `left_out` are the others, each with the reason."""

    shape: tuple[int, ...]
    low: float
    high: float
    sizes: dict[str, int]
    columns: tuple[Column, ...] = ()
    label: str = "label"
    says: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    persons: Persons | None = None
    maybe_persons: tuple[str, ...] = ()


def survey(path: Path, label: str | None, unit: str | None = None) -> Survey:
    """Look at a file, or at the train split of a folder that has one. `unit` names what says who a record is about."""
    if path.is_dir():
        return _survey_folder(path, label, unit)
    suffix = path.suffix.lower()
    if idx.is_images(path):
        return _survey_idx(path, unit)
    if suffix == ".npz":
        return _survey_arrays(*arrays.arrays(path, unit=unit), str(path), unit)
    if suffix == ".npy":
        return _survey_npy(path, unit)
    if suffix == ".parquet":
        return _survey_parquet(path, label, unit)
    if suffix == ".csv":
        return _survey_table(csv_file.read_columns(path), label, unit, path)
    raise BadInput(
        f"{path} is of no known kind; known are a folder of images, .npz, .npy, .parquet, .csv and IDX files."
    )


def _survey_folder(path: Path, label: str | None, unit: str | None) -> Survey:
    for suffix in (".parquet", ".csv", ".npz"):
        if (path / f"train{suffix}").is_file():
            return survey(path / f"train{suffix}", label, unit)
    if (path / npy.RECORDS).is_file():
        return _survey_npy(path / npy.RECORDS, unit)
    digits = idx.images_in(path, "train")
    if digits is not None:
        return _survey_idx(digits, unit)
    if (path / "train").is_dir():
        path = path / "train"
    found = {sub.name: folder.pictures(sub, unit is not None) for sub in folder.class_folders(path)}
    listed = [picture for each in found.values() for picture in each]
    if not listed:
        deeper = any(folder.class_folders(sub) for sub in folder.class_folders(path)) and unit is None
        hint = "; where each class has one sub-folder per person, say so with --unit person" if deeper else ""
        raise DataUnreadable(f"{path} holds no image; expected one sub-folder of images per class{hint}.")
    shape, high = _picture_form(listed[0].file, f"The first image in {path}")
    sizes = {name: len(each) for name, each in found.items()}
    codes = unit_codes([picture.person for picture in listed], str(path))
    return Survey(shape=shape, low=0, high=high, sizes=sizes, persons=None if unit is None else tally(unit, codes))


def _picture_form(image: bytes | Path, where: str) -> tuple[tuple[int, int, int], float]:
    with images.opened(image, where) as picture:
        require_room(picture.width * picture.height * 8, where)
        picture = images.upright(picture)
        deep = picture.mode.startswith(images.DEEP_MODES)
        channels = 1 if deep or picture.mode in ("L", "1") else 3
        return (channels, picture.height, picture.width), 65535 if deep else 255


def _survey_idx(path: Path, unit: str | None) -> Survey:
    if unit is not None:
        raise BadInput(f"{path} is an IDX file, which cannot say who a record is about; leave --unit out.")
    return _survey_arrays(*idx.load(path), None, str(path))


def _survey_npy(path: Path, unit: str | None) -> Survey:
    if unit is not None:
        raise BadInput(
            f"{path} and its labels cannot say who a record is about; leave --unit out, or save an .npz archive."
        )
    return _survey_arrays(*npy.load(path), None, str(path))


def _survey_arrays(x: Array, y: Array, ids: Array | None, where: str, unit: str | None = None) -> Survey:
    if x.ndim not in (2, 3, 4) or not x.size or x.dtype.kind not in "iufb":
        raise DataUnreadable(f"{where} holds x of shape {x.shape} and type {x.dtype}; expected a batch of records.")
    require_one_label(y.shape, where)
    require_pairs(len(x), len(y), where)
    shape = x.shape[1:]
    if len(shape) == 2:
        shape = (1, *shape)
    elif len(shape) == 3 and shape[2] in (1, 3, 4) and shape[0] not in (1, 3, 4):
        shape = (shape[2], *shape[:2])
    low, high = (0.0, 255.0) if x.dtype == np.uint8 else round_range(x)
    values, counts = np.unique(y, return_counts=True)
    found = dict(zip(values.tolist(), counts.tolist(), strict=True))
    persons = None if ids is None or unit is None else tally(unit, unit_codes(ids, where))
    return Survey(shape=shape, low=low, high=high, sizes=_sizes(found), persons=persons)


def _sizes(counts: Mapping[Any, int], names: tuple[str, ...] = ()) -> dict[str, int]:
    """Class sizes; whole numbers are class indices, so the classes are 0 to the largest."""
    if all(isinstance(value, int) and value >= 0 for value in counts) and counts:
        top = max(max(counts) + 1, len(names))
        if top > MOST_CLASSES:
            raise BadInput(f"The labels go beyond {MOST_CLASSES}; they must be class indices that count from 0.")
        return {names[i] if i < len(names) else str(i): counts.get(i, 0) for i in range(top)}
    texts = [name for name in counts if isinstance(name, str) and name]
    digits = all(name.isdecimal() and len(name) < 20 for name in texts)
    return {name: counts[name] for name in sorted(texts, key=lambda name: (int(name) if digits else 0, name))}


def _survey_parquet(path: Path, label: str | None, unit: str | None) -> Survey:
    with parquet.opened(path) as file:
        names = [name for name in file.schema_arrow.names if name != unit]
        image = parquet.image_column(names)
        if image is None:
            columns, nested = parquet_columns(file, path)
            return _survey_table(columns, label, unit, path, nested)
        found = parquet.label_column(names, label or "label", path)
        labels: Counter[Any] = Counter()
        for batch in parquet.batches(file, [found], path, None, parquet.CHUNK):
            labels.update(cell if isinstance(cell, Hashable) else None for cell in parquet.cells(batch.column(found)))
        persons = None if unit is None else _parquet_persons(file, unit, path)
        first = next(parquet.batches(file, [image], path, None, 1), None)
        if first is None:
            raise DataUnreadable(f"{path} holds no record.")
        data = parquet.picture_bytes(parquet.pictures(first.column(image))[0], str(path))
        shape, high = _picture_form(data, f"The first image in {path}")
        class_names = parquet.class_names(file.schema_arrow.metadata, found)
    return Survey(
        shape=shape,
        low=0,
        high=high,
        sizes=_sizes(labels, class_names),
        label=found,
        persons=persons,
        maybe_persons=tuple(name for name in names if unit is None and looks_like_persons(name)),
    )


def _parquet_persons(file: Any, unit: str, path: Path) -> Persons:
    if unit not in file.schema_arrow.names or parquet.is_nested(file.schema_arrow.field(unit)):
        raise _no_person_column(path, unit, len(file.schema_arrow.names))
    pieces = parquet.batches(file, [unit], path, None, parquet.CHUNK)
    codes = [unit_codes(parquet.cells(batch.column(unit)), str(path)) for batch in pieces]
    return tally(unit, np.concatenate([np.empty(0, dtype=np.int64), *codes]))


def _no_person_column(path: Path, unit: str, count: int) -> BadInput:
    return BadInput(
        f"{path}: there is no column '{unit}' with one value per row for the persons among its {count} columns; their names must "
        "stand in its first line."
    )


def _survey_table(
    columns: dict[str, list[str]], label: str | None, unit: str | None, path: Path, nested: tuple[str, ...] = ()
) -> Survey:
    if label is None or label not in columns:
        said = "say which column is the label" if label is None else f"there is no column '{label}' for the label"
        # The names are not listed: in a table without a header line they are the first record.
        raise BadInput(
            f"{path}: {said} among its {len(columns)} columns; their names must stand in its first line.",
            f"limbeck schema draft {path} --label COLUMN",
        )
    count = len(columns)
    sizes = _sizes(Counter(columns.pop(label)))
    if unit is not None and unit not in columns:
        raise _no_person_column(path, unit, count)
    persons = None if unit is None else tally(unit, unit_codes(columns.pop(unit), str(path)))
    found = {name: look(name, cells) for name, cells in columns.items()}
    kept = tuple(each.column for each in found.values() if each.column is not None)
    left_out = {name: each.says for name, each in found.items() if each.column is None}
    return Survey(
        shape=(sum(column.width for column in kept),),
        low=-1,
        high=1,
        sizes=sizes,
        columns=kept,
        label=label,
        says={name: each.says for name, each in found.items() if each.column is not None},
        left_out=left_out | dict.fromkeys(nested, "holds lists or records"),
        persons=persons,
        maybe_persons=maybe_persons(columns) if unit is None else (),
    )
