"""publish: bring a release to the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limbeck.cli.checks import ReleaseFolder
from limbeck.cli.options import Json
from limbeck.cli.output import emit
from limbeck.errors import BadInput
from limbeck.privacy.numbers import finite_or_word

if TYPE_CHECKING:
    from limbeck.release.publishing import Api


def register(app: typer.Typer) -> None:
    app.command()(publish)


def publish(
    release: ReleaseFolder,
    to: Annotated[
        str | None, typer.Option("--to", help="The repository there, as WHO/NAME. Left out: only look.")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Make the repository private, if it is made now.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and list what would be sent; send nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Publish a release on the Hugging Face hub: exactly what its certificate lists, after it was verified.

    Owner's copies, sets that are not private and sets whose noise is not secret are refused. Uploading needs
    limbeck[huggingface], and that you are logged in there. What is published cannot be called back.
    """
    from limbeck.release.publishing import prepared, upload

    sends = to is not None and not dry_run
    api = _api() if sends else None  # what is missing is said before the release is read
    with prepared(Path(release), to) as (found, folder):
        url = None if api is None else upload(found, folder, api, private)
    stated = found.bundle.certificate
    values = {
        "release": str(release),
        "repository": to,
        "kind": found.kind,
        "files": list(found.files),
        "bytes": found.bundle.size,
        "epsilon": finite_or_word(stated.epsilon),
        "delta": stated.delta,
        "published": url is not None,
        "url": url,
    }
    lines = [
        f"verified  epsilon {values['epsilon']}, delta {stated.delta:g}: may be shared",
        f"files     {len(found.files)}, {found.bundle.size} bytes, as a {found.kind}",
        *(f"          {name}" for name in found.files),
        f"published {url}"
        if url is not None
        else "published nothing" + ("" if to else "; name a repository with --to WHO/NAME"),
    ]
    emit(as_json, values, lines)


def _api() -> Api:
    try:
        from huggingface_hub import HfApi
    except ImportError:
        raise BadInput(
            "huggingface_hub is not installed. Install it with: pip install 'limbeck[huggingface]'. Without it, 'limbeck publish "
            "--dry-run' checks the release, and 'limbeck bundle' packs it to be uploaded by hand.",
            "pip install 'limbeck[huggingface]'",
        ) from None
    found: Api = HfApi()
    return found
