"""Who may look: on this machine everybody who can reach the page, from elsewhere only who has the token."""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import shlex
import socket
import stat
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from limbeck.errors import BadInput, DataNotFound

SHORTEST_TOKEN, LONGEST_TOKEN = 16, 200


@dataclass(frozen=True, kw_only=True)
class Access:
    """`session` is what a browser keeps instead of the token; it ends with this server."""

    loopback: bool
    token: str | None
    session: str = field(default_factory=lambda: unguessable())

    def knows_host(self, header: str) -> bool:
        """On this machine only its own names count: a foreign name that was made to point here (DNS rebinding) would let a
        foreign page read everything. From elsewhere the token decides."""
        if not self.loopback or self.token is not None:
            return True
        name = header.rsplit(":", 1)[0] if header.rpartition("]")[2].startswith(":") or "]" not in header else header
        return name.strip("[]").lower().removesuffix(".") == "localhost" or _is_loopback_address(name.strip("[]"))

    def lets_in(self, offered: str | None, cookies: str | None, cookie_name: str) -> bool:
        """Whether a request shows the token, or the cookie that was given for it. Compared in constant time."""
        if self.token is None:
            return True
        by_token = offered is not None and _same(offered, self.token)
        return _same(_cookie(cookies, cookie_name), self.session) or by_token

    def is_token(self, offered: str) -> bool:
        return self.token is not None and _same(offered, self.token)


def access_for(host: str, token: str | None) -> Access:
    """Outside this machine there is always a token: the given one, or a new one."""
    if token is not None and not (
        SHORTEST_TOKEN <= len(token) <= LONGEST_TOKEN
        and all(c.isascii() and (c.isalnum() or c in "-._~") for c in token)
    ):
        raise BadInput(
            f"A token has {SHORTEST_TOKEN} to {LONGEST_TOKEN} letters, digits or -._~ in it, got {len(token)} characters. "
            "Leave --token out to have one made."
        )
    loopback = is_loopback(host)
    return Access(loopback=loopback, token=token or (None if loopback else unguessable()))


def chosen_token(given: str | None, file: Path | None) -> str | None:
    """The token of the command line, else of the file, else of the environment; None where there is none."""
    if given is not None and file is not None:
        raise BadInput("Give one of --token and --token-file.")
    if file is not None:
        return token_in(file)
    return given if given is not None else os.environ.get("LIMBECK_TOKEN") or None


def token_in(file: Path) -> str:
    """Guarantee: refuses a file that anybody else may read, and says nothing of what is in it."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        raise DataNotFound(f"There is no token file {file} that can be read.") from None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise BadInput(f"The token file {file} is no plain file.")
        if found.st_mode & 0o077:
            raise BadInput(
                f"Others may read the token file {file} (mode {stat.S_IMODE(found.st_mode):o}); make it yours alone, and take "
                "another token if somebody may have seen this one.",
                f"chmod 600 {shlex.quote(str(file))}",
            )
        return os.read(handle, LONGEST_TOKEN + 2).decode("ascii", "replace").strip()
    except OSError as error:
        raise DataNotFound(f"The token file {file} cannot be read: {error.strerror}.") from None
    finally:
        os.close(handle)


def unguessable() -> str:
    """A new token, session or nonce. It guards a page; noise and samples are drawn in the vault alone."""
    return secrets.token_urlsafe(24)


def is_loopback(host: str) -> bool:
    """Whether a host stands for this machine alone, in all its addresses."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise BadInput(f"There is no address for --host {host}; use 127.0.0.1, or one of this machine.") from None
    return all(_is_loopback_address(str(entry[4][0])) for entry in found)


def _is_loopback_address(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False


def _cookie(header: str | None, name: str) -> str:
    try:
        found = SimpleCookie(header or "").get(name)
    except CookieError:
        return ""
    return found.value if found else ""


def _same(offered: str, expected: str) -> bool:
    return hmac.compare_digest(offered.encode("utf-8", "replace"), expected.encode())
