"""Columns that another one decides: seen through the noise, kept in every row, stored with the model; others are left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_mosaic import Plain

import working as work
from limbeck.data.records import Records
from limbeck.data.source import DataSource
from limbeck.data.table import decode_rows, encode_rows
from limbeck.errors import BadInput
from limbeck.methods import method_named
from limbeck.methods.mosaic.follow import follow_forms, follows_of, seen_follows, together
from limbeck.methods.mosaic.measured import Measured
from limbeck.nets.generators.table_spec import TableSpec
from limbeck.privacy.schema import Column, Schema
from limbeck.progress import Silent
from limbeck.release.generator import load_generator
from limbeck.release.table_generator import TableGenerator
from limbeck.release.verification import verify
from limbeck.vault.api import Answer
from limbeck.vault.maps.bound import Bound

NAMES = ("hs", "some", "bach", "voc", "mast", "ten", "prof", "five")
COLUMNS = (
    Column(name="years", low=1, high=9, integer=True),
    Column(name="school", categories=NAMES, missing=True),
    Column(name="hours", low=0, high=80, integer=True),
    Column(name="mood", categories=("good", "bad", "none")),
)
SCHEMA = Schema(
    name="schools", shape=(sum(column.width for column in COLUMNS),), classes=("no", "yes"), records=8000, low=-1.0,
    high=1.0, columns=COLUMNS, label="paid", augmentation=(),
)  # fmt: skip


def schools(count: int = 8000) -> Records:
    """Years say the school, also that nobody knows it (9 years); nothing else says anything about the other."""
    random = np.random.default_rng(3)
    years = random.choice(9, count, p=[0.3, 0.2, 0.15, 0.12, 0.1, 0.06, 0.04, 0.01, 0.02])
    columns: dict[str, list[Any]] = {
        "years": (years + 1).tolist(),
        "school": [None if place == 8 else NAMES[place] for place in years],
        "hours": random.integers(0, 81, count).tolist(),
        "mood": random.choice(["good", "bad", "none"], count, p=[0.96, 0.03, 0.01]).tolist(),
    }
    return Records(encode_rows(columns, SCHEMA), (random.random(count) < 0.1 + 0.09 * years).astype(np.int64))


def contradictions(rows: dict[str, np.ndarray]) -> float:
    own = [None if years == 9 else NAMES[int(years) - 1] for years in rows["years"]]
    return float(np.mean([one != two for one, two in zip(own, rows["school"], strict=True)]))


def made(noise: float, **settings: Any) -> dict[str, np.ndarray]:
    records, random = schools(), np.random.default_rng(1)
    x, y = torch.from_numpy(records.x), torch.from_numpy(records.y)

    def ask(label: str, index: int, mapping: Any) -> Answer:
        total = mapping.clipped_sum(x, y, y, 2, Bound(float("inf"))).numpy()
        return Answer((total + noise * random.standard_normal(total.shape)).astype(np.float32), noise)

    chosen = {"T": 60, "components": 40, "form": 2, **settings}
    return decode_rows(method_named("mosaic", chosen).run(SCHEMA, ask, Plain(), torch.device("cpu")).x, SCHEMA)


@pytest.mark.parametrize("settings", [{"rows": 2000}, {"per_class": 1001}, {"rows": 60, "search": 30}])
def test_columns_that_say_the_same_do_not_contradict_each_other(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limbeck.methods.mosaic.condensed.LARGE", 400)
    monkeypatch.setattr("limbeck.methods.mosaic.condensed.TREES", 20)
    rows = made(4.0, **settings)
    assert contradictions(rows) == 0
    assert len(set(rows["school"])) >= 7 or settings["rows"] == 60


def test_schools_that_few_records_have_cost_no_more_than_their_own_rows() -> None:
    """80 records of 'five' and 160 without a school, at a noise of 28 for each pair: what is left over on both sides says it."""
    rows = made(8.0, rows=4000)
    assert contradictions(rows) < 0.03


def measured(counts: np.ndarray, noise: float, seed: int = 0) -> Measured:
    """Two columns with these records together, and their noised shares."""
    random, records = np.random.default_rng(seed), counts.sum()
    sizes, width = counts.shape, sum(counts.shape)
    pairs, precision = np.zeros((1, width, width)), np.zeros((width, width))
    pairs[0, : sizes[0], sizes[0] :] = (counts + noise * random.standard_normal(counts.shape)) / records
    pairs[0, sizes[0] :, : sizes[0]] = pairs[0, : sizes[0], sizes[0] :].T
    precision[: sizes[0], sizes[0] :] = precision[sizes[0] :, : sizes[0]] = (records / noise) ** 2
    single = np.concatenate([counts.sum(1), counts.sum(0)]) + noise * random.standard_normal(width)
    parts = (single[None] / records, np.full(width, (noise / records) ** 2), pairs, precision)
    return Measured(sizes, *(torch.from_numpy(part).float() for part in parts))


def test_many_places_of_few_regions_follow_their_region_and_not_the_other_way() -> None:
    counts = np.zeros((12, 3))
    counts[np.arange(12), np.arange(12) % 3] = np.linspace(2000, 100, 12)
    (found,) = seen_follows(measured(counts, 20.0))
    assert (found.leader, found.column) == (0, 1) and found.cells.tolist() == [0, 1, 2] * 4


@pytest.mark.parametrize("seed", range(20))
def test_what_does_not_decide_a_column_does_not_lead_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    apart = np.outer(np.full(50, 500), [0.95, 0.03, 0.01, 0.01])  # one value nearly always, as a loss that few have
    exceptions = np.diag(rng.uniform(1000, 3000, 8)) @ (0.9 * np.eye(8) + 0.1 / 8)
    for counts in (apart, exceptions, np.full((2, 2), 4000.0)):
        assert seen_follows(measured(counts, 70.0, seed)) == ()


def test_noise_that_hides_everything_shows_nothing() -> None:
    assert seen_follows(measured(np.diag(np.full(8, 100.0)), 50.0)) == ()


def test_a_column_is_drawn_again_with_its_leader_only() -> None:
    counts = np.diag(np.full(4, 2000.0))
    (found,) = seen_follows(measured(counts, 5.0))
    columns = np.array([[False, True, False], [True, False, False], [False, False, True]])
    assert together(columns, [found]).tolist() == [[True, True, False], [True, True, False], [False, False, True]]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("follow")
    source = DataSource(SCHEMA, "here", lambda _: schools())
    method = method_named("mosaic", {"T": 30, "components": 20, "rows": 300, "sigma": 1.0, "search": 0})
    plan = work.make_plan(SCHEMA, method, None, 1e-5)
    asked = work.asked(data=None, ledger=str(root / "ledger.sqlite"), insecure_seed=7)
    return work.condense(asked, plan, source, root / "out", Silent()).release


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ((), lambda rows: len(rows["years"]) == 500),
        (("school = bach",), lambda rows: set(rows["years"]) == {3}),
        (("years = 9",), lambda rows: set(rows["school"]) == {None}),
        (("years <= 2", "school != hs"), lambda rows: set(rows["school"]) == {"some"}),
    ],
)
def test_more_rows_and_rows_under_conditions_do_not_contradict_themselves(
    release: Path, where: tuple[str, ...], holds: Any
) -> None:
    verify(release)
    generator = load_generator(release)
    assert isinstance(generator, TableGenerator)
    rows = decode_rows(generator.sample(500, where=where)[0], SCHEMA)
    assert contradictions(rows) == 0 and holds(rows)


def test_shares_of_a_column_that_follows_are_those_of_its_leader(release: Path) -> None:
    generator = load_generator(release)
    assert isinstance(generator, TableGenerator)
    assert generator.model.rows({}, np.ones(2)).mass == pytest.approx(1.0)
    shares = generator.model.column_shares()
    assert shares["school"][0] == pytest.approx(shares["years"][0]) and shares["school"].sum() == pytest.approx(1.0)


@pytest.mark.parametrize("leaders", [[1, 0], [2, 1], [0, 3], [0, -1], [0]])
def test_leaders_that_cannot_be_are_refused(leaders: list[int]) -> None:
    with pytest.raises(BadInput):
        fields = {"kind": "mosaic", "components": 2, "edges": [0, 0], "opinion": None, "leaders": leaders}
        follow_forms(TableSpec.from_dict(fields), (3, 3))


def test_a_cell_that_a_column_does_not_have_is_refused() -> None:
    spec = TableSpec(components=2, edges=(0, 0), leaders=(0, 1))
    assert follow_forms(spec, (3, 2)) == {"followed": ((3,), torch.int64)}
    assert follows_of(spec, (3, 2), {"followed": torch.tensor([0, 1, 1])})[0].cells.tolist() == [0, 1, 1]
    with pytest.raises(BadInput, match="Column 2 of the model has 2 cells, and another one is named"):
        follows_of(spec, (3, 2), {"followed": torch.tensor([0, 1, 2])})
