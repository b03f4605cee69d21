"""A vault in another process: every call of the contract is one request over its socket."""

from __future__ import annotations

import contextlib
import operator
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from limbeck.errors import BadInput, LimbeckError, VaultUnreachable, WallBreach
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Answer, Asked, Grant, Randomness, State
from limbeck.vault.noise import INSECURE, SECURE, SecretStream
from limbeck.vault.process.failures import BUSY, MALFORMED, SENTENCES, failure
from limbeck.vault.process.requests import (
    REPLIES,
    Answered,
    Ask,
    AskDrawn,
    AskState,
    Book,
    Close,
    Describe,
    Described,
    Done,
    Drawn,
    Failed,
    Forget,
    GiveBack,
    GivenBack,
    Granted,
    InState,
    Keep,
    OpenRecords,
    Said,
    Sign,
    Signed,
    TakeUp,
    message_of,
    read,
)
from limbeck.vault.process.wire import CutOff, Line, Malformed, receive, send

PATIENCE = 600.0
STATES: dict[str, State] = {"open": "open", "finished": "finished", "void": "void"}
_Reply = TypeVar("_Reply", bound=Said)


@dataclass(frozen=True)
class StatedRandomness(Randomness):
    """Where the noise of a vault elsewhere comes from, in its own words. Its streams and its seed stay there."""

    generator: str = INSECURE

    @property
    def mode(self) -> str:
        return self.generator

    @property
    def releasable(self) -> bool:
        return self.generator == SECURE

    def stream(self, label: str, index: int) -> SecretStream:
        raise WallBreach("The noise of a vault in another process is drawn there.")


class ProcessVault:
    """The vault behind a socket, as `limbeck vault serve` opens it. It holds no record, no budget and no key.

    path      the socket
    patience  seconds to go on trying while the vault has as many connections as it takes

    A request that was sent and not answered may have been carried out. Asking again is always safe: the same booking is paid
    once, and the same answer given.
    """

    def __init__(self, path: Path | str, patience: float = PATIENCE) -> None:
        self.path, self._patience = Path(path), patience

    @property
    def randomness(self) -> Randomness:
        generator = self._call(Describe(), Described).generator
        if generator not in (SECURE, INSECURE):
            raise self._strange()
        return StatedRandomness(generator=generator)

    def describe(self) -> Schema:
        return self._call(Describe(), Described).schema

    def grant(self, plan: Plan, identity: str | None = None) -> Grant:
        return Grant(self._call(Book(plan, identity), Granted).identity, plan)

    def take_up(self, identity: str, plan: Plan, booked: bool = False) -> Grant:
        return Grant(self._call(TakeUp(identity, plan, booked), Granted).identity, plan)

    def state(self, identity: str) -> State | None:
        state = self._call(AskState(identity), InState).state
        return None if state is None else STATES[state]

    def open_records(self, grant: Grant) -> None:
        self._call(OpenRecords(grant), Done)

    def ask(self, grant: Grant, label: str, index: int, mapping: Asked) -> Answer:
        values = self._call(Ask(grant, label, operator.index(index), mapping), Answered).values
        if values.dtype != torch.float32:
            raise self._strange()
        query = grant.plan.query(label)
        return Answer(values.numpy(), query.noise_std if query else 0.0)

    def keep(self, grant: Grant) -> None:
        self._call(Keep(grant), Done)

    def forget(self, grant: Grant, label: str, before: int) -> None:
        self._call(Forget(grant, label, operator.index(before)), Done)

    def drawn(self, grant: Grant) -> Mapping[str, int]:
        return self._call(AskDrawn(grant), Drawn).counts

    def give_back(self, grant: Grant) -> bool:
        return self._call(GiveBack(grant), GivenBack).given

    def close(self, grant: Grant) -> None:
        self._call(Close(grant), Done)

    def sign(self, grant: Grant, stated: Mapping[str, Any]) -> Mapping[str, str]:
        """The owner's signature of a certificate of this grant. Beside the contract: a vault need not hold a key."""
        return self._call(Sign(grant, dict(stated)), Signed).signature

    def _call(self, request: Said, wanted: type[_Reply]) -> _Reply:
        end, pause = time.monotonic() + self._patience, 0.05
        while True:
            reply = self._asked(request)
            if not isinstance(reply, Failed):
                break
            if reply.code != BUSY or time.monotonic() + pause > end:
                raise failure(reply.code)
            time.sleep(pause)
            pause = min(2 * pause, 2.0)
        if not isinstance(reply, wanted):
            raise self._strange()
        return reply

    def _asked(self, request: Said) -> Said:
        try:
            message = message_of(request)
        except (Malformed, AttributeError):
            # It is refused there, too; here it need not even be sent.
            raise WallBreach(
                f"The request '{request.kind}' holds a value or a map that the vault does not know."
            ) from None
        with self._connected() as connection:
            line = Line(connection)
            try:
                # Whoever turned us away has said so before hanging up.
                with contextlib.suppress(CutOff, OSError):
                    send(line, message)
                    connection.shutdown(socket.SHUT_WR)
            except Malformed:
                raise WallBreach(SENTENCES[MALFORMED][1]) from None
            try:
                return read(receive(line), REPLIES)
            except CutOff:
                raise VaultUnreachable(
                    f"The vault at {self.path} went away before it answered. What it answered before is kept."
                ) from None
            except (Malformed, LimbeckError, ValueError, TypeError):
                raise self._strange() from None

    def _connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(self.path))
        except OSError as error:
            connection.close()
            why = "nobody answers there" if isinstance(error, ConnectionRefusedError) else error.strerror or str(error)
            raise VaultUnreachable(
                f"The vault at {self.path} cannot be reached: {why}. Its owner starts it with 'limbeck vault serve'."
            ) from None
        return connection

    def _strange(self) -> LimbeckError:
        return BadInput(f"What answers at {self.path} is no vault of this version of Limbeck.")
