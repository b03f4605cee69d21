"""A generator that stays at a site for a block of steps: the same bits as step by step, paid once, whatever breaks off."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from sites import Lossy
from test_federated_runs import DIGITS, GSWGAN, Trial

from limbeck.errors import BadInput, LimbeckError, VaultUnreachable, WallBreach
from limbeck.federated.desk import Desk
from limbeck.federated.running import federated_plan
from limbeck.federated.vault import FederatedVault
from limbeck.methods import method_named
from limbeck.release.reader import read_release
from limbeck.release.verification import verify
from limbeck.vault.api import Grant
from limbeck.vault.local import LocalVault
from limbeck.vault.process import requests as say
from limbeck.vault.process.requests import message_of, read
from limbeck.vault.process.wire import from_bytes, to_bytes

SETTINGS = {**GSWGAN, "T": 7, "snapshots": 2}  # blocks of three, and a set that is kept after step 4, inside one
TEACHERS = {"per_class": 2, "teachers": 5, "T": 5, "batch": 4, "teacher_batch": 2, "teacher_steps": 1, "fit": 1}
TEACHERS |= {"first_steps": 1, "sigma": 9.0, "second": 4, "width": 4, "snapshots": 2}


def content(release: Path) -> dict[str, Any]:
    """All that a run has made, but for what names the run itself."""
    found = {path.relative_to(release).as_posix(): path.read_bytes() for path in release.rglob("*.safetensors")}
    return {"x": read_release(release).x.tobytes(), "drawn": verify(release).drawn, **found}


def one_by_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FederatedVault, "stays", None)


@pytest.fixture
def expected(tmp_path: Path) -> Mapping[str, Any]:
    """A run that asks for one answer at a time, undisturbed."""
    folder = tmp_path / "expected"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        one_by_one(patch)
        return content(Trial(folder, seed=3, block=3).run("gswgan", SETTINGS))


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("gswgan", SETTINGS),
        pytest.param("datalens", TEACHERS, marks=pytest.mark.slow),
        pytest.param("gpate", TEACHERS, marks=pytest.mark.slow),
        pytest.param("pategan", TEACHERS, marks=pytest.mark.slow),
    ],
)
def test_a_block_of_steps_at_a_site_is_the_same_bits_as_step_by_step(
    method: str, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, heard = [], []
    answer = Desk.answer

    def hearing(desk: Desk, frame: bytes) -> bytes:
        heard[-1].append(read(from_bytes(frame), say.REQUESTS).kind)
        return answer(desk, frame)

    monkeypatch.setattr(Desk, "answer", hearing)
    for name in ("blocks", "steps"):
        (tmp_path / name).mkdir()
        heard.append([])
        made.append(content(Trial(tmp_path / name, seed=3, block=3).run(method, settings)))
        one_by_one(monkeypatch)
    assert made[0] == made[1] and len(made[0]) > 2
    total, cuts = settings["T"], {3, 6, *(-(-settings["T"] * (i + 1) // 2) for i in range(2))}
    assert heard[0].count("stay") == len([cut for cut in cuts if cut <= total]) and heard[0].count("ask") == 0
    assert heard[1].count("ask") == total and heard[1].count("stay") == 0


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_site_that_dies_inside_a_block_goes_on_there_and_pays_once(
    after: int, expected: Mapping[str, Any], tmp_path: Path
) -> None:
    """s1 dies in its block after so many of its three answers, each stored before the generator followed it."""
    trial, asked = Trial(tmp_path, seed=3, block=3), []
    ask = LocalVault.ask

    def dying(vault: LocalVault, grant: Grant, label: str, index: int, mapping: Any) -> Any:
        if grant.plan.dataset.endswith("-s1"):
            asked.append(index)
            if len(asked) > after:
                raise RuntimeError("killed")
        return ask(vault, grant, label, index, mapping)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalVault, "ask", dying)
        with pytest.raises(LimbeckError, match="Site 's1'"):
            trial.run("gswgan", SETTINGS)
    assert trial.books["s1"].drawn(grant_of(trial)).get("gradients", 0) == after
    paid = trial.spent()
    assert content(trial.go_on()) == expected and trial.spent() == paid


def grant_of(trial: Trial) -> str:
    record: dict[str, str] = json.loads((trial.folder / "out" / ".run" / "run.json").read_text())
    return record["grant"]


def test_a_generator_that_is_lost_on_its_way_back_is_sent_again(expected: Mapping[str, Any], tmp_path: Path) -> None:
    trial = Trial(tmp_path, seed=3, block=3)
    whole = Lossy.exchange

    def losing(self: Lossy, frames: Any, answers: int = 1) -> Any:
        stays = any(read(from_bytes(asked[0]), say.REQUESTS).kind == "stay" for asked in frames.values())
        self.lost = {"s1"} if stays else set()
        return whole(self, frames, answers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lossy, "exchange", losing)
        with pytest.raises(VaultUnreachable, match="Site 's1'"):
            trial.run("gswgan", SETTINGS)
    paid = trial.spent()
    assert content(trial.go_on()) == expected and trial.spent() == paid


class Booked:
    """One site of a run that is booked, and requests to it."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.plan = federated_plan(trial.federation, "gswgan", SETTINGS, None, 1e-5)
        self.vault = FederatedVault(trial.terms, DIGITS.schema, trial.transport())
        self.grant = self.vault.grant(self.plan)
        method = method_named("gswgan", self.plan.settings)
        self.luggage = method.training(DIGITS.schema, torch.device("cpu")).luggage  # type: ignore[attr-defined]
        self.own = self.vault._grant(self.grant, "s0")

    def stay(self, **changes: Any) -> say.Said:
        asked = say.Stay(**{"grant": self.own, "index": 0, "step": 0, "count": 1, "luggage": self.luggage, **changes})
        (reply,) = self.vault._transport.exchange({"s0": [to_bytes(message_of(asked))]})["s0"]
        return read(from_bytes(reply), say.REPLIES)

    def drawn(self) -> int:
        return self.vault.drawn(self.grant)["gradients"]


def test_luggage_that_is_not_of_this_method_is_refused_and_costs_nothing(tmp_path: Path) -> None:
    booked = Booked(Trial(tmp_path, block=3))
    whole = booked.luggage
    name, value = next((name, value) for name, value in whole.items() if value.ndim > 1)
    for wrong in (
        {},
        {key: each for key, each in whole.items() if key != name},
        {**whole, "more": torch.zeros(1)},
        {**whole, name: value.double()},
        {**whole, name: value.flatten()},
    ):
        assert booked.stay(luggage=wrong) == say.Failed("bad_input")
    for steps in ({"step": -1}, {"count": 0}, {"count": -1}, {"step": 6, "count": 2}, {"count": 2**40}):
        assert booked.stay(**steps) == say.Failed("bad_input")
    assert booked.drawn() == 0


def test_a_site_takes_no_more_steps_than_were_booked_there(tmp_path: Path) -> None:
    booked = Booked(Trial(tmp_path, block=3))
    assert isinstance(booked.stay(count=3), say.Stayed)  # seven steps in turns of three: three are the most of any site
    for index, count in ((3, 1), (-1, 1)):
        assert booked.stay(index=index, count=count) == say.Failed("wall_breach")
    plan = federated_plan(booked.trial.federation, "gswgan", {**SETTINGS, "eta_G": 0.1}, None, 1e-5)
    other = Grant(booked.own.id, dataclasses.replace(plan, dataset=booked.own.plan.dataset))
    assert booked.stay(grant=other) == say.Failed("wall_breach")


def test_the_same_steps_again_are_the_same_and_other_steps_in_their_place_are_refused(tmp_path: Path) -> None:
    booked = Booked(Trial(tmp_path, block=3))
    first, again = booked.stay(count=2), booked.stay(count=2)
    assert isinstance(first, say.Stayed) and isinstance(again, say.Stayed) and booked.drawn() == 2
    assert all(torch.equal(value, again.luggage[name]) for name, value in first.luggage.items())
    moved = {**booked.luggage, "parameter.0": booked.luggage["parameter.0"] + 1}
    assert booked.stay(count=2, luggage=moved) == say.Failed("run_conflict")
    assert booked.drawn() == 2


def test_a_generator_that_comes_back_as_something_else_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    booked = Booked(Trial(tmp_path, block=3))
    before = {name: value.clone() for name, value in booked.luggage.items()}
    monkeypatch.setattr("limbeck.federated.site.take_steps", lambda vault, said: {"parameter.0": torch.zeros(3)})
    vault = FederatedVault(booked.trial.terms, DIGITS.schema, booked.trial.transport())
    with pytest.raises(BadInput, match="Site 's0' gave an answer"):
        vault.stay(booked.grant, "gradients", 0, 3, booked.luggage)
    assert all(torch.equal(value, before[name]) for name, value in booked.luggage.items())


def test_a_block_is_one_sites(tmp_path: Path) -> None:
    booked = Booked(Trial(tmp_path, block=3))
    for step, count in ((2, 2), (0, 4), (0, 0), (-1, 1)):
        with pytest.raises(WallBreach, match="not one site's"):
            booked.vault.stay(booked.grant, "gradients", step, count, booked.luggage)
    assert booked.drawn() == 0
