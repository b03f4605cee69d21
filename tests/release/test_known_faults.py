"""Old certificates still verify, and whoever checks one hears what we know today."""

from __future__ import annotations

from dataclasses import replace

import pytest

from limbeck.release.certificate import Certificate
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
