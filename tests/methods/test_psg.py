"""PSG, its prior and its ceilings: the papers' schedule and noise, and that the set learns what it is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from limbeck.data.named import NAMED
from limbeck.errors import BadInput, BadSettings, BudgetRefused
from limbeck.methods import method_named
from limbeck.nets import KINDS
from limbeck.privacy.accounting import price
from limbeck.privacy.calibration import calibrate
from limbeck.progress import Silent
from limbeck.release.reader import read_release
from limbeck.vault.ledger import Ledger
from working import DataReference, asked, condense, make_plan, plan_for

MNIST = NAMED["mnist"].schema
SMALL = {"per_class": 1, "width": 4, "R": 2, "T": 2, "K": 2, "J": 2}
# methods.md's page of test values: noise multipliers of the paper's accountant, and what PLD says they cost
PAPER = {
    (1, 10): (0.604, 8.87), (10, 10): (0.966, 9.29), (20, 10): (1.214, 9.30), (50, 10): (1.741, 9.32),
    (1, 1): (1.124, 0.82), (10, 1): (2.553, 0.91), (20, 1): (3.533, 0.92), (50, 1): (5.510, 0.92),
}  # fmt: skip


@pytest.mark.parametrize(
    ("per_class", "epsilon", "expected"),
    [
        (1, 10, (1000, 1, 1)),
        (10, 10, (1000, 10, 50)),
        (20, 10, (1000, 20, 25)),
        (50, 10, (1000, 50, 10)),
        (10, 1, (200, 10, 50)),
        (200, 1, (200, 50, 10)),
    ],
)
def test_the_schedule_is_the_papers(per_class: int, epsilon: float, expected: tuple[int, int, int]) -> None:
    method = method_named("psg", {"per_class": per_class}).resolved(MNIST, epsilon)
    assert expected == (method.R, method.T, method.J)  # type: ignore[attr-defined]
    kept = method_named("psg", {"R": 3, "T": 4, "J": 5}).resolved(MNIST, epsilon)
    assert (kept.R, kept.T, kept.J) == (3, 4, 5)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("case", "values"), PAPER.items())
def test_the_noise_is_the_papers_by_its_own_accountant(case: tuple[int, float], values: tuple[float, float]) -> None:
    per_class, epsilon = case
    method = method_named("psg", {"per_class": per_class}).resolved(MNIST, epsilon)
    by_rdp = calibrate(lambda noise: method.queries(MNIST, noise), epsilon, 1e-5, "rdp")
    assert by_rdp == pytest.approx(values[0], abs=6e-4)
    assert price(method.queries(MNIST, values[0]), 1e-5).epsilon == pytest.approx(values[1], abs=6e-3)


def test_a_plan_states_the_papers_noise_beside_ours(cli: Any) -> None:
    words = ("plan", "digits", "--method", "psg", "--epsilon", 10, "--per-class", 10)
    stated = cli(*words, "--json").json
    assert stated["queries"][0]["count"] == 100_000
    assert 0.9 * stated["noise_multiplier_rdp"] < stated["noise_multiplier"] < stated["noise_multiplier_rdp"]
    assert f"by RDP alone, as in the papers, {stated['noise_multiplier_rdp']:g}" in cli(*words).out


def made(
    tmp_path: Path, name: str, settings: dict[str, Any], epsilon: float | None = None, data: str = "digits"
) -> Path:
    request = asked(data=data, insecure_seed=3)
    plan, source = plan_for(request.data, name, settings, epsilon, 1e-5)
    return condense(request, plan, source, tmp_path / name, Silent()).release


def similarity_to_class_means(release: Path) -> float:
    """Mean cosine between each synthetic record and the mean of its class in the digits."""
    found, records = read_release(release), DataReference(data="digits").source().load()
    real = records.x.reshape(len(records.x), -1)
    means = np.stack([real[records.y == c].mean(0) for c in range(10)]) - real.mean(0)
    mine = found.x.reshape(len(found.x), -1)
    mine = mine - mine.mean(0)
    rows = means[found.y]
    return float(((mine * rows).sum(1) / np.linalg.norm(mine, axis=1) / np.linalg.norm(rows, axis=1)).mean())


@pytest.mark.parametrize("name", ["psg", "psg-prior"])
def test_the_set_comes_to_look_like_its_classes(tmp_path: Path, name: str) -> None:
    settings = {"per_class": 1, "width": 8, "R": 20, "T": 1, "K": 5, "B": 200, "sigma": 0.3}
    step = {"eta": 1.0} if name == "psg" else {"generator_width": 16}
    assert similarity_to_class_means(made(tmp_path, name, settings | step)) > 0.1


@pytest.mark.parametrize("name", ["dc", "dsa"])
def test_the_ceilings_run_with_an_infinite_budget_only(tmp_path: Path, name: str) -> None:
    with pytest.raises(BudgetRefused):
        made(tmp_path, name, SMALL | {"K": 1}, float("inf"))
    with Ledger.open(asked(data="digits").options.ledger_path) as ledger:
        ledger.set_budget("digits", float("inf"), 0.5)
    found = read_release(made(tmp_path, name, SMALL | {"K": 1}, float("inf")))
    assert found.certificate.private is False
    with pytest.raises(BadInput, match="not private"):
        plan_for(DataReference(data="digits"), name, SMALL, 1.0, 1e-5)


def test_sets_of_the_way_there_are_kept_and_the_last_is_the_result(tmp_path: Path) -> None:
    release = made(tmp_path, "psg", SMALL | {"sigma": 2.0, "snapshots": 4})
    content = np.load(release / "snapshots.npz")
    assert content["after"].tolist() == [2, 4, 6, 8] and content["x"].shape == (4, 10, 1, 8, 8)
    assert np.array_equal(content["x"][-1], read_release(release).x)
    assert not np.array_equal(content["x"][0], content["x"][-1])
    assert "snapshots.npz" in json.loads((release / "certificate.json").read_text())["files"]


def test_no_sets_of_the_way_there_if_none_are_asked_for(tmp_path: Path) -> None:
    assert not (made(tmp_path, "psg", SMALL | {"sigma": 2.0, "snapshots": 0}) / "snapshots.npz").exists()


@pytest.mark.parametrize("net", [kind for kind in KINDS if kind in ("mlp", "lenet", "linear")])
def test_any_network_can_be_matched(tmp_path: Path, net: str) -> None:
    release = made(tmp_path, "psg", SMALL | {"net": net, "sigma": 2.0})
    assert np.isfinite(read_release(release).x).all()


def test_pictures_of_the_prior_stay_in_range(tmp_path: Path) -> None:
    assert np.abs(read_release(made(tmp_path, "psg-prior", SMALL | {"sigma": 2.0})).x).max() <= 1


def test_clipping_per_layer_is_another_sum(cli: Any, tmp_path: Path) -> None:
    cli("budget", "set", "digits", "--epsilon", 1000, "--delta", 1e-3)
    joint = made(tmp_path / "joint", "psg", SMALL | {"sigma": 0.5})
    layers = made(tmp_path / "layers", "psg", SMALL | {"sigma": 0.5, "clipping": "per_layer"})
    assert not np.array_equal(read_release(joint).x, read_release(layers).x)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"R": 0}, "R must be at least 1"),
        ({"K": 0}, "K must be at least 1"),
        ({"B": 0}, "B must be at least 1"),
        ({"C": 0.0}, "C must be positive"),
        ({"C": float("nan")}, "C must be positive"),
        ({"eta": -1.0}, "eta must be positive"),
        ({"sigma": 0.0}, "sigma must be positive"),
        ({"momentum": 1.0}, "momentum must lie"),
        ({"snapshots": -1}, "snapshots"),
        ({"clipping": "each"}, "clipping must be"),
    ],
)
def test_bad_settings_are_refused_in_a_sentence(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(BadSettings, match=word):
        method_named("psg", settings)


def test_a_network_that_mixes_records_has_no_name_here() -> None:
    with pytest.raises(BadInput, match="batchnet"):
        make_plan(MNIST, method_named("psg", {"net": "batchnet"}), 1.0, 1e-5)


def test_the_prior_is_for_pictures() -> None:
    with pytest.raises(BadSettings, match="is a table; use --method psg"):
        make_plan(NAMED["adult"].schema, method_named("psg-prior", {}), 1.0, 1e-5)


def test_a_schedule_beyond_the_budget_is_refused_before_a_record_is_read(cli: Any, tmp_path: Path) -> None:
    cli("budget", "set", "digits", "--epsilon", 1, "--delta", 1e-5)
    refused = cli(
        "condense", "digits", "--method", "psg", "--set", "sigma=0.5", "--set", "R=50", "--out", tmp_path / "out"
    )
    assert refused.code == 3 and "does not cover this plan" in refused.err
    assert not (tmp_path / "out").exists()
