"""Faults of earlier versions that a certificate of theirs cannot know of. Whoever checks it is told."""

from __future__ import annotations

from limbeck.release.certificate import Certificate

GRADIENTS = frozenset({"network_gradient", "top_gradient"})


def known_faults(certificate: Certificate) -> list[str]:
    """Sentences about a certificate that is whole and was signed, but that we would not sign today."""
    maps = {query.map for query in certificate.queries}
    if _is_before((0, 2), certificate.versions.get("limbeck")) and maps & GRADIENTS:
        return [
            "Made by a version before 0.2.0, in which a record's gradient was rounded by the batch around it: for data made "
            "to exploit that, epsilon is larger than stated. See docs/promise.md."
        ]
    return []


def _is_before(version: tuple[int, ...], stated: object) -> bool:
    parts = str(stated).split(".")[: len(version)]
    return all(part.isdigit() for part in parts) and tuple(int(part) for part in parts) < version
