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

Share = float | Tensor  # one for all classes, or one each
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

    def loss(self, row: int, pictures: Tensor, labels: Tensor, elsewhere: Share = 0.0) -> Tensor:
        """The squared distance of the class means from the answer, summed up over the classes.

        elsewhere: the share of a class's pictures that are not here, 1 for a few of endless many. The mean of a part strays from
        that of the whole by the pictures' own spread. What that adds on average is taken off again: whoever made it small would
        draw the pictures of a class together, and move them by it more than by the answer.
        """
        rows = clipped_rows(self._question(row).rows(pictures, labels), 1.0)
        target = self._replays[row].target.to(self._device)
        means = class_means(rows, labels, len(target))
        distance = (means - target).square().sum()
        return distance - (elsewhere * variance_of_means(rows, means, labels)).sum()

    def mean_loss(self, rows: Sequence[int], pictures: Tensor, labels: Tensor, elsewhere: Share = 0.0) -> Tensor:
        return torch.stack([self.loss(row, pictures, labels, elsewhere) for row in rows]).mean()


def variance_of_means(rows: Tensor, means: Tensor, labels: Tensor) -> Tensor:
    """(classes,): how far a class's mean of so many rows lies from that of endless many, squared, on average; 0 for one row."""
    counts = torch.bincount(labels, minlength=len(means))
    squares = rows.new_zeros(len(means)).index_add(0, labels, (rows - means[labels]).square().sum(1))
    return squares / (counts * (counts - 1).clamp_min(1))
