"""A run that is killed at any moment and taken up again: the same set, paid once, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import working as work
from limbeck.progress import Silent
from limbeck.release.destination import RUN_STATE as STATE
from limbeck.release.reader import read_release
from limbeck.runs.execution import computing_with
from limbeck.runs.folder import held
from limbeck.runs.run_file import decoded, encoded
from limbeck.vault.api import Answer
from limbeck.vault.ledger import Account, Ledger
from limbeck.vault.local import LocalVault

Cli = Callable[..., Any]

SETTINGS = {
    "ndpdc": {"per_class": 2, "net": "convnet", "width": 4, "I": 6, "L": 10, "sigma": 2.0},
    "ldpdc": {"per_class": 6, "L": 10, "sigma": 2.0},
    "psg": {"per_class": 1, "width": 4, "R": 2, "T": 2, "K": 2, "J": 2, "B": 30, "sigma": 2.0, "snapshots": 3},
    "psg-prior": {"per_class": 1, "width": 4, "R": 2, "T": 2, "K": 2, "J": 2, "B": 30, "sigma": 2.0},
}

# A process that has everything imported, and forks a child for every run that shall die.
NURSERY = """
import json, os, pathlib, signal, sys, time
from pathlib import Path
from limbeck.release import certificate
from limbeck.release import writer as release
from limbeck.runs import checkpoint
from limbeck.runs.condense import condense
from limbeck.runs.planning import plan_for
from limbeck.runs.request import DataReference, Request, RunOptions
from limbeck.runs.resume import resume
from limbeck.data import DataSource
from limbeck.progress import Silent
from limbeck.runs.record import RunRecord
from limbeck.vault.ledger import Ledger

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def patch(owner, name, call, dies_first, counts=lambda *a: True):
    original, calls = getattr(owner, name), []
    def patched(*arguments, **named):
        if counts(*arguments):
            calls.append(1)
        if counts(*arguments) and dies_first and len(calls) == call:
            die()
        result = original(*arguments, **named)
        if counts(*arguments) and len(calls) == call:
            die()
        return result
    setattr(owner, name, patched)

def before(owner, name, call=1):
    patch(owner, name, call, True)

def after(owner, name, call=1):
    patch(owner, name, call, False)

def moved(call):
    # Files of the release that are just being written are renamed within their folder; these are not meant.
    out = lambda source, target: source.parent.name == "release" and Path(target).parent != source.parent
    patch(Path, "replace", call, False, out)

DATA = "digits"

def start(method, settings, out, seed):
    request = Request(data=DataReference(data=DATA), options=RunOptions(insecure_seed=seed))
    plan, source = plan_for(request.data, method, settings, None, 1e-5)
    condense(request, plan, source, Path(out), Silent(), checkpoint_seconds=0.0)

# Prices and slow imports are done once, before the first child.
import sklearn.datasets, limbeck.report.pages
for method, settings in json.loads(sys.argv[1]).items():
    plan_for(DataReference(data=DATA), method, settings, None, 1e-5)
print("ready", flush=True)
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        os.environ.update(job["environment"])
        try:
            exec(job["kill"])
            start(*job["start"])
        finally:
            os._exit(1)
    print(os.waitpid(child, 0)[1], flush=True)
"""


class Nursery:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", NURSERY, json.dumps(SETTINGS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self._process.stdout is not None and self._process.stdin is not None
        self._replies, self._jobs = self._process.stdout, self._process.stdin
        assert self._replies.readline() == "ready\n"

    def kill(self, where: str, method: str, out: Path, seed: int | None = 7) -> None:
        """Start a run that dies by SIGKILL at the place that the code `where` arranges."""
        job = {
            "environment": {"LIMBECK_LEDGER": os.environ["LIMBECK_LEDGER"]},
            "kill": where,
            "start": [method, SETTINGS[method], str(out), seed],
        }
        self._jobs.write(json.dumps(job) + "\n")
        self._jobs.flush()
        assert int(self._replies.readline()) == signal.SIGKILL, "the run did not reach the place where it should die"

    def close(self) -> None:
        self._jobs.close()
        self._process.wait(30)
        self._replies.close()


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """As in the nursery: sums are added up in another order where there are more threads, and sets are compared by bits."""
    with computing_with(1):
        yield


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


def condense(method: str, out: Path, seed: int | None = 7) -> None:
    request = work.asked(insecure_seed=seed)
    plan, source = work.plan_for(request.data, method, SETTINGS[method], None, 1e-5)
    work.condense(request, plan, source, out, Silent(), checkpoint_seconds=0.0)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The release of each method when nothing goes wrong."""
    root = tmp_path_factory.mktemp("uninterrupted")
    with pytest.MonkeyPatch.context() as patch:
        for method in SETTINGS:
            patch.setenv("LIMBECK_LEDGER", str(root / f"{method}.sqlite"))
            condense(method, root / method)
    return {method: root / method for method in SETTINGS}


def account() -> Account:
    with Ledger.open() as ledger:
        found = ledger.account("digits")
    assert found is not None
    return found


def assert_whole(out: Path, like: Path) -> None:
    """Same set bit for bit, paid once, nothing left behind."""
    for name in ("set.npz", "data/train.parquet", "grid.png"):
        assert (out / name).read_bytes() == (like / name).read_bytes(), name
    assert not (out / STATE).exists()
    paid = account()
    assert [booking.state for booking in paid.bookings] == ["finished"]
    assert paid.spent_epsilon == read_release(out).certificate["epsilon"]


STATES = {
    "before booking": "before(Ledger, 'book')",
    "after booking": "after(Ledger, 'book')",
    "before reading": "before(DataSource, 'load')",
    "after reading": "after(DataSource, 'load')",
    "when the booking is noted": "after(RunRecord, 'write', 2)",
    "before the first answer is stored": "before(Ledger, 'store')",
    "after an answer is stored, before it is used": "after(Ledger, 'store', 3)",
    "while a checkpoint is written": "after(checkpoint, 'save_file', 3)",
    "between checkpoint and forgetting": "before(Ledger, 'forget', 3)",
    "after a checkpoint": "after(Ledger, 'forget', 3)",
    "after the last step, before staging": "before(release.ReleaseWriter, 'write')",
    "in the middle of staging": "before(release, 'write_parquet')",
    "before the certificate is staged": "before(certificate, 'sign')",
    "after staging, before closing": "before(Ledger, 'finish')",
    "after closing, before moving": "after(Ledger, 'finish')",
    "in the middle of moving": "moved(3)",
    "before the certificate is moved": "moved(6)",
    "after moving, before tidying": "moved(7)",
    "in the middle of tidying": "patch(Path, 'unlink', 1, True, lambda path, *a: path.name == 'run.json')",
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    "method", ["ndpdc", "psg", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ldpdc", "psg-prior"))]
)
def test_killed_and_resumed_ends_in_the_same_set(
    nursery: Nursery, uninterrupted: dict[str, Path], cli: Cli, tmp_path: Path, method: str, state: str
) -> None:
    out = tmp_path / "out"
    nursery.kill(STATES[state], method, out)
    assert cli("verify", out).code == 6
    resumed = cli("resume", out, "--json")
    assert resumed.code == 0 and resumed.json["release"] == str(out), resumed.err
    assert_whole(out, uninterrupted[method])
    assert cli("verify", out).code == 7  # intact, but the noise of a test is not secret


def test_resumed_with_secret_noise_is_releasable(nursery: Nursery, cli: Cli, tmp_path: Path) -> None:
    nursery.kill("after(Ledger, 'forget', 3)", "ndpdc", tmp_path / "out", seed=None)
    assert cli("resume", tmp_path / "out").code == 0
    assert cli("verify", tmp_path / "out").code == 0


def test_a_resumed_run_computes_with_the_threads_that_it_began_with(
    nursery: Nursery, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nursery.kill("after(Ledger, 'store', 3)", "ndpdc", tmp_path / "out")  # with one thread
    seen, original = [], LocalVault.ask

    def ask(*arguments: Any) -> Answer:
        seen.append(torch.get_num_threads())
        return original(*arguments)

    monkeypatch.setattr(LocalVault, "ask", ask)
    with computing_with(2):
        assert cli("resume", tmp_path / "out").code == 0
        assert set(seen) == {1} and torch.get_num_threads() == 2


def test_killed_again_while_resuming(
    nursery: Nursery, uninterrupted: dict[str, Path], cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    nursery.kill("after(Ledger, 'forget', 2)", "ndpdc", out)
    for where in ("after(Ledger, 'store', 2)", "before(Ledger, 'finish')", "moved(2)"):
        nursery.kill(f"start = lambda *a: resume(Path({str(out)!r}), Silent())\n{where}", "ndpdc", out)
    assert cli("resume", out).code == 0
    assert_whole(out, uninterrupted["ndpdc"])


def test_killed_before_anything_was_written_leaves_a_folder_that_can_be_used(
    nursery: Nursery, uninterrupted: dict[str, Path], cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    nursery.kill("before(RunRecord, 'write')", "ldpdc", out)
    refused = cli("resume", out)
    assert refused.code == 8 and "holds no interrupted run" in refused.err
    condense("ldpdc", out)
    assert_whole(out, uninterrupted["ldpdc"])


def test_killed_in_the_very_last_step_is_tidied(
    nursery: Nursery, uninterrupted: dict[str, Path], cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    nursery.kill("patch(Path, 'unlink', 1, False, lambda path, *a: path.name == 'run.json')", "ldpdc", out)
    assert "finished release" in cli("resume", out).err
    assert_whole(out, uninterrupted["ldpdc"])


def test_finished_release_has_nothing_to_resume(cli: Cli, tmp_path: Path) -> None:
    condense("ldpdc", tmp_path / "out")
    for _ in range(2):
        refused = cli("resume", tmp_path / "out", "--json")
        assert refused.code == 8
        assert refused.json["error"]["next_command"] == f"limbeck verify {tmp_path / 'out'}"
        assert "is a finished release; there is nothing to resume" in refused.err
    assert cli("verify", tmp_path / "out").code == 7


@pytest.mark.parametrize("kind", ["missing", "empty", "file", "other files"])
def test_what_is_no_run_cannot_be_resumed(cli: Cli, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    if kind == "file":
        out.write_text("text")
    elif kind != "missing":
        out.mkdir()
    if kind == "other files":
        (out / "letter.txt").write_text("text")
    refused = cli("resume", out)
    assert refused.code == 8 and "resume" in refused.err and "Traceback" not in refused.err
    assert not (out / STATE).exists()


def test_damaged_run_file_is_refused(nursery: Nursery, cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    nursery.kill("after(Ledger, 'store', 2)", "ldpdc", out)
    for damaged in (b"", b"{", b"[]", b"null", b'{"grant": "x"}', b"\xff\xfe", b'{"format": 1}'):
        (out / STATE / "run.json").write_bytes(damaged)
        refused = cli("resume", out)
        assert refused.code == 8 and "run.json is damaged" in refused.err, damaged
    assert account().bookings[0].state == "open"


def edit(out: Path, **changes: Any) -> None:
    """What a run file would say that was written with these changes, digest included."""
    path = out / STATE / "run.json"
    path.write_bytes(encoded({**decoded(path.read_bytes()), **changes}))


def test_run_file_of_another_version_is_refused(nursery: Nursery, cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    nursery.kill("after(Ledger, 'store', 2)", "ldpdc", out)
    edit(out, format=99)
    assert "format 99" in cli("resume", out).err
    edit(out, format=1, request={"future": True})
    assert cli("resume", out).code == 8


def test_changed_plan_is_refused(nursery: Nursery, cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    nursery.kill("after(Ledger, 'store', 2)", "ldpdc", out)
    plan = json.loads((out / STATE / "run.json").read_text())["plan"]
    edit(out, plan={**plan, "settings": {**plan["settings"], "L": 11}})
    refused = cli("resume", out)
    assert refused.code == 8 and "another plan" in refused.err
    edit(out, plan={"dataset": "digits"})
    assert cli("resume", out).code in (2, 8)
    assert account().spent_epsilon > 0


@pytest.mark.parametrize("kind", ["another run", "another configuration", "cut short", "no checkpoint at all"])
def test_wrong_checkpoint_is_refused(nursery: Nursery, cli: Cli, tmp_path: Path, kind: str) -> None:
    out, checkpoint = tmp_path / "out", tmp_path / "out" / STATE / "checkpoint.safetensors"
    nursery.kill("after(Ledger, 'forget', 3)", "ldpdc", out)
    if kind == "cut short":
        checkpoint.write_bytes(checkpoint.read_bytes()[:-8])
    elif kind == "no checkpoint at all":
        checkpoint.write_bytes(b"")
    else:
        other = tmp_path / "other"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LIMBECK_LEDGER", str(tmp_path / "other.sqlite"))
            nursery.kill("after(Ledger, 'forget', 2)", "ldpdc" if kind == "another run" else "ndpdc", other)
        (other / STATE / "checkpoint.safetensors").replace(checkpoint)
    refused = cli("resume", out)
    assert refused.code == 8 and "checkpoint" in refused.err
    assert ("belongs to another" in refused.err) == kind.startswith("another")


def test_a_run_is_taken_up_by_one_process_at_a_time(
    nursery: Nursery, uninterrupted: dict[str, Path], cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    nursery.kill("after(Ledger, 'store', 2)", "ldpdc", out)
    with held(out):
        refused = cli("resume", out)
        assert refused.code == 8 and "Another process is at work" in refused.err
    assert cli("resume", out).code == 0
    assert_whole(out, uninterrupted["ldpdc"])


def test_the_folder_of_an_unfinished_run_is_not_taken_for_a_new_one(nursery: Nursery, cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    nursery.kill("after(Ledger, 'store', 2)", "ldpdc", out)
    refused = cli("condense", "digits", "--method", "ldpdc", "--set", "sigma=2", "--per-class", 2, "--out", out)
    assert refused.code == 8 and f"limbeck resume {out}" in refused.err
    assert len(account().bookings) == 1


# Data and ledger that changed in between


@pytest.fixture
def own_data(tmp_path: Path) -> Path:
    """A data set of its owner, with a schema beside it."""
    path = tmp_path / "own.npz"
    generator = np.random.default_rng(0)
    np.savez(path, x=generator.uniform(0, 1, (200, 4)).astype(np.float32), y=np.arange(200) % 2)
    path.with_name("own.npz.limbeck.toml").write_text(
        'name = "own"\nshape = [4]\nclasses = ["a", "b"]\nrecords = 200\nlow = 0\nhigh = 1\naugmentation = []\n'
    )
    return path


def kill_own(nursery: Nursery, where: str, data: Path, out: Path) -> None:
    nursery.kill(f"DATA = {str(data)!r}\n" + where, "ldpdc", out)


def test_data_that_is_away_can_come_back(nursery: Nursery, cli: Cli, own_data: Path, tmp_path: Path) -> None:
    out, away = tmp_path / "out", tmp_path / "away.npz"
    kill_own(nursery, "after(Ledger, 'store', 3)", own_data, out)
    own_data.rename(away)
    assert cli("resume", out).code == 4
    own_data.write_bytes(b"no archive")
    refused = cli("resume", out)
    assert refused.code == 4 and f"next: limbeck resume {out}" in refused.err
    away.replace(own_data)
    assert cli("resume", out).code == 0
    with Ledger.open() as ledger:
        found = ledger.account("own")
    assert found is not None and [booking.state for booking in found.bookings] == ["finished"]


def test_a_finished_set_needs_no_data(nursery: Nursery, cli: Cli, own_data: Path, tmp_path: Path) -> None:
    kill_own(nursery, "before(Ledger, 'finish')", own_data, tmp_path / "out")
    own_data.unlink()
    assert cli("resume", tmp_path / "out").code == 0
    assert cli("verify", tmp_path / "out").code == 7


def test_unreadable_before_the_first_answer_costs_nothing_and_can_be_resumed(
    nursery: Nursery, cli: Cli, own_data: Path, tmp_path: Path
) -> None:
    out, whole = tmp_path / "out", own_data.read_bytes()
    kill_own(nursery, "after(Ledger, 'book')", own_data, out)
    own_data.write_bytes(b"no archive")
    assert cli("resume", out).code == 4
    assert cli("budget", "show", "own").code == 4  # no budget: it was given back
    own_data.write_bytes(whole)
    assert cli("resume", out).code == 0
    with Ledger.open() as ledger:
        found = ledger.account("own")
    assert found is not None and [booking.state for booking in found.bookings] == ["void", "finished"]


def test_changed_schema_is_refused(nursery: Nursery, cli: Cli, own_data: Path, tmp_path: Path) -> None:
    kill_own(nursery, "after(Ledger, 'store', 3)", own_data, tmp_path / "out")
    schema = own_data.with_name("own.npz.limbeck.toml")
    first = schema.read_text()
    schema.write_text(first.replace("high = 1", "high = 2"))
    refused = cli("resume", tmp_path / "out")
    assert refused.code == 8 and "schema" in refused.err
    schema.write_text(first)
    assert cli("resume", tmp_path / "out").code == 0


def test_a_run_is_resumed_from_any_folder(
    nursery: Nursery, cli: Cli, own_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os_change = f"os.chdir({str(tmp_path)!r})\n"
    kill_own(nursery, os_change + "after(Ledger, 'store', 3)", Path(own_data.name), tmp_path / "out")
    monkeypatch.chdir("/")
    assert cli("resume", tmp_path / "out").code == 0


def test_a_folder_that_is_called_like_a_named_set_is_not_mistaken_for_it(
    nursery: Nursery, cli: Cli, tmp_path: Path, uninterrupted: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "digits").mkdir()
    nursery.kill(f"os.chdir({str(tmp_path)!r})\nafter(Ledger, 'store', 3)", "ldpdc", tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    assert cli("resume", tmp_path / "out").code == 0
    assert_whole(tmp_path / "out", uninterrupted["ldpdc"])


@pytest.mark.parametrize("where", ["after(Ledger, 'store', 3)", "before(Ledger, 'finish')"])
def test_another_ledger_is_refused_and_stays_as_it_was(
    nursery: Nursery, uninterrupted: dict[str, Path], cli: Cli, tmp_path: Path, where: str
) -> None:
    out, other = tmp_path / "out", tmp_path / "other.sqlite"
    nursery.kill(where, "ldpdc", out)
    assert cli("resume", out, "--ledger", other).code == 5 and not other.exists()
    Ledger.open(other).close()
    refused = cli("resume", out, "--ledger", other)
    assert refused.code == 8 and "no booking" in refused.err
    with Ledger.open(other) as ledger:
        assert ledger.accounts() == []
    assert cli("resume", out).code == 0
    assert_whole(out, uninterrupted["ldpdc"])


# Ctrl-C


def test_control_c_tells_how_to_go_on(
    uninterrupted: dict[str, Path], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, stored, store = tmp_path / "my out", [0], Ledger.store

    def interrupted(*arguments: Any, **named: Any) -> bytes:
        stored[0] += 1
        if stored[0] == 3:
            raise KeyboardInterrupt
        return store(*arguments, **named)

    monkeypatch.setattr(Ledger, "store", interrupted)
    settings = [f"--set={key}={value}" for key, value in SETTINGS["ldpdc"].items()]
    stopped = cli("condense", "digits", "--method=ldpdc", *settings, "--out", out, "--insecure-seed=7")
    assert (stopped.code, stopped.out) == (130, "")
    assert stopped.err.endswith(
        f"\nlimbeck: Stopped; what was answered so far is kept. Go on with: limbeck resume '{out}'\n"
    )
    assert cli("resume", out).code == 0
    assert_whole(out, uninterrupted["ldpdc"])


def test_control_c_in_a_process(tmp_path: Path) -> None:
    out = tmp_path / "out"
    settings = [f"--set={key}={value}" for key, value in {**SETTINGS["ndpdc"], "I": 100_000, "sigma": 50}.items()]
    words = ["condense", "digits", "--method", "ndpdc", *settings, "--out", str(out), "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "limbeck", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        # A test run in the background ignores Ctrl-C, and its children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    ) as child:
        while not answers() and child.poll() is None:
            time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        shown, errors = child.communicate(timeout=60)
    assert child.returncode == 130, errors
    assert json.loads(shown)["error"]["next_command"] == f"limbeck resume {out}"
    assert "Traceback" not in errors
    assert (out / STATE / "run.json").exists() and account().bookings[0].state == "open"


def answers() -> int:
    if not Path(os.environ["LIMBECK_LEDGER"]).exists():
        return 0
    with Ledger.open() as ledger:
        return sum(
            sum(ledger.drawn(booking.grant).values()) for found in ledger.accounts() for booking in found.bookings
        )
