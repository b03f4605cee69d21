"""Matching pictures to answers that were given before: nothing is asked, so nothing is paid."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from limbeck.methods.elixir.questions import Questions
from limbeck.methods.elixir.replay_buffer import Replay
from limbeck.methods.parts.matching import class_means, clipped_rows
from limbeck.nets.training.pool import Pool
from limbeck.vault.api import FeatureResidual

PUT_AGAIN = 64  # questions that are kept ready: each holds directions of its own


class Rematching:
    """How far pictures are from answers, by their rows in `replays`."""

    def __init__(self, replays: Sequence[Replay], questions: Questions, pool: Pool, device: torch.device) -> None:
        self._replays, self._questions, self._pool, self._device = replays, questions, pool, device
        self._question = functools.lru_cache(PUT_AGAIN)(self._put_again)

    def __len__(self) -> int:
        return len(self._replays)

    def _put_again(self, row: int) -> FeatureResidual:
        replay = self._replays[row]
        return self._questions.again(replay, self._pool.body_weights(replay.body))

    def loss(self, row: int, pictures: Tensor, labels: Tensor) -> Tensor:
        """The squared distance of the pictures' class means from the answer, summed up over the classes."""
        rows = clipped_rows(self._question(row).rows(pictures, labels), 1.0)
        target = self._replays[row].target.to(self._device)
        return (class_means(rows, labels, len(target)) - target).square().sum()

    def mean_loss(self, rows: Sequence[int], pictures: Tensor, labels: Tensor) -> Tensor:
        return torch.stack([self.loss(row, pictures, labels) for row in rows]).mean()
