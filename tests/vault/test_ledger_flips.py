"""One flipped bit anywhere in the ledger: it is noticed, or nothing changes. Nothing is forgotten, nothing drawn twice."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from limbeck.errors import BudgetRefused, LedgerFault, RunConflict
from limbeck.privacy.part import PartOf
from limbeck.privacy.queries import ClippedSum
from limbeck.vault.ledger import Account, Ledger

PAGE = 4096
FLIPS_PER_PAGE = 24
SECRETS: dict[str, bytes] = {}
ANSWERS = 4


PLACES = (
    PartOf(parent="apart", split="halves", part=1),
    PartOf(parent="apart", split="halves", part=2),
    PartOf(parent="apart", split="kinds", part=1, classes=(0, 1), unit="person"),
    PartOf(parent="apart", split="kinds", part=2, classes=(2,), unit="person"),
)
QUERY = ClippedSum(label="sum", map="identity", clip=1.0, noise_multiplier=6.0)
PLAN = json.dumps({"plan": {"queries": [QUERY.to_dict()]}})


def book_tight(ledger: Ledger, place: PartOf | None) -> None:
    """On a part of one account, by plain sums; or on another one, which its plans bind to the filter."""
    ledger.book(
        "tight" if place is None else place.account, plan=PLAN if place is None else "{}", method="dm", epsilon=1.0,
        delta=1e-6, counts={"sum": 1}, part=place,
    )  # fmt: skip


def payload(index: int) -> bytes:
    return random.Random(index).randbytes(2_000)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[Account]]:
    """A ledger with every kind of row, free pages, and budgets that are used up; and its true accounts."""
    path = tmp_path_factory.mktemp("whole") / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        for name in ("digits", "people", "apart", "tight"):
            ledger.set_budget(name, 1.0, 1e-5)
            ledger.set_budget(name, 3.0, 1e-5)
        ledger.declare_split("apart", "halves", parts=2)
        ledger.declare_split("apart", "kinds", classes=[[0, 1], [2]], unit="person")
        for place in PLACES:
            book_tight(ledger, place)
        while True:
            try:
                book_tight(ledger, None)
            except BudgetRefused:
                break
        for grant, dataset, epsilon in (
            ("old", "digits", 1.0), ("kept", "digits", 2.0), ("void", "people", 1.0), ("all", "people", 3.0),
            ("none", "first", 0.5),
        ):  # fmt: skip
            ledger.book(
                dataset, plan="{}", method="dm", epsilon=epsilon, delta=1e-6, counts={"sum": ANSWERS}, grant=grant
            )
            if grant == "void":
                ledger.void(grant)
        for index in range(ANSWERS):
            ledger.store("old", "sum", index, map_digest="m", payload=bytes(9_000))
            ledger.store("kept", "sum", index, map_digest="m", payload=payload(index))
        ledger.finish("old")  # leaves free pages
        ledger.forget("kept", "sum", 1)
        accounts = ledger.accounts()
        assert {account.dataset: account.rule for account in accounts}["tight"] == "renyi"
        for name in ("halves", "kinds"):
            split = ledger.split("apart", name)
            assert split is not None
            SECRETS[name] = split.secret
    return path.read_bytes(), accounts


def flips(content: bytes, seed: int) -> Iterator[tuple[int, int]]:
    """Places and bits, in every page: some in its head, some where something is written; and in every booking's state."""
    draw = random.Random(seed)
    for found in re.finditer(rb"open|finished|void", content):
        yield from ((at, draw.randrange(8)) for at in range(*found.span()))
    for start in range(0, len(content), PAGE):
        written = [at for at in range(start, start + PAGE) if content[at]] or [start]
        for number in range(FLIPS_PER_PAGE):
            yield draw.choice(written) if number % 3 else start + draw.randrange(120), draw.randrange(8)


def test_a_flipped_bit_is_noticed_or_changes_nothing(whole: tuple[bytes, list[Account]], tmp_path: Path) -> None:
    content, accounts = whole
    path, refused, tried = tmp_path / "ledger.sqlite", 0, 0
    for at, bit in flips(content, seed=22):
        flipped = bytearray(content)
        flipped[at] ^= 1 << bit
        path.write_bytes(flipped)
        tried += 1
        where = f"bit {bit} of byte {at}"
        try:
            with Ledger.open_to_read(path) as ledger:
                assert ledger.accounts() == accounts, where
            with Ledger.open(path) as ledger:
                assert ledger.accounts() == accounts, where
                assert [ledger.account(found.dataset) for found in accounts] == accounts, where
                assert ledger.drawn("kept") == ledger.drawn("old") == {"sum": ANSWERS}, where
                refuses_a_second_draw(ledger, where)
                refuses_to_spend_more(ledger, where)
                assert ledger.accounts() == accounts, where
        except LedgerFault:
            refused += 1
        finally:
            for companion in tmp_path.glob("ledger.sqlite-*"):
                companion.unlink()
    assert tried > 500 and refused > tried // 4


def refuses_a_second_draw(ledger: Ledger, where: str) -> None:
    with pytest.raises(RunConflict, match="forgotten"):
        ledger.store("kept", "sum", 0, map_digest="m", payload=b"second")
    for index in range(1, ANSWERS):
        try:
            assert ledger.store("kept", "sum", index, map_digest="m", payload=b"second") == payload(index), where
            found = ledger.fetch("kept", "sum", index)
            assert found is not None and found.payload == payload(index), where
        except RunConflict as conflict:
            # The digest of the question has no digest of its own: damaged, it refuses the answer to everybody.
            assert "another question" in conflict.message, where


def refuses_to_spend_more(ledger: Ledger, where: str) -> None:
    for dataset in ("digits", "people", "first"):
        with pytest.raises(BudgetRefused):
            ledger.book(dataset, plan="{}", method="dm", epsilon=0.01, delta=1e-9, counts={"sum": 1})
    # Halves cost 1, kinds 2: nothing is left, neither of the whole nor of a part that counts.
    for place in PLACES:
        with pytest.raises(BudgetRefused):
            book_tight(ledger, place)
    with pytest.raises(BudgetRefused):
        book_tight(ledger, None)
    for name, secret in SECRETS.items():
        split = ledger.split("apart", name)
        assert split is not None and split.secret == secret, where
    with pytest.raises(RunConflict):
        ledger.book("people", plan="{}", method="dm", epsilon=1.0, delta=1e-6, counts={"sum": 1}, grant="void")
