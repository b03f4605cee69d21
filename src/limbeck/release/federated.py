"""The certificate of a federation: the terms, what it costs seen from where, and each site's own signed part.

A part is stated by the site itself, from what it booked and answered, and signed with its owner's key. It names the certificate
by the hash of all of it but the parts and the signature (the core), so no part can be put under another certificate. The
whole is signed by whoever ran the method. `limbeck verify` checks all signatures, the core, and every price.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from limbeck.privacy.federation import Terms, Views
from limbeck.release.signature import ENTRY, canonical

STATEMENT = "limbeck site part 1"
FIELD, PARTS = "federation", "parts"
PART = {
    "statement", "site", "terms", "grant", "queries", "epsilon", "delta", "adjacency", "unit", "drawn", "generator",
    "public_assumptions", "core", ENTRY,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Federated:
    """The entry `federation` of a certificate. parts: in the order of the terms' sites; none in the core."""

    terms: Terms
    views: Views
    parts: tuple[Mapping[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "terms": self.terms.to_dict(),
            "views": self.views.to_dict(),
            PARTS: [dict(part) for part in self.parts],
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Federated:
        if set(values) != {"terms", "views", PARTS} or not isinstance(values[PARTS], list):
            raise TypeError(FIELD)
        return Federated(
            terms=Terms.from_dict(values["terms"]),
            views=Views.from_dict(values["views"]),
            parts=tuple(dict(part) for part in values[PARTS]),
        )


def core_digest(stated: Mapping[str, Any]) -> str:
    """The hash of a certificate without its parts and its signature."""
    core = copy.deepcopy(dict(stated))
    core[FIELD] = {**core[FIELD], PARTS: []}
    return hashlib.sha256(canonical(core)).hexdigest()
