"""A model is a release like any other: written, read back, verified, scored, and taken for nothing else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import limbeck
import working as work
from limbeck.errors import BadInput, NotAuthentic
from limbeck.evaluate.evaluation import Evaluation
from limbeck.progress import Silent
from limbeck.release.certificate import Certificate
from limbeck.release.model import is_model, load_model, read_model
from limbeck.release.reader import read_release
from limbeck.release.signature import signing_key
from limbeck.release.statement import read_certificate
from limbeck.release.verification import verify
from limbeck.report.page import report_page
from stated import WHOLE, signed

Cli = Callable[..., Any]
SETTINGS = {"T": 3, "B": 100, "sigma": 2.0, "width": 4, "depth": 1}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("model")
    request = work.asked(ledger=str(root / "ledger.sqlite"))
    plan, source = work.plan_for(request.data, "dpsgd", SETTINGS, None, 1e-5)
    return work.condense(request, plan, source, root / "model", Silent()).release


@pytest.fixture
def release(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "model")
    return tmp_path / "model"


def test_its_files_are_these(release: Path) -> None:
    names = sorted(path.name for path in release.rglob("*") if path.is_file())
    assert names == ["README.md", "certificate.json", "config.json", "model.json", "model.safetensors", "report.html"]
    described = json.loads((release / "model.json").read_text())
    assert described["net"] == {"kind": "convnet", "width": 4, "depth": 1}
    assert described["shape"] == [1, 8, 8] and len(described["classes"]) == 10
    assert "[0, 16] scaled to [-1, 1]" in described["input"]


def test_it_verifies_with_its_content_on_the_certificate(release: Path) -> None:
    certificate = verify(release)
    assert certificate.content == "model" and certificate.records == 0
    assert certificate.drawn == {"gradients": 3}
    assert certificate.is_model and is_model(release)


def test_it_is_a_module_ready_to_use(release: Path) -> None:
    network = limbeck.load_model(release)
    assert not network.training and not any(value.requires_grad for value in network.parameters())
    assert network(torch.zeros(2, 1, 8, 8)).shape == (2, 10)
    stored = load_file(release / "model.safetensors")
    assert all(torch.equal(value, stored[name]) for name, value in network.named_parameters())
    assert load_model(str(release)).head.weight.equal(network.head.weight)


def test_card_and_page_speak_of_a_model(release: Path) -> None:
    card = (release / "README.md").read_text()
    for words in ("# digits, classifier", "The way this model was made", "limbeck.load_model", "limbeck verify"):
        assert words in card, words
    page = (release / "report.html").read_text()
    assert "load_model" in page and "set.npz" not in page
    for text in (card, page):
        assert "this set" not in text.lower()


def test_the_page_shows_the_score_of_the_model_itself(release: Path, cli: Cli) -> None:
    found = read_model(release)
    scores = cli("evaluate", release, "--test", "digits", "--json").json
    page = report_page(found.certificate, found.schema, None, Evaluation.from_dict(scores))
    assert f"{scores['accuracy']['model']['mean']:.2f} %" in page


def test_evaluate_scores_the_model_itself(release: Path, cli: Cli) -> None:
    scored = cli("evaluate", release, "--test", "digits", "--json")
    assert scored.code == 0 and scored.json["content"] == "model"
    assert list(scored.json["accuracy"]) == ["model"] and len(scored.json["accuracy"]["model"]["runs"]) == 1
    assert "itself" in cli("evaluate", release, "--test", "digits").out
    refused = cli("evaluate", release, "--test", "digits", "--models", "mlp")
    assert refused.code == 2 and "model" in refused.err


def test_a_model_is_not_read_as_a_set_nor_a_set_as_a_model(release: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="load_model"):
        read_release(release)
    request = work.asked(ledger=str(tmp_path / "ledger.sqlite"))
    plan, source = work.plan_for(request.data, "ldpdc", {"per_class": 2, "sigma": 2.0}, None, 1e-5)
    other = work.condense(request, plan, source, tmp_path / "set", Silent()).release
    assert not is_model(other) and "content" not in json.loads((other / "certificate.json").read_text())
    with pytest.raises(BadInput, match="synthetic set"):
        load_model(other)


def resigned(release: Path, made: Path, **changes: Any) -> None:
    """The certificate as a careless or dishonest owner of the key might sign it."""
    values = {key: value for key, value in read_certificate(release).to_dict().items() if key != "signature"} | changes
    values = {key: value for key, value in values.items() if value is not None}
    key = signing_key(made.parent / "signing-key")
    (release / "certificate.json").write_text(json.dumps(signed(values, key)))


@pytest.mark.parametrize("changes", [{"content": "poem"}, {"content": None}, {"content": "set"}, {"records": 5}])
def test_a_content_that_does_not_fit_is_refused(release: Path, made: Path, changes: dict[str, Any]) -> None:
    resigned(release, made)
    verify(release)
    resigned(release, made, **changes)
    with pytest.raises(NotAuthentic):
        verify(release)


def test_a_certificate_without_the_entry_is_one_of_a_set() -> None:
    assert "content" not in WHOLE.to_dict()
    assert Certificate.from_dict(WHOLE.to_dict()).content == "set"


@pytest.mark.parametrize("damage", ["weights", "missing weight", "description", "net", "gone"])
def test_a_damaged_model_is_refused_in_words(release: Path, damage: str) -> None:
    weights, description = release / "model.safetensors", release / "model.json"
    if damage == "weights":
        weights.write_bytes(weights.read_bytes()[:-9])
    elif damage == "missing weight":
        kept = load_file(weights)
        kept.pop("head.bias")
        save_file(kept, weights)
    elif damage == "description":
        description.write_text("{")
    elif damage == "net":
        description.write_text(description.read_text().replace("convnet", "pickle"))
    else:
        weights.unlink()
    with pytest.raises(NotAuthentic, match="cannot be read"):
        load_model(release)
