"""Signing for somebody else: the owner's key, for certificates of what was booked and answered, and for nothing more.

Whoever runs a method against a vault in another process states the certificate, because only they have the files that it
hashes. The vault's side states all the rest a second time, from the plan that is booked, its schema, its generator and
the answers that it counted, and signs only if nothing differs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

from limbeck.errors import LimbeckError, WallBreach
from limbeck.release.certificate import NAME, Certificate, certify
from limbeck.release.signature import ENTRY, Signer, canonical
from limbeck.release.statement import Statement
from limbeck.release.verification import check_unsigned
from limbeck.vault.api import Grant, Vault

SHA256 = re.compile(r"[0-9a-f]{64}")
NEWS = timedelta(days=1)  # how far the clocks of both sides may be apart


def sign_booked(vault: Vault, grant: Grant, stated: Mapping[str, Any], signer: Signer) -> Mapping[str, str]:
    """The signature of a certificate of an open grant.

    Guarantee: signs only a certificate that this vault would itself state for this grant, now. The signer's side has the
    last word on everything but the content: its kind, its files and how many records they hold, and who made them when.
    """
    if vault.state(grant.id) != "open":
        raise WallBreach("A certificate is signed while its grant is open.")
    vault.take_up(grant.id, grant.plan, booked=True)  # refuses a plan that is not the booked one
    try:
        certificate = Statement(dict(stated)).certificate()
        check_unsigned(certificate)
    except LimbeckError as error:
        raise WallBreach(f"Not signed: {error.message}") from None
    expected = certify(
        plan=grant.plan,
        schema=vault.describe(),
        drawn=vault.drawn(grant),
        randomness=vault.randomness,
        records=certificate.records,
        files=certificate.files,
        content=certificate.content,
    )
    expected = replace(expected, versions=certificate.versions, created=certificate.created)
    # Byte for byte: what is signed must have no other reading.
    if ENTRY in stated or canonical(stated) != canonical(expected.to_dict()):
        raise WallBreach("Not signed: the certificate does not state what was booked and answered under this grant.")
    check_files(certificate)
    check_created(certificate.created)
    return signer.sign(stated).to_dict()


def check_files(certificate: Certificate) -> None:
    for name, digest in certificate.files.items():
        path = PurePosixPath(name)
        plain = name == path.as_posix() and not path.is_absolute() and ".." not in path.parts and name != NAME
        if not plain or not name.isprintable() or not SHA256.fullmatch(digest):
            raise WallBreach("Not signed: a file of the certificate has no plain name or no hash.")


def check_created(text: str) -> None:
    try:
        created = datetime.fromisoformat(text)
        fits = created.isoformat(timespec="seconds") == text and abs(datetime.now(UTC) - created) < NEWS
    except (ValueError, TypeError, OverflowError):
        fits = False
    if not fits:
        raise WallBreach("Not signed: the certificate is not of now.")
