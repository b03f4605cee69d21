"""A federation that is tried out with records of one owner: what it costs them is booked in the owner's own ledger, too.

The sites of a simulation have ledgers of their own, which know nothing of what was spent of these records before. They hold
different records, so all of them together cost what one of them does, and that is what is booked here: no simulation makes
a budget for records that have one.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from limbeck.errors import LimbeckError
from limbeck.federated.transport import Transport
from limbeck.federated.vault import FederatedVault, Foreseen
from limbeck.privacy.federation import Terms
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.runs.premises import Elsewhere
from limbeck.vault.api import Answer, Asked, Grant
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault

MARK = b"answered by sites"


class OwnersVault(FederatedVault):
    """A `FederatedVault` that books in `ledger` first."""

    def __init__(self, terms: Terms, schema: Schema, transport: Transport, ledger: Ledger) -> None:
        super().__init__(terms, schema, transport)
        self._ledger, self._owner = ledger, LocalVault(Elsewhere(schema), ledger)
        self._marked: set[str] = set()

    def grant(self, plan: Plan, identity: str | None = None) -> Grant:
        booked = self._owner.grant(plan, identity)
        try:
            return super().grant(plan, booked.id)
        except LimbeckError:
            self._owner.give_back(booked)
            raise

    def take_up(self, identity: str, plan: Plan, booked: bool = False) -> Grant:
        self._owner.take_up(identity, plan, booked)
        return super().take_up(identity, plan, booked)

    def ask(self, grant: Grant, label: str, index: int, mapping: Asked) -> Answer:
        self._mark(grant)
        return super().ask(grant, label, index, mapping)

    def ahead(self, grant: Grant, asked: Sequence[Foreseen]) -> None:
        self._mark(grant)
        super().ahead(grant, asked)

    def stay(self, grant: Grant, label: str, step: int, count: int, luggage: dict[str, Tensor]) -> None:
        self._mark(grant)
        super().stay(grant, label, step, count, luggage)

    def give_back(self, grant: Grant) -> bool:
        return super().give_back(grant) and self._owner.give_back(grant)

    def close(self, grant: Grant) -> None:
        super().close(grant)
        self._owner.close(grant)

    def _mark(self, grant: Grant) -> None:
        """Guarantee: from the first question on the owner's booking counts as answered, and cannot be given back."""
        if grant.id not in self._marked:
            self._ledger.store(grant.id, grant.plan.queries[0].label, 0, map_digest="sites", payload=MARK)
            self._marked.add(grant.id)
