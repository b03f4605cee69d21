"""A whole certificate for tests that are about one entry of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from limbeck.privacy.accounting import Price
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import Certificate
from limbeck.release.signature import sign
from limbeck.vault.noise import SECURE

QUERY = ClippedSum(label="groups", map="identity", clip=11.2, noise_multiplier=2.4381, rate=(0.1, 0.2), count=5)
WHOLE = Certificate(
    dataset="tiny",
    method="ldpdc",
    settings={"per_class": 5, "sigma": None},
    private=True,
    releasable=True,
    epsilon=0.987654,
    delta=1e-5,
    adjacency="add_remove",
    unit="record",
    queries=(QUERY,),
    drawn={"groups": 5},
    accounting=Price(epsilon=0.987654, delta=1e-5, epsilon_pld=0.987654, epsilon_rdp=1.2),
    randomness=SECURE,
    public_assumptions=Schema(name="tiny", shape=(1, 8, 8), classes=("cat", "dog"), records=600, low=0, high=255),
    versions={"limbeck": "0.1.0"},
    created="2025-01-02T03:04:05+00:00",
    records=10,
    files={"set.npz": "0" * 64},
)


def certificate_with(**changes: Any) -> Certificate:
    return dataclasses.replace(WHOLE, **changes)


def signed(values: Mapping[str, Any], key: Ed25519PrivateKey) -> dict[str, Any]:
    """A JSON object with its signature, whatever it says."""
    return {**values, "signature": sign(values, key).to_dict()}
