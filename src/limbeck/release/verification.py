"""Is a release what its certificate says?

`verify` checks the Ed25519 signature over everything else in the certificate, recomputes epsilon from the queries that the
certificate itself lists, compares every file with its hash and refuses files that are not listed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path

from limbeck.errors import NotAuthentic, NotReleasable
from limbeck.privacy.accounting import price, require_delta
from limbeck.privacy.numbers import apart
from limbeck.privacy.queries import sampler_delta_of
from limbeck.release.certificate import CORE_FILES, GENERATOR_FILES, NAME, SET, Certificate, well_formed
from limbeck.release.distilled import ANSWERS, check_distilled
from limbeck.release.editions import is_owner_copy, require_no_owner_copy
from limbeck.release.joined import check_joined
from limbeck.release.parts import check_parts, check_views
from limbeck.release.statement import Statement
from limbeck.release.violations import require_kept
from limbeck.vault.noise import SECURE

MOST_NAMES = 5  # files that a message lists


def verify(release: Path, expected_key: str | None = None) -> Certificate:
    """Check a release against its own certificate and return the certificate.

    Guarantee: returns only if epsilon follows from the listed queries, every listed file is unchanged, nothing else is in
    the folder, every row keeps to the declared constraints, and the certificate is as it was signed (by `expected_key`, where
    given).
    """
    return verified(Statement.read(release), release, expected_key)


def verified(statement: Statement, release: Path, expected_key: str | None = None) -> Certificate:
    """`verify` for whoever has read the statement already."""
    certificate = check_statement(statement, expected_key)
    # A link to a folder counts as a file: what is behind it is part of what a reader sees, and nothing hashes it.
    entries = [path for path in release.rglob("*") if path.is_symlink() or not path.is_dir()]
    check_files({path.relative_to(release).as_posix(): path for path in entries}, certificate.files)
    require_kept(release, certificate)
    return certificate


def check_statement(statement: Statement, expected_key: str | None = None) -> Certificate:
    """All of a certificate that can be checked without its files."""
    statement.require_signed(expected_key)
    certificate = statement.certificate()
    check_unsigned(certificate, statement.release)
    if certificate.federation is not None:
        with well_formed(statement.release):
            check_parts(certificate, statement.core())
    if certificate.joined is not None:
        with well_formed(statement.release):
            parts = [check_statement(Statement(dict(part), statement.release)) for part in certificate.joined.parts]
            check_joined(certificate, parts)
    if certificate.distilled is not None:
        with well_formed(statement.release):
            check_distilled(
                certificate, check_statement(Statement(dict(certificate.distilled.source), statement.release))
            )
    return certificate


def check_unsigned(certificate: Certificate, release: Path | None = None) -> None:
    """What a certificate states, beside its files and its signature: does it agree with itself?"""
    with well_formed(release):
        _check_words(certificate)
        _check_content(certificate)
        _check_epsilon(certificate)
        check_views(certificate)


def require_releasable(certificate: Certificate) -> None:
    """Say no to sharing what is intact but promises nothing."""
    if not certificate.private:
        raise NotReleasable("The release is intact but NOT PRIVATE (epsilon: infinity). Never share it.")
    if not certificate.releasable:
        raise NotReleasable(
            f"The release is intact but its noise is not secret ({certificate.randomness}). Never share it."
        )


def _check_words(certificate: Certificate) -> None:
    """Whatever is stated twice must agree (rule 11)."""
    accounting, schema = certificate.accounting, certificate.public_assumptions
    if certificate.sampler_delta != sampler_delta_of(certificate.queries):
        raise NotAuthentic(
            f"The certificate states sampler_delta={certificate.sampler_delta}, its queries make "
            f"{sampler_delta_of(certificate.queries)}."
        )
    require_delta(certificate.delta + certificate.sampler_delta, schema.privacy_units, schema.by_person)
    if any(getattr(accounting, name) != getattr(certificate, name) for name in ("epsilon", "delta", "adjacency")):
        raise NotAuthentic("The certificate's accounting does not fit its epsilon, delta and adjacency.")
    if (certificate.adjacency, certificate.unit) != (schema.adjacency, schema.unit):
        raise NotAuthentic("The certificate's adjacency and unit do not fit its public assumptions.")
    if certificate.releasable != (certificate.private and certificate.randomness == SECURE):
        raise NotAuthentic("The certificate's word 'releasable' does not fit its generator and epsilon.")


def _check_content(certificate: Certificate) -> None:
    """A set holds records and no weights, a model weights and no records; a reader must not take one for the other."""
    content = certificate.content
    present = [kind for kind, name in CORE_FILES.items() if name in certificate.files]
    if present != [content] or (certificate.records > 0) != (content == SET):
        raise NotAuthentic(f"The certificate says that the release is a {content}; its files or records do not fit.")
    if ANSWERS in certificate.files and (content != SET or certificate.distilled is not None):
        raise NotAuthentic(f"{ANSWERS} belongs to a set that asked its own questions.")
    generator = [name in certificate.files for name in GENERATOR_FILES]
    if any(generator) and (content != SET or not all(generator)):
        raise NotAuthentic(
            f"A generator is {' and '.join(GENERATOR_FILES)} beside a set; the release has not all of it."
        )


def _check_epsilon(certificate: Certificate) -> None:
    cost, stated = price(certificate.queries, certificate.delta), certificate.epsilon
    # Another version of the accountants may differ in the last digits.
    if cost.epsilon != stated and not cost.epsilon * (1 - 1e-4) <= stated <= cost.epsilon * 1.01:
        said, costs = apart(stated, cost.epsilon)
        raise NotAuthentic(f"The certificate states epsilon={said}, its queries cost {costs}.")
    if certificate.private != math.isfinite(stated):
        raise NotAuthentic("The certificate's word 'private' does not fit its epsilon.")
    paid = {query.label: query.count for query in certificate.queries}
    for label, drawn in certificate.drawn.items():
        if not drawn <= paid.get(label, 0):
            raise NotAuthentic(
                f"More answers of '{label}' were drawn than the {paid.get(label, 0)} that were paid for."
            )


def file_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


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
