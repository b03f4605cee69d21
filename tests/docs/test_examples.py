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


@pytest.mark.slow
def test_the_three_lines_of_the_readme_about_frames(capsys: pytest.CaptureFixture[str]) -> None:
    pd = pytest.importorskip("pandas")
    programs = re.findall(r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL)
    (program,) = (each for each in programs if "limbeck.draft" in each)
    frame = pd.DataFrame(
        {"age": pd.array([None, 30, 41] * 400, dtype="Int64"), "income": ["low", "high", "high"] * 400}
    )
    frame["town"] = pd.Categorical(["north", "south"] * 600)
    names: dict[str, object] = {"frame": frame}
    exec(compile(program, "README.md", "exec"), names)
    assert names["rows"].dtypes.equals(frame.dtypes)  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", sorted((REPOSITORY / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [str(path), str(tmp_path)])
    runpy.run_path(str(path), run_name="__main__")
    assert "verified: epsilon" in capsys.readouterr().out


def test_the_schemas_of_the_data_page_are_schemas() -> None:
    found = re.findall(r"```toml\n(.*?)```", (REPOSITORY / "docs" / "data.md").read_text(), re.DOTALL)
    schemas = [Schema.from_dict(tomllib.loads(text)) for text in found]
    assert [schema.by_person for schema in schemas] == [False, False, False, True]
    assert witness(schemas[2])["gross"] <= 15_000
