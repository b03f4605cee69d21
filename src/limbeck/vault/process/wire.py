"""Messages on a socket: a fixed prefix, a JSON header, and the raw bytes of the tensors that the header lists.

    prefix    magic (4 bytes), version (2), length of the header (4), length of the body (8); big-endian
    header    {"kind": text, "values": object, "tensors": [{"dtype": name, "shape": [...]}, ...]}, UTF-8
    body      the tensors' bytes in that order, little-endian, nothing between them

CONSTITUTION of the format. Both ends refuse what they do not know:

 1. Nothing is allocated before its size was compared with a bound, and the body's length is that of its tensors, exactly.
 2. Another version, kind, entry or dtype is refused, and so is a name that stands twice, a number that is not finite, or
    a byte too many. Unknown never means harmless.
 3. Numbers and texts only. Nothing in a message names code, and nothing is unpickled.
"""

from __future__ import annotations

import json
import math
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from limbeck.vault.process.limits import MOST_BODY, MOST_DIMENSIONS, MOST_HEADER, MOST_TENSORS

MAGIC, VERSION = b"LBVT", 1
PREFIX = struct.Struct(">4sHIQ")
DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "int64": torch.int64,
    "int32": torch.int32,
    "uint8": torch.uint8,
    "bool": torch.bool,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
PIECE = 1 << 20
assert sys.byteorder == "little", "tensors travel as they lie in memory"


class Malformed(Exception):
    """What arrived is no message of this format, or larger than one may be."""


class CutOff(Exception):
    """The other end went away, or took too long."""


@dataclass(frozen=True, eq=False)
class Message:
    kind: str
    values: dict[str, Any]
    tensors: tuple[Tensor, ...] = ()


class Incoming(Protocol):
    """Where a message comes from: a connection, or bytes that have arrived."""

    def exactly(self, size: int) -> memoryview: ...


class Outgoing(Protocol):
    """Where a message goes."""

    def write(self, content: bytes | memoryview) -> None: ...


@dataclass
class Line:
    """One end of a connection, with the moment by which all that is read or written must be over."""

    connection: socket.socket
    seconds: float | None = None
    _end: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.allow(self.seconds)

    def allow(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    def _wait(self) -> None:
        left = None if self._end is None else self._end - time.monotonic()
        if left is not None and left <= 0:
            raise CutOff("too late")
        self.connection.settimeout(left)

    def fill(self, view: memoryview) -> None:
        """Guarantee: fills all of it by the end of the line's time, or raises."""
        got = 0
        while got < len(view):
            self._wait()
            try:
                count = self.connection.recv_into(view[got : got + PIECE])
            except OSError:
                raise CutOff("while reading") from None
            if not count:
                raise CutOff("in the middle of a message")
            got += count

    def exactly(self, size: int) -> memoryview:
        """The next bytes. Not filled with zeros first, so that what is announced and does not come takes no memory."""
        content = np.empty(size, dtype=np.uint8).data
        self.fill(content)
        return content

    def require_end(self) -> None:
        """The other end has said all that it will say."""
        self._wait()
        try:
            if self.connection.recv(1):
                raise Malformed("bytes after the message")
        except OSError:
            raise CutOff("while reading") from None

    def write(self, content: bytes | memoryview) -> None:
        view, sent = memoryview(content).cast("B"), 0
        while sent < len(view):
            self._wait()
            try:
                sent += self.connection.send(view[sent : sent + PIECE])
            except OSError:
                raise CutOff("while writing") from None


class Frame:
    """A message's bytes in memory, in place of a connection."""

    def __init__(self, content: bytes = b"") -> None:
        self._content, self._at = bytearray(content), 0

    def write(self, content: bytes | memoryview) -> None:
        self._content += memoryview(content).cast("B")

    def exactly(self, size: int) -> memoryview:
        if size > len(self._content) - self._at:
            raise Malformed("a message that ends too early")
        part = bytearray(self._content[self._at : self._at + size])
        self._at += size
        return memoryview(part)


def to_bytes(message: Message) -> bytes:
    frame = Frame()
    send(frame, message)
    return bytes(frame._content)


def from_bytes(content: bytes, most: int = MOST_BODY) -> Message:
    """Guarantee: as that of `receive`, and not a byte is left over."""
    frame = Frame(content)
    message = receive(frame, most)
    if frame._at != len(content):
        raise Malformed("bytes after the message")
    return message


def send(line: Outgoing, message: Message) -> None:
    """Raises Malformed before a byte is sent if the message is larger than one may be."""
    tensors = [tensor.detach().cpu().contiguous() for tensor in message.tensors]
    header, body = header_of(message, tensors)
    line.write(PREFIX.pack(MAGIC, VERSION, len(header), body) + header)
    for tensor in tensors:
        if tensor.numel():
            line.write(tensor.reshape(-1).view(torch.uint8).numpy().data)


def header_of(message: Message, tensors: list[Tensor]) -> tuple[bytes, int]:
    """The bytes of the header and the length of the body."""
    if any(tensor.dtype not in NAMES for tensor in tensors):
        raise Malformed("a tensor of a kind that does not travel")
    listed = [{"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape)} for tensor in tensors]
    values = {"kind": message.kind, "values": message.values, "tensors": listed}
    header = json.dumps(values, allow_nan=False, separators=(",", ":")).encode()
    body = sum(size for _, _, size in _forms(listed))
    if len(header) > MOST_HEADER or body > MOST_BODY:
        raise Malformed("more than a message may hold")
    return header, body


def receive(line: Incoming, most: int = MOST_BODY, make_room: Callable[[int], None] = lambda size: None) -> Message:
    """The next message. `make_room` is told the length of the body before it is taken in, and may wait or raise.

    Guarantee: allocates at most MOST_HEADER bytes for the header and `most` for the tensors, and neither before the lengths
    that the message itself states were compared with these bounds.
    """
    magic, version, header_size, body = PREFIX.unpack(line.exactly(PREFIX.size))
    if magic != MAGIC or version != VERSION:
        raise Malformed("no message of this version")
    if not 0 < header_size <= MOST_HEADER or body > most:
        raise Malformed("more than a message may hold")
    values = _parsed(line.exactly(header_size))
    kind, fields, listed = values["kind"], values["values"], values["tensors"]
    forms = list(_forms(listed))
    if sum(size for _, _, size in forms) != body:
        raise Malformed("a body of another length than its tensors")
    make_room(body)
    return Message(kind, fields, tuple(_tensor(line, *form) for form in forms))


def _parsed(content: memoryview) -> dict[str, Any]:
    try:
        values = json.loads(
            bytes(content).decode("utf-8"), object_pairs_hook=_once, parse_constant=_refused, parse_float=_finite
        )
    except (ValueError, RecursionError):
        raise Malformed("a header that is no JSON") from None
    if not isinstance(values, dict) or set(values) != {"kind", "values", "tensors"}:
        raise Malformed("a header with other entries")
    if not isinstance(values["kind"], str) or not isinstance(values["values"], dict):
        raise Malformed("a header with entries of another type")
    return values


def _forms(listed: Any) -> Iterator[tuple[torch.dtype, tuple[int, ...], int]]:
    """Type, shape and bytes of each tensor. Whole numbers of Python know no overflow."""
    if not isinstance(listed, list) or len(listed) > MOST_TENSORS:
        raise Malformed("no list of tensors, or too long a one")
    for form in listed:
        if not isinstance(form, dict) or set(form) != {"dtype", "shape"} or not isinstance(form["dtype"], str):
            raise Malformed("a tensor without type and shape")
        dtype, shape = DTYPES.get(form["dtype"]), form["shape"]
        if dtype is None or not isinstance(shape, list) or len(shape) > MOST_DIMENSIONS:
            raise Malformed("a tensor of another type or shape")
        if not all(type(side) is int and 0 <= side <= MOST_BODY for side in shape):
            raise Malformed("a tensor with sides that are none")
        yield dtype, tuple(shape), math.prod(shape) * dtype.itemsize


def _tensor(line: Incoming, dtype: torch.dtype, shape: tuple[int, ...], size: int) -> Tensor:
    if not size:
        try:
            return torch.empty(shape, dtype=dtype)
        except RuntimeError:  # sides whose product is beyond all numbers, beside a side of 0
            raise Malformed("a tensor with sides that are none") from None
    raw = torch.frombuffer(line.exactly(size), dtype=torch.uint8)
    if dtype is torch.bool and bool((raw > 1).any()):
        raise Malformed("a truth value that is neither 0 nor 1")
    return raw.view(dtype).reshape(shape)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a name stands twice")
    return values


def _refused(constant: str) -> Any:
    raise ValueError(constant)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value
