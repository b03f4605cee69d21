"""A rank's part of a sum on its way to rank 0: whole steps, and one number more that says whether the rank failed.

Whoever fails adds nothing and says so, so that nobody waits for a sum that never comes, and no sum lacks a shard unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from limbeck.vault.noise import Total
from limbeck.vault.sharded.group import Group


def added_up(group: Group, shape: tuple[int, int], compute: Callable[[], Total]) -> tuple[NDArray[np.int64], int]:
    """At rank 0 the sum over all ranks, and how many of the others failed.

    Guarantee: takes part in the sum whatever happens here; what went wrong here is raised afterwards.
    """
    fault: BaseException | None = None
    values = np.zeros(int(np.prod(shape)) + 1, dtype=np.int64)
    try:
        total = compute()
        assert total.dtype == np.int64 and total.shape == shape
        values[:-1] = total.reshape(-1)
    except Exception as error:
        fault, values[-1] = error, 1
    added = group.add_up(values)
    if fault is not None:
        raise fault
    return added[:-1].reshape(shape), int(added[-1])
