"""Noise once over sites is the answer of one vault with all records: the same whole steps, and noise of the same width."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sites import Shared, joined, ledgers_in, own_schema, site_of, terms_of
from tests.vault.contract import DELTA, SCHEMA, plan_of, query_of, records_of

from limbeck.federated.transport import Frames, InProcess
from limbeck.vault.api import Identity
from limbeck.vault.clipped_sums import ClippedSums
from limbeck.vault.masking import unmasked
from limbeck.vault.noise import Randomness
from limbeck.vault.process.requests import REPLIES, Masked, read
from limbeck.vault.process.wire import from_bytes

SITES, SEED = 4, 11
HELD: dict[str, Callable[[np.ndarray, int], int]] = {
    "by chance": lambda x, y: site_of(x, SITES),
    "by class": lambda x, y: y % 3,  # one class a site, and one site without a record
    "by one": lambda x, y: 2,
}


@pytest.mark.parametrize("held", HELD)
def test_sums_over_sites_are_those_of_one_vault_to_the_last_step(
    held: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever holds which records: under the masks is one vault's sum and the sites' shares of the noise, and nothing else.

    The shares together are one noise of the query's width (test_shares.py), so the answer is distributed as one vault's.
    """
    records = records_of()
    place = np.array([HELD[held](x, int(y)) for x, y in zip(records.x, records.y, strict=True)])
    monkeypatch.setattr(Shared, "of", lambda self, site: records.only(place == site))
    books = ledgers_in(tmp_path, SITES)
    terms = terms_of(books, noise="shared")
    for name, book in books.items():
        book.set_budget(own_schema(SCHEMA, name).name, 50.0, 100 * DELTA)
    seen: list[Frames] = []

    class Watched(InProcess):
        def exchange(self, frames: Frames, answers: int = 1) -> Frames:
            seen.append(super().exchange(frames, answers))
            return seen[-1]

    vault = joined(terms, SCHEMA, books, lambda: records, Randomness(SEED), around=lambda way: Watched(way._sites))
    plan = plan_of(query_of())
    (query,) = plan.queries
    answer = vault.ask(vault.grant(plan), "sums", 1, Identity())

    parts = [read(from_bytes(frame), REPLIES) for (frame,) in seen[-1].values()]
    assert all(isinstance(part, Masked) for part in parts)
    total = unmasked(terms, [part.values.numpy().view(np.uint64) for part in parts])  # type: ignore[attr-defined]
    steps = query.noise_multiplier * (query.clip / query.step) * terms.share
    shares = [
        Randomness(SEED + site).stream("sums: noise", 1).whole_gaussian(steps, total.shape) for site in range(SITES)
    ]
    alone = ClippedSums(SCHEMA, torch.device("cpu"))
    one = alone.summed(query, Identity(), records, Randomness(0).stream("coins", 0))
    np.testing.assert_array_equal(total - np.sum(shares, axis=0), one)
    assert answer.noise_std == pytest.approx(query.noise_std)
    np.testing.assert_array_equal(answer.values, (total * query.step).astype(np.float32))
