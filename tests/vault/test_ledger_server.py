"""The ledger on a real PostgreSQL server: the rules of the file, kills of both sides, races, roles, altered tables.

The tests of the file's rules run here a second time, on the server. What is about SQLite itself stays there.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import on_server
import pytest
import test_ledger
import two_hosts
from on_server import FOUND, NUMBERS
from postgres_server import Server, running

from children import WAIT, account, race, race_of, run, start
from limbeck.errors import BadInput, BudgetRefused, LedgerFault
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.family import read_family
from limbeck.vault.ledger.rows import append_booking
from limbeck.vault.ledger.server import LOCK

pytestmark = on_server.MARKS
path, server, ledger = on_server.path, on_server.server, test_ledger.ledger
globals().update(on_server.of_both(test_ledger))


def direct(path: Path) -> Any:
    import psycopg

    return psycopg.connect(str(path).replace(":/", "://", 1), autocommit=True, options="-c search_path=limbeck")


# Where it is


def test_address_keeps_its_slashes_and_takes_no_password(path: Path) -> None:
    with Ledger.open(path) as ledger:
        assert ledger.created
        ledger.set_budget("digits", 1.0, 1e-5)
    with Ledger.open_to_read(path) as ledger:
        assert account(ledger).epsilon == 1.0 and not ledger.created
        with pytest.raises(LedgerFault, match="reading only"):
            ledger.set_budget("digits", 2.0, 1e-5)
    for secret in ("postgresql://me:word@127.0.0.1/x", "postgresql://127.0.0.1/x?password=word"):
        with pytest.raises(BadInput, match="no password") as refused:
            Ledger.open(Path(secret))
        assert "word@" not in refused.value.message and "=word" not in refused.value.message


def test_nothing_is_made_by_looking(path: Path) -> None:
    for opened in (lambda: Ledger.open_to_read(path), lambda: Ledger.open(path, create=False)):
        with pytest.raises(LedgerFault, match="There is no ledger"):
            opened()
    with direct(path) as connection:
        assert connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'limbeck'").fetchone() is None


def test_server_that_is_not_there() -> None:
    with pytest.raises(LedgerFault, match="cannot be reached"):
        Ledger.open(Path("postgresql://postgres@127.0.0.1:1/none"), patience=2)


# Kills

BUDGET = "ledger.set_budget('digits', 2.0, 1e-5); grant = book(ledger)\n"


@pytest.mark.parametrize("word", ["INSERT INTO bookings", "COMMIT", "UPDATE bookings", "INSERT INTO answers"])
def test_client_is_killed(path: Path, word: str) -> None:
    """Whatever it was about to say: the step is whole or absent, and the next one is not kept waiting."""
    script = (
        "ledger = Ledger.open(path)\n" + BUDGET + "print(grant, flush=True)\n"
        "connection = ledger.file._connection; real = connection.execute\n"
        "def execute(sql, *rest):\n"
        f"    text = sql.decode() if isinstance(sql, bytes) else sql\n"
        f"    die() if text.startswith({word!r}) else None\n"
        "    return real(sql, *rest)\n"
        "connection.execute = execute\n"
        "ledger.store(grant, 'sum', 0, map_digest='m', payload=b'one'); book(ledger); ledger.finish(grant)\n"
    )
    code, output, errors = run(script, path)
    assert code == -signal.SIGKILL, errors
    grant = output.strip()
    with Ledger.open(path) as ledger:
        stored = ledger.drawn(grant)["sum"]
        expected = {"COMMIT": (0, 0.5), "INSERT INTO answers": (0, 0.5), "INSERT INTO bookings": (1, 0.5)}
        assert (stored, account(ledger).spent_epsilon) == expected.get(word, (1, 1.0))
        assert ledger.grant(grant).state == "open"
        assert ledger.store(grant, "sum", 0, map_digest="m", payload=b"new") == (b"one" if stored else b"new")


def test_server_is_killed_between_booking_and_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was confirmed is there when it is back, and the same process goes on."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert FOUND is not None
    with running(FOUND) as own:
        place = Path(own.make_database("book"))
        with Ledger.open(place) as ledger:
            ledger.set_budget("digits", 1.0, 1e-5)
            grant = ledger.book("digits", plan="{}", method="dm", epsilon=0.75, delta=1e-6, counts={"sum": 2})
            own.kill()
            with pytest.raises(LedgerFault, match="cannot be reached"):
                ledger.store(grant, "sum", 0, map_digest="m", payload=b"lost")
            own.start()
            assert account(ledger).spent_epsilon == 0.75
            assert ledger.drawn(grant) == {"sum": 0}
            assert ledger.store(grant, "sum", 0, map_digest="m", payload=b"first") == b"first"
            own.kill()
            own.start()
            kept = ledger.fetch(grant, "sum", 0)
            assert kept is not None and kept.payload == b"first"
            with pytest.raises(BudgetRefused):
                ledger.book("digits", plan="{}", method="dm", epsilon=0.5, delta=1e-6, counts={})


# Races


def test_eight_processes_race_for_the_last_epsilon(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.set_budget("digits", 1.0, 1e-5)
    script = "try:\n    book(ledger, 1.0); print('booked')\nexcept BudgetRefused:\n    print('refused')\n"
    outcomes = race(script, path, 8)
    assert sorted(outcomes) == ["booked\n"] + ["refused\n"] * 7
    with Ledger.open(path) as ledger:
        assert account(ledger).spent_epsilon == 1.0


@pytest.mark.skipif(not two_hosts.can_be_made(), reason="needs root and network namespaces")
def test_two_hosts_race_for_the_last_epsilon_and_one_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight processes on two hosts: one books. Then a host goes while it holds the lock, and the other gets on."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert FOUND is not None
    with two_hosts.joined(), running(FOUND, inside=two_hosts.inside(two_hosts.SERVER)) as own:

        def started(host: int, script: str) -> Any:
            place = Path(own.url("postgres").replace("127.0.0.1", two_hosts.ADDRESS.format(host)))
            return start(script, place, inside=two_hosts.inside(two_hosts.HOSTS[host - 1]))

        def done(host: int, script: str) -> str:
            with started(host, script) as child:
                output, errors = child.communicate(timeout=120)
            assert child.returncode == 0, errors
            return str(output)

        done(1, "with Ledger.open(path) as ledger:\n    ledger.set_budget('digits', 1.0, 1e-5)")
        racing = WAIT + "try:\n    book(ledger, 1.0); print('booked')\nexcept BudgetRefused:\n    print('refused')\n"
        outcomes = race_of([started(1 + number % 2, racing) for number in range(8)])
        assert sorted(outcomes) == ["booked\n"] + ["refused\n"] * 7
        spent = "with Ledger.open_to_read(path) as ledger:\n    print(ledger.account('digits').spent_epsilon)"
        assert done(1, spent) == done(2, spent) == "1.0\n"
        held = f"ledger = Ledger.open(path)\nledger.file._connection.execute('SELECT pg_advisory_lock({LOCK})')\n"
        with started(1, held + "print('held', flush=True); time.sleep(300)") as holder:
            assert holder.stdout is not None and holder.stdout.readline() == "held\n"
            two_hosts.cut(1)
            again = "ledger = Ledger.open(path, patience=100)\nprint(ledger.set_budget('digits', 2.0, 1e-5).epsilon)"
            try:
                assert done(2, again) == "2.0\n"  # within the minute that the server takes to notice
            finally:
                holder.kill()


def test_many_bookings_at_once_are_one_chain(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.set_budget("digits", 100.0, 1e-2)
    script = "for _ in range(10):\n    book(ledger, 0.01)\n"
    race(script, path, 6)
    with Ledger.open(path) as ledger:  # checks the chain
        assert len(account(ledger).bookings) == 60


def test_first_answer_of_two_processes_stays(path: Path) -> None:
    with Ledger.open(path) as ledger:
        grant = ledger.book("digits", plan="{}", method="dm", epsilon=1.0, delta=1e-5, counts={"sum": 1})
    script = f"print(ledger.store({grant!r}, 'sum', 0, map_digest='m', payload=sys.argv[2].encode() * 100).decode()[0])"
    assert len(set(race(script, path, 6))) == 1


def test_whoever_gets_past_the_lock_is_refused_by_the_server(path: Path) -> None:
    """Without the lock: of two that have read the same and both book, one commits."""
    with Ledger.open(path) as one, Ledger.open(path) as two:
        one.set_budget("digits", 1.0, 1e-5)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("limbeck.vault.ledger.server._alone", lambda connection: contextlib.nullcontext())
            with pytest.raises(LedgerFault), one.file.transaction(write=True) as first:
                assert read_family(first, "digits").bookings == {}
                two.book("digits", plan="{}", method="dm", epsilon=1.0, delta=1e-5, counts={})
                append_booking(first, "digits", "{}", "dm", 1.0, 1e-5, {}, None)
        assert account(two).spent_epsilon == 1.0


def test_dead_client_lets_the_lock_go(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.set_budget("digits", 2.0, 1e-5)
    with start(
        f"ledger = Ledger.open(path)\nledger.file._connection.execute('SELECT pg_advisory_lock({LOCK})')\n"
        "print('held', flush=True); time.sleep(60)",
        path,
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with Ledger.open(path, patience=0.3) as ledger, pytest.raises(LedgerFault, match="locked by another"):
            ledger.set_budget("digits", 3.0, 1e-5)
        holder.kill()
        holder.wait()
        with Ledger.open(path, patience=10) as ledger:
            assert ledger.set_budget("digits", 3.0, 1e-5).epsilon == 3.0


def test_threads_share_one_ledger(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.set_budget("digits", 100.0, 1e-2)
        threads = [
            threading.Thread(
                target=lambda: ledger.book("digits", plan="{}", method="dm", epsilon=0.1, delta=1e-6, counts={})
            )
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(account(ledger).bookings) == 8


# Guards


@pytest.fixture
def booked(path: Path) -> Path:
    with Ledger.open(path) as ledger:
        ledger.set_budget("digits", 2.0, 1e-5)
        for _ in range(2):
            grant = ledger.book("digits", plan="{}", method="dm", epsilon=0.5, delta=1e-6, counts={"sum": 2})
            ledger.store(grant, "sum", 0, map_digest="m", payload=b"bytes")
        ledger.finish(ledger.book("digits", plan="{}", method="dm", epsilon=0.5, delta=1e-6, counts={"sum": 2}))
    return path


FORBIDDEN = [
    "DELETE FROM bookings", "DELETE FROM answers", "DELETE FROM budgets", "DELETE FROM rules", "TRUNCATE answers",
    "TRUNCATE budgets CASCADE", "UPDATE budgets SET epsilon = '9.0'", "UPDATE bookings SET epsilon = '0.1'",
    "UPDATE bookings SET state = 'void'", "UPDATE answers SET payload = 'other'", "UPDATE answers SET position = 7",
    "UPDATE format SET version = 3", "DELETE FROM heads", "UPDATE bookings SET grant_id = 'x'",
    "INSERT INTO budgets VALUES (9, 'digits', '9.0', '1e-5', '', '', '')",
    "INSERT INTO bookings SELECT 4, 'g', 'digits', '{}', 'dm', '1', '1', '{}', '', 'finished', '', ''",
    "UPDATE bookings SET state = 'void' WHERE state = 'finished'",
    "INSERT INTO answers SELECT grant_id, 'sum', 1, 'm', 's', 'p' FROM bookings WHERE state = 'finished'",
    "INSERT INTO answers VALUES ('nobody', 'sum', 0, 'm', 's', 'p')",
    "INSERT INTO rules VALUES (2, 'digits', '7', '1', 'sum', '0', '', '', '')",
]  # fmt: skip


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_even_the_owner_is_refused(booked: Path, statement: str) -> None:
    import psycopg

    with direct(booked) as connection, pytest.raises(psycopg.Error):
        connection.execute(statement)
    with Ledger.open(booked) as ledger:
        assert account(ledger).spent_epsilon == 1.5


ALTERED = [
    "ALTER TABLE bookings DISABLE TRIGGER ALL; UPDATE bookings SET epsilon = '0.1' WHERE number = 1",
    "ALTER TABLE bookings DISABLE TRIGGER bookings_stay",
    "DROP TRIGGER budgets_append ON budgets",
    "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN OLD; END'",
    "ALTER TABLE answers ADD COLUMN more text",
    "ALTER TABLE answers DROP CONSTRAINT answers_grant_id_fkey",
    "SET session_replication_role = replica; DELETE FROM answers; DELETE FROM rules; DELETE FROM bookings WHERE number = 2",
    "SET session_replication_role = replica; UPDATE bookings SET plan = '{\"other\": 1}' WHERE number = 2",
    "SET session_replication_role = replica; UPDATE bookings SET state = 'void' WHERE number = 2",
    "SET session_replication_role = replica; UPDATE bookings SET state = 'lost' WHERE number = 2",
    "CREATE RULE gone AS ON INSERT TO bookings DO INSTEAD NOTHING",
    "ALTER TABLE bookings ENABLE ROW LEVEL SECURITY",
    "UPDATE heads SET number = 1 WHERE name = 'bookings'",
    "CREATE TABLE limbeck.more (x text)",
]


@pytest.mark.parametrize("statement", ALTERED)
def test_altered_ledger_is_refused_and_left_alone(booked: Path, statement: str) -> None:
    with direct(booked) as connection:
        connection.execute(statement)
    for opened in (Ledger.open, Ledger.open_to_read):
        with pytest.raises(LedgerFault, match="damaged"):
            opened(booked)


def test_forgetful_server_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert FOUND is not None
    with running(FOUND) as own:
        place = Path(own.make_database("book"))
        Ledger.open(place).close()
        with direct(place) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
        time.sleep(0.5)
        with pytest.raises(LedgerFault, match="fsync = off"):
            Ledger.open(place)


def test_role_that_may_book_but_not_alter(server: Server, booked: Path) -> None:
    from limbeck.vault.ledger.server import allow

    role = f"booker{next(NUMBERS)}"
    server.make_role(role)
    url = str(booked).replace(":/", "://", 1)
    other = Path(url.replace("postgres@", f"{role}@"))
    with pytest.raises(LedgerFault, match="may not do that"):
        Ledger.open(other)
    allow(url, role, 5)
    with pytest.raises(BadInput, match="knows no role"):
        allow(url, "nobody-here", 5)
    with Ledger.open(other) as ledger:
        grant = ledger.book("digits", plan="{}", method="dm", epsilon=0.25, delta=1e-6, counts={"sum": 1})
        ledger.store(grant, "sum", 0, map_digest="m", payload=b"bytes")
        ledger.finish(grant)
        with pytest.raises(LedgerFault, match="may not do that"):
            ledger.set_budget("digits", 9.0, 1e-5)
        with pytest.raises(LedgerFault, match="may not do that"):
            ledger.declare_split("digits", "half", parts=2)
    import psycopg

    with direct(other) as connection:
        for statement in (
            *FORBIDDEN,
            "UPDATE heads SET number = 0",
            "DROP TABLE rules",
            "ALTER TABLE bookings DISABLE TRIGGER ALL",
        ):
            with pytest.raises(psycopg.Error):
                connection.execute(statement)
    with Ledger.open(booked) as ledger:
        assert account(ledger).spent_epsilon == 1.75


# The command


def test_a_run_on_a_server(path: Path, tmp_path: Path) -> None:
    """condense, kill, resume and verify; key and teachers stay on this machine, and run.json keeps the address."""
    import subprocess
    import sys

    url = str(path).replace(":/", "://", 1)
    environment = {**os.environ, "LIMBECK_LEDGER": url, "OMP_NUM_THREADS": "1"}

    def limbeck(*words: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "limbeck", *words, "--json"], capture_output=True, text=True, env=environment
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    limbeck("budget", "set", "digits", "--epsilon", "2")
    out = str(tmp_path / "release")
    limbeck("condense", "digits", "--method", "ldpdc", "--set", "per_class=2", "--epsilon", "1", "--out", out)
    assert limbeck("verify", out)["epsilon"] <= 1
    shown = limbeck("budget", "show", "digits")
    assert shown["accounts"][0]["spent_epsilon"] <= 1.0 if "accounts" in shown else shown["spent_epsilon"] <= 1.0
    assert list(tmp_path.glob("limbeck/servers/*/signing-key"))
