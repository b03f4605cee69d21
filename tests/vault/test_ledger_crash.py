"""The ledger under kill -9, races and full disks. Every crash happens in a real process of its own."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from children import PRELUDE, SOURCE, account, race, run, start
from limbeck.errors import BudgetRefused
from limbeck.vault.ledger import Ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with a budget of 2.0, one open booking of 0.5 and one answer, named in grant.txt."""
    place = tmp_path / "ledger.sqlite"
    with Ledger.open(place) as ledger:
        ledger.set_budget("digits", 2.0, 1e-5)
        grant = ledger.book("digits", plan="{}", method="dm", epsilon=0.5, delta=1e-6, counts={"sum": 5})
        ledger.store(grant, "sum", 0, map_digest="m", payload=b"zero" * 10_000)
    (tmp_path / "grant.txt").write_text(grant)
    return place


# What the child does before it dies, then what must be true: (spent, answers, state, budget).
STATES = {
    "before booking": ("die()", (0.5, 1, "open", 2.0)),
    "booking, nothing written": ('die_before(ledger, "INSERT INTO bookings"); book(ledger)', (0.5, 1, "open", 2.0)),
    "booking, not committed": ('die_before(ledger, "COMMIT"); book(ledger)', (0.5, 1, "open", 2.0)),
    "after booking": ("book(ledger); die()", (1.0, 1, "open", 2.0)),
    "storing, nothing written": ('die_before(ledger, "INSERT INTO answers"); store()', (0.5, 1, "open", 2.0)),
    "storing, not committed": ('die_before(ledger, "COMMIT"); store()', (0.5, 1, "open", 2.0)),
    "after storing": ("store(); die()", (0.5, 2, "open", 2.0)),
    "finishing, half written": ('die_before(ledger, "UPDATE answers"); ledger.finish(grant)', (0.5, 1, "open", 2.0)),
    "finishing, not committed": ('die_before(ledger, "COMMIT"); ledger.finish(grant)', (0.5, 1, "open", 2.0)),
    "after finishing": ("ledger.finish(grant); die()", (0.5, 1, "finished", 2.0)),
    "setting a budget": ('die_before(ledger, "COMMIT"); ledger.set_budget("digits", 3.0, 1e-5)', (0.5, 1, "open", 2.0)),
    "after setting a budget": ('ledger.set_budget("digits", 3.0, 1e-5); die()', (0.5, 1, "open", 3.0)),
    "forgetting": ('die_before(ledger, "COMMIT"); ledger.forget(grant, "sum", 1)', (0.5, 1, "open", 2.0)),
}


@pytest.mark.parametrize("state", STATES)
def test_killed(path: Path, state: str) -> None:
    script, (spent, answers, booking_state, budget) = STATES[state]
    code, _, errors = run(
        "ledger = Ledger.open(path); grant = path.with_name('grant.txt').read_text()\n"
        "store = lambda: ledger.store(grant, 'sum', 1, map_digest='m', payload=b'one' * 10_000)\n" + script,
        path,
    )
    assert code == -signal.SIGKILL, errors
    grant = path.with_name("grant.txt").read_text()
    with Ledger.open(path) as ledger:
        assert (account(ledger).spent_epsilon, account(ledger).epsilon) == (spent, budget)
        assert ledger.drawn(grant) == {"sum": answers}
        assert ledger.grant(grant).state == booking_state
        if booking_state == "open":
            kept = ledger.fetch(grant, "sum", 0)
            assert kept is not None and kept.payload == b"zero" * 10_000
            # Resuming gives the answer that was journalled, or draws it now for the first time.
            resumed = ledger.store(grant, "sum", 1, map_digest="m", payload=b"new")
            assert resumed == (b"one" * 10_000 if answers == 2 else b"new")
            ledger.finish(grant)
        rest = account(ledger).remaining_epsilon
        ledger.book("digits", plan="{}", method="dm", epsilon=rest, delta=1e-6, counts={})
        with pytest.raises(BudgetRefused):
            ledger.book("digits", plan="{}", method="dm", epsilon=1e-9, delta=1e-6, counts={})
    with Ledger.open(path) as ledger:
        assert account(ledger).spent_epsilon == budget


def test_killed_in_the_first_booking_leaves_neither_budget_nor_spend(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    code, _, errors = run("ledger = Ledger.open(path); die_before(ledger, 'COMMIT'); book(ledger)", place)
    assert code == -signal.SIGKILL, errors
    with Ledger.open(place) as ledger:
        assert ledger.accounts() == []


def test_killed_while_creating_leaves_no_half_ledger(tmp_path: Path) -> None:
    for step in (
        "sqlite3.connect = lambda *a, **k: die()",
        "os.link = lambda *a: die()",
        "os.fsync = lambda *a: die()",
    ):
        place = tmp_path / str(len(step)) / "ledger.sqlite"
        place.parent.mkdir()
        code, _, errors = run(f"import sqlite3\n{step}\nLedger.open(path)", place)
        assert code == -signal.SIGKILL, errors
        with Ledger.open(place) as ledger:
            assert ledger.accounts() == []


def test_killed_at_any_moment_keeps_what_was_confirmed(tmp_path: Path) -> None:
    """The child reports every confirmed step; whatever it reported must be there, whole, after the kill."""
    place = tmp_path / "ledger.sqlite"
    with Ledger.open(place) as ledger:
        ledger.set_budget("digits", 1e6, 0.5)
    generator = random.Random(4)
    booked = 0
    for _ in range(8):
        with start(
            "ledger = Ledger.open(path)\n"
            "for round in range(10_000):\n"
            "    grant = book(ledger)\n"
            "    print(json.dumps(['book', grant]), flush=True)\n"
            "    for i in range(5):\n"
            "        ledger.store(grant, 'sum', i, map_digest='m', payload=bytes([i]) * 50_000)\n"
            "        print(json.dumps(['store', grant, i]), flush=True)\n",
            place,
        ) as child:
            assert child.stdout is not None
            first = child.stdout.readline()
            time.sleep(generator.uniform(0.0, 0.1))
            child.kill()
            lines = [first, *child.stdout.read().splitlines()]
        reports = [json.loads(line) for line in lines if line.strip().endswith("]")]
        with Ledger.open(place) as ledger:
            grants = {booking.grant for booking in account(ledger).bookings}
            for kind, grant, *index in reports:
                assert grant in grants
                if kind == "store":
                    answer = ledger.fetch(grant, "sum", index[0])
                    assert answer is not None and answer.payload == bytes(index) * 50_000
            booked += len({grant for _, grant, *_ in reports})
            # At most the one booking that was under way when the process died is there without a report.
            assert booked <= len(grants) <= booked + 1
            booked = len(grants)
            assert account(ledger).spent_epsilon == 0.5 * len(grants)


# Races


def test_only_one_process_gets_the_last_epsilon(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    rounds = 25
    with Ledger.open(place) as ledger:
        for round_number in range(rounds):
            ledger.set_budget(f"set {round_number}", 1.0, 1e-5)
    outputs = race(
        f"for i in range({rounds}):\n"
        "    try:\n"
        "        ledger.book(f'set {i}', plan='{}', method='dm', epsilon=0.6, delta=1e-6, counts={})\n"
        "        print('won')\n"
        "    except BudgetRefused:\n"
        "        print('lost')\n",
        place,
        2,
    )
    for first, second in zip(*(output.split() for output in outputs), strict=True):
        assert {first, second} == {"won", "lost"}
    with Ledger.open(place) as ledger:
        assert [len(found.bookings) for found in ledger.accounts()] == [1] * rounds


def test_processes_that_share_a_new_budget_spend_it_once(tmp_path: Path) -> None:
    """Nobody has set a budget: the first booking does, and the others find it used up."""
    for round_number in range(3):
        place = tmp_path / f"{round_number}.sqlite"
        outputs = race("try:\n    book(ledger)\n    print('won')\nexcept BudgetRefused:\n    print('lost')\n", place, 3)
        assert sorted(output.strip() for output in outputs) == ["lost", "lost", "won"]


def test_two_resumed_runs_get_the_same_answers(path: Path) -> None:
    outputs = race(
        "grant = path.with_name('grant.txt').read_text()\n"
        "for i in range(1, 5):\n"
        "    print(ledger.store(grant, 'sum', i, map_digest='m', payload=sys.argv[2].encode()).decode())\n",
        path,
        3,
    )
    assert outputs[0] == outputs[1] == outputs[2]


def test_of_giving_back_and_the_first_answer_one_is_refused(tmp_path: Path) -> None:
    """Whoever comes first: a booking that was given back never gets an answer, an answered one is never given back."""
    place, rounds = tmp_path / "ledger.sqlite", 40
    with Ledger.open(place) as ledger:
        for number in range(rounds):
            counts = {"sum": 1}
            ledger.book(
                f"set {number}", plan="{}", method="dm", epsilon=1.0, delta=0.0, counts=counts, grant=f"g{number}"
            )
    outputs = race(
        "from limbeck.errors import WallBreach\n"
        f"for i in range({rounds}):\n"
        "    try:\n"
        "        if sys.argv[2] == '0':\n"
        "            ledger.give_back(f'set {i}', f'g{i}')\n"
        "        else:\n"
        "            ledger.store(f'g{i}', 'sum', 0, map_digest='m', payload=b'answer')\n"
        "        print('won')\n"
        "    except (BudgetRefused, WallBreach):\n"
        "        print('lost')\n",
        place,
        2,
    )
    with Ledger.open(place) as ledger:
        for number, (given_back, answered) in enumerate(zip(*(output.split() for output in outputs), strict=True)):
            assert {given_back, answered} == {"won", "lost"}
            assert ledger.state(f"g{number}") == ("void" if given_back == "won" else "open")
            assert ledger.drawn(f"g{number}") == {"sum": int(answered == "won")}


def test_processes_create_one_ledger(tmp_path: Path) -> None:
    place = tmp_path / "new" / "ledger.sqlite"
    place.parent.mkdir()
    outputs = []
    children = [start("l = Ledger.open(path); l.set_budget(f'set{sys.argv[2]}', 1, 0)", place, n) for n in range(4)]
    for child in children:
        outputs.append(child.communicate(timeout=60)[1])
    assert outputs == [""] * 4
    with Ledger.open(place) as ledger:
        assert [found.dataset for found in ledger.accounts()] == ["set0", "set1", "set2", "set3"]
    assert os.listdir(place.parent) == ["ledger.sqlite"]


# Full disks

FILL = """
ledger = Ledger.open(path)
ledger.set_budget("digits", 1.0, 1e-5)
grant = book(ledger)
stored = 0
try:
    for stored in range(1000):
        ledger.store(grant, "sum", stored, map_digest="m", payload=bytes([stored % 256]) * 40_000)
    sys.exit("the disk was never full")
except LedgerFault as fault:
    message = fault.message
found = ledger.account("digits")
print(json.dumps([message, grant, stored, ledger.drawn(grant)["sum"], found.spent_epsilon]))
try:
    ledger.close()
except LedgerFault:
    pass
"""


def test_file_size_limit_keeps_earlier_rows(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    limit = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({2**20}, {resource.RLIM_INFINITY}))\n"
    code, output, errors = run(limit + FILL, place)
    assert code == 0, errors
    message, grant, stored, drawn, spent = json.loads(output)
    assert "Every earlier booking is intact" in message and spent == 0.5 and stored == drawn > 5
    with Ledger.open(place) as ledger:
        assert account(ledger).spent_epsilon == 0.5 and ledger.drawn(grant) == {"sum": stored}
        ledger.store(grant, "sum", stored, map_digest="m", payload=bytes(40_000))


def test_full_disk(tmp_path: Path) -> None:
    """A real file system of 1 MiB, mounted where only the child sees it."""
    unshare = shutil.which("unshare")
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)]
    wrapped = [unshare or "unshare", "--user", "--map-root-user", "--mount"]
    if unshare is None or subprocess.run([*wrapped, *mount], capture_output=True, check=False).returncode != 0:
        pytest.skip("this system does not let a test mount a file system of its own")
    again = (
        "import subprocess\n"
        "before = path.read_bytes()\n"
        "try:\n    Ledger.open(path.with_name('second.sqlite')); print('opened')\n"
        "except LedgerFault as fault:\n    print(fault.message)\n"
        "print(sorted(os.listdir(path.parent)))\n"
        "path.with_name('ballast').unlink()\n"
        "with Ledger.open(path) as ledger:\n"
        "    print(ledger.account('digits').spent_epsilon, ledger.drawn(grant)['sum'])\n"
        "    ledger.store(grant, 'sum', stored, map_digest='m', payload=bytes(4_000))\n"
    )
    ballast = "path.with_name('ballast').write_bytes(bytes(200_000))\n"
    fill_up = (
        "try:\n    with open(path.with_name('rest'), 'wb', buffering=0) as f:\n"
        "        while f.write(bytes(4096)): pass\n"
        "except OSError: pass\n"
    )
    command = " ".join(mount) + ' && exec "$0" -c "$1" "$2"'
    result = subprocess.run(
        [*wrapped, "sh", "-c", command, sys.executable, PRELUDE + ballast + FILL + fill_up + again,
         str(tmp_path / "ledger.sqlite")],
        capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    report, second, names, after = result.stdout.splitlines()
    message, _, stored, drawn, spent = json.loads(report)
    assert "full" in message or "intact" in message
    assert spent == 0.5 and stored == drawn > 2
    assert "is full" in second or "refused" in second
    assert "second.sqlite" not in names and ".new" not in names
    assert after == f"0.5 {stored}"
