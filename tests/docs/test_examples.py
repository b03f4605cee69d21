"""Programs that the documents show, and those in examples/, run as they stand."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


def test_the_program_of_the_python_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(r"```python\n(.*?)```", (REPOSITORY / "docs" / "python.md").read_text(), re.DOTALL)
    exec(compile(program, "python.md", "exec"), {})
    shown = capsys.readouterr().out
    assert "(100, 1, 8, 8)" in shown and "'linear'" in shown


@pytest.mark.parametrize("path", sorted((REPOSITORY / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [str(path), str(tmp_path)])
    runpy.run_path(str(path), run_name="__main__")
    assert "verified: epsilon" in capsys.readouterr().out
