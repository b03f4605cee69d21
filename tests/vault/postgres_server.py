"""A PostgreSQL server of its own for tests: made in a temporary folder, stopped and thrown away afterwards."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

USER = "postgres"


def programs() -> Path | None:
    """Where the server's programs are; None where there are none, or psycopg is missing."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return None
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    named = shutil.which("initdb")
    return Path(named).parent if named else None


@dataclass(frozen=True)
class Server:
    bin: Path
    folder: Path
    port: int
    address: str = "127.0.0.1"
    inside: tuple[str, ...] = ()  # what to put before a command that starts it

    def url(self, database: str, user: str = USER) -> str:
        return f"postgresql://{user}@{self.address}:{self.port}/{database}"

    def start(self) -> None:
        options = (
            f"-p {self.port} -k '' -c listen_addresses={self.address if not self.inside else '*'} -c max_connections=60"
        )
        self._control("-w", "-o", options, "-l", str(self.folder.parent / "log"), "start")

    def stop(self, mode: str = "fast") -> None:
        self._control("-m", mode, "-w", "stop")

    def kill(self) -> None:
        """As when the machine stops: every process at once, without a word."""
        first = int((self.folder / "postmaster.pid").read_text().split()[0])
        children = [int(entry.name) for entry in Path("/proc").iterdir() if _parent(entry) == first]
        for process in (first, *children):
            os.kill(process, signal.SIGKILL)
        while any(_parent(Path(f"/proc/{process}")) is not None for process in (first, *children)):
            time.sleep(0.01)
        (self.folder / "postmaster.pid").unlink()  # after a restart of the machine nobody has that number

    def make_database(self, name: str) -> str:
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def make_role(self, name: str) -> None:
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {name} LOGIN".encode())

    def _control(self, *words: str) -> None:
        subprocess.run(
            [*self.inside, *_dropped(), self.bin / "pg_ctl", "-D", self.folder, *words],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
        )


def _parent(process: Path) -> int | None:
    """Whose child a process is; None for one that is gone, or dead and only not yet fetched."""
    try:
        state, parent = (process / "stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return None if state == "Z" else int(parent)


def _dropped() -> list[str]:
    """The server refuses to run as root."""
    if os.getuid() != 0:
        return []
    return ["setpriv", f"--reuid={USER}", f"--regid={pwd.getpwnam(USER).pw_gid}", "--clear-groups"]


@contextlib.contextmanager
def running(found: Path, inside: Sequence[str] = ()) -> Iterator[Server]:
    """found: where its programs are. inside: what to put before a command, so that it runs on another host."""
    # A folder of its own: those of pytest are closed to other users.
    with tempfile.TemporaryDirectory(prefix="limbeck-postgres-") as folder:
        if os.getuid() == 0:
            shutil.chown(folder, USER)
        with _running(Path(folder), found, inside) as server:
            yield server


@contextlib.contextmanager
def _running(parent: Path, found: Path, inside: Sequence[str]) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Server(found, parent / "data", port, inside=tuple(inside))
    subprocess.run(
        [
            *_dropped(),
            found / "initdb",
            "-D",
            server.folder,
            "-U",
            USER,
            "-A",
            "trust",
            "-N",
            "--locale=C.UTF-8",
            "-E",
            "UTF8",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd="/",
    )
    if inside:
        with (server.folder / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.213.0.0/16 trust\n")
    server.start()
    try:
        yield server
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            server.stop("immediate")
