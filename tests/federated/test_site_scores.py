"""What a report shows of each site: the mean of its answers, and the pictures as it left them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_federated_runs import GSWGAN, LDPDC, Trial

from limbeck.errors import RunConflict
from limbeck.federated.vault import FederatedVault
from limbeck.methods.parts.generator_training import MEANS
from limbeck.privacy.federation import Terms
from limbeck.release.certificate import Certificate
from limbeck.release.formats import TRAINING_CURVES
from limbeck.release.verification import verify
from limbeck.report.convergence import training_curve_drawings
from limbeck.report.gather import Sources, gather
from limbeck.report.page import render
from limbeck.report.sites import MOST_SITES, last_kept, shown, site_scores
from limbeck.runs.checkpoint import restore_checkpoint, write_checkpoint

SETTINGS = {**GSWGAN, "T": 5, "snapshots": 5}  # s0 takes steps 0 to 2, s1 3 and 4, s2 none


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Trial(tmp_path_factory.mktemp("stays"), seed=3, block=3).run("gswgan", SETTINGS)


def test_a_sites_score_is_the_mean_of_the_answers_that_it_gave(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers themselves are seen where they are asked for one by one; the generator that stays writes down the same."""
    heard: dict[str, list[float]] = {}
    ask = FederatedVault._ask_one

    def hearing(vault: FederatedVault, grant: Any, query: Any, index: int, mapping: Any) -> Any:
        answer = ask(vault, grant, query, index, mapping)
        heard.setdefault("s0" if index < 3 else "s1", []).append(float(answer.values.astype(np.float64).mean()))
        return answer

    monkeypatch.setattr(FederatedVault, "_ask_one", hearing)
    monkeypatch.setattr(FederatedVault, "stays", None)
    Trial(tmp_path, seed=3, block=3).run("gswgan", SETTINGS)
    found = site_scores(verify(release), json.loads((release / TRAINING_CURVES).read_text()))
    assert found == pytest.approx({name: float(np.mean(means)) for name, means in heard.items()}, rel=1e-5)
    assert [len(means) for means in heard.values()] == [3, 2]


def test_the_report_shows_every_site_from_darkening_to_brightening(release: Path) -> None:
    report = gather(Sources(run=release))
    assert {row.name for row in report.sites} == {"s0", "s1"} and all(row.strip for row in report.sites)
    assert [row.score for row in report.sites] == sorted(row.score for row in report.sites)
    page = render(report)
    assert "Site by site" in page and all(f"{row.name} {row.text}" in page for row in report.sites)
    assert "1 sites in between, or without a question" in page
    own = (release / "report.html").read_text()
    assert all(f"{row.name} {row.text}" in own for row in report.sites), "the page in the release shows them, too"


def test_means_below_zero_are_no_curve_and_break_no_page() -> None:
    assert training_curve_drawings({MEANS: [-0.1, -0.2]}) == ()
    assert len(training_curve_drawings({"sizes of another version": [-0.1, -0.2]})) == 1


def test_nothing_is_shown_where_answers_are_no_directions(tmp_path: Path, certificate_of_one: Certificate) -> None:
    assert site_scores(certificate_of_one, {MEANS: [0.1, 0.2]}) == {}
    (tmp_path / "sums").mkdir()
    sums = Trial(tmp_path / "sums", seed=3).run("ldpdc", LDPDC)
    assert site_scores(verify(sums), {MEANS: [0.1, 0.2]}) == {}
    page = render(gather(Sources(run=sums)))
    assert "Site by site" not in page


@pytest.fixture
def certificate_of_one(release: Path) -> Certificate:
    return dataclasses.replace(verify(release), federation=None)


def test_pictures_are_those_of_the_end_of_a_sites_last_block() -> None:
    terms = Terms(name="f", sites=("a", "b"), keys=("0" * 64, "1" * 64), block=2)
    after = np.array([1, 2, 3, 4, 6, 7])
    assert last_kept(terms, after, 7) == {"a": 4, "b": 5}, "after 6 answers, and at the end of the run"
    assert last_kept(terms, after, 9) == {"a": 4, "b": 3}


def test_of_many_sites_both_ends_are_shown() -> None:
    names = [f"s{number:03}" for number in range(MOST_SITES + 3)]
    assert shown(names) == names[:12] + names[-12:] and shown(names[:MOST_SITES]) == names[:MOST_SITES]


def test_a_checkpoint_from_before_the_means_goes_on_without_them(tmp_path: Path) -> None:
    path, means = tmp_path / "checkpoint", torch.full((2,), torch.inf)
    write_checkpoint(path, "g", 1, {"course": torch.ones(2)})
    state = {"course": torch.zeros(2), "means": means}
    assert restore_checkpoint(path, "g", 2, state) == 1
    assert state["course"].tolist() == [1, 1] and bool(means.isinf().all())
    with pytest.raises(RunConflict, match="belongs to another"):
        restore_checkpoint(path, "g", 2, {**state, "more": torch.zeros(1)})
    with pytest.raises(RunConflict, match="belongs to another"):
        restore_checkpoint(path, "g", 2, {"course": torch.zeros(2), "means": means, "seen": means})
