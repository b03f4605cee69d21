"""The package as it is installed: one version, no code that is not the tool's, and a front door that opens at once."""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import limbeck

REPOSITORY = Path(__file__).parents[1]
# Libraries that take a tenth of a second or more to import.
LARGE = ("torch", "numpy", "scipy", "pyarrow", "matplotlib", "sklearn", "dp_accounting", "PIL", "typer", "rich")
# The help may use what a command line is made of. Seconds are measured by benchmarks/import_time.py.
TOO_LARGE_FOR_HELP = (
    "torch", "numpy", "scipy", "pyarrow", "PIL", "dp_accounting", "matplotlib", "sklearn", "jinja2", "safetensors",
)  # fmt: skip


def test_the_version_is_stated_once() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    assert "version" not in project["project"] and project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"] == {"version": {"attr": "limbeck.__version__"}}
    assert not re.search(r"^version\s*:", (REPOSITORY / "CITATION.cff").read_text(), re.MULTILINE)
    assert re.fullmatch(r"\d+\.\d+\.\d+", limbeck.__version__)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, because building leaves files behind; without a network, by the setuptools that is here."""
    root = tmp_path_factory.mktemp("wheel")
    source = root / "source"
    source.mkdir()
    leave = shutil.ignore_patterns("__pycache__", "*.egg-info", "results", "kept")
    for name in ("src", "benchmarks", "tests", "docs"):
        shutil.copytree(REPOSITORY / name, source / name, ignore=leave)
    for name in (
        "pyproject.toml",
        "setup.py",
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "LICENSE",
    ):
        shutil.copy2(REPOSITORY / name, source / name)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(root), str(source)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (found,) = root.glob("*.whl")
    return found


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    assert wheel.name.startswith(f"limbeck-{limbeck.__version__}-")
    about = f"limbeck-{limbeck.__version__}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    data = f"limbeck-{limbeck.__version__}.data/data/share/doc/limbeck/"
    pages = {name.removeprefix(data) for name in names if name.startswith(data)}
    names = {name for name in names if not name.startswith(data)}
    assert {name.split("/")[0] for name in names} == {"limbeck", about}
    # The pages come along, and every link among them leads somewhere.
    for page in [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]:
        assert page.relative_to(REPOSITORY).as_posix() in pages
    with zipfile.ZipFile(wheel) as archive:
        texts = {page: archive.read(data + page).decode() for page in pages if page.endswith(".md")}
    for page, text in texts.items():
        for link in re.findall(r"\]\((?![a-z]+:)([^)#\s]+)(?:#[^)]*)?\)", text):
            assert posixpath.normpath(posixpath.join(posixpath.dirname(page), link)) in pages, (page, link)
    assert not [name for name in names if re.search(r"(^|/)(tests?|benchmarks?)(/|$)|/test_[^/]*$|conftest", name)]
    package = REPOSITORY / "src" / "limbeck"
    kept = {
        f"limbeck/{path.relative_to(package).as_posix()}"
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert {name for name in names if name.startswith("limbeck/")} == kept


def modules_after(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded once it has run this."""
    shown = "import sys; sys.stderr.write(' '.join(sys.modules))"
    command = [sys.executable, "-c", f"{code}\n{shown}"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stderr.split())


def test_the_import_loads_no_large_library() -> None:
    loaded = modules_after("import limbeck")
    assert not loaded & set(LARGE)
    ours = {name for name in loaded if name.split(".")[0] == "limbeck"}
    assert ours == {"limbeck"}


def test_the_help_waits_for_no_large_library() -> None:
    loaded = modules_after(
        "import sys\n"
        "sys.argv = ['limbeck', '--help']\n"
        "from limbeck.cli import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert end.code in (0, None)\n"
    )
    assert "limbeck.cli.main" in loaded and not loaded & set(TOO_LARGE_FOR_HELP)
