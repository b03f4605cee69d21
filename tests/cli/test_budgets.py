"""budget set, show and void: who may make a ledger, and which bookings are given back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from limbeck.vault.ledger import Ledger

Cli = Callable[..., Any]


def book(ledger: Ledger, grant: str, dataset: str = "people", epsilon: float = 0.5) -> None:
    ledger.book(
        dataset, plan="{}", method="ldpdc", epsilon=epsilon, delta=1e-6, counts={"sum": 2, "none": 1}, grant=grant
    )


@pytest.fixture
def books() -> None:
    """The default ledger: a booking of every kind."""
    with Ledger.open() as ledger:
        ledger.set_budget("people", 2.0, 1e-4)
        for grant in ("lost", "begun", "forgotten", "finished"):
            book(ledger, grant)
        for grant in ("begun", "forgotten", "finished"):
            ledger.store(grant, "sum", 0, map_digest="m", payload=b"answer")
        ledger.forget("forgotten", "sum", 1)
        ledger.finish("finished")


# Who makes a ledger


def test_to_look_where_no_ledger_is_yet_is_no_error_and_makes_none(cli: Cli, own_home: Path) -> None:
    shown = cli("budget", "show")
    assert shown.code == 0 and "There is no ledger yet" in shown.out and "No data set has a budget yet" in shown.out
    values = cli("budget", "show", "--json").json
    assert values["accounts"] == [] and values["ledger_exists"] is False
    assert cli("budget", "show", "people").code == 4
    assert not list(own_home.iterdir())


def test_a_named_ledger_that_is_missing_is_an_error(cli: Cli, tmp_path: Path) -> None:
    typo = tmp_path / "typo.sqlite"
    for words in (("budget", "show"), ("budget", "show", "people"), ("budget", "void", "people", "lost")):
        refused = cli(*words, "--ledger", typo)
        assert refused.code == 5 and f"There is no ledger at {typo}" in refused.err and "next: limbeck" in refused.err
    assert not typo.exists()


def test_a_folder_that_is_missing_is_not_made(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a disk is not mounted."""
    place = tmp_path / "disk" / "ledger.sqlite"
    for words in (
        ("budget", "show"),
        ("budget", "set", "digits", "--epsilon", 1),
        ("condense", "digits", "--method", "ldpdc", "--epsilon", 1, "--out", tmp_path / "out"),
    ):
        refused = cli(*words, "--ledger", place)
        assert refused.code == 5 and "disk" in refused.err and "connect" in refused.err
    monkeypatch.setenv("LIMBECK_LEDGER", str(place))
    for words in (("budget", "show"), ("budget", "set", "digits", "--epsilon", 1)):
        assert cli(*words).code == 5
    assert not place.parent.exists() and not (tmp_path / "out").exists()


def test_the_first_ledger_in_the_users_own_data_folder_is_made_with_its_folder(
    cli: Cli, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LIMBECK_LEDGER")
    monkeypatch.setenv("XDG_DATA_HOME", str(own_home / "data"))
    assert cli("budget", "show").code == 0 and not list(own_home.iterdir())
    assert cli("budget", "set", "digits", "--epsilon", 1).code == 0
    assert (own_home / "data" / "limbeck" / "ledger.sqlite").exists()


def test_whoever_makes_a_ledger_says_so(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "new.sqlite"
    first = cli("budget", "set", "digits", "--epsilon", 5, "--ledger", place, "--json")
    assert first.json["ledger_created"] is True and f"There was no ledger at {place}" in first.err
    again = cli("budget", "set", "digits", "--epsilon", 6, "--ledger", place, "--json")
    assert again.json["ledger_created"] is False and "ledger" not in again.err
    words = ("condense", "digits", "--method", "ldpdc", "--epsilon", 1, "--set", "per_class=2", "--set", "L=999")
    made = cli(*words, "--out", tmp_path / "a", "--ledger", tmp_path / "other.sqlite", "--json")
    assert made.code == 0 and made.json["ledger_created"] is True and "There was no ledger" in made.err
    known = cli(*words, "--out", tmp_path / "b", "--ledger", place, "--json")
    assert known.json["ledger_created"] is False and "There was no ledger" not in known.err


def test_a_run_is_not_resumed_with_a_new_ledger(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> bytes:
        raise KeyboardInterrupt

    out, place = tmp_path / "out", tmp_path / "ledger.sqlite"
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "store", stopped)
        words = ("--method", "ldpdc", "--epsilon", 1, "--set", "per_class=2", "--set", "L=999")
        assert cli("condense", "digits", *words, "--out", out, "--ledger", place).code == 130
    away = place.rename(tmp_path / "away.sqlite")
    for words in ((), ("--ledger", tmp_path / "typo.sqlite")):
        refused = cli("resume", out, *words)
        assert refused.code == 5 and "There is no ledger" in refused.err and "--ledger FILE" in refused.err
    assert not place.exists() and not (tmp_path / "typo.sqlite").exists()
    assert cli("resume", out, "--ledger", away).code == 0


def test_the_price_of_a_sweep_makes_no_ledger(cli: Cli, tmp_path: Path, own_home: Path) -> None:
    words = ("sweep", "digits", "--method", "ldpdc", "--vary", "sigma=2,3", "--set", "L=999", "--out", tmp_path / "out")
    assert cli(*words, "--price").code == 0
    assert cli(*words).code == 3
    assert not list(own_home.iterdir())


# Giving back


def test_open_bookings_are_listed_with_their_names(cli: Cli, books: None) -> None:
    shown = cli("budget", "show", "people").out
    assert all(grant in shown for grant in ("lost", "begun", "forgotten")) and "finished" not in shown
    assert "limbeck budget void" in shown
    bookings = cli("budget", "show", "people", "--json").json["bookings"]
    assert {b["grant"]: b["answers"] for b in bookings} == {"lost": 0, "begun": 1, "forgotten": 1, "finished": 1}


def test_a_booking_without_an_answer_is_given_back_and_stays_on_record(cli: Cli, books: None) -> None:
    values = cli("budget", "void", "people", "lost", "--json").json
    assert (values["booking"], values["state"]) == ("lost", "void") and values["account"]["spent_epsilon"] == 1.5
    with Ledger.open() as ledger:
        account = ledger.account("people")
        assert account is not None and account.spent_epsilon == 1.5
        assert [b.state for b in account.bookings] == ["void", "open", "open", "finished"]
        with pytest.raises(Exception, match="void"):
            ledger.store("lost", "sum", 0, map_digest="m", payload=b"late")
        book(ledger, "next")
    assert "was given back" in cli("budget", "void", "people", "next").out


@pytest.mark.parametrize(
    ("words", "code", "shown"),
    [
        (("people", "begun"), 3, "already answered"), (("people", "forgotten"), 3, "already answered"),
        (("people", "finished"), 3, "finished"), (("people", "unknown"), 4, "no booking 'unknown'"),
        (("others", "lost"), 4, "no booking 'lost'"), (("-people", "lost"), 2, ""), (("people",), 2, ""),
    ],
)  # fmt: skip
def test_every_other_booking_is_refused(
    cli: Cli, books: None, words: tuple[str, ...], code: int, shown: str, own_home: Path
) -> None:
    before = cli("budget", "show", "--json").json
    refused = cli("budget", "void", *words)
    assert refused.code == code and shown in refused.err and "Traceback" not in refused.err
    assert cli("budget", "show", "--json").json == before


def test_a_booking_is_given_back_once(cli: Cli, books: None) -> None:
    assert cli("budget", "void", "people", "lost").code == 0
    again = cli("budget", "void", "people", "lost")
    assert again.code == 3 and "before" in again.err


def test_the_first_booking_given_back_leaves_no_budget(cli: Cli) -> None:
    with Ledger.open() as ledger:
        book(ledger, "only", "unset")
    assert cli("budget", "void", "unset", "only", "--json").json["account"] is None
    assert cli("budget", "show", "unset").code == 4


def test_a_run_whose_booking_was_given_back_gets_nothing_and_books_anew(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given back while the run is alive, before its first answer; then it is resumed."""
    out, words = tmp_path / "out", ("--method", "ldpdc", "--epsilon", 1, "--set", "per_class=2", "--set", "L=999")
    store = Ledger.store

    def stopped(*_: Any, **__: Any) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "store", stopped)
        assert cli("condense", "digits", *words, "--out", out).code == 130
    grant = json.loads((out / ".run" / "run.json").read_text())["grant"]

    def voided_first(self: Ledger, given: str, *arguments: Any, **named: Any) -> bytes:
        self.give_back("digits", given)
        return store(self, given, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "store", voided_first)
        ended = cli("resume", out)
        assert ended.code == 8 and "was given back" in ended.err
    with Ledger.open() as ledger:
        assert ledger.state(grant) == "void" and not any(ledger.drawn(grant).values())
    assert cli("resume", out).code == 0
    with Ledger.open() as ledger:
        account = ledger.account("digits")
        assert account is not None and [b.state for b in account.bookings] == ["void", "finished"]
