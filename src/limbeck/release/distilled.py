"""The certificate of a set that was made of another release's answers: it holds that release's certificate, whole.

Whatever is made of answers that were paid for costs nothing more (post-processing), so the new certificate states the price of
the old one, and adds nothing. Anybody can make such a set; who signed the old certificate is what a reader should look at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from limbeck.errors import NotAuthentic
from limbeck.release.signature import canonical

FIELD = "distilled"
ANSWERS = "answers.safetensors"  # what a set may have beside it: the noised answers that it was made of
ENTRIES = {"source", "sha256", "settings"}
# What both must state alike: all that says what was asked of the records, and what that cost.
SAME = (
    "dataset", "method", "settings", "private", "releasable", "epsilon", "delta", "adjacency", "unit", "queries", "drawn",
    "randomness", "public_assumptions", "sampler_delta", "content",
)  # fmt: skip


@dataclass(frozen=True)
class Distilled:
    """The entry `distilled`. source: the other certificate as it stands in its file; settings: what was made of it, and how."""

    source: Mapping[str, Any]
    settings: Mapping[str, Any]

    @property
    def sha256(self) -> str:
        """Of the other certificate: of the bytes that its signature is over."""
        return hashlib.sha256(canonical(self.source)).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        return {"source": dict(self.source), "sha256": self.sha256, "settings": dict(self.settings)}

    @staticmethod
    def from_dict(values: Any) -> Distilled:
        if not isinstance(values, dict) or set(values) != ENTRIES:
            raise TypeError(FIELD)
        if not isinstance(values["source"], dict) or not isinstance(values["settings"], dict):
            raise TypeError(FIELD)
        made = Distilled(values["source"], values["settings"])
        if values["sha256"] != made.sha256:
            raise NotAuthentic("The certificate does not name the certificate that it cites by its hash.")
        return made


def check_distilled(certificate: Any, source: Any) -> None:
    """certificate, source: certificates, the source's own checked already.

    Guarantee: returns only if both state the same questions and the same price, and the source kept its answers.
    """
    if source.distilled is not None or source.joined is not None or ANSWERS not in source.files:
        raise NotAuthentic("The certificate cites a release that keeps no answers.")
    differ = [name for name in SAME if getattr(certificate, name) != getattr(source, name)]
    if differ:
        raise NotAuthentic(f"The certificate differs from the one that it cites: {', '.join(differ)}.")
    if certificate.joined is not None or certificate.federation is not None:
        raise NotAuthentic("A set that was made of a release's answers has no owners of its own.")
