"""How large pictures are when a model sees them: as they are, or averaged down by the map that the vault has, too.

A set that was made at a smaller size than it is released in holds no finer detail, and real pictures do. A network that has
learnt from the set at its full size takes the absence of detail for a sign; where both are averaged down to the size at which
the set was made, it is not. So that is the default, and set, real records and test records are treated alike.
"""

from __future__ import annotations

from torch import Tensor

from limbeck.errors import BadInput
from limbeck.evaluate.labelled import Labelled
from limbeck.methods.elixir.working_size import AS_THEY_ARE, at_size
from limbeck.nets.features.pooled import pooled
from limbeck.privacy.schema import Schema

MOST = 4096


def require_size(size: int | None) -> None:
    if size is not None and not (size == AS_THEY_ARE or 2 <= size <= MOST):
        raise BadInput(
            f"Expected --size {size} to be 0, pictures as they are, or 2 to {MOST} pixels of the longer side."
        )


def seen_schema(schema: Schema, asked: int | None, stated: int = AS_THEY_ARE) -> Schema:
    """The schema of records as models see them.

    Args:
        asked: pixels of the longer side, 0 for pictures as they are; None leaves it to what the release states.
        stated: the size at which its pictures were made, 0 where they were made as they are.
    """
    if asked and not schema.is_image:
        raise BadInput(f"--size averages pictures down, and '{schema.name}' has none; leave it out.")
    return at_size(schema, stated if asked is None else asked)


def seen(x: Tensor, schema: Schema) -> Tensor:
    """Encoded records as models see them. schema: as `seen_schema` gives it."""
    return pooled(x, schema.shape[1:]) if schema.is_image else x


def seen_records(records: Labelled, schema: Schema) -> Labelled:
    return Labelled(seen(records.x, schema), records.y)


def seen_size(schema: Schema, as_seen: Schema) -> int | None:
    """What a result states: pixels of the longer side; None where pictures were seen as they are."""
    return None if schema.shape == as_seen.shape else max(as_seen.shape[1:])


def size_words(schema: Schema) -> str:
    """
    >>> size_words(Schema(name="scans", shape=(1, 32, 24), classes=("a", "b"), records=9, low=0, high=1))
    '32 x 24'
    """
    return " x ".join(str(side) for side in schema.shape[1:])
