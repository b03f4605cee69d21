"""What one request may take: bytes, time, connections. All of it is public."""

from __future__ import annotations

from dataclasses import dataclass

MOST_HEADER = 1 << 20
MOST_BODY = 1 << 30
MOST_TENSORS = 4096
MOST_DIMENSIONS = 8


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a server grants whoever connects.

    body         bytes of all tensors of a request
    small        bytes that every connection may send at the same time; of larger requests one at a time is taken in
    connections  how many at a time; more are told to come again
    seconds      for a request to arrive whole, and for an answer to be taken, beside the time that its bytes may take
    slowest      bytes a second
    """

    body: int = MOST_BODY
    small: int = 1 << 24
    connections: int = 16
    seconds: float = 30.0
    slowest: float = 1e7

    def time_for(self, size: int) -> float:
        """Seconds for so many bytes. A limit on every single read would be none: a byte now and then would do."""
        return self.seconds + size / self.slowest
