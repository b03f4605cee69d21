"""Which teacher a record belongs to: a keyed hash of that record alone, or of the person that it is about."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limbeck.data.records import Records
from limbeck.errors import BadInput
from limbeck.privacy.schema import Schema
from limbeck.vault.ensemble.teachers import EnsembleSpec
from limbeck.vault.keyed_hash import record_hashes, unit_hashes

KEY_BYTES = 32
# With fewer records for each on average, more than one teacher in 150 would have none at all.
LEAST_PART = 5


@dataclass(frozen=True, eq=False)
class Partition:
    """order: indices of the records, teacher by teacher. bounds: where each teacher's part begins, and the end."""

    order: NDArray[np.int64]
    bounds: NDArray[np.int64]

    def indices(self, teachers: NDArray[np.int64], shares: NDArray[np.float64]) -> NDArray[np.int64]:
        """(teachers, shares): the record at each share in [0, 1) of a teacher's own part, by index; -1 for an empty part."""
        first, sizes = self.bounds[teachers], np.diff(self.bounds)[teachers]
        # A share just below 1 may round up to the whole.
        within = np.minimum((shares[None, :] * sizes[:, None]).astype(np.int64), np.maximum(sizes - 1, 0)[:, None])
        found = (
            self.order[np.minimum(first[:, None] + within, max(len(self.order) - 1, 0))] if len(self.order) else within
        )
        return np.where(sizes[:, None] > 0, found, -1)


def partition(records: Records, teachers: int, key: bytes) -> Partition:
    """Share the records out by blake2b under a secret key.

    Guarantee: a record's rank within its part depends on the key and on its own bytes and label alone, and so does its teacher;
    where records belong to persons, the teacher depends on the key and the person. So a record or person that is added or
    removed changes one part, whatever the order of the file; copies of a record share a teacher, and so do all records of
    a person.
    """
    # The remainder of 64 random bits is uneven by less than teachers / 2^64.
    teacher = (unit_hashes(records, key)[:, 0] % np.uint64(teachers)).astype(np.int64)
    order = np.lexsort((record_hashes(records, key)[:, 1], teacher)).astype(np.int64)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(teacher, minlength=teachers))]).astype(np.int64)
    return Partition(order, bounds)


def check_ensemble(spec: EnsembleSpec, schema: Schema) -> None:
    """Refuse an ensemble that is too large for the data set, by public numbers only.

    Guarantee: reads no record. A part that turns out empty all the same is no error: its teacher stays as it
    started, or learns from synthetic records alone, and votes.
    """
    held, noun = schema.privacy_units, "persons" if schema.by_person else "records"
    if spec.teachers > held:
        raise BadInput(
            f"teachers={spec.teachers} is more than the {held} {noun} of '{schema.name}'; "
            f"choose teachers={max(held // LEAST_PART, 1)} or less."
        )
    if spec.teachers * LEAST_PART > held and spec.teachers > 1:
        raise BadInput(
            f"teachers={spec.teachers} leaves {held / spec.teachers:.1f} {noun} of '{schema.name}' for each on "
            f"average, and some with none; choose teachers={max(held // LEAST_PART, 1)} or less."
        )
