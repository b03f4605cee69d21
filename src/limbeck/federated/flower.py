"""Flower's processes: what all of them are started with. Telemetry and update checks are off, and nothing is installed.

Neither end runs code that came over the network. Flower's usual way is to send an app from the server to the sites; here the
SuperLink and the SuperNodes are told to leave apps to processes of ours (isolation "process"), and these never open one.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from limbeck.errors import BadInput, LimbeckError

MISSING = "A federation needs Flower, which is not installed."
LINK = "from flwr.superlink.cli import flower_superlink as main; main()"
NODE = "from flwr.supernode.cli import flower_supernode as main; main()"
RECORD, FRAMES = "limbeck", "frames"
ACQUIRE = frozenset({"/flwr.proto.Runtime/AcquireTask"})


def require_flower() -> None:
    try:
        import flwr  # noqa: F401
    except ImportError:
        raise BadInput(MISSING, "pip install 'limbeck[federated]'") from None


def quiet_environment(home: Path) -> dict[str, str]:
    return {
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "FLWR_HOME": str(home),
    }


@contextlib.contextmanager
def process(program: str, arguments: Sequence[object], folder: Path, log: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Flower process with its output in a file of the folder; it ends with the block, and with this process however it ends."""
    home = folder / "flower"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(os.open(folder / log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output:
        child = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **quiet_environment(home)},
            preexec_fn=die_with_parent,
        )
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def require_alive(child: subprocess.Popen[bytes], what: str, log: Path) -> None:
    if child.poll() is not None:
        raise LimbeckError(f"{what} ended with {child.returncode}; why is in {log}.")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def die_with_parent() -> None:
    """Linux: a site that is killed leaves no connection behind that answers nothing."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
