"""Folders of images in pieces: the names are listed, and a picture is decoded when it is wanted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from limbeck.data import folder, images
from limbeck.data.limits import require_count
from limbeck.data.records import Records
from limbeck.data.streams.marks import Mark, mark_files
from limbeck.data.streams.stream import Cursor, Places
from limbeck.privacy.schema import Schema


@dataclass(frozen=True)
class FolderStream:
    """classes: for each class folder, in order, its class and the names of its pictures."""

    path: Path
    schema: Schema
    classes: tuple[tuple[Path, int, tuple[str, ...]], ...]

    @property
    def where(self) -> str:
        return str(self.path)

    @property
    def count(self) -> int:
        return sum(len(names) for _, _, names in self.classes)

    @property
    def room(self) -> int:
        return self.count * self.schema.numbers * np.dtype(images.raw_dtype(self.schema)).itemsize

    def marks(self) -> tuple[Mark, ...]:
        """Listed anew: a picture that was added is a change, too."""
        subs = folder.class_folders(self.path)
        return tuple(mark_files(sub, (file.name for file in folder.image_files(sub))) for sub in subs)

    def check(self) -> None:
        """Reading shows all."""

    @contextmanager
    def opened(self) -> Iterator[Cursor]:
        yield _FolderCursor(self)


class _FolderCursor:
    def __init__(self, stream: FolderStream) -> None:
        self._schema, self._classes = stream.schema, stream.classes
        self._ends = np.cumsum([len(names) for _, _, names in stream.classes])
        self._passed, self._count = 0, stream.count

    def take(self, count: int, wanted: Places | None = None) -> tuple[int, Records]:
        count = min(count, self._count - self._passed)
        places = self._passed + (np.arange(count) if wanted is None else wanted[wanted < count])
        x = np.empty((len(places), *self._schema.shape), dtype=images.raw_dtype(self._schema))
        y = np.empty(len(places), dtype=np.int64)
        for row, place in enumerate(places.tolist()):
            index = int(np.searchsorted(self._ends, place, side="right"))
            sub, y[row], names = self._classes[index]
            file = sub / names[place - int(self._ends[index])]  # counted from the end of the folder's list
            x[row] = images.decode(file, self._schema, str(file))
        self._passed += count
        return count, Records(x, y)


def folder_stream(path: Path, schema: Schema) -> FolderStream:
    index = folder.require_classes(path, schema)
    subs = folder.class_folders(path)
    found = tuple((sub, index[sub.name], tuple(file.name for file in folder.image_files(sub))) for sub in subs)
    stream = FolderStream(path, schema, found)
    if not stream.count:
        raise folder.no_image(path)
    require_count(stream.count, schema, path)
    return stream
