"""Paying for a plan, and declaring a split: the checks and the rows of one transaction that the caller holds."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from limbeck.errors import BadInput, BudgetRefused, DataNotFound, RunConflict, WallBreach
from limbeck.privacy.part import PartOf
from limbeck.privacy.unit import UNIT_RECORD, unit_words
from limbeck.vault.ledger.arguments import checked_counts, checked_dataset, checked_text
from limbeck.vault.ledger.database import Database
from limbeck.vault.ledger.family import Budget, Family, read_family
from limbeck.vault.ledger.fitting import check_fits, enough
from limbeck.vault.ledger.rows import append_booking, append_rule, append_split, is_booked, read_grant, void_row
from limbeck.vault.ledger.rules import budget_of
from limbeck.vault.ledger.splits import Split, read_place, read_split
from limbeck.vault.ledger.sums import Booking, checked_delta, checked_epsilon


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A plan that somebody would like to book. Guarantee: every value is one that the ledger can keep."""

    dataset: str
    plan: str
    epsilon: float
    delta: float
    counts: Mapping[str, int]
    part: PartOf | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dataset", checked_dataset(self.dataset))
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        object.__setattr__(self, "delta", checked_delta(self.delta))
        object.__setattr__(self, "counts", checked_counts(self.counts))
        checked_text("plan", self.plan)

    def as_booking(self) -> Booking:
        counts = json.dumps(dict(self.counts), sort_keys=True)
        return Booking("", self.dataset, self.epsilon, self.delta, "", "", "open", plan=self.plan, counts=counts)


def book_plan(db: Database, wanted: Wanted, method: str, grant: str | None) -> str:
    """Guarantee: the booking, and every rule that it binds an account to, are checked and written in one transaction."""
    _check_place(db, wanted)
    if grant is not None and is_booked(db, grant):
        row = read_grant(db, grant)
        if (row.dataset, row.state) != (wanted.dataset, "open") or not same_plan(row.plan, wanted.plan):
            raise RunConflict(f"Grant {grant} was booked before, for another plan or with an end; start a new run.")
        return grant
    family = read_family(db, wanted.dataset)
    _check_unit(family, wanted)
    _check_reading(family, wanted)
    bound = check_fits(family, [wanted.as_booking()])
    grant = append_booking(db, wanted.dataset, wanted.plan, method, wanted.epsilon, wanted.delta, wanted.counts, grant)
    for rule in bound:
        append_rule(db, rule, grant)
    return grant


def check_wanted(db: Database, wanted: Sequence[Wanted]) -> None:
    """Guarantee: returns only if all of these could be booked, one after another."""
    families: dict[str, tuple[Family, list[Booking]]] = {}
    for each in wanted:
        _check_place(db, each)
        family = read_family(db, each.dataset)
        _check_reading(family, each)
        families.setdefault(family.root, (family, []))[1].append(each.as_booking())
    for family, tried in families.values():
        check_fits(family, tried)


def budget_for(db: Database | None, dataset: str, wanted: Sequence[Wanted], split: Split | None = None) -> str | None:
    """The command that sets a budget of this account which covers all these plans.

    db: None where there is no ledger yet. split: what the plans' parts are to be, if it is not declared yet.
    """
    family = Family(dataset, {}, {}, {}, {}) if db is None else read_family(db, dataset)
    family = family if split is None else family.with_split(split)
    tried = [each.as_booking() for each in wanted]
    start = budget_of(family, dataset) or Budget(0, tried[0].epsilon, tried[0].delta)
    return enough(family, dataset, start, tried)


def _check_place(db: Database, wanted: Wanted) -> None:
    """Guarantee: what is booked on a part holds the records that its split says, and nothing is booked beside the tree."""
    part, place = wanted.part, read_place(db, wanted.dataset)
    if part is None:
        # What earlier versions call a stage is a whole to itself, and a part to the ledger that brought it up to date.
        if place is not None and place.kind != "stages":
            raise RunConflict(
                f"{wanted.dataset!r} is the account of a part of {place.dataset!r}, and these records are not given as that "
                "part. Nothing was booked. Give the data set another name in its schema."
            )
        return
    split = read_split(db, checked_dataset(part.parent), part.split)
    if (
        split is None
        or split.kind == "stages"  # its accounts have other names, so this one would be beside the tree
        or wanted.dataset != checked_dataset(part.account)
        or not 1 <= part.part <= len(split.parts)
    ):
        raise BadInput(
            f"The ledger knows no part {part.part} of a split {part.split!r} of data set {part.parent!r}. Nothing was booked.",
            f"limbeck budget split DATA {part.split} --hash N",
        )
    if split.parts[part.part - 1] != part.classes:
        raise WallBreach(
            f"Part {part.part} of split {part.split!r} was declared with other classes than these records have. Nothing was "
            "booked."
        )
    if part.classes and split.disjoint and part.unit != UNIT_RECORD:
        raise BadInput(
            f"Split {part.split!r} of {part.parent!r} was declared when the unit was a record; a person may be in several of "
            "its parts. Nothing was booked. Declare a split with another name."
        )


def _check_unit(family: Family, wanted: Wanted) -> None:
    """Guarantee: all that adds up in one account protects the same unit. Epsilons of records do not bound what a person loses."""
    unit, others = unit_of(wanted.plan), {unit_of(booking.plan) for booking in family.below(family.root)}
    if others - {unit}:
        raise BudgetRefused(
            f"This plan protects {unit_words(unit)}, and data set {family.root!r} has bookings that protect "
            f"{unit_words(sorted(others - {unit})[0])}: their epsilons do not add up. Nothing was booked. Keep to one unit, or "
            "give the data another name in its schema and count both budgets yourself."
        )


def _check_reading(family: Family, wanted: Wanted) -> None:
    """Guarantee: parts that are counted as disjoint were read alike. With its classes in another order, or other ranges of its
    columns, a record may be in a second part, which the first one's price does not cover."""
    reading = _entry(wanted.plan, "reading", "")
    for split in filter(None, map(family.place, family.path(wanted.dataset))):
        parts = set(split.accounts) if split.disjoint else set()
        booked = [each for each in family.below(split.dataset) if parts.intersection(family.path(each.dataset))]
        if any(_entry(booking.plan, "reading", "") != reading for booking in booked):
            raise RunConflict(
                f"The schema of {split.dataset!r} was changed since a plan was booked on a part of its split {split.name!r}: its "
                f"classes, its label or its columns are others, so records of {wanted.dataset!r} may be in two parts, and the "
                "parts no longer count as disjoint. Nothing was booked. Put the first schema back, or declare another split "
                "under the new one; different splits add up."
            )


def same_plan(booked: str, wanted: str) -> bool:
    """Whether a plan is the one that was booked. Before 0.6.0 a reading did not say in which range pictures were read."""
    if booked == wanted:
        return True
    reading = _entry(wanted, "reading", "")
    digest, with_range, _ = reading.partition(" in ")
    return bool(with_range) and booked == wanted.replace(json.dumps(reading), json.dumps(digest))


def unit_of(plan: str) -> str:
    """Whom a booked plan protects. Plans that do not say so protect records, as all did before 0.4.0."""
    return _entry(plan, "unit", UNIT_RECORD)


def _entry(plan: str, name: str, default: str) -> str:
    """A text that was booked beside a plan."""
    try:
        found = json.loads(plan).get(name, default)
    except (ValueError, AttributeError):
        return default
    return found if isinstance(found, str) else default


def give_back_unanswered(db: Database, dataset: str, grant: str, ledger: Path) -> None:
    """Guarantee: exactly a booking of this data set that is open and of which no answer was ever stored."""
    row = read_grant(db, grant) if is_booked(db, grant) else None
    if row is None or row.dataset != dataset:
        raise DataNotFound(
            f"Data set {dataset!r} has no booking {grant!r} in the ledger {ledger}. Nothing was changed.",
            f"limbeck budget show {shlex.quote(dataset)}",
        )
    if row.state == "void":
        raise BudgetRefused(f"Booking {grant} of data set {dataset!r} was given back before. Nothing was changed.")
    if reason := void_row(db, row):
        raise BudgetRefused(f"{reason} It stays spent, and nothing was changed.")


def declare(db: Database, wanted: Split) -> Split:
    """Write a split down, unless the same one stands there already.

    Guarantee: a split never changes, and no account becomes a part after something was booked on it as a whole.
    """
    known = read_split(db, wanted.dataset, wanted.name)
    if known is not None:
        if not known.same_parts(wanted):
            raise BadInput(
                f"Data set {wanted.dataset!r} has a split {wanted.name!r} already, with other parts. Nothing was changed. "
                "Choose another name."
            )
        return known
    booked = "SELECT dataset FROM bookings WHERE dataset = ? OR (dataset >= ? AND dataset < ?) LIMIT 1"
    for name in wanted.accounts:
        # Also below it: what is booked on its own parts, if it has some, is booked on it as a whole.
        if (found := db.execute(booked, (name, f"{name}/", f"{name}0")).fetchone()) is not None:
            raise BadInput(
                f"Something is booked on {found[0]!r} as a data set of its own, so {name!r} can be no part of "
                f"{wanted.dataset!r}. Nothing was changed. Choose another name."
            )
    append_split(db, wanted)
    return wanted
