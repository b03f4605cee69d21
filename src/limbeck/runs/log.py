"""The logbook of a run: checkpoints to its folder, progress to whoever waits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from torch import Tensor

from limbeck.privacy.numbers import finite_or_word
from limbeck.progress import Noted, Reporter
from limbeck.release.destination import RUN_STATE
from limbeck.runs.checkpoint import restore_checkpoint, write_checkpoint
from limbeck.runs.folder import CHECKPOINT, PROGRESS
from limbeck.vault.api import Grant, Vault

SECONDS_BETWEEN_CHECKPOINTS = 30.0


class RunLog:
    """Keeps the loop of one method resumable."""

    def __init__(self, folder: Path, vault: Vault, grant: Grant, reporter: Reporter, every: float) -> None:
        self._path = folder / RUN_STATE / CHECKPOINT
        self._vault, self._grant, self._every = vault, grant, every
        self._reporter = Noted(reporter, folder / RUN_STATE / PROGRESS)

    def steps(self, total: int, state: dict[str, Tensor], answers: str) -> Iterator[int]:
        first = self._restore(total, state)
        self._reporter.start(
            f"{self._grant.plan.method}, epsilon booked {finite_or_word(self._grant.plan.price.epsilon)}", total, first
        )
        saved, took = time.monotonic(), 0.0
        for step in range(first, total):
            yield step
            self._reporter.advance(step + 1)
            began = time.monotonic()
            if began - saved >= self._pause(took) or step + 1 == total:
                self._save(step + 1, state, answers)
                saved = time.monotonic()
                took = saved - began

    def _pause(self, took: float) -> float:
        """Seconds to the next checkpoint; large ones, such as those of many teachers, are to take a tenth of the time at most."""
        return self._every * max(1.0, 10 * took / SECONDS_BETWEEN_CHECKPOINTS)

    def _restore(self, total: int, state: dict[str, Tensor]) -> int:
        return restore_checkpoint(self._path, self._grant.id, total, state)

    def _save(self, step: int, state: dict[str, Tensor], answers: str) -> None:
        # The vault's own part first: its teachers may be ahead of the method's checkpoint, but never behind it.
        self._vault.keep(self._grant)
        write_checkpoint(self._path, self._grant.id, step, state)
        # Only after the checkpoint is safe on disk may the answers before it go.
        if answers:
            self._vault.forget(self._grant, answers, step)
