"""The house: rooms in one order, nothing loose at the top, nothing that one cannot read in one sitting."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from layers import LAYERS, PACKAGE, circles, modules, upward

LOOSE = {"__init__.py", "__main__.py", "api.py", "errors.py", "files.py", "py.typed"}
MOST_LINES, MOST_OF_A_FUNCTION = 300, 50


def test_every_import_goes_downwards_and_none_in_a_circle() -> None:
    assert upward() == []
    assert circles() == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("release/writer.py", "from limbeck.report.page import render\n"),
        ("vault/local.py", "\n\ndef late() -> None:\n    from limbeck.methods import METHODS\n"),
        ("privacy/plan.py", "\nif TYPE_CHECKING:\n    from limbeck.vault.ledger import Ledger\n"),
        ("data/source.py", "\nimport limbeck.runs.condense\n"),
        (
            "files.py",
            "\n\ndef late() -> None:\n    from importlib import import_module\n\n    import_module('limbeck.cli')\n",
        ),
        ("methods/base.py", "from ..release import certificate\n"),
    ],
)
def test_an_import_upwards_is_found_however_it_is_written(file: str, line: str, tmp_path: Path) -> None:
    copy = tmp_path / "src" / "limbeck"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.html", "*.css"))
    assert upward(copy) == []
    with (copy / file).open("a") as written:
        written.write(line)
    (said,) = upward(copy)
    assert said.startswith(f"limbeck/{file}:") and "in a room above" in said


def test_a_circle_inside_a_room_is_found(tmp_path: Path) -> None:
    copy = tmp_path / "src" / "limbeck"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.html", "*.css"))
    with (copy / "nets" / "kernels" / "fused.py").open("a") as written:
        written.write("from limbeck.nets.architectures.convnet import Block\n")
    assert any("nets.kernels.fused" in group for group in circles(copy))


def test_a_file_in_no_room_is_found(tmp_path: Path) -> None:
    copy = tmp_path / "src" / "limbeck"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.html", "*.css"))
    (copy / "cellar").mkdir()
    (copy / "cellar" / "wine.py").write_text("")
    assert upward(copy) == ["limbeck.cellar.wine stands in no room of the list"]


def test_nothing_stands_loose_at_the_top() -> None:
    assert {path.name for path in PACKAGE.iterdir() if path.is_file()} <= LOOSE
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms == {room for room, _ in LAYERS} - {Path(name).stem for name in LOOSE}


@pytest.mark.parametrize("name", modules())
def test_a_module_is_read_in_one_sitting(name: str) -> None:
    text = modules()[name].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    if name.startswith("limbeck.cli"):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno + 1 <= MOST_OF_A_FUNCTION, node.name
