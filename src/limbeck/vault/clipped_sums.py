"""The answer to a ClippedSum over records in memory: sampled, mapped, clipped, rounded, added up, noised."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.data.records import Records
from limbeck.errors import WallBreach
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.vault.encoding import encode
from limbeck.vault.keyed_hash import record_hashes
from limbeck.vault.maps import Map
from limbeck.vault.maps.base import form_of, records_mix, stand_in
from limbeck.vault.maps.blocks import block_size, steady_block
from limbeck.vault.maps.bound import Bound
from limbeck.vault.noise import SecretStream, Total, drawn_noise, with_noise
from limbeck.vault.persons import PersonSums, sample_persons
from limbeck.vault.sampling import canonical_order, poisson_sample

MOST_HELD = 1 << 23  # numbers of records' rows that are held at a time, where each is needed by itself


class ClippedSums:
    """Adds up records of one schema on one device.

    in_file_order: secret coins fall on the records as they lie in the file. Predictable ones fall on them in an order of the
    records' own, so that a shuffled file has the same sample.
    """

    def __init__(self, schema: Schema, device: torch.device, in_file_order: bool = True) -> None:
        self._schema, self._device, self._in_file_order = schema, device, in_file_order
        self._blocks: dict[str, int] = {}
        self._hashed: tuple[Records, NDArray[np.uint64]] | None = None

    @torch.no_grad()
    def noised(
        self, query: ClippedSum, mapping: Map, records: Records, coins: SecretStream, noises: SecretStream
    ) -> NDArray[np.float64]:
        """Draw the noise; sample, map, clip, round, add up; add the noise.

        Guarantee: the Poisson-sampled Gaussian mechanism that `query.event()` states. The noise is added once, to the sum;
        nothing is divided by the size of the sample (rule 3). It is drawn before a record is touched, because how long that
        takes tells about it.
        """
        shape = (len(self._schema.classes) if query.by_class else 1, self.width_of(mapping))
        noise = drawn_noise(query, shape, noises) if query.on_grid else None
        total = self.total(query, mapping, records, coins, shape)
        if noise is None:  # booked by an older version, which drew it last, from the same stream
            noise = drawn_noise(query, shape, coins)
        return with_noise(query, total, noise)

    @torch.no_grad()
    def total(
        self, query: ClippedSum, mapping: Map, records: Records, coins: SecretStream, shape: tuple[int, int]
    ) -> Total:
        """Sample, map, clip, round, add up. What this gives is not noised yet, and leaves the vault in no other form."""
        sample = self._sample(query, records, coins)
        if records.units is not None and query.on_grid:
            return self._summed_by_person(query, mapping, records, sample, shape)
        return self._summed(query, mapping, records, sample, shape)

    def _sample(self, query: ClippedSum, records: Records, coins: SecretStream) -> NDArray[np.int64]:
        """Indices of the records that are in the sample: class by class, or person by person."""
        rates = query.rate_of(len(self._schema.classes))
        if records.units is not None:
            most = self._schema.unit_records
            return sample_persons(
                records.y, records.units, rates, coins, most, self._contents(records) if most is not None else None
            )
        if self._in_file_order or not query.on_grid:
            return poisson_sample(records.y, rates, coins)
        order = canonical_order(self._contents(records))
        return order[poisson_sample(records.y[order], rates, coins)]

    def _contents(self, records: Records) -> NDArray[np.uint64]:
        """A hash of each record, made once."""
        if self._hashed is None or self._hashed[0] is not records:
            self._hashed = records, record_hashes(records, key=b"")
        return self._hashed[1]

    def _summed(
        self, query: ClippedSum, mapping: Map, records: Records, sample: NDArray[np.int64], shape: tuple[int, int]
    ) -> Total:
        """The clipped sum over the sample: whole steps in 64 bits, which no order and no size of chunks can change (rule 13).

        Guarantee: memory does not grow with the sample.
        """
        total: Total = np.zeros(shape, dtype=np.int64) if query.on_grid else np.zeros(shape, dtype=np.float64)
        block, bound = self.block_for(mapping), Bound.of(query)
        # Whole blocks, so that only the last one is filled up.
        chunk = max(mapping.chunk // block, 1) * block
        for start in range(0, len(sample), chunk):
            part = sample[start : start + chunk]
            y = torch.from_numpy(records.y[part]).to(self._device)
            row = y if query.by_class else torch.zeros_like(y)
            x = encode(records.x[part], self._schema, self._device)
            added = mapping.clipped_sum(x, row, y, shape[0], bound, block).cpu().numpy()
            total += added.astype(total.dtype)
        return total

    def _summed_by_person(
        self, query: ClippedSum, mapping: Map, records: Records, sample: NDArray[np.int64], shape: tuple[int, int]
    ) -> NDArray[np.int64]:
        """The same with each person's records clipped together, to the query's clip; one record to its share of that.

        Guarantee: adding or removing a person, with however many records, moves the sum by at most `query.clip`. Memory grows
        neither with the sample nor with what one person has.
        """
        assert records.units is not None
        sums = PersonSums(shape, query.clip / query.step)
        bound = Bound(query.clip / self._schema.reach, query.step)
        block = self._block(mapping, min(mapping.block, block_size(MOST_HELD // shape[1])))
        chunk = max(MOST_HELD // shape[1] // block, 1) * block
        for start in range(0, len(sample), chunk):
            part = sample[start : start + chunk]
            y = torch.from_numpy(records.y[part]).to(self._device)
            x = encode(records.x[part], self._schema, self._device)
            rows = mapping.clipped_rows(x, y, bound, block).cpu().numpy().astype(np.int64)
            row = records.y[part] if query.by_class else np.zeros(len(part), dtype=np.int64)
            sums.add(records.units[part], row, rows)
        return sums.finish()

    def width_of(self, mapping: Map) -> int:
        """How many numbers a row has: a public number, found by passing no record at all.

        Guarantee: of this very map. Two maps of one form may have rows of different widths, and a sum that does not fit would
        fail if, and only if, a record is in the sample.
        """
        if mapping.width is not None:
            return mapping.width
        x = torch.zeros(0, *self._schema.shape, device=self._device)
        y = torch.zeros(0, dtype=torch.int64, device=self._device)
        return mapping.clipped_sum(x, y, y, 1, Bound(1.0), self.block_for(mapping)).shape[1]

    def block_for(self, mapping: Map) -> int:
        """How many records pass through this map at a time."""
        return self._block(mapping, mapping.block)

    def _block(self, mapping: Map, preferred: int) -> int:
        """As many as `preferred`, or fewer: tried once for each form of map and number of threads.

        Guarantee: reads public random records only, and no number that whoever asks has chosen decides. A map that mixes
        records has no sensitivity to speak of, and is refused (rule 7); where rounding depends on a record's place, blocks are
        made smaller until it does not (rule 12).
        """
        form = f"{form_of(mapping)} {torch.get_num_threads()} {preferred}"
        if form not in self._blocks:
            shape, classes = self._schema.shape, len(self._schema.classes)
            typical: Map = stand_in(mapping)
            if any(records_mix(each, shape, classes, self._device) for each in (mapping, typical)):
                raise WallBreach(f"The map '{mapping.kind}' lets one record change another record's row (batch norm?).")
            self._blocks[form] = steady_block(typical.trial, preferred, shape, classes, self._device)
        return self._blocks[form]
