from __future__ import annotations

from typing import Any

import pytest

from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Column, Schema


@pytest.fixture
def gray() -> Schema:
    return Schema(name="tiny", shape=(1, 8, 8), classes=("cat", "dog"), records=600)


@pytest.fixture
def people() -> Schema:
    columns = (
        Column(name="age", low=0, high=100, integer=True),
        Column(name="colour", categories=("blue", "green", "red")),
        Column(name="size", categories=("S", "M", "L"), ordinal=True),
        Column(name="height $", low=1.0, high=2.0),
    )
    return Schema(name="people", shape=(6,), classes=("no", "yes"), records=600, columns=columns, label="bought: it")


@pytest.fixture
def certificate() -> dict[str, Any]:
    query = ClippedSum(label="groups", map="identity", clip=11.2, noise_multiplier=2.4381, rate=(0.1, 0.2), count=5)
    return {
        "format": 1, "dataset": "tiny", "method": "ldpdc", "settings": {"per_class": 5, "sigma": None},
        "epsilon": 0.987654, "delta": 1e-5, "adjacency": "add_remove", "unit": "record",
        "queries": [query.to_dict()], "drawn": {"groups": 5},
        "accounting": {"epsilon": 0.987654, "delta": 1e-5, "epsilon_pld": 0.987654, "epsilon_rdp": 1.2,
                       "epsilon_exact": None, "adjacency": "add_remove"},
        "generator": "aes-256-ctr, operating-system seed", "releasable": True, "private": True,
        "versions": {"limbeck": "0.1.0"}, "created": "2025-01-02T03:04:05+00:00", "records": 10,
    }  # fmt: skip


@pytest.fixture
def not_private(certificate: dict[str, Any]) -> dict[str, Any]:
    return {**certificate, "epsilon": "infinity", "private": False, "releasable": False}


@pytest.fixture
def insecure(certificate: dict[str, Any]) -> dict[str, Any]:
    return {**certificate, "generator": "insecure seed: for tests, not releasable", "releasable": False}
