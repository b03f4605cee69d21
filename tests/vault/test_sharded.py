"""The sharded vault when something goes wrong: other files, other machines, failing ranks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from contract import SCHEMA, Source, plan_of, query_of, records_of

from limbeck.data import Records
from limbeck.data.parts import hash_part_text, part_of
from limbeck.data.source import DataSource
from limbeck.errors import BadInput, DataUnreadable, RankLost, WallBreach
from limbeck.vault.api import Identity, Randomness
from limbeck.vault.clipped_sums import ClippedSums
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.noise import Total
from limbeck.vault.process.wire import Message
from limbeck.vault.sharded import requests
from limbeck.vault.sharded.holder import ShardHolder
from limbeck.vault.sharded.vault import ShardedVault
from ranks_in_threads import Sharded

MARKER = "marker-of-a-record"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.sqlite") as book:
        book.set_budget(SCHEMA.name, math.inf, 0.5)
        yield book


def spent(ledger: Ledger) -> float:
    account = ledger.account(SCHEMA.name)
    assert account is not None
    return account.spent_epsilon


def changed(**changes: Any) -> Source:
    return dataclasses.replace(Source(records_of()), **changes)


# Other records on another machine


def other_value() -> Source:
    records = records_of()
    x = records.x.copy()
    x[70, 0, 3, 3] += 1e-3
    return Source(Records(x, records.y))


def other_label() -> Source:
    records = records_of()
    y = records.y.copy()
    y[70] = (y[70] + 1) % 3
    return Source(Records(records.x, y))


def other_order() -> Source:
    records = records_of()
    return Source(records.only(np.r_[1, 0, 2:90]))


def fewer() -> Source:
    return Source(records_of().only(np.arange(89)))


@pytest.mark.parametrize("other", [other_value, other_label, other_order, fewer], ids=lambda each: each.__name__)
def test_other_records_on_another_rank_are_refused_and_cost_nothing(other: Any, ledger: Ledger) -> None:
    mine = Source(records_of())
    with Sharded(mine, ledger, 3, source_at=lambda rank: other() if rank == 2 else mine) as at:
        grant = at.vault.grant(plan_of())
        with pytest.raises(DataUnreadable, match="Rank 2 has read other records than rank 0"):
            at.vault.open_records(grant)
        assert at.vault.state(grant.id) == "void" and spent(ledger) == 0


def test_another_schema_on_another_rank_is_refused(ledger: Ledger) -> None:
    mine, other = Source(records_of()), changed(schema=dataclasses.replace(SCHEMA, high=2))
    with Sharded(mine, ledger, 3, source_at=lambda rank: other if rank == 1 else mine) as at:
        grant = at.vault.grant(plan_of())
        with pytest.raises(DataUnreadable, match="Rank 1"):
            at.vault.open_records(grant)
        assert at.vault.state(grant.id) == "void" and other.loads == 0


def test_a_rank_that_cannot_read_says_a_code_and_keeps_the_words(ledger: Ledger) -> None:
    def fail() -> None:
        raise DataUnreadable(f"{MARKER} cannot be read.")

    mine = Source(records_of())
    with Sharded(mine, ledger, 3, source_at=lambda rank: changed(on_load=fail)) as at:
        grant = at.vault.grant(plan_of())
        with pytest.raises(DataUnreadable) as caught:
            at.vault.open_records(grant)
        assert MARKER not in caught.value.message and "standard error" in caught.value.message
        assert len(at.noted) == 2 and spent(ledger) == 0
        assert MARKER.encode() not in b"".join(at.ranks.wires.replied)


def test_ranks_read_after_the_booking_and_not_before(ledger: Ledger) -> None:
    seen: list[float] = []
    source = changed(on_load=lambda: None)
    with Sharded(source, ledger, 2, source_at=lambda rank: changed(on_load=lambda: seen.append(1.0))) as at:
        grant = at.vault.grant(plan_of())
        assert not seen and not source.loads
        at.vault.ask(grant, "sums", 0, Identity())
        at.vault.ask(grant, "sums", 1, Identity())
        assert seen == [1.0] and source.loads == 1


# Ranks that fail


class Failing(ShardHolder):
    """Fails at its first sum, on rank 1 only."""

    failed = False

    def _partial(self, said: requests.AddUp, key: bytes) -> Total:
        if self._group.rank == 1 and not self.failed:
            self.failed = True
            raise RuntimeError(MARKER)
        return super()._partial(said, key)


def test_without_one_rank_there_is_no_answer_and_the_next_try_is_whole(ledger: Ledger) -> None:
    """Nobody hangs, nothing is stored for a sum that lacks a shard, and the same answer can be asked for again."""
    source, local = Source(records_of()), LocalVault(Source(records_of()), ledger, Randomness(7))
    with Sharded(source, ledger, 3, Randomness(7), holder=Failing) as at:
        grant = at.vault.grant(plan_of())
        with pytest.raises(RankLost) as caught:
            at.vault.ask(grant, "sums", 0, Identity())
        assert MARKER not in caught.value.message
        assert at.vault.drawn(grant) == {"sums": 0} and len(at.noted) == 1
        again = at.vault.ask(grant, "sums", 0, Identity()).values
        assert again.tobytes() == local.ask(local.grant(plan_of()), "sums", 0, Identity()).values.tobytes()


def test_if_rank_0_fails_the_others_are_not_left_waiting(ledger: Ledger) -> None:
    class FailsOnce(ShardedVault):
        failed = False

        def _partial(self, *given: Any) -> Any:
            if not self.failed:
                self.failed = True
                raise MemoryError
            return super()._partial(*given)

    with Sharded(Source(records_of()), ledger, 3, kind=FailsOnce) as at:
        grant = at.vault.grant(plan_of())
        with pytest.raises(MemoryError):
            at.vault.ask(grant, "sums", 0, Identity())
        assert at.vault.drawn(grant) == {"sums": 0}
        at.vault.ask(grant, "sums", 0, Identity())


def test_a_rank_without_its_shard_adds_no_zeros(ledger: Ledger) -> None:
    with Sharded(Source(records_of()), ledger, 2) as at:
        grant = at.vault.grant(plan_of())
        at.vault.open_records(grant)
        requests.tell(at.ranks.group, requests.DropShard())
        with pytest.raises(RankLost):
            at.vault.ask(grant, "sums", 0, Identity())


def test_a_shard_that_is_not_what_it_should_be_is_noticed(ledger: Ledger) -> None:
    class Short(ShardHolder):
        def _take(self, said: requests.TakeShard) -> requests.Taken:
            return requests.Taken(super()._take(said).records - 1)

    with Sharded(Source(records_of()), ledger, 3, holder=Short) as at:
        grant = at.vault.grant(plan_of())
        with pytest.raises(RankLost, match="not the whole set"):
            at.vault.open_records(grant)
        assert at.vault.state(grant.id) == "void"


def test_closing_lets_the_shards_go(ledger: Ledger) -> None:
    with Sharded(Source(records_of()), ledger, 2) as at:
        grant = at.vault.grant(plan_of())
        at.vault.ask(grant, "sums", 0, Identity())
        for _ in range(2):
            at.vault.close(grant)
        dropped = [content for content in at.ranks.wires.told if b'"drop_shard"' in content]
        assert len(dropped) == 1


# Machines that round differently (rule 12)


class Narrow(ClippedSums):
    """Kernels that are steady in blocks of 16 records only."""

    taken: ClassVar[list[int | None]] = []

    def summed(self, *given: Any) -> Total:
        self.taken.append(given[5] if len(given) > 5 else None)
        return super().summed(*given)

    def tried(self, mapping: Any, preferred: int) -> tuple[int, str]:
        return super().tried(mapping, min(preferred, 16))


class Odd(ClippedSums):
    """Kernels that round in a way of their own."""

    def tried(self, mapping: Any, preferred: int) -> tuple[int, str]:
        return super().tried(mapping, preferred)[0], "other bits"


def kernels_of(kind: type[ClippedSums]) -> type[ShardHolder]:
    class Holder(ShardHolder):
        def _read(self, said: requests.ReadRecords) -> requests.WasRead:
            found = super()._read(said)
            if self._group.rank == 1:
                assert self._sums is not None
                self._sums.__class__ = kind
            return found

    return Holder


def test_all_ranks_take_the_smallest_block(ledger: Ledger) -> None:
    with Sharded(Source(records_of()), ledger, 3, holder=kernels_of(Narrow)) as at:
        grant = at.vault.grant(plan_of())
        at.vault.ask(grant, "sums", 0, Identity())
        told = at.ranks.wires.told
    assert sum(b'"try_block"' in content for content in told) == 2
    (added,) = [content for content in told if b'"add_up"' in content]
    assert b'"block":16' in added and set(Narrow.taken) == {16}


def test_machines_that_round_differently_get_no_answer(ledger: Ledger) -> None:
    with Sharded(Source(records_of()), ledger, 3, holder=kernels_of(Odd)) as at:
        grant = at.vault.grant(plan_of())
        with pytest.raises(BadInput, match="Ranks 0 and 1 round differently"):
            at.vault.ask(grant, "sums", 0, Identity())
        assert at.vault.drawn(grant) == {"sums": 0}
        assert not at.ranks.wires.partial


# Parts by hash


def test_a_part_by_hash_is_the_same_and_its_key_stays_with_the_ledger(ledger: Ledger) -> None:
    whole = DataSource(SCHEMA, "here", lambda _: records_of())
    split = ledger.declare_split(SCHEMA.name, "halves", parts=2)
    part = part_of(whole, hash_part_text("halves/2", 2))
    plan = dataclasses.replace(plan_of(query_of(count=1)), dataset=part.schema.name)
    local = LocalVault(part, ledger, Randomness(7))
    expected = local.ask(local.grant(plan), "sums", 0, Identity()).values
    with Sharded(part, ledger, 3, Randomness(7)) as at:
        found = at.vault.ask(at.vault.grant(plan), "sums", 0, Identity()).values
        said = b"".join(at.ranks.wires.told)
    assert found.tobytes() == expected.tobytes()
    assert split.secret not in said and split.secret.hex().encode() not in said


# What is said


def test_a_strange_request_is_refused(ledger: Ledger) -> None:
    with Sharded(Source(records_of()), ledger, 2) as at:
        holder = ShardHolder(at.ranks.group, lambda data: Source(records_of()), lambda error: None)
        for message in (Message("other", {}), Message("add_up", {"query": 1}), Message("drop_shard", {"more": 1})):
            with pytest.raises(RankLost):
                holder.answer(message)


@pytest.mark.parametrize("code", ["wall_breach", "data_unreadable", "failed", "whatever else"])
def test_a_failure_elsewhere_is_a_code_here(code: str) -> None:
    error = requests.failure_of(3, code)
    assert "Rank 3" in error.message and "whatever" not in error.message
    assert isinstance(error, {"wall_breach": WallBreach, "data_unreadable": DataUnreadable}.get(code, RankLost))
