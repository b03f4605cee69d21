"""A vault as small as the contract allows: books in a dictionary, records one at a time in whole steps, no chunks and no blocks.

The plain twin of the local vault. It keeps nothing on the disk and knows no teachers.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from limbeck.data import Records
from limbeck.errors import BudgetRefused, RunConflict, WallBreach
from limbeck.privacy.accounting import price
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import Choice, ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Answer, Asked, Grant, Map, MarginalErrors, Randomness, State
from limbeck.vault.choices import SCORES
from limbeck.vault.encoding import encode
from limbeck.vault.maps import MAPS
from limbeck.vault.noise import SecretStream
from limbeck.vault.source import PrivateSource


@dataclass
class Booking:
    plan: Plan
    epsilon: float
    state: State = "open"
    answers: dict[tuple[str, int], tuple[str, np.ndarray | None]] = field(default_factory=dict)


@dataclass
class Books:
    """What outlives a vault: the budget and everything booked."""

    budget: float = math.inf
    bookings: dict[str, Booking] = field(default_factory=dict)

    @property
    def spent(self) -> float:
        return sum(booking.epsilon for booking in self.bookings.values() if booking.state != "void")

    def booking(self, identity: str) -> Booking:
        if identity not in self.bookings:
            raise RunConflict(f"There is no booking {identity}.")
        return self.bookings[identity]


class FakeVault:
    def __init__(self, source: PrivateSource, books: Books, randomness: Randomness | None = None) -> None:
        self._source, self._books = source, books
        self._randomness = randomness or Randomness()
        self._records: Records | None = None

    @property
    def randomness(self) -> Randomness:
        return self._randomness

    def describe(self) -> Schema:
        return self._source.schema

    def grant(self, plan: Plan, identity: str | None = None) -> Grant:
        if plan.dataset != self.describe().name:
            raise WallBreach("The plan is for other records.")
        cost = price(plan.queries, plan.price.delta).epsilon
        if cost > plan.price.epsilon:
            raise WallBreach("The plan states less than its queries cost.")
        identity = identity or uuid.uuid4().hex
        if identity not in self._books.bookings:
            if self._books.spent + cost > self._books.budget:
                raise BudgetRefused("The budget does not cover it.")
            self._books.bookings[identity] = Booking(plan, cost)
        elif self._books.bookings[identity].state != "open":
            raise RunConflict("It was booked before, with an end.")
        return Grant(identity, plan)

    def take_up(self, identity: str, plan: Plan, booked: bool = False) -> Grant:
        if booked:
            self._books.booking(identity)
        return Grant(identity, plan) if self.state(identity) == "finished" else self.grant(plan, identity)

    def state(self, identity: str) -> State | None:
        booking = self._books.bookings.get(identity)
        return None if booking is None else booking.state

    def open_records(self, grant: Grant) -> None:
        booking = self._books.booking(grant.id)
        if booking.state == "void":
            raise RunConflict("The booking was given back.")
        if booking.plan != grant.plan:
            raise WallBreach("Another plan was booked.")
        if self._records is None:
            try:
                self._records = self._source.load()
            except Exception:
                self.give_back(grant)
                raise

    def ask(self, grant: Grant, label: str, index: int, mapping: Asked) -> Answer:
        booking, query = self._books.booking(grant.id), grant.plan.query(label)
        if booking.state == "void":
            raise RunConflict("The booking was given back.")
        if not isinstance(query, ClippedSum | Choice) or not 0 <= index < query.count:
            raise WallBreach("The plan has no such answer.")
        known: type | None = (MAPS if isinstance(query, ClippedSum) else SCORES).get(mapping.kind)
        if mapping.kind != query.map or known is not type(mapping):
            raise WallBreach("It was booked with another map.")
        if (label, index) not in booking.answers:
            if booking.state != "open":
                raise RunConflict("The booking is closed.")
            self.open_records(grant)
            if isinstance(query, Choice):
                assert isinstance(mapping, MarginalErrors)
                values = self._chosen(query, index, mapping).astype(np.float32)
            else:
                assert isinstance(mapping, Map)
                values = self._noised(query, index, mapping).astype(np.float32)
            booking.answers[label, index] = (mapping.digest(), values)
        digest, kept = booking.answers[label, index]
        if kept is None or digest != mapping.digest():
            raise RunConflict("It was given for another question, or forgotten.")
        by_class = isinstance(query, ClippedSum) and query.by_class
        return Answer(kept.copy() if by_class else kept[0].copy(), query.noise_std)

    def _chosen(self, query: Choice, index: int, asked: MarginalErrors) -> np.ndarray:
        """The highest score after Gumbel noise, in doubles, which is the same mechanism up to their rounding."""
        assert self._records is not None
        x, y = encode(self._records.x, self.describe()), torch.from_numpy(self._records.y)
        rows = (asked.cells.rows(x, y) / asked.cells.weight).double().sum(0) * min(query.clip, 1.0)
        parts = torch.split((rows - asked.estimates).abs(), list(asked.cells.sizes))
        scores = asked.weights.numpy() * (np.array([float(part.sum()) for part in parts]) - asked.penalties.numpy())
        bits = self._randomness.stream(f"noise of {query.label}", index).integers(asked.candidates)
        return np.array([[np.argmax(scores - query.noise_std * np.log(-np.log((bits + 0.5) / 2.0**64)))]])

    def _noised(self, query: ClippedSum, index: int, mapping: Map) -> np.ndarray:
        total = self._sum(query, mapping, self._randomness.stream(query.label, index))
        if query.is_private:
            noise = self._randomness.stream(f"noise of {query.label}", index)
            total += noise.whole_gaussian(query.noise_std / query.step, total.shape)
        return total * query.step

    def _sum(self, query: ClippedSum, mapping: Map, stream: SecretStream) -> np.ndarray:
        assert self._records is not None
        schema, y = self.describe(), self._records.y
        x = encode(self._records.x, schema)
        coins = stream.integers(len(y)) / 2.0**64
        width = mapping.rows(torch.zeros(1, *schema.shape), torch.zeros(1, dtype=torch.int64)).shape[1]
        total = np.zeros((len(schema.classes) if query.by_class else 1, width), dtype=np.int64)
        for record, label, coin in zip(x, y, coins, strict=True):
            if coin >= query.rate_of(len(schema.classes))[label]:
                continue
            row = mapping.rows(record[None], torch.tensor([label]))[0].double().numpy()
            room = query.clip - query.step * math.sqrt(width) / 2
            clipped = row * min(1.0, room / max(np.linalg.norm(row), 1e-300))
            total[label if query.by_class else 0] += np.rint(clipped / query.step).astype(np.int64)
        return total

    def keep(self, grant: Grant) -> None:
        pass

    def forget(self, grant: Grant, label: str, before: int) -> None:
        answers = self._books.booking(grant.id).answers
        for (asked, index), (digest, _) in list(answers.items()):
            if asked == label and index < before:
                answers[asked, index] = (digest, None)

    def drawn(self, grant: Grant) -> Mapping[str, int]:
        booking = self._books.booking(grant.id)
        labels = [label for label, _ in booking.answers]
        return {query.label: labels.count(query.label) for query in booking.plan.queries}

    def give_back(self, grant: Grant) -> bool:
        booking = self._books.booking(grant.id)
        if booking.answers:
            return False
        booking.state = "void"
        return True

    def close(self, grant: Grant) -> None:
        booking = self._books.booking(grant.id)
        booking.state = "finished"
        booking.answers = {key: (digest, None) for key, (digest, _) in booking.answers.items()}
        self._records = None
