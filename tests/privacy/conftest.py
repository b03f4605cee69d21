"""A tiny public schema, a source of records for it, and vaults over both."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tiny import SIZES, MemorySource

from limbeck.data.records import Records
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.noise import Randomness

MakeVault = Callable[..., LocalVault]


@pytest.fixture
def schema() -> Schema:
    return Schema(
        name="tiny", shape=(1, 8, 8), classes=("a", "b", "c"), records=sum(SIZES), class_sizes=SIZES, high=16.0, low=0.0
    )


@pytest.fixture
def unsized(schema: Schema) -> Schema:
    """The same set, whose class sizes are not public."""
    return dataclasses.replace(schema, class_sizes=None)


@pytest.fixture
def records() -> Records:
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(len(SIZES)), SIZES).astype(np.int64)
    return Records(random.integers(0, 17, (len(y), 1, 8, 8)).astype(np.float32), y)


@pytest.fixture
def source(schema: Schema, records: Records) -> MemorySource:
    return MemorySource(schema, records)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.sqlite") as opened:
        yield opened


@pytest.fixture
def vault(source: MemorySource, ledger: Ledger) -> LocalVault:
    return LocalVault(source, ledger)


@pytest.fixture
def make_vault(source: MemorySource, ledger: Ledger) -> MakeVault:
    def make(records: Records | None = None, seed: int | None = None) -> LocalVault:
        chosen = source if records is None else MemorySource(source.schema, records)
        return LocalVault(chosen, ledger, Randomness(seed))

    return make


@pytest.fixture
def query() -> ClippedSum:
    return ClippedSum(label="groups", map="identity", clip=2.0, noise_multiplier=4.0, rate=(0.3, 0.2, 0.1), count=3)
