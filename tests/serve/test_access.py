from __future__ import annotations

import pytest

from limbeck.errors import BadInput
from limbeck.serve.access import Access, access_for, is_loopback

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.9.9.9", "::1"])
def test_this_machine_alone_needs_no_token(host: str) -> None:
    assert is_loopback(host) and access_for(host, None).token is None
    assert access_for(host, TOKEN).token == TOKEN


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_everything_else_has_one(host: str) -> None:
    first, second = access_for(host, None), access_for(host, None)
    assert first.token and len(first.token) >= 32 and first.token != second.token and first.session != second.session


@pytest.mark.parametrize(
    "token", ["", "short", "a" * 201, "with a space in it", "with;semicolon;in;it", "ünicode-ünicode-ü"]
)
def test_poor_tokens_are_refused(token: str) -> None:
    with pytest.raises(BadInput, match="A token has"):
        access_for("127.0.0.1", token)


def test_an_unknown_host_is_refused() -> None:
    with pytest.raises(BadInput, match="no address"):
        access_for("no such host.invalid", None)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8000", "localhost", "LOCALHOST:1", "[::1]:8000", "[::1]", "127.0.0.1", "localhost.:80"]
)
def test_own_names_of_the_machine_are_known(host: str) -> None:
    assert Access(loopback=True, token=None).knows_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "[::2]:80",
        "192.0.2.7",
    ],
)
def test_foreign_names_that_point_here_are_not(host: str) -> None:
    assert not Access(loopback=True, token=None).knows_host(host)
    assert Access(loopback=False, token=TOKEN).knows_host(host)  # there the token decides


def test_token_and_session_let_in_and_nothing_else_does() -> None:
    access = Access(loopback=False, token=TOKEN)
    assert access.lets_in(TOKEN, None, "c") and access.lets_in(None, f"a=b; c={access.session}", "c")
    for offered, cookies in (
        (None, None), ("", ""), (TOKEN[:-1], None), (access.session, None), (None, f"c={TOKEN}"), (None, "c="), (None, "c=ü"),
        (None, f"d={access.session}"), ("ü" * 16, None),
    ):  # fmt: skip
        assert not access.lets_in(offered, cookies, "c"), (offered, cookies)
    assert Access(loopback=True, token=None).lets_in(None, None, "c")
