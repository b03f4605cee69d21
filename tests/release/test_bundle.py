"""What is packed is exactly what the certificate lists, and nothing that must not be shared can be packed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from limbeck.errors import LimbeckError, NotAuthentic, NotReleasable, OutputFault, RunConflict
from limbeck.release.bundle import pack, write_bundle
from limbeck.release.verification import verify
from releases import copied, digits_release, signed_anew

Cli = Callable[..., Any]
OWNERS_PAGE = '<!doctype html><meta name="limbeck-edition" content="owner"><p>real pictures'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return digits_release(tmp_path_factory.mktemp("made"))


@pytest.fixture
def release(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path / "release")


def refused(release: Path, kind: type[LimbeckError], match: str) -> None:
    target = io.BytesIO()
    with pytest.raises(kind, match=match):
        pack(release, target)
    with pytest.raises(kind, match=match):
        write_bundle(release, release.parent / "out.zip")
    assert not (release.parent / "out.zip").exists()
    assert not list(release.parent.glob(".bundle*"))


def test_a_bundle_holds_what_the_certificate_lists_and_verifies_when_unpacked(release: Path, tmp_path: Path) -> None:
    path, bundle = write_bundle(release, tmp_path / "out.zip")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == bundle.sha256 and path.stat().st_size == bundle.size
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        archive.extractall(tmp_path / "there")
    listed = json.loads((release / "certificate.json").read_text())["files"]
    assert sorted(names) == sorted(f"{bundle.name}/{name}" for name in [*listed, "certificate.json"])
    assert bundle.files == len(names)
    assert verify(tmp_path / "there" / bundle.name).dataset == "digits"


def test_the_same_release_gives_the_same_bytes_wherever_it_lies(release: Path, made: Path, tmp_path: Path) -> None:
    for path in release.rglob("*"):
        os.utime(path, (1, 1))
    (release / "set.npz").chmod(0o600)
    one, two = io.BytesIO(), io.BytesIO()
    assert pack(release, one) == pack(made, two)
    assert one.getvalue() == two.getvalue()


def test_the_default_name_tells_what_it_is(release: Path) -> None:
    path, bundle = write_bundle(release, None)
    assert path == release.parent / f"{bundle.name}.zip" and bundle.name.startswith("digits-ldpdc-")


def test_an_extra_file_is_refused_by_name(release: Path) -> None:
    (release / "scores.json").write_text("{}")
    (release / "data" / "notes.txt").write_text("")
    refused(release, NotAuthentic, r"data/notes\.txt and scores\.json are in the release but not on its certificate")


@pytest.mark.parametrize("name", ["owner-report.html", "README.txt", "data/table.bin"])
def test_the_owners_copy_is_refused_under_any_name(release: Path, name: str) -> None:
    (release / name).write_text(OWNERS_PAGE)
    refused(release, NotAuthentic, r"\(the owner's copy\) is in the release")


@pytest.mark.parametrize("content", [OWNERS_PAGE, json.dumps({"edition": "owner", "accuracy": {}})])
def test_the_owners_copy_is_refused_even_if_it_was_signed_into_the_release(
    release: Path, tmp_path: Path, content: str
) -> None:
    (release / "report.html").write_text(content)
    signed_anew(release, tmp_path / "signing-key")
    refused(release, NotReleasable, r"report\.html is marked as the owner's copy")
    with pytest.raises(NotReleasable, match="owner's copy"):
        verify(release)


@pytest.mark.parametrize("what", ["file", "listed file", "folder"])
def test_links_are_refused(release: Path, made: Path, what: str) -> None:
    if what == "file":
        (release / "more").symlink_to("/etc/hostname")
    elif what == "listed file":
        (release / "set.npz").unlink()
        (release / "set.npz").symlink_to(made / "set.npz")  # the right bytes, but from elsewhere
    else:
        (release / "more").symlink_to("/etc")
    refused(release, NotAuthentic, "is a link")


def test_a_changed_missing_or_piped_file_is_refused(release: Path) -> None:
    content = (release / "grid.png").read_bytes()
    (release / "grid.png").write_bytes(content + b" ")
    refused(release, NotAuthentic, "was changed")
    (release / "grid.png").unlink()
    refused(release, NotAuthentic, "missing")
    os.mkfifo(release / "grid.png")
    refused(release, NotAuthentic, "not a plain file")


def test_an_unfinished_run_is_refused(release: Path) -> None:
    (release / ".run").mkdir()
    refused(release, RunConflict, "belongs to no release")
    (release / ".run" / "run.json").write_text("{}")
    refused(release, RunConflict, "not finished")


def test_what_is_not_private_is_refused(tmp_path: Path) -> None:
    refused(digits_release(tmp_path, seed=3), NotReleasable, "Never share it")


def test_no_file_is_overwritten_and_none_is_put_into_the_release(release: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.zip").write_text("mine")
    with pytest.raises(RunConflict, match="exists already"):
        write_bundle(release, tmp_path / "mine.zip")
    assert (tmp_path / "mine.zip").read_text() == "mine"
    with pytest.raises(RunConflict, match="inside the release"):
        write_bundle(release, release / "data" / "bundle.zip")
    with pytest.raises(OutputFault, match="does not exist"):
        write_bundle(release, tmp_path / "nowhere" / "bundle.zip")
    assert verify(release)


def test_the_command(cli: Cli, release: Path, tmp_path: Path) -> None:
    ended = cli("bundle", release, "--out", tmp_path / "a.zip", "--json")
    assert ended.code == 0 and ended.json["bundle"] == str(tmp_path / "a.zip")
    assert {"files", "bytes", "sha256", "epsilon", "delta", "adjacency", "release"} <= set(ended.json)
    shown = cli("bundle", release, "--out", tmp_path / "b.zip")
    assert ended.json["sha256"] in shown.out and "b.zip" in shown.out
    assert cli("bundle", release, "--out", tmp_path / "b.zip").code == 8
    assert cli("bundle", tmp_path / "nothing").code == 6
    (release / "more.txt").write_text("")
    ended = cli("bundle", release, "--out", tmp_path / "c.zip", "--json")
    assert ended.code == 6 and "more.txt" in ended.json["error"]["message"]
    verified = cli("verify", release)
    assert verified.code == 6 and "more.txt" in verified.err
