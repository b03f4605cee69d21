"""A data set in several files of one kind: a glob ('rows-*.parquet'), a list with commas, or a folder of nothing else."""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from limbeck.data.limits import require_count, require_plain
from limbeck.data.records import Records
from limbeck.errors import BadInput, DataNotFound
from limbeck.privacy.schema import Schema

SUFFIXES = (".parquet", ".csv", ".npz", ".npy")
WILD = "*?["


def is_list(spec: str) -> bool:
    """Whether these words mean several files. A file or a folder of that very name comes first."""
    return not Path(spec).expanduser().exists() and ("," in spec or any(sign in spec for sign in WILD))


def listed(spec: str) -> list[Path]:
    """The files, those of a glob in the order of their names."""
    found: list[Path] = []
    for part in spec.split(","):
        path = Path(part.strip()).expanduser()
        if not part.strip():
            raise BadInput(f"'{spec}' lists an empty name of a file; write FILE,FILE or a glob in quotation marks.")
        if path.exists() or not any(sign in part for sign in WILD):
            found.append(path)
        else:
            found += sorted(Path(name) for name in glob.glob(str(path)))
    missing = [path for path in found if not path.is_file()]
    if missing or not found:
        what = f"there is no file {missing[0]}" if missing else "no file has such a name"
        raise DataNotFound(f"'{spec}' is no list of files: {what}.")
    return _of_one_kind(found, spec)


def in_folder(folder: Path) -> list[Path]:
    """The files of a folder that holds files of one kind and no folder; none if it is of another form."""
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith((".", "_")))
    files = [entry for entry in entries if entry.suffix.lower() in SUFFIXES]
    if any(entry.is_dir() for entry in entries) or len({file.suffix.lower() for file in files}) != 1:
        return []
    return files


def _of_one_kind(files: Sequence[Path], spec: str) -> list[Path]:
    kinds = {file.suffix.lower() for file in files}
    if len(kinds) > 1 or not kinds <= set(SUFFIXES):
        raise BadInput(
            f"'{spec}' lists files of the kinds {', '.join(sorted(kinds))}; they must be of one of {SUFFIXES}."
        )
    if len(set(files)) < len(files):
        raise BadInput(f"'{spec}' lists a file twice, and a record that counts twice is not protected as one.")
    if any("," in str(file) for file in files):
        raise BadInput(f"'{spec}' has a file with a comma in its name, which cannot be told from a list; rename it.")
    for file in files:
        require_plain(file)
    return list(files)


def written_out(spec: str) -> str:
    """The same files from any folder. A glob becomes the list of what it means now: a run that is resumed takes no others."""
    if not is_list(spec):
        return str(Path(spec).expanduser().absolute())
    return ",".join(str(file.absolute()) for file in listed(spec))


def together(readers: Sequence[Callable[[Schema], Records]], schema: Schema, where: str) -> Records:
    """All shards in memory, one after the other."""
    parts: list[Records] = []
    for read in readers:
        parts.append(read(schema))
        require_count(sum(len(part) for part in parts), schema, where)
    units = [part.units for part in parts if part.units is not None]
    return Records(
        np.concatenate([part.x for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate(units) if units else None,
    )
