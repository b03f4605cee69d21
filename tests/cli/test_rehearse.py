"""A rehearsal opens no private record, books nothing, and cannot be mistaken for a release."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from limbeck.data import source as sources
from limbeck.data.stand_in import stand_in
from limbeck.privacy.schema import Column, Schema
from limbeck.vault.ledger import Ledger

Cli = Callable[..., Any]


@pytest.fixture
def poisoned(archive: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The owner's file, which nobody may open."""
    inner = sources.reader_of

    def reader_of(path: Path) -> Any:
        inner(path)

        def read(schema: Schema) -> Any:
            raise AssertionError("a rehearsal has opened a private record")

        return read

    monkeypatch.setattr(sources, "reader_of", reader_of)
    archive.write_bytes(b"not even an archive")
    return archive


def test_nothing_private_is_opened_and_nothing_is_booked(cli: Cli, poisoned: Path, tmp_path: Path) -> None:
    with Ledger.open() as ledger:
        ledger.set_budget("own", 3.0, 1e-4)
        path = ledger.path
    before = path.read_bytes()
    out = tmp_path / "tried"
    given = ("--epsilon", 1, "--methods", "elixir,dpmerf", "--set", "per_class=2", "--out", out, "--json")
    found = cli("rehearse", poisoned, *given)
    assert found.code == 0, found.err
    assert "ledger" not in found.err  # the one of the rehearsal is gone when it ends
    values = json.loads(found.out)
    assert values["booked"] == 0 and values["rehearsal"] and 0 <= values["accuracy"] <= 100 and values["seconds"] > 0
    assert [each["method"] for each in values["attempts"]] == ["elixir", "dpmerf"]
    assert path.read_bytes() == before
    with Ledger.open_to_read(path) as ledger:
        assert not [
            account
            for account in (ledger.account("own"), ledger.account("rehearsal of own"))
            if account and account.bookings
        ]
    made = Path(values["attempts"][0]["folder"])
    assert cli("verify", made).code != 0  # its noise is no secret
    assert json.loads((made / "certificate.json").read_text())["dataset"] == "rehearsal of own"
    assert cli("rehearse", poisoned, *given).code != 0  # nothing is overwritten


def test_stand_ins_have_the_shape_the_sizes_and_the_range() -> None:
    schema = Schema(
        name="scans", shape=(3, 12, 10), classes=tuple(f"c{i}" for i in range(13)), records=500, low=0, high=1,
        class_sizes=(200, *(25,) * 12),
    )  # fmt: skip
    made = stand_in(schema)
    found = made.train.load()
    assert found.x.shape == (500, 3, 12, 10)
    assert np.bincount(found.y, minlength=13).tolist() == [200, *(25,) * 12]
    assert found.x.min() >= 0 and 0.5 < found.x.max() <= 1
    assert made.train.schema.name == "rehearsal of scans" and len(made.test.load()) > 300


def test_rows_of_a_table_are_drawn_from_the_schema() -> None:
    columns = (
        Column(name="age", low=0, high=100, integer=True), Column(name="sex", categories=("f", "m")),
        Column(name="stage", categories=("1", "2", "3"), ordinal=True), Column(name="dose", low=0, high=5, missing=True),
    )  # fmt: skip
    schema = Schema(name="t", shape=(6,), classes=("a", "b"), records=300, columns=columns, unit="who", units=90)
    found = stand_in(schema).train.load()
    assert found.x.shape == (300, 6) and np.abs(found.x).max() <= 1
    assert found.units is not None and len(np.unique(found.units)) <= 90
    assert (found.x[:, 1:3].sum(1) == 1).all()


def test_two_ways_to_name_methods_are_one_too_many(cli: Cli, archive: Path, tmp_path: Path) -> None:
    found = cli("rehearse", archive, "--method", "dm", "--methods", "dm", "--epsilon", 1, "--out", tmp_path / "x")
    assert found.code == 3 or "not both" in found.err
