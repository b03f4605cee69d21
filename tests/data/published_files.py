"""Small files of the same form as those of published sets."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.io import savemat

from limbeck.data.draft import draft_of
from limbeck.data.surveyed import Wanted


def schema_of(path: Path, folder: Path, label: str | None = None, **changes: str) -> Path:
    """A schema as it is drafted, with all of it declared public."""
    text = draft_of(folder, Wanted(label=label)).text
    start = text.index("unconfirmed")
    text = text[:start] + "unconfirmed = []" + text[text.index("]", start) + 1 :]
    for name, value in changes.items():
        lines = [f"{name} = {value}" if line.split(" =")[0] == name else line for line in text.splitlines()]
        text = "\n".join(lines) + "\n"
    path.write_text(text)
    return path


def picture(value: int, side: int = 8, kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.full((side, side, 3), value, np.uint8)).save(buffer, format=kind)
    return buffer.getvalue()


def idx_bytes(array: np.ndarray[Any, Any]) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def svhn(folder: Path, **more: Any) -> None:
    for split, count in (("train", 6), ("test", 4)):
        x = np.zeros((4, 5, 3, count), np.uint8)
        x[1, 2, 0] = np.arange(count)  # row 1, column 2, red
        y = np.array([[1], [10], [3], [9], [10], [2]][:count], np.uint8)
        savemat(folder / f"{split}_32x32.mat", {"X": x, "y": y, **more}, do_compression=True)


def celeba(folder: Path, partition: bool = True) -> None:
    names = "Black_Hair Blond_Hair Brown_Hair Male"
    rows = {
        1: "1 -1 -1 1", 2: "-1 1 -1 -1", 3: "1 1 -1 -1", 4: "-1 -1 -1 1", 162771: "-1 -1 1 1", 182638: "-1 -1 1 -1",
        182639: "1 -1 -1 1",
    }  # fmt: skip
    lines = [f"{number:06d}.jpg  {values}" for number, values in rows.items()]
    (folder / "list_attr_celeba.txt").write_text("\n".join([str(len(rows)), names, *lines]) + "\n")
    (folder / "img_align_celeba").mkdir(exist_ok=True)
    for number in rows:
        (folder / "img_align_celeba" / f"{number:06d}.jpg").write_bytes(picture(number % 200, kind="JPEG"))
    if partition:
        part = {162771: 1, 182638: 2, 182639: 0}
        text = "".join(f"{number:06d}.jpg {part.get(number, 0)}\n" for number in rows)
        (folder / "list_eval_partition.txt").write_text(text)


def places(folder: Path) -> None:
    (folder / "categories_places365.txt").write_text("/a/airfield 0\n/a/apartment_building/outdoor 1\n/b/beach 2\n")
    listed = {
        "/a/airfield/1.jpg": 0,
        "/a/apartment_building/outdoor/1.jpg": 1,
        "/b/beach/1.jpg": 2,
        "/b/beach/2.jpg": 2,
    }
    (folder / "places365_train_standard.txt").write_text("".join(f"{name} {n}\n" for name, n in listed.items()))
    (folder / "places365_val.txt").write_text("val_1.jpg 2\nval_2.jpg 0\n")
    for place, name in enumerate(listed):
        file = folder / "data_256_standard" / name[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(picture(50 * place, kind="JPEG"))
    (folder / "val_256").mkdir()
    for number in (1, 2):
        (folder / "val_256" / f"val_{number}.jpg").write_bytes(picture(200 + number, kind="JPEG"))


def emnist(folder: Path) -> None:
    for name, first, count in (("letters", 1, 26), ("digits", 0, 10)):
        x = np.zeros((count, 4, 5), np.uint8)
        x[:, 0, 3] = 9  # lies on its side
        y = np.arange(first, first + count)
        for split in ("train", "test"):
            stem = f"emnist-{name}-{split}"
            (folder / f"{stem}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(x)))
            (folder / f"{stem}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_bytes(y)))


def kmnist(folder: Path) -> None:
    for split in ("train", "test"):
        np.savez_compressed(folder / f"kmnist-{split}-imgs.npz", np.full((10, 4, 5), 7, np.uint8))
        np.savez_compressed(folder / f"kmnist-{split}-labels.npz", np.arange(10, dtype=np.uint8))


def medmnist(folder: Path) -> None:
    values = {}
    for split, count in (("train", 9), ("val", 9), ("test", 18)):
        values[f"{split}_images"] = np.full((count, 4, 5, 3), 7, np.uint8)
        values[f"{split}_labels"] = (np.arange(count) % 9)[:, None].astype(np.uint8)
    np.savez(folder / "pathmnist.npz", **values)


def prepared(folder: Path, classes: int = 2) -> None:
    for split, count in (("train", 3), ("test", 1)):
        with zipfile.ZipFile(folder / f"{split}_32.zip", "w") as archive:
            names = [f"00000/img{number:08d}.png" for number in range(count)]
            for number, name in enumerate(names):
                archive.writestr(name, picture(10 * number))
            labels = [[name, number % classes] for number, name in enumerate(names)]
            archive.writestr("dataset.json", json.dumps({"labels": labels}))


# By the label that has to be named, where there is a choice.
SETS = {svhn: None, celeba: "gender", places: None, emnist: "letters", kmnist: None, medmnist: None, prepared: None}
