"""A folder with one sub-folder of images per class; where the unit is a person, each class has one sub-folder per person."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from limbeck.data import images
from limbeck.data.limits import require_count, require_room
from limbeck.data.records import Records
from limbeck.data.units import no_unit, unit_codes
from limbeck.errors import DataUnreadable
from limbeck.privacy.schema import Schema


def class_folders(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def image_files(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if entry.suffix.lower() in images.SUFFIXES and entry.is_file())


@dataclass(frozen=True)
class Picture:
    """One image file: whose it is, by the name of its folder, and what messages may call it."""

    file: Path
    person: str | None
    where: str


def pictures(folder: Path, by_person: bool) -> list[Picture]:
    """The images of one class folder. With persons those beside the persons' folders have no person, which is one more.

    Guarantee: with persons, `where` holds no name of a sub-folder or file, for these are people's.
    """
    if not by_person:
        return [Picture(file, None, str(file)) for file in image_files(folder)]
    files: list[tuple[Path, str | None]] = [(file, None) for file in image_files(folder)]
    files += [(file, person.name) for person in class_folders(folder) for file in image_files(person)]
    return [
        Picture(file, person, f"Image {place} of {len(files)} in {folder}, in the order of their names,")
        for place, (file, person) in enumerate(files, start=1)
    ]


def no_image(folder: Path, hint: str = "") -> DataUnreadable:
    return DataUnreadable(
        f"{folder} holds no image; expected one sub-folder of images per class{hint}. Read are {images.READ}."
    )


def _require_persons(folder: Path, subs: list[Path], schema: Schema) -> None:
    if schema.by_person and not any(class_folders(sub) for sub in subs):
        raise no_unit(
            folder, f"folder per {schema.unit} inside its class folders", schema, "expected CLASS/PERSON/image.png"
        )


def require_classes(folder: Path, schema: Schema) -> dict[str, int]:
    """The class of each name of a sub-folder, where all of them are classes."""
    index = {name: label for label, name in enumerate(schema.classes)}
    subs = class_folders(folder)
    others = sum(sub.name not in index for sub in subs)
    if others:  # counted, not named: in a folder of another form these may be the names of people
        raise DataUnreadable(
            f"{folder} has {len(subs)} sub-folders, of which {others} not named like a class of the schema of "
            f"'{schema.name}'; there must be one sub-folder of images per class."
        )
    return index


def read(folder: Path, schema: Schema) -> Records:
    index, subs = require_classes(folder, schema), class_folders(folder)
    files: list[tuple[Picture, int]] = []
    _require_persons(folder, subs, schema)
    for sub in subs:
        files += [(picture, index[sub.name]) for picture in pictures(sub, schema.by_person)]
    if not files:
        raise no_image(folder)
    kind = images.raw_dtype(schema)
    require_count(len(files), schema, folder)
    require_room(len(files) * schema.numbers * np.dtype(kind).itemsize, folder, schema)
    x = np.empty((len(files), *schema.shape), dtype=kind)
    for row, (picture, _) in enumerate(files):
        x[row] = images.decode(picture.file, schema, picture.where)
    units = unit_codes([picture.person for picture, _ in files], str(folder)) if schema.by_person else None
    return Records(x, np.array([label for _, label in files], dtype=np.int64), units)
