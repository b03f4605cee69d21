"""A vault's server in a thread of the test, or in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import limbeck
from limbeck.runs.vault_server import server_of
from limbeck.vault.ledger import Ledger
from limbeck.vault.noise import Randomness
from limbeck.vault.process.client import ProcessVault
from limbeck.vault.process.limits import Limits
from limbeck.vault.process.server import VaultServer
from limbeck.vault.process.socket_file import Door, listening
from limbeck.vault.source import PrivateSource

SOURCE = Path(limbeck.__file__).parents[1]
QUICK = Limits(seconds=5.0)


@contextlib.contextmanager
def short_folder() -> Iterator[Path]:
    """The system takes 107 bytes of a socket's path, and a test's own folder has more."""
    folder = Path(tempfile.mkdtemp(prefix="lv-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Served:
    """A server and what it has written into its log."""

    def __init__(self, path: Path, server: VaultServer, log: list[str]) -> None:
        self.path, self.server, self.log = path, server, log
        self.vault = ProcessVault(path, patience=5.0)

    def talk(self, content: bytes, end: bool = True) -> bytes:
        """Whatever comes back for raw bytes, until the server hangs up."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(30)
            line.connect(str(self.path))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                line.sendall(content)
                if end:
                    line.shutdown(socket.SHUT_WR)
            found = b""
            with contextlib.suppress(ConnectionResetError):
                while part := line.recv(1 << 16):
                    found += part
            return found


@contextlib.contextmanager
def served(
    source: PrivateSource,
    ledger: Ledger,
    randomness: Randomness | None = None,
    limits: Limits = QUICK,
    socket_file: Path | None = None,
) -> Iterator[Served]:
    log: list[str] = []
    with short_folder() as folder, listening(socket_file or folder / "s", Door()) as listener:
        server = server_of(source, ledger, randomness or Randomness(), "cpu", listener, log.append, limits)
        server.start()
        try:
            yield Served(socket_file or folder / "s", server, log)
        finally:
            assert server.stop(30.0)


def limbeck_process(*arguments: object, user: int | None = None, **environment: str) -> subprocess.Popen[str]:
    """`limbeck ARGUMENTS` in a process of its own, as another user where one is named."""
    before = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user is not None else []
    return subprocess.Popen(
        [*before, sys.executable, "-m", "limbeck", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1", **environment},
    )


@contextlib.contextmanager
def serving_process(*arguments: object, user: int | None = None, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """`limbeck vault serve ARGUMENTS`, ready; its errors go to a file, so that it never waits for a reader."""
    process = limbeck_process("vault", "serve", *arguments, "--json", user=user, **environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        process.ready = json.loads(line)  # type: ignore[attr-defined]
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=60)


def ended(process: subprocess.Popen[str], seconds: float = 120) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err
