"""A run on several ranks: who is there, what the ranks other than 0 do, and who shares out a method's own work.

`torchrun` starts the same command several times and says by environment variables who is who. Rank 0 is the run: it plans, books,
answers, writes and prints. The others wait for what it tells them, hold a shard of the records, and write nothing.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from limbeck.errors import BadInput, LimbeckError, RankLost, out_of_memory, ran_out
from limbeck.methods.team import Work
from limbeck.methods.works import WORKS
from limbeck.runs.request import DataReference
from limbeck.vault.process.codec import pack, unpack
from limbeck.vault.process.wire import Malformed, Message
from limbeck.vault.sharded.group import END, Group, TorchGroup
from limbeck.vault.sharded.holder import OpenSource, ShardHolder
from limbeck.vault.source import PrivateSource

WORK, RESULTS, FAILED = "work", "results", "failed"
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")  # as torchrun sets them
SECONDS = "LIMBECK_RANK_SECONDS"
USUAL_SECONDS = 1800.0


@contextlib.contextmanager
def joined() -> Iterator[Group | None]:
    """The ranks of this run, once all of them are there; None in a process of its own. At the end rank 0 lets the others go."""
    if not all(os.environ.get(name) for name in VARIABLES):
        yield None
        return
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)  # ranks share the cores of a machine
    if os.environ["WORLD_SIZE"] == "1":
        yield None
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    with _stopped_by_torchrun():
        group = TorchGroup.join(_patience())
        try:
            yield group
        except (RankLost, KeyboardInterrupt):
            raise  # somebody may not hear, or wait for something else; all of them notice that this process ends
        except BaseException:
            _let_go(group)
            raise
        _let_go(group)


def _let_go(group: TorchGroup) -> None:
    if group.rank == 0:
        with contextlib.suppress(RankLost):
            group.tell(Message(END, {}))
    group.leave()


@contextlib.contextmanager
def _stopped_by_torchrun() -> Iterator[None]:
    """torchrun ends all ranks by SIGTERM when it is stopped or one of them has died: for rank 0 that is Ctrl-C."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if os.environ["RANK"] != "0" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _patience() -> float:
    """Seconds to wait for a rank that says nothing."""
    text = os.environ.get(SECONDS, str(USUAL_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 1 <= seconds <= 1e6:
        raise BadInput(f"{SECONDS} must be a number of seconds from 1 to 1000000, got '{text}'.")
    return seconds


def serve(group: Group, open_source: OpenSource | None = None) -> None:
    """What a rank other than 0 does until rank 0 lets it go. Guarantee: writes no file and opens no ledger."""
    holder = ShardHolder(group, open_source or _source_at, _note)
    while (message := group.hear()).kind != END:
        if message.kind == WORK:
            group.reply(_worked(group, message))
        else:
            holder.answer(message)


def _source_at(data: Mapping[str, Any]) -> PrivateSource:
    try:
        source = DataReference(**data).source()
    except TypeError:
        raise BadInput("Rank 0 named the records in a way that this version of Limbeck does not know.") from None
    source.prepare()
    return source


def _note(error: BaseException) -> None:
    """On this rank's own standard error; of an unforeseen error its kind and place only, because it may quote a record."""
    if isinstance(error, LimbeckError):
        text = error.message
    elif ran_out(error):
        text = out_of_memory("on this rank").message
    else:
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f"An unforeseen error ({type(error).__name__} at {os.path.basename(place.filename)}:{place.lineno})."
    print(f"limbeck: rank {os.environ.get('RANK')}: {text}", file=sys.stderr, flush=True)


class RankTeam:
    """All ranks do a method's work: part i is done by rank i modulo their number."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def share(self, work: Work, device: torch.device) -> list[Tensor]:
        """Guarantee: the results of the parts in their order, each computed as one process would."""
        group, tensors = self._group, list[Tensor]()
        values = {"kind": work.kind, "fields": pack(work, tensors), "device": device.type}
        group.tell(Message(WORK, values, tuple(tensors)))
        try:
            done = {part: work.done(part, device) for part in own_parts(work, group)}
        finally:
            replies = group.replies()
        for rank, reply in enumerate(replies, start=1):
            parts = own_parts(work, group, rank)
            if reply.kind != RESULTS or len(reply.tensors) != len(parts):
                raise RankLost(
                    f"Rank {rank} could not do its part of the method's work; its own standard error says why."
                )
            done |= {part: tensor.to(device) for part, tensor in zip(parts, reply.tensors, strict=True)}
        return [done[part] for part in range(work.parts)]


def team_of(group: Group | None) -> RankTeam | None:
    return None if group is None else RankTeam(group)


def own_parts(work: Work, group: Group, rank: int | None = None) -> range:
    return range(group.rank if rank is None else rank, work.parts, group.size)


def _worked(group: Group, message: Message) -> Message:
    try:
        kind = WORKS.get(message.values["kind"])
        if kind is None:
            raise Malformed("work of no known kind")
        work: Work = unpack(kind, message.values["fields"], message.tensors)
        at = torch.device(message.values["device"])
        return Message(RESULTS, {}, tuple(work.done(part, at) for part in own_parts(work, group)))
    except Exception as error:
        _note(error)
        return Message(FAILED, {})
