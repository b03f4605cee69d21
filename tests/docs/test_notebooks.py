"""The notebooks of examples/ are kept without results and run, in a kernel of their own (notebook.ipynb: test_examples.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
NOTEBOOKS = sorted((REPOSITORY / "examples").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [path for path in NOTEBOOKS if path.name != "notebook.ipynb"], ids=lambda path: path.name
)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=280, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert "verified: epsilon" in "".join(output.get("text", "") for output in shown)
    assert any("image/png" in output.get("data", {}) for output in shown) or path.name != "pictures.ipynb"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_kept_without_results(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    cells = nbformat.read(path, as_version=4).cells
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
