"""Runs against a vault in another process: from the command line, through kills, as other users."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from process_serving import ended, limbeck_process, served, serving_process, short_folder

from limbeck import api
from limbeck.data import Records, open_source
from limbeck.errors import BadInput, BudgetRefused, RunConflict, VaultUnreachable, WallBreach
from limbeck.privacy.accounting import price
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import Query, TeacherVote
from limbeck.privacy.schema import Schema
from limbeck.release.reader import read_release
from limbeck.runs.record import RunRecord
from limbeck.runs.request import DataReference, Request, RunOptions
from limbeck.runs.vault_server import serving
from limbeck.vault.api import Grant
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.noise import Randomness
from limbeck.vault.process.client import ProcessVault
from limbeck.vault.process.socket_file import Door

Cli = Callable[..., Any]
SMALL = ("--method", "ldpdc", "--per-class", 2, "--epsilon", 1)


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as found:
        yield found


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "owner" / "ledger.sqlite"
    path.parent.mkdir()
    with Ledger.open(path) as book:
        book.set_budget("digits", 5.0, 1e-4)
    return path


def spent(ledger: Path) -> float:
    with Ledger.open_to_read(ledger) as book:
        account = book.account("digits")
    assert account is not None
    return account.spent_epsilon


# The whole way


def test_a_run_through_the_command_in_two_processes(cli: Cli, folder: Path, ledger: Path, tmp_path: Path) -> None:
    socket, out = folder / "s", tmp_path / "out"
    with serving_process("digits", "--socket", socket, "--ledger", ledger) as server:
        assert server.ready["socket"] == str(socket) and server.ready["mode"] == "600"  # type: ignore[attr-defined]
        planned = cli("plan", "--vault", socket, *SMALL, "--json").json
        made = cli("condense", "--vault", socket, *SMALL, "--out", out, "--json")
        assert made.code == 0, made.err
        assert made.json["epsilon"] == planned["epsilon"] and made.json["releasable"] is True
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0 and not socket.exists()
    assert cli("verify", out, "--json").code == 0
    certificate = json.loads((out / "certificate.json").read_text())
    key = ledger.with_name("signing-key")
    assert key.exists() and cli("verify", out, "--key", certificate["signature"]["public_key"]).code == 0
    assert spent(ledger) == pytest.approx(made.json["epsilon"])
    assert not Path(os.environ["LIMBECK_LEDGER"]).exists()  # the client has made no book of its own


def test_ctrl_c_ends_the_server_and_takes_the_socket_away(folder: Path, ledger: Path) -> None:
    with serving_process("digits", "--socket", folder / "s", "--ledger", ledger) as server:
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130 and not (folder / "s").exists()


def test_the_same_run_has_the_same_bits_as_in_one_process(tmp_path: Path, ledger: Path) -> None:
    """With the same predictable noise."""
    small: dict[str, Any] = {"method": "ldpdc", "per_class": 2, "epsilon": 1.0}
    api.condense("digits", tmp_path / "here", ledger=tmp_path / "here.sqlite", insecure_seed=5, **small)
    with Ledger.open(ledger) as book, served(open_source("digits"), book, Randomness(5)) as at:
        made = api.condense(None, tmp_path / "there", vault=at.path, **small)
    assert not made.releasable
    here, there = read_release(tmp_path / "here"), read_release(tmp_path / "there")
    np.testing.assert_array_equal(here.x, there.x)


def test_no_vault_no_run(cli: Cli, folder: Path, tmp_path: Path) -> None:
    found = cli("condense", "--vault", folder / "s", *SMALL, "--out", tmp_path / "out", "--json")
    assert found.code == 4 and found.json["error"]["kind"] == "VaultUnreachable" and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "more",
    [
        ("digits",),
        ("--schema", "x.toml"),
        ("--label", "x"),
        ("--root", "x"),
        ("--ledger", "x"),
        ("--insecure-seed", 3),
    ],
    ids=str,
)
def test_what_is_on_the_vaults_side_is_not_given_here(
    more: tuple[object, ...], cli: Cli, folder: Path, tmp_path: Path
) -> None:
    found = cli("condense", "--vault", folder / "s", *SMALL, *more, "--out", tmp_path / "out")
    assert found.code == 2 and "vault's" in found.err and "leave" in found.err


def test_commands_that_need_the_ledger_say_so(cli: Cli, tmp_path: Path) -> None:
    found = cli("sweep", "--vault", "s", "--vary", "epsilon=1,2", "--out", tmp_path / "o")
    assert found.code == 2 and "does not show its budget" in found.err
    found = cli("continual", "--vault", "s", "--epsilon", 1, "--out", tmp_path / "o")
    assert found.code == 2 and "one data set with one budget" in found.err
    for command in (("condense", "--epsilon", 1, "--out", tmp_path / "o"), ("plan", "--epsilon", 1)):
        found = cli(*command)
        assert found.code == 2 and "--vault" in found.err


def test_a_data_set_without_a_budget_is_not_served(cli: Cli, folder: Path, tmp_path: Path) -> None:
    """Whoever connects books, and a first booking would be the budget."""
    path = tmp_path / "ledger.sqlite"
    found = cli("vault", "serve", "digits", "--socket", folder / "s", "--ledger", path, "--json")
    assert found.code == 3 and "limbeck budget set digits" in found.json["error"]["next_command"]
    assert not path.exists() and not (folder / "s").exists()
    with Ledger.open(path) as book:
        book.set_budget("other", 1.0, 1e-5)
        # Nor is a first booking, made by the owner, a budget for others.
        book.book("digits", plan="{}", method="x", epsilon=1.0, delta=1e-5, counts={"a": 1})
    request = Request(data=DataReference(data="digits"), options=RunOptions(ledger=str(path)))
    with (
        pytest.raises(BudgetRefused, match="Nobody has set a budget"),
        serving(request, open_source("digits"), folder / "s", Door(), print),
    ):
        pass


def test_errors_of_serving_are_sentences(cli: Cli, folder: Path, ledger: Path) -> None:
    for code, options in (
        (2, ("--mode", "777")),
        (2, ("--group", "no-such-group")),
        (2, ("--device", "abacus")),
        (9, ("--socket", folder / "none" / "s")),
        (2, ("--socket", folder / ("x" * 200))),
    ):
        found = cli("vault", "serve", "digits", "--ledger", ledger, "--socket", folder / "s", *options)
        assert found.code == code and found.err.startswith("limbeck: "), found.err
    assert cli("vault", "serve", "nowhere", "--ledger", ledger, "--socket", folder / "s").code == 4


# Kills

SLOWLY = """
import os, signal, sys, time
from limbeck.vault.process.client import ProcessVault
from limbeck.vault.process.socket_file import Door
ask = ProcessVault.ask
def killed(self, grant, label, index, mapping):
    if index == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return ask(self, grant, label, index, mapping)
ProcessVault.ask = killed
sys.argv = ["limbeck", *sys.argv[1:]]
from limbeck.cli import main
main()
"""


def run_until_killed(socket: Path, out: Path) -> None:
    command = ("condense", "--vault", socket, "--method", "ldpdc", "--per-class", 4, "--epsilon", 1, "--out", out)
    code = subprocess.run(
        [sys.executable, "-c", SLOWLY, *map(str, command)], check=False, capture_output=True
    ).returncode
    assert code == -signal.SIGKILL


def test_a_client_that_was_killed_resumes_and_pays_once(cli: Cli, ledger: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Ledger.open(ledger) as book, served(open_source("digits"), book) as at:
        run_until_killed(at.path, out)
        record = RunRecord.read(out)
        assert record.request.data.vault == str(at.path) and record.request.data.data is None and record.booked
        paid = spent(ledger)
        resumed = cli("resume", out, "--json")
        assert resumed.code == 0, resumed.err
        assert spent(ledger) == paid == pytest.approx(resumed.json["epsilon"])
    assert cli("verify", out).code == 0


def test_a_server_that_was_killed_begins_again_and_nothing_is_paid_twice(
    cli: Cli, folder: Path, ledger: Path, tmp_path: Path
) -> None:
    socket, out = folder / "s", tmp_path / "out"
    with serving_process("digits", "--socket", socket, "--ledger", ledger) as server:
        run_until_killed(socket, out)
        server.kill()
        server.wait(60)
    assert socket.exists()  # a dead one
    gone = cli("resume", out)
    assert gone.code == 4 and "nobody answers" in gone.err
    paid = spent(ledger)
    with serving_process("digits", "--socket", folder / "t", "--ledger", ledger):
        resumed = cli("resume", out, "--vault", folder / "t", "--json")
        assert resumed.code == 0, resumed.err
    with (
        Ledger.open(ledger) as book,
        served(open_source("digits"), book, socket_file=socket),
    ):  # in place of the dead one
        assert ProcessVault(socket).describe().name == "digits"
    assert spent(ledger) == paid and cli("verify", out).code == 0


def test_a_server_that_goes_away_in_the_middle_leaves_a_run_to_resume(
    folder: Path, ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    asked = ProcessVault.ask
    with Ledger.open(ledger) as book:
        with served(open_source("digits"), book) as at:

            def leave(self: ProcessVault, grant, label, index, mapping):  # type: ignore[no-untyped-def]
                if index == 1:
                    at.server.stop()
                return asked(self, grant, label, index, mapping)

            monkeypatch.setattr(ProcessVault, "ask", leave)
            with pytest.raises(VaultUnreachable) as raised:
                api.condense(None, out, vault=at.path, method="ldpdc", per_class=3, epsilon=1.0)
            assert raised.value.next_command == f"limbeck resume {out}"
        monkeypatch.undo()
        with served(open_source("digits"), book) as at:
            assert api.resume(out, vault=at.path).releasable
    assert api.verify(out).epsilon == pytest.approx(spent(ledger))


def test_a_booking_whose_reply_was_lost_is_found_again(
    folder: Path, ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, grant = tmp_path / "out", ProcessVault.grant

    def lost(self: ProcessVault, plan, identity=None):  # type: ignore[no-untyped-def]
        grant(self, plan, identity)
        raise VaultUnreachable("The vault went away before it answered.")

    with Ledger.open(ledger) as book, served(open_source("digits"), book) as at:
        monkeypatch.setattr(ProcessVault, "grant", lost)
        with pytest.raises(VaultUnreachable):
            api.condense(None, out, vault=at.path, method="ldpdc", per_class=2, epsilon=1.0)
        monkeypatch.undo()
        api.resume(out)
        account = book.account("digits")
        assert account is not None and len(account.bookings) == 1 and account.bookings[0].state == "finished"


def test_a_run_is_resumed_at_the_vault_that_it_was_begun_at(ledger: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Ledger.open(ledger) as book, served(open_source("digits"), book) as at:
        run_until_killed(at.path, out)
        with pytest.raises(BadInput, match="leave --ledger out"):
            api.resume(out, ledger=ledger)
    with Ledger.open(tmp_path / "other.sqlite") as book:
        book.set_budget("digits", 5.0, 1e-4)
        with served(open_source("digits"), book) as at, pytest.raises(RunConflict):
            api.resume(out, vault=at.path)  # it has never heard of this booking, and books no second one
        account = book.account("digits")
        assert account is not None and not account.bookings


def test_records_are_not_asked_of_a_vault(tmp_path: Path) -> None:
    reference = DataReference(data=None, vault="s")
    with pytest.raises(RunConflict, match="no records"):
        reference.source()
    kept = Request(data=reference).to_dict()
    assert kept["vault"] == str(Path("s").absolute()) and Request.from_dict(kept).data.vault == kept["vault"]
    assert "vault" not in Request(data=DataReference(data="digits")).to_dict()


BUSY = """
import sys, time
from limbeck.data.source import DataSource
def slow(self):
    print("reading", file=sys.stderr, flush=True)
    time.sleep(600)
DataSource.load = slow
sys.argv = ["limbeck", *sys.argv[1:]]
from limbeck.cli import main
main()
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 0), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)]
)
def test_a_signal_ends_a_server_that_is_deep_in_its_work(
    number: signal.Signals, code: int, folder: Path, ledger: Path, tmp_path: Path
) -> None:
    socket, out = folder / "s", tmp_path / "out"
    command = [sys.executable, "-c", BUSY, "vault", "serve", "digits", "--socket", socket, "--ledger", ledger]
    with subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None and "answers at" in server.stderr.readline()
        client = limbeck_process("condense", "--vault", socket, *SMALL, "--out", out)
        assert "reading" in server.stderr.readline()
        server.send_signal(number)
        assert server.wait(30) == code and not socket.exists()
        said = ended(client)
    assert said[0] == 4 and "limbeck resume" in said[2]
    # The booking stands, nothing was answered, and the run that is resumed goes on with it.
    with Ledger.open(ledger) as book, served(open_source("digits"), book, socket_file=socket):
        api.resume(out)
        account = book.account("digits")
    assert account is not None and [booking.state for booking in account.bookings] == ["finished"]


def test_a_vault_whose_log_nobody_reads_goes_on(folder: Path, ledger: Path, tmp_path: Path) -> None:
    socket = folder / "s"
    with serving_process("digits", "--socket", socket, "--ledger", ledger) as server:
        assert server.stderr is not None
        server.stderr.close()
        vault = ProcessVault(socket)
        for _ in range(3):
            with pytest.raises(WallBreach, match="could not read"):
                vault.state("nobody")
        server.stderr = None


# Teachers


def tiny_source() -> Any:
    from tiny import MemorySource

    random = np.random.default_rng(1)
    schema = Schema(name="tiny", shape=(1, 8, 8), classes=("a", "b", "c"), records=60, low=0, high=1)
    return MemorySource(schema, Records(random.uniform(0, 1, (60, 1, 8, 8)).astype(np.float32), np.arange(60) % 3))


def tiny_plan(query: Query) -> Plan:
    return Plan(dataset="tiny", method="test", settings={}, queries=(query,), price=price((query,), 1e-5))


def test_teachers_vote_over_the_socket(tmp_path: Path) -> None:
    """Those of DataLens, with the same predictable noise here and there."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "privacy"))
    from test_teacher_answers import SignVote, question, vote

    source, plan = tiny_source(), tiny_plan(vote(SignVote, count=4))
    assert isinstance(plan.queries[0], TeacherVote)
    found: list[list[np.ndarray]] = []
    for place in ("here", "there"):
        with Ledger.open(tmp_path / f"{place}.sqlite") as book:
            book.set_budget("tiny", 100.0, 0.01)
            if place == "here":
                vault = LocalVault(source, book, Randomness(3))
                grant = vault.grant(plan)
                found.append([vault.ask(grant, "votes", tick, question(SignVote, 3, tick)).values for tick in range(4)])
                continue
            with served(source, book, Randomness(3)) as at:
                grant = at.vault.grant(plan)
                answers = [at.vault.ask(grant, "votes", tick, question(SignVote, 3, tick)).values for tick in range(2)]
                other = at.vault.grant(dataclasses.replace(plan, method="another"))
                at.vault.close(other)  # another run's end leaves the teachers of this one alone
                answers.append(at.vault.ask(grant, "votes", 2, question(SignVote, 3, 2)).values)
            # The server has ended in order, without the client's word: its teachers are kept.
            with served(source, book, Randomness(3)) as at:
                answers.append(at.vault.ask(grant, "votes", 3, question(SignVote, 3, 3)).values)
                at.vault.close(grant)
            found.append(answers)
            assert not list((tmp_path / "teachers").rglob("*.sealed"))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_forged_plan_takes_no_noise_off_the_teachers(tmp_path: Path) -> None:
    """A stored answer is asked for under a plan without noise; the next one, asked for under the booked plan, has its noise."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "privacy"))
    from test_teacher_answers import SignVote, question, vote

    source, plan = tiny_source(), tiny_plan(vote(SignVote, count=4, noise_multiplier=50.0))
    (query,) = plan.queries
    forged = dataclasses.replace(plan, queries=(dataclasses.replace(query, noise_multiplier=0.0),))
    with Ledger.open(tmp_path / "ledger.sqlite") as book:
        book.set_budget("tiny", 100.0, 0.01)
        with served(source, book) as at:
            grant = at.vault.grant(plan)
            at.vault.ask(grant, "votes", 0, question(SignVote, 3, 0))
        with served(source, book) as at:  # the teachers are not at their desk yet
            with pytest.raises(WallBreach):
                at.vault.ask(Grant(grant.id, forged), "votes", 0, question(SignVote, 3, 0))
            answer = at.vault.ask(grant, "votes", 1, question(SignVote, 3, 1)).values
            with pytest.raises(WallBreach):
                at.vault.ask(Grant(grant.id, forged), "votes", 2, question(SignVote, 3, 2))
            at.vault.ask(grant, "votes", 2, question(SignVote, 3, 2))  # and the honest run is not disturbed
    assert answer.std() == pytest.approx(query.noise_std, rel=0.4)


# Users

OWNER, STRANGER = 61_001, 61_002
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can work as other users")


@pytest.mark.slow
@needs_root
def test_another_user_needs_the_socket_and_no_file(folder: Path) -> None:
    """Records and ledger with mode 600 of one user, the run by another one."""
    folder.chmod(0o755)
    owners, strangers = folder / "owner", folder / "stranger"
    for place, user in ((owners, OWNER), (strangers, STRANGER)):
        place.mkdir(mode=0o700)
        os.chown(place, user, user)
    x = np.random.default_rng(0).uniform(0, 1, (200, 4)).astype(np.float32)
    np.savez(owners / "own.npz", x=x, y=np.arange(200) % 2)
    (owners / "own.npz.limbeck.toml").write_text(
        'name = "own"\nshape = [4]\nclasses = ["a", "b"]\nrecords = 200\nlow = 0\nhigh = 1\naugmentation = []\n'
    )
    for path in owners.iterdir():
        path.chmod(0o600)
        os.chown(path, OWNER, OWNER)
    # The socket's folder belongs to the owner, and others may pass through it.
    meeting = folder / "run"
    meeting.mkdir(mode=0o755)
    os.chown(meeting, OWNER, OWNER)
    homes = {
        user: {"HOME": str(place), "XDG_DATA_HOME": str(place)}
        for user, place in ((OWNER, owners), (STRANGER, strangers))
    }
    book = {"LIMBECK_LEDGER": str(owners / "ledger.sqlite")}
    set_budget = limbeck_process(
        "budget", "set", "own", "--epsilon", 2, "--delta", 1e-4, user=OWNER, **homes[OWNER], **book
    )
    code, _, err = ended(set_budget)
    if "No module named" in err or "Permission denied" in err:
        pytest.skip("another user of this machine cannot run Python's packages")
    assert code == 0, err
    with serving_process(owners / "own.npz", "--socket", meeting / "closed", user=OWNER, **homes[OWNER], **book):
        asked = limbeck_process("plan", "--vault", meeting / "closed", *SMALL, user=STRANGER, **homes[STRANGER])
        code, _, err = ended(asked)
        assert code == 4 and "Permission denied" in err  # mode 600: for the owner alone
    with serving_process(
        owners / "own.npz", "--socket", meeting / "t", "--mode", "666", user=OWNER, **homes[OWNER], **book
    ):
        made = limbeck_process(
            "condense",
            "--vault",
            meeting / "t",
            *SMALL,
            "--delta",
            1e-5,
            "--out",
            strangers / "out",
            user=STRANGER,
            **homes[STRANGER],
        )
        code, _, err = ended(made)
        assert code == 0, err
    for path in (owners / "own.npz", owners / "ledger.sqlite", owners / "signing-key"):
        tried = subprocess.run(
            ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups", "cat", str(path)],
            capture_output=True,
            check=False,
        )
        assert path.exists() and tried.returncode != 0 and not tried.stdout
    assert api.verify(strangers / "out").dataset == "own"


@needs_root
def test_the_group_of_the_socket_may_connect(folder: Path, ledger: Path) -> None:
    folder.chmod(0o755)
    with serving_process("digits", "--socket", folder / "s", "--ledger", ledger, "--group", STRANGER):
        found = (folder / "s").stat()
        assert found.st_gid == STRANGER and found.st_mode & 0o777 == 0o660
        code, _, err = ended(limbeck_process("plan", "--vault", folder / "s", *SMALL, user=STRANGER))
        assert code == 0, err
        code, _, err = ended(limbeck_process("plan", "--vault", folder / "s", *SMALL, user=OWNER))
        assert code == 4 and "Permission denied" in err
