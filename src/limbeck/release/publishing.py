"""A release brought to a hub: checked, packed as a plain folder, uploaded. What may not be shared is never read for it.

An `Api` is what `huggingface_hub.HfApi` is; nothing here knows an address.
"""

from __future__ import annotations

import re
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from limbeck.errors import BadInput, OutputFault
from limbeck.release.bundle import Bundle, pack

REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
DATASET, MODEL = "dataset", "model"


class Api(Protocol):
    """The calls of the hub's client that are made."""

    def create_repo(self, repo_id: str, *, repo_type: str, private: bool, exist_ok: bool) -> Any: ...

    def upload_folder(self, *, repo_id: str, repo_type: str, folder_path: str, commit_message: str) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What is published: the files of a bundle, in a folder of their own. `url`: where they are; None if nothing was sent."""

    bundle: Bundle
    files: tuple[str, ...]
    kind: str
    repository: str | None
    url: str | None = None


@contextmanager
def prepared(release: Path, repository: str | None) -> Iterator[tuple[Publication, Path]]:
    """The release as a folder that holds exactly what its certificate lists, and the certificate.

    Guarantee: it went through the bundler, so it verified, may be shared, and nothing of it is the owner's edition; what changes
    in `release` afterwards does not reach the folder.
    """
    if repository is not None and not REPOSITORY.fullmatch(repository):
        raise BadInput(f"--to must be WHO/NAME of letters, digits, '.', '_' and '-', got --to {repository}.")
    with tempfile.TemporaryDirectory(prefix="limbeck-publish-") as scratch:
        with tempfile.TemporaryFile() as file:
            bundle = pack(release, file)
            file.seek(0)
            with zipfile.ZipFile(file) as archive:
                archive.extractall(scratch)
        folder = Path(scratch) / bundle.name
        files = tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))
        kind = MODEL if bundle.certificate.is_model else DATASET
        yield Publication(bundle=bundle, files=files, kind=kind, repository=repository), folder


def upload(publication: Publication, folder: Path, api: Api, private: bool) -> str:
    """Send the prepared folder; the address that the hub says it has. Making a repository again changes nothing."""
    assert publication.repository is not None
    stated = publication.bundle.certificate
    try:
        api.create_repo(publication.repository, repo_type=publication.kind, private=private, exist_ok=True)
        sent = api.upload_folder(
            repo_id=publication.repository,
            repo_type=publication.kind,
            folder_path=str(folder),
            commit_message=f"Limbeck release of {stated.dataset}, epsilon {stated['epsilon']}",
        )
    except Exception as error:  # whatever the client, the network or the hub raises: its own words may hold a token
        raise OutputFault(
            f"The upload to {publication.repository} failed ({type(error).__name__}). Nothing of this machine changed. "
            "Look whether you are logged in there and may write to it, then run the same command again."
        ) from None
    return str(sent)
