"""The logbook of a run: checkpoints to its folder, progress to whoever waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from torch import Tensor

from limbeck.privacy.numbers import finite_or_word
from limbeck.progress import Noted, Reporter
from limbeck.release.destination import RUN_STATE
from limbeck.runs.checkpoint import restore_checkpoint, write_checkpoint
from limbeck.runs.folder import CHECKPOINT, PROGRESS
from limbeck.vault.api import Grant, Vault

SECONDS_BETWEEN_CHECKPOINTS = 30.0


class StepLog:
    """Keeps a loop resumable whose state are tensors, under an identity that a checkpoint of another run does not have."""

    def __init__(self, folder: Path, identity: str, title: str, reporter: Reporter, every: float) -> None:
        self._path = folder / RUN_STATE / CHECKPOINT
        self._identity, self._title, self._every = identity, title, every
        self._reporter = Noted(reporter, folder / RUN_STATE / PROGRESS)

    def steps(
        self, total: int, state: dict[str, Tensor], answers: str, ends: Callable[[int], int] | None = None
    ) -> Iterator[int]:
        first = restore_checkpoint(self._path, self._identity, total, state)
        self._reporter.start(self._title, total, first)
        saved, took = time.monotonic(), 0.0
        done = first
        while done < total:
            yield done
            done = done + 1 if ends is None else ends(done)
            self._reporter.advance(done)
            began = time.monotonic()
            if began - saved >= self._pause(took) or done == total:
                self._save(done, state, answers)
                saved = time.monotonic()
                took = saved - began

    def _pause(self, took: float) -> float:
        """Seconds to the next checkpoint; large ones, such as those of many teachers, are to take a tenth of the time at most."""
        return self._every * max(1.0, 10 * took / SECONDS_BETWEEN_CHECKPOINTS)

    def _save(self, step: int, state: dict[str, Tensor], answers: str) -> None:
        write_checkpoint(self._path, self._identity, step, state)


class RunLog(StepLog):
    """Keeps the loop of one method resumable, and its vault no fuller than that needs."""

    def __init__(self, folder: Path, vault: Vault, grant: Grant, reporter: Reporter, every: float) -> None:
        title = f"{grant.plan.method}, epsilon booked {finite_or_word(grant.plan.price.epsilon)}"
        super().__init__(folder, grant.id, title, reporter, every)
        self._vault, self._grant = vault, grant

    def _save(self, step: int, state: dict[str, Tensor], answers: str) -> None:
        # The vault's own part first: its teachers may be ahead of the method's checkpoint, but never behind it.
        self._vault.keep(self._grant)
        super()._save(step, state, answers)
        # Only after the checkpoint is safe on disk may the answers before it go.
        if answers:
            self._vault.forget(self._grant, answers, step)
