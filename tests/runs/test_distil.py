"""More sets of what was paid for: from a release alone, by anybody, for nothing."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import working as work
from limbeck.data.source import DataSource
from limbeck.errors import BadInput, BadSettings, NotAuthentic, RunConflict
from limbeck.files import as_json
from limbeck.methods.elixir.answers import KeptAnswers, forms_of, size_of
from limbeck.methods.elixir.distilling import USUAL_STEPS, Distillation, Pictures, copies
from limbeck.methods.elixir.generating import GeneratorFit, GeneratorSchedule
from limbeck.methods.elixir.method import Elixir
from limbeck.methods.elixir.rematching import Rematching
from limbeck.nets.generators.spec import GeneratorSpec
from limbeck.privacy.schema import Schema
from limbeck.progress import Silent
from limbeck.release.certificate import NAME
from limbeck.release.distilled import ANSWERS
from limbeck.release.generator import load_generator
from limbeck.release.joining import join
from limbeck.release.reader import read_release
from limbeck.release.signature import signing_key
from limbeck.release.verification import verify
from limbeck.runs.distil import FIELD, Work, distil, take_up, wanted_from
from limbeck.runs.log import StepLog
from limbeck.runs.run_file import decoded, encoded
from limbeck.vault.api import FeatureResidual
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from releases import digits_release, signed_anew
from stated import signed

SETTINGS: dict[str, Any] = {
    "per_class": 2, "T": 6, "L": 30, "networks": 2, "life": 3, "memory": 4, "width": 4, "waves": 8, "sigma": 1.0, "generator": 4,
}  # fmt: skip
SMALL = Distillation(per_class=3, updates=4, part=2)
IMAGES = Schema(name="images", shape=(1, 12, 10), classes=("a", "b"), records=100, low=0, high=255)


def made(root: Path, settings: dict[str, Any] = SETTINGS, name: str = "digits") -> Path:
    root.mkdir(parents=True, exist_ok=True)
    request = work.asked(ledger=str(root / "ledger.sqlite"))
    plan, source = work.plan_for(request.data, "elixir", settings, None, 1e-5)
    return work.condense(request, plan, source, root / name, Silent()).release


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Any]]]:
    """A release, with all that the vault was asked and gave for it."""
    heard: dict[str, list[Any]] = {}
    answer = LocalVault.ask

    def listen(vault: LocalVault, grant: Any, label: str, index: int, mapping: Any) -> Any:
        given = answer(vault, grant, label, index, mapping)
        heard.setdefault(label, []).append((mapping, given.values.copy()))
        return given

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalVault, "ask", listen)
        folder = made(tmp_path_factory.mktemp("source"))
    return folder, heard


@pytest.fixture
def release(source: tuple[Path, Any], tmp_path: Path) -> Path:
    """On another machine: the folder alone."""
    return Path(shutil.copytree(source[0], tmp_path / "given"))


def test_the_file_holds_the_answers_of_the_vault_and_public_numbers_alone(source: tuple[Path, Any]) -> None:
    """Every tensor is an answer as it was given, or can be told from what the vault was asked: questions are public."""
    folder, heard = source
    held = load_file(folder / ANSWERS)
    asked = heard["features"][-4:]  # of six; the setting `memory` keeps four
    certificate = verify(folder)
    schema, method = certificate.public_assumptions, Elixir(**certificate.settings)
    expected = torch.tensor([min(1.0, 30 / size) * size for size in schema.class_sizes or ()])
    for label in ("centre", "distance", "means", "spread", "moments"):
        assert np.array_equal(held.pop(f"initial.{label}").numpy(), heard[label][0][1])
    assert held.pop("sizes").tolist() == list(schema.class_sizes or ())
    assert held.pop("steps").tolist() == [2, 3, 4, 5]
    targets = [torch.from_numpy(values) / expected[:, None] for _, values in asked]
    assert torch.allclose(held.pop("targets"), torch.stack(targets), rtol=1e-6, atol=0)
    pool = method.pool_of_one(schema, torch.device("cpu"))
    for row, body in enumerate(held.pop("networks")):
        weights = pool.body_weights(body.float())
        assert all(torch.equal(weights[name], asked[row][0].weights[name]) for name in weights)
    for name, own in (
        ("centres", lambda question: question.centre),
        ("scales", lambda question: torch.tensor(question.scale, dtype=torch.float64)),
        ("fourier_centres", lambda question: question.waves.centre),
        ("fourier_scales", lambda question: torch.tensor(question.waves.scale, dtype=torch.float64)),
    ):
        assert torch.equal(held.pop(name), torch.stack([own(question) for question, _ in asked]))
    assert not held  # and nothing else


def test_the_questions_are_put_again_exactly(source: tuple[Path, Any]) -> None:
    """By their digests, which the ledger compares: from the release alone one gets what the vault was asked."""
    folder, heard = source
    certificate = verify(folder)
    schema, method = certificate.public_assumptions, Elixir(**certificate.settings)
    pool = method.pool_of_one(schema, torch.device("cpu"))
    kept = KeptAnswers.read(load_file(folder / ANSWERS), forms_of(schema, pool, 8))
    again = [method.questions(schema).again(each, pool.body_weights(each.body)).digest() for each in kept.replays]
    assert again == [question.digest() for question, _ in heard["features"][-4:]]


def test_a_set_from_a_release_alone_opens_no_data_and_books_nothing(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("reached for data, a vault or a ledger")

    for owner, name in (
        (LocalVault, "__init__"), (LocalVault, "ask"), (Ledger, "open"), (Ledger, "open_to_read"), (DataSource, "load"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, refuse)
    before = {path: path.read_bytes() for path in release.rglob("*") if path.is_file()}
    assert (
        len(load_generator(release).sample(20)[1]) == 20
    )  # its generator needs nothing else either, and is where sets start
    outcome = distil(release, tmp_path / "more", SMALL, tmp_path / "key", Silent())
    certificate, old = verify(tmp_path / "more"), verify(release)
    assert old.has_generator and old.settings["generator_kind"] == "smooth_dcgan"
    assert outcome.releasable and certificate.records == 30
    assert read_release(tmp_path / "more").x.shape == (30, 1, 8, 8)
    assert (certificate.epsilon, certificate.queries, certificate.drawn) == (old.epsilon, old.queries, old.drawn)
    assert certificate.distilled is not None and certificate.distilled.source["epsilon"] == old.epsilon
    assert certificate.distilled.settings["per_class"] == 3
    assert ANSWERS not in certificate.files and not certificate.has_generator
    assert {path: path.read_bytes() for path in release.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "more" / ".run").exists() and {path.name for path in tmp_path.iterdir()} == {
        "given",
        "more",
        "key",
    }


@pytest.mark.parametrize("call", [1, 3, 8, 13, 17])
def test_broken_off_and_taken_up_ends_in_the_same_set(release: Path, call: int, tmp_path: Path) -> None:
    wanted = Distillation(per_class=3, updates=4, part=2, generator=6, pictures=2)  # 6 steps and 2 * 4
    whole, broken, saves = tmp_path / "whole", tmp_path / "broken", [0]
    distil(release, whole, wanted, tmp_path / "key", Silent())
    original = StepLog._save

    def breaking(*arguments: Any) -> None:
        saves[0] += 1
        if saves[0] == call:
            raise KeyboardInterrupt
        original(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StepLog, "_save", breaking)
        if call <= 14:
            with pytest.raises(KeyboardInterrupt):
                distil(release, broken, wanted, tmp_path / "key", Silent(), checkpoint_seconds=0.0)
            with pytest.raises(RunConflict, match="unfinished run"):
                distil(release, broken, wanted, tmp_path / "key", Silent())
        else:
            distil(release, broken, wanted, tmp_path / "key", Silent(), checkpoint_seconds=0.0)
    if call <= 14:
        work.resume(broken, Silent())
    first, second = read_release(whole), read_release(broken)
    assert np.array_equal(first.x, second.x)
    for folder in (whole, broken):
        assert verify(folder).has_generator
    weights = [load_file(folder / "generator.safetensors") for folder in (whole, broken)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_a_run_that_was_begun_before_there_was_a_choice_goes_on_as_it_was(release: Path, tmp_path: Path) -> None:
    """Of network and precision nothing was said then: the checkpoint is taken up, and the generator has the same bits."""
    wanted = Distillation(
        per_class=3, updates=1, part=2, generator=4, pictures=2, width=16, kind="upsampling", half=False
    )
    distil(release, tmp_path / "whole", wanted, tmp_path / "key", Silent())
    original, saves = StepLog._save, [0]

    def breaking(*arguments: Any) -> None:
        original(*arguments)
        saves[0] += 1
        if saves[0] == 2:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StepLog, "_save", breaking)
        with pytest.raises(KeyboardInterrupt):
            distil(release, tmp_path / "old", wanted, tmp_path / "key", Silent(), checkpoint_seconds=0.0)
    file = tmp_path / "old" / ".run" / "run.json"
    values = decoded(file.read_bytes())
    settings = values[FIELD]["wanted"]
    # All others are stated, so that defaults which changed since (updates, width) do not matter.
    assert set(settings) == {field.name for field in dataclasses.fields(Distillation)}
    del settings["half"], settings["kind"]
    file.write_bytes(encoded(values))
    told = json.dumps(settings, sort_keys=True)
    identity = hashlib.sha256(f"{values[FIELD]['source']} {told}".encode()).hexdigest()[:32]  # as version 0.6.0 had it
    assert Work.read(tmp_path / "old").identity == identity
    assert Work.read(tmp_path / "old").wanted == wanted
    took_up = saves[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StepLog, "_save", breaking)
        take_up(tmp_path / "old", Silent())
    assert saves[0] > took_up
    weights = [load_file(tmp_path / name / "generator.safetensors") for name in ("whole", "old")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_half_precision_is_for_products_alone(release: Path, tmp_path: Path) -> None:
    """What is released is in single precision, and close to what single precision throughout would have made."""
    found = []
    for name, half in (("half", True), ("single", False)):
        wanted = Distillation(per_class=3, updates=0, generator=2, pictures=2, half=half)
        distil(release, tmp_path / name, wanted, tmp_path / "key", Silent())
        found.append(load_file(tmp_path / name / "generator.safetensors"))
    for name, value in found[0].items():
        assert value.dtype == torch.float32 and torch.allclose(value, found[1][name], atol=5e-3)


def test_what_is_made_of_a_release_where_nothing_is_said() -> None:
    assert wanted_from({"generator": "auto"}).generator == wanted_from({"generator": USUAL_STEPS}).generator > 0
    assert wanted_from({}).generator == 0 and wanted_from({}).updates == 1000


def test_the_network_of_a_generator_is_chosen_by_the_size_of_pictures() -> None:
    """usual: at the size at which the method looked at them; auto: at the full one, as runs were begun before version 0.8.0."""

    def network(shape: tuple[int, ...], size: int = 0, **settings: Any) -> tuple[str, int, int]:
        wanted = Distillation(generator=5, **settings)
        schema = dataclasses.replace(IMAGES, shape=shape)
        schedule = wanted.schedule(schema, size)
        assert schedule is not None and schedule.steps == 5
        assert wanted.made(schema, size).shape[1] == (schedule.size or shape[1])
        return schedule.kind, schedule.width, schedule.size

    assert network((1, 28, 28)) == network((3, 32, 48)) == network((3, 32, 48), kind="auto") == ("smooth_dcgan", 32, 0)
    assert network((3, 49, 32)) == network((3, 49, 32), 32, kind="auto") == ("upsampling", 16, 0)
    assert network((3, 128, 128), 32) == ("smooth_dcgan", 32, 32)
    assert network((3, 128, 128), 64) == ("upsampling", 16, 64)
    assert network((1, 28, 28), kind="upsampling") == ("upsampling", 16, 0)
    assert network((3, 64, 64), 32, kind="smooth_dcgan", width=8) == ("smooth_dcgan", 8, 0)
    assert Distillation().schedule(IMAGES, 0) is None


def test_another_release_is_not_taken_up_for_the_first(release: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StepLog, "_save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            distil(release, tmp_path / "more", SMALL, tmp_path / "key", Silent(), checkpoint_seconds=0.0)
    kept = (tmp_path / "more" / ".run" / "run.json").read_bytes()
    (release / NAME).rename(tmp_path / "aside")
    with pytest.raises(RunConflict, match="not there any more"):
        take_up(tmp_path / "more", Silent())
    (tmp_path / "aside").rename(release / NAME)
    (tmp_path / "more" / ".run" / "run.json").write_bytes(kept.replace(b'"updates": 4', b'"updates": 5'))
    with pytest.raises(RunConflict, match="damaged"):
        work.resume(tmp_path / "more", Silent())


def test_seeds_and_starts_give_other_sets(release: Path, tmp_path: Path) -> None:
    def pictures(name: str, **settings: Any) -> Any:
        wanted = wanted_from({"per_class": 3, "updates": 2, "part": 2} | settings)
        distil(release, tmp_path / name, wanted, tmp_path / "key", Silent())
        return read_release(tmp_path / name).x

    found = [pictures("a"), pictures("b", seed=1), pictures("c", start="first"), pictures("d", updates=0)]
    assert len({each.tobytes() for each in found}) == 4
    assert np.array_equal(found[0], pictures("again"))
    assert pictures("e", rows=23).shape[0] == 23


def test_without_a_generator_a_set_starts_from_the_pictures_of_the_release(tmp_path: Path) -> None:
    """`auto` is what runs were begun with before, and still the first set's model where there is no generator."""
    bare = made(tmp_path / "bare", SETTINGS | {"generator": 0})

    def pictures(start: str) -> Any:
        wanted = wanted_from({"per_class": 3, "updates": 1, "part": 2, "eta": 1e-9, "start": start})
        distil(bare, tmp_path / start, wanted, tmp_path / "key", Silent())
        return read_release(tmp_path / start).x

    found = {start: pictures(start) for start in ("usual", "release", "auto", "first")}
    assert np.array_equal(found["usual"], found["release"]) and np.array_equal(found["auto"], found["first"])
    assert wanted_from({}).start == "usual"
    own = (
        read_release(bare).x.reshape(10, 2, -1)[:, [0, 1, 0]].reshape(30, -1)
    )  # two of each class: the first once more
    assert np.abs(found["usual"].reshape(30, -1) - own).mean() < 0.1
    assert np.abs(found["first"].reshape(30, -1) - own).mean() > 0.2
    with pytest.raises(BadSettings, match="nothing new where there is no generator"):
        distil(bare, tmp_path / "none", wanted_from({"updates": 0}), tmp_path / "key", Silent())


def test_the_generator_that_comes_with_a_release_is_a_start_where_it_is_asked_for(
    release: Path, tmp_path: Path
) -> None:
    def pictures(name: str, **settings: Any) -> Any:
        wanted = wanted_from({"per_class": 3, "updates": 1, "part": 2, "eta": 1e-9} | settings)
        distil(release, tmp_path / name, wanted, tmp_path / "key", Silent())
        return read_release(tmp_path / name).x

    found = {start: pictures(start, start=start) for start in ("usual", "release", "generator")}
    assert np.array_equal(found["usual"], found["release"]) and not np.array_equal(found["usual"], found["generator"])
    drawn = pictures("drawn", updates=0)  # without a move only the generator has anything new
    assert np.abs(drawn - found["generator"]).mean() < 0.05


def test_copies_of_a_picture_are_told_apart() -> None:
    own, of = torch.tensor([0.5, -0.5, 1.0])[:, None, None, None].expand(3, 1, 4, 4), torch.tensor([0, 0, 1])
    found = copies(own, of, torch.tensor([0, 0, 0, 1, 1]), torch.Generator().manual_seed(0))
    means = found.mean((1, 2, 3))
    assert torch.allclose(means, torch.tensor([0.5, -0.5, 0.5, 1.0, 1.0]), atol=0.06)
    assert float(found.abs().max()) <= 1 and len({each.numpy().tobytes() for each in found}) == 5


def answers_of(release: Path) -> Rematching:
    certificate = verify(release)
    schema, method = certificate.public_assumptions, Elixir(**certificate.settings)
    pool = method.pool_of_one(schema, torch.device("cpu"))
    kept = KeptAnswers.read(load_file(release / ANSWERS), forms_of(schema, pool, 8))
    return Rematching(kept.replays, method.questions(schema), pool, torch.device("cpu"))


def test_sets_start_from_a_drawing_of_the_same_release(release: Path, tmp_path: Path) -> None:
    """Its generator's pictures, as if it had been matched again; broken off and taken up it ends in the same set."""
    key, small = tmp_path / "key", {"per_class": 3, "updates": 3, "part": 2}
    distil(release, tmp_path / "drawing", wanted_from(small | {"generator": 3, "pictures": 2}), key, Silent())
    weights = (tmp_path / "drawing" / "generator.safetensors").read_bytes()
    wanted = wanted_from(small)
    distil(release, tmp_path / "more", wanted, key, Silent(), drawing=tmp_path / "drawing")
    distil(release, tmp_path / "without", wanted, key, Silent())
    certificate = verify(tmp_path / "more")
    assert certificate.distilled is not None and not certificate.has_generator
    assert (
        certificate.distilled.settings["drawn_from"]
        == hashlib.sha256((tmp_path / "drawing" / NAME).read_bytes()).hexdigest()
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StepLog, "_save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            distil(release, tmp_path / "broken", wanted, key, Silent(), 0.0, drawing=tmp_path / "drawing")
    (tmp_path / "drawing").rename(tmp_path / "aside")
    with pytest.raises(BadInput, match="no set in"):
        work.resume(tmp_path / "broken", Silent())
    shutil.copytree(tmp_path / "without", tmp_path / "drawing")
    with pytest.raises(RunConflict, match="not the one any more"):
        work.resume(tmp_path / "broken", Silent())
    shutil.rmtree(tmp_path / "drawing")
    (tmp_path / "aside").rename(tmp_path / "drawing")
    work.resume(tmp_path / "broken", Silent())
    x = {name: read_release(tmp_path / name).x for name in ("more", "broken", "without")}
    assert np.array_equal(x["more"], x["broken"]) and not np.array_equal(x["more"], x["without"])
    assert (tmp_path / "drawing" / "generator.safetensors").read_bytes() == weights


def test_a_start_that_another_budget_paid_for_is_refused(release: Path, tmp_path: Path) -> None:
    """The certificate states what one release's answers cost: pictures that are made of another's have no place in the set."""
    key, wanted = tmp_path / "key", SMALL
    another = shutil.copytree(release, tmp_path / "another")
    tensors = load_file(another / ANSWERS)
    tensors["targets"][0, 0, 0] += 1
    save_file(tensors, another / ANSWERS, {"format": "1", "method": "elixir"})
    signed_anew(another, key)
    distil(another, tmp_path / "drawing", dataclasses.replace(SMALL, generator=2, pictures=2), key, Silent())
    distil(release, tmp_path / "bare", dataclasses.replace(SMALL, start="first"), key, Silent())
    for drawing, said in (
        (tmp_path / "drawing", "was not distilled from"),
        (another, "was not distilled from"),
        (tmp_path / "bare", "no generator to start from"),
        (tmp_path / "nowhere", "no set in"),
    ):
        with pytest.raises(BadInput, match=said):
            distil(release, tmp_path / "more", wanted, key, Silent(), drawing=drawing)
        assert not (tmp_path / "more").exists()
    for changed in ({"generator": 2}, {"start": "first"}, {"start": "release"}):
        with pytest.raises(BadSettings, match="starts from one place"):
            chosen = dataclasses.replace(wanted, **changed)
            distil(release, tmp_path / "more", chosen, key, Silent(), drawing=tmp_path / "bare")


def test_a_set_comes_nearer_to_the_answers(release: Path, tmp_path: Path) -> None:
    """The matching moves where the answers are: their loss falls, also for parts of a set."""
    answers = answers_of(release)

    def loss(updates: int) -> float:
        folder = tmp_path / str(updates)
        wanted = Distillation(per_class=20, updates=updates, part=10, average=0.5)
        distil(release, folder, wanted, tmp_path / "key", Silent())
        made = read_release(folder)
        x, y = torch.from_numpy(made.x), torch.from_numpy(made.y)
        return float(answers.mean_loss(range(len(answers)), x, y))

    assert loss(60) < 0.9 * loss(0)


def test_parts_of_a_set_have_its_own_loss_on_average(release: Path) -> None:
    """Without what is taken off for the pictures elsewhere, parts are farther from an answer than the set is, by its spread."""
    answers, rng = answers_of(release), torch.Generator().manual_seed(0)
    pictures, labels = torch.rand(4, 10, 1, 8, 8, generator=rng) * 2 - 1, torch.arange(10)
    whole = float(answers.loss(0, pictures.flatten(0, 1), labels.repeat(4)))
    pairs = [pictures[list(pair)].flatten(0, 1) for pair in combinations(range(4), 2)]
    parts = [float(answers.loss(0, pair, labels.repeat(2), elsewhere=torch.full((10,), 0.5))) for pair in pairs]
    assert np.mean(parts) == pytest.approx(whole, rel=1e-4)
    assert np.mean([float(answers.loss(0, pair, labels.repeat(2))) for pair in pairs]) > 1.05 * whole
    assert float(answers.loss(0, pictures[0], labels, elsewhere=1.0)) > whole  # of one picture no spread is known


def test_every_picture_has_adam_moments_of_its_own() -> None:
    """Adam's first step is `eta` long for whoever is moved for the first time, however often others were."""
    pictures = Pictures(torch.zeros(3, 1, 2, 2))
    for _ in range(5):
        pictures.move(torch.tensor([0]), torch.ones(1, 1, 2, 2), 0.1, 0.0)
    pictures.move(torch.tensor([1]), torch.full((1, 1, 2, 2), 5.0), 0.1, 0.0)
    assert torch.allclose(pictures.average[1], torch.full((1, 2, 2), -0.1), atol=1e-6)
    assert torch.allclose(pictures.now[0], torch.full((1, 2, 2), -0.5), atol=1e-5)  # one gradient, again and again
    assert torch.equal(pictures.average[2], torch.zeros(1, 2, 2))


def test_a_release_without_answers_says_so_kindly(tmp_path: Path, release: Path) -> None:
    old = digits_release(tmp_path / "old")
    with pytest.raises(BadInput, match="keeps no answers"):
        distil(old, tmp_path / "more", SMALL, tmp_path / "key", Silent())
    distil(release, tmp_path / "first", SMALL, tmp_path / "key", Silent())
    with pytest.raises(BadInput, match="was itself distilled"):
        distil(tmp_path / "first", tmp_path / "more", SMALL, tmp_path / "key", Silent())
    with pytest.raises(NotAuthentic, match="no release"):
        distil(tmp_path / "nowhere", tmp_path / "more", SMALL, tmp_path / "key", Silent())
    bare = made(tmp_path / "bare", SETTINGS | {"answers": False, "generator": 0})
    assert ANSWERS not in verify(bare).files and not verify(bare).has_generator
    with pytest.raises(BadInput, match="answers=false"):
        distil(bare, tmp_path / "more", SMALL, tmp_path / "key", Silent())
    with pytest.raises(BadInput, match="join that one"):
        join((tmp_path / "first", old), "both", tmp_path / "union", tmp_path / "key", lambda *_: {})
    assert not (tmp_path / "more").exists()


def cut(tensors: dict[str, Any]) -> None:
    tensors["targets"] = tensors["targets"][:, :, :-1].contiguous()


def infinite(tensors: dict[str, Any]) -> None:
    tensors["centres"][0, 0, 0] = float("inf")


def missing(tensors: dict[str, Any]) -> None:
    del tensors["scales"]


def foreign(tensors: dict[str, Any]) -> None:
    tensors["more"] = torch.zeros(3)


def none_left(tensors: dict[str, Any]) -> None:
    for name in [name for name in tensors if name != "sizes" and not name.startswith("initial.")]:
        tensors[name] = tensors[name][:0].contiguous()


def negative(tensors: dict[str, Any]) -> None:
    tensors["scales"][0] = -1.0


def doubles(tensors: dict[str, Any]) -> None:
    tensors["networks"] = tensors["networks"].double()


@pytest.mark.parametrize("damage", [cut, infinite, missing, foreign, none_left, negative, doubles])
def test_answers_of_another_form_are_refused_also_under_a_whole_certificate(
    damage: Any, release: Path, tmp_path: Path
) -> None:
    tensors = load_file(release / ANSWERS)
    damage(tensors)
    save_file(tensors, release / ANSWERS, {"format": "1", "method": "elixir"})
    with pytest.raises(NotAuthentic, match="changed"):
        distil(release, tmp_path / "more", SMALL, tmp_path / "key", Silent())
    signed_anew(release, tmp_path / "key")
    verify(release)
    with pytest.raises(NotAuthentic, match="answers cannot be read"):
        distil(release, tmp_path / "more", SMALL, tmp_path / "key", Silent())
    assert not (tmp_path / "more").exists()


def lower_price(values: dict[str, Any]) -> None:
    values["distilled"]["source"]["epsilon"] /= 2


def other_hash(values: dict[str, Any]) -> None:
    values["distilled"]["sha256"] = "0" * 64


def other_settings(values: dict[str, Any]) -> None:
    values["settings"]["T"] += 1


def fewer_drawn(values: dict[str, Any]) -> None:
    values["drawn"]["features"] -= 1


def another_source(values: dict[str, Any]) -> None:
    values["distilled"]["source"] = {"epsilon": 0.1}


@pytest.mark.parametrize("forge", [lower_price, other_hash, other_settings, fewer_drawn, another_source])
def test_a_certificate_that_differs_from_the_one_it_cites_is_refused(forge: Any, release: Path, tmp_path: Path) -> None:
    distil(release, tmp_path / "more", SMALL, tmp_path / "key", Silent())
    values = json.loads((tmp_path / "more" / NAME).read_bytes())
    forge(values)
    values.pop("signature")
    (tmp_path / "more" / NAME).write_bytes(as_json(signed(values, signing_key(tmp_path / "key"))))
    with pytest.raises(NotAuthentic):
        verify(tmp_path / "more")


def test_what_is_not_to_be_shared_is_not_to_be_shared_distilled(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    request = work.asked(ledger=str(tmp_path / "root" / "ledger.sqlite"), insecure_seed=7)
    plan, data = work.plan_for(request.data, "elixir", SETTINGS, None, 1e-5)
    insecure = work.condense(request, plan, data, tmp_path / "root" / "digits", Silent()).release
    outcome = distil(insecure, tmp_path / "more", SMALL, tmp_path / "key", Silent())
    assert not outcome.releasable and not verify(tmp_path / "more").releasable


def test_the_default_method_has_a_generator_to_sample_from(release: Path) -> None:
    x, y = load_generator(release).sample(23, seed=3)
    assert x.shape == (23, 1, 8, 8) and np.abs(x).max() <= 1 and len(set(y.tolist())) == 10


def test_settings_that_make_no_sense_are_refused(tmp_path: Path, release: Path) -> None:
    with pytest.raises(BadSettings, match="has no setting 'speed'"):
        wanted_from({"speed": 1})
    with pytest.raises(BadSettings, match="at least 1"):
        wanted_from({"part": 0})
    with pytest.raises(BadSettings, match="rows=3"):
        distil(release, tmp_path / "more", Distillation(rows=3), tmp_path / "key", Silent())
    assert not (tmp_path / "more").exists()
    table = work.plan_for(work.asked().data, "elixir", SETTINGS, None, 1e-5)[1].schema
    with pytest.raises(BadSettings, match="needs answers of networks"):
        Elixir(T=0, answers=True).check(table)


def test_the_size_that_a_plan_states_is_that_of_the_file(source: tuple[Path, Any]) -> None:
    folder, _ = source
    certificate = verify(folder)
    stated = Elixir(**certificate.settings).kept_bytes(certificate.public_assumptions)
    assert stated == pytest.approx((folder / ANSWERS).stat().st_size, abs=2500)
    assert stated == size_of(forms_of(certificate.public_assumptions, Elixir(**certificate.settings).pool_of_one(
        certificate.public_assumptions, torch.device("cpu")), 8), 4)  # fmt: skip


ADDED = {"answers", "generator", "generator_kind"}  # settings, one after the other


def test_a_run_from_before_goes_on_with_its_own_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its plan has no word on answers: it keeps none, and its networks ask as they are."""
    asked: list[FeatureResidual] = []
    answer = LocalVault.ask

    def listen(vault: LocalVault, grant: Any, label: str, index: int, mapping: Any) -> Any:
        asked.extend([mapping] if label == "features" else [])
        return answer(vault, grant, label, index, mapping)

    monkeypatch.setattr(LocalVault, "ask", listen)
    request = work.asked(ledger=str(tmp_path / "ledger.sqlite"))
    plan, data = work.plan_for(request.data, "elixir", SETTINGS, None, 1e-5)
    before = {name: value for name, value in plan.settings.items() if name not in ADDED}
    old = work.condense(request, dataclasses.replace(plan, settings=before), data, tmp_path / "old", Silent()).release
    certificate = verify(old)
    assert ANSWERS not in certificate.files and not certificate.has_generator and "answers" not in certificate.settings
    assert len(asked) == 6
    assert any(not torch.equal(value, value.half().float()) for each in asked for value in each.weights.values())


def test_a_run_that_was_begun_with_another_generator_ends_with_that(tmp_path: Path) -> None:
    """Its plan has no word on a kind: the network, its precision and the steps that are counted are those of its time."""
    request, lines = work.asked(ledger=str(tmp_path / "ledger.sqlite")), Counting()
    plan, data = work.plan_for(request.data, "elixir", SETTINGS, None, 1e-5)
    assert plan.settings["generator_kind"] == "smooth_dcgan"
    before = {name: value for name, value in plan.settings.items() if name != "generator_kind"}
    old = work.condense(request, dataclasses.replace(plan, settings=before), data, tmp_path / "old", lines).release
    spec = load_generator(old).spec
    assert isinstance(spec, GeneratorSpec) and (spec.kind, spec.width, spec.size) == ("upsampling", 16, 0)
    assert lines.total == SETTINGS["T"] + SETTINGS["generator"]
    found = load_file(old / "generator.safetensors")
    certificate = verify(old)
    method = Elixir(**certificate.settings)
    fit = GeneratorFit(
        GeneratorSchedule(steps=4), certificate.public_assumptions, method.rng, method.seed_at("generator"),
        torch.device("cpu"),
    )  # fmt: skip
    answers = answers_of(old)
    for step in range(4):
        fit.move(step, answers)
    assert all(torch.equal(value, found[name]) for name, value in fit.made().weights.items())


class Counting(Silent):
    total = 0

    def start(self, title: str, total: int, done: int) -> None:
        self.total = total


def test_rounded_weights_are_those_that_asked(source: tuple[Path, Any]) -> None:
    for question, _ in source[1]["features"]:
        assert isinstance(question, FeatureResidual)
        assert all(torch.equal(value, value.half().float()) for value in question.weights.values())
