"""The answer to a Choice over records in memory: counted, scored, drawn."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.data.records import Records
from limbeck.privacy.queries import Choice
from limbeck.privacy.schema import Schema
from limbeck.vault.choices.exponential import Uniform, drawn
from limbeck.vault.choices.scores import ONE, Scores
from limbeck.vault.encoding import encode
from limbeck.vault.keyed_hash import record_hashes
from limbeck.vault.noise import SecretStream
from limbeck.vault.persons import sample_persons


class Chooser:
    """Chooses by the records of one schema, counted on one device."""

    def __init__(self, schema: Schema, device: torch.device) -> None:
        self._schema, self._device = schema, device

    @torch.no_grad()
    def chosen(
        self, query: Choice, scores: Scores, records: Records, coins: SecretStream, noises: SecretStream
    ) -> NDArray[np.float64]:
        """(1, 1): the place of one candidate.

        Guarantee: the exponential mechanism that `query.event()` states. A unit is worth at most `clip` records, so it moves
        every score by at most `clip` (`Scores.in_steps`). The secret number is drawn before a record is touched.
        """
        uniform, step = Uniform(noises), Fraction(query.step)
        counts = self._counts(query, scores, records, coins)
        scale = Fraction(query.noise_multiplier) * Fraction(query.clip) / step
        return np.array([[drawn(scores.in_steps(counts, step), scale, uniform)]], dtype=np.float64)

    def _counts(self, query: Choice, scores: Scores, records: Records, coins: SecretStream) -> NDArray[np.int64]:
        """Guarantee: whole numbers, which no order and no size of chunks can change. Memory does not grow with the records."""
        sample, worth = self._worth(query, records, coins)
        total = np.zeros(scores.cells.width, dtype=np.int64)
        for start in range(0, len(sample), scores.cells.chunk):
            part = sample[start : start + scores.cells.chunk]
            x, y = encode(records.x[part], self._schema, self._device), torch.from_numpy(records.y[part])
            each = torch.from_numpy(worth[start : start + scores.cells.chunk].astype(np.float64))
            total += scores.cells.counts(x, y.to(self._device), each.to(self._device)).cpu().numpy().astype(np.int64)
        return total

    def _worth(
        self, query: Choice, records: Records, coins: SecretStream
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The records that count, and for how much: ONE is a whole record.

        Guarantee: what one unit's records are worth together is at most `clip`, and depends on that unit alone. A person's
        records are worth less each, the more there are.
        """
        most = math.floor(Fraction(query.clip) * ONE)
        if records.units is None:
            return np.arange(len(records.y), dtype=np.int64), np.full(len(records.y), min(ONE, most), dtype=np.int64)
        limit, rates = self._schema.unit_records, (1.0,) * len(self._schema.classes)
        contents = record_hashes(records, key=b"") if limit is not None else None
        sample = sample_persons(records.y, records.units, rates, coins, limit, contents)
        _, person, held = np.unique(records.units[sample], return_inverse=True, return_counts=True)
        return sample, np.minimum(ONE, most // held[person])
