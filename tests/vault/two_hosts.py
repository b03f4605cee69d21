"""Two hosts and a server between them, as network namespaces of this machine: other addresses, one way to each other."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator

SERVER, HOSTS = "limbeck-db", ("limbeck-one", "limbeck-two")
ADDRESS = "10.213.{}.1"  # of the server towards each host


def can_be_made() -> bool:
    """Root, the program `ip`, and a kernel that allows it."""
    if os.getuid() != 0 or shutil.which("ip") is None:
        return False
    tried = subprocess.run(["ip", "netns", "add", "limbeck-try"], capture_output=True).returncode == 0
    subprocess.run(["ip", "netns", "del", "limbeck-try"], capture_output=True)
    return tried


@contextlib.contextmanager
def joined() -> Iterator[None]:
    _remove()
    try:
        _ip("netns", "add", SERVER)
        _ip("-n", SERVER, "link", "set", "lo", "up")
        for number, host in enumerate(HOSTS, start=1):
            near, far = f"lbk{number}a", f"lbk{number}b"
            _ip("netns", "add", host)
            _ip("link", "add", near, "type", "veth", "peer", "name", far)
            for name, space, last in ((near, SERVER, 1), (far, host, 2)):
                _ip("link", "set", name, "netns", space)
                _ip("-n", space, "addr", "add", f"10.213.{number}.{last}/24", "dev", name)
                _ip("-n", space, "link", "set", name, "up")
            _ip("-n", host, "link", "set", "lo", "up")
        yield
    finally:
        _remove()


def inside(space: str) -> list[str]:
    """What to put before a command so that it runs on that host."""
    return ["ip", "netns", "exec", space]


def cut(number: int) -> None:
    """Pull the cable of a host."""
    _ip("-n", SERVER, "link", "set", f"lbk{number}a", "down")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _remove() -> None:
    for space in (SERVER, *HOSTS):
        subprocess.run(["ip", "netns", "del", space], capture_output=True)
