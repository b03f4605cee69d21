"""The server's side of the socket: one thread for each connection, one request for each connection, so many at most.

A request must arrive whole within its time, its sizes within their bounds; else its connection is closed and the server goes
on. What a client is told of a failure is a code (limbeck.vault.process.failures); the rest is in the owner's log.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import traceback
from collections.abc import Callable

from limbeck.errors import LimbeckError
from limbeck.vault.process.counter import Counter
from limbeck.vault.process.failures import BUSY, code_of
from limbeck.vault.process.limits import Limits
from limbeck.vault.process.requests import REQUESTS, Failed, Said, message_of, read
from limbeck.vault.process.wire import CutOff, Line, Malformed, receive, send

Log = Callable[[str], None]
DEFAULT = Limits()
MOST_LOGGED = 1000  # of an error's sentence


class VaultServer:
    """Answers whoever connects to `listener`, until `stop`."""

    def __init__(self, counter: Counter, listener: socket.socket, log: Log, limits: Limits = DEFAULT) -> None:
        self._counter, self._listener, self._log, self.limits = counter, listener, log, limits
        self._free = threading.BoundedSemaphore(limits.connections)
        self._large = threading.BoundedSemaphore(1)
        self._stopping = False
        self._loop = threading.Thread(target=self._accept, name="vault server", daemon=True)

    def start(self) -> None:
        self._loop.start()

    def stop(self, seconds: float = 5.0) -> bool:
        """Take no more connections; whether the request under way, if there was one, has ended within `seconds`."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for a connection
        self._listener.close()
        self._loop.join()
        return self._counter.end(seconds)

    def _accept(self) -> None:
        while not self._stopping:
            try:
                connection, _ = self._listener.accept()
            except OSError as error:
                if not self._stopping:  # too many open files, say: others may close theirs
                    self._log(f"a connection was not taken: {error.strerror}")
                    time.sleep(0.1)
                continue
            if not self._free.acquire(blocking=False):
                _turn_away(connection)
                continue
            try:
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
            except RuntimeError:  # no thread could be started
                self._free.release()
                connection.close()

    def _serve(self, connection: socket.socket) -> None:
        """One connection from its first byte to its last. Guarantee: nothing that is sent ends more than this connection."""
        line = Line(connection, self.limits.seconds)
        with contextlib.ExitStack() as held:
            held.callback(self._free.release)
            try:
                with connection:
                    message = message_of(self._reply(line, held))
                    line.allow(self.limits.time_for(sum(t.numel() * t.element_size() for t in message.tensors)))
                    send(line, message)
            except CutOff:
                pass  # whoever asked has gone, or is too slow; an answer is stored, and can be asked for again
            except Exception as error:
                self._log(described(error))
            # What is held goes after the error, which holds the body in its frames: else the next one comes beside it.

    def _reply(self, line: Line, held: contextlib.ExitStack) -> Said:
        kind = "a request"
        try:
            message = receive(line, self.limits.body, lambda size: self._make_room(line, size, held))
            line.require_end()
            request = read(message, REQUESTS)
            kind = request.kind
            del message
            return self._counter.answer(request)
        except CutOff:
            raise
        except Exception as error:
            code = code_of(error)
            self._log(f"{kind}: {code}: {described(error)}")
            return Failed(code)

    def _make_room(self, line: Line, size: int, held: contextlib.ExitStack) -> None:
        """Guarantee: of large bodies one at a time is in memory, until its request is answered."""
        line.allow(self.limits.time_for(size))
        if size <= self.limits.small:
            return
        while not self._large.acquire(timeout=0.1):
            if self._stopping:
                raise CutOff("the server ends")
        held.callback(self._large.release)
        line.allow(self.limits.time_for(size))  # the wait was not the sender's


def _turn_away(connection: socket.socket) -> None:
    """Say that it is full, without waiting for anybody."""
    with connection, contextlib.suppress(CutOff, OSError):
        send(Line(connection, 0.1), message_of(Failed(BUSY)))


def described(error: BaseException) -> str:
    """For the owner's log: a foreseen error's sentence; of any other one its kind and place, because it may quote a record.

    Guarantee: one line of bounded length. A sentence may quote the request, and what a stranger wrote must neither steer the
    owner's terminal nor pass for another line of the log.
    """
    if isinstance(error, LimbeckError | Malformed):
        sentence = "".join(sign if sign.isprintable() else "?" for sign in str(error)[: MOST_LOGGED + 1])
        return sentence if len(sentence) <= MOST_LOGGED else f"{sentence[:MOST_LOGGED]} ..."
    if os.environ.get("LIMBECK_DEBUG"):
        return "".join(traceback.format_exception(error))
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    return f"an unforeseen error ({type(error).__name__}{place}); set LIMBECK_DEBUG=1 to see it whole in this log"
