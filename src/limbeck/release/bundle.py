"""A release as one zip file to hand over: exactly what its certificate lists, and the certificate.

Everything is checked before and while it is packed, so what cannot be shared cannot be packed. The same release gives the
same bytes on every machine: files in order, no dates, no compression (whose bytes depend on the library's version).
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from limbeck.errors import NotAuthentic, NotReleasable, OutputFault, RunConflict
from limbeck.release.certificate import NAME, Certificate
from limbeck.release.destination import RUN_STATE, is_unfinished, require_outside, resume_command
from limbeck.release.editions import is_owner_copy
from limbeck.release.statement import Statement
from limbeck.release.verification import require_releasable, verified

LONGEST_NAME = 60
ZIP_BEGINS = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """What was packed; `name` is the folder inside, made of public words and the certificate's own digest."""

    name: str
    files: int
    size: int
    sha256: str
    certificate: Certificate


def pack(release: Path, target: IO[bytes]) -> Bundle:
    """Write the bundle of a release to an open file.

    Guarantee: packs nothing unless the release verifies and may be shared; every packed byte was compared with the
    certificate, no link was followed, and no file that is marked as the owner's is among them.
    """
    _require_finished(release)
    _refuse_links(release)
    statement = Statement.read(release)
    certificate = verified(statement, release)
    require_releasable(certificate)
    sealed = _read_plain(release / NAME)
    if Statement.parse(sealed, release / NAME) != statement:
        raise NotAuthentic(f"{NAME} was changed while the release was packed.")
    name = bundle_name(certificate.dataset, certificate.method, sealed)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for file, stated in sorted(certificate.files.items()):
            content = _read_plain(release / file)
            if hashlib.sha256(content).hexdigest() != stated:
                raise NotAuthentic(f"{file} was changed: its hash is not the one on the certificate.")
            if is_owner_copy(content):
                raise NotReleasable(f"{file} is marked as the owner's copy; it is never part of a release.")
            archive.writestr(_entry(f"{name}/{file}"), content)
        archive.writestr(_entry(f"{name}/{NAME}"), sealed)
    size = target.tell()
    target.seek(0)
    digest = hashlib.file_digest(target, "sha256").hexdigest()  # type: ignore[arg-type]  # any readable file will do
    return Bundle(name=name, files=len(certificate.files) + 1, size=size, sha256=digest, certificate=certificate)


def write_bundle(release: Path, out: Path | None) -> tuple[Path, Bundle]:
    """Pack a release into `out`, by default a file beside it; whole or not at all, and over nothing that exists."""
    if out is not None:
        _require_free(out, release)
    folder = (release.absolute() if out is None else out.absolute()).parent
    try:
        with tempfile.NamedTemporaryFile(prefix=".bundle-", dir=folder) as temporary:
            bundle = pack(release, temporary.file)
            path = out or folder / f"{bundle.name}.zip"
            _require_free(path, release)
            temporary.flush()
            os.fsync(temporary.fileno())
            os.chmod(temporary.name, 0o644)
            os.link(temporary.name, path)  # unlike a rename, it never replaces a file
        return path, bundle
    except FileExistsError:
        raise RunConflict(f"{out or 'The bundle'} exists already; nothing is overwritten.") from None
    except OSError as error:
        raise OutputFault(f"The bundle could not be written to {folder}: {error.strerror or error}.") from None


def bundle_name(dataset: str, method: str, sealed: bytes) -> str:
    """
    >>> bundle_name("my scans/2", "ldpdc", b"{}")
    'my-scans-2-ldpdc-44136fa3'
    """
    words = re.sub(r"[^A-Za-z0-9]+", "-", f"{dataset}-{method}").strip("-")
    return f"{words[:LONGEST_NAME]}-{hashlib.sha256(sealed).hexdigest()[:8]}".lstrip("-")


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, ZIP_BEGINS)
    entry.create_system = 3  # what a POSIX system writes, wherever it is packed
    entry.external_attr = (stat.S_IFREG | 0o644) << 16
    return entry


def _require_finished(release: Path) -> None:
    if is_unfinished(release):
        raise RunConflict(
            f"{release} holds a run that is not finished; there is nothing to pack.", resume_command(release)
        )
    if (release / RUN_STATE).exists():
        raise RunConflict(f"{release / RUN_STATE} belongs to no release; remove it if no run is at work in {release}.")


def _refuse_links(release: Path) -> None:
    for path in sorted(release.rglob("*")):
        if path.is_symlink():
            raise NotAuthentic(
                f"{path.relative_to(release)} is a link. A release holds its files itself; nothing behind a link is packed."
            )


def _read_plain(path: Path) -> bytes:
    """The content of a regular file; a link that has slipped in since the check is not followed."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise NotAuthentic(f"{path.name} cannot be read as a file of the release.") from None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise NotAuthentic(f"{path.name} is not a plain file.")
        return file.read()


def _require_free(out: Path, release: Path) -> None:
    require_outside(out)
    if out.exists() or out.is_symlink():
        raise RunConflict(f"{out} exists already; nothing is overwritten. Choose another --out.")
    if not out.absolute().parent.is_dir():
        raise OutputFault(f"The folder {out.absolute().parent} for the bundle does not exist.")
