"""Runs in folders of folders, and the set of a run at work: from which runs it is shown, and from which it never is."""

from __future__ import annotations

import dataclasses
import io
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from talk import ask, evaluation_of

import working as work
from limbeck.methods import METHODS
from limbeck.runs.checkpoint import write_checkpoint
from limbeck.runs.record import RunRecord
from limbeck.serve import runs as module
from limbeck.serve.growing import growing, may_grow
from limbeck.serve.inside import NotInside
from limbeck.serve.runs import DEEPEST, Catalog
from releases import copied

GRANT = "0" * 32
GROWS = {"elixir": "mean", "psg": "images", "psg-prior": "images"}


def at_work(folder: Path, method: str = "elixir", epsilon: float | None = 1.0, **options: Any) -> Path:
    """The folder of a run with a checkpoint: three pictures of each class that are the set, and tensors that are not."""
    request = work.asked(ledger=str(folder / "ledger.sqlite"), **options)
    settings = {"per_class": 3, **({"T": 5} if method == "elixir" else {"R": 1, "T": 2} if "psg" in method else {})}
    plan, source = work.plan_for(request.data, method, settings, epsilon, 1e-5)
    (folder / ".run").mkdir(parents=True)
    RunRecord(grant=GRANT, plan=plan, request=request, schema=source.schema).write(folder)
    shades = torch.linspace(-1, 1, 10).repeat_interleave(3)[:, None, None, None].expand(30, 1, 8, 8).clone()
    state = {
        GROWS.get(method, "images"): shades,
        "other": torch.full((30, 1, 8, 8), 0.5),
        "step count": torch.tensor([3]),
    }
    write_checkpoint(folder / ".run" / "checkpoint.safetensors", GRANT, 3, state)
    return folder


@pytest.mark.parametrize("method", list(GROWS))
def test_the_set_of_a_run_at_work(method: str, tmp_path: Path) -> None:
    at_work(tmp_path / "own", method)
    assert may_grow(tmp_path, "own")
    picture = Image.open(io.BytesIO(growing(tmp_path, "own")))
    rows = [picture.getpixel((0, round(picture.height * (row + 0.4) / 10))) for row in range(10)]
    assert rows == sorted(rows) and rows[0] == 0 and rows[-1] == 255  # class by class, each in its row


def test_methods_that_show_their_set_are_these() -> None:
    """Looked at one by one: it is made of answers alone. Methods that keep teachers, critics or a generator show nothing."""
    assert {name: kind.growing for name, kind in METHODS.items() if kind.growing} == GROWS
    assert all(METHODS[name].private for name in GROWS)


@pytest.mark.parametrize(
    ("method", "epsilon", "options"),
    [("elixir", 1.0, {"insecure_seed": 1}), ("dm", float("inf"), {}), ("ndpdc", 1.0, {}), ("dpmerf", 1.0, {})],
    ids=["known noise", "not private", "no tensor", "a generator"],
)
def test_other_runs_show_nothing(method: str, epsilon: float, options: dict[str, Any], tmp_path: Path) -> None:
    at_work(tmp_path / "own", method, epsilon, **options)
    assert not may_grow(tmp_path, "own")
    with pytest.raises(NotInside):
        growing(tmp_path, "own")


def test_a_plan_without_a_price_shows_nothing(tmp_path: Path) -> None:
    folder = at_work(tmp_path / "own")
    record = RunRecord.read(folder)
    free = dataclasses.replace(record.plan, price=dataclasses.replace(record.plan.price, epsilon=float("inf")))
    dataclasses.replace(record, plan=free).write(folder)
    assert not may_grow(tmp_path, "own")


@pytest.mark.parametrize("fault", ["none", "short", "text", "link", "shape"])
def test_a_damaged_checkpoint_is_no_picture(fault: str, tmp_path: Path) -> None:
    folder = at_work(tmp_path / "own")
    path = folder / ".run" / "checkpoint.safetensors"
    content = path.read_bytes()
    path.unlink()
    if fault == "short":
        path.write_bytes(content[: len(content) // 2])
    elif fault == "text":
        path.write_bytes(b"\xff" * 40)
    elif fault == "link":
        (tmp_path / "real").write_bytes(content)
        path.symlink_to(tmp_path / "real")
    elif fault == "shape":
        write_checkpoint(path, GRANT, 3, {"mean": torch.zeros(31, 1, 8, 8)})
    with pytest.raises(NotInside):
        growing(tmp_path, "own")


def test_the_page_has_it_and_the_address_gives_it(runs: Path, serving: Any) -> None:
    at_work(runs / "ward" / "own")
    at_work(runs / "known", insecure_seed=1)
    server = serving(runs)
    page = ask(server, "/run/ward/own")
    assert page.status == 200 and 'src="/run/ward/own/growing"' in page.text and "The set so far" in page.text
    picture = ask(server, "/run/ward/own/growing")
    assert picture.status == 200 and picture.headers["Content-Type"] == "image/png"
    assert "The set so far" not in ask(server, "/run/known").text
    for nothing in ("/run/known/growing", "/run/first/growing", "/run/growing", "/run/ward/growing"):
        assert ask(server, nothing).status == 404


# --- folders in folders ---


def names(root: Path) -> set[str]:
    return {info.name for info in Catalog(root).runs()}


def test_releases_in_folders_are_found_and_shown(runs: Path, serving: Any) -> None:
    copied(runs / "first", runs / "ward" / "a b" / "deep")
    copied(runs / "first", runs / "ward" / "report")
    assert names(runs) == {"first", "second one", "ward/a b/deep", "ward/report"}
    import json

    (runs / "ward" / "a b" / "scores.json").write_text(json.dumps(evaluation_of(runs / "ward" / "a b" / "deep")))
    server = serving(runs)
    listed = ask(server, "/")
    assert "/run/ward/a%20b/deep" in listed.text and listed.text.count("61.25 %") == 1
    assert "61.25 %" in ask(server, "/run/ward/a%20b/deep/report").text
    assert ask(server, "/run/ward/report").status == 200 and ask(server, "/run/ward/report/report").status == 200
    assert ask(server, "/run/ward/report/download").headers["Content-Type"] == "application/zip"
    assert ask(server, "/compare?a=first&b=ward%2Freport").status == 200
    assert ask(server, "/run/ward").status == 404 and ask(server, "/run/ward%2Freport").status == 404


def test_no_link_is_followed_and_no_circle_walked(runs: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    copied(runs / "first", outside / "other")
    (runs / "linked").symlink_to(outside)
    (runs / "ward").mkdir()
    (runs / "ward" / "up").symlink_to(runs)
    assert names(runs) == {"first", "second one"}
    for name in ("linked/other", "ward/up/first", "ward/../first", "first/data", "ward//first", "/first", "first/"):
        assert Catalog(runs).run(name) is None


def test_it_looks_so_deep_and_no_deeper_and_not_into_runs(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at, far = runs, "/".join("abcdef"[: DEEPEST - 1])
    copied(runs / "first", runs / far / "last")
    copied(runs / "first", runs / far / "x" / "too far")
    os.makedirs(runs / "first" / "inner")
    copied(runs / "second one", runs / "first" / "inner" / "hidden")
    copied(runs / "second one", at / ".hidden" / "own")
    assert names(runs) == {"first", "second one", f"{far}/last"} and Catalog(runs).run(f"{far}/x/too far") is None
    for number in range(30):
        (runs / "many" / str(number)).mkdir(parents=True)
    monkeypatch.setattr(module, "MOST_FOLDERS", 3)
    assert {"first", "second one"} <= names(runs)
