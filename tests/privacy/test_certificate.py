"""A release verifies as it was signed, and in no other state."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tiny import DELTA

from limbeck.errors import NotAuthentic
from limbeck.progress import Silent
from limbeck.release.certificate import require_releasable, sign, signing_key, verify
from limbeck.vault.noise import SECURE
from working import asked, condense, plan_for

Tamper = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real release of the digits."""
    folder = tmp_path_factory.mktemp("digits")
    request = asked(data="digits", ledger=str(folder / "ledger.sqlite"))
    plan, source = plan_for(request.data, "ldpdc", {"per_class": 2, "L": 10, "sigma": 2.0}, None, DELTA)
    return condense(request, plan, source, folder / "release", Silent()).release


@pytest.fixture
def release(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "release")
    return tmp_path / "release"


@pytest.fixture(scope="module")
def owner(original: Path) -> Ed25519PrivateKey:
    return signing_key(original.parent / "signing-key")


def stated(release: Path) -> dict[str, Any]:
    values = json.loads((release / "certificate.json").read_text())
    assert isinstance(values, dict)
    return values


def write(release: Path, values: dict[str, Any], key: Ed25519PrivateKey | None = None) -> None:
    if key is not None:
        values = sign({name: value for name, value in values.items() if name != "signature"}, key)
    (release / "certificate.json").write_text(json.dumps(values))


def public(release: Path) -> str:
    return str(stated(release)["signature"]["public_key"])


def places(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every field, leaves and branches."""
    pairs = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, value in pairs:
        yield (*path, key)
        yield from places(value, (*path, key))


def other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return {"": 0} if value in ({}, [], None) else f"{value[:-1]}#" if isinstance(value, str) and value else "#"


def test_a_release_verifies(release: Path, owner: Ed25519PrivateKey) -> None:
    certificate = verify(release)
    require_releasable(certificate)
    assert verify(release, public(release)) == verify(release, public(release).upper()) == certificate
    assert certificate["generator"] == SECURE
    write(release, stated(release), owner)
    verify(release, public(release))


def test_no_field_can_be_changed(release: Path) -> None:
    before = stated(release)
    tried = 0
    for path in places(before):
        changed = copy.deepcopy(before)
        target = changed
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = other(target[path[-1]])
        write(release, changed)
        with pytest.raises(NotAuthentic):
            verify(release)
        tried += 1
    assert tried > 100


def test_no_field_can_be_removed_or_added(release: Path) -> None:
    before = stated(release)
    for path in places(before):
        changed = copy.deepcopy(before)
        target = changed
        for step in path[:-1]:
            target = target[step]
        del target[path[-1]]
        write(release, changed)
        with pytest.raises(NotAuthentic):
            verify(release)
    for more in ({"note": "harmless"}, {"signature": {**before["signature"], "note": "harmless"}}):
        write(release, {**before, **more})
        with pytest.raises(NotAuthentic):
            verify(release)


def test_a_name_that_stands_twice_is_refused(release: Path) -> None:
    text = (release / "certificate.json").read_text().replace("{", '{ "epsilon": 0.001,', 1)
    assert json.loads(text) == stated(release)
    (release / "certificate.json").write_text(text)
    with pytest.raises(NotAuthentic):
        verify(release)


def test_no_file_can_be_changed_emptied_removed_renamed_or_added(release: Path) -> None:
    for name in stated(release)["files"]:
        path = release / name
        content = path.read_bytes()
        for changed in (
            bytes([content[0] ^ 1]) + content[1:],
            content[:-1] + bytes([content[-1] ^ 128]),
            b"",
            content + b" ",
        ):
            path.write_bytes(changed)
            with pytest.raises(NotAuthentic, match="was changed"):
                verify(release)
        path.rename(path.with_name(f"{path.name}.renamed"))
        with pytest.raises(NotAuthentic):
            verify(release)
        path.with_name(f"{path.name}.renamed").unlink()
        with pytest.raises(NotAuthentic, match="missing"):
            verify(release)
        path.write_bytes(content)
    verify(release)
    (release / "more").write_text("")
    with pytest.raises(NotAuthentic, match="not on its certificate"):
        verify(release)


def test_two_files_cannot_change_places(release: Path) -> None:
    first, second = release / "README.md", release / "report.html"
    contents = first.read_bytes(), second.read_bytes()
    first.write_bytes(contents[1])
    second.write_bytes(contents[0])
    with pytest.raises(NotAuthentic):
        verify(release)


def test_a_link_to_a_folder_outside_is_refused(release: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "picture.png").write_text("a real record")
    (release / "pictures").symlink_to(tmp_path / "real", target_is_directory=True)
    with pytest.raises(NotAuthentic, match="not on its certificate"):
        verify(release)


def test_a_certificate_cannot_name_a_file_outside(release: Path, owner: Ed25519PrivateKey) -> None:
    values = stated(release)
    (release.parent / "outside").write_text("x")
    for name in ("../outside", str(release.parent / "outside"), "certificate.json"):
        write(release, {**values, "files": {**values["files"], name: "0" * 64}}, owner)
        with pytest.raises(NotAuthentic):
            verify(release)


def test_another_key_is_found_where_the_owners_is_known(release: Path) -> None:
    known = public(release)
    write(release, stated(release), Ed25519PrivateKey.generate())
    verify(release)
    with pytest.raises(NotAuthentic, match="signed by"):
        verify(release, known)


def test_the_command_line_pins_the_key(release: Path, cli: Callable[..., Any]) -> None:
    known = public(release)
    assert cli("verify", release, "--key", known).code == 0
    write(release, stated(release), Ed25519PrivateKey.generate())
    assert cli("verify", release, "--key", known).code == NotAuthentic.exit_code


def without(name: str) -> Tamper:
    return lambda values: values.pop(name)


def setting(**entries: Any) -> Tamper:
    return lambda values: values.update(entries)


def in_query(**entries: Any) -> Tamper:
    return lambda values: values["queries"][0].update(entries)


def in_accounting(**entries: Any) -> Tamper:
    return lambda values: values["accounting"].update(entries)


def both(epsilon: Any) -> Tamper:
    def tamper(values: dict[str, Any]) -> None:
        values["epsilon"] = values["accounting"]["epsilon"] = epsilon

    return tamper


def lowered(values: dict[str, Any]) -> None:
    values["epsilon"] = values["accounting"]["epsilon"] = values["epsilon"] * 0.99


def loose(values: dict[str, Any]) -> None:
    values["delta"] = values["accounting"]["delta"] = 0.5


RESIGNED: dict[str, Tamper] = {
    "epsilon lowered": setting(epsilon=0.1),
    "epsilon lowered twice": both(0.1),
    "epsilon lowered a little": lowered,
    "epsilon zero": both(0.0),
    "epsilon negative": both(-1.0),
    "epsilon a word": both("nan"),
    "epsilon infinite but private": both("infinity"),
    "epsilon no number": both(None),
    "accounting lowered": in_accounting(epsilon=0.1),
    "delta lowered": setting(delta=1e-9),
    "delta above 1/N": loose,
    "delta zero": setting(delta=0.0),
    "not private": setting(private=False),
    "insecure but releasable": setting(generator="insecure seed: for tests, not releasable"),
    "secure but not releasable": setting(releasable=False),
    "another adjacency": setting(adjacency="replace"),
    "another unit": setting(unit="user"),
    "more noise": in_query(noise_multiplier=20.0),
    "less sampling": in_query(rate=[1e-4]),
    "fewer answers": in_query(count=1),
    "unknown query kind": in_query(kind="mean"),
    "unknown query field": in_query(note="harmless"),
    "bad rate": in_query(rate=["a"]),
    "no rate": in_query(rate=[]),
    "huge count": in_query(count=10**400),
    "huge noise": in_query(noise_multiplier=1e300),
    "nested count": in_query(count={}),
    "more drawn than paid": setting(drawn={"groups": 3}),
    "drawn but never paid": setting(drawn={"groups": 2, "others": 1}),
    "drawn no number": setting(drawn={"groups": "many"}),
    "no query": setting(queries=[]),
    "queries no list": setting(queries=7),
    "unknown field": setting(accuracy=99.0),
    "unknown format": setting(format=2),
    "no files": setting(files={}),
    "files no mapping": setting(files=[]),
    "schema unknown entry": lambda values: values["public_assumptions"].update(mean=0.5),
    **{
        f"no {name}": without(name)
        for name in ("epsilon", "delta", "queries", "drawn", "accounting", "files", "private")
    },
}


@pytest.mark.parametrize("name", RESIGNED)
def test_a_lie_is_found_even_if_the_owner_signs_it(name: str, release: Path, owner: Ed25519PrivateKey) -> None:
    values = stated(release)
    RESIGNED[name](values)
    write(release, values, owner)
    with pytest.raises(NotAuthentic):
        verify(release)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "7", '{"format": 1}', '{"format": 1, "signature": {}}', "[" * 100_000, "\x00", "NaN"],
)
def test_what_is_no_certificate_is_refused(text: str, release: Path) -> None:
    (release / "certificate.json").write_text(text)
    with pytest.raises(NotAuthentic):
        verify(release)


def test_a_truncated_certificate_is_refused_and_so_is_none(release: Path) -> None:
    path = release / "certificate.json"
    content = path.read_bytes()
    for length in range(0, len(content) - 2, 97):
        path.write_bytes(content[:length])
        with pytest.raises(NotAuthentic):
            verify(release)
    path.write_bytes(b"\xff\xfe" + content)
    with pytest.raises(NotAuthentic):
        verify(release)
    path.unlink()
    with pytest.raises(NotAuthentic):
        verify(release)


@pytest.mark.parametrize("entry", ["public_key", "value"])
@pytest.mark.parametrize("value", ["", "zz", "00" * 32, "00" * 64, None, 7])
def test_a_damaged_signature_is_refused(entry: str, value: Any, release: Path) -> None:
    values = stated(release)
    values["signature"][entry] = value
    write(release, values)
    with pytest.raises(NotAuthentic):
        verify(release)


def test_the_signing_key_is_for_its_owner_only(original: Path) -> None:
    key = original.parent / "signing-key"
    assert key.stat().st_mode & 0o077 == 0
    assert key.read_bytes() not in b"".join(path.read_bytes() for path in original.rglob("*") if path.is_file())
