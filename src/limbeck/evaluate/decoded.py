"""The rows of a table as a user opens them: hard categories, whole numbers.

The numbers of `set.npz` may say "0.6 of this category and 0.4 of that one". Nobody finds that in `data/train.parquet`, so
a table is judged without it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from limbeck.data.records import Array
from limbeck.data.table import decode_rows, encode_rows
from limbeck.privacy.schema import Schema
from limbeck.vault.encoding import encode

DECODED, EXACT = "decoded", "exact"


def is_table(schema: Schema) -> bool:
    """Whether records have named columns to decode into. Plain vectors have none and stay what they are."""
    return bool(schema.columns)


def form_of_rows(schema: Schema) -> str | None:
    """What a result says it was measured on: decoded rows; exact numbers, of a table without columns. None for pictures."""
    if schema.is_image:
        return None
    return DECODED if is_table(schema) else EXACT


def decoded(x: Array, schema: Schema) -> Tensor:
    """Encoded rows, decoded as in the release's Parquet file, and encoded again. Records without columns are unchanged.

    They take the way of real rows to the last bit: trees cut between two values, and 40 hours must be 40 hours in both.
    """
    if not is_table(schema):
        return torch.from_numpy(x)
    columns = {name: column.tolist() for name, column in decode_rows(x, schema).items()}
    return encode(encode_rows(columns, schema), schema)
