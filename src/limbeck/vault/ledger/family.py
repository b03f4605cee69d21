"""A data set, its parts and everything booked on them, as one transaction sees them; and what an account has spent.

spent(P) = what is booked on P itself + over its splits: the largest of the parts where they are disjoint, else their sum.
A record that is added or removed is in one part of a disjoint split, so of each such split only one part's answers change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Literal

from limbeck.vault.ledger.database import Database
from limbeck.vault.ledger.splits import Split, read_place, read_splits
from limbeck.vault.ledger.sums import Booking, added, exact

Rule = Literal["sum", "renyi"]
# What one booking costs; None where this measure cannot say.
Measure = Callable[[Booking], Decimal | None]


@dataclass(frozen=True)
class Budget:
    """What an account may spend. Number 0: nobody has set it, the first booking stands for it."""

    number: int
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Commitment:
    """By which rule the bookings under one budget are composed, and with which booking that was fixed."""

    dataset: str
    budget: int
    booking: int
    rule: Rule
    order: int


@dataclass(frozen=True)
class Family:
    """`root` is the whole data set. The mappings are by account."""

    root: str
    budgets: Mapping[str, Budget]
    bookings: Mapping[str, tuple[Booking, ...]]
    splits: Mapping[str, tuple[Split, ...]]
    commitments: Mapping[str, tuple[Commitment, ...]]
    _places: Mapping[str, Split] = field(default_factory=dict)

    def place(self, account: str) -> Split | None:
        """The split that an account is a part of."""
        return self._places.get(account)

    def path(self, account: str) -> tuple[str, ...]:
        """The account, what it is a part of, and so on up to the whole data set."""
        found = [account]
        while (split := self.place(found[-1])) is not None:
            found.append(split.dataset)
        return tuple(found)

    def accounts(self, start: str | None = None) -> Iterator[str]:
        """Every account that may be booked on: the whole, then its parts, each followed by parts of its own."""
        account = self.root if start is None else start
        yield account
        for split in self.splits.get(account, ()):
            for part in split.accounts:
                yield from self.accounts(part)

    def below(self, account: str) -> tuple[Booking, ...]:
        """The counted bookings of an account and of all its parts, oldest first."""
        found = [
            booking
            for name, bookings in self.bookings.items()
            if account in self.path(name)
            for booking in bookings
            if booking.counted
        ]
        return tuple(sorted(found, key=lambda booking: booking.number))

    @cached_property
    def _active(self) -> frozenset[str]:
        return frozenset(name for account in self.bookings for name in self.path(account))

    def cost(self, account: str, measure: Measure, along: Collection[str] = ()) -> Decimal | None:
        """What an account has spent, by a measure that adds up over bookings. None if the measure fails for one of them.

        along: accounts to go through where a split would give its largest part; the cost of what touches those.

        Guarantee: not less than what any one unit of privacy has paid, whichever parts it is in.
        """
        total = Decimal(0)
        for booking in self.bookings.get(account, ()):
            if booking.counted:
                price = measure(booking)
                if price is None:
                    return None
                total = added(total, price)
        for split in self.splits.get(account, ()):
            parts = {name: self.cost(name, measure, along) for name in split.accounts if name in self._active}
            prices = [price for price in parts.values() if price is not None]
            if len(prices) < len(parts):
                return None
            total = added(total, _together(split, parts, prices, along))
        return total

    def with_split(self, split: Split) -> Family:
        """The same family if this split were declared as well."""
        if any(split.name == known.name for known in self.splits.get(split.dataset, ())):
            return self
        splits = {**self.splits, split.dataset: (*self.splits.get(split.dataset, ()), split)}
        return replace(self, splits=splits, _places={**self._places, **dict.fromkeys(split.accounts, split)})

    def with_bookings(self, tried: Sequence[Booking]) -> Family:
        """The same family if these were booked as well."""
        bookings = dict(self.bookings)
        for booking in tried:
            bookings[booking.dataset] = (*bookings.get(booking.dataset, ()), booking)
        return replace(self, bookings=bookings)


def _together(
    split: Split, parts: Mapping[str, Decimal | None], prices: Sequence[Decimal], along: Collection[str]
) -> Decimal:
    if not split.disjoint:
        total = Decimal(0)
        for price in prices:
            total = added(total, price)
        return total
    if any(name in along for name in split.accounts):
        chosen = [price for name, price in parts.items() if name in along and price is not None]
        return max(chosen, default=Decimal(0))
    return max(prices, default=Decimal(0))


def epsilon_of(booking: Booking) -> Decimal:
    return exact(booking.epsilon)


def delta_of(booking: Booking) -> Decimal:
    return exact(booking.delta)


def read_root(db: Database, dataset: str) -> str:
    while (split := read_place(db, dataset)) is not None:
        dataset = split.dataset
    return dataset


def read_family(db: Database, dataset: str) -> Family:
    """Everything about the data set that an account belongs to, in the caller's transaction."""
    root = read_root(db, dataset)
    low, high = f"{root}/", f"{root}0"  # "0" follows "/" in the order of characters
    splits: dict[str, tuple[Split, ...]] = {}
    places: dict[str, Split] = {}
    members = {root}
    for split in read_splits(db, low, high, root):
        splits[split.dataset] = (*splits.get(split.dataset, ()), split)
        places.update(dict.fromkeys(split.accounts, split))
    members.update(places)
    where = "WHERE dataset = ? OR (dataset >= ? AND dataset < ?) ORDER BY number"
    bookings: dict[str, tuple[Booking, ...]] = {}
    for grant, name, epsilon, delta, method, created, state, number, plan, counts in db.execute(
        f"SELECT grant_id, dataset, epsilon, delta, method, created, state, number, plan, counts FROM bookings {where}",
        (root, low, high),
    ):
        if name in members:
            booking = Booking(grant, name, float(epsilon), float(delta), method, created, state, number, plan, counts)
            bookings[name] = (*bookings.get(name, ()), booking)
    budgets: dict[str, Budget] = {}
    for number, name, epsilon, delta in db.execute(
        f"SELECT number, dataset, epsilon, delta FROM budgets {where}", (root, low, high)
    ):
        if name in members:
            budgets[name] = Budget(number, float(epsilon), float(delta))  # the newest one stays
    commitments: dict[str, tuple[Commitment, ...]] = {}
    for name, budget, booked, rule, alpha in db.execute(
        f"SELECT dataset, budget, booking, rule, alpha FROM rules {where}", (root, low, high)
    ):
        found = Commitment(name, int(budget), int(booked), rule, int(alpha))
        commitments[name] = (*commitments.get(name, ()), found)
    return Family(root, budgets, bookings, splits, commitments, places)
