"""Ranks as threads of the test: messages go through the same bytes as between processes, and all of them are kept.

One thread computes at a time: rank 0, or the others while it waits for them. Networks are built with PyTorch's own generator, of
which a process has one.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.errors import RankLost
from limbeck.vault.ledger import Ledger
from limbeck.vault.noise import Randomness
from limbeck.vault.process.wire import Message
from limbeck.vault.sharded.group import END, decoded, encoded
from limbeck.vault.sharded.holder import ShardHolder
from limbeck.vault.sharded.vault import ShardedVault
from limbeck.vault.source import PrivateSource

SECONDS = 60.0
Serve = Callable[["ThreadGroup"], None]


class Wires:
    """What the ranks share: a queue for each direction, and everything that went through."""

    def __init__(self, size: int) -> None:
        self.down = [queue.Queue[torch.Tensor]() for _ in range(size)]
        self.up = [queue.Queue[torch.Tensor]() for _ in range(size)]
        self.sums = [queue.Queue[NDArray[np.int64]]() for _ in range(size)]
        self.told: list[bytes] = []
        self.replied: list[bytes] = []
        self.partial: list[NDArray[np.int64]] = []
        self.turn = threading.Lock()
        self.turn.acquire()  # rank 0 begins

    @contextlib.contextmanager
    def others(self) -> Iterator[None]:
        """While rank 0 waits."""
        self.turn.release()
        try:
            yield
        finally:
            self.turn.acquire()


class ThreadGroup:
    def __init__(self, rank: int, size: int, wires: Wires) -> None:
        self.rank, self.size, self._wires = rank, size, wires
        self._at_work = False

    def compute_on(self, device: torch.device) -> None:
        assert device.type == "cpu"

    def tell(self, message: Message) -> None:
        assert self.rank == 0
        content = encoded(message)
        self._wires.told.append(content.numpy().tobytes())
        for each in self._wires.down[1:]:
            each.put(content)

    def hear(self) -> Message:
        if self._at_work:
            self._wires.turn.release()
        message = decoded(_taken(self._wires.down[self.rank], None))
        self._at_work = message.kind != END and self._wires.turn.acquire()
        return message

    def reply(self, message: Message) -> None:
        content = encoded(message)
        self._wires.replied.append(content.numpy().tobytes())
        self._wires.up[self.rank].put(content)

    def replies(self) -> list[Message]:
        with self._wires.others():
            return [decoded(_taken(each, SECONDS)) for each in self._wires.up[1:]]

    def add_up(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.rank:
            self._wires.partial.append(values.copy())
            self._wires.sums[self.rank].put(values)
            return values
        with self._wires.others():
            return values + sum(_taken(each, SECONDS) for each in self._wires.sums[1:])


def _taken(line: queue.Queue[Any], seconds: float | None) -> Any:
    try:
        return line.get(timeout=seconds)
    except queue.Empty:
        raise RankLost("A rank is silent.") from None


class Ranks:
    """Rank 0 for the test, and the others at work until `end`."""

    def __init__(self, size: int, serve: Serve) -> None:
        self.wires = Wires(size)
        self.group = ThreadGroup(0, size, self.wires)
        others = [ThreadGroup(rank, size, self.wires) for rank in range(1, size)]
        self._threads = [threading.Thread(target=serve, args=(group,), daemon=True) for group in others]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self.group.tell(Message(END, {}))
        with self.wires.others():
            for thread in self._threads:
                thread.join(SECONDS)
                assert not thread.is_alive()


def holding(
    source_at: Callable[[int], PrivateSource], noted: list[BaseException], kind: type[ShardHolder] = ShardHolder
) -> Serve:
    """Hold a shard of these records, and answer until the end."""

    def serve(group: ThreadGroup) -> None:
        def open_source(data: Mapping[str, Any]) -> PrivateSource:
            assert data == {"data": "here"}
            return source_at(group.rank)

        holder = kind(group, open_source, noted.append)
        while (message := group.hear()).kind != END:
            holder.answer(message)

    return serve


class Sharded:
    """A sharded vault, its ranks, and what they noted."""

    def __init__(
        self,
        source: PrivateSource,
        ledger: Ledger,
        size: int,
        randomness: Randomness | None = None,
        source_at: Callable[[int], PrivateSource] | None = None,
        holder: type[ShardHolder] = ShardHolder,
        kind: type[ShardedVault] = ShardedVault,
    ) -> None:
        self.noted: list[BaseException] = []
        self.ranks = Ranks(size, holding(source_at or (lambda rank: source), self.noted, holder))
        self.vault = kind(source, ledger, self.ranks.group, {"data": "here"}, randomness)

    def __enter__(self) -> Sharded:
        return self

    def __exit__(self, *_: object) -> None:
        self.ranks.end()
