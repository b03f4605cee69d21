"""What every vault keeps when it chooses; the rest of the contract is in contract.py."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from contract import FALSE_ALARM, Premises, Source, plan_of, query_of, records_of
from scipy import stats

from limbeck.data import Records
from limbeck.errors import RunConflict, WallBreach
from limbeck.privacy.queries import Choice
from limbeck.vault.api import Cells, Cut, Identity, MarginalErrors


def choice_of(**changes: object) -> Choice:
    plain = Choice(label="choice", map="marginal_errors", clip=1.0, noise_multiplier=4.0, count=400)
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


def candidates(scale: float = 1.0) -> MarginalErrors:
    """Which of two numbers of a record, cut in the middle, or its class, is furthest from an estimate."""
    cuts = tuple(Cut(start=start, numbers=1, edges=torch.zeros(1, dtype=torch.float64)) for start in (3, 4))
    double = torch.float64
    return MarginalErrors(
        cells=Cells(cuts=cuts, tuples=((0,), (1,), (2,)), classes=3),
        estimates=torch.tensor([38.0, 43, 54, 35, 25, 29, 30], dtype=double) * scale,
        weights=torch.tensor([1.0, 0.5, 0.75], dtype=double),
        penalties=torch.tensor([1.0, 1, 0.5], dtype=double),
    )


def exact_chances(records: Records, asked: MarginalErrors, scale: float) -> np.ndarray:
    """In doubles, one record after the other."""
    counts = np.zeros(7)
    for x, y in zip(records.x, records.y, strict=True):
        row = np.clip(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1.0, neginf=0.0), 0, 1).ravel() * 2 - 1
        counts[[int(row[3] >= 0), 2 + int(row[4] >= 0), 4 + y]] += 1
    apart = np.abs(counts - asked.estimates.numpy())
    errors = np.array([apart[:2].sum(), apart[2:4].sum(), apart[4:].sum()])
    weights = np.exp(asked.weights.numpy() * (errors - asked.penalties.numpy()) / scale)
    chances: np.ndarray = weights / weights.sum()
    return chances


class ChoiceContract:
    """Inherit it beside `VaultContract`."""

    def test_candidates_are_drawn_by_the_exponential_mechanism(self, premises: Premises) -> None:
        premises.set_budget(1000.0)
        records, query = records_of(), choice_of()
        vault = premises.vault(Source(records))
        grant = vault.grant(plan_of(query))
        places = [int(vault.ask(grant, "choice", index, candidates()).values[0]) for index in range(query.count)]
        expected = exact_chances(records, candidates(), 4.0) * query.count
        assert min(expected) > 20
        found = np.bincount(places, minlength=3)
        assert stats.chisquare(found, expected).pvalue > FALSE_ALARM
        # What twice the epsilon would give is told from this.
        assert stats.chisquare(found, exact_chances(records, candidates(), 2.0) * query.count).pvalue < FALSE_ALARM

    def test_without_noise_the_highest_score_is_chosen(self, premises: Premises) -> None:
        premises.set_budget(math.inf)
        records = records_of()
        vault = premises.vault(Source(records))
        grant = vault.grant(plan_of(choice_of(noise_multiplier=0.0, count=1)))
        answer = vault.ask(grant, "choice", 0, candidates()).values
        assert answer.shape == (1,) and answer.dtype == np.float32 and not answer.flags.writeable
        assert answer[0] == exact_chances(records, candidates(), 1.0).argmax()

    def test_a_choice_stays_and_is_not_made_for_others(self, premises: Premises) -> None:
        plan = plan_of(query_of(), choice_of(count=3))
        vault = premises.vault(Source(records_of()))
        given = vault.ask(vault.grant(plan, "8" * 32), "choice", 0, candidates()).values
        unread = Source(records_of(seed=1))
        restarted = premises.vault(unread)
        grant = restarted.take_up("8" * 32, plan, booked=True)
        assert restarted.ask(grant, "choice", 0, candidates()).values == given and unread.loads == 0
        with pytest.raises(RunConflict):
            restarted.ask(grant, "choice", 0, candidates(2.0))
        for label, index, asked in (
            ("choice", 3, candidates()), ("choice", 1, Identity()), ("sums", 0, candidates()),
        ):  # fmt: skip
            with pytest.raises(WallBreach):
                restarted.ask(grant, label, index, asked)
        assert restarted.drawn(grant) == {"sums": 0, "choice": 1}
