"""The curve of accuracy against the epsilon spent so far."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from limbeck.errors import BadInput
from limbeck.evaluate.privacy_curve import spent_after
from limbeck.progress import Silent
from limbeck.release.reader import read_release
from working import DataReference, asked, condense, plan_for

SETTINGS = {"per_class": 2, "width": 4, "R": 2, "T": 2, "K": 2, "J": 1, "B": 50, "sigma": 2.0, "snapshots": 2}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("curve")
    request = asked(data="digits", ledger=str(root / "ledger.sqlite"))
    plan, source = plan_for(request.data, "psg", SETTINGS, None, 1e-5)
    return condense(request, plan, source, root / "psg", Silent()).release


def test_a_curve_ends_at_the_epsilon_of_the_certificate(cli: Any, release: Path, tmp_path: Path) -> None:
    out, picture = tmp_path / "curve.json", tmp_path / "curve.png"
    ended = cli(
        "curve", release, "--test", "digits", "--model", "linear", "--repeats", 2,
        "--out", out, "--picture", picture, "--json",
    )  # fmt: skip
    assert ended.code == 0
    points = ended.json["points"]
    assert [point["step"] for point in points] == [4, 8]
    assert points[0]["epsilon"] < points[1]["epsilon"]
    assert points[1]["epsilon"] == pytest.approx(read_release(release).certificate["epsilon"], abs=1e-5)
    assert all(0 <= point["accuracy"] <= 100 and len(point["runs"]) == 2 for point in points)
    assert json.loads(out.read_text()) == ended.json
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert "edition" not in ended.json  # a public test set


def test_what_was_spent_never_exceeds_the_plan(release: Path) -> None:
    found = read_release(release)
    assert spent_after(found, 10**6) == pytest.approx(found.certificate["epsilon"], abs=1e-5)


def test_private_test_records_make_it_the_owners(cli: Any, release: Path, tmp_path: Path) -> None:
    import numpy as np

    records = DataReference(data="digits").source("test").load()
    np.savez(tmp_path / "own.npz", x=records.x, y=records.y)
    schema = DataReference(data="digits").source("test").schema
    (tmp_path / "own.npz.limbeck.toml").write_text(
        f'name = "own"\nshape = {list(schema.shape)}\nclasses = {list(schema.classes)}\nrecords = {len(records.y)}\n'
        f"low = {schema.low}\nhigh = {schema.high}\naugmentation = []\n"
    )
    ended = cli("curve", release, "--test", tmp_path / "own.npz", "--model", "linear", "--repeats", 1, "--json")
    assert ended.json["edition"] == "owner"


def test_a_release_without_them_says_so(cli: Any, tmp_path: Path) -> None:
    cli("condense", "digits", "--method", "ldpdc", "--set", "sigma=2", "--per-class", 2, "--out", tmp_path / "plain")
    refused = cli("curve", tmp_path / "plain", "--test", "digits")
    assert refused.code != 0 and "keeps no sets of the way there" in refused.err


def test_damaged_snapshots_are_refused(cli: Any, release: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(release, copy)
    (copy / "snapshots.npz").write_bytes(b"PK\x03\x04 not really")
    refused = cli("curve", copy, "--test", "digits")
    assert refused.code != 0 and "damaged" in refused.err
    assert BadInput.__name__ in refused.err or refused.code == 2
