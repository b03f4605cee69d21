"""The certificate of joined releases: each part's own certificate, whole, and what all of them cost together.

Owners hold records of different people or events, so adding or removing one record changes one part: together the parts cost what
the dearest costs (parallel composition). That the owners' records are different is their word, and the certificate says so; two
releases that one owner made of one data set are refused, because their costs add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from limbeck.errors import BadInput, NotAuthentic

FIELD = "joined"
SAME = ("shape", "classes", "low", "high", "columns", "label", "adjacency", "unit")


@dataclass(frozen=True)
class Joined:
    """The entry `joined` of a certificate: the parts' certificates as they stand in their files."""

    parts: tuple[Mapping[str, Any], ...]

    def to_dict(self) -> list[dict[str, Any]]:
        return [dict(part) for part in self.parts]

    @staticmethod
    def from_list(values: Any) -> Joined:
        if not isinstance(values, list) or len(values) < 2 or not all(isinstance(part, dict) for part in values):
            raise TypeError(FIELD)
        return Joined(tuple(values))


def part_file(number: int) -> str:
    """Where the set of a part lies in the joined release."""
    return f"parts/{number + 1}/set.npz"


def require_one_kind(parts: Sequence[Any]) -> None:
    """parts: certificates. Guarantee: returns only if records mean the same in all of them, and no data set is there twice."""
    first = parts[0].public_assumptions.to_dict()
    owners = set()
    for number, part in enumerate(parts, 1):
        own = part.public_assumptions.to_dict()
        if differ := [name for name in SAME if own.get(name) != first.get(name)]:
            raise BadInput(f"Part {number} has another schema than part 1: {', '.join(differ)} differ.")
        if part.delta != parts[0].delta:
            raise BadInput(
                f"Part {number} has delta={part.delta:g}, part 1 has {parts[0].delta:g}; join sets of one delta."
            )
        for owner in _owners(part):
            if owner in owners:
                raise BadInput(
                    f"Part {number} is of the data set '{owner[1]}' of an owner whose set is there already: what they cost adds "
                    "up. Join sets of different owners."
                )
            owners.add(owner)


def _owners(part: Any) -> list[tuple[str, str]]:
    """(key, data set) of whoever's records are in a part: the sites of a federation, or the one owner."""
    if part.federation is not None:
        sites = zip(part.federation.terms.keys, part.federation.parts, strict=True)
        return [(key, str(site["public_assumptions"]["name"])) for key, site in sites]
    return [("" if part.signature is None else part.signature.public_key, part.dataset)]


def check_joined(certificate: Any, parts: Sequence[Any]) -> None:
    """Guarantee: returns only if the union states the price of its dearest part, and holds the parts' own sets."""
    require_one_kind(parts)
    dearest = max(parts, key=lambda part: part.epsilon)
    if (certificate.epsilon, certificate.delta, certificate.unit) != (dearest.epsilon, dearest.delta, dearest.unit):
        raise NotAuthentic("The certificate does not state what the dearest of its parts costs.")
    if certificate.queries != dearest.queries:
        raise NotAuthentic("The certificate does not list the queries of the dearest of its parts.")
    for number, part in enumerate(parts):
        if part.is_model or not part.releasable or part.joined is not None or part.distilled is not None:
            raise NotAuthentic(f"Part {number + 1} is no set that may be shared, or is joined or distilled itself.")
        if certificate.files.get(part_file(number)) != part.files["set.npz"]:
            raise NotAuthentic(f"The set of part {number + 1} is not the one on its own certificate.")
    if certificate.records != sum(part.records for part in parts):
        raise NotAuthentic("The certificate states another number of records than its parts have together.")
