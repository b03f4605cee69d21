"""The contract of every vault, on federations of three sites: noise per site, and noise once with one site that may tell."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from sites import joined, ledgers_in, own_schema, terms_of
from tests.vault.contract import DELTA, SCHEMA, Premises, Source, VaultContract

from limbeck.vault.api import Randomness, Vault

SITES = 3


class FederatedPremises(Premises):
    def __init__(self, folder: Path, **terms: object) -> None:
        self._books = ledgers_in(folder, SITES)
        self.terms = terms_of(self._books, **terms)
        self.noise = self.terms.total
        self.set_budget(50.0)

    def vault(self, source: Source, randomness: Randomness | None = None) -> Vault:
        return joined(self.terms, source.schema, self._books, source.load, randomness)

    def set_budget(self, epsilon: float) -> None:
        for name, book in self._books.items():
            book.set_budget(own_schema(SCHEMA, name).name, epsilon, 0.01 if math.isinf(epsilon) else 100 * DELTA)

    def spent(self) -> float:
        """Every site has spent the same: nothing is booked at some sites only."""
        accounts = [book.account(own_schema(SCHEMA, name).name) for name, book in self._books.items()]
        spent = {0.0 if account is None else account.spent_epsilon for account in accounts}
        assert len(spent) == 1
        return spent.pop()


class TestNoisePerSite(VaultContract):
    @pytest.fixture
    def premises(self, tmp_path: Path) -> Premises:
        found = FederatedPremises(tmp_path)
        assert found.noise == pytest.approx(math.sqrt(3))
        return found


class TestNoiseOnce(VaultContract):
    @pytest.fixture
    def premises(self, tmp_path: Path) -> Premises:
        found = FederatedPremises(tmp_path, noise="shared")
        assert found.noise == pytest.approx(1.0)
        return found


class TestNoiseOnceAndOneTells(VaultContract):
    @pytest.fixture
    def premises(self, tmp_path: Path) -> Premises:
        found = FederatedPremises(tmp_path, noise="shared", collusion=1)
        assert found.noise == pytest.approx(math.sqrt(1.5))
        return found
