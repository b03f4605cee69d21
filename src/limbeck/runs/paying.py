"""Plans as the ledger sees them, before anything is booked: whether they fit, and which budget would cover them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from limbeck.privacy.part import PartOf
from limbeck.privacy.plan import Plan
from limbeck.vault.ledger import Ledger, Split, Wanted
from limbeck.vault.ledger.booking import budget_for as budget_in


def wanted_plan(plan: Plan, part: PartOf | None = None) -> Wanted:
    """A plan as it would be booked. part: which part of a data set it is for; None for the whole."""
    reading = {"reading": part.reading} if part is not None and part.reading else {}
    text = json.dumps({"plan": plan.to_dict(), **reading}, sort_keys=True)
    price = plan.price
    return Wanted(
        dataset=plan.dataset, plan=text, epsilon=price.epsilon, delta=price.delta, counts=plan.counts, part=part
    )


def budget_for(ledger: Ledger | None, dataset: str, wanted: Sequence[Wanted], split: Split | None = None) -> str | None:
    """The command that sets a budget which covers all these plans. split: of the data set, if it is not declared yet."""
    if ledger is None:
        return budget_in(None, dataset, wanted, split)
    with ledger.file.transaction(write=False) as db:
        return budget_in(db, dataset, wanted, split)
