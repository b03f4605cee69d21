"""A generator beside a set: written, verified, read back, sampled for nothing, and refused in words where there is none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import limbeck
import working as work
from limbeck import Schema
from limbeck.errors import BadInput, NotAuthentic
from limbeck.nets.generators.spec import GeneratorSpec, build_generator
from limbeck.progress import Silent
from limbeck.release.generator import load_generator
from limbeck.release.reader import read_release
from limbeck.release.verification import verify
from releases import digits_release, signed_anew

Cli = Callable[..., Any]
MERF = {"features": 60, "T": 4, "batch": 4, "per_class": 3, "sigma": 1.0}
PRIOR = {
    "R": 1,
    "T": 1,
    "K": 2,
    "B": 20,
    "per_class": 2,
    "sigma": 2.0,
    "width": 4,
    "generator_width": 2,
    "snapshots": 0,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _condensed(tmp_path_factory.mktemp("generator"), "dpmerf", MERF)


def _condensed(root: Path, method: str, settings: dict[str, Any]) -> Path:
    request = work.asked(ledger=str(root / "ledger.sqlite"))
    plan, source = work.plan_for(request.data, method, settings, None, 1e-5)
    return work.condense(request, plan, source, root / method, Silent()).release


@pytest.fixture
def release(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "release")
    return tmp_path / "release"


def test_its_files_are_on_the_certificate(release: Path) -> None:
    files = verify(release).files
    assert {"generator.safetensors", "generator.json", "set.npz"} <= set(files)
    described = json.loads((release / "generator.json").read_text())
    assert described["generator"] == {"kind": "merf", "latent": 5, "law": "normal", "width": 64, "fitted": 0}
    assert described["shares"] == [3] * 10


def test_card_and_page_tell_of_it(release: Path, made: Path) -> None:
    assert "limbeck sample FOLDER" in (release / "README.md").read_text()
    assert "limbeck.load_generator" in (release / "report.html").read_text()
    without = digits_release(release.parent, "other")
    assert "limbeck sample" not in (without / "README.md").read_text()
    assert "load_generator" not in (without / "report.html").read_text()


def test_it_is_rebuilt_from_the_release_alone(release: Path) -> None:
    """The released weights with the latents of the run make the released set again."""
    from limbeck.methods import method_named

    generator, released = load_generator(release), read_release(release)
    latents = generator.spec.latents(30, method_named("dpmerf", MERF).rng("codes", "set"))
    again = generator.network(latents, torch.from_numpy(released.y)).numpy()
    assert np.allclose(again, released.x, atol=1e-6)


def test_sampling_is_reproducible_and_balanced(release: Path) -> None:
    generator = limbeck.load_generator(release)
    x, y = generator.sample(1203, seed=5)
    again, _ = load_generator(str(release)).sample(1203, seed=5)
    assert x.shape == (1203, 1, 8, 8) and x.dtype == np.float32 and np.abs(x).max() <= 1
    assert np.array_equal(x, again) and set(np.bincount(y)) == {120, 121}
    assert not np.array_equal(x, generator.sample(1203, seed=6)[0])
    assert len({row.tobytes() for row in x}) == 1203
    assert generator.sample(4, seed=0)[1].shape == (4,)


def test_one_class_can_be_drawn(release: Path) -> None:
    assert load_generator(release).sample(5, label="7")[1].tolist() == [7] * 5
    with pytest.raises(BadInput, match="no class 'seven'; its classes are: 0, 1"):
        load_generator(release).sample(5, label="seven")


@pytest.mark.parametrize("wrong", [{"count": 0}, {"count": -1}, {"count": 10**9}, {"count": 3, "seed": -1}])
def test_counts_and_seeds_that_make_no_sense_are_refused(release: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(BadInput, match="must lie in"):
        load_generator(release).sample(**wrong)


def test_tables_are_drawn_in_the_shares_of_the_set(tmp_path: Path) -> None:
    y = (np.arange(900) % 3 == 0).astype(np.int64)
    schema = Schema(name="flat", shape=(4,), classes=("low", "high"), records=900, low=0, high=1, augmentation=())
    settings = {"features": 20, "T": 2, "batch": 4}
    condenser = limbeck.Condenser(method="dpmerf", epsilon=10.0, per_class=15, settings=settings)
    condenser.fit(np.zeros((900, 4), np.float32), y, schema=schema, out=tmp_path / "out")
    counts, drawn = np.bincount(condenser.y_), np.bincount(load_generator(tmp_path / "out").sample(300)[1])
    assert drawn.tolist() == (10 * counts).tolist() and drawn[0] > drawn[1]
    assert np.array_equal(condenser.generator_.sample(7, 2)[0], load_generator(tmp_path / "out").sample(7, 2)[0])


def test_a_prior_says_that_it_knows_fixed_latents_only(tmp_path: Path, cli: Cli) -> None:
    release = _condensed(tmp_path, "psg-prior", PRIOR)
    generator = load_generator(release)
    assert (generator.spec.kind, generator.spec.fitted) == ("dcgan", 2)
    assert "2 fixed latents per class" in (release / "README.md").read_text()
    ended = cli("sample", release, "--count", 3, "--json")
    assert ended.json["fitted_latents"] == 2 and "2 fixed latents" in ended.err


def test_the_command_writes_records_and_spends_nothing(made: Path, tmp_path: Path, cli: Cli) -> None:
    ledger = made.parent / "ledger.sqlite"
    before = {path.name: path.read_bytes() for path in made.parent.iterdir() if path.is_file()}
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    ended = cli("sample", made, "--count", 25, "--seed", 3, "--out", one, "--json")
    assert ended.code == 0 and ended.json["count"] == 25 and ended.json["releasable"] is True
    assert cli("sample", made, "--count", 25, "--seed", 3, "--out", two).code == 0
    assert one.read_bytes() == two.read_bytes() and len(np.load(one)["y"]) == 25
    assert {path.name: path.read_bytes() for path in made.parent.iterdir() if path.is_file()} == before
    assert ledger.name in before
    verify(made)


def test_parquet_and_the_default_place(release: Path, cli: Cli) -> None:
    assert cli("sample", release, "--count", 4, "--class", "3", "--out", release.parent / "more.parquet").code == 0
    assert cli("sample", release, "--count", 4, "--seed", 9).code == 0
    assert (release.parent / "release-sample-9.npz").exists() and (release.parent / "more.parquet").exists()
    verify(release)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--count", 0), 2, "count must lie in 1"),
        (("--count", 5, "--class", "x"), 2, "no class 'x'"),
        (("--count", 5, "--seed", -4), 2, "seed must lie in"),
        (("--count", 5, "--out", "more.txt"), 2, "must end in .npz, .parquet or .csv"),
        (("--count", 5, "--out", "more.csv"), 2, "holds pictures, and a .csv file holds a table"),
        (("--count", 5, "--out", "nowhere/more.npz"), 9, "does not exist"),
        (("--count", 5, "--out", "there.npz"), 8, "nothing is overwritten"),
        (("--count", 5, "--out", "release/more.npz"), 7, "inside the release"),
    ],
)
def test_bad_input_is_one_sentence(
    release: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, arguments: tuple[object, ...], code: int, words: str
) -> None:
    monkeypatch.chdir(release.parent)
    Path("there.npz").write_bytes(b"mine")
    ended = cli("sample", "release", *arguments, "--json")
    assert ended.code == code and words in ended.json["error"]["message"]
    assert Path("there.npz").read_bytes() == b"mine" and not Path("more.npz").exists()
    assert not (release / "more.npz").exists()


def test_a_release_without_a_generator_says_so(tmp_path: Path, cli: Cli) -> None:
    other = digits_release(tmp_path)
    ended = cli("sample", other, "--count", 5, "--json")
    assert ended.code == 2 and "no generator (method 'ldpdc' makes none)" in ended.json["error"]["message"]
    assert ended.json["error"]["next_command"] == "limbeck methods"
    assert cli("sample", tmp_path / "nothing", "--count", 5).code == 6


def test_half_a_generator_does_not_verify(release: Path, made: Path) -> None:
    (release / "generator.json").unlink()
    signed_anew(release, made.parent / "signing-key")
    with pytest.raises(NotAuthentic, match="has not all of it"):
        verify(release)


def test_changed_weights_do_not_verify(release: Path) -> None:
    weights = load_file(release / "generator.safetensors")
    save_file({**weights, "first.bias": weights["first.bias"] + 1}, release / "generator.safetensors")
    with pytest.raises(NotAuthentic, match=r"generator\.safetensors was changed"):
        verify(release)


@pytest.mark.parametrize("damage", ["weights", "missing weight", "description", "kind", "shares", "gone"])
def test_a_damaged_generator_is_refused_in_words(release: Path, damage: str) -> None:
    weights, description = release / "generator.safetensors", release / "generator.json"
    if damage == "weights":
        weights.write_bytes(weights.read_bytes()[:-9])
    elif damage == "missing weight":
        kept = load_file(weights)
        kept.pop("first.bias")
        save_file(kept, weights)
    elif damage == "gone":
        weights.unlink()
    else:
        values = json.loads(description.read_text())
        changes: dict[str, Any] = {"description": {"format": 9}, "kind": {"generator": {"kind": "poem", "latent": 5}}}
        description.write_text(json.dumps(values | changes.get(damage, {"shares": [0] * 10})))
    with pytest.raises(NotAuthentic, match="cannot be read"):
        load_generator(release)


def test_specs_survive_json_and_refuse_nonsense() -> None:
    spec = GeneratorSpec(kind="dcgan", latent=10, law="bernoulli", width=16)
    assert GeneratorSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    drawn = spec.latents(400, torch.Generator().manual_seed(0))
    assert set(drawn.unique().tolist()) == {0.0, 1.0} and abs(drawn.mean() - 0.5) < 0.05
    for wrong in ({"kind": "x"}, {"latent": 0}, {"law": "cauchy"}, {"width": True}, {"fitted": -1}):
        with pytest.raises(BadInput):
            GeneratorSpec.from_dict({**spec.to_dict(), **wrong})
    with pytest.raises(BadInput):
        GeneratorSpec.from_dict({"kind": "dcgan", "latent": 3, "colour": 1})


def test_building_one_leaves_the_random_state_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    spec = GeneratorSpec(kind="dcgan", latent=4, width=2)
    one, two = (build_generator(spec, (1, 8, 8), 3, seed=1).state_dict() for _ in range(2))
    assert torch.equal(torch.rand(2), expected) and all(torch.equal(one[name], two[name]) for name in one)
