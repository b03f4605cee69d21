"""What a page says of the owners behind a release, where there are several: a federation, or joined sets."""

from __future__ import annotations

from limbeck.privacy.federation import SHARED
from limbeck.privacy.numbers import finite_or_word
from limbeck.release.certificate import Certificate


def owner_sentences(certificate: Certificate) -> list[str]:
    """None where one owner stands behind it."""
    return [*_federation(certificate), *_joined(certificate), *_distilled(certificate)]


def _federation(certificate: Certificate) -> list[str]:
    if certificate.federation is None:
        return []
    terms, found = certificate.federation.terms, certificate.federation.views
    who = f"The records of {len(terms.sites)} owners ({', '.join(terms.sites)}) were asked together; each kept its own."
    server, public, alone = (finite_or_word(each.epsilon) for each in (found.server, found.public, found.all_told))
    if terms.noise == SHARED:
        how = (
            f"Noise was added once, in shares, to sums that left each owner under masks. Epsilon is {server} against the server, "
            f"also if {terms.collusion} of the owners tell it what they know; {public} against whoever has this release alone; "
            f"and {alone} against the server together with all other owners."
        )
    else:
        how = (
            f"Each owner added all of the noise. Epsilon is {server} against the server and all other owners, and {public} "
            "against whoever has this release alone."
        )
    if found.site is None:
        return [who, how]
    whole = finite_or_word(found.site.epsilon)
    return [
        who,
        how,
        f"If not a record but all records of one owner are the unit, epsilon is {whole} against everybody.",
    ]


def _joined(certificate: Certificate) -> list[str]:
    if certificate.joined is None:
        return []
    parts = [f"{part['dataset']} (epsilon {part['epsilon']})" for part in certificate.joined.parts]
    return [
        f"It was joined from the sets of {len(parts)} owners: {', '.join(parts)}. That they hold different records is the "
        "owners' word; epsilon is that of the dearest part."
    ]


def _distilled(certificate: Certificate) -> list[str]:
    found = certificate.distilled
    if found is None:
        return []
    return [
        f"It was distilled from the answers that another release keeps; the certificate of that one ({found.source['created']}) "
        f"is part of this one's (SHA-256 {found.sha256[:16]}...). No record was asked again, so epsilon is the price of both "
        "together. Whoever distilled it signed it; the owner's signature is on the certificate that it holds."
    ]
