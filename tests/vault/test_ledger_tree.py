"""Accounts are a tree: parts spend from the whole, the dearest of disjoint parts counts, everything else adds up."""

from __future__ import annotations

import json
import math
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from children import race
from limbeck.errors import BadInput, BudgetRefused, RunConflict, WallBreach
from limbeck.privacy.part import PartOf
from limbeck.vault.ledger import Account, Ledger, Wanted

CLASSES = ((0, 1), (2, 3), (4,))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger.open(path) as opened:
        opened.set_budget("people", 3.0, 3e-5)
        opened.declare_split("people", "thirds", parts=3)
        opened.declare_split("people", "kinds", classes=CLASSES)
        yield opened


def part_of(split: str, part: int, parent: str = "people", unit: str = "record") -> PartOf:
    classes = CLASSES[part - 1] if split == "kinds" else ()
    return PartOf(parent=parent, split=split, part=part, classes=classes, unit=unit)


def book(
    ledger: Ledger, epsilon: float, part: PartOf | None = None, delta: float = 1e-6, dataset: str = "people"
) -> str:
    name = dataset if part is None else part.account
    return ledger.book(name, plan="{}", method="dm", epsilon=epsilon, delta=delta, counts={"sum": 1}, part=part)


def account(ledger: Ledger, name: str = "people") -> Account:
    found = ledger.account(name)
    assert found is not None
    return found


def test_disjoint_parts_cost_the_largest_of_them(ledger: Ledger) -> None:
    for part, epsilon in ((1, 1.0), (2, 2.0), (3, 0.5)):
        book(ledger, epsilon, part_of("thirds", part), delta=part * 1e-6)
    assert (account(ledger).spent_epsilon, account(ledger).spent_delta) == (2.0, 3e-6)
    assert account(ledger).remaining_epsilon == 1.0
    assert [account(ledger, f"people/thirds/{n}").remaining_epsilon for n in (1, 2, 3)] == [2.0, 1.0, 2.5]
    book(ledger, 2.0, part_of("thirds", 1))
    assert account(ledger).spent_epsilon == 3.0
    with pytest.raises(BudgetRefused):
        book(ledger, 0.1, part_of("thirds", 1))
    book(ledger, 2.5, part_of("thirds", 3))


def test_the_whole_after_its_parts_adds_to_the_dearest(ledger: Ledger) -> None:
    book(ledger, 2.0, part_of("thirds", 1))
    book(ledger, 1.0, part_of("thirds", 2))
    with pytest.raises(BudgetRefused, match=r"epsilon requested 1.5, remaining 1.0, difference 0.5"):
        book(ledger, 1.5)
    book(ledger, 1.0)
    assert account(ledger).spent_epsilon == 3.0


def test_parts_after_the_whole_get_what_it_left(ledger: Ledger) -> None:
    book(ledger, 2.5)
    with pytest.raises(BudgetRefused) as refused:
        book(ledger, 1.0, part_of("thirds", 2))
    assert "'people', of which 'people/thirds/2' is a part," in refused.value.message
    assert "epsilon requested 1.0, remaining 0.5, difference 0.5" in refused.value.message
    assert refused.value.next_command == "limbeck budget set people --epsilon 3.5 --delta 3e-05"
    for part in (1, 2, 3):
        book(ledger, 0.5, part_of("thirds", part))


def test_different_splits_of_the_same_records_add_up(ledger: Ledger) -> None:
    book(ledger, 1.0, part_of("thirds", 1))
    book(ledger, 1.5, part_of("kinds", 2))
    assert account(ledger).spent_epsilon == 2.5
    with pytest.raises(BudgetRefused):
        book(ledger, 0.6, part_of("kinds", 2))
    book(ledger, 1.5, part_of("kinds", 3))
    assert account(ledger).spent_epsilon == 2.5
    assert {split.name: split.spent_epsilon for split in account(ledger).splits} == {"thirds": 1.0, "kinds": 1.5}


def test_a_person_may_be_in_several_classes_so_such_parts_add_up(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        ledger.set_budget("people", 3.0, 3e-5)
        assert not ledger.declare_split("people", "kinds", classes=CLASSES, unit="patient").disjoint
        assert ledger.declare_split("people", "thirds", parts=3, unit="patient").disjoint
        book(ledger, 1.0, part_of("kinds", 1, unit="patient"))
        book(ledger, 1.0, part_of("kinds", 2, unit="patient"))
        assert account(ledger).spent_epsilon == 2.0
        with pytest.raises(BudgetRefused):
            book(ledger, 1.5, part_of("kinds", 3, unit="patient"))


def test_a_split_of_records_is_not_used_for_persons(ledger: Ledger) -> None:
    with pytest.raises(BadInput, match="several of its parts"):
        book(ledger, 1.0, part_of("kinds", 1, unit="patient"))
    assert account(ledger).spent_epsilon == 0.0


def test_parts_of_parts(ledger: Ledger) -> None:
    """spent(P) = own + over splits the largest part, all the way down."""
    ledger.declare_split("people/thirds/1", "deep", parts=2)
    deep = [part_of("deep", n, "people/thirds/1") for n in (1, 2)]
    book(ledger, 0.5, deep[0])
    book(ledger, 1.0, deep[1])
    book(ledger, 0.5, part_of("thirds", 1))
    book(ledger, 1.0, part_of("thirds", 2))
    book(ledger, 1.0)
    assert account(ledger, "people/thirds/1").spent_epsilon == 1.5
    assert account(ledger).spent_epsilon == 2.5
    with pytest.raises(BudgetRefused, match="'people', of which"):
        book(ledger, 0.6, deep[1])
    book(ledger, 1.0, deep[0])
    assert [found.dataset for found in ledger.accounts()] == [
        "people", "people/thirds/1", "people/thirds/1/deep/1", "people/thirds/1/deep/2", "people/thirds/2",
    ]  # fmt: skip


def test_a_part_may_have_a_smaller_budget_of_its_own(ledger: Ledger) -> None:
    ledger.set_budget("people/thirds/1", 1.0, 1e-5)
    with pytest.raises(BudgetRefused) as refused:
        book(ledger, 1.5, part_of("thirds", 1))
    assert "'people/thirds/1' does not cover" in refused.value.message and "is a part" not in refused.value.message
    assert refused.value.next_command == "limbeck budget set people/thirds/1 --epsilon 1.5 --delta 1e-05"
    book(ledger, 1.0, part_of("thirds", 1))
    book(ledger, 1.5, part_of("thirds", 2))
    with pytest.raises(BudgetRefused) as refused:
        book(ledger, 2.5, part_of("thirds", 1))
    assert refused.value.next_command == (
        "limbeck budget set people/thirds/1 --epsilon 3.5 --delta 1e-05 && "
        "limbeck budget set people --epsilon 3.5 --delta 3e-05"
    )
    with pytest.raises(BudgetRefused, match="already spent"):
        ledger.set_budget("people/thirds/1", 0.5, 1e-5)
    with pytest.raises(BudgetRefused, match="already spent"):
        ledger.set_budget("people", 1.0, 3e-5)


def test_deltas_are_limited_by_the_whole_too(ledger: Ledger) -> None:
    book(ledger, 0.1, delta=2.5e-5)
    with pytest.raises(BudgetRefused, match=r"delta requested 1e-05, remaining 5e-06, difference 5e-06"):
        book(ledger, 0.1, part_of("kinds", 1), delta=1e-5)


def test_void_frees_the_whole_too(ledger: Ledger) -> None:
    grant = book(ledger, 3.0, part_of("thirds", 1))
    with pytest.raises(BudgetRefused):
        book(ledger, 1.0)
    ledger.void(grant)
    book(ledger, 3.0)


def test_without_a_budget_the_first_booking_on_a_part_is_that_of_the_whole(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        ledger.declare_split("people", "thirds", parts=3)
        assert ledger.account("people") is None and not ledger.has_budget("people")
        with pytest.raises(BudgetRefused, match="not private"):
            book(ledger, math.inf, part_of("thirds", 1))
        book(ledger, 1.0, part_of("thirds", 1))
        book(ledger, 1.0, part_of("thirds", 2))
        with pytest.raises(BudgetRefused):
            book(ledger, 0.1, part_of("thirds", 1))
        with pytest.raises(BudgetRefused):
            book(ledger, 0.1)
        found = account(ledger)
        assert (found.epsilon, found.spent_epsilon, found.own_budget, found.rule) == (1.0, 1.0, False, "sum")


# What is a part, and what is not


def test_a_name_with_slashes_is_a_whole_until_a_split_says_otherwise(ledger: Ledger) -> None:
    for name in ("people/other/1", "people/stage-1", "people/thirds/4", "people/thirds/01"):
        book(ledger, 3.0, dataset=name)
        assert account(ledger, name).parent is None and not ledger.is_part(name)
    assert account(ledger).spent_epsilon == 0.0
    with pytest.raises(BadInput, match="can be no part"):
        ledger.declare_split("people", "other", parts=2)


def test_records_that_are_not_given_as_the_part_are_not_booked_on_it(ledger: Ledger) -> None:
    with pytest.raises(RunConflict, match="not given as that part"):
        book(ledger, 1.0, dataset="people/thirds/1")
    assert account(ledger).spent_epsilon == 0.0


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (PartOf(parent="people", split="thirds", part=4), BadInput),
        (PartOf(parent="people", split="thirds", part=0), BadInput),
        (PartOf(parent="people", split="fifths", part=1), BadInput),
        (PartOf(parent="others", split="thirds", part=1), BadInput),
        (PartOf(parent="people", split="kinds", part=1, classes=(0, 2)), WallBreach),
        (PartOf(parent="people", split="kinds", part=1), WallBreach),
        (PartOf(parent="people", split="thirds", part=1, classes=(0, 1)), WallBreach),
    ],
)
def test_a_part_that_no_split_declares_is_refused(ledger: Ledger, part: PartOf, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        book(ledger, 1.0, part)
    with pytest.raises(kind):
        ledger.check([Wanted(dataset=part.account, plan="{}", epsilon=1.0, delta=0.0, counts={}, part=part)])
    assert account(ledger).spent_epsilon == 0.0


def test_a_part_is_booked_under_its_own_name_only(ledger: Ledger) -> None:
    with pytest.raises(BadInput):
        ledger.book(
            "people/thirds/2", plan="{}", method="dm", epsilon=1.0, delta=0.0, counts={}, part=part_of("thirds", 1)
        )


def test_the_same_split_again_is_the_same_and_another_one_is_refused(ledger: Ledger) -> None:
    first = ledger.split("people", "thirds")
    assert first is not None and ledger.declare_split("people", "thirds", parts=3) == first
    assert len(first.secret) == 32 and repr(first.secret) not in repr(first) and "secret" not in repr(first)
    assert ledger.declare_split("people", "kinds", classes=[list(part) for part in CLASSES]).parts == CLASSES
    other = ledger.declare_split("others", "thirds", parts=3)
    assert other.secret != first.secret
    for name, values in {
        "thirds": [{"parts": 4}, {"classes": CLASSES}],
        "kinds": [
            {"classes": CLASSES[:2]},
            {"classes": CLASSES[::-1]},
            {"parts": 3},
            {"classes": CLASSES, "unit": "person"},
        ],
    }.items():
        for value in values:
            with pytest.raises(BadInput, match="already"):
                ledger.declare_split("people", name, **value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "values",
    [
        {"classes": [[0, 1], [1, 2]]}, {"classes": [[0, 0], [1]]}, {"classes": [[0], []]}, {"classes": [[0, 1]]},
        {"classes": [[-1], [1]]}, {"classes": []}, {"parts": 1}, {"parts": 0}, {"parts": 10_001}, {"parts": True},
        {}, {"parts": 2, "classes": [[0], [1]]},
    ],
)  # fmt: skip
def test_bad_splits(ledger: Ledger, values: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        ledger.declare_split("people", "new", **values)  # type: ignore[arg-type]
    assert ledger.split("people", "new") is None


@pytest.mark.parametrize("name", ["", "a/b", " a", "-a", "earlier stages", "a\n", "x" * 65, None])
def test_bad_names_of_splits(ledger: Ledger, name: str) -> None:
    with pytest.raises(BadInput):
        ledger.declare_split("people", name, parts=2)


def test_what_is_booked_below_an_account_keeps_it_from_becoming_a_part(tmp_path: Path) -> None:
    """Its first booking is its budget; as a part it would have that of another data set instead."""
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        ledger.declare_split("people/thirds/1", "deep", parts=2)
        deep = part_of("deep", 1, "people/thirds/1")
        book(ledger, 1.0, deep)
        ledger.set_budget("people", 9.0, 1e-4)
        with pytest.raises(BadInput, match="can be no part"):
            ledger.declare_split("people", "thirds", parts=3)
        with pytest.raises(BudgetRefused):
            book(ledger, 0.5, deep)


def read_as(reading: str) -> str:
    return json.dumps({"plan": {}, "reading": reading})


def test_parts_that_were_not_read_alike_are_not_disjoint(ledger: Ledger) -> None:
    def wanted(part: PartOf, reading: str) -> Wanted:
        return Wanted(dataset=part.account, plan=read_as(reading), epsilon=1.0, delta=1e-6, counts={}, part=part)

    def booked(part: PartOf, reading: str) -> str:
        return ledger.book(
            part.account, plan=read_as(reading), method="m", epsilon=1.0, delta=1e-6, counts={}, part=part
        )

    ledger.declare_split("people/thirds/1", "deep", parts=2)
    first = booked(part_of("deep", 1, "people/thirds/1"), "a")
    for part in (part_of("thirds", 2), part_of("thirds", 1), part_of("deep", 2, "people/thirds/1")):
        with pytest.raises(RunConflict, match=r"schema of 'people.*' was changed"):
            booked(part, "b")
        with pytest.raises(RunConflict, match="may be in two parts"):
            ledger.check([wanted(part, "b")])
        with pytest.raises(RunConflict):
            book(ledger, 1.0, part)
    booked(part_of("kinds", 1), "b")  # another split, which adds up
    booked(part_of("thirds", 2), "a")
    assert account(ledger).spent_epsilon == 2.0
    with Ledger.open(ledger.path) as other:
        other.void(first)
    with pytest.raises(RunConflict):
        booked(part_of("thirds", 3), "b")


def test_parts_that_add_up_may_be_read_in_any_way(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        ledger.set_budget("people", 3.0, 3e-5)
        ledger.declare_split("people", "kinds", classes=CLASSES, unit="patient")
        for number, reading in ((1, "a"), (2, "b")):
            part = part_of("kinds", number, unit="patient")
            ledger.book(part.account, plan=read_as(reading), method="m", epsilon=1.0, delta=0.0, counts={}, part=part)
        assert account(ledger).spent_epsilon == 2.0


# Many plans at once, by any way


def test_plans_are_checked_together_and_nothing_is_booked(ledger: Ledger) -> None:
    def wanted(epsilon: float, part: int) -> Wanted:
        place = part_of("thirds", part)
        return Wanted(dataset=place.account, plan="{}", epsilon=epsilon, delta=1e-6, counts={}, part=place)

    ledger.check([wanted(3.0, 1), wanted(2.0, 2), wanted(1.0, 2), wanted(1.5, 3)])
    with pytest.raises(BudgetRefused, match="these 3 plans") as refused:
        ledger.check([wanted(3.0, 1), wanted(2.0, 2), wanted(1.5, 2)])
    assert refused.value.next_command == "limbeck budget set people --epsilon 3.5 --delta 3e-05"
    assert account(ledger).spent_epsilon == 0.0


def brute_force(bookings: list[tuple[str, Fraction]]) -> Fraction:
    """The dearest path of any one record: one part of each split, and one of each split of that part."""
    best = Fraction(0)
    for third in (1, 2, 3):
        for kind in (1, 2, 3):
            for deep in (1, 2):
                mine = {"people", f"people/thirds/{third}", f"people/kinds/{kind}"}
                if third == 1:
                    mine.add(f"people/thirds/1/deep/{deep}")
                best = max(best, sum((price for name, price in bookings if name in mine), Fraction(0)))
    return best


@pytest.mark.parametrize("seed", range(6))
def test_no_record_ever_pays_more_than_the_budget(ledger: Ledger, seed: int) -> None:
    """Against all records there could be, one by one."""
    ledger.file.connection.execute("PRAGMA synchronous = OFF")
    ledger.declare_split("people/thirds/1", "deep", parts=2)
    places = [None, *(part_of("thirds", n) for n in (1, 2, 3)), *(part_of("kinds", n) for n in (1, 2, 3))]
    places += [part_of("deep", n, "people/thirds/1") for n in (1, 2)]
    draw, booked, refused = random.Random(seed), [], 0
    for _ in range(40):
        part, epsilon = draw.choice(places), round(draw.uniform(0.05, 0.8), 2)
        name = "people" if part is None else part.account
        tried = [*booked, (name, Fraction(repr(epsilon)))]
        try:
            book(ledger, epsilon, part, delta=1e-9)
            booked = tried
        except BudgetRefused:
            refused += 1
            assert brute_force(tried) > 3
        assert brute_force(booked) <= 3
        assert Fraction(repr(account(ledger).spent_epsilon_sum)) == brute_force(booked)
        left = account(ledger, name).remaining_epsilon
        if left > 0:
            ledger.check([Wanted(dataset=name, plan="{}", epsilon=left, delta=1e-9, counts={}, part=part)])
    assert refused > 3


# Races


def test_only_one_of_a_part_and_the_whole_gets_the_last_epsilon(tmp_path: Path) -> None:
    place, rounds = tmp_path / "ledger.sqlite", 20
    with Ledger.open(place) as ledger:
        for number in range(rounds):
            ledger.set_budget(f"set{number}", 1.0, 1e-5)
            ledger.declare_split(f"set{number}", "a", parts=2)
            ledger.declare_split(f"set{number}", "b", parts=2)
    outputs = race(
        "from limbeck.privacy.part import PartOf\n"
        "me = int(sys.argv[2])\n"
        f"for i in range({rounds}):\n"
        "    part = None if me == 0 else PartOf(parent=f'set{i}', split='ab'[me - 1], part=1)\n"
        "    name = f'set{i}' if part is None else part.account\n"
        "    try:\n"
        "        ledger.book(name, plan='{}', method='dm', epsilon=0.6, delta=1e-6, counts={}, part=part)\n"
        "        print('won')\n"
        "    except BudgetRefused:\n"
        "        print('lost')\n",
        place,
        3,
    )
    for results in zip(*(output.split() for output in outputs), strict=True):
        assert sorted(results) == ["lost", "lost", "won"]
    with Ledger.open(place) as ledger:
        assert {account(ledger, f"set{number}").spent_epsilon for number in range(rounds)} == {0.6}


def test_siblings_race_without_taking_each_others_share(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    with Ledger.open(place) as ledger:
        ledger.set_budget("people", 1.0, 1e-4)
        ledger.declare_split("people", "thirds", parts=3)
    outputs = race(
        "from limbeck.privacy.part import PartOf\n"
        "part, won = PartOf(parent='people', split='thirds', part=int(sys.argv[2]) % 2 + 1), 0\n"
        "for i in range(10):\n"
        "    try:\n"
        "        ledger.book(part.account, plan='{}', method='dm', epsilon=0.2, delta=1e-6, counts={}, part=part)\n"
        "        won += 1\n"
        "    except BudgetRefused:\n"
        "        pass\n"
        "print(won)\n",
        place,
        4,
    )
    won = [int(output) for output in outputs]
    assert won[0] + won[2] == won[1] + won[3] == 5


def test_a_split_is_declared_once_by_however_many(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    Ledger.open(place).close()
    outputs = race("print(ledger.declare_split('people', 'thirds', parts=3).secret.hex())", place, 4)
    assert len(set(outputs)) == 1


# The file defends the new tables


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM splits", "UPDATE splits SET disjoint = 'yes'", "UPDATE splits SET secret = ''", "DELETE FROM rules",
        "UPDATE rules SET rule = 'renyi'", "UPDATE rules SET alpha = '3'",
        "INSERT OR REPLACE INTO splits SELECT number, dataset, name, kind, '9', disjoint, secret, created, previous, digest"
        " FROM splits",
        "INSERT OR REPLACE INTO splits SELECT number + 9, dataset, name, kind, '9', disjoint, secret, created, previous, digest"
        " FROM splits",
        "INSERT OR REPLACE INTO splits SELECT (SELECT MAX(number) + 1 FROM splits), dataset, name, kind, '9', disjoint, secret,"
        " created, previous, digest FROM splits LIMIT 1",
        "INSERT OR REPLACE INTO rules SELECT number, dataset, budget, booking, 'renyi', alpha, created, previous, digest"
        " FROM rules",
        "INSERT INTO rules SELECT number + 1, dataset, '77', booking, rule, alpha, created, previous, digest FROM rules",
        "INSERT INTO rules SELECT number + 1, dataset, budget, '77', rule, alpha, created, previous, digest FROM rules",
        "INSERT INTO rules SELECT number + 1, 'other', budget, booking, rule, alpha, created, previous, digest FROM rules",
    ],
)  # fmt: skip
def test_triggers_refuse(ledger: Ledger, statement: str) -> None:
    book(ledger, 1.0)
    ledger.close()
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
        before = list(connection.iterdump())
        assert any('INSERT INTO "rules"' in line for line in before)
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
        assert list(connection.iterdump()) == before
    Ledger.open(ledger.path).close()
