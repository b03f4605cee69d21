"""The examples with pictures, each as it stands, on fewer pictures: from a folder to a release that is verified and scored."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def walked(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    monkeypatch.setenv("LIMBECK_LEDGER", str(folder / "ledger.sqlite"))
    command = [sys.executable, str(EXAMPLES / name / "run.py"), str(folder / "example"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=1200).stdout


@pytest.mark.slow
@pytest.mark.timeout(1300)
def test_a_folder_of_mixed_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = walked("mixed_pictures", tmp_path, monkeypatch, "--answers", "2")
    schema = (tmp_path / "example" / "pictures.toml").read_text()
    assert 'resize = "crop"' in schema and "verified: epsilon" in said
    assert len(list((tmp_path / "example" / "pictures").rglob("*.*"))) == 1500
    assert accuracy_in(said) > 60  # of three digits; 33 is chance


@pytest.mark.slow
@pytest.mark.timeout(1300)
def test_a_folder_of_dicom_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("pydicom") is None:
        pytest.skip("needs pydicom")
    said = walked("dicom", tmp_path, monkeypatch, "--count", "200")
    assert "Which range matters is yours to say" in (tmp_path / "example" / "scans.toml").read_text()
    assert "verified: epsilon" in said and accuracy_in(said) > 75


def accuracy_in(said: str) -> float:
    return float(said.split("'linear': ")[-1].split("}")[0])
