"""Where a site answers frames: by its own vault, and with one code of a closed list for whatever goes wrong.

Guarantee: no text of an error leaves the site (limbeck.vault.process.failures); it goes to the site's own log.
"""

from __future__ import annotations

from collections.abc import Callable

from limbeck.vault.process.counter import Counter
from limbeck.vault.process.failures import code_of
from limbeck.vault.process.requests import REQUESTS, Failed, Said, message_of, read
from limbeck.vault.process.server import described
from limbeck.vault.process.wire import from_bytes, to_bytes

Log = Callable[[str], None]


class Desk:
    """Answers the frames of one site.

    >>> Desk(None, print).answer(b"no frame")[:4]  # doctest: +ELLIPSIS
    a frame: malformed: ...
    b'LBVT'
    """

    def __init__(self, counter: Counter, log: Log) -> None:
        self._counter, self._log = counter, log

    def end(self, seconds: float = 5.0) -> None:
        """Let the request under way end, and save what teachers have learned."""
        self._counter.end(seconds)

    def answer(self, frame: bytes) -> bytes:
        """Guarantee: always a frame, whatever was sent and whatever happens."""
        kind = "a frame"
        try:
            request = read(from_bytes(frame), REQUESTS)
            kind = request.kind
            reply: Said = self._counter.answer(request)
            return to_bytes(message_of(reply))
        except Exception as error:
            code = code_of(error)
            self._log(f"{kind}: {code}: {described(error)}")
            return to_bytes(message_of(Failed(code)))
