"""Sets that were made at a smaller size than they have: models see set and test records averaged down to it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from limbeck import Condenser
from limbeck.api import evaluate
from limbeck.data import DataSource, Records
from limbeck.errors import BadInput
from limbeck.evaluate import scoring
from limbeck.evaluate.downstream import Task
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.protocol import EvaluationProtocol
from limbeck.evaluate.real import evaluate_real
from limbeck.evaluate.release import Baselines, evaluate_release
from limbeck.evaluate.seen import seen_schema
from limbeck.nets.features.pooled import pooled
from limbeck.privacy.schema import Schema
from limbeck.progress import Silent
from limbeck.release.certificate import Certificate
from limbeck.release.joined import Joined
from limbeck.release.reader import read_release
from limbeck.release.working_size import working_shape, working_size
from limbeck.report.card import data_card
from limbeck.report.gather import Sources, gather
from limbeck.report.loading import set_snippets
from limbeck.report.page import render
from limbeck.vault.encoding import encode

LARGE = Schema(
    name="large",
    shape=(1, 100, 75),
    classes=("a", "b"),
    records=40,
    class_sizes=(20, 20),
    augmentation=(),
    low=0,
    high=255,
)
FEW: dict[str, Any] = {"T": 2, "L": 5, "networks": 2, "memory": 2, "width": 4, "sigma": 2.0, "generator": 0}
SMALL = (32, 24)  # of 100 x 75: no multiple, and not square


def made(root: Path, schema: Schema = LARGE, **settings: Any) -> Path:
    x = np.random.default_rng(0).integers(0, 255, (40, *schema.shape), dtype=np.uint8)
    condenser = Condenser(
        "elixir", None, 1e-3, per_class=2, settings={**FEW, **settings}, ledger=root / "ledger.sqlite"
    )
    condenser.fit(x, np.arange(40) % 2, schema=schema, out=root / "set")
    return root / "set"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("large"))


def real(schema: Schema = LARGE, count: int = 8, seed: int = 5) -> DataSource:
    x = np.random.default_rng(seed).integers(0, 255, (count, *schema.shape), dtype=np.uint8)
    return DataSource(schema, f"own {seed}", lambda _: Records(x, np.arange(count) % 2))


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Task]]:
    """What models are given."""
    given: list[Task] = []
    score = scoring.score_model

    def listen(model: str, task: Task, *arguments: Any, **named: Any) -> Any:
        given.append(task)
        return score(model, task, *arguments, **named)

    monkeypatch.setattr(scoring, "score_model", listen)
    yield given


LINEAR = EvaluationProtocol(models=("linear",), repeats=1)


def test_set_test_records_noise_and_real_records_are_averaged_down_alike(release: Path, tasks: list[Task]) -> None:
    source = real()
    found = evaluate_release(release, source, LINEAR, Silent(), Baselines(real=real(seed=6), control=True))
    assert found.size == 32 and found.to_dict()["size"] == 32 and Evaluation.from_dict(found.to_dict()) == found
    assert [tuple(task.x.shape[2:]) for task in tasks] == [SMALL] * 3  # the set, noise, real training records
    set_x, test_x = torch.from_numpy(read_release(release).x), encode(source.load().x, LARGE)
    assert torch.equal(tasks[0].x, pooled(set_x, SMALL))
    for task in tasks:
        assert torch.equal(task.tests[0].x, pooled(test_x, SMALL))


def test_whoever_wants_them_as_they_are_says_0_and_any_size_can_be_asked_for(release: Path, tasks: list[Task]) -> None:
    for size, shape, stated in (
        (0, (100, 75), None),
        (50, (50, 38), 50),
        (100, (100, 75), None),
        (4096, (100, 75), None),
    ):
        found = evaluate_release(release, real(), dataclasses.replace(LINEAR, size=size), Silent())
        assert found.size == stated and ("size" in found.to_dict()) == (stated is not None)
        assert tuple(tasks[-1].x.shape[2:]) == tuple(tasks[-1].tests[0].x.shape[2:]) == shape
    for size in (-1, 1, 5000):
        with pytest.raises(BadInput, match="--size"):
            EvaluationProtocol(size=size)


def test_networks_have_the_depth_and_the_preset_of_what_they_see(release: Path) -> None:
    protocol = EvaluationProtocol()
    assert protocol.resolve(LARGE).preset.name == "quick"
    assert (
        protocol.resolve(seen_schema(LARGE, None, working_size(read_release(release).certificate))).preset.name == "cpu"
    )


@pytest.mark.parametrize("settings", [{"size": 0}, {"size": 128}])
def test_a_set_that_was_made_as_it_is_means_what_it_meant(settings: Any, tmp_path: Path, tasks: list[Task]) -> None:
    schema = dataclasses.replace(LARGE, shape=(1, 64, 56))
    folder = made(tmp_path, schema, **settings)
    found = evaluate_release(folder, real(schema), LINEAR, Silent())
    assert found.size is None and "size" not in found.to_dict() and tuple(tasks[0].x.shape[2:]) == (64, 56)
    assert "average down" not in (folder / "README.md").read_text()


def test_real_records_alone_are_seen_as_they_are_unless_a_size_is_said(tasks: list[Task]) -> None:
    assert evaluate_real(real(), real(seed=6), LINEAR, Silent()).size is None
    assert evaluate_real(real(), real(seed=6), dataclasses.replace(LINEAR, size=32), Silent()).size == 32
    assert [tuple(task.x.shape[2:]) for task in tasks] == [(100, 75), SMALL]
    assert [tuple(task.tests[0].x.shape[2:]) for task in tasks] == [(100, 75), SMALL]


def test_tables_have_no_size() -> None:
    rows = Schema(name="rows", shape=(4,), classes=("a", "b"), records=9, low=0, high=1)
    assert seen_schema(rows, None, 32) is rows and seen_schema(rows, 0) is rows
    with pytest.raises(BadInput, match="has none"):
        seen_schema(rows, 32)


def stated(certificate: Certificate, **changes: Any) -> int:
    return working_size(dataclasses.replace(certificate, **changes))


def test_what_a_certificate_states(release: Path) -> None:
    certificate = read_release(release).certificate
    assert working_size(certificate) == 32 and working_shape(certificate) == SMALL
    for odd in (None, 0, 100, 200, "32", 32.0, True, -4, [32]):
        assert stated(certificate, settings={**certificate.settings, "size": odd}) == 0
    assert stated(certificate, method="ldpdc") == 0 and stated(certificate, settings={}) == 0
    own, others = certificate.to_dict(), {**certificate.to_dict(), "settings": {"size": 64}}
    assert stated(certificate, joined=Joined((own, own))) == 32
    assert stated(certificate, joined=Joined((own, others))) == 64  # nothing of either is lost
    assert stated(certificate, joined=Joined((own, {**own, "method": "ldpdc"}))) == 0


def test_card_and_report_say_how_to_train(release: Path, tmp_path: Path) -> None:
    found = read_release(release)
    card = data_card(found.certificate, found.schema, (2, 2))
    assert "Train at 32 x 24: average down" in (release / "README.md").read_text()
    assert "Train at 32 x 24: average down" in card and "(32, 24)" in card
    assert "Train at 32 x 24: average down" in (release / "report.html").read_text()
    scores = evaluate_release(release, real(), LINEAR, Silent())
    (tmp_path / "scores.json").write_text(json.dumps(scores.to_dict()))
    page = render(gather(Sources(run=release, edition="owner", evaluations=(tmp_path / "scores.json",))))
    assert "averaged down to 32 pixels a side" in page
    old = {name: value for name, value in scores.to_dict().items() if name != "size"}
    (tmp_path / "scores.json").write_text(json.dumps(old))
    page = render(gather(Sources(run=release, edition="owner", evaluations=(tmp_path / "scores.json",))))
    assert "averaged down to 32 pixels a side" not in page  # of an older version: models saw them as they are


def test_the_snippet_of_the_card_gives_what_evaluate_shows_to_models(
    release: Path, monkeypatch: pytest.MonkeyPatch, tasks: list[Task]
) -> None:
    (snippet,) = (each for each in set_snippets(LARGE, SMALL) if each.library == "torch")
    monkeypatch.chdir(release)
    names: dict[str, Any] = {}
    exec(compile(snippet.code, snippet.title, "exec"), names)
    evaluate_release(release, real(), LINEAR, Silent())
    assert torch.equal(names["train"].tensors[0], tasks[0].x)


def test_the_command_and_the_function_say_and_take_it(
    release: Path, cli: Callable[..., Any], tmp_path: Path, tasks: list[Task]
) -> None:
    np.savez(tmp_path / "own.npz", x=real().load().x, y=np.arange(8) % 2)
    arguments = ("evaluate", release, "--test", tmp_path / "own.npz", "--models", "linear", "--repeats", 1)
    ended = cli(*arguments)
    assert ended.code == 0 and "pictures averaged down to 32 pixels a side" in ended.out
    assert "made at 32 x 24 and enlarged" in ended.err
    assert cli(*arguments, "--json").json["size"] == 32
    full = cli(*arguments, "--size", 0, "--json")
    assert full.code == 0 and "size" not in full.json and tuple(tasks[-1].x.shape[2:]) == (100, 75)
    assert evaluate(release, tmp_path / "own.npz", models=["linear"], size=50).size == 50
    assert cli(*arguments, "--size", 1).code == 2


def test_the_plan_says_at_which_size_pictures_are_made(cli: Callable[..., Any], tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", x=real().load().x, y=np.arange(8) % 2)
    (tmp_path / "own.npz.limbeck.toml").write_text(
        'name = "large"\nshape = [1, 100, 75]\nclasses = ["a", "b"]\nrecords = 40\nlow = 0\nhigh = 255\naugmentation = []\n'
    )
    arguments = (
        "plan",
        tmp_path / "own.npz",
        "--epsilon",
        1,
        "--delta",
        1e-3,
        "--per-class",
        2,
        "--set",
        "T=2",
        "--set",
        "L=5",
    )
    said = cli(*arguments)
    assert said.code == 0 and "at 32 pixels a side at most; train on the set at that size" in said.out, said.err
    assert "pixels a side" not in cli(*arguments, "--set", "size=0").out
