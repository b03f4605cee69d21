"""Poisson samples of records that are read in pieces: the coins that fall on them in memory, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from limbeck.data.records import Records
from limbeck.data.streams.memory import require_memory
from limbeck.data.streams.streamed import StreamedRecords, records_at_once
from limbeck.privacy.schema import Schema
from limbeck.vault.keyed_hash import record_hashes
from limbeck.vault.noise import SecretStream
from limbeck.vault.sampling import canonical_order, rate_limits

MOST_COINS = 1 << 20  # that are thrown at a time
BYTES_TO_ORDER = 48  # of one record: its hash, its place, its coin, and what sorting takes

Words = NDArray[np.uint64]


def sampled_pieces(
    records: StreamedRecords,
    schema: Schema,
    rates: Sequence[float],
    coins: SecretStream,
    chunk: int,
    words: Words | None = None,
) -> Iterator[Records]:
    """The sampled records, at most `chunk` at a time, each time sorted by class. `words`: coins that were thrown before.

    Guarantee: as `poisson_sample`: each record has a coin of its own and is taken with a chance of at most its class's rate.
    Which coin it is depends on its place in the file, not on pieces, nor on which range of the file this is. A record whose coin
    no class would take is not asked for; nothing else is skipped.
    """
    limits, is_sampled, count = rate_limits(rates), min(rates) < 1, len(records)
    at_once = records_at_once(schema.numbers)
    size = at_once // chunk * chunk or at_once
    span = min(max(size, int(size / max(rates))), MOST_COINS) if is_sampled else size
    if is_sampled and words is None:
        coins.skip(records.before)
    with records.reading() as reading:
        for start in range(0, count, span):
            length = min(span, count - start)
            if not is_sampled:
                yield from _in_chunks(reading.take(length), chunk)
                continue
            thrown = coins.integers(length) if words is None else words[start : start + length]
            wanted = np.flatnonzero(thrown < limits.max())
            found = reading.take(length, wanted)
            yield from _in_chunks(found.only(thrown[wanted] < limits[found.y]), chunk)


def _in_chunks(records: Records, chunk: int) -> Iterator[Records]:
    order = np.argsort(records.y, kind="stable")
    for start in range(0, len(order), chunk):
        yield records.only(order[start : start + chunk])


def ordered_coins(records: StreamedRecords, schema: Schema, coins: SecretStream) -> Words:
    """The coins of a test's predictable stream, which fall on records in an order of their own (`canonical_order`), by place.

    That order needs a hash of every record: the one thing that grows with their number.
    """
    count = len(records)
    require_memory(BYTES_TO_ORDER * count, f"{records.stream.where} (with an insecure seed, the order of its records)")
    hashes = np.empty((count, 2), dtype=np.uint64)
    size = records_at_once(schema.numbers)
    with records.reading() as reading:
        for start in range(0, count, size):
            stop = min(start + size, count)
            hashes[start:stop] = record_hashes(reading.take(stop - start), key=b"")
    words = np.empty(count, dtype=np.uint64)
    words[canonical_order(hashes)] = coins.integers(count)
    return words
