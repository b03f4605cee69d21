"""Old certificates still verify, and whoever checks one hears what we know today."""

from __future__ import annotations

from dataclasses import replace

import pytest

from limbeck.privacy.federation import Terms, views
from limbeck.release.certificate import Certificate
from limbeck.release.federated import Federated
from limbeck.release.known_faults import known_faults
from stated import QUERY, certificate_with


def certificate(version: str, kind: str) -> Certificate:
    queries = (replace(QUERY, label="counts", map="one_hot"), replace(QUERY, map=kind))
    return certificate_with(versions={"limbeck": version}, queries=queries)


@pytest.mark.parametrize("kind", ["network_gradient", "top_gradient"])
def test_gradients_before_0_2_are_named(kind: str) -> None:
    (said,) = known_faults(certificate("0.1.0", kind))
    assert "before 0.2.0" in said and "docs/promise.md" in said
    assert not known_faults(certificate("0.2.0", kind)) and not known_faults(certificate("1.0", kind))


def test_nothing_is_said_of_others() -> None:
    assert not known_faults(certificate("0.1.0", "identity"))
    assert not known_faults(certificate("unknown", "network_gradient"))
    assert not known_faults(replace(certificate("", "network_gradient"), versions={}))


def test_masks_before_0_7_are_named_where_a_site_may_collude() -> None:
    def over_sites(version: str, **changes: object) -> Certificate:
        keys = tuple(f"{number:064x}" for number in range(3))
        terms = Terms(name="f", sites=("a", "b", "c"), keys=keys, **changes)  # type: ignore[arg-type]
        federation = Federated(terms=terms, views=views((QUERY,), 1e-5, terms))
        return certificate_with(versions={"limbeck": version}, federation=federation)

    (said,) = known_faults(over_sites("0.6.0", noise="shared", collusion=1))
    assert "before 0.7.0" in said and "docs/federated.md" in said
    assert not known_faults(over_sites("0.7.0", noise="shared", collusion=1))
    assert not known_faults(over_sites("0.6.0", noise="shared")) and not known_faults(over_sites("0.6.0"))
