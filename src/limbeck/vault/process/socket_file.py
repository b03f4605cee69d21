"""The socket's file: where clients connect, and who may. Made for its users before anybody can connect, removed at the end."""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import re
import socket
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from limbeck.errors import BadInput, OutputFault, RunConflict
from limbeck.files import alone_in

LONGEST = 107  # bytes of a path that the system takes
OWNER_ALONE = 0o600
GROUP = 0o660
PATIENCE = 10.0  # seconds for others that start in the same folder


@dataclass(frozen=True, kw_only=True)
class Door:
    """Who may connect: a mode such as 600 and, by name, the group that the socket is to belong to."""

    mode: int = OWNER_ALONE
    group: str | None = None

    @staticmethod
    def of(mode: str | None, group: str | None) -> Door:
        """From the options of a command; with a group and no mode the group may connect, too."""
        if mode is not None and not re.fullmatch(r"0?6[06][06]", mode):
            raise BadInput(f"--mode is 600, 660 or 666, got {mode!r:.20}: whoever connects has to read and to write.")
        number = int(mode, 8) if mode else GROUP if group is not None else OWNER_ALONE
        return Door(mode=number, group=group)

    def group_id(self) -> int:
        if self.group is None:
            return -1
        try:
            return int(self.group) if self.group.isdecimal() else grp.getgrnam(self.group).gr_gid
        except (KeyError, OverflowError):
            raise BadInput(f"There is no group {self.group!r:.60} on this machine.") from None


@contextlib.contextmanager
def listening(path: Path, door: Door) -> Iterator[socket.socket]:
    """A socket that listens at `path`; its file goes when the block ends.

    Guarantee: nobody can connect before the file has its group and mode. The socket of a server that lives is never replaced;
    one that a dead server left is.
    """
    group, path = door.group_id(), path.absolute()
    if len(os.fsencode(path)) > LONGEST:
        raise BadInput(f"The path of the socket has more than {LONGEST} bytes, which the system does not take: {path}")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Of several servers that start at once, one at a time looks and binds.
        with _faults(path), alone_in(path.parent, PATIENCE):
            _make_way(path)
            _bind(listener, path)
            made = _identity(path)
            os.chown(path, -1, group, follow_symlinks=False)
            os.chmod(path, door.mode)
            listener.listen(64)
        try:
            yield listener
        finally:
            with contextlib.suppress(OSError):
                if _identity(path) == made:
                    path.unlink()
    finally:
        listener.close()


def _make_way(path: Path) -> None:
    if not os.path.lexists(path):
        return
    if not stat.S_ISSOCK(path.lstat().st_mode):
        raise RunConflict(f"{path} exists and is no socket; nothing is overwritten. Choose another --socket.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        trial.settimeout(2.0)
        try:
            trial.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()  # nobody listens: its server is dead
            return
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ETIMEDOUT) and not isinstance(error, TimeoutError):
                raise
    raise RunConflict(f"A server answers at {path} already; stop it first, or choose another --socket.")


def _bind(listener: socket.socket, path: Path) -> None:
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)


def _identity(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def _faults(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputFault(
            f"The socket {path} cannot be made: {error.strerror or error}. Its folder must exist and be this user's to write to, "
            "and a --group one of this user's groups."
        ) from None
