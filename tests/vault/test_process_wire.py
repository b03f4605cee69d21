"""Bytes that no client of ours sends: garbage, halves, giants. Each costs its own connection and nothing else."""

from __future__ import annotations

import contextlib
import json
import random
import resource
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract import SCHEMA, Source, plan_of, records_of
from process_serving import Served, served

from limbeck.vault.api import Grant, Identity, Residual
from limbeck.vault.ledger import Ledger
from limbeck.vault.process.limits import MOST_BODY, MOST_HEADER, Limits
from limbeck.vault.process.requests import REQUESTS, Ask, Book, Describe, Said, message_of, read
from limbeck.vault.process.wire import (
    MAGIC,
    PREFIX,
    VERSION,
    CutOff,
    Line,
    Malformed,
    Message,
    header_of,
    receive,
    send,
)


def frame(header: bytes, body: bytes = b"", size: int | None = None, version: int = VERSION) -> bytes:
    return PREFIX.pack(MAGIC, version, len(header), len(body) if size is None else size) + header + body


def bytes_of(said: Said) -> bytes:
    message = message_of(said)
    header, _ = header_of(message, list(message.tensors))
    return frame(header, b"".join(tensor.contiguous().numpy().tobytes() for tensor in message.tensors))


def taken(content: bytes, most: int = MOST_BODY) -> Message:
    """What a reader makes of these bytes."""
    here, there = socket.socketpair()
    with here, there:
        there.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        there.sendall(content)
        there.shutdown(socket.SHUT_WR)
        line = Line(here, 10.0)
        message = receive(line, most)
        line.require_end()
        return message


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Ledger.open(tmp_path_factory.mktemp("wire") / "ledger.sqlite") as ledger:
        ledger.set_budget(SCHEMA.name, 1e6, 0.5)
        with served(Source(records_of()), ledger, limits=Limits(seconds=1.0)) as found:
            yield found


@pytest.fixture(autouse=True)
def still_serving(at: Served) -> Iterator[None]:
    yield
    assert at.vault.describe() == SCHEMA
    grant = at.vault.grant(plan_of())
    at.vault.ask(grant, "sums", 0, Identity())
    at.vault.close(grant)


# One by one

PLAIN = {"kind": "describe", "values": {}, "tensors": []}


def said(**changes: Any) -> bytes:
    return json.dumps(PLAIN | changes).encode()


GARBAGE: dict[str, bytes] = {
    "noise": random.Random(1).randbytes(5000),
    "another magic": b"HTTP" + frame(said())[4:],
    "another version": frame(said(), version=2),
    "version 0": frame(said(), version=0),
    "no header": frame(b""),
    "no JSON": frame(b"{nonsense"),
    "no UTF-8": frame(b"\xff\xfe{}"),
    "no object": frame(b"[]"),
    "a number": frame(b"7"),
    "deep lists": frame(b"[" * 500_000),
    "deep objects": frame(b'{"a":' * 150_000),
    "a name twice": frame(b'{"kind":"describe","kind":"grant","values":{},"tensors":[]}'),
    "a value twice": frame(b'{"kind":"state","values":{"identity":"x","identity":"y"},"tensors":[]}'),
    "not a number": frame(b'{"kind":"describe","values":{"a":NaN},"tensors":[]}'),
    "infinity": frame(b'{"kind":"describe","values":{"a":Infinity},"tensors":[]}'),
    "infinity in digits": frame(b'{"kind":"describe","values":{"a":1e999},"tensors":[]}'),
    "a long number": frame(b'{"kind":"describe","values":{"a":' + b"9" * 10_000 + b'},"tensors":[]}'),
    "unknown kind": frame(said(kind="load")),
    "a kind that is a reply": frame(said(kind="done")),
    "a kind that is no text": frame(said(kind=["describe"])),
    "unknown field": frame(said(values={"path": "/etc/passwd"})),
    "missing field": frame(said(kind="state")),
    "unknown entry": frame(said(code="import os")),
    "missing entry": frame(b'{"kind":"describe","values":{}}'),
    "values that are a list": frame(said(values=[])),
    "tensors that are an object": frame(said(tensors={})),
    "too many tensors": frame(said(tensors=[{"dtype": "uint8", "shape": [0]}] * 5000)),
    "unknown dtype": frame(said(tensors=[{"dtype": "object", "shape": [1]}]), b"\0" * 8),
    "dtype that is no text": frame(said(tensors=[{"dtype": ["float32"], "shape": [1]}]), b"\0" * 4),
    "negative side": frame(said(tensors=[{"dtype": "uint8", "shape": [-1]}])),
    "two negative sides": frame(said(tensors=[{"dtype": "uint8", "shape": [-1, -1]}]), b"\0"),
    "a side that is true": frame(said(tensors=[{"dtype": "uint8", "shape": [True]}]), b"\0"),
    "a side with a fraction": frame(said(tensors=[{"dtype": "uint8", "shape": [1.0]}]), b"\0"),
    "a side beyond all": frame(said(tensors=[{"dtype": "uint8", "shape": [2**80]}])),
    "sides that overflow": frame(said(tensors=[{"dtype": "float64", "shape": [2**30] * 8}])),
    "empty sides that overflow": frame(said(tensors=[{"dtype": "float64", "shape": [0, *[2**30] * 7]}])),
    "many sides": frame(said(tensors=[{"dtype": "uint8", "shape": [1] * 9}]), b"\0"),
    "a body that nobody listed": frame(said(), b"body"),
    "a body too short": frame(said(tensors=[{"dtype": "float32", "shape": [4]}]), b"\0" * 8),
    "a body too long": frame(said(tensors=[{"dtype": "float32", "shape": [4]}]), b"\0" * 32),
    "a truth value of 7": frame(said(tensors=[{"dtype": "bool", "shape": [1]}]), b"\7"),
    "a tensor without a place": frame(said(tensors=[{"dtype": "float32", "shape": [4]}]), bytes(16)),
    "bytes after the message": frame(said()) + b"x",
    "two messages": frame(said()) * 2,
    "a header of 4 GB announced": PREFIX.pack(MAGIC, VERSION, 2**32 - 1, 0),
    "a header just too long": PREFIX.pack(MAGIC, VERSION, MOST_HEADER + 1, 0) + b" " * (MOST_HEADER + 1),
    "2 GB announced": PREFIX.pack(MAGIC, VERSION, 10, 2 << 30),
    "all bytes there are": PREFIX.pack(MAGIC, VERSION, 10, 2**64 - 1),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_refused_with_one_code(name: str, at: Served) -> None:
    answer = at.talk(GARBAGE[name])
    assert answer == b"" or json.loads(answer[PREFIX.size :]) == {
        "kind": "failed", "values": {"code": "malformed"}, "tensors": [],
    }  # fmt: skip
    if name not in ("noise",):
        assert answer


def test_the_one_good_message_among_them_is_answered(at: Served) -> None:
    assert b'"described"' in at.talk(frame(said()))


HALVES = [0, 1, PREFIX.size - 1, PREFIX.size, PREFIX.size + 5]


@pytest.mark.parametrize("length", HALVES)
@pytest.mark.parametrize("end", [True, False], ids=["hangs up", "waits"])
def test_half_a_message_is_dropped(length: int, end: bool, at: Served) -> None:
    began = time.monotonic()
    assert at.talk(frame(said())[:length], end) == b""
    assert time.monotonic() - began < 10


def test_a_message_that_is_fed_byte_by_byte_is_dropped(at: Served) -> None:
    """Every single read is in time, and the whole is not."""
    content, began = frame(said() + b" " * 5000), time.monotonic()
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(at.path))
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            for byte in content:
                line.send(bytes([byte]))
                time.sleep(0.05)
    assert time.monotonic() - began < 10


def test_a_client_that_does_not_listen_is_dropped(at: Served) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(at.path))
        line.sendall(frame(said()))
        line.shutdown(socket.SHUT_WR)
        time.sleep(0.3)


# Bounds before memory


@pytest.mark.parametrize(
    "content",
    [
        PREFIX.pack(MAGIC, VERSION, 2**32 - 1, 0),
        PREFIX.pack(MAGIC, VERSION, MOST_HEADER + 1, 0),
        PREFIX.pack(MAGIC, VERSION, 100, 2**64 - 1),
        frame(said(tensors=[{"dtype": "float32", "shape": [1 << 28, 4]}]), size=4 << 30),
        frame(said(tensors=[{"dtype": "float32", "shape": [1 << 28, 4]}]), size=1 << 20),
        frame(said(tensors=[{"dtype": "float32", "shape": [1 << 20]}]), size=8),
    ],
)
def test_nothing_is_allocated_for_sizes_that_are_not_allowed(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused as malformed, not as cut off: the bytes that were announced are not waited for, nor is there room for them."""
    asked: list[int] = []
    exactly = Line.exactly

    def watched(self: Line, size: int) -> bytearray:
        asked.append(size)
        return exactly(self, size)

    monkeypatch.setattr(Line, "exactly", watched)
    with pytest.raises(Malformed):
        taken(content)
    assert max(asked) <= MOST_HEADER


@pytest.mark.parametrize(
    "content",
    [
        frame(b'{"kind":"describe","kind":"describe","values":{},"tensors":[]}'),
        frame(b'{"kind":"describe","values":{"a":{"b":1,"b":1}},"tensors":[]}'),
        frame(b'{"kind":"describe","values":{"a":1e999},"tensors":[]}'),
        frame(b'{"kind":"describe","values":{"a":-1e999},"tensors":[]}'),
        frame(b'{"kind":"describe","values":{"a":NaN},"tensors":[]}'),
        frame(said(), b"body"),
        frame(said(tensors=[{"dtype": "uint8", "shape": [3]}]), b"body"),
    ],
)
def test_a_message_has_one_reading(content: bytes) -> None:
    """Whether or not anybody would look at that part of it."""
    here, there = socket.socketpair()
    with here, there, pytest.raises(Malformed):
        there.sendall(content)
        receive(Line(here, 5.0))


def test_a_server_with_little_memory_left_goes_on(at: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    exactly = Line.exactly

    def short(self: Line, size: int) -> bytearray:
        if size == 4_000_000:
            raise MemoryError
        return exactly(self, size)

    monkeypatch.setattr(Line, "exactly", short)
    answer = at.talk(frame(said(tensors=[{"dtype": "float32", "shape": [1_000_000]}]), bytes(4_000_000)))
    assert b'"failed"' in answer


def test_of_large_bodies_one_at_a_time_is_taken_in(at: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at.server, "limits", Limits(seconds=3.0, small=1000))
    listed = frame(said(tensors=[{"dtype": "uint8", "shape": [5000]}]), size=5000)
    with socket.socket(socket.AF_UNIX) as slow:
        slow.connect(str(at.path))
        slow.sendall(listed)
        time.sleep(0.3)
        began = time.monotonic()
        assert b"malformed" in at.talk(listed + bytes(5000))  # waits for the slow one, which is cut
        assert 1.0 < time.monotonic() - began < 10
        assert b'"described"' in at.talk(frame(said()))


def test_what_is_announced_and_does_not_come_takes_no_memory(at: Served) -> None:
    def held() -> int:
        """Bytes of this process that are in memory now."""
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    listed = frame(said(tensors=[{"dtype": "uint8", "shape": [1 << 30]}]), size=1 << 30)
    before, most = held(), 0
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(4)]
        for line in lines:
            line.connect(str(at.path))
            line.sendall(listed + bytes(1000))
        time.sleep(0.3)
        for line in lines:
            most = max(most, held())
            line.close()
    assert most - before < 1 << 28
    assert b'"described"' in at.talk(frame(said()))


def test_the_next_large_body_comes_after_the_one_before_is_gone(at: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where that one broke off: an error holds what it was raised beside."""
    bodies: list[weakref.ref[np.ndarray]] = []
    others: list[int] = []
    empty = np.empty

    def noted(size: int, dtype: type) -> np.ndarray:
        made = empty(size, dtype=dtype)
        if size == 5000:
            others.append(sum(body() is not None for body in bodies))
            bodies.append(weakref.ref(made))
        return made

    monkeypatch.setattr(at.server, "limits", Limits(seconds=3.0, small=1000))
    monkeypatch.setattr("limbeck.vault.process.wire.np.empty", noted)
    listed = frame(said(tensors=[{"dtype": "uint8", "shape": [5000]}]), size=5000)
    for _ in range(5):
        threads = [threading.Thread(target=at.talk, args=(listed + bytes(100),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert others == [0] * 20


def test_two_gigabytes_that_are_really_sent(at: Served) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    piece = bytes(1 << 24)
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(60)
        line.connect(str(at.path))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            line.sendall(PREFIX.pack(MAGIC, VERSION, 10, 2 << 30) + bytes(10))
            for _ in range(128):
                line.sendall(piece)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


# Fuzz


def valid() -> list[bytes]:
    grant = Grant("c" * 32, plan_of())
    residual = Residual(centre=torch.zeros(3, 144), scale=1.0, basis=torch.eye(144))
    return [
        bytes_of(each)
        for each in (
            Describe(),
            Book(plan_of(), "c" * 32),
            Ask(grant, "sums", 0, Identity()),
            Ask(grant, "sums", 0, residual),
        )
    ]


def damaged(content: bytes, chance: random.Random) -> bytes:
    made = bytearray(content)
    kind = chance.choice(("flip", "cut", "longer", "twice", "swap", "digits"))
    place = chance.randrange(len(made))
    if kind == "flip":
        for _ in range(chance.choice((1, 1, 4, 30))):
            made[chance.randrange(min(len(made), 3000))] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del made[place:]
    elif kind == "longer":
        made[place:place] = chance.randbytes(chance.choice((1, 8, 5000)))
    elif kind == "twice":
        made[place:place] = made[max(place - chance.randrange(200), 0) : place]
    elif kind == "swap":
        other = chance.randrange(len(made))
        made[place], made[other] = made[other], made[place]
    else:
        digits = [index for index, byte in enumerate(made[:3000]) if chr(byte).isdigit()]
        at_digit = chance.choice(digits or [0])
        made[at_digit : at_digit + 1] = chance.choice(
            (b"9" * 30, b"-1", b"1e300", b"null", b"[]", b'"1"', b"0.5", b"true")
        )
    return bytes(made)


def test_damaged_messages_are_read_whole_or_refused() -> None:
    """The reader alone, many times: nothing but its own two errors and what a value's class says of it."""
    from limbeck.errors import BadInput

    chance, whole = random.Random(7), 0
    messages = valid()
    for _ in range(3000):
        content = damaged(chance.choice(messages), chance)
        try:
            request = read(taken(content), REQUESTS)
            whole += 1
            assert type(request) in REQUESTS.values()
        except (Malformed, CutOff, BadInput):
            pass
    assert whole < 2000


def test_a_server_that_gets_damaged_messages_goes_on(at: Served) -> None:
    chance, messages = random.Random(8), valid()
    for _ in range(150):
        at.talk(damaged(chance.choice(messages), chance))


def test_what_is_sent_is_what_arrives() -> None:
    here, there = socket.socketpair()
    tensors = (
        torch.arange(6, dtype=torch.float64).view(2, 3).T,
        torch.empty(0, 5),
        torch.tensor([True, False]),
        torch.tensor(7, dtype=torch.int32),
    )
    with here, there:
        send(Line(there, 5.0), Message("x", {"a": [1, 2.5, "é", None, True]}, tensors))
        found = receive(Line(here, 5.0))
    assert found.kind == "x" and found.values == {"a": [1, 2.5, "é", None, True]}
    for before, after in zip(tensors, found.tensors, strict=True):
        assert before.dtype == after.dtype and torch.equal(before, after)


def test_a_message_that_is_too_large_is_not_begun(tmp_path: Path) -> None:
    here, there = socket.socketpair()
    with here, there:
        for message in (
            Message("x", {"a": "b" * MOST_HEADER}),
            Message("x", {}, (torch.empty(1).expand(MOST_BODY // 4 + 1),)),
            Message("x", {}, (torch.zeros(2, dtype=torch.complex64),)),
        ):
            with pytest.raises(Malformed):
                header_of(message, list(message.tensors))
