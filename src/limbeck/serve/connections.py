"""How many browsers may be connected, and how long each may take to ask and to listen.

A time limit on every single read is none: whoever sends a byte now and then stays for ever. So each connection has a moment
by which its request must be whole, then one by which its answer must be taken; past it the connection is cut.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from dataclasses import dataclass

FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 39\r\n"
    b"Retry-After: 5\r\nConnection: close\r\n\r\nToo many connections. Try again later.\n"
)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """`seconds`: to send a whole request, or to wait between two. `slowest`: bytes a second, for taking an answer."""

    connections: int = 64
    seconds: float = 20.0
    slowest: float = 20_000.0

    def to_take(self, size: int) -> float:
        """Seconds for an answer of so many bytes."""
        return self.seconds + size / self.slowest


class Connections:
    """The open connections of a server, each with the moment at which it is cut; None while an answer is made."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._ends: dict[socket.socket, float | None] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._ends)

    @property
    def crowded(self) -> bool:
        """Whether it is time to keep no connection open for a next request."""
        return 2 * len(self) > self.limits.connections

    def enter(self, connection: socket.socket) -> bool:
        """Guarantee: there are never more than `limits.connections`."""
        with self._lock:
            if len(self._ends) >= self.limits.connections:
                return False
            self._ends[connection] = time.monotonic() + self.limits.seconds
            return True

    def leave(self, connection: socket.socket) -> None:
        with self._lock:
            self._ends.pop(connection, None)

    def allow(self, connection: socket.socket, seconds: float | None) -> None:
        with self._lock:
            if connection in self._ends:
                self._ends[connection] = None if seconds is None else time.monotonic() + seconds

    def cut(self) -> None:
        """End every connection whose time is over; whoever reads from it or writes to it notices at once."""
        now = time.monotonic()
        with self._lock:
            late = [connection for connection, end in self._ends.items() if end is not None and end < now]
        for connection in late:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def turn_away(connection: socket.socket) -> None:
    """Say that it is full, without waiting for anybody."""
    with contextlib.suppress(OSError):
        connection.setblocking(False)
        connection.send(FULL)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(65_536)  # what was asked already: closing over it would take the answer back
