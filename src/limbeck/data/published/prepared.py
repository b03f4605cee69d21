"""Sets as DPImageBench prepares them, Camelyon17 and EuroSAT among them: train_32.zip and test_32.zip, with pictures and a list
of their classes, dataset.json."""

from __future__ import annotations

import json
import re
import zipfile
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from limbeck.data import faults
from limbeck.data.limits import require_room
from limbeck.data.published.found import Pictures
from limbeck.data.published.layout import Layout, chosen_label, names_in, only_one
from limbeck.data.streams.marks import mark_file
from limbeck.errors import DataUnreadable

SPLITS = ("train", "test")
LIST = "dataset.json"
_NAME = re.compile(r"(train|test)_\d+(_\w+)?\.zip$")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
BYTES_PER_BYTE = 20  # what the list takes once it is read
MOST_CLASSES = 10_000
# What the numbers stand for, by the folder's name: the classes' folders in the order of their names.
NAMES = {
    "camelyon": ("normal", "tumor"),
    "eurosat": (
        "AnnualCrop", "Forest", "HerbaceousVegetation", "Highway", "Industrial", "Pasture", "PermanentCrop", "Residential",
        "River", "SeaLake",
    ),
}  # fmt: skip


def holds(path: Path) -> bool:
    return any(_NAME.match(name) for name in names_in(path))


def open_split(path: Path, split: str, label: str | None) -> Pictures:
    label = chosen_label(path, label, ("class",))
    archives = {each: [name for name in names_in(path) if (m := _NAME.match(name)) and m[1] == each] for each in SPLITS}
    file = only_one(path, archives[split], f"archive {split}_NUMBER.zip")
    kept = _Archive(file)
    listed = kept.listed()
    # A split need not have records of every class.
    both = [number for names in archives.values() for name in names for _, number in _Archive(path / name).listed()]
    return Pictures(
        str(file),
        label,
        _class_names(path, 1 + max(both, default=-1)),
        [partial(kept.picture, name) for name, _ in listed],
        [number for _, number in listed],
        lambda: (mark_file(file),),
    )


class _Archive:
    """A zip archive that stays open from its first picture to its last: its directory is long."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._open: zipfile.ZipFile | None = None

    def listed(self) -> list[tuple[str, int]]:
        """Every picture with the number of its class."""
        with self._sentences(), zipfile.ZipFile(self._file) as archive:
            members = {info.filename: info for info in archive.infolist()}
            found = _listed(archive, members, self._file)
        missing = sum(name not in members for name, _ in found)
        if missing:
            raise DataUnreadable(f"{self._file} holds {missing} pictures fewer than its {LIST} lists.")
        return found

    def picture(self, name: str) -> bytes:
        with self._sentences():
            if self._open is None:
                self._open = zipfile.ZipFile(self._file)
            return _bytes(self._open, self._open.getinfo(name), self._file)

    def _sentences(self) -> AbstractContextManager[None]:
        return faults.sentences(self._file, lambda error: "is not a readable zip archive")


def _listed(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], file: Path) -> list[tuple[str, int]]:
    if LIST not in members:
        raise DataUnreadable(f"{file} holds no {LIST}, which says the class of each picture.")
    require_room(BYTES_PER_BYTE * members[LIST].file_size, file)
    labels: Any = json.loads(_bytes(archive, members[LIST], file)).get("labels")
    if not isinstance(labels, list) or not all(_is_entry(each) for each in labels):
        raise DataUnreadable(f"{file} holds a {LIST} that is no list of pictures, each with the number of its class.")
    return [(name, number) for name, number in labels]


def _is_entry(each: Any) -> bool:
    if not isinstance(each, list) or len(each) != 2 or isinstance(each[1], bool):
        return False
    return isinstance(each[0], str) and isinstance(each[1], int) and 0 <= each[1] < MOST_CLASSES


def _bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: Path) -> bytes:
    if member.compress_type not in METHODS:
        raise DataUnreadable(f"{file} is packed by a method that is not read here; pack it anew as plain zip.")
    require_room(member.file_size, file)
    with archive.open(member) as stream:
        return stream.read(member.file_size)


def _class_names(path: Path, count: int) -> tuple[str, ...]:
    named = next((names for key, names in NAMES.items() if path.resolve().name.lower().startswith(key)), ())
    return named if len(named) == count else tuple(str(number) for number in range(count))


CAMELYON17 = Layout(
    name="camelyon17",
    title="patches of lymph nodes with and without tumour, 32 x 32 pixels in colour",
    get="the WILDS project, wilds.stanford.edu; made 32 x 32 by DPImageBench, the repository 2019ChenGong/DPImageBench on GitHub",
    files="train_32.zip, test_32.zip in a folder camelyon/; or folders train/ and test/ with one sub-folder per class",
    holds=lambda path: holds(path) and not _is_eurosat(path),
    open=open_split,
)
EUROSAT = Layout(
    name="eurosat",
    title="satellite pictures of ten kinds of land, 32 x 32 pixels in colour",
    get="the repository phelber/EuroSAT on GitHub (RGB); made 32 x 32 and split by DPImageBench (2019ChenGong/DPImageBench)",
    files="train_32.zip, test_32.zip in a folder eurosat/",
    holds=lambda path: holds(path) and _is_eurosat(path),
    open=open_split,
)


def _is_eurosat(path: Path) -> bool:
    return path.resolve().name.lower().startswith("eurosat")
