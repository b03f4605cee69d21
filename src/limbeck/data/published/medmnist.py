"""MedMNIST: one archive for each set, such as pathmnist.npz, with train_images, train_labels and the same for val and test.
Validation records are in neither split."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from limbeck.data import arrays
from limbeck.data.published.found import Arrays, Header, channels_first
from limbeck.data.published.layout import Layout, chosen_label, names_in, only_one
from limbeck.data.records import Array
from limbeck.errors import DataUnreadable, LimbeckError

CLASSES = {
    "path": 9, "derma": 7, "oct": 4, "pneumonia": 2, "retina": 5, "breast": 2, "blood": 8, "tissue": 8, "organa": 11,
    "organc": 11, "organs": 11, "chest": 14,
}  # fmt: skip
_NAME = re.compile(rf"({'|'.join(CLASSES)})mnist(_\d+)?\.npz$")


def holds(path: Path) -> bool:
    """Also whether the archive lists its arrays: a file of that name may be one's own, with x and y."""
    if path.is_dir():
        return any(holds(path / name) for name in names_in(path) if _NAME.match(name))
    if not _NAME.match(path.name):
        return False
    try:
        with arrays.opened(path) as archive:
            return "train_images.npy" in archive.namelist()
    except LimbeckError:
        return True  # opening it says what is wrong


def open_split(path: Path, split: str, label: str | None) -> Arrays:
    label = chosen_label(path, label, ("class",))
    file = only_one(path, [n for n in names_in(path) if _NAME.match(n)], "set of MedMNIST") if path.is_dir() else path
    match = _NAME.match(file.name)
    assert match is not None
    names = (f"{split}_images", f"{split}_labels")
    with arrays.opened(file) as archive:
        members = arrays.members(archive, names, file)
        found = [arrays.placed(archive, members[name], file).header for name in names]
    images, labels = found
    if len(labels.shape) != 2 or labels.shape[1] != 1:
        raise DataUnreadable(
            f"{file} holds labels of shape {labels.shape}; expected one label per record (ChestMNIST has fourteen answers for "
            "each, which is no set of classes)."
        )
    x = Header(images.shape, images.room)
    y = Header(labels.shape[:1], labels.room)

    def load() -> tuple[Array, Array]:
        values = arrays.stored(file, names)
        return channels_first(values[names[0]], str(file)), values[names[1]][:, 0].astype(np.int64)

    return Arrays(str(file), label, tuple(str(n) for n in range(CLASSES[match[1]])), (x, y), load)


MEDMNIST = Layout(
    name="medmnist",
    title="medical pictures of 28 x 28 to 224 x 224 pixels, twelve sets; those with one class per record",
    get="the project page of MedMNIST, medmnist.com",
    files="one archive, such as pathmnist.npz or dermamnist_64.npz, by itself or alone in a folder",
    holds=holds,
    open=open_split,
)
