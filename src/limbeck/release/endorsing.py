"""A site's word on a federation's certificate: what it booked and answered itself, signed with its owner's key.

As in `limbeck.release.booked`, the site takes nothing on trust that it can know: plan, price, unit, answers and generator are
its own. What was made of the answers, its files and who made them when are the server's word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from limbeck.errors import LimbeckError, WallBreach
from limbeck.privacy.accounting import price
from limbeck.privacy.federation import Terms
from limbeck.release.booked import check_created, check_files
from limbeck.release.federated import core_digest
from limbeck.release.parts import part_of
from limbeck.release.signature import ENTRY, Signer
from limbeck.release.statement import Statement
from limbeck.release.verification import check_unsigned
from limbeck.vault.api import Grant, Vault


def endorse_booked(
    vault: Vault, grant: Grant, stated: Mapping[str, Any], terms: Terms, site: str, signer: Signer
) -> Mapping[str, Any]:
    """This site's part of the certificate of an open grant.

    Guarantee: signs only for a certificate with the plan that is booked here, at the price that it costs here, under the terms
    that this site holds; and states its own answers, unit and generator.
    """
    if vault.state(grant.id) != "open":
        raise WallBreach("A certificate is endorsed while its grant is open.")
    vault.take_up(grant.id, grant.plan, booked=True)  # refuses a plan that is not the booked one
    try:
        certificate = Statement(dict(stated)).certificate()
        check_unsigned(certificate)
    except LimbeckError as error:
        raise WallBreach(f"Not endorsed: {error.message}") from None
    federation, plan, schema = certificate.federation, grant.plan, vault.describe()
    if ENTRY in stated or federation is None or federation.parts or federation.terms != terms:
        raise WallBreach(
            "Not endorsed: the certificate is not a federation's, of these terms, without parts and signature."
        )
    said = (certificate.method, dict(certificate.settings), certificate.queries, certificate.delta, certificate.unit)
    if said != (plan.method, plan.settings, plan.queries, plan.price.delta, schema.unit):
        raise WallBreach("Not endorsed: the certificate does not state the plan that was booked here.")
    if certificate.epsilon != price(plan.queries, plan.price.delta).epsilon:
        raise WallBreach("Not endorsed: the certificate does not state what the plan costs.")
    drawn = vault.drawn(grant)
    if any(count > certificate.drawn.get(label, 0) for label, count in drawn.items()):
        raise WallBreach("Not endorsed: the certificate counts fewer answers than this site has given.")
    if certificate.releasable and not vault.randomness.releasable:
        raise WallBreach("Not endorsed: the noise of this site is not secret.")
    check_files(certificate)
    check_created(certificate.created)
    part = part_of(certificate, site, grant.id, drawn, vault.randomness.mode, schema, core_digest(stated))
    return {**part, ENTRY: signer.sign(part).to_dict()}
