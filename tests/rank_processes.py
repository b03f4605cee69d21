"""Ranks as processes of their own, as torchrun or another launcher starts them."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import limbeck

SOURCE = Path(limbeck.__file__).parents[1]
LIMBECK = ("-m", "limbeck")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def environment(**more: str) -> dict[str, str]:
    base = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    return {**base, "LIMBECK_RANK_SECONDS": "60", **more}


def rank_variables(rank: int, size: int, port: int, address: str = "127.0.0.1") -> dict[str, str]:
    values = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": address, "MASTER_PORT": port}
    return {name: str(value) for name, value in values.items()}


@contextlib.contextmanager
def started(size: int, *arguments: object, before: Sequence[Sequence[str]] = (), **more: str) -> Iterator[list[Popen]]:
    """`python ARGUMENTS` once for each rank; whatever is left of them at the end is killed. before: a prefix for each rank."""
    port, children = free_port(), list[Popen]()
    try:
        for rank in range(size):
            prefix = before[rank] if before else ()
            command = [*prefix, sys.executable, *map(str, arguments)]
            env = environment(**{**rank_variables(rank, size, port), **more})
            children.append(
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
            )
        yield children
    finally:
        for child in children:
            child.kill()
            child.communicate()


Popen = subprocess.Popen[str]


def ends(children: Sequence[Popen], seconds: float = 120) -> list[tuple[int, str, str]]:
    """Code, output and errors of each; fails if one of them hangs."""
    found = []
    for child in children:
        out, err = child.communicate(timeout=seconds)
        found.append((child.returncode, out, err))
    return found


def torchrun(size: int, *arguments: object, **more: str) -> tuple[int, str, str]:
    """`torchrun --nproc-per-node SIZE -m limbeck ARGUMENTS`."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(size), "--master-port"]
    child = subprocess.run(
        [*command, str(free_port()), *LIMBECK, *map(str, arguments)],
        capture_output=True, text=True, env=environment(**more), timeout=240, check=False,
    )  # fmt: skip
    return child.returncode, child.stdout, child.stderr


def wait_for_step(out: Path, step: int, children: Sequence[Popen], seconds: float = 120) -> None:
    """Until the run in `out` has made so many steps."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError):
            if json.loads((out / ".run" / "progress.json").read_text())["step"] >= step:
                return
        for child in children:
            assert child.poll() is None, child.communicate()
        time.sleep(0.02)
    raise AssertionError("no progress")
