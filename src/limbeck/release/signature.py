"""Ed25519 signatures of certificates: the owner's key, signing, checking.

A signature is over the canonical bytes of a JSON object, all of it but the entry `signature` itself. The object is taken as it
was read or as it will be written, never as a value that was understood in between.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from limbeck.errors import LedgerFault, NotAuthentic
from limbeck.files import read_or_create

ENTRY = "signature"
ALGORITHM = "ed25519"


@dataclass(frozen=True, kw_only=True)
class Signature:
    """Who signed, and the signature itself; both as hexadecimal text."""

    algorithm: str
    public_key: str
    value: str

    def to_dict(self) -> dict[str, str]:
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Signature:
        """Guarantee: takes the one known algorithm with the two entries that it has, and no other form."""
        if set(values) != {"algorithm", "public_key", "value"} or values["algorithm"] != ALGORITHM:
            raise NotAuthentic("The certificate's signature is of no known kind.")
        if not all(isinstance(text, str) for text in values.values()):
            raise TypeError(ENTRY)
        return Signature(**values)


class Signer(Protocol):
    """Whoever holds the owner's key."""

    def sign(self, stated: Mapping[str, Any]) -> Signature:
        """The signature of a certificate as it will be written, or a refusal."""
        ...


@dataclass(frozen=True)
class KeyFile:
    """The key in a file of this user, who is the owner: it signs what it is given."""

    path: Path

    @staticmethod
    def beside(ledger: Path) -> KeyFile:
        return KeyFile(ledger.with_name("signing-key"))

    def sign(self, stated: Mapping[str, Any]) -> Signature:
        return sign(stated, signing_key(self.path))


def sign(stated: Mapping[str, Any], key: Ed25519PrivateKey) -> Signature:
    """The signature of a JSON object; one that the object has already does not count."""
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return Signature(algorithm=ALGORITHM, public_key=public.hex(), value=key.sign(canonical(stated)).hex())


def check_signature(stated: Mapping[str, Any], expected_key: str | None = None) -> None:
    """Guarantee: returns only if the object is as it was signed, by `expected_key` where that is given."""
    signature = Signature.from_dict(stated[ENTRY])
    if expected_key is not None and signature.public_key != expected_key.lower():
        raise NotAuthentic(f"The certificate was signed by {signature.public_key}, not by {expected_key}.")
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.public_key))
        key.verify(bytes.fromhex(signature.value), canonical(stated))
    except (InvalidSignature, ValueError):
        raise NotAuthentic("The certificate was changed after it was signed: its signature does not fit.") from None


def signing_key(path: Path) -> Ed25519PrivateKey:
    """The owner's key, beside the ledger; made at the first release, readable by the owner alone.

    Guarantee: processes that release together for the first time sign with one and the same key, the one that is kept.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return Ed25519PrivateKey.from_private_bytes(read_or_create(path, _new_key))
    except (OSError, ValueError) as error:
        raise LedgerFault(f"The signing key {path} cannot be used: {error}.") from None


def _new_key() -> bytes:
    return Ed25519PrivateKey.generate().private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())


def canonical(stated: Mapping[str, Any]) -> bytes:
    """The bytes that are signed."""
    body = {key: value for key, value in stated.items() if key != ENTRY}
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
