"""Rank 0 says now and then that it is alive, so that the others may wait for it for hours, and not for a machine that is gone."""

from __future__ import annotations

import os
import sys
import threading

import torch
import torch.distributed as dist

from limbeck.errors import RankLost

ALIVE, OVER = 1, 0
GRACE = 10.0  # seconds that a rank has to notice by itself that the run is over


class Heartbeat:
    """A thread of each rank, over a group of its own: at rank 0 it beats, elsewhere it listens.

    seconds: how long rank 0 may be silent; it beats four times as often
    """

    def __init__(self, rank: int, group: dist.ProcessGroup | None, seconds: float) -> None:
        self._group, self._pause = group, min(seconds / 4, 60.0)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen if rank else self._beat, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join(GRACE)

    def _beat(self) -> None:
        while not self._over.wait(self._pause):
            if self._said(ALIVE) is None:
                return  # whoever waits for the lost rank will notice
        self._said(OVER)

    def _listen(self) -> None:
        """Guarantee: this process ends if rank 0 falls silent, whatever else it waits for. It has nothing to save."""
        while (said := self._said(OVER)) == ALIVE:
            pass
        if said is None and not self._over.wait(GRACE):
            rank = os.environ.get("RANK", "?")
            print(f"limbeck: rank {rank}: Rank 0 is gone or silent; this rank ends.", file=sys.stderr, flush=True)
            os._exit(RankLost.exit_code)

    def _said(self, value: int) -> int | None:
        """What rank 0 says; None if it cannot be heard."""
        beat = torch.tensor([value])
        try:
            dist.broadcast(beat, src=0, group=self._group)
        except RuntimeError:
            return None
        return int(beat)
