"""A data source: a public schema, and the promise to load the private records when the vault asks for them."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from limbeck.data import arrays, fetch, folder, idx, npy, parquet, shards, table
from limbeck.data.benchmark import Benchmark
from limbeck.data.limits import require_plain, size_words
from limbeck.data.named import NAMED, SPLITS, named_set
from limbeck.data.published import Layout, layout_of
from limbeck.data.records import Records
from limbeck.data.streams.layouts import Streamer, as_shards, streamer
from limbeck.data.streams.memory import VARIABLE as MEMORY
from limbeck.data.streams.memory import most_held, require_memory
from limbeck.data.streams.stream import RecordStream, sentences
from limbeck.errors import BadInput, DataNotFound, DataUnreadable, LimbeckError, did_you_mean
from limbeck.privacy.schema import Schema

__all__ = ["DataSource", "Records", "layout", "open_source"]

logger = logging.getLogger(__name__)

Reader = Callable[[Schema], Records]
Finder = Callable[[fetch.Agree | None], Path]


@dataclass(frozen=True)
class DataSource:
    """Guarantee: constructing a source reads no record and fetches nothing; `load` does, and the vault calls it once the
    plan is booked.

    `benchmark` is set where the records are those of a named set, opened by its name: then `load` compares them with hashes
    and raises if they differ. `where` is for people; no decision hangs on what it looks like.
    """

    schema: Schema
    where: str
    reader: Reader = dataclasses.field(repr=False)
    benchmark: Benchmark | None = None
    finder: Finder | None = dataclasses.field(default=None, repr=False)
    streamer: Streamer | None = dataclasses.field(default=None, repr=False)

    def prepare(self, agree: fetch.Agree | None = None) -> None:
        """Have the files at hand: a named set that is nowhere is fetched, or said not to be there. Reads no record."""
        if self.finder is not None:
            self.finder(agree)

    def load(self) -> Records:
        """All records, in memory. What this process cannot hold is refused before it is read."""
        with sentences(self.where):
            try:
                found = self._pieces()
                room = 0 if found is None else found.room
            except (LimbeckError, OSError):
                room = 0  # the reader says what is wrong with the file
            require_memory(room, self.where)
            return self.reader(self.schema)

    def stream(self) -> RecordStream | None:
        """The records in pieces, if they would take more memory than is held (limbeck.data.streams.memory); else None.

        Guarantee: reads headers and names of files, no record.
        """
        with sentences(self.where):
            found = self._pieces()
            if found is None or found.room <= most_held():
                return None
            logger.warning(
                "%s would take about %s of memory when it is held, so it is read in pieces, again for every answer. It is held "
                "if %s allows it, say %s=4GB.", self.where, size_words(found.room), MEMORY, MEMORY,
            )  # fmt: skip
            return found

    def _pieces(self) -> RecordStream | None:
        # A person's records are clipped together, so they have to be found together.
        return None if self.streamer is None or self.schema.by_person else self.streamer(self.schema)


def open_source(
    spec: str,
    *,
    split: str = "train",
    schema_path: Path | None = None,
    label: str | None = None,
    root: Path | None = None,
    default: Schema | None = None,
) -> DataSource:
    """Open a named set ('mnist', 'mnist:test') or a path (a folder, .npz, IDX, Parquet or CSV file).

    A bare name of a named set always means that set; a folder of that name is written './mnist'.

    spec: the name or the path. split: "train" or "test", where there are two. schema_path: the file that says what is public.
    label: the label column of a CSV file. root: a folder that holds the named sets. default: the schema of a path that has none,
    such as that of the release which test records are for.

    >>> source = open_source("digits", split="test")
    >>> source.where, source.schema.shape, source.schema.records
    ('digits:test', (1, 8, 8), 360)
    """
    base, chosen = split_suffix(spec)
    split = chosen or split
    if split not in SPLITS:
        raise BadInput(f"split must be one of {', '.join(SPLITS)}, got '{split}'.")
    if base in NAMED:
        if schema_path is not None:
            raise BadInput(f"The named set '{base}' has a built-in schema; open its files by path to use another one.")
        return _open_named(base, split, root)
    if shards.is_list(base):
        return _open_shards(base, chosen, schema_path, label, default)
    path = Path(base).expanduser()
    if not base or not path.exists():
        hint = did_you_mean(base, [*NAMED, *_beside(path)])
        raise DataNotFound(
            f"'{spec}' is neither a named set ({', '.join(NAMED)}) nor a path.{hint}", "limbeck data list"
        )
    require_plain(path)
    published = layout_of(path)
    if published is not None:
        return _open_published(published, path, split, _schema_for(path, schema_path, label, default))
    try:
        files, has_splits = layout(path, split)
    except OSError as error:
        raise DataUnreadable(f"{path} cannot be read: {error.strerror or error}.") from None
    if chosen and not has_splits:
        raise BadInput(f"{path} has no train and test split, so ':{chosen}' cannot be chosen; leave it out.")
    where = f"{_shown(path)}:{split}" if has_splits else _shown(path)
    return _source_of(files, _schema_for(path, schema_path, label, default), where)


def _shown(path: Path) -> str:
    """As it has to be written to be opened again."""
    return f"./{path}" if str(path) in NAMED else str(path)


def _open_published(layout: Layout, path: Path, split: str, schema: Schema) -> DataSource:
    """A set in the layout of its publishers. Its files are no known copy, so it is no benchmark."""

    def read(schema: Schema) -> Records:
        return layout.open(path, split, schema.label).records(schema)

    def stream(schema: Schema) -> RecordStream | None:
        return layout.open(path, split, schema.label).stream(schema)

    return DataSource(schema, f"{_shown(path)}:{split}", read, streamer=stream)


def _beside(path: Path) -> list[str]:
    """What lies in the folder that a path would lie in, as it would be written; the nearest may be meant."""
    try:
        return [str(path.parent / each.name) for each in path.parent.iterdir()] if path.name else []
    except OSError:
        return []


def _open_shards(
    spec: str, split: str | None, schema_path: Path | None, label: str | None, default: Schema | None
) -> DataSource:
    if split is not None:
        raise BadInput(f"A list of files has no train and test split, so ':{split}' cannot be chosen; leave it out.")
    files = shards.listed(spec)
    schema_path = schema_path or next((file for file in [files[0].parent / "limbeck.toml"] if file.is_file()), None)
    return _source_of(files, _schema_for(files[0], schema_path, label, default), spec)


def _source_of(files: list[Path], schema: Schema, where: str) -> DataSource:
    if len(files) == 1:
        return DataSource(schema, where, reader_of(files[0]), streamer=streamer(files[0]))
    readers = [reader_of(file) for file in files]
    return DataSource(
        schema, where, lambda found: shards.together(readers, found, where), streamer=as_shards(files, where)
    )


def split_suffix(spec: str) -> tuple[str, str | None]:
    base, colon, suffix = spec.rpartition(":")
    return (base, suffix) if colon and suffix in SPLITS else (spec, None)


def _schema_for(path: Path, schema_path: Path | None, label: str | None, default: Schema | None) -> Schema:
    paths = [schema_path] if schema_path else [Path(f"{path}.limbeck.toml"), path / "limbeck.toml"]
    found = next((each for each in paths if schema_path or each.is_file()), None)
    if found is None and default is None:
        extra = f" --label {label or 'COLUMN'}" if path.suffix.lower() == ".csv" else ""
        raise BadInput(
            f"{path} has no schema, which says what is public about it; draft one, check it, then pass it by --schema.",
            f"limbeck schema draft {path}{extra} --out {path}.limbeck.toml",
        )
    schema = default if found is None else Schema.read(found)
    assert schema is not None
    return dataclasses.replace(schema, label=label) if label else schema


def layout(path: Path, split: str) -> tuple[list[Path], bool]:
    """The files, or the folder of images, that a path stands for, and whether it has splits. Looks at names only."""
    if path.is_dir():
        return _folder_layout(path, split)
    reader_of(path)
    return [path], False


READERS = {".npz": arrays.read, ".npy": npy.read, ".parquet": parquet.read, ".csv": table.read}


def reader_of(path: Path) -> Reader:
    """The reader of one file, or of one folder of images, by its name."""
    if path.is_dir():
        return lambda schema: folder.read(path, schema)
    if idx.is_labels(path):
        raise BadInput(f"{path} holds labels; give the images file beside it.")
    if idx.is_images(path):
        return lambda schema: idx.read(path, schema)
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise BadInput(
            f"{path} is of no known kind; known are a folder with one sub-folder of images per class, "
            f".npz, .npy, .parquet, .csv and IDX files."
        )
    return lambda schema: READERS[suffix](path, schema)


def _folder_layout(path: Path, split: str) -> tuple[list[Path], bool]:
    names = {entry.name for entry in path.iterdir()}
    for suffix in (".parquet", ".csv", ".npz"):
        if any(f"{each}{suffix}" in names for each in SPLITS):
            file = path / f"{split}{suffix}"
            if not file.is_file():
                raise DataNotFound(f"{path} has no {file.name}, so it has no {split} split.")
            return [file], True
    if any(idx.is_images(path / name) for name in names):
        images = idx.images_in(path, split)
        if images is None:
            raise DataNotFound(f"{path} has no IDX images file of the {split} split.")
        return [images], True
    if "train" in names and (path / "train").is_dir():
        if not (path / split).is_dir():
            raise DataNotFound(f"{path} has no folder {split}/, so it has no {split} split.")
        return [path / split], True
    if npy.RECORDS in names:
        return [path / npy.RECORDS], False
    return shards.in_folder(path) or [path], False


def _open_named(name: str, split: str, root: Path | None) -> DataSource:
    entry = named_set(name)

    def find(agree: fetch.Agree | None = None) -> Path:
        return fetch.locate(name, root, agree)

    def read(schema: Schema) -> Records:
        if entry.storage == "digits":
            return _digits(split)
        where = find()
        fetch.verify(name, where, split)
        records = _read_named(entry.storage, where, split, schema)
        if len(records) != entry.size_of(split):
            raise DataUnreadable(
                f"{where} holds {len(records)} {split} records of '{name}', not {entry.size_of(split)}."
            )
        return records

    return DataSource(entry.schema_of(split), f"{name}:{split}", read, Benchmark(name, split), finder=find)


def _read_named(storage: str, where: Path, split: str, schema: Schema) -> Records:
    if storage == "cifar10":
        return parquet.read(where / f"{split}.parquet", schema)
    if storage == "adult":
        return table.read(where / f"{split}.csv", schema)
    images = idx.images_in(where, split)
    if images is None:
        raise DataNotFound(f"{where} has no IDX images file of the {split} split.")
    return idx.read(images, schema)


def _digits(split: str) -> Records:
    from sklearn.datasets import load_digits  # imported late: it takes a second, and only this set needs it

    x, y = load_digits(return_X_y=True)
    chosen = (np.arange(len(y)) % 5 == 0) == (split == "test")
    records = Records(x[chosen].reshape(-1, 1, 8, 8).astype(np.uint8), y[chosen].astype(np.int64))
    found = hashlib.sha256(records.x.tobytes() + records.y.astype("<i8").tobytes()).hexdigest()
    if found != fetch.ARRAYS["digits"][split]:
        raise DataUnreadable(
            f"The {split} records of 'digits' that scikit-learn gives are not those that Limbeck knows: their SHA-256 is "
            f"{found[:16]}.... Install scikit-learn anew, or open your copy by its path with a schema of its own."
        )
    return records
