"""The command on several ranks, in real processes: the same set, and every way to die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from limbeck.release.reader import read_release
from limbeck.vault.ledger import Ledger
from rank_processes import LIMBECK, Popen, ends, environment, free_port, started, torchrun, wait_for_step

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
RUN = (
    "condense", "digits", "--method", "elixir", "--epsilon", 1, "--per-class", 3, "--set", "T=40", "--set", "L=60", "--set",
    "networks=4", "--insecure-seed", 5, "--json",
)  # fmt: skip


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "ledger.sqlite"
    monkeypatch.setenv("LIMBECK_LEDGER", str(path))
    with Ledger.open(path) as book:
        book.set_budget("digits", 20.0, 1e-3)
    return path


def spent(ledger: Path) -> float:
    with Ledger.open_to_read(ledger) as book:
        account = book.account("digits")
    assert account is not None
    return account.spent_epsilon


def set_of(release: Path) -> bytes:
    return read_release(release).x.tobytes()


def alone(out: Path) -> bytes:
    """The set of the same run in one process."""
    command = [sys.executable, *LIMBECK, *map(str, RUN), "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True, env=environment())
    return set_of(out)


def test_the_same_set_for_one_two_and_four_ranks(tmp_path: Path, ledger: Path) -> None:
    expected = alone(tmp_path / "alone")
    for size in (1, 2, 4):
        out = tmp_path / f"on-{size}"
        code, printed, err = torchrun(size, *RUN, "--out", out)
        assert code == 0, err
        assert json.loads(printed)["release"] == str(out)  # one object, from rank 0 alone
        assert set_of(out) == expected


@pytest.fixture
def underway(tmp_path: Path, ledger: Path) -> Iterator[tuple[Path, list[Popen]]]:
    out = tmp_path / "out"
    with started(3, *LIMBECK, *RUN, "--out", out, LIMBECK_RANK_SECONDS="30") as children:
        wait_for_step(out, 8, children)
        yield out, children


def require_resumed(out: Path, ledger: Path, size: int) -> None:
    """With another number of ranks: the same set, paid once."""
    before = spent(ledger)
    if size == 1:
        command = [sys.executable, *LIMBECK, "resume", str(out)]
        subprocess.run(command, check=True, capture_output=True, env=environment())
    else:
        code, _, err = torchrun(size, "resume", out, "--json")
        assert code == 0, err
    assert spent(ledger) == before > 0
    assert set_of(out) == alone(out.with_name("alone"))


@pytest.mark.parametrize(("victim", "size"), [(1, 2), (2, 1), (1, 4)])
def test_a_rank_that_dies_ends_the_run_and_it_goes_on_with_others(
    victim: int, size: int, underway: tuple[Path, list[Popen]], ledger: Path
) -> None:
    out, children = underway
    children[victim].kill()
    found = ends(children, 60)
    code, printed, err = found[0]
    assert code == 12, err
    error = json.loads(printed)["error"]
    assert error["kind"] == "RankLost" and error["next_command"] == f"limbeck resume {out}"
    assert "Traceback" not in err and "Traceback" not in found[3 - victim][2]
    assert found[3 - victim][0] == 12 and not found[3 - victim][1]
    require_resumed(out, ledger, size)


def test_a_silent_rank_is_not_waited_for_without_end(underway: tuple[Path, list[Popen]], ledger: Path) -> None:
    out, children = underway
    children[1].send_signal(signal.SIGSTOP)
    code, printed, err = ends(children[:1], 120)[0]
    assert code == 12 and json.loads(printed)["error"]["kind"] == "RankLost", err
    children[1].kill()
    require_resumed(out, ledger, 2)


def test_a_silent_rank_0_is_not_waited_for_without_end(underway: tuple[Path, list[Popen]], ledger: Path) -> None:
    out, children = underway
    children[0].send_signal(signal.SIGSTOP)
    for code, printed, err in ends(children[1:], 150):
        assert code == 12 and not printed and "limbeck: rank" in err and "Traceback" not in err
    children[0].kill()
    children[0].communicate()
    require_resumed(out, ledger, 1)


def test_without_rank_0_the_others_end(underway: tuple[Path, list[Popen]], ledger: Path) -> None:
    out, children = underway
    children[0].kill()
    for code, printed, err in ends(children, 60)[1:]:
        assert code == 12 and not printed and "limbeck: rank" in err and "Traceback" not in err
    require_resumed(out, ledger, 2)


def test_torchrun_ends_all_when_one_dies_and_when_it_is_stopped(tmp_path: Path, ledger: Path) -> None:
    for number, stop in enumerate((_kill_rank_1, lambda launcher: launcher.send_signal(signal.SIGINT))):
        out = tmp_path / f"run-{number}"
        command = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc-per-node",
            "2",
            "--master-port",
            str(free_port()),
        ]
        launcher = subprocess.Popen(
            [*command, *LIMBECK, *map(str, RUN), "--out", str(out)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        )  # fmt: skip
        try:
            wait_for_step(out, 5, [launcher])
            stop(launcher)
            printed, err = launcher.communicate(timeout=60)
        finally:
            launcher.kill()
        assert launcher.returncode not in (0, None)
        error = json.loads(printed)["error"]  # whichever it notices first
        assert error["kind"] in ("RankLost", "Stopped") and error["next_command"] == f"limbeck resume {out}", err
        code, _, err = torchrun(2, "resume", out, "--json")
        assert code == 0, err


def _kill_rank_1(launcher: Popen) -> None:
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    ranks = [int(pid) for pid in children if b"RANK=1" in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")]
    os.kill(ranks[0], signal.SIGKILL)


def test_what_rank_0_refuses_is_said_once(tmp_path: Path, ledger: Path) -> None:
    for more, kind in (
        (("--epsilon", "-1"), "BadInput"),
        (("--method", "gswgan"), "BadSettings"),
        (("--epsilon", "30"), "BudgetRefused"),
        (("--nonsense",), "Usage"),
    ):
        with started(2, *LIMBECK, *RUN, "--out", tmp_path / "out", *more) as children:
            found = ends(children)
        assert json.loads(found[0][1])["error"]["kind"] == kind, found
        assert not found[1][1] and "Traceback" not in found[0][2] + found[1][2]
        assert spent(ledger) == 0 and not (tmp_path / "out").exists()


def test_other_commands_are_done_by_rank_0_alone(ledger: Path) -> None:
    with started(2, *LIMBECK, "budget", "show", "--json") as children:
        found = ends(children)
    assert json.loads(found[0][1]) and found[1] == (0, "", "")


def test_other_files_on_another_machine_are_refused(tmp_path: Path, ledger: Path) -> None:
    """Rank 1 sees another file at the same path, as on another machine."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs a mount namespace")
    data, other = tmp_path / "data.npz", tmp_path / "other.npz"
    x, y = np.random.default_rng(0).random((60, 1, 8, 8), dtype=np.float32), np.arange(60) % 2
    np.savez(data, x=x, y=y)
    x[50, 0, 0, 0] += 0.25
    np.savez(other, x=x, y=y)
    data.with_name("data.npz.limbeck.toml").write_text(
        'name = "mine"\nclasses = ["a", "b"]\nrecords = 60\nshape = [1, 8, 8]\nlow = 0\nhigh = 1\n'
    )
    before = [[], ["unshare", "--mount", "sh", "-c", f'mount --bind {other} {data} && exec "$@"', "sh"]]
    arguments = ("condense", data, "--method", "ldpdc", "--epsilon", 1, "--per-class", 2, "--json")
    with started(2, *LIMBECK, *arguments, "--out", tmp_path / "out", before=before) as children:
        found = ends(children)
    error = json.loads(found[0][1])["error"]
    assert error["kind"] == "DataUnreadable" and "other records" in error["message"]
    assert not (tmp_path / "out").exists()
    with Ledger.open_to_read(ledger) as book:
        account = book.account("mine")
        assert account is None or account.spent_epsilon == 0
