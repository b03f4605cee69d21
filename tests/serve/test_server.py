"""What a browser gets: pages, downloads, refusals. Nothing outside the folder, nothing changed, nobody kept waiting."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from talk import Answer, ask, evaluation_of

from limbeck.release.signature import signing_key
from limbeck.release.verification import verify
from limbeck.serve.access import Access
from limbeck.serve.server import Server, start
from limbeck.vault.ledger import Ledger
from releases import copied, digits_release
from stated import signed

TOKEN = "a-token-of-some-length"
Serving = Callable[..., Server]
Cli = Callable[..., Any]


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_every_page_is_there_and_nothing_is_changed(server: Server, runs: Path) -> None:
    (runs / "scores.json").write_text(json.dumps(evaluation_of(runs / "first")))
    before = snapshot(runs)
    listed = ask(server, "/")
    assert listed.status == 200 and "first" in listed.text and "/run/second%20one" in listed.text
    assert listed.text.count("61.25 %") == 1  # the scores are of the first release only
    page = ask(server, "/run/first")
    assert page.status == 200 and "/run/first/report" in page.text and "sandbox" in page.text
    report = ask(server, "/run/first/report")
    assert report.status == 200 and "61.25 %" in report.text and "What is promised" in report.text
    compared = ask(server, "/compare?a=first&b=second+one")
    assert (
        compared.status == 200 and "61.25 % ± 0.50" in compared.text and compared.text.count("synthetic pictures") == 20
    )
    assert ask(server, "/compare").status == 200 and ask(server, "/compare?a=nothing&b=../..").status == 200
    budget = ask(server, "/budget")
    assert budget.status == 200 and "digits" in budget.text and "1 booking" in budget.text
    assert ask(server, "/icon.svg").headers["Content-Type"] == "image/svg+xml"
    assert snapshot(runs) == before


def test_headers_keep_strangers_out(server: Server) -> None:
    first, second = ask(server, "/"), ask(server, "/")
    policy = first.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'self'" in policy and "unsafe" not in policy
    nonce = policy.split("script-src 'nonce-")[1].split("'")[0]
    assert f'<script nonce="{nonce}">' in first.text and nonce not in second.headers["Content-Security-Policy"]
    for answer in (first, ask(server, "/nothing"), ask(server, "/run/first/report"), ask(server, "/api/live")):
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Python" not in answer.headers["Server"]
    report = ask(server, "/run/first/report").headers["Content-Security-Policy"]
    assert "sandbox" in report and "script-src" not in report and "default-src 'none'" in report


@pytest.mark.parametrize(
    "path",
    [
        "/nothing", "/run", "/run/", "/run/nothing", "/run/nothing/report", "/run/nothing/download", "/run/first/other",
        "/run/../../etc/passwd", "/run/..%2f..%2fetc%2fpasswd", "/run/%2e%2e/report", "/run/first/../first/report",
        "/run/first%2f..%2f..%2fsecret/report", "/run/first/certificate.json", "/run/first/.run", "/run/%00/report",
        "/run/%ff/report", "/run/..%5c..%5csecret", "//etc/passwd", "/" + "a" * 5000, "/run/link/report", "/run/link", "/api",
        "/run/first/report/", "/%2e%2e/secret", "/run/secret/report", "/templates/base.html",
    ],
)  # fmt: skip
def test_a_path_that_is_no_page_is_refused_without_details(server: Server, runs: Path, made: Path, path: str) -> None:
    (runs.parent / "secret").write_text("a secret")
    (runs / "link").symlink_to(made)
    answer = ask(server, path)
    if path == "/run/first/report/":  # a slash at the end changes nothing
        assert answer.status == 200
        return
    assert answer.status == 404 and "There is nothing here." in answer.text
    assert str(runs.parent) not in answer.text and "secret" not in answer.text and "root:" not in answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_only_reading_is_allowed(server: Server, method: str) -> None:
    answer = ask(server, "/", method)
    assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD"


def test_odd_requests_are_refused(server: Server) -> None:
    assert ask(server, "/", "BREW").status == 501
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as raw:
        raw.sendall(b"nonsense\r\n\r\n")
        assert b"400" in raw.recv(4000).split(b"\r\n")[0]
    assert ask(server, "/").status == 200


def test_head_is_get_without_the_body(server: Server) -> None:
    for path in ("/", "/run/first/report", "/run/first/download", "/nothing"):
        head, get = ask(server, path, "HEAD"), ask(server, path)
        assert head.body == b"" and head.status == get.status
        assert int(head.headers["Content-Length"]) > 0


def test_a_foreign_name_that_points_here_is_refused(server: Server) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", ""):
        answer = ask(server, "/", Host=host)
        assert answer.status == 403 and "second one" not in answer.text
    assert ask(server, "/", Host="localhost:1").status == 200


def test_without_the_token_nothing_is_shown(runs: Path, serving: Serving) -> None:
    server = serving(runs, token=TOKEN)
    for path in (
        "/",
        "/api/live",
        "/budget",
        "/run/first",
        "/run/first/report",
        "/run/first/download",
        "/run/nothing",
        "/icon.svg",
    ):
        answer = ask(server, path)
        assert answer.status == 401 and "second one" not in answer.text
    assert ask(server, f"/?token={TOKEN[:-1]}").status == 401
    assert ask(server, "/", Authorization="Bearer wrong").status == 401
    assert ask(server, "/", Authorization=f"Bearer {TOKEN}").status == 200
    assert TOKEN in server.url and "a-token" not in ask(server, "/", Authorization=f"Bearer {TOKEN}").text


def test_the_token_is_taken_out_of_the_address_and_a_cookie_does_the_rest(runs: Path, serving: Serving) -> None:
    server = serving(runs, token=TOKEN)
    welcome = ask(server, f"/compare?a=first&token={TOKEN}")
    assert welcome.status == 303 and welcome.headers["Location"] == "/compare?a=first"
    cookie = welcome.headers["Set-Cookie"]
    assert TOKEN not in cookie and "HttpOnly" in cookie and "SameSite=Lax" in cookie
    assert ask(server, "/", Cookie=cookie.split(";")[0]).status == 200
    assert ask(server, "/", Cookie=cookie.split(";")[0] + "x").status == 401
    other = serving(runs, token=TOKEN)
    assert ask(other, "/", Cookie=cookie.split(";")[0]).status == 401  # a session ends with its server


def test_a_download_is_the_bundle_and_verifies(server: Server, runs: Path, tmp_path: Path) -> None:
    answer = ask(server, "/run/second%20one/download")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/zip"
    assert "attachment" in answer.headers["Content-Disposition"] and len(answer.body) == int(
        answer.headers["Content-Length"]
    )
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        archive.extractall(tmp_path / "there")
    (folder,) = (tmp_path / "there").iterdir()
    assert verify(folder).dataset == "digits"


@pytest.mark.parametrize("harm", ["extra", "owner", "changed", "link", "pipe"])
def test_what_cannot_be_shared_is_neither_shown_nor_downloaded(server: Server, runs: Path, harm: str) -> None:
    assert ask(server, "/run/first/report").status == 200  # it was fine before
    path = runs / "first" / "set.npz"
    if harm in ("extra", "owner"):
        words = '<meta name="limbeck-edition" content="owner">' if harm == "owner" else ""
        (runs / "first" / "more.html").write_text(words)
    elif harm == "changed":
        path.write_bytes(path.read_bytes() + b" ")
    else:
        path.unlink()
        path.symlink_to(runs / "second one" / "set.npz") if harm == "link" else os.mkfifo(path)
    for what in ("report", "download"):
        answer = ask(server, f"/run/first/{what}")
        assert answer.status in (404, 409) and b"PK" not in answer.body[:4]
        assert harm != "owner" or "owner&#39;s copy" in answer.text
    assert ask(server, "/").status == 200 and ask(server, "/run/first").status == 200
    assert ask(server, "/run/second%20one/report").status == 200


def test_a_release_that_is_not_private_says_so_and_is_not_handed_out(serving: Serving, tmp_path: Path) -> None:
    digits_release(tmp_path / "runs", "insecure", seed=1)
    server = serving(tmp_path / "runs")
    page = ask(server, "/run/insecure").text
    assert "NOT RELEASABLE" in page and "/download" not in page
    assert ask(server, "/run/insecure/download").status == 409
    assert "NOT RELEASABLE" in ask(server, "/run/insecure/report").text


def test_scores_that_are_the_owners_are_not_shown(server: Server, runs: Path) -> None:
    for name, change in (
        ("owner", {"edition": "owner"}),
        ("private", {"test": "/home/me/held-out.csv", "benchmarks": {}}), ("name alone", {"benchmarks": {}}),
        ("other", {"epsilon": 9.0}),
    ):  # fmt: skip
        (runs / f"{name}.json").write_text(json.dumps(evaluation_of(runs / "first", **change)))
    (runs / "broken.json").write_text('{"accuracy": {"mlp"')
    (runs / "link.json").symlink_to("/etc/hostname")
    for path in ("/", "/run/first/report", "/compare?a=first&b=second%20one"):
        answer = ask(server, path)
        assert answer.status == 200 and "61.25" not in answer.text and "held-out" not in answer.text


def test_a_run_that_is_deleted_changed_or_corrupted_meanwhile(server: Server, runs: Path) -> None:
    version = ask(server, "/api/live").json["version"]
    shutil.rmtree(runs / "first")
    assert ask(server, "/run/first").status == 404 and ask(server, "/run/first/report").status == 404
    assert ask(server, "/compare?a=first&b=second%20one").status == 200
    listed = ask(server, "/")
    assert listed.status == 200 and "/run/first" not in listed.text
    assert ask(server, "/api/live").json["version"] != version
    for content in (b"", b"{", b"[]", b'{"format": 1}', b"\xff\xfe", b'{"format": 1, "signature": {}}', b"[" * 100_000):
        (runs / "second one" / "certificate.json").write_bytes(content)
        assert "damaged" in ask(server, "/").text
        page = ask(server, "/run/second%20one")
        assert page.status == 200 and "Do not use this release" in page.text
        assert ask(server, "/run/second%20one/report").status == 404
    shutil.rmtree(runs)
    assert "There is no run in this folder yet" in ask(server, "/").text


@pytest.mark.parametrize(
    "stated",
    [
        {}, {"epsilon": {"a": []}, "created": 7, "settings": 3, "delta": "x"}, {"dataset": None, "queries": 1, "generator": []},
        {"public_assumptions": {"name": "x"}, "releasable": True, "private": True, "epsilon": float("1e999")},
    ],
)  # fmt: skip
def test_a_signed_certificate_that_says_odd_things(server: Server, runs: Path, tmp_path: Path, stated: Any) -> None:
    key = signing_key(tmp_path / "key")
    values = signed({"format": 1, **{k: v for k, v in stated.items() if v != float("inf")}}, key)
    (runs / "first" / "certificate.json").write_text(json.dumps(values))
    (runs / "scores.json").write_text(json.dumps({"release": "first", "test": "digits:test", "accuracy": {"a": 1.0}}))
    for path in ("/", "/run/first", "/compare"):
        assert ask(server, path).status == 200, path
    for path in ("/run/first/report", "/run/first/download", "/compare?a=first&b=second%20one"):
        assert ask(server, path).status == 409, path


def test_names_that_cannot_stand_in_an_address_are_left_out(server: Server, runs: Path, made: Path) -> None:
    for name in (b"new\nline", b"not utf-8 \xff"):
        os.rename(copied(made, runs / "moved"), os.fsencode(runs) + b"/" + name)
    answer = ask(server, "/")
    assert answer.status == 200 and answer.text.count("/compare?a=") == 2


def test_progress_of_a_run_at_work(server: Server, runs: Path) -> None:
    state = runs / "new" / ".run"
    state.mkdir(parents=True)
    (state / "run.json").write_text(json.dumps({"plan": {"dataset": "digits", "method": "ndpdc"}}))
    note = {"first": 0, "step": 3, "total": 10, "started": time.time() - 30, "updated": time.time(), "label": "<b>"}
    (state / "progress.json").write_text(json.dumps(note))
    live = ask(server, "/api/live").json["running"]["new"]
    assert (live["step"], live["total"]) == (3, 10) and "3 of 10, 1:1" in live["words"]
    page = ask(server, "/run/new")
    assert page.status == 200 and 'max="10" value="3"' in page.text and "<b>" not in page.text
    (state / "progress.json").write_text(json.dumps({**note, "updated": time.time() - 3600}))
    page = ask(server, "/run/new")
    assert "stopped" in page.text and "limbeck resume new" in page.text and str(runs) not in page.text
    assert ask(server, "/run/new/report").status == 404 and ask(server, "/run/new/download").status == 404


def test_names_are_shown_as_they_are(made: Path, serving: Serving, tmp_path: Path) -> None:
    name = "<script>alert(1)</script> & 100% ü\"'"
    name = name.replace("/", "|")
    copied(made, tmp_path / "runs" / name)
    server = serving(tmp_path / "runs")
    for path in ("/", f"/run/{quote(name, safe='')}", f"/compare?a={quote(name, safe='')}"):
        answer = ask(server, path)
        assert answer.status == 200 and "<script>alert" not in answer.text
    assert ask(server, f"/run/{quote(name, safe='')}/report").status == 200


def test_the_ledger_is_only_read(runs: Path, serving: Serving, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    server = serving(runs, ledger=path)
    assert "There is no ledger yet" in ask(server, "/budget").text and not path.exists()
    with Ledger.open(path) as ledger:
        ledger.set_budget("people", 2.0, 1e-4)
        assert "people" in ask(server, "/budget").text
        # A booking while the page is open: neither waits for the other.
        ledger.book("people", plan="p", method="ldpdc", epsilon=0.5, delta=1e-5, counts={"a": 1})
        assert "0.5 of 2 is spent" in ask(server, "/budget").text
        with ledger.file.transaction(write=True) as db:
            db.execute("SELECT 1")
            began = time.monotonic()
            assert ask(server, "/budget").status == 200
            assert time.monotonic() - began < 4
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    damaged = ask(server, "/budget")
    assert damaged.status == 200 and "has format 99" in damaged.text


def test_two_browsers_at_once(server: Server) -> None:
    paths = [
        "/",
        "/run/first/report",
        "/compare?a=first&b=second%20one",
        "/run/first/download",
        "/budget",
        "/api/live",
    ] * 3
    answers: list[Answer] = []

    def browse(own: list[str]) -> None:
        answers.extend(ask(server, path) for path in own)

    threads = [threading.Thread(target=browse, args=(own,)) for own in (paths, list(reversed(paths)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(answers) == 2 * len(paths) and all(answer.status == 200 for answer in answers)


def test_a_browser_that_goes_away_or_says_nothing_stops_nobody(server: Server) -> None:
    silent = socket.create_connection(("127.0.0.1", server.server_port), timeout=20)
    hasty = socket.create_connection(("127.0.0.1", server.server_port), timeout=20)
    hasty.sendall(b"GET /run/first/download HTTP/1.1\r\nHost: localhost\r\n\r\n")
    hasty.close()
    assert ask(server, "/").status == 200
    silent.close()


def test_a_thousand_runs(made: Path, serving: Serving, tmp_path: Path) -> None:
    root = tmp_path / "many"
    for place in range(1000):
        (root / f"run {place:04d}").mkdir(parents=True)
        shutil.copy(made / "certificate.json", root / f"run {place:04d}")
    server = serving(root)
    # Other programs of a busy machine are not the page's fault, so its own work is measured.
    began = time.process_time()
    answer = ask(server, "/")
    assert answer.status == 200 and answer.text.count("/run/run%20") == 1000
    assert time.process_time() - began < 1.0
    began = time.process_time()
    assert ask(server, "/api/live").status == 200
    assert time.process_time() - began < 0.5


def test_an_unforeseen_error_shows_no_content(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the record of Jane Doe")

    monkeypatch.setattr(server.site, "reply", broken)
    answer = ask(server, "/")
    assert answer.status == 500 and "RuntimeError" in answer.text and "Jane" not in answer.text


def test_a_port_in_use_names_the_next_command(cli: Cli, server: Server, runs: Path) -> None:
    ended = cli("serve", runs, "--port", server.server_port, "--json")
    assert ended.code == 2 and "in use" in ended.json["error"]["message"]
    assert ended.json["error"]["next_command"].endswith("--port 0")


def test_bad_input_is_one_sentence(cli: Cli, runs: Path, tmp_path: Path) -> None:
    assert cli("serve", tmp_path / "nothing").code == 4
    ended = cli("serve", runs / "first", "--json")
    assert ended.code == 2 and ended.json["error"]["next_command"] == f"limbeck serve {runs}"
    assert cli("serve", runs, "--port", 70000).code == 2
    assert cli("serve", runs, "--token", "short").code == 2
    assert cli("serve", runs, "--host", "192.0.2.1").code == 2


def test_an_address_of_a_whole_network_names_the_machine(runs: Path) -> None:
    with start(runs, None, "0.0.0.0", 0, Access(loopback=False, token=TOKEN)) as server:
        assert server.url.endswith(f":{server.server_port}/?token={TOKEN}") and "0.0.0.0" not in server.url
        assert ask(server, "/", Host="any.name").status == 401


@pytest.mark.slow
def test_ctrl_c_ends_it_with_the_documented_code(runs: Path) -> None:
    import signal

    process = subprocess.Popen(
        [sys.executable, "-m", "limbeck", "serve", str(runs), "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    values = json.loads(process.stdout.readline())
    assert values["url"].startswith("http://127.0.0.1:") and values["token"] is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and out == "" and "Traceback" not in err
