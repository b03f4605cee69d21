"""A look at private data, for its owner, to draft a schema. What it finds is private until the owner says otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from limbeck.data import arrays, csv_file, folder, idx, npy, parquet
from limbeck.data.published import layout_of
from limbeck.data.records import Array, require_one_label, require_pairs
from limbeck.data.rounding import round_range
from limbeck.data.survey_pictures import PictureForm, form_of, looks_medical
from limbeck.data.survey_table import class_sizes, no_person_column, parquet_columns, survey_table
from limbeck.data.survey_units import Persons, looks_like_persons, tally
from limbeck.data.surveyed import Survey, Wanted
from limbeck.data.units import unit_codes
from limbeck.errors import BadInput, DataUnreadable

# Headers of a Parquet file's images: how many are looked at, and how many rows are unpacked for it at a time.
MOST_LOOKED_AT, HEADERS_AT_ONCE = 20_000, 64


def survey(path: Path, wanted: Wanted) -> Survey:
    """Look at a file, or at the train split of a folder that has one."""
    unit = wanted.unit
    published = layout_of(path)
    if published is not None:
        if unit is not None:
            raise BadInput(
                f"{path} is laid out as {published.name}, which does not say who a record is about; leave --unit out."
            )
        return published.open(path, "train", wanted.label).survey()
    if path.is_dir():
        return _survey_folder(path, wanted)
    suffix = path.suffix.lower()
    if idx.is_images(path):
        return _survey_idx(path, unit)
    if suffix == ".npz":
        return _survey_arrays(*arrays.arrays(path, unit=unit), str(path), unit)
    if suffix == ".npy":
        return _survey_npy(path, unit)
    if suffix == ".parquet":
        return _survey_parquet(path, wanted)
    if suffix == ".csv":
        return survey_table(csv_file.read_columns(path), wanted, path)
    raise BadInput(
        f"{path} is of no known kind; known are a folder of images, .npz, .npy, .parquet, .csv and IDX files."
    )


def _survey_folder(path: Path, wanted: Wanted) -> Survey:
    unit = wanted.unit
    for suffix in (".parquet", ".csv", ".npz"):
        if (path / f"train{suffix}").is_file():
            return survey(path / f"train{suffix}", wanted)
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
        if beside := len(folder.image_files(path)):
            hint = f"; {beside} lie in it without a sub-folder that says their class"
        raise folder.no_image(path, hint)
    # By its number: no schema says yet that the names of folders are public.
    where = f"of {len(listed)} in {path}, in the order of their folders and names,"
    form = form_of((picture.file, f"Picture {number} {where}") for number, picture in enumerate(listed, 1))
    assert form is not None
    sizes = {name: len(each) for name, each in found.items()}
    codes = unit_codes([picture.person for picture in listed], str(path))
    persons = None if unit is None else tally(unit, codes)
    return _pictured(form, Survey(shape=form.shape, low=0, high=1, sizes=sizes, persons=persons), path.resolve().name)


def _pictured(form: PictureForm, found: Survey, name: str) -> Survey:
    """With what was seen of the pictures. name: of the file or folder, which may say what they are of."""
    return replace(
        found,
        low=form.low,
        high=form.high,
        resize=form.resize,
        careful=form.dicom or looks_medical(name, *found.sizes),
        picture_remarks=form.remarks,
    )


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
    return Survey(shape=shape, low=low, high=high, sizes=class_sizes(found), persons=persons)


def _survey_parquet(path: Path, wanted: Wanted) -> Survey:
    unit = wanted.unit
    with parquet.opened(path) as file:
        names = [name for name in file.schema_arrow.names if name != unit]
        image = parquet.image_column(names)
        if image is None:
            columns, nested = parquet_columns(file, path)
            return survey_table(columns, wanted, path, dict.fromkeys(nested, "holds lists or records"))
        found = parquet.label_column(names, wanted.label or "label", path)
        labels: Counter[Any] = Counter()
        for batch in parquet.batches(file, [found], path, None, parquet.CHUNK):
            labels.update(cell if isinstance(cell, Hashable) else None for cell in parquet.cells(batch.column(found)))
        persons = None if unit is None else _parquet_persons(file, unit, path)
        form = form_of(islice(_parquet_pictures(file, image, path), MOST_LOOKED_AT))
        if form is None:
            raise DataUnreadable(f"{path} holds no record.")
        class_names = parquet.class_names(file.schema_arrow.metadata, found)
    survey = Survey(
        shape=form.shape,
        low=0,
        high=1,
        sizes=class_sizes(labels, class_names),
        label=found,
        persons=persons,
        maybe_persons=tuple(name for name in names if unit is None and looks_like_persons(name)),
    )
    return _pictured(form, survey, path.name)


def _parquet_pictures(file: Any, image: str, path: Path) -> Iterator[tuple[bytes, str]]:
    row = 0
    for batch in parquet.batches(file, [image], path, None, HEADERS_AT_ONCE):
        for cell in parquet.pictures(batch.column(image)):
            where = f"{path}, row {row}"
            yield parquet.picture_bytes(cell, where), where
            row += 1


def _parquet_persons(file: Any, unit: str, path: Path) -> Persons:
    if unit not in file.schema_arrow.names or parquet.is_nested(file.schema_arrow.field(unit)):
        raise no_person_column(path, unit, len(file.schema_arrow.names))
    pieces = parquet.batches(file, [unit], path, None, parquet.CHUNK)
    codes = [unit_codes(parquet.cells(batch.column(unit)), str(path)) for batch in pieces]
    return tally(unit, np.concatenate([np.empty(0, dtype=np.int64), *codes]))
