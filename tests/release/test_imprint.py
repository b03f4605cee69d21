"""Who releases: said once by the owner, stated in every release, on its certificate; never asked without a terminal."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from limbeck import verify
from limbeck.cli import owner
from limbeck.errors import BadInput, LedgerFault, NotAuthentic
from limbeck.release.imprint import Imprint, imprint_in, read_imprint, write_imprint
from releases import digits_release

SAID = Imprint(name="City <b>Hospital</b>", contact="privacy@hospital.example", purpose="Teaching", licence="CC-BY-4.0")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("said")
    write_imprint(root / "imprint.json", SAID)
    return digits_release(root)


def test_a_release_states_it_and_the_certificate_covers_it(release: Path, tmp_path: Path) -> None:
    from releases import copied

    assert imprint_in(release) == SAID and "imprint.json" in verify(release).files
    page, card = (release / "report.html").read_text(), (release / "README.md").read_text()
    assert (
        "City &lt;b&gt;Hospital&lt;/b&gt;" in page and "<b>Hospital" not in page and "privacy@hospital.example" in page
    )
    assert "license: cc-by-4.0" in card and "<b>" not in card.split("---", 2)[2].split("##")[0]
    changed = copied(release, tmp_path / "changed")
    (changed / "imprint.json").write_text(json.dumps({"name": "Somebody else"}))
    with pytest.raises(NotAuthentic, match=r"imprint\.json was changed"):
        verify(changed)


def test_who_says_nothing_has_no_file(tmp_path: Path) -> None:
    release = digits_release(tmp_path)
    assert not (release / "imprint.json").exists() and "license: unknown" in (release / "README.md").read_text()
    assert "Released by" not in (release / "report.html").read_text()


def test_a_report_has_the_key_and_the_moment(release: Path, cli: Any, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    assert cli("report", release, "--out", out).code == 0
    key = verify(release).signature
    assert key is not None and key.public_key[:4] + " " + key.public_key[4:8] in out.read_text()
    assert "Signed by the key" in out.read_text() and "Released by" in out.read_text()


def test_said_bit_by_bit_and_taken_away(cli: Any, own_home: Path) -> None:
    assert "nothing is said" in cli("owner", "show").out
    assert "public" in cli("owner", "set", "--name", "A", "--licence", "MIT").out
    assert cli("owner", "set", "--contact", "b@c.example", "--licence", "", "--json").json["name"] == "A"
    shown = cli("owner", "show", "--json").json
    assert (
        shown["contact"] == "b@c.example" and shown["licence"] == "" and shown["file"] == str(own_home / "imprint.json")
    )
    assert cli("owner", "set").code == 2


@pytest.mark.parametrize("value", ["two\nlines", "x" * 501, "\x1b[31m"])
def test_only_plain_lines(value: str, cli: Any, own_home: Path) -> None:
    with pytest.raises(BadInput):
        Imprint(name=value)
    assert cli("owner", "set", "--name", value).code == 2 and not (own_home / "imprint.json").exists()


@pytest.mark.parametrize("content", [b"{", b"[1]", b'{"name": 3}', b"\xff"])
def test_a_damaged_file_is_a_sentence_and_costs_nothing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "imprint.json").write_bytes(content)
    with pytest.raises(LedgerFault, match="cannot be read"):
        digits_release(tmp_path)
    assert not (tmp_path / "digits").exists()
    from limbeck import budget

    found = budget("digits", ledger=tmp_path / "ledger.sqlite")
    assert found is None or found.spent_epsilon == 0


def test_it_is_asked_once_on_a_terminal_and_never_without(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    path = own_home / "imprint.json"
    owner.ask_once(None, False)  # pytest's input is no terminal; reading it would raise
    assert not path.exists()
    monkeypatch.setattr(sys, "stdin", Terminal("City Hospital\n\n\nMIT\n"))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    owner.ask_once(None, True)
    assert not path.exists()
    owner.ask_once(None, False)
    assert read_imprint(path) == Imprint(name="City Hospital", licence="MIT") and "public" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    owner.ask_once(None, False)
    assert capsys.readouterr().err == ""
