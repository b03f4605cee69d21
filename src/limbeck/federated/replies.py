"""Frames to a site, and what is made of its replies: the one that was expected, or an error that names the site."""

from __future__ import annotations

from typing import TypeVar

from limbeck.errors import BadInput, LimbeckError, VaultUnreachable, WallBreach
from limbeck.vault.process.failures import failure
from limbeck.vault.process.requests import REPLIES, Failed, Said, message_of, read
from limbeck.vault.process.wire import Malformed, from_bytes, to_bytes

Reply = TypeVar("Reply", bound=Said)


def frame_of(request: Said) -> bytes:
    try:
        return to_bytes(message_of(request))
    except (Malformed, AttributeError):
        raise WallBreach(f"The request '{request.kind}' holds a value or a map that no site knows.") from None


def reply_of(site: str, frame: bytes) -> Said:
    try:
        return read(from_bytes(frame), REPLIES)
    except (Malformed, LimbeckError, ValueError, TypeError):
        raise strange(site) from None


def expected(site: str, reply: Said, wanted: type[Reply]) -> Reply:
    if isinstance(reply, Failed):
        error = failure(reply.code)
        raise type(error)(f"Site '{site}': {error.message}", error.next_command)
    if not isinstance(reply, wanted):
        raise strange(site)
    return reply


def silent(site: str) -> LimbeckError:
    return VaultUnreachable(
        f"Site '{site}' did not answer. All sites are needed; what they answered before is kept, and is not paid twice."
    )


def strange(site: str) -> LimbeckError:
    return BadInput(f"Site '{site}' gave an answer that is none of this version of Limbeck.")
