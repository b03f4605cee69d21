"""EMNIST and KMNIST, which were published in the manner of MNIST and differ in details.

EMNIST's pictures lie on their side, the labels of `letters` count from 1, and six sets share a folder. KMNIST comes as IDX files
of MNIST's names, which any reader of those reads, or as four archives of one array each, which are read here.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from limbeck.data import arrays, idx
from limbeck.data.published.found import Arrays, Header
from limbeck.data.published.layout import Layout, chosen_label, names_in
from limbeck.data.records import Array
from limbeck.errors import DataNotFound, DataUnreadable

DIGITS, UPPER, LOWER = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
MERGED = DIGITS + UPPER + "abdefghnqrt"  # letters that look alike in both cases are one class
SETS = {
    "letters": UPPER,
    "digits": DIGITS,
    "mnist": DIGITS,
    "balanced": MERGED,
    "bymerge": MERGED,
    "byclass": DIGITS + UPPER + LOWER,
}
_EMNIST = re.compile(rf"emnist-({'|'.join(SETS)})-(train|test)-images-idx3-ubyte(\.gz)?$")
KANA = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")
KMNIST_FILE = "kmnist-{split}-{what}.npz"


def holds_emnist(path: Path) -> bool:
    return any(_EMNIST.match(name) for name in names_in(path))


def open_emnist(path: Path, split: str, label: str | None) -> Arrays:
    there = [match for match in map(_EMNIST.match, names_in(path)) if match]
    name = chosen_label(path, label, tuple(dict.fromkeys(match[1] for match in there)))
    files = [path / match[0] for match in there if (match[1], match[2]) == (name, split)]
    if not files:
        raise DataNotFound(f"{path} has no images file of the {split} split of EMNIST {name}.")
    images, labels = files[0], idx.labels_beside(files[0])
    found, listed = (idx.announced(file)[0] for file in (images, labels))
    x, y = Header(found.shape[:1] + found.shape[:0:-1], found.room), Header(listed.shape, listed.room)
    classes = tuple(SETS[name])
    return Arrays(str(images), name, classes, (x, y), lambda: _upright(*idx.load(images), name, images))


def _upright(x: Array, y: Array, name: str, where: Path) -> tuple[Array, Array]:
    if x.ndim != 3 or x.dtype != np.uint8:
        raise DataUnreadable(f"{where} holds pictures of shape {x.shape} and type {x.dtype}; expected 8 bits, 28 x 28.")
    return np.ascontiguousarray(x.transpose(0, 2, 1))[:, None], y.astype(np.int64) - (1 if name == "letters" else 0)


def holds_kmnist(path: Path) -> bool:
    names = names_in(path)
    return any(KMNIST_FILE.format(split=split, what="imgs") in names for split in ("train", "test"))


def open_kmnist(path: Path, split: str, label: str | None) -> Arrays:
    label = chosen_label(path, label, ("character",))
    images, labels = (path / KMNIST_FILE.format(split=split, what=what) for what in ("imgs", "labels"))
    headers = []
    for file in (images, labels):
        with arrays.opened(file) as archive:
            found = arrays.placed(archive, arrays.members(archive, ("arr_0",), file)["arr_0"], file).header
        headers.append(Header(found.shape, found.room))

    def load() -> tuple[Array, Array]:
        x, y = (arrays.stored(file, ("arr_0",))["arr_0"] for file in (images, labels))
        if x.ndim != 3 or x.dtype != np.uint8 or y.ndim != 1 or y.dtype.kind not in "iu":
            raise DataUnreadable(f"{images} and {labels.name} are no 8-bit pictures with one whole number each.")
        return x[:, None], y.astype(np.int64)

    return Arrays(str(images), label, KANA, (headers[0], headers[1]), load)


EMNIST = Layout(
    name="emnist",
    title="28 x 28 handwritten digits and letters",
    get="the page of the EMNIST dataset at NIST, nist.gov (binary format, the archive gzip.zip)",
    files="emnist-letters-train-images-idx3-ubyte.gz and its like for labels, for test, and for the other five sets",
    labels="letters, digits, balanced, bymerge, byclass, mnist",
    holds=holds_emnist,
    open=open_emnist,
)
KMNIST = Layout(
    name="kmnist",
    title="28 x 28 handwritten kana of ten classes",
    get="the repository rois-codh/kmnist on GitHub, of the Center for Open Data in the Humanities",
    files="kmnist-train-imgs.npz, kmnist-train-labels.npz, the same for test; or IDX files as MNIST has them",
    holds=holds_kmnist,
    open=open_kmnist,
)
