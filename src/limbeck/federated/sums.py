"""From the sites' parts to one answer: added up as they are, or with the masks that cancel in the sum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.errors import BadInput
from limbeck.privacy.federation import Terms
from limbeck.privacy.queries import ClippedSum
from limbeck.vault.api import Answer
from limbeck.vault.masking import unmasked
from limbeck.vault.process.requests import Answered, Masked


def summed_answer(terms: Terms, query: ClippedSum, parts: Sequence[Answered]) -> Answer:
    """The sum of answers that each have all of the query's noise: sqrt(K) times as much."""
    _check([part.values for part in parts], torch.float32)
    total: NDArray[np.float64] = np.sum([part.values.numpy().astype(np.float64) for part in parts], axis=0)
    return Answer(total.astype(np.float32), query.noise_std * terms.total)


def masked_answer(terms: Terms, query: ClippedSum, parts: Sequence[Masked]) -> Answer:
    """The sum of masked parts, in whole steps, scaled."""
    _check([part.values for part in parts], torch.int64)
    steps = unmasked(terms, [part.values.contiguous().numpy().view(np.uint64) for part in parts])
    values = np.multiply(steps, query.step, dtype=np.float64).astype(np.float32)
    return Answer(values if query.by_class else values[0], query.noise_std * terms.total)


def _check(values: Sequence[torch.Tensor], dtype: torch.dtype) -> None:
    if {value.dtype for value in values} != {dtype} or len({value.shape for value in values}) != 1:
        raise BadInput("The sites' answers do not have the same form.")
