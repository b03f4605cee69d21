"""SVHN, cropped digits: train_32x32.mat and test_32x32.mat, MATLAB files of version 5 with X (32, 32, 3, records) and y, where
the digit 0 has the label 10."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from limbeck.data import faults
from limbeck.data.limits import array_bytes
from limbeck.data.published.found import Arrays, Header
from limbeck.data.published.layout import Layout, chosen_label, names_in
from limbeck.data.records import Array
from limbeck.errors import DataNotFound, DataUnreadable

CLASSES = tuple("0123456789")
ITEM_BYTES = {
    "double": 8,
    "single": 4,
    "uint8": 1,
    "int8": 1,
    "uint16": 2,
    "int16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
}


def _file(split: str) -> str:
    return f"{split}_32x32.mat"


def holds(path: Path) -> bool:
    names = names_in(path)
    return _file("train") in names or _file("test") in names


def open_split(path: Path, split: str, label: str | None) -> Arrays:
    label = chosen_label(path, label, ("digit",))
    file = path / _file(split)
    if not file.is_file():
        raise DataNotFound(f"{path} has no {file.name}, so it has no {split} split.")
    x, y = _announced(file)
    return Arrays(str(file), label, CLASSES, (x, y), lambda: _arrays(file))


def _announced(file: Path) -> tuple[Header, Header]:
    """By the headers of the variables; no number is unpacked."""
    from scipy.io import whosmat

    with faults.sentences(file, _wrong):
        found = {name: (shape, kind) for name, shape, kind in whosmat(str(file))}
    missing = [name for name in ("X", "y") if name not in found]
    if missing:
        raise DataUnreadable(f"{file} has no variable {' and '.join(missing)} among its {len(found)}.")
    (shape, kind), (labels, label_kind) = found["X"], found["y"]
    if len(shape) != 4 or shape[2] not in (1, 3) or kind != "uint8":
        raise DataUnreadable(
            f"{file} holds X of shape {shape} and type {kind}; expected (height, width, 3, records) of 8 bits."
        )
    if sorted(labels)[:-1] != [1] or label_kind not in ITEM_BYTES:
        raise DataUnreadable(f"{file} holds y of shape {labels} and type {label_kind}; expected one label per record.")
    x = Header((shape[3], shape[2], *shape[:2]), array_bytes(int(np.prod(shape, dtype=object)), 1, converted=False))
    y = Header((max(labels),), array_bytes(max(labels), ITEM_BYTES[label_kind], converted=True))
    return x, y


def _arrays(file: Path) -> tuple[Array, Array]:
    from scipy.io import loadmat

    with faults.sentences(file, _wrong), np.errstate(invalid="ignore"):
        found: dict[str, Any] = loadmat(str(file), variable_names=["X", "y"])
        x, y = found["X"], found["y"].ravel().astype(np.int64)
    return np.ascontiguousarray(np.transpose(x, (3, 2, 0, 1))), np.where(y == 10, 0, y)


def _wrong(error: Exception) -> str:
    if isinstance(error, NotImplementedError):  # version 7.3, which is another format
        return "is a MATLAB file of version 7.3; SVHN is published as version 5. Download it anew, or save it with -v6"
    return "is not a readable MATLAB file"


SVHN = Layout(
    name="svhn",
    title="32 x 32 colour pictures of house numbers, cropped to digits",
    get="the project page of the Street View House Numbers data set, ufldl.stanford.edu/housenumbers, format 2",
    files="train_32x32.mat, test_32x32.mat",
    holds=holds,
    open=open_split,
)
