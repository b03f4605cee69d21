"""The certificate of a release: what was spent, stated so that anybody can compute it again.

It is JSON. `verify` recomputes epsilon from the queries that the certificate itself lists, compares every file with its hash,
refuses files that are not listed, and checks an Ed25519 signature over everything else in the certificate.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from limbeck.errors import BadInput, LedgerFault, NotAuthentic, NotReleasable
from limbeck.files import read_or_create
from limbeck.privacy.accounting import price, require_delta
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import apart, finite_or_word, number_from, query_from_dict
from limbeck.privacy.schema import Schema
from limbeck.release.editions import is_owner_copy, require_no_owner_copy
from limbeck.vault.noise import SECURE, Randomness

FORMAT = 1
NAME = "certificate.json"
MOST_NAMES = 5  # files that a message lists
# All that a certificate may state; nothing that was measured on records is among it.
FIELDS = {
    "format", "dataset", "method", "settings", "private", "releasable", "epsilon", "delta", "adjacency", "unit", "queries",
    "drawn", "accounting", "generator", "public_assumptions", "versions", "created", "records", "files", "signature",
    "content",
}  # fmt: skip
# What is released. A certificate without the entry is one of a synthetic set, as all were before models were released.
SET, MODEL = "set", "model"
# The file that only a release of this content has.
CORE_FILES = {SET: "set.npz", MODEL: "model.safetensors"}
# What a set may have beside it: the generator that made it, weights and description.
GENERATOR_FILES = ("generator.safetensors", "generator.json")
PACKAGES = ("limbeck", "torch", "numpy", "scipy", "dp-accounting", "cryptography")


def certify(
    *,
    plan: Plan,
    schema: Schema,
    drawn: Mapping[str, int],
    randomness: Randomness,
    records: int,
    files: Mapping[str, str],
    content: str = SET,
) -> dict[str, Any]:
    """State what was spent. All of it is public.

    Guarantee: epsilon is the price of the plan's queries, whole, whether all of them were asked or not.
    """
    cost = price(plan.queries, plan.price.delta)
    return {
        "format": FORMAT,
        "dataset": plan.dataset,
        "method": plan.method,
        "settings": plan.settings,
        "private": plan.is_private,
        "releasable": plan.is_private and randomness.releasable,
        "epsilon": finite_or_word(cost.epsilon),
        "delta": cost.delta,
        "adjacency": schema.adjacency,
        "unit": schema.unit,
        "queries": [query.to_dict() for query in plan.queries],
        "drawn": dict(drawn),
        "accounting": cost.to_dict(),
        "generator": randomness.mode,
        "public_assumptions": schema.to_dict(),
        "versions": {name: _version(name) for name in PACKAGES} | {"python": platform.python_version()},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "records": records,
        "files": dict(files),
        **({} if content == SET else {"content": content}),
    }


def sign(certificate: dict[str, Any], key: Ed25519PrivateKey) -> dict[str, Any]:
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return {
        **certificate,
        "signature": {
            "algorithm": "ed25519",
            "public_key": public.hex(),
            "value": key.sign(_canonical(certificate)).hex(),
        },
    }


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


def file_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read(release: Path) -> dict[str, Any]:
    """Read a release's certificate; anything but a well-formed one is an error."""
    path = release / NAME
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise NotAuthentic(f"There is no release in {release}: it has no {NAME}.") from None
    except OSError:
        raise NotAuthentic(f"{path} cannot be read as JSON.") from None
    return parse(content, path)


def parse(content: bytes, path: Path) -> dict[str, Any]:
    """A certificate from its bytes; `path` is what messages call it."""
    try:
        certificate = json.loads(content.decode("utf-8"), object_pairs_hook=_without_twins)
    except (ValueError, RecursionError):
        raise NotAuthentic(f"{path} cannot be read as JSON.") from None
    if not isinstance(certificate, dict) or certificate.get("format") != FORMAT:
        raise NotAuthentic(f"{path} is not a certificate of format {FORMAT}.")
    return certificate


def require_signed(certificate: dict[str, Any]) -> None:
    """Only the signature: what a list of many releases has the time for. `verify` checks all of a release."""
    try:
        _check_signature(certificate, None)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise NotAuthentic(f"The certificate does not have the right form ({error}).") from None


def verify(release: Path, expected_key: str | None = None) -> dict[str, Any]:
    """Check a release against its own certificate and return the certificate.

    Guarantee: returns only if epsilon follows from the listed queries, every listed file is unchanged, nothing else is in
    the folder, and the certificate is as it was signed (by `expected_key`, where given).
    """
    certificate = read(release)
    check_statement(certificate, release, expected_key)
    # A link to a folder counts as a file: what is behind it is part of what a reader sees, and nothing hashes it.
    entries = [path for path in release.rglob("*") if path.is_symlink() or not path.is_dir()]
    check_files({path.relative_to(release).as_posix(): path for path in entries}, certificate["files"])
    return certificate


def check_statement(certificate: dict[str, Any], release: Path, expected_key: str | None = None) -> None:
    """All of a certificate that can be checked without its files."""
    try:
        _check_signature(certificate, expected_key)
        _check_words(certificate)
        _check_content(certificate)
        _check_epsilon(certificate)
        if not all(isinstance(text, str) for pair in certificate["files"].items() for text in pair):
            raise TypeError("files")
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise NotAuthentic(f"The certificate of {release} does not have the right form ({error}).") from None
    except BadInput as error:
        raise NotAuthentic(f"The certificate of {release} cannot be checked: {error.message}") from None


def require_releasable(certificate: Mapping[str, Any]) -> None:
    """Say no to sharing what is intact but promises nothing."""
    if not certificate["private"]:
        raise NotReleasable("The release is intact but NOT PRIVATE (epsilon: infinity). Never share it.")
    if not certificate["releasable"]:
        raise NotReleasable(
            f"The release is intact but its noise is not secret ({certificate['generator']}). Never share it."
        )


def _canonical(certificate: Mapping[str, Any]) -> bytes:
    body = {key: value for key, value in certificate.items() if key != "signature"}
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A name that stands twice would show one value to a reader and another one to the signature."""
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a name stands twice")
    return values


def _check_signature(certificate: dict[str, Any], expected_key: str | None) -> None:
    signature = certificate["signature"]
    if set(signature) != {"algorithm", "public_key", "value"} or signature["algorithm"] != "ed25519":
        raise NotAuthentic("The certificate's signature is of no known kind.")
    if expected_key is not None and signature["public_key"] != expected_key.lower():
        raise NotAuthentic(f"The certificate was signed by {signature['public_key']}, not by {expected_key}.")
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature["public_key"]))
        key.verify(bytes.fromhex(signature["value"]), _canonical(certificate))
    except (InvalidSignature, ValueError):
        raise NotAuthentic("The certificate was changed after it was signed: its signature does not fit.") from None


def _check_words(certificate: dict[str, Any]) -> None:
    """Whatever is stated twice must agree, and what is not known is refused: unknown never means harmless (rule 11)."""
    unknown = sorted(set(certificate) - FIELDS)
    if unknown:
        raise NotAuthentic(f"The certificate has entries that this version does not know: {', '.join(unknown)}.")
    accounting, schema = certificate["accounting"], Schema.from_dict(certificate["public_assumptions"])
    require_delta(certificate["delta"], schema.records)
    if any(accounting[name] != certificate[name] for name in ("epsilon", "delta", "adjacency")):
        raise NotAuthentic("The certificate's accounting does not fit its epsilon, delta and adjacency.")
    if (certificate["adjacency"], certificate["unit"]) != (schema.adjacency, schema.unit):
        raise NotAuthentic("The certificate's adjacency and unit do not fit its public assumptions.")
    if certificate["releasable"] != (certificate["private"] and certificate["generator"] == SECURE):
        raise NotAuthentic("The certificate's word 'releasable' does not fit its generator and epsilon.")


def content_of(certificate: Mapping[str, Any]) -> str:
    """ "set" or "model"."""
    return str(certificate.get("content", SET))


def _check_content(certificate: dict[str, Any]) -> None:
    """A set holds records and no weights, a model weights and no records; a reader must not take one for the other."""
    content = content_of(certificate)
    if content not in CORE_FILES:
        raise NotAuthentic(f"The certificate is for a release of '{content}', which this version does not know.")
    present = [kind for kind, name in CORE_FILES.items() if name in certificate["files"]]
    if present != [content] or (certificate["records"] > 0) != (content == SET):
        raise NotAuthentic(f"The certificate says that the release is a {content}; its files or records do not fit.")
    generator = [name in certificate["files"] for name in GENERATOR_FILES]
    if any(generator) and (content != SET or not all(generator)):
        raise NotAuthentic(
            f"A generator is {' and '.join(GENERATOR_FILES)} beside a set; the release has not all of it."
        )


def _check_epsilon(certificate: dict[str, Any]) -> None:
    queries = [query_from_dict(values) for values in certificate["queries"]]
    cost = price(queries, certificate["delta"])
    stated = number_from(certificate["epsilon"])
    # Another version of the accountants may differ in the last digits.
    if cost.epsilon != stated and not cost.epsilon * (1 - 1e-4) <= stated <= cost.epsilon * 1.01:
        said, costs = apart(stated, cost.epsilon)
        raise NotAuthentic(f"The certificate states epsilon={said}, its queries cost {costs}.")
    if certificate["private"] != math.isfinite(stated):
        raise NotAuthentic("The certificate's word 'private' does not fit its epsilon.")
    paid = {query.label: query.count for query in queries}
    for label, drawn in certificate["drawn"].items():
        if not drawn <= paid.get(label, 0):
            raise NotAuthentic(
                f"More answers of '{label}' were drawn than the {paid.get(label, 0)} that were paid for."
            )


def check_files(present: Mapping[str, Path], files: Mapping[str, str]) -> None:
    """Guarantee: returns only if the files of a release, by their names in it, are those that its certificate lists."""
    _refuse_foreign(present, sorted(set(present) - set(files) - {NAME}))
    for name, stated in files.items():
        if name not in present or name == NAME:
            raise NotAuthentic(f"{name} is on the certificate but missing from the release.")
        if not present[name].is_file():
            raise NotAuthentic(f"{name} is not a plain file.")  # reading a pipe would wait for ever
        if file_hash(present[name]) != stated:
            raise NotAuthentic(f"{name} was changed: its hash is not the one on the certificate.")
    require_no_owner_copy(present[name] for name in files)


def _refuse_foreign(present: Mapping[str, Path], names: list[str]) -> None:
    """Name what does not belong to the release, and say where it is the owner's own copy."""
    if not names:
        return
    shown = [f"{name} (the owner's copy)" if _is_owners(present[name]) else name for name in names[:MOST_NAMES]]
    if len(names) > MOST_NAMES:
        shown.append(f"{len(names) - MOST_NAMES} more")
    raise NotAuthentic(
        f"{' and '.join([', '.join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)} "
        f"{'are' if len(names) > 1 else 'is'} in the release but not on its certificate."
    )


def _is_owners(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and is_owner_copy(path.read_bytes())


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


__all__ = [
    "MODEL",
    "NAME",
    "SET",
    "certify",
    "check_files",
    "check_statement",
    "content_of",
    "file_hash",
    "parse",
    "read",
    "require_releasable",
    "require_signed",
    "sign",
    "signing_key",
    "verify",
]
