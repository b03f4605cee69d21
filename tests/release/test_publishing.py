"""Publishing: what is sent is what the certificate lists; what may not be shared is never sent. The hub is a stand-in."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest

from limbeck.cli import publish as command
from limbeck.errors import BadInput, LimbeckError, NotAuthentic, NotReleasable, OutputFault, RunConflict
from limbeck.release.certificate import NAME
from limbeck.release.publishing import prepared, upload
from releases import copied, digits_release, signed_anew


class Hub:
    """Takes what `huggingface_hub.HfApi` is given, and remembers the bytes."""

    def __init__(self, fails: bool = False) -> None:
        self.fails, self.made, self.sent = fails, [], {}  # type: ignore[var-annotated]

    def create_repo(self, repo_id: str, *, repo_type: str, private: bool, exist_ok: bool) -> None:
        self.made.append((repo_id, repo_type, private, exist_ok))

    def upload_folder(self, *, repo_id: str, repo_type: str, folder_path: str, commit_message: str) -> str:
        if self.fails:
            raise ConnectionError("token hf_Zq7Secret was refused")
        root = Path(folder_path)
        self.sent = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        self.message = commit_message
        return f"the hub: {repo_type}s/{repo_id}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return digits_release(tmp_path_factory.mktemp("published"))


def publish(release: Path, hub: Hub, to: str = "hospital/digits", private: bool = False) -> str:
    with prepared(release, to) as (found, folder):
        return upload(found, folder, hub, private)


def test_exactly_the_release_is_sent(made: Path) -> None:
    hub = Hub()
    assert publish(made, hub, private=True) == "the hub: datasets/hospital/digits"
    assert hub.made == [("hospital/digits", "dataset", True, True)] and "epsilon" in hub.message
    here = {path.relative_to(made).as_posix(): path.read_bytes() for path in made.rglob("*") if path.is_file()}
    assert hub.sent == here and NAME in hub.sent


def test_the_folder_is_gone_afterwards_and_later_changes_do_not_reach_it(made: Path, tmp_path: Path) -> None:
    release = copied(made, tmp_path / "release")
    with prepared(release, None) as (found, folder):
        (release / "set.npz").write_bytes(b"other")
        stated = found.bundle.certificate.files["set.npz"]
        assert hashlib.sha256((folder / "set.npz").read_bytes()).hexdigest() == stated
    assert not folder.exists()


@pytest.mark.parametrize("fault", ["changed", "foreign", "owner", "signed owner", "insecure", "unfinished", "link"])
def test_what_may_not_be_shared_is_never_sent(fault: str, made: Path, tmp_path: Path) -> None:
    release = copied(made, tmp_path / "release")
    owners = '<!doctype html><meta name="limbeck-edition" content="owner">'
    kinds: dict[str, type[LimbeckError]] = {
        "insecure": NotReleasable,
        "signed owner": NotReleasable,
        "unfinished": RunConflict,
    }
    if fault == "changed":
        (release / "set.npz").write_bytes(b"x")
    elif fault == "foreign":
        (release / "notes.txt").write_text("x")
    elif fault == "owner":
        (release / "owner-report.html").write_text(owners)
    elif fault == "signed owner":
        (release / "report.html").write_text(owners)
        signed_anew(release, tmp_path / "key")
    elif fault == "insecure":
        release = digits_release(tmp_path / "seeded", seed=1)
    elif fault == "unfinished":
        (release / ".run").mkdir()
        (release / ".run" / "run.json").write_text("{}")
    else:
        (release / "set.npz").unlink()
        (release / "set.npz").symlink_to(made / "set.npz")
    hub = Hub()
    with pytest.raises(kinds.get(fault, NotAuthentic)):
        publish(release, hub)
    assert hub.made == [] and hub.sent == {}


@pytest.mark.parametrize("name", ["digits", "a/b/c", "../x/y", "a b/c", "-x/y", "https://x/y", ""])
def test_a_repository_is_who_and_name(name: str, made: Path) -> None:
    with pytest.raises(BadInput, match="WHO/NAME"), prepared(made, name):
        pass


def test_a_failed_upload_quotes_nothing(made: Path) -> None:
    with pytest.raises(OutputFault, match="failed \\(ConnectionError\\)") as caught:
        publish(made, Hub(fails=True))
    assert "Secret" not in caught.value.message


def test_the_command_looks_sends_and_says_what_is_missing(
    made: Path, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub()
    monkeypatch.setattr(command, "_api", lambda: hub)
    looked = cli("publish", made, "--to", "hospital/digits", "--dry-run", "--json").json
    assert looked["published"] is False and looked["url"] is None and "set.npz" in looked["files"] and hub.sent == {}
    assert "name a repository with --to" in cli("publish", made).out and hub.sent == {}
    sent = cli("publish", made, "--to", "hospital/digits", "--json").json
    assert sent["published"] is True and sorted(hub.sent) == sent["files"]


def test_without_the_client_it_says_so_before_anything_else(
    made: Path, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    ended = cli("publish", made, "--to", "hospital/digits")
    assert ended.code == 2 and "pip install 'limbeck[huggingface]'" in ended.err
    assert cli("publish", made, "--to", "hospital/digits", "--dry-run").code == 0
