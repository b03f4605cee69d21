"""No command writes into a release or into the folder of a run, and it says so before it books or computes anything."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from limbeck.errors import NotAuthentic, OutputFault, RunConflict
from limbeck.release.destination import require_outside
from limbeck.release.statement import Statement
from limbeck.vault.ledger import Ledger
from releases import copied, digits_release

Cli = Callable[..., Any]
SMALL = ("--method", "ldpdc", "--set", "L=10", "--set", "sigma=2", "--set", "per_class=2")
SET_OF_ONE = ("--set", "ldpdc.L=10", "--set", "ldpdc.sigma=2", "--set", "ldpdc.per_class=2")
FOLDERS: dict[str, tuple[Any, ...]] = {
    "condense": ("condense", "digits", *SMALL),
    "sweep": ("sweep", "digits", *SMALL[:6], "--vary", "per_class=1,2"),
    "compare": ("compare", "digits", "--methods", "ldpdc", *SET_OF_ONE),
    "continual": ("continual", "digits", "--epsilon", 5, "--methods", "psg"),
    "demo": ("demo",),
}
FILES: dict[str, tuple[Any, ...]] = {
    "evaluate": ("evaluate", "RELEASE", "--test", "digits"),
    "fidelity": ("fidelity", "RELEASE", "--data", "digits"),
    "curve": ("curve", "RELEASE", "--test", "digits"),
    "report": ("report", "RELEASE"),
    "sample": ("sample", "RELEASE", "--count", 5),
    "bundle": ("bundle", "RELEASE"),
    "schema draft": ("schema", "draft", "RELEASE/set.npz"),
}
SUFFIX = {"sample": ".npz", "report": ".html", "bundle": ".zip"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases, and the folder of a run beside them. Nothing here is changed by a test."""
    root = tmp_path_factory.mktemp("made")
    digits_release(root, "mine")
    copied(root / "mine", root / "other")
    (root / "run" / ".run").mkdir(parents=True)
    (root / "run" / ".run" / "run.json").write_text("{}")
    return root


def listed(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


@pytest.mark.parametrize("inside", ["other/data", "mine", "run", "run/.run", "LINK"])
@pytest.mark.parametrize("command", [*FOLDERS, *FILES])
def test_no_output_goes_into_a_release_or_a_run(
    cli: Cli, made: Path, tmp_path: Path, command: str, inside: str
) -> None:
    (tmp_path / "link").symlink_to(made / "other" / "data")
    folder = tmp_path / "link" if inside == "LINK" else made / inside
    out = folder / ("new/folder" if command in FOLDERS else f"x{SUFFIX.get(command, '')}")
    before = listed(made)
    words = [str(word).replace("RELEASE", str(made / "mine")) for word in {**FOLDERS, **FILES}[command]]
    refused = cli(*words, "--out", out)
    assert refused.code in (2, 7, 8) and "lies inside" in refused.err and "--out" in refused.err, refused.err
    assert listed(made) == before
    assert not Path(os.environ["LIMBECK_LEDGER"]).exists()  # nothing was booked


@pytest.mark.parametrize("command", FOLDERS)
def test_no_output_goes_around_a_release(cli: Cli, made: Path, command: str) -> None:
    before = listed(made)
    assert cli(*FOLDERS[command], "--out", made).code == 8
    assert cli(*FOLDERS[command], "--out", made / "other").code == 8
    assert listed(made) == before and not Path(os.environ["LIMBECK_LEDGER"]).exists()


def test_pictures_of_a_curve_and_kept_figures_stay_outside_too(cli: Cli, bench: Cli, made: Path) -> None:
    picture = made / "other" / "curve.png"
    assert "lies inside" in cli("curve", made / "mine", "--test", "digits", "--picture", picture).err
    for option in ("--results", "--sets"):
        assert "lies inside" in bench("measure", "--table", "dpdc-1", option, made / "other" / "x").err
    assert "lies inside" in bench("render", "--page", made / "other" / "x.md").err


def test_links_in_a_circle_are_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OutputFault, match="circle"):
        require_outside(tmp_path / "a" / "x")


def test_beside_a_release_is_fine(made: Path, tmp_path: Path) -> None:
    for out in (made / "scores.json", made / "new", tmp_path / "a" / "b", Path("relative")):
        require_outside(out)
    with pytest.raises(RunConflict):
        require_outside(made / "other")


def test_a_release_can_be_made_below_an_ordinary_folder(cli: Cli, made: Path, tmp_path: Path) -> None:
    assert cli("condense", "digits", *SMALL, "--out", tmp_path / "a" / "b").code == 0
    with Ledger.open() as ledger:
        assert len(ledger.accounts()) == 1


def test_an_unfinished_run_is_no_release_and_says_how_to_go_on(tmp_path: Path) -> None:
    with pytest.raises(NotAuthentic, match=r"it has no certificate\.json") as nothing:
        Statement.read(tmp_path)
    assert nothing.value.next_command is None
    (tmp_path / ".run").mkdir()
    (tmp_path / ".run" / "run.json").write_text("{}")
    with pytest.raises(NotAuthentic, match="its run is unfinished") as begun:
        Statement.read(tmp_path)
    assert begun.value.next_command == f"limbeck resume {tmp_path}"
