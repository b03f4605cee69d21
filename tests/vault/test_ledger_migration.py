"""From format 1 to format 2: with a copy, in one step, and nothing forgotten."""

from __future__ import annotations

import math
import os
import shutil
import signal
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from children import race, run
from limbeck.errors import BadInput, BudgetRefused, LedgerFault
from limbeck.files import alone_in
from limbeck.privacy.part import PartOf
from limbeck.vault.ledger import Account, Ledger, Wanted, file, migration
from limbeck.vault.ledger.checks import check_kind
from limbeck.vault.ledger.migration import migrate
from limbeck.vault.ledger.rows import append_booking, append_budget
from limbeck.vault.ledger.splits import EARLIER_STAGES
from limbeck.vault.ledger.tables import APPLICATION_ID, FIRST_SCHEMA

KEPT = Path(__file__).parents[1] / "kept"
LEDGERS = Path(__file__).parent / "ledgers"


def old_ledger(path: Path) -> Path:
    """As version 0.2 wrote it after a course of three stages, and a release of the whole. Stage 3 was never booked."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(
            f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1; {FIRST_SCHEMA} COMMIT;"
            "PRAGMA journal_mode = WAL;"
        )
        append_budget(db, "digits", 2.0, 1e-4)
        for stage in (1, 2, 3):
            append_budget(db, f"digits/stage-{stage}", 1.5, 1e-4)
        for dataset, grant in (
            ("digits", "whole"), ("digits/stage-1", "one"), ("digits/stage-2", "two"), ("other/stage-x", "other"),
            ("plain", "plain"),
        ):  # fmt: skip
            append_booking(db, dataset, "{}", "dm", 0.5, 1e-6, {"sum": 2}, grant)
    path.chmod(0o600)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return old_ledger(tmp_path / "ledger.sqlite")


def version(path: Path) -> int:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def files(path: Path) -> list[str]:
    """What is in the folder, without the companions of whoever looks."""
    return sorted(name for name in os.listdir(path.parent) if not name.endswith(("-wal", "-shm")))


def book(ledger: Ledger, dataset: str, epsilon: float) -> str:
    return ledger.book(dataset, plan="{}", method="dm", epsilon=epsilon, delta=1e-6, counts={"sum": 1})


def by_name(ledger: Ledger) -> dict[str, Account]:
    return {account.dataset: account for account in ledger.accounts()}


def test_stages_are_parts_that_add_up(path: Path) -> None:
    with Ledger.open(path) as ledger:
        found = by_name(ledger)
        assert list(found) == ["digits", "digits/stage-1", "digits/stage-2", "digits/stage-3", "other/stage-x", "plain"]
        assert found["digits"].spent_epsilon == 1.5  # nobody knows that the stages are disjoint
        assert [found[f"digits/stage-{n}"].parent for n in (1, 2, 3)] == ["digits"] * 3
        assert found["other/stage-x"].parent is None and found["plain"].parent is None
        (split,) = found["digits"].splits
        assert (split.kind, split.disjoint, split.spent_epsilon) == ("stages", False, 1.0)
        with pytest.raises(BudgetRefused, match="of which 'digits/stage-1' is a part"):
            book(ledger, "digits/stage-1", 0.6)
        with pytest.raises(BudgetRefused, match="'digits/stage-1' does not cover"):  # its own budget stays in force
            book(ledger, "digits/stage-1", 1.2)
        book(ledger, "digits/stage-3", 0.5)
        assert by_name(ledger)["digits"].remaining_epsilon == 0.0
        assert not ledger.is_part("digits/stage-4")


def test_looking_changes_nothing_and_shows_the_same(path: Path) -> None:
    before = path.read_bytes()
    with Ledger.open_to_read(path) as ledger:
        shown = ledger.accounts()
    assert path.read_bytes() == before and files(path) == [path.name]
    with Ledger.open(path) as ledger:
        assert ledger.accounts() == shown
    with Ledger.open_to_read(path) as ledger:
        assert ledger.accounts() == shown


def test_the_old_file_is_kept_beside_as_it_was(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        before = list(db.iterdump())
    Ledger.open(path).close()
    kept = path.with_name("ledger.sqlite.format-1")
    assert (version(path), version(kept)) == (2, 1) and stat.S_IMODE(kept.stat().st_mode) == 0o600
    with closing(sqlite3.connect(kept)) as db:
        assert list(db.iterdump()) == before
    assert files(path) == [path.name, kept.name]
    content = kept.read_bytes()
    Ledger.open(path).close()
    assert kept.read_bytes() == content and files(path) == [path.name, kept.name]


def test_a_copy_that_is_there_is_never_replaced(path: Path) -> None:
    first = path.with_name("ledger.sqlite.format-1")
    first.write_text("somebody's own")
    Ledger.open(path).close()
    assert first.read_text() == "somebody's own" and version(path.with_name("ledger.sqlite.format-1.2")) == 1


def test_an_overspent_whole_loses_nothing_and_says_so(tmp_path: Path) -> None:
    path = old_ledger(tmp_path / "l.sqlite")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        append_booking(db, "digits/stage-3", "{}", "dm", 1.0, 1e-6, {"sum": 2}, "three")
    with Ledger.open(path) as ledger:
        found = by_name(ledger)["digits"]
        assert (found.epsilon, found.spent_epsilon, found.remaining_epsilon) == (2.0, 2.5, 0.0)
        assert ledger.store("three", "sum", 0, map_digest="m", payload=b"x") == b"x"  # what is booked can be used
        for name in ("digits", "digits/stage-1"):
            with pytest.raises(BudgetRefused, match="overspent already") as refused:
                book(ledger, name, 0.1)
        assert refused.value.next_command == "limbeck budget set digits --epsilon 2.6 --delta 0.0001"
        ledger.set_budget("digits", 2.6, 1e-4)
        book(ledger, "digits/stage-1", 0.1)


def test_stages_without_a_budget_of_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1; {FIRST_SCHEMA}")
        for stage in (1, 2):
            append_budget(db, f"digits/stage-{stage}", 3.0, 1e-4)
            append_booking(db, f"digits/stage-{stage}", "{}", "dm", 0.5, 1e-6, {"sum": 2}, str(stage))
    with Ledger.open(path) as ledger:
        assert not ledger.has_budget("digits") and by_name(ledger)["digits"].spent_epsilon == 1.0
        with pytest.raises(BudgetRefused, match="overspent already"):
            book(ledger, "digits/stage-1", 0.1)
        ledger.set_budget("digits", 1.5, 1e-4)
        book(ledger, "digits/stage-1", 0.5)


def test_a_stage_that_was_not_private_is_a_sentence_for_several_plans(tmp_path: Path) -> None:
    path = old_ledger(tmp_path / "l.sqlite")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        append_booking(db, "digits/stage-3", "{}", "dm", math.inf, 0.0, {"sum": 2}, "three")
    with Ledger.open(path) as ledger:
        ledger.declare_split("digits", "halves", parts=2)
        parts = [PartOf(parent="digits", split="halves", part=number) for number in (1, 2)]
        wanted = [
            Wanted(dataset=part.account, plan="{}", epsilon=0.5, delta=1e-6, counts={}, part=part) for part in parts
        ]
        with pytest.raises(
            BudgetRefused, match=r"requested 0\.5, remaining 0\.0, difference 0\.5.*overspent"
        ) as refused:
            ledger.check(wanted)
        assert refused.value.next_command == "limbeck budget set digits --epsilon inf --delta 0.0001"


def test_an_earlier_stage_is_booked_under_its_own_name_only(path: Path) -> None:
    """Under that of a part it would be an account beside the tree, with a budget of its own."""
    part = PartOf(parent="digits", split=EARLIER_STAGES, part=1, classes=(1,))
    with Ledger.open(path) as ledger:
        with pytest.raises(BadInput, match="knows no part"):
            ledger.book(part.account, plan="{}", method="dm", epsilon=9.0, delta=1e-6, counts={"sum": 1}, part=part)
        assert part.account not in by_name(ledger)


# Kills, races and damage

STEPS = {
    "before the lock": "sqlite3.connect = dying(sqlite3.connect, 2)",
    "while the copy is made": "migration.tempfile.mkstemp = lambda *a, **k: die()",
    "before the copy is on the disk": "migration.flush = lambda *a: die()",
    "before the copy has its name": "migration.os.link = lambda *a: die()",
    "after the copy": "migration.flush_folder = lambda *a: die()",
    "before the tables": "migration.bring_up_to_date = lambda *a: die()",
    "between the tables": "migration._statements = lambda text: (yield from halves(text))",
    "before the stages": "migration.earlier_stages = lambda *a: die()",
    "before the commit": "migration._content = dying(migration._content, 2)",
    "after the commit": "migration.settle = lambda *a: die()",
}
PRELUDE = """
import sqlite3
from limbeck.vault.ledger import migration
real_statements = migration._statements

def dying(function, time):
    calls = []
    def called(*a, **k):
        calls.append(1)
        return die() if len(calls) == time else function(*a, **k)
    return called

def halves(text):
    found = real_statements(text)
    yield from found[:4]
    die()
"""


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_it_is_the_old_ledger_or_the_new_one(path: Path, step: str) -> None:
    with Ledger.open_to_read(path) as ledger:
        expected = ledger.accounts()
    code, _, errors = run(f"{PRELUDE}\n{STEPS[step]}\nLedger.open(path)", path)
    assert code == -signal.SIGKILL, errors
    assert version(path) == (2 if step == "after the commit" else 1)
    with Ledger.open_to_read(path) as ledger:
        assert ledger.accounts() == expected
    with Ledger.open(path) as ledger:
        assert ledger.accounts() == expected
    copies = sorted(path.parent.glob("ledger.sqlite.format-1*"))
    assert copies and all(version(copy) == 1 for copy in copies)


def test_killed_at_random_moments(tmp_path: Path) -> None:
    import random
    import time

    from children import start

    draw = random.Random(3)
    for number in range(6):
        path = old_ledger(tmp_path / f"{number}.sqlite")
        with start(
            "print('ready', flush=True)\nLedger.open(path)\nprint('done', flush=True)\ntime.sleep(9)", path
        ) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(draw.uniform(0.0, 0.06))
            child.kill()
        with Ledger.open(path) as ledger:
            assert by_name(ledger)["digits"].spent_epsilon == 1.5
        assert version(path) == 2


def test_many_processes_bring_it_up_to_date_once(path: Path) -> None:
    outputs = race("print(ledger.account('digits').spent_epsilon)", path, 4)
    assert outputs == ["1.5\n"] * 4
    assert version(path) == 2 and len(list(path.parent.glob("ledger.sqlite.format-1*"))) == 1


def test_one_that_was_faster_may_keep_it_open(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both found format 1. The faster one goes on with the new ledger, perhaps for hours."""
    with ExitStack() as open_still:

        def overtaken(path: Path, patience: float) -> None:
            monkeypatch.undo()
            open_still.enter_context(Ledger.open(path))
            migrate(path, patience)

        monkeypatch.setattr(file, "migrate", overtaken)
        with Ledger.open(path, patience=1.0) as ledger:
            assert by_name(ledger)["digits"].spent_epsilon == 1.5
    assert len(list(path.parent.glob("ledger.sqlite.format-1*"))) == 1


def test_migrations_take_turns(path: Path) -> None:
    """SQLite's locks alone let several that wait for sole use keep each other from it until all of them give up."""
    with alone_in(path.parent, 1.0), pytest.raises(LedgerFault, match="another process is using it"):
        Ledger.open(path, patience=0.1)
    assert version(path) == 1


def put_back(path: Path) -> None:
    """As the copy that is kept beside the ledger: without a write-ahead file, so readers hold no lock between two reads."""
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)


@pytest.mark.parametrize("look", [Ledger.open, Ledger.open_to_read])
def test_kind_and_content_are_of_one_moment(
    path: Path, monkeypatch: pytest.MonkeyPatch, look: Callable[[Path], Ledger]
) -> None:
    put_back(path)

    def overtaken(path: Path, reader: sqlite3.Connection) -> int:
        monkeypatch.undo()
        found = check_kind(path, reader)
        with pytest.raises(LedgerFault, match="another process is using it"):
            migrate(path, 0.1)
        return found

    monkeypatch.setattr(file, "check_kind", overtaken)
    with look(path) as ledger:
        assert by_name(ledger)["digits"].spent_epsilon == 1.5


def test_a_process_that_has_the_old_ledger_open_has_to_end_first(path: Path) -> None:
    """An earlier version would go on booking without the tree."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("SELECT COUNT(*) FROM bookings").fetchone()
        with pytest.raises(LedgerFault, match="another process is using it"):
            Ledger.open(path, patience=0.2)
        assert version(path) == 1 and not list(path.parent.glob("*.format-1*"))
    waiting = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    waiting.execute("SELECT COUNT(*) FROM bookings").fetchone()
    timer = threading.Timer(0.3, waiting.close)
    timer.start()
    Ledger.open(path, patience=20.0).close()  # waits until it has ended
    timer.join()
    assert version(path) == 2


def test_a_copy_that_was_put_back_is_brought_up_to_date_by_one_process_alone(path: Path) -> None:
    put_back(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT COUNT(*) FROM bookings").fetchone()
        with closing(sqlite3.connect(path, timeout=0.1, isolation_level=None)) as connection:
            assert not migration._have_alone(connection)
        with pytest.raises(LedgerFault, match="another process is using it"):
            Ledger.open(path, patience=0.2)
        assert version(path) == 1
    Ledger.open(path).close()
    assert version(path) == 2


def test_a_damaged_old_ledger_is_left_alone(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(b"digits/stage-1")] ^= 1
    path.write_bytes(content)
    with pytest.raises(LedgerFault, match="damaged"):
        Ledger.open(path)
    assert path.read_bytes() == bytes(content) and not list(path.parent.glob("*.format-1*"))


def test_an_old_number_on_a_new_ledger_is_found(path: Path) -> None:
    """Somebody sets the format back to have the stages forgotten."""
    Ledger.open(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 1")
    with pytest.raises(LedgerFault, match="altered"):
        Ledger.open(path)


@pytest.mark.parametrize("kept", sorted(KEPT.glob("*/*/*/ledger.sqlite")), ids=lambda kept: kept.parents[1].name)
def test_real_ledgers_of_earlier_versions(kept: Path, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    shutil.copy(kept, path)
    path.chmod(0o600)
    with Ledger.open_to_read(path) as ledger:
        shown = ledger.accounts()
    with Ledger.open(path) as ledger:
        assert ledger.accounts() == shown and len(shown) == 1 and shown[0].rule == "sum"
    assert version(path) == 2


def test_the_kept_fixture_of_format_1_migrates(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    shutil.copy(LEDGERS / "format-1.sqlite", path)
    with Ledger.open(path) as ledger:
        assert by_name(ledger)["digits"].spent_epsilon == 1.5
