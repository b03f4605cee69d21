"""The sites' parts of a federation's certificate: stated and signed at a site, gathered at the server, checked by anybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from limbeck.errors import NotAuthentic
from limbeck.privacy.accounting import Price, require_delta
from limbeck.privacy.federation import SHARED, views
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import Certificate
from limbeck.release.federated import PART, STATEMENT, Federated
from limbeck.release.signature import ENTRY, canonical, check_signature
from limbeck.vault.noise import SECURE


class Endorser(Protocol):
    """Whoever reaches the sites of a federation."""

    def federated(self, plan: Plan) -> Federated:
        """The terms and what the plan costs seen from where; no part yet."""
        ...

    def endorsed(self, stated: Certificate) -> Certificate:
        """The certificate with every site's part. Raises where a site refuses."""
        ...


def part_of(
    certificate: Certificate, site: str, grant: str, drawn: Mapping[str, int], generator: str, schema: Schema, core: str
) -> dict[str, Any]:
    """What a site states, in its own words where it knows better than the server."""
    assert certificate.federation is not None
    return {
        "statement": STATEMENT,
        "site": site,
        "terms": certificate.federation.terms.digest(),
        "grant": grant,
        "queries": [query.to_dict() for query in certificate.queries],
        "epsilon": finite_or_word(certificate.epsilon),
        "delta": certificate.delta,
        "adjacency": schema.adjacency,
        "unit": schema.unit,
        "drawn": dict(drawn),
        "generator": generator,
        "public_assumptions": schema.to_dict(),
        "core": core,
    }


def check_views(certificate: Certificate) -> None:
    """Guarantee: returns only if what a federation costs, seen from where, follows from its queries and terms."""
    if certificate.federation is None:
        return
    terms = certificate.federation.terms
    found = views(certificate.queries, certificate.delta, terms)
    stated = certificate.federation.views
    for name in ("server", "public", "all_told"):
        _check_price(name, getattr(stated, name), getattr(found, name), certificate.delta)
    if stated.site is not None:  # versions before 0.6.0 did not state it
        if found.site is None:
            raise NotAuthentic("The certificate states a price for a whole site, and its queries have none.")
        _check_price("site", stated.site, found.site, certificate.delta)
    if stated.server.epsilon != certificate.epsilon:
        raise NotAuthentic("The certificate's epsilon is not that against the server.")
    schema = certificate.public_assumptions
    shares = len(terms.sites) if terms.noise == SHARED else 1
    require_delta(certificate.delta + shares * certificate.sampler_delta, schema.privacy_units, schema.by_person)


def _check_price(name: str, stated: Price, found: Price, delta: float) -> None:
    # Another version of the accountants may differ in the last digits.
    near = stated.epsilon == found.epsilon or found.epsilon * (1 - 1e-4) <= stated.epsilon <= found.epsilon * 1.01
    if not near or stated.delta != delta:
        raise NotAuthentic(
            f"The certificate states epsilon={stated.epsilon} for the view '{name}', its queries cost {found.epsilon}."
        )


def check_parts(certificate: Certificate, core: str) -> None:
    """Guarantee: returns only if every site of the terms has signed a part for this very certificate, and says the same."""
    assert certificate.federation is not None
    terms, parts = certificate.federation.terms, certificate.federation.parts
    if len(parts) != len(terms.sites):
        raise NotAuthentic(f"The certificate has the parts of {len(parts)} sites, its terms name {len(terms.sites)}.")
    for site, key, part in zip(terms.sites, terms.keys, parts, strict=True):
        if set(part) != PART or part["statement"] != STATEMENT:
            raise NotAuthentic(f"The part of site '{site}' does not have the right form.")
        check_signature(part, key)
        stated = {name: value for name, value in part.items() if name != ENTRY}
        schema = Schema.from_dict(dict(part["public_assumptions"]))
        expected = part_of(certificate, site, part["grant"], part["drawn"], part["generator"], schema, core)
        if canonical(stated) != canonical(expected):
            names = sorted(
                name for name in expected if canonical({"": stated[name]}) != canonical({"": expected[name]})
            )
            raise NotAuthentic(f"The part of site '{site}' does not fit the certificate: {', '.join(names)}.")
        if (schema.adjacency, schema.unit) != (certificate.adjacency, certificate.unit):
            raise NotAuthentic(f"Site '{site}' has another unit of privacy than the certificate.")
        if certificate.releasable and part["generator"] != SECURE:
            raise NotAuthentic(f"The noise of site '{site}' is not secret, and the certificate says 'releasable'.")
        _check_drawn(certificate, site, part["drawn"])
    if len({part["grant"] for part in parts}) != 1:
        raise NotAuthentic("The sites' parts are of different runs.")


def _check_drawn(certificate: Certificate, site: str, drawn: Mapping[str, int]) -> None:
    paid = {query.label: query.count for query in certificate.queries}
    for label, count in drawn.items():
        if type(count) is not int or not 0 <= count <= certificate.drawn.get(label, 0) or label not in paid:
            raise NotAuthentic(f"Site '{site}' states other answers of '{label}' than the certificate counts.")
