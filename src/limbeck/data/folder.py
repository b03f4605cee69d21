"""A folder with one sub-folder of images per class."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from limbeck.data import images
from limbeck.data.limits import require_count, require_room
from limbeck.data.records import Records
from limbeck.errors import DataUnreadable
from limbeck.privacy.schema import Schema


def class_folders(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def image_files(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if entry.suffix.lower() in images.SUFFIXES and entry.is_file())


def read(folder: Path, schema: Schema) -> Records:
    index = {name: label for label, name in enumerate(schema.classes)}
    files: list[tuple[Path, int]] = []
    subs = class_folders(folder)
    others = sum(sub.name not in index for sub in subs)
    if others:  # counted, not named: in a folder of another form these may be the names of people
        raise DataUnreadable(
            f"{folder} has {len(subs)} sub-folders, of which {others} not named like a class of the schema of "
            f"'{schema.name}'; there must be one sub-folder of images per class."
        )
    for sub in subs:
        files += [(file, index[sub.name]) for file in image_files(sub)]
    if not files:
        raise DataUnreadable(f"{folder} holds no image; expected one sub-folder of images per class.")
    kind = images.raw_dtype(schema)
    require_count(len(files), schema, folder)
    require_room(len(files) * schema.numbers * np.dtype(kind).itemsize, folder, schema)
    x = np.empty((len(files), *schema.shape), dtype=kind)
    for row, (file, _) in enumerate(files):
        x[row] = images.decode(file, schema, str(file))
    return Records(x, np.array([label for _, label in files], dtype=np.int64))
