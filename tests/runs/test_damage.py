"""Bits that flip in a run folder while the run is away: noticed, or without effect; never a release that is not what it says."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import working as work
from limbeck.errors import LimbeckError, RunConflict
from limbeck.progress import Silent
from limbeck.release import certificate as certificates
from limbeck.release.destination import RUN_STATE as STATE
from limbeck.runs.execution import computing_with
from limbeck.vault.ledger import Ledger

METHODS: dict[str, dict[str, Any]] = {
    "ndpdc": {"per_class": 1, "net": "convnet", "width": 2, "I": 4, "L": 5, "sigma": 2.0},
    "datalens": {
        "teachers": 6, "T": 4, "batch": 6, "teacher_batch": 4, "first_steps": 2, "first": 2, "second": 3, "hidden": 8, "width": 4,
        "latent": 3, "per_class": 1, "sigma": 60.0, "k": 20, "beta": 0.2,
    },
}  # fmt: skip
FLIPS = 8


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with computing_with(1):
        yield


def made(method: str, root: Path) -> Path:
    request = work.asked(ledger=str(root / "ledger.sqlite"), insecure_seed=7)
    plan, source = work.plan_for(request.data, method, METHODS[method], None, 1e-5)
    return work.condense(request, plan, source, root / "out", Silent(), checkpoint_seconds=0.0).release


def broken_off(method: str, root: Path, owner: type, name: str, call: int, counts: Callable[..., bool]) -> Path:
    """A run that ended before the `call`-th counted call of owner.name, as if the process had been killed there."""
    original, calls = getattr(owner, name), [0]

    def breaking(*arguments: Any, **named: Any) -> Any:
        calls[0] += counts(*arguments)
        if calls[0] == call and counts(*arguments):
            raise KeyboardInterrupt
        return original(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch, computing_with(1):
        patch.setattr(owner, name, breaking)
        with pytest.raises(KeyboardInterrupt):
            made(method, root)
    return root


def always(*_: Any) -> bool:
    return True


def out_of_staging(source: Path, target: Path) -> bool:
    return source.parent.name == "release" and target.parent != source.parent  # not a file that is just being written


MOMENTS = {
    "after a checkpoint": (Ledger, "forget", 3, always),
    "staged": (Ledger, "finish", 1, always),
    "in the middle of moving": (Path, "replace", 3, out_of_staging),
    "moved, not tidied": (Path, "unlink", 1, lambda path, *_: path.name == "run.json"),
}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Runs that were stopped at a moment, and whole ones. Copy before use."""
    known: dict[tuple[str, str], Path] = {}

    def get(method: str, moment: str) -> Path:
        if (method, moment) not in known:
            root = tmp_path_factory.mktemp("run")
            if moment == "whole":
                with computing_with(1):
                    made(method, root)
            else:
                broken_off(method, root, *MOMENTS[moment])
            known[method, moment] = root
        return known[method, moment]

    return get


def resumed(root: Path) -> Path:
    """Take up a copy of a stopped run, with its copy of the ledger."""
    return work.resume(root / "out", Silent(), root / "ledger.sqlite").release


def flipped(path: Path, generator: random.Random) -> int:
    content = bytearray(path.read_bytes())
    place = generator.randrange(8 * len(content))
    content[place // 8] ^= 1 << place % 8
    path.write_bytes(content)
    return place


def spent(root: Path) -> tuple[float, int]:
    with Ledger.open(root / "ledger.sqlite") as ledger:
        (account,) = ledger.accounts()
        return account.spent_epsilon, len(account.bookings)


def files_of(root: Path) -> list[str]:
    """Everything that a run keeps but the ledger, which has tests of its own."""
    found = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    return sorted(name for name in found if not name.startswith(("ledger.sqlite", "signing-key")))


@pytest.mark.parametrize(
    ("method", "moment"),
    [*(("ndpdc", moment) for moment in MOMENTS), ("datalens", "after a checkpoint")],
)
def test_a_flipped_bit_is_noticed_or_changes_nothing(
    stopped: Callable[[str, str], Path], tmp_path: Path, method: str, moment: str
) -> None:
    kept, like = stopped(method, moment), stopped(method, "whole") / "out"
    generator, noticed = random.Random(f"{method} {moment}"), 0
    names = files_of(kept)
    assert any(name.startswith(f"out/{STATE}/") for name in names)
    for name in names:
        for number in range(FLIPS):
            root = tmp_path / f"{names.index(name)}-{number}"
            shutil.copytree(kept, root)
            if not (root / name).stat().st_size:
                continue
            bit = flipped(root / name, generator)
            try:
                out = resumed(root)
            except LimbeckError as error:
                assert error.exit_code in (2, 4, 6, 8), (name, bit)
                noticed += 1
            else:
                assert certificates.verify(out)["epsilon"] == certificates.read(like)["epsilon"]
                for file in ("set.npz", "data/train.parquet", "grid.png"):
                    assert (out / file).read_bytes() == (like / file).read_bytes(), (name, bit, file)
                assert not (out / STATE).exists()
            assert spent(root) == spent(kept), (name, bit)
            shutil.rmtree(root)
    assert noticed


@pytest.mark.parametrize("moment", ["staged", "in the middle of moving", "moved, not tidied"])
@pytest.mark.parametrize("harm", ["{}", "", "another plan", "foreign", "missing", "link"])
def test_a_bad_staged_release_is_made_again_or_refused(
    stopped: Callable[[str, str], Path], tmp_path: Path, moment: str, harm: str
) -> None:
    root = tmp_path / "run"
    shutil.copytree(stopped("ndpdc", moment), root)
    staged = root / "out" / STATE / "release"
    place = staged if (staged / certificates.NAME).exists() else root / "out"
    certificate = place / certificates.NAME
    if harm == "another plan":
        values = json.loads(certificate.read_text())
        values["settings"]["seed"] = 5
        del values["signature"]
        certificate.write_text(json.dumps(certificates.sign(values, certificates.signing_key(root / "signing-key"))))
    elif harm == "foreign":
        (place / "notes.txt").write_text("text")
    elif harm == "missing":
        next(root.rglob("set.npz")).unlink()
    elif harm == "link":
        found = next(root.rglob("set.npz"))
        found.rename(tmp_path / "elsewhere.npz")
        found.symlink_to(tmp_path / "nowhere.npz")
    else:
        certificate.write_text(harm)
    if moment == "staged":
        certificates.verify(resumed(root))
    else:
        with pytest.raises(RunConflict, match="is damaged"):
            resumed(root)
        assert (root / "out" / STATE / "run.json").exists()  # it can be restored from a backup and resumed


def test_a_checkpoint_of_an_older_version_is_still_read(stopped: Callable[[str, str], Path], tmp_path: Path) -> None:
    root = tmp_path / "run"
    shutil.copytree(stopped("ndpdc", "after a checkpoint"), root)
    path = root / "out" / STATE / "checkpoint.safetensors"
    grant = json.loads((root / "out" / STATE / "run.json").read_text())["grant"]
    tensors = load_file(path)
    save_file(tensors, path, {"grant": grant})
    out = resumed(root)
    assert (out / "set.npz").read_bytes() == (stopped("ndpdc", "whole") / "out" / "set.npz").read_bytes()


@pytest.mark.parametrize("step", [-1, 10**9])
def test_a_step_that_cannot_be_is_refused(stopped: Callable[[str, str], Path], tmp_path: Path, step: int) -> None:
    root = tmp_path / "run"
    shutil.copytree(stopped("ndpdc", "after a checkpoint"), root)
    path = root / "out" / STATE / "checkpoint.safetensors"
    save_file({**load_file(path), "step": torch.tensor(step)}, path)
    with pytest.raises(RunConflict, match="checkpoint"):
        resumed(root)
