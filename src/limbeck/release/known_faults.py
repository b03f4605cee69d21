"""Faults of earlier versions that a certificate of theirs cannot know of. Whoever checks it is told."""

from __future__ import annotations

from limbeck.privacy.federation import SHARED
from limbeck.release.certificate import Certificate

GRADIENTS = frozenset({"network_gradient", "top_gradient"})


def known_faults(certificate: Certificate) -> list[str]:
    """Sentences about a certificate that is whole and was signed, but that we would not sign today."""
    found, maps = list[str](), {query.map for query in certificate.queries}
    if _is_before((0, 2), certificate.versions.get("limbeck")) and maps & GRADIENTS:
        found.append(
            "Made by a version before 0.2.0, in which a record's gradient was rounded by the batch around it: for data made "
            "to exploit that, epsilon is larger than stated. See docs/promise.md."
        )
    if _is_before((0, 7), certificate.versions.get("limbeck")) and _counts_on_masks(certificate):
        found.append(
            "Made by a version before 0.7.0, in which a site that colluded with the server could take another site's masks off, "
            "by offering a third one's key as its own. Against that holds what is stated for all other sites together, and not "
            "what is stated for the server. See docs/federated.md."
        )
    return found


def _counts_on_masks(certificate: Certificate) -> bool:
    """Whether a site that colludes is promised to be harmless."""
    federation = certificate.federation
    return federation is not None and federation.terms.noise == SHARED and federation.terms.collusion > 0


def _is_before(version: tuple[int, ...], stated: object) -> bool:
    parts = str(stated).split(".")[: len(version)]
    return all(part.isdigit() for part in parts) and tuple(int(part) for part in parts) < version
