"""Two machines, as far as the network can tell: ranks in two network namespaces, joined by a cable that can be cut."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_torchrun import RUN, alone, ledger, set_of, spent

from rank_processes import LIMBECK, Popen, ends, environment, wait_for_step

__all__ = ["ledger"]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
ADDRESS, PORT = ("10.77.7.1", "10.77.7.2"), 29777


def ip(*words: str, inside: str | None = None) -> None:
    within = ["netns", "exec", inside, "ip"] if inside else []
    subprocess.run(["ip", *within, *words], check=True, capture_output=True)


@pytest.fixture
def machines() -> Iterator[tuple[str, str]]:
    """Names of two namespaces that see each other, and nothing else."""
    if shutil.which("ip") is None:
        pytest.skip("needs the command ip (package iproute2)")
    names = (f"limbeck-a-{os.getpid()}", f"limbeck-b-{os.getpid()}")
    try:
        try:
            for name in names:
                ip("netns", "add", name)
            ip("link", "add", "lbk0", "netns", names[0], "type", "veth", "peer", "name", "lbk0", "netns", names[1])
        except subprocess.CalledProcessError:
            pytest.skip("no network namespace can be made here")
        for name, address in zip(names, ADDRESS, strict=True):
            ip("addr", "add", f"{address}/24", "dev", "lbk0", inside=name)
            ip("link", "set", "lbk0", "up", inside=name)
            ip("link", "set", "lo", "up", inside=name)
        yield names
    finally:
        for name in names:
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)


@contextlib.contextmanager
def torchruns(machines: tuple[str, str], *arguments: object, **more: str) -> Iterator[list[Popen]]:
    """`torchrun --nnodes 2 ...` on each machine, as docs/scale.md says."""
    children: list[Popen] = []
    try:
        for rank, name in enumerate(machines):
            launch = ("--nnodes", "2", "--nproc-per-node", "1", "--node-rank", str(rank), "--master-addr", ADDRESS[0])
            command = [sys.executable, "-m", "torch.distributed.run", *launch, "--master-port", str(PORT)]
            env = environment(GLOO_SOCKET_IFNAME="lbk0", **more)
            children.append(
                subprocess.Popen(
                    ["ip", "netns", "exec", name, *command, *LIMBECK, *map(str, arguments)],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    env=env,
                )
            )
        yield children
    finally:
        for child in children:
            child.terminate()
        for child in children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.communicate(timeout=40)
            child.kill()


def test_two_machines_make_the_set_of_one(machines: tuple[str, str], tmp_path: Path, ledger: Path) -> None:
    out = tmp_path / "out"
    with torchruns(machines, *RUN, "--out", out) as children:
        (code, printed, err), (other, nothing, other_err) = ends(children, 240)
    assert code == 0 and other == 0, err + other_err
    assert json.loads(printed)["release"] == str(out) and not nothing
    assert set_of(out) == alone(tmp_path / "alone")


def test_a_cable_that_is_cut_ends_the_run_in_time(machines: tuple[str, str], tmp_path: Path, ledger: Path) -> None:
    out = tmp_path / "out"
    with torchruns(machines, *RUN, "--out", out, LIMBECK_RANK_SECONDS="30") as children:
        wait_for_step(out, 5, children)
        ip("link", "set", "lbk0", "down", inside=machines[0])
        code, printed, err = ends(children[:1], 120)[0]
        assert code not in (0, None), err
        assert json.loads(printed)["error"]["kind"] == "RankLost", err
    before = spent(ledger)
    subprocess.run([sys.executable, *LIMBECK, "resume", str(out)], check=True, capture_output=True, env=environment())
    assert spent(ledger) == before and set_of(out) == alone(tmp_path / "alone")
