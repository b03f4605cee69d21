"""The size at which Elixir looks at pictures: large ones are averaged down inside the vault, and the set is set up again.

What noisy sums tell of a picture lies at low frequencies, and a picture of 32 pixels a side costs a sixteenth of the time of
one of 128. So questions, networks and set have the working size; the released set has the schema's, and averages down to
what was matched. It has no detail finer than the working size.
"""

from __future__ import annotations

import dataclasses

from limbeck.nets.features.pooled import smaller
from limbeck.privacy.schema import Schema

USUAL = 32
AS_THEY_ARE = 0
LARGE = 48  # pixels of the longer side, above which pictures are averaged down


def usual_size(schema: Schema) -> int:
    """The working size that Elixir chooses: that of the longer side.

    >>> shapes = ((3, 32, 32), (1, 48, 48), (3, 128, 96), (20,))
    >>> [usual_size(Schema(name="scans", shape=shape, classes=("a", "b"), records=9, low=0, high=1)) for shape in shapes]
    [0, 0, 32, 0]
    """
    return USUAL if schema.is_image and max(schema.shape[1:]) > LARGE else AS_THEY_ARE


def at_size(schema: Schema, size: int | None) -> Schema:
    """The schema of the pictures that Elixir works on. None is in plans from before there were sizes: as they are.

    >>> large = Schema(name="scans", shape=(3, 128, 96), classes=("a", "b"), records=9, low=0, high=1)
    >>> at_size(large, 32).shape, at_size(large, 500).shape, at_size(large, 0) is large
    ((3, 32, 24), (3, 128, 96), True)
    """
    if not size or not schema.is_image or max(schema.shape[1:]) <= size:
        return schema
    return dataclasses.replace(schema, shape=smaller(schema.shape, size))


def size_of_generator(schema: Schema, size: int | None) -> int:
    """The longer side of what a generator's network makes, where that is set up afterwards; else 0."""
    work = at_size(schema, size)
    return AS_THEY_ARE if work is schema else max(work.shape[1:])
