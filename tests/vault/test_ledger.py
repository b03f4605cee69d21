"""The rules of the ledger: exact budgets, single use, first answer stays, and a file that defends itself."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import random
import sqlite3
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limbeck.errors import BadInput, BudgetRefused, LedgerFault, RunConflict, WallBreach
from limbeck.vault.ledger import Ledger, default_path
from limbeck.vault.ledger.tables import chain_digest

SUBNORMAL = 5e-324


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder" / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger.open(path) as opened:
        yield opened


def book(ledger: Ledger, epsilon: float, delta: float = 0.0, dataset: str = "digits", **counts: int) -> str:
    return ledger.book(dataset, plan="{}", method="dm", epsilon=epsilon, delta=delta, counts=counts or {"sum": 3})


def raw(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def made(path: Path, answers: int = 0) -> str:
    """A closed ledger with a budget and one booking, and its grant."""
    with Ledger.open(path) as ledger:
        ledger.set_budget("digits", 1.0, 1e-5)
        grant = book(ledger, 1.0, 1e-5, sum=max(answers, 1))
        for index in range(answers):
            ledger.store(grant, "sum", index, map_digest="m", payload=random.Random(index).randbytes(20_000))
    return grant


# Where the file is


def test_default_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("LIMBECK_LEDGER", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert default_path() == tmp_path / ".local/share/limbeck/ledger.sqlite"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert default_path() == tmp_path / ".local/share/limbeck/ledger.sqlite"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_path() == tmp_path / "data/limbeck/ledger.sqlite"
    monkeypatch.setenv("LIMBECK_LEDGER", str(tmp_path / "mine.sqlite"))
    assert default_path() == tmp_path / "mine.sqlite"
    with Ledger.open() as ledger:
        assert ledger.path == tmp_path / "mine.sqlite"


def test_file_is_for_its_owner_only_and_alone(path: Path) -> None:
    made(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == [path.name]
    path.chmod(0o644)
    Ledger.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_file_is_durable(ledger: Ledger) -> None:
    connection = ledger.file.connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)


# Budgets and sums


def test_ten_times_a_tenth_is_one(ledger: Ledger) -> None:
    ledger.set_budget("digits", 1.0, 1e-5)
    for _ in range(10):
        book(ledger, 0.1, 1e-6)
    account = ledger.account("digits")
    assert account is not None
    assert (account.spent_epsilon, account.spent_delta) == (1.0, 1e-5)
    assert (account.remaining_epsilon, account.remaining_delta) == (0.0, 0.0)
    with pytest.raises(BudgetRefused):
        book(ledger, 2.3e-308)


def test_huge_and_tiny_spends_are_not_swallowed(ledger: Ledger) -> None:
    ledger.set_budget("digits", 1e300, 0.5)
    book(ledger, 1e-300, 0.1)
    with pytest.raises(BudgetRefused) as refused:
        book(ledger, 1e300)
    # The sum is not a float; the command that would suffice rounds up, and it does suffice.
    assert (
        refused.value.next_command
        == f"limbeck budget set digits --epsilon {math.nextafter(1e300, math.inf)!r} --delta 0.5"
    )
    account = ledger.account("digits")
    assert account is not None and account.remaining_epsilon < 1e300
    book(ledger, account.remaining_epsilon)


def test_refusal_says_requested_remaining_difference_and_the_command(ledger: Ledger) -> None:
    ledger.set_budget("my digits", 1.0, 1e-5)
    book(ledger, 0.7, 1e-6, dataset="my digits")
    with pytest.raises(BudgetRefused) as refused:
        book(ledger, 0.5, 1e-6, dataset="my digits")
    assert "epsilon requested 0.5, remaining 0.3, difference 0.2" in refused.value.message
    assert "delta requested" not in refused.value.message
    assert refused.value.next_command == "limbeck budget set 'my digits' --epsilon 1.2 --delta 1e-05"
    with pytest.raises(BudgetRefused) as refused:
        book(ledger, 0.5, 1e-5, dataset="my digits")
    assert "delta requested 1e-05, remaining 9e-06, difference 1e-06" in refused.value.message
    assert refused.value.next_command == "limbeck budget set 'my digits' --epsilon 1.2 --delta 1.1e-05"
    ledger.set_budget("my digits", 1.2, 1.1e-5)
    book(ledger, 0.5, 1e-5, dataset="my digits")


def test_no_command_where_no_budget_suffices(ledger: Ledger) -> None:
    ledger.set_budget("digits", 9.0, 0.9)
    book(ledger, 1.0, 0.9)
    with pytest.raises(BudgetRefused, match="No budget can allow it") as refused:
        book(ledger, 1.0, 0.9)
    assert refused.value.next_command is None


def test_first_booking_sets_the_budget(ledger: Ledger) -> None:
    assert ledger.account("digits") is None
    book(ledger, 0.5, 1e-6)
    account = ledger.account("digits")
    assert account is not None
    assert (account.epsilon, account.delta) == (0.5, 1e-6)
    assert [(b.epsilon, b.delta, b.method, b.state) for b in account.bookings] == [(0.5, 1e-6, "dm", "open")]
    with pytest.raises(BudgetRefused):
        book(ledger, 0.5, 1e-6)
    assert ledger.accounts() == [account]


def test_a_first_booking_given_back_leaves_no_budget(ledger: Ledger) -> None:
    ledger.void(book(ledger, 1.0, 1e-5))
    assert ledger.account("digits") is None and ledger.accounts() == []
    book(ledger, 3.0, 1e-6)
    account = ledger.account("digits")
    assert account is not None and (account.epsilon, account.delta, account.remaining_epsilon) == (3.0, 1e-6, 0.0)
    with pytest.raises(BudgetRefused):
        book(ledger, 1e-9)


def test_a_budget_that_the_owner_set_outlives_a_booking_given_back(ledger: Ledger) -> None:
    grant = book(ledger, 1.0, 1e-5)
    ledger.set_budget("digits", 1.0, 1e-5)
    ledger.void(grant)
    account = ledger.account("digits")
    assert account is not None and (account.epsilon, account.remaining_epsilon) == (1.0, 1.0)


def test_budgets_of_data_sets_are_separate(ledger: Ledger) -> None:
    book(ledger, 0.5, dataset="b")
    book(ledger, 1.5, dataset="a")
    assert [(a.dataset, a.spent_epsilon) for a in ledger.accounts()] == [("a", 1.5), ("b", 0.5)]


@pytest.mark.parametrize("epsilon", [0.0, -0.0, -1.0, math.nan, -math.inf, SUBNORMAL, 2e-308, "1", None, True, 10**400])
def test_bad_epsilon(ledger: Ledger, epsilon: float) -> None:
    ledger.set_budget("digits", math.inf, 0.5)
    with pytest.raises(BadInput):
        book(ledger, epsilon)
    with pytest.raises(BadInput):
        ledger.set_budget("digits", epsilon, 0.5)
    account = ledger.account("digits")
    assert account is not None and account.bookings == () and account.epsilon == math.inf


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 2.0, math.nan, math.inf, SUBNORMAL, "0", None])
def test_bad_delta(ledger: Ledger, delta: float) -> None:
    ledger.set_budget("digits", 1.0, 0.5)
    with pytest.raises(BadInput):
        book(ledger, 0.1, delta)
    with pytest.raises(BadInput):
        ledger.set_budget("digits", 1.0, delta)
    account = ledger.account("digits")
    assert account is not None and account.bookings == ()


def test_infinite_spend_needs_an_infinite_budget(ledger: Ledger) -> None:
    with pytest.raises(BudgetRefused) as refused:
        book(ledger, math.inf)
    assert refused.value.next_command == "limbeck budget set digits --epsilon inf --delta 0.0"
    assert ledger.account("digits") is None
    ledger.set_budget("digits", 1.0, 0.0)
    with pytest.raises(BudgetRefused, match=r"requested inf, remaining 1\.0, difference inf"):
        book(ledger, math.inf)
    ledger.set_budget("digits", math.inf, 0.0)
    book(ledger, math.inf)
    book(ledger, 2.0)
    account = ledger.account("digits")
    assert account is not None and account.spent_epsilon == account.remaining_epsilon == math.inf
    with pytest.raises(BudgetRefused):
        ledger.set_budget("digits", 1e308, 0.0)


def test_budget_never_below_spent_and_history_stays(ledger: Ledger, path: Path) -> None:
    ledger.set_budget("digits", 1.0, 1e-5)
    book(ledger, 0.6, 1e-6)
    for epsilon, delta in [(0.5, 1e-5), (1.0, 1e-7)]:
        with pytest.raises(BudgetRefused, match="already spent") as refused:
            ledger.set_budget("digits", epsilon, delta)
    assert refused.value.next_command == "limbeck budget set digits --epsilon 1.0 --delta 1e-06"
    assert ledger.set_budget("digits", 0.6, 1e-6).remaining_epsilon == 0.0
    ledger.set_budget("digits", 0.6, 1e-6)
    with closing(raw(path)) as connection:
        rows = connection.execute("SELECT epsilon, delta FROM budgets ORDER BY number").fetchall()
    assert rows == [("1.0", "1e-05"), ("0.6", "1e-06")]


@pytest.mark.parametrize("name", ["", " a", "a ", "-a", "a\nb", "a\0", "\ud800", None])
def test_bad_names(ledger: Ledger, name: str) -> None:
    with pytest.raises(BadInput):
        book(ledger, 1.0, dataset=name)


def test_names_that_look_the_same_share_a_budget(ledger: Ledger) -> None:
    book(ledger, 1.0, dataset="caf\u00e9")
    with pytest.raises(BudgetRefused):
        book(ledger, 1.0, dataset="cafe\u0301")


OPERATION = st.one_of(
    st.tuples(st.just("book"), st.floats(1e-3, 2.0), st.sampled_from([0.0, 1e-6, 3e-6])),
    st.tuples(st.just("budget"), st.floats(1e-3, 3.0), st.sampled_from([0.0, 1e-6, 1e-5])),
    st.tuples(st.sampled_from(["void", "finish", "store"]), st.integers(0, 9), st.integers(0, 3)),
)


@settings(max_examples=60, deadline=None)
@given(operations=st.lists(OPERATION, min_size=1, max_size=14))
def test_no_sequence_overspends(operations: list[tuple[str, float, float]]) -> None:
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder, "l.sqlite")) as ledger:
        ledger.file.connection.execute("PRAGMA synchronous = OFF")
        grants: list[str] = []
        answered: set[str] = set()
        for name, first, second in operations:
            grant = grants[int(first) % len(grants)] if grants else ""
            try:
                if name == "book":
                    grants.append(book(ledger, first, second))
                elif name == "budget":
                    ledger.set_budget("digits", first, second)
                elif grant and name == "store":
                    ledger.store(grant, "sum", int(second), map_digest="m", payload=b"x")
                    answered.add(grant)
                elif grant:
                    (ledger.void if name == "void" else ledger.finish)(grant)
            except (BudgetRefused, WallBreach):
                pass
            account = ledger.account("digits")
            if account is not None:
                counted = [b for b in account.bookings if b.state != "void"]
                # Fractions of the printed numbers: an independent exact sum.
                assert sum(Fraction(repr(b.epsilon)) for b in counted) <= Fraction(repr(account.epsilon))
                assert sum(Fraction(repr(b.delta)) for b in counted) <= Fraction(repr(account.delta))
                assert account.remaining_epsilon >= 0.0 and account.remaining_delta >= 0.0
                assert answered <= {b.grant for b in counted}


# Grants and answers


def test_grant_tells_what_was_booked(ledger: Ledger) -> None:
    grant = ledger.book("digits", plan='{"a": 1}', method="dm", epsilon=1, delta=0, counts={"b": 2, "a": 1})
    row = ledger.grant(grant)
    assert (row.grant, row.dataset, row.plan, row.method) == (grant, "digits", '{"a": 1}', "dm")
    assert (row.epsilon, row.delta, row.counts, row.state) == (1.0, 0.0, {"a": 1, "b": 2}, "open")
    assert len(grant) == 32 and int(grant, 16)
    with pytest.raises(RunConflict, match="no booking"):
        ledger.grant("unknown")
    with pytest.raises(BadInput):
        book(ledger, 1.0, dataset="other", sum=-1)


def test_void_gives_back_only_what_was_not_answered(ledger: Ledger) -> None:
    ledger.set_budget("digits", 1.0, 0.0)
    grant = book(ledger, 1.0)
    ledger.void(grant)
    ledger.void(grant)
    account = ledger.account("digits")
    assert account is not None and account.spent_epsilon == 0.0 and account.bookings[0].state == "void"
    with pytest.raises(WallBreach):
        ledger.store(grant, "sum", 0, map_digest="m", payload=b"x")
    with pytest.raises(WallBreach):
        ledger.finish(grant)
    answered = book(ledger, 0.5)
    ledger.store(answered, "sum", 0, map_digest="m", payload=b"x")
    ledger.forget(answered, "sum", 3)
    with pytest.raises(WallBreach, match="already answered"):
        ledger.void(answered)
    finished = book(ledger, 0.5)
    ledger.finish(finished)
    with pytest.raises(WallBreach, match="finished"):
        ledger.void(finished)
    account = ledger.account("digits")
    assert account is not None and account.spent_epsilon == 1.0


def test_first_answer_stays(ledger: Ledger, path: Path) -> None:
    grant = book(ledger, 1.0)
    assert ledger.fetch(grant, "sum", 0) is None
    assert ledger.store(grant, "sum", 0, map_digest="m", payload=b"first") == b"first"
    with Ledger.open(path) as other:
        assert other.store(grant, "sum", 0, map_digest="m", payload=b"second") == b"first"
        with pytest.raises(RunConflict, match="another question"):
            other.store(grant, "sum", 0, map_digest="n", payload=b"third")
    stored = ledger.fetch(grant, "sum", 0)
    assert stored is not None and (stored.map_digest, stored.payload) == ("m", b"first")
    assert ledger.drawn(grant) == {"sum": 1}


@pytest.mark.parametrize(("label", "index"), [("sum", -1), ("sum", 3), ("sum", 2**70), ("other", 0), ("none", 0)])
def test_nothing_outside_the_plan(ledger: Ledger, label: str, index: int) -> None:
    grant = book(ledger, 1.0, sum=3, none=0)
    with pytest.raises(WallBreach):
        ledger.store(grant, label, index, map_digest="m", payload=b"x")
    with pytest.raises(WallBreach):
        ledger.fetch(grant, label, index)
    assert ledger.drawn(grant) == {"sum": 0, "none": 0}


def test_forgotten_answers_still_count(ledger: Ledger) -> None:
    grant = book(ledger, 1.0, sum=3, other=1)
    for index in range(3):
        ledger.store(grant, "sum", index, map_digest="m", payload=bytes([index]))
    ledger.store(grant, "other", 0, map_digest="m", payload=b"x")
    ledger.forget(grant, "sum", 2)
    ledger.forget(grant, "sum", -1)
    with pytest.raises(RunConflict, match="forgotten"):
        ledger.fetch(grant, "sum", 1)
    with pytest.raises(RunConflict, match="forgotten"):
        ledger.store(grant, "sum", 0, map_digest="m", payload=b"again")
    for label, index, payload in [("sum", 2, b"\x02"), ("other", 0, b"x")]:
        stored = ledger.fetch(grant, label, index)
        assert stored is not None and stored.payload == payload
    assert ledger.drawn(grant) == {"sum": 3, "other": 1}
    with pytest.raises(WallBreach):
        ledger.forget(grant, "unknown", 1)


def test_finish_closes(ledger: Ledger) -> None:
    grant = book(ledger, 1.0)
    ledger.store(grant, "sum", 0, map_digest="m", payload=b"x")
    ledger.finish(grant)
    ledger.finish(grant)
    assert ledger.grant(grant).state == "finished" and ledger.drawn(grant) == {"sum": 1}
    for index in (0, 1):
        with pytest.raises(WallBreach, match="finished"):
            ledger.store(grant, "sum", index, map_digest="m", payload=b"x")
    with pytest.raises(RunConflict, match="finished"):
        ledger.fetch(grant, "sum", 0)
    account = ledger.account("digits")
    assert account is not None and account.spent_epsilon == 1.0


def test_threads_share_a_ledger(ledger: Ledger) -> None:
    grant = book(ledger, 1.0, sum=40)
    results: list[bytes] = []

    def work(name: int) -> None:
        results.extend(ledger.store(grant, "sum", i, map_digest="m", payload=bytes([name])) for i in range(40))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = [ledger.fetch(grant, "sum", i) for i in range(40)]
    assert sorted(results) == sorted(3 * [answer.payload for answer in stored if answer is not None])


def test_a_forked_process_is_refused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: real + 1)
    with pytest.raises(WallBreach, match="forked"):
        ledger.accounts()


# The file defends itself


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM budgets",
        "DELETE FROM bookings",
        "DELETE FROM answers",
        "UPDATE budgets SET epsilon = '9'",
        "UPDATE bookings SET epsilon = '0.1'",
        "UPDATE bookings SET delta = '0', state = 'finished'",
        "UPDATE bookings SET dataset = 'other'",
        "UPDATE bookings SET counts = '{}'",
        "UPDATE bookings SET digest = ''",
        "UPDATE bookings SET number = 7",
        "UPDATE bookings SET state = 'void'",
        "UPDATE answers SET payload = x'00'",
        "UPDATE answers SET position = 2",
        "UPDATE answers SET grant_id = 'x', payload = NULL",
        "UPDATE answers SET payload_sha256 = '', payload = NULL",
        "INSERT OR REPLACE INTO budgets SELECT number, dataset, '9', delta, created, previous, digest FROM budgets",
        "INSERT OR REPLACE INTO bookings SELECT number, grant_id, dataset, plan, method, '0.1', delta, counts, created,"
        " state, previous, digest FROM bookings",
        "INSERT OR REPLACE INTO bookings SELECT number + 1, grant_id, dataset, plan, method, '0.1', delta, counts,"
        " created, state, previous, digest FROM bookings",
        "INSERT INTO bookings SELECT number + 1, 'g', dataset, plan, method, epsilon, delta, counts, created,"
        " 'void', previous, digest FROM bookings",
        "INSERT OR REPLACE INTO answers SELECT grant_id, label, position, map_digest, payload_sha256, x'00'"
        " FROM answers",
        "INSERT INTO answers VALUES ('unknown', 'sum', 0, 'm', '', x'00')",
    ],
)
def test_triggers_refuse(path: Path, statement: str) -> None:
    made(path, answers=1)
    with closing(raw(path)) as connection:
        before = list(connection.iterdump())
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
        assert list(connection.iterdump()) == before
    Ledger.open(path).close()


def test_triggers_refuse_to_reopen_a_finished_booking(path: Path) -> None:
    grant = made(path)
    with Ledger.open(path) as ledger:
        ledger.finish(grant)
    with closing(raw(path)) as connection:
        for state in ("open", "void", "finished"):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute("UPDATE bookings SET state = ?", (state,))


def tamper(path: Path, statement: str, *, keep_guards: bool = True) -> None:
    """Change rows as somebody with an SQLite shell could: take the guards away, change, put them back."""
    with closing(raw(path)) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(statement)
        for _, sql in guards if keep_guards else []:
            connection.execute(sql)


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE bookings SET epsilon = '0.01' WHERE number = 1", "row 1 of the bookings"),
        ("UPDATE bookings SET dataset = 'other' WHERE number = 2", "row 2 of the bookings"),
        ("UPDATE bookings SET number = 9 WHERE number = 2", "row 2 of the bookings"),
        ("UPDATE budgets SET epsilon = '99.0' WHERE number = 1", "row 1 of the budgets"),
        ("DELETE FROM bookings WHERE number = 2", "missing at the end of the bookings"),
        ("UPDATE bookings SET state = 'void' WHERE number = 1", "void although it was answered"),
        ("UPDATE bookings SET state = 'oxen' WHERE number = 1", "the state of booking 1 was altered|CHECK constraint"),
        ("UPDATE answers SET grant_id = 'nobody'", "belongs to no booking"),
    ],
)
def test_tampering_is_detected(path: Path, statement: str, what: str) -> None:
    made(path, answers=1)
    with Ledger.open(path) as ledger:
        book(ledger, 1.0, dataset="more")
    tamper(path, statement)
    before = path.read_bytes()
    with pytest.raises(LedgerFault, match=what):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_missing_guards_are_detected(path: Path) -> None:
    made(path)
    tamper(path, "SELECT 1", keep_guards=False)
    with pytest.raises(LedgerFault, match="guards"):
        Ledger.open(path)


def test_digest_covers_every_value() -> None:
    row = [1, "a", "b", "c"]
    changed = [[*row[:i], "x", *row[i + 1 :]] for i in range(len(row))] + [[1, "ab", "", "c"]]
    digests = {chain_digest("bookings", values) for values in [row, *changed]} | {chain_digest("budgets", row)}
    assert len(digests) == len(changed) + 2


def test_changed_payload_is_detected(path: Path) -> None:
    grant = made(path, answers=1)
    tamper(path, "UPDATE answers SET payload = x'00'")
    with Ledger.open(path) as ledger:
        with pytest.raises(LedgerFault, match="digest"):
            ledger.fetch(grant, "sum", 0)
        with pytest.raises(LedgerFault, match="digest"):
            ledger.store(grant, "sum", 0, map_digest="m", payload=b"x")


# Faults


def damaged_copies(whole: bytes) -> Iterator[tuple[str, bytes]]:
    noise = random.Random(1).randbytes
    yield "empty", b""
    yield "short", b"x"
    yield "text", b"this is a text file\n" * 500
    yield "random", noise(len(whole))
    yield "head", noise(100) + whole[100:]
    yield "head after the magic", whole[:16] + noise(84) + whole[100:]
    yield "schema page", whole[:100] + noise(3996) + whole[4096:]
    for page in range(1, 6):
        yield f"page {page}", whole[: 4096 * page] + noise(4096) + whole[4096 * (page + 1) :]
    for size in (10, 99, 100, 4096, len(whole) // 2, len(whole) - 4096, len(whole) - 1):
        yield f"truncated to {size}", whole[:size]


def test_damage_is_reported_and_left_alone(path: Path) -> None:
    made(path, answers=2)
    for name, content in damaged_copies(path.read_bytes()):
        path.write_bytes(content)
        with pytest.raises(LedgerFault) as fault:
            Ledger.open(path)
        assert str(path) in fault.value.message, name
        assert "left exactly as it is" in fault.value.message or "Nothing was changed" in fault.value.message, name
        assert path.read_bytes() == content, name


def test_damage_in_the_middle_is_never_served(path: Path) -> None:
    """Wherever noise lands, the ledger refuses, or the answers it still serves are the right ones."""
    grant = made(path, answers=3)
    whole = path.read_bytes()
    generator = random.Random(2)
    refused = 0
    for _ in range(60):
        at = generator.randrange(100, len(whole) - 40)
        content = whole[:at] + generator.randbytes(40) + whole[at + 40 :]
        path.write_bytes(content)
        try:
            with Ledger.open(path) as ledger:
                account = ledger.account("digits")
                assert account is not None and account.spent_epsilon == 1.0
                for index in range(3):
                    answer = ledger.fetch(grant, "sum", index)
                    assert answer is not None and answer.payload == random.Random(index).randbytes(20_000)
        except LedgerFault:
            refused += 1
        assert path.read_bytes() == content
    assert refused > 20


def test_damage_beside_an_unmerged_journal_is_left_alone(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a crash in the middle of a step: the newest rows are still in the -wal file. Neither file may change."""
    target = tmp_path / "crashed" / "ledger.sqlite"
    target.parent.mkdir()
    wal, target_wal = Path(f"{path}-wal"), Path(f"{target}-wal")
    with monkeypatch.context() as patch, Ledger.open(path) as ledger:
        patch.setattr("limbeck.vault.ledger.file.settle", lambda *_: None)
        grant = book(ledger, 1.0)
        ledger.store(grant, "sum", 0, map_digest="m", payload=bytes(50_000))
        main, journal = path.read_bytes(), wal.read_bytes()
    assert len(journal) > 50_000
    broken = main[:4096] + random.Random(3).randbytes(len(main) - 4096 * 2) + main[-4096:]
    target.write_bytes(broken[:-100])
    target_wal.write_bytes(journal[: len(journal) // 2])
    with pytest.raises(LedgerFault):
        Ledger.open(target)
    assert target.read_bytes() == broken[:-100] and target_wal.read_bytes() == journal[: len(journal) // 2]
    target_wal.write_bytes(journal)
    target.write_bytes(main)
    with Ledger.open(target) as ledger:
        assert ledger.drawn(grant) == {"sum": 1}


def test_a_lost_ledger_is_not_replaced_while_its_journal_is_there(path: Path) -> None:
    Path(f"{path}-wal").write_bytes(b"rest")
    with pytest.raises(LedgerFault, match="companion"):
        Ledger.open(path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("pragma", "what"),
    [("application_id = 7", "another program"), ("user_version = 3", "format 3"), ("user_version = 0", "format 0")],
)
def test_other_programs_and_newer_formats_are_refused(path: Path, pragma: str, what: str) -> None:
    made(path)
    with closing(raw(path)) as connection:
        connection.execute(f"PRAGMA {pragma}")
    before = path.read_bytes()
    with pytest.raises(LedgerFault, match=what):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_places_that_cannot_hold_a_ledger(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file" / "ledger.sqlite", tmp_path):
        with pytest.raises(LedgerFault) as fault:
            Ledger.open(place)
        assert "Nothing was changed" in fault.value.message


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_folder_not_writable(path: Path) -> None:
    path.parent.chmod(0o500)
    with pytest.raises(LedgerFault, match="writable"):
        Ledger.open(path)


def test_locked_too_long(path: Path) -> None:
    made(path)
    with Ledger.open(path, patience=0.05) as ledger, closing(raw(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerFault, match="locked"):
            ledger.set_budget("digits", 2.0, 1e-5)
        other.execute("ROLLBACK")
        ledger.set_budget("digits", 2.0, 1e-5)


def test_full_disk_keeps_earlier_rows(ledger: Ledger) -> None:
    ledger.set_budget("digits", 2.0, 0.0)
    grant = book(ledger, 1.0, sum=100)
    connection = ledger.file.connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 30}")
    stored = 0
    with pytest.raises(LedgerFault, match="full") as fault:
        for stored in itertools.count():
            ledger.store(grant, "sum", stored, map_digest="m", payload=bytes(40_000))
    assert "Free some space" in fault.value.message
    with pytest.raises(LedgerFault, match="full"):
        ledger.book("digits", plan="x" * 200_000, method="dm", epsilon=1.0, delta=0.0, counts={})
    account = ledger.account("digits")
    assert account is not None and account.spent_epsilon == 1.0
    assert 0 < stored == ledger.drawn(grant)["sum"]
    connection.execute("PRAGMA max_page_count = 1000000")
    ledger.store(grant, "sum", stored, map_digest="m", payload=bytes(40_000))
    book(ledger, 1.0)


def test_no_raw_error_after_close(path: Path) -> None:
    ledger = Ledger.open(path)
    ledger.close()
    with pytest.raises(LedgerFault):
        ledger.accounts()


def test_payload_digest_is_on_record(path: Path) -> None:
    made(path, answers=1)
    with closing(raw(path)) as connection:
        digest, payload = connection.execute("SELECT payload_sha256, payload FROM answers").fetchone()
    assert digest == hashlib.sha256(payload).hexdigest()
