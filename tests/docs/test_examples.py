"""Programs that the documents show, and those in examples/, run as they stand."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

from limbeck.privacy.schema import Schema
from limbeck.privacy.witness import witness

REPOSITORY = Path(__file__).parents[2]


def test_the_programs_of_the_python_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("pandas")
    found = re.findall(r"```python\n(.*?)```", (REPOSITORY / "docs" / "python.md").read_text(), re.DOTALL)
    for program in found:
        exec(compile(program, "python.md", "exec"), {})
    shown = capsys.readouterr().out
    assert len(found) == 2 and "(100, 1, 8, 8)" in shown and "'linear'" in shown
    assert (
        "True True\n['ill', 'age', 'town', 'seen']\ndecoded\n" in shown
        and "columns.age: 20 to 80, integer, missing" in shown
    )


QUICK = ("digits.py",)
JOURNEYS = ("hospital.py",)  # minutes, each with a test of its own
EXAMPLES = [
    pytest.param(path, marks=[] if path.name in QUICK else [pytest.mark.slow], id=path.name)
    for path in sorted((REPOSITORY / "examples").glob("*.py"))
    if path.name not in JOURNEYS
]


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a kernel of its own, as a reader runs it: every cell, with the shown frames, pictures and bars."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    monkeypatch.setenv("LIMBECK_RELEASES", str(tmp_path / "releases"))
    page = nbformat.read(REPOSITORY / "examples" / "notebook.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in page.cells)  # what a reader sees is what their own run makes
    done = nbclient.NotebookClient(page, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in done.cells for output in cell.get("outputs", [])]
    texts = " ".join(str(output.get("data", {}).get("text/html", output.get("text", ""))) for output in shown)
    assert "<progress" in texts and "accuracy on real rows" in texts and str(tmp_path / "releases" / "ward-1") in texts
    assert not [output for output in shown if output.get("name") == "stderr" and "Warning" in output.get("text", "")]


@pytest.mark.parametrize("path", EXAMPLES)
def test_examples_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [str(path), str(tmp_path)])
    runpy.run_path(str(path), run_name="__main__")
    assert "verified: epsilon" in capsys.readouterr().out


@pytest.mark.slow
def test_a_hospital_is_warned_rehearses_and_learns_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["hospital.py", str(tmp_path)])
    runpy.run_path(str(REPOSITORY / "examples" / "hospital.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert re.search(r"warning: This set may be close to guessing: .* would need about [\d,]+ records", shown)
    assert "left of the budget afterwards: 1.0" in shown
    assert shown.count("rehearsed at epsilon") == 2 and "booked: 0; spent: 0.0" in shown


def test_the_schemas_of_the_data_page_are_schemas() -> None:
    found = re.findall(r"```toml\n(.*?)```", (REPOSITORY / "docs" / "data.md").read_text(), re.DOTALL)
    schemas = [Schema.from_dict(tomllib.loads(text)) for text in found]
    assert [schema.by_person for schema in schemas] == [False, False, False, False, True]
    assert witness(schemas[3])["gross"] <= 15_000
