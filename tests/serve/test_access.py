from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from limbeck.errors import BadInput
from limbeck.serve.access import Access, access_for, chosen_token, is_loopback, token_in

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


def test_a_token_comes_from_the_command_line_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    assert chosen_token(None, None) is None
    monkeypatch.setenv("LIMBECK_TOKEN", "from-the-environment")
    assert chosen_token(None, None) == "from-the-environment"
    assert chosen_token(None, file) == TOKEN and chosen_token("given", None) == "given"
    with pytest.raises(BadInput, match="one of --token and --token-file"):
        chosen_token("given", file)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o666, 0o601])
def test_a_token_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(mode)
    with pytest.raises(BadInput, match=f"mode {mode:o}") as caught:
        token_in(file)
    assert caught.value.next_command == f"chmod 600 {file}" and TOKEN not in caught.value.message


def test_what_is_no_token_file(tmp_path: Path, cli: Callable[..., Any]) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("pipe", "."):
        with pytest.raises(BadInput, match="no plain file"):
            token_in(tmp_path / name)
    assert cli("serve", tmp_path, "--token-file", tmp_path / "missing").code == 4
    for content in (b"", b"short", b"\xff" * 30, b"a" * 10_000, b"two\nlines-of-some-length"):
        file = tmp_path / "token"
        file.write_bytes(content)
        file.chmod(0o600)
        assert cli("serve", tmp_path, "--token-file", file, "--port", 0).code == 2


def test_a_token_file_lets_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Any]) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)

    seen: list[Access] = []

    def start(runs: Path, ledger: Path | None, host: str, port: int, access: Access) -> None:
        seen.append(access)
        raise BadInput("enough")

    monkeypatch.setattr("limbeck.serve.server.start", start)
    assert cli("serve", tmp_path, "--token-file", tmp_path / "token").code == 2
    assert [access.token for access in seen] == [TOKEN]
