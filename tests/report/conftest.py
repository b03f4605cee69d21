from __future__ import annotations

import math
from dataclasses import replace

import pytest

from limbeck.privacy.schema import Column, Schema
from limbeck.release.certificate import Certificate
from limbeck.vault.noise import INSECURE
from stated import WHOLE


@pytest.fixture
def gray() -> Schema:
    return Schema(name="tiny", shape=(1, 8, 8), classes=("cat", "dog"), records=600, low=0, high=255)


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
def certificate() -> Certificate:
    return WHOLE


@pytest.fixture
def not_private(certificate: Certificate) -> Certificate:
    return replace(certificate, epsilon=math.inf, private=False, releasable=False)


@pytest.fixture
def insecure(certificate: Certificate) -> Certificate:
    return replace(certificate, randomness=INSECURE, releasable=False)


@pytest.fixture
def unclear(certificate: Certificate) -> Certificate:
    """It says good things of itself and has no epsilon that could be true."""
    return replace(certificate, epsilon=math.nan)
