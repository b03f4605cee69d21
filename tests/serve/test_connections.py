"""Who is slow is cut, and who comes too many is turned away; on this machine alone, and bounded in time."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from talk import ask

from limbeck.serve.access import Access
from limbeck.serve.connections import FULL, Connections, Limits
from limbeck.serve.server import Server, start
from limbeck.serve.site import Reply

LIMITS = Limits(connections=4, seconds=1.0, slowest=1e9)
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture
def server(runs: Path) -> Iterator[Server]:
    with start(runs, None, "127.0.0.1", 0, Access(loopback=True, token=None), LIMITS) as server:
        yield server


def connected(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=10)


def wait_until_gone(server: Server, most: float = 5.0) -> None:
    end = time.monotonic() + most
    while len(server.connections) and time.monotonic() < end:
        time.sleep(0.05)
    assert len(server.connections) == 0


@pytest.mark.parametrize("drip", [REQUEST, b"X: " + b"y" * 1000, b"\r\n" * 1000])
def test_a_request_that_comes_in_drops_is_cut(server: Server, drip: bytes) -> None:
    began = time.monotonic()
    with connected(server) as slow, pytest.raises(OSError):
        slow.sendall(REQUEST)
        for place in range(100):
            slow.sendall(drip[place % len(drip) :][:1] or b"x")
            time.sleep(0.1)
            slow.settimeout(0.01)
            try:
                answered = slow.recv(100_000)
            except TimeoutError:
                continue
            if not answered:
                raise ConnectionError
    assert time.monotonic() - began < 5
    wait_until_gone(server)


def test_who_does_not_take_the_answer_is_cut(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    large = 50_000_000

    def reply(*_: object) -> Reply:
        return Reply(file=io.BytesIO(bytes(large)), headers={"Content-Length": str(large)})

    monkeypatch.setattr(server.site, "reply", reply)
    with connected(server) as slow:
        slow.sendall(REQUEST + b"\r\n")
        for _ in range(3):
            time.sleep(0.3)
            slow.recv(10)  # now and then a little
        wait_until_gone(server)


def test_a_page_that_takes_long_to_make_is_not_cut(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def reply(*_: object) -> Reply:
        time.sleep(2.0)
        return Reply(body=b"at last")

    monkeypatch.setattr(server.site, "reply", reply)
    assert ask(server, "/").body == b"at last"


def test_too_many_are_turned_away_and_room_comes_back(server: Server) -> None:
    held = [connected(server) for _ in range(4)]
    end = time.monotonic() + 0.5
    while len(server.connections) < 4 and time.monotonic() < end:
        time.sleep(0.01)
    threads = threading.active_count()
    began = time.monotonic()
    for _ in range(50):
        with connected(server) as extra:
            assert extra.recv(10_000) == FULL
    assert time.monotonic() - began < 5 and threading.active_count() <= threads and len(server.connections) <= 4
    wait_until_gone(server)
    assert ask(server, "/").status == 200
    for connection in held:
        connection.close()


def test_a_crowded_server_keeps_no_connection_open(server: Server) -> None:
    held = [connected(server) for _ in range(2)]
    answer = ask(server, "/")
    assert answer.status == 200 and answer.headers["Connection"] == "close"
    for connection in held:
        connection.close()
    wait_until_gone(server)
    assert "Connection" not in ask(server, "/").headers


def test_there_are_never_more_than_the_limit() -> None:
    connections, pairs = Connections(Limits(connections=8)), [socket.socketpair() for _ in range(20)]
    entered: list[bool] = []
    threads = [threading.Thread(target=lambda one=one: entered.append(connections.enter(one))) for one, _ in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(entered) == len(connections) == 8
    for pair in pairs:
        connections.leave(pair[0])
        for end in pair:
            end.close()
    assert len(connections) == 0
