"""The processes of one run, and all that they ever say to each other: messages, and sums of whole numbers.

Rank 0 tells, the others hear; each may reply to rank 0; all add up together. Messages are those of `vault.process.wire`: numbers
and texts, every size compared with a bound, nothing unpickled. Whoever does not answer in time, or is gone, ends the run.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from limbeck.errors import RankLost
from limbeck.vault.process.limits import MOST_BODY, MOST_HEADER
from limbeck.vault.process.wire import PREFIX, CutOff, Malformed, Message, receive, send
from limbeck.vault.sharded.heartbeat import Heartbeat

END = "end"
_Value = TypeVar("_Value")


class Group(Protocol):
    """What a rank sees of the others. Every call is made by all ranks in the same order."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def compute_on(self, device: torch.device) -> None:
        """Where the ranks compute, and so where sums are added up."""
        ...

    def tell(self, message: Message) -> None:
        """From rank 0 to all others."""
        ...

    def hear(self) -> Message:
        """What rank 0 tells."""
        ...

    def reply(self, message: Message) -> None:
        """To rank 0."""
        ...

    def replies(self) -> list[Message]:
        """At rank 0: that of rank 1, of rank 2, ..."""
        ...

    def add_up(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """At rank 0 the sum over all ranks, exact up to 64 bits; elsewhere nothing of use."""
        ...


class TorchGroup:
    """The processes that `torchrun` started, by torch.distributed. Sums of GPUs travel by NCCL, all else by Gloo.

    said: bytes that this rank gave to the others or had from them, not counting what the network adds
    """

    def __init__(self, seconds: float) -> None:
        self._device, self.said = torch.device("cpu"), 0
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        # Between two requests a method may work for hours, so there only the heartbeat tells whether rank 0 is alive.
        self._requests = dist.new_group(
            backend="gloo", timeout=timedelta(days=365) if self.rank else timedelta(seconds=seconds)
        )
        self._heartbeat = Heartbeat(
            self.rank, dist.new_group(backend="gloo", timeout=timedelta(seconds=seconds)), seconds
        )

    @staticmethod
    def join(seconds: float) -> TorchGroup:
        """Wait for all processes that the environment names. seconds: how long a rank may be silent that should speak."""
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        try:
            dist.init_process_group(backend, timeout=timedelta(seconds=seconds))
            return TorchGroup(seconds)
        except (RuntimeError, ValueError):
            raise RankLost(
                f"The processes that RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT name did not come together in {seconds:g} "
                "seconds. Start them all with torchrun; for a run in one process take these variables out of the environment."
            ) from None

    def leave(self) -> None:
        """At rank 0 after all have been told that it is over; elsewhere after that was heard."""
        self._heartbeat.end()
        dist.destroy_process_group()

    def compute_on(self, device: torch.device) -> None:
        self._device = device

    def tell(self, message: Message) -> None:
        content = encoded(message)
        _reached(lambda: dist.broadcast(torch.tensor([len(content)]), src=0, group=self._requests))
        _reached(lambda: dist.broadcast(content, src=0, group=self._requests))
        self.said += len(content) * (self.size - 1)

    def hear(self) -> Message:
        length = torch.zeros(1, dtype=torch.int64)
        _reached(lambda: dist.broadcast(length, src=0, group=self._requests))
        content = _room(length)
        _reached(lambda: dist.broadcast(content, src=0, group=self._requests))
        self.said += len(content)
        return decoded(content)

    def reply(self, message: Message) -> None:
        content = encoded(message)
        _reached(lambda: dist.send(torch.tensor([len(content)]), dst=0))
        _reached(lambda: dist.send(content, dst=0))
        self.said += len(content)

    def replies(self) -> list[Message]:
        return [self._reply_of(rank) for rank in range(1, self.size)]

    def _reply_of(self, rank: int) -> Message:
        length = torch.zeros(1, dtype=torch.int64)
        _reached(lambda: dist.recv(length, src=rank))
        content = _room(length)
        _reached(lambda: dist.recv(content, src=rank))
        self.said += len(content)
        return decoded(content)

    def add_up(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        total = torch.from_numpy(values.copy()).to(self._device)
        _reached(lambda: dist.reduce(total, dst=0))
        self.said += values.nbytes * (self.size - 1 if self.rank == 0 else 1)
        added: NDArray[np.int64] = total.cpu().numpy()
        return added


def _reached(action: Callable[[], _Value]) -> _Value:
    """Guarantee: a rank that is gone, or silent for longer than the group waits, is one error, and no text of it is shown."""
    try:
        return action()
    except (RuntimeError, ValueError):
        raise RankLost(
            "A process of this run has ended, could not be reached or did not answer in time. What was answered before is kept."
        ) from None


class _Content:
    """The bytes of one message, to be written or to be read."""

    def __init__(self, content: memoryview | None = None) -> None:
        self.parts: list[bytes] = []
        self._content, self._at = content, 0

    def write(self, content: bytes | memoryview) -> None:
        self.parts.append(bytes(content))

    def exactly(self, size: int) -> memoryview:
        assert self._content is not None
        found = self._content[self._at : self._at + size]
        if len(found) < size:
            raise CutOff("in the middle of a message")
        self._at += size
        return np.frombuffer(found, dtype=np.uint8).copy().data  # with a beginning of its own, as tensors want it


def encoded(message: Message) -> torch.Tensor:
    """The bytes of a message."""
    content = _Content()
    try:
        send(content, message)
    except Malformed:
        raise RankLost("A request is larger than a message between ranks may be (1 GiB).") from None
    return torch.frombuffer(bytearray(b"".join(content.parts)), dtype=torch.uint8)


def decoded(content: torch.Tensor) -> Message:
    try:
        return receive(_Content(content.numpy().data))
    except (Malformed, CutOff):
        raise _strange() from None


def _room(length: torch.Tensor) -> torch.Tensor:
    """Guarantee: no more than a message may take."""
    size = int(length)
    if not 0 < size <= PREFIX.size + MOST_HEADER + MOST_BODY:
        raise _strange()
    return torch.zeros(size, dtype=torch.uint8)


def _strange() -> RankLost:
    return RankLost("What another process of this run said is no message of this version of Limbeck.")
