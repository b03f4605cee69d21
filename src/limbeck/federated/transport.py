"""How frames reach the sites: bytes there, bytes back. What is in them is the vault's own language (limbeck.vault.process)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

Frames = Mapping[str, Sequence[bytes]]


class Transport(Protocol):
    """A way to the sites of a federation."""

    def exchange(self, frames: Frames, answers: int = 1) -> Frames:
        """Every site's replies to its frames, one for each, in order. A site that did not answer in time is missing.

        answers: how many answers a frame asks for at most, which is what patience is counted by.

        Frames that were sent and not answered may have been carried out. Sending them again is always safe.
        """
        ...


class InProcess:
    """Sites in this process: for tests, and for measuring a method without a network."""

    def __init__(self, sites: Mapping[str, Callable[[bytes], bytes]]) -> None:
        self._sites = dict(sites)

    def exchange(self, frames: Frames, answers: int = 1) -> Frames:
        return {
            site: [self._sites[site](frame) for frame in asked] for site, asked in frames.items() if site in self._sites
        }
