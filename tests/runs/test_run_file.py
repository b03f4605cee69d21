"""run.json, edited or damaged in many ways: every command that meets it ends with a sentence and a documented code."""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import working as work
from limbeck.errors import LimbeckError
from limbeck.progress import Silent
from limbeck.release.destination import RUN_STATE as STATE
from limbeck.runs.execution import computing_with
from limbeck.runs.record import RunRecord
from limbeck.runs.run_file import DIGEST, decoded, encoded
from limbeck.serve.site import Site
from limbeck.vault.ledger import Ledger

Cli = Callable[..., Any]
DOCUMENTED = (0, 2, 3, 4, 5, 6, 7, 8, 9, 10)
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3.5, -0.0, 1e308, 10**30, 10**400, -(10**19), "", "x", "\0", "\ud800", "\udcff", "../../x",
    "é" * 300, "infinity", "nan", "none", [], {}, [[]], {"a": {}}, [None], ["x"] * 50, {"": None}, "cpu:99", "cuda:x", "meta",
]  # fmt: skip
RAW = [
    b"", b"{", b"[]", b"null", b"3", b'"text"', b"\xff\xfe\x00", b"[" * 100_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    b'{"format": ' + b"9" * 5000 + b"}", b'{"threads": NaN}', b'{"threads": Infinity}', b"\xef\xbb\xbf{}", b" " * 9_000_000,
]  # fmt: skip


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that broke off after its third answer, in a folder beside its ledger. Copy before use."""
    root = tmp_path_factory.mktemp("stopped")
    stored, store = [0], Ledger.store

    def interrupted(*arguments: Any, **named: Any) -> bytes:
        stored[0] += 1
        if stored[0] == 3:
            raise KeyboardInterrupt
        return store(*arguments, **named)

    request = work.asked(ledger=str(root / "ledger.sqlite"), insecure_seed=7)
    settings = {"per_class": 4, "L": 10, "sigma": 2.0}
    plan, source = work.plan_for(request.data, "ldpdc", settings, None, 1e-5)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Ledger, "store", interrupted)
        work.condense(request, plan, source, root / "out", Silent(), checkpoint_seconds=0.0)
    return root


def places(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in nested dictionaries and lists."""
    items = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def mutated(values: dict[str, Any], generator: random.Random) -> dict[str, Any]:
    """One or two places changed, removed, renamed or added."""
    made = copy.deepcopy(values)
    for _ in range(generator.choice((1, 1, 1, 2))):
        path = generator.choice(list(places(made)))
        owner = made
        for key in path[:-1]:
            owner = owner[key]
        kind = generator.choice(("change", "change", "change", "remove", "add", "near"))
        if kind == "remove":
            del owner[path[-1]]
        elif kind == "add" and isinstance(owner, dict):
            owner[generator.choice(("extra", "kind", "", "format"))] = generator.choice(ODD)
        elif kind == "near" and isinstance(owner[path[-1]], (int, float)):
            owner[path[-1]] = owner[path[-1]] * generator.choice((-1, 0, 10, 0.5)) + generator.choice((0, 1))
        else:
            owner[path[-1]] = generator.choice(ODD)
    return made


def contents(stopped: Path) -> Iterator[bytes]:
    generator = random.Random(15)
    whole = (stopped / "out" / STATE / "run.json").read_bytes()
    values = decoded(whole)
    yield from RAW
    for _ in range(40):
        yield whole[: generator.randrange(len(whole))]
    for _ in range(40):
        noisy = bytearray(whole)
        noisy[generator.randrange(len(noisy))] = generator.randrange(256)
        yield bytes(noisy)
    for _ in range(200):  # as an owner or an older version would have written it, without a digest
        yield json.dumps(mutated(values, generator)).encode()
    for _ in range(60):  # with the digest of what it says
        made = mutated(values, generator)
        try:
            yield encoded(made)
        except ValueError:
            yield json.dumps({**made, DIGEST: "0" * 64}).encode()


def test_every_edited_run_file_ends_in_a_sentence(stopped: Path, tmp_path: Path) -> None:
    refused = 0
    with Ledger.open(stopped / "ledger.sqlite") as ledger:
        (before,) = ledger.accounts()
    for number, content in enumerate(contents(stopped)):
        root = tmp_path / str(number)
        shutil.copytree(stopped, root)
        (root / "out" / STATE / "run.json").write_bytes(content)
        try:
            with computing_with(1):
                work.resume(root / "out", Silent(), root / "ledger.sqlite")
        except LimbeckError as error:
            assert error.exit_code in DOCUMENTED and error.message, content
            refused += 1
        with Ledger.open(root / "ledger.sqlite") as ledger:
            (after,) = ledger.accounts()
        assert after.spent_epsilon == before.spent_epsilon, content
        shutil.rmtree(root)
    assert refused > 250


def test_other_commands_meet_an_edited_run_file(stopped: Path, cli: Cli, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(stopped, runs)
    site = Site(runs, runs / "ledger.sqlite")
    for number, content in enumerate(contents(stopped)):
        (runs / "out" / STATE / "run.json").write_bytes(content)
        for parts in ((), ("run", "out"), ("api", "live")):
            answer = site.reply(parts, {})  # whatever it raises would be shown as a defect
            assert answer.status == 200 and str(tmp_path).encode() not in answer.body, content
        if number % 20 == 0:
            for command, code in (("report", 8), ("verify", 6), ("bundle", 8)):
                ended = cli(command, runs / "out")
                assert ended.code == code and "unforeseen" not in ended.err, content
        if number < len(RAW):
            assert cli("resume", runs / "out").code == 8, content


def test_a_note_of_progress_may_hold_anything(stopped: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(stopped, runs)
    noted = {"label": "x", "first": 0, "step": 1, "total": 4, "started": 1.0, "updated": 2.0}
    site = Site(runs, runs / "ledger.sqlite")
    for name in noted:
        for value in ODD:
            (runs / "out" / STATE / "progress.json").write_text(json.dumps({**noted, name: value}))
            assert site.reply((), {}).status == 200, (name, value)


def test_a_run_file_of_an_older_version_is_still_read(stopped: Path, tmp_path: Path) -> None:
    root = tmp_path / "run"
    shutil.copytree(stopped, root)
    path = root / "out" / STATE / "run.json"
    values = decoded(path.read_bytes())
    path.write_text(json.dumps(values, indent=1))
    assert RunRecord.read(root / "out") == RunRecord.read(stopped / "out")
    work.resume(root / "out", Silent(), root / "ledger.sqlite")


@pytest.mark.parametrize("name", ["extra", "", "seed"])
def test_an_entry_that_is_not_known_is_refused(stopped: Path, tmp_path: Path, name: str) -> None:
    """It may be another version's word for something that matters."""
    shutil.copytree(stopped, tmp_path / "copy")
    out = tmp_path / "copy" / "out"
    values = json.loads((out / STATE / "run.json").read_bytes())
    values.pop(DIGEST)
    (out / STATE / "run.json").write_bytes(encoded({**values, name: 1}))
    with pytest.raises(LimbeckError, match="written by another version"):
        RunRecord.read(out)
    (out / STATE / "run.json").write_bytes(encoded(values))
    assert RunRecord.read(out).plan.method == "ldpdc"
