"""Old certificates still verify, and whoever checks one hears what we know today."""

from __future__ import annotations

import pytest

from limbeck.release.known_faults import known_faults


def certificate(version: str, kind: str) -> dict[str, object]:
    return {"versions": {"limbeck": version}, "queries": [{"map": "one_hot"}, {"map": kind}]}


@pytest.mark.parametrize("kind", ["network_gradient", "top_gradient"])
def test_gradients_before_0_2_are_named(kind: str) -> None:
    (said,) = known_faults(certificate("0.1.0", kind))
    assert "before 0.2.0" in said and "docs/promise.md" in said
    assert not known_faults(certificate("0.2.0", kind)) and not known_faults(certificate("1.0", kind))


def test_nothing_is_said_of_others() -> None:
    assert not known_faults(certificate("0.1.0", "identity"))
    assert not known_faults(certificate("unknown", "network_gradient"))
    assert not known_faults({"queries": [{"map": "network_gradient"}]})
