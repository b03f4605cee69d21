"""Mosaic: cells that give back what is in them, a mixture that fits noised marginals, labels that add up, whole tables."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from interrupted import assert_paid_once

import working as work
from limbeck.data.records import Records
from limbeck.data.source import DataSource
from limbeck.data.table import decode_rows, encode_rows
from limbeck.errors import BadSettings
from limbeck.methods import method_named
from limbeck.methods.mosaic.axes import fine_axes
from limbeck.methods.mosaic.bins import bin_starts
from limbeck.methods.mosaic.labels import balanced
from limbeck.methods.mosaic.levels import Levels, agreed, question
from limbeck.methods.mosaic.measured import Measured, as_matrix
from limbeck.methods.mosaic.mixture import Mixture
from limbeck.privacy.schema import Column, Schema
from limbeck.progress import Silent
from limbeck.release.reader import read_release
from limbeck.runs.log import RunLog
from limbeck.vault.api import Answer, Cells
from limbeck.vault.ledger import Ledger

COLUMNS = (
    Column(name="age", low=17, high=90, integer=True),
    Column(name="gain", low=0, high=99_999, integer=True, missing=True),
    Column(name="price", low=-2.5, high=1e6),
    Column(name="city", categories=("Rome", "Oslo", "Lima"), missing=True),
    Column(name="grade", categories=("low", "middle", "high", "top"), ordinal=True),
)
WIDTH = sum(column.width for column in COLUMNS)
SCHEMA = Schema(
    name="people", shape=(WIDTH,), classes=("no", "yes"), records=4000, low=-1.0, high=1.0, columns=COLUMNS,
    label="paid", augmentation=(),
)  # fmt: skip


def people(count: int = 4000) -> tuple[dict[str, list[Any]], np.ndarray]:
    """A table with a spike, gaps, a rare city and a label that goes by two columns together and by neither alone."""
    random = np.random.default_rng(5)
    age = random.integers(17, 91, count)
    city = random.choice(["Rome", "Oslo", "Lima"], count, p=[0.7, 0.28, 0.02])
    gain = np.where(random.random(count) < 0.8, 0, random.integers(5000, 99_999, count))
    columns = {
        "age": age.tolist(),
        "gain": [None if gap else int(value) for gap, value in zip(random.random(count) < 0.2, gain, strict=True)],
        "price": np.exp(random.normal(5, 1, count)).tolist(),
        "city": [None if gap else str(value) for gap, value in zip(random.random(count) < 0.1, city, strict=True)],
        "grade": np.where(age > 50, "high", "low").tolist(),
    }
    is_old, is_rich = age > 50, gain > 0
    return columns, (is_old ^ is_rich).astype(np.int64)


class Plain:
    """A logbook that keeps nothing."""

    def steps(self, total: int, state: dict[str, torch.Tensor], answers: str) -> Iterator[int]:
        return iter(range(total))


def run(
    noise: float, schema: Schema = SCHEMA, seen: list[int] | None = None, **settings: Any
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The method on exact answers with seeded noise: what it makes, decoded."""
    columns, y = people()
    x = torch.from_numpy(encode_rows(columns, SCHEMA))
    random = np.random.default_rng(1)

    def ask(label: str, index: int, mapping: Any) -> Answer:
        if seen is not None:
            seen.append(mapping.width)
        rows = torch.zeros(2, mapping.width).index_add_(0, torch.from_numpy(y), mapping.rows(x, torch.from_numpy(y)))
        noised = rows.numpy() + noise * random.standard_normal(rows.shape)
        return Answer(noised.astype(np.float32), noise)

    made = method_named("mosaic", {"T": 300, "components": 100, **settings}).run(
        schema, ask, Plain(), torch.device("cpu")
    )
    assert isinstance(made.x, np.ndarray)
    return decode_rows(made.x, SCHEMA), made.y


@pytest.mark.parametrize("place", range(len(COLUMNS)))
def test_what_is_drawn_from_a_cell_lies_in_it_also_when_it_is_decoded(place: int) -> None:
    axis = fine_axes(SCHEMA)[place]
    some = np.random.default_rng(0)
    for cut in (axis, axis.coarser([0, *range(3, axis.cells - 1, 7)]) if axis.is_cut else axis):
        cells = some.integers(0, cut.cells, 500)
        encoded = np.zeros((500, WIDTH), dtype=np.float32)
        encoded[:, cut.start : cut.start + cut.column.width] = cut.encoded(cells, some)
        again = encode_rows({name: values.tolist() for name, values in decode_rows(encoded, SCHEMA).items()}, SCHEMA)
        for rows in (encoded, again):
            found = cut.cut().of(torch.from_numpy(rows)).numpy()
            # Records are kept in single precision: a number within a ten-millionth of an edge may fall to its other side.
            assert (found == cells).mean() > (0.97 if place == 2 else 0.999) and np.abs(found - cells).max() <= 1


SPECIAL = (
    Column(name="price", low=0, high=1e6, special=(0.0,)),
    Column(name="change", low=-1e6, high=1e6, special=(0.0, -1.5, 1e6), missing=True),
    Column(name="cents", low=0, high=1e6, digits=2, special=(0, 12.5)),
    Column(name="rate", low=-0.3, high=0.7, digits=1, special=(0, 0.7)),
    Column(name="long", low=0, high=10**9, integer=True, special=(0, 7777, 10**9)),
    Column(name="short", low=-1, high=90, integer=True, special=(-1,)),
    Column(name="born", kind="date", low="1900-01-01", high="2030-12-31", special=("1900-01-01", "2000-02-29")),
    Column(name="seen", kind="time", low="2000-01-01", high="2030-12-31", special=("2001-09-09T01:46:40",)),
    Column(name="week", kind="date", low="2024-01-01", high="2024-01-07"),
)


@pytest.mark.parametrize("column", SPECIAL, ids=lambda column: column.name)
def test_a_special_value_is_a_cell_of_its_own_and_drawn_exactly(column: Column) -> None:
    schema = Schema(name="s", shape=(column.width,), classes=("a", "b"), records=9, columns=(column,))
    axis = fine_axes(schema)[0]
    assert (np.diff(axis.edges) > 0).all() and (torch.diff(axis.cut().edges) > 0).all()
    there = axis.cells - column.missing
    random = np.random.default_rng(0)
    starts = bin_starts(random.normal(3, 5, (2, there)), 25.0, 1000.0, 20, axis.alone)
    for cut in (axis, axis.coarser(starts)):
        assert len(set(cut.alone)) == len(column.points)
        rows = torch.from_numpy(encode_rows({column.name: list(column.special)}, schema))
        order = np.argsort([column._number(value) for value in column.special])
        assert cut.cut().of(rows).numpy()[order].tolist() == cut.alone
        for place, point in zip(cut.alone, column.points, strict=True):
            drawn = cut.encoded(np.full(50, place), random)
            assert (cut.cut().of(torch.from_numpy(drawn)) == place).all()
            values = decode_rows(drawn, schema)[column.name]
            assert {float(value) for value in (values.astype(np.int64) if column.kind else values)} == {point}
        others = random.integers(0, there, 400)
        made = cut.encoded(others[others < cut.cells - column.missing], random)
        again = encode_rows({column.name: decode_rows(made, schema)[column.name].tolist()}, schema)
        assert (cut.cut().of(torch.from_numpy(again)) == cut.cut().of(torch.from_numpy(made))).float().mean() > 0.97


def test_values_next_to_a_special_one_are_not_counted_as_it() -> None:
    column = Column(name="a", low=-1000, high=1e6, special=(0.0,))
    schema = Schema(name="s", shape=(1,), classes=("a", "b"), records=9, columns=(column,))
    axis = fine_axes(schema)[0]
    near = torch.from_numpy(encode_rows({"a": [-0.2, 0.0, 0.2, 1.0]}, schema))
    assert [place == axis.alone[0] for place in axis.cut().of(near).tolist()] == [False, True, False, False]


@given(st.lists(st.integers(-500, 10_000), min_size=1, max_size=300), st.floats(0.01, 1e4), st.integers(2, 60))
def test_bins_are_runs_of_fine_cells(counts: list[int], variance: float, most: int) -> None:
    both = np.array([counts, counts[::-1]], dtype=np.float64)
    starts = bin_starts(both, variance, max(2 * sum(counts), 1), most)
    assert starts[0] == 0 and all(one < two for one, two in itertools.pairwise(starts)) and starts[-1] < len(counts)


def test_no_more_pairs_are_asked_for_than_may_be_however_many_bins_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """By then the first answer is paid."""
    monkeypatch.setattr("limbeck.methods.mosaic.method.MOST_ASKED", 400)
    asked: list[int] = []
    labels = run(noise=0.05, T=3, rows=60, bins=1000, seen=asked)[1]
    assert len(labels) == 60 and asked[1] <= 400 < asked[0]
    monkeypatch.setattr("limbeck.methods.mosaic.method.MOST_ASKED", 0)
    run(noise=0.05, T=3, rows=60, bins=1000, seen=asked)
    assert asked[-1] < 60


def test_a_value_that_most_records_have_is_a_bin_of_its_own_and_noise_is_none() -> None:
    random = np.random.default_rng(2)
    counts = random.normal(0, 20.0, (2, 100_000))
    counts[:, 0] += 4000
    counts[1, 15_024] += 300
    starts = bin_starts(agreed([counts, *wider(counts, random)], 47), 400.0, 10_000, 40)
    assert {0, 1, 15_024, 15_025} <= set(starts) and len(starts) < 12


def wider(counts: np.ndarray, random: np.random.Generator) -> list[np.ndarray]:
    """The same records in nodes of 47 and 47 * 47 cells, with noise of their own in place of that of the cells."""
    exact = np.where(counts > 200, counts, 0)
    sums = [np.add.reduceat(exact, np.arange(0, counts.shape[1], width), axis=1) for width in (47, 47 * 47)]
    return [each + random.normal(0, 20.0, each.shape) for each in sums]


def test_a_column_is_cut_where_the_classes_change_places_though_the_records_are_even() -> None:
    random = np.random.default_rng(2)
    exact = np.zeros((2, 20_000))
    places = random.integers(0, 20_000, 4000)
    np.add.at(exact, ((places > 7000).astype(int), places), 1)
    levels = Levels.of(20_000)
    nodes = [np.add.reduceat(exact, levels.starts(level), axis=1) for level in range(levels.count)]
    noised = [each + random.normal(0, 20.0, each.shape) for each in nodes]
    starts = np.array(bin_starts(agreed(noised, levels.branch), 400.0, 4000, 5))
    assert np.abs(starts - 7000).min() < 300 and len(starts) < 12


@given(st.integers(1, 400), st.integers(2, 9), st.integers(1, 3), st.randoms(use_true_random=False))
def test_agreed_counts_are_those_of_least_squares(cells: int, branch: int, count: int, random: Any) -> None:
    """The brute-force twin: all nodes as sums of fine cells, solved at once."""
    rng = np.random.default_rng(random.randrange(1 << 30))
    cells = min(cells, 60)
    nodes = [np.arange(0, cells, branch**level) for level in range(count)]
    sums = [np.add.reduceat(np.eye(cells), begin, axis=0) for begin in nodes]
    seen = [rng.normal(0, 5, (2, len(begin))) for begin in nodes]
    expected = np.linalg.lstsq(np.concatenate(sums), np.concatenate(seen, axis=1).T, rcond=None)[0].T
    assert agreed(seen, branch) == pytest.approx(expected, abs=1e-8)


def test_categories_are_counted_one_by_one_however_many_there_are() -> None:
    column = Column(name="town", categories=tuple(map(str, range(400))), missing=True)
    schema = Schema(name="s", shape=(column.width,), classes=("a", "b"), records=9, columns=(column,))
    cells = question(fine_axes(schema))
    assert cells.width == 401 and cells.weights == ()


@given(st.integers(1, 30_000), st.data())
def test_an_interval_is_covered_by_few_nodes(cells: int, data: st.DataObject) -> None:
    levels = Levels.of(cells)
    begin = data.draw(st.integers(0, cells - 1))
    end = data.draw(st.integers(begin + 1, cells))
    place, nodes = begin, 0
    while place < end:  # the brute-force twin: always the widest node that fits
        place += max(
            levels.branch**level
            for level in range(levels.count)
            if level == 0 or (place % levels.branch**level == 0 and place + levels.branch**level <= end)
        )
        nodes += 1
    assert levels.cover(np.array([begin]), np.array([end]))[0] == nodes


def test_counts_of_cells_are_those_of_a_plain_loop() -> None:
    columns, y = people(300)
    x = torch.from_numpy(encode_rows(columns, SCHEMA))
    axes = [
        axis.coarser(range(0, axis.cells - 1, max(axis.cells // 30, 3))) if axis.is_cut else axis
        for axis in fine_axes(SCHEMA)
    ]
    mapping = Cells(cuts=tuple(axis.cut() for axis in axes), tuples=((0, 3), (4,), (1, 2, 3)))
    found = [cut.of(x).tolist() for cut in mapping.cuts]
    expected: list[float] = []
    for part in mapping.tuples:
        sizes = [mapping.cuts[place].cells for place in part]
        table = np.zeros(sizes)
        for record in range(len(x)):
            table[tuple(found[place][record] for place in part)] += mapping.weight
        expected += table.flatten().tolist()
    rows = mapping.rows(x, torch.from_numpy(y))
    assert rows.sum(0).tolist() == pytest.approx(expected, abs=1e-3)
    assert torch.allclose(rows.norm(dim=1), torch.ones(len(x)))


def test_single_shares_are_bettered_by_the_sums_of_pairs() -> None:
    sizes, random = (2, 3), torch.Generator().manual_seed(0)
    joint = torch.rand(2, 6, generator=random)
    joint /= joint.sum()
    pairs = as_matrix(joint, sizes)
    assert torch.equal(pairs, pairs.mT)
    single = torch.stack([torch.cat([part.view(2, 3).sum(1), part.view(2, 3).sum(0)]) for part in joint])
    precision = as_matrix(torch.full((1, 6), 4.0), sizes)[0]
    noised = Measured(sizes, single + 0.3, torch.full((5,), 0.5), pairs, precision)
    better, variance = noised.combined()
    assert variance.tolist() == pytest.approx([0.3, 0.3] + [1 / 4] * 3)
    assert torch.allclose(better[:, :2], single[:, :2] + 0.3 * 0.3 / 0.5)


def test_a_mixture_draws_its_own_shares() -> None:
    single = torch.tensor([[0.1, 0.2, 0.3], [0.3, 0.1, 0.4]])
    mixture = Mixture((2, 1), single, 5, torch.Generator().manual_seed(1))
    cells, labels = mixture.drawn(5000, np.random.default_rng(0))
    assert cells.shape == (5000, 2) and cells[:, 1].max() == 0
    with torch.no_grad():
        chances, shares = mixture()
    assert np.bincount(labels) == pytest.approx(5000 * shares.sum(1).numpy(), abs=3)
    assert (cells[:, 0] == 0).mean() == pytest.approx(float((chances[:, :, 0] * shares).sum()), abs=0.02)
    assert set(mixture.drawn(10, np.random.default_rng(0), label=1)[1].tolist()) == {1}


def test_balanced_labels_add_up_in_every_cell() -> None:
    random = np.random.default_rng(3)
    places = np.stack([random.integers(0, 4, 6000), 4 + random.integers(0, 5, 6000)], axis=1)
    chance = 0.1 + 0.1 * places[:, 0] + 0.05 * (places[:, 1] - 4)
    labels = balanced(np.stack([1 - chance, chance], axis=1), places, 9, random)
    for one, two in itertools.product(range(4), range(4, 9)):
        here = (places == (one, two)).all(1)
        assert labels[here].sum() == pytest.approx(chance[here].sum(), abs=6)  # about 300 rows: drawn freely +- 8


def test_a_rare_class_lands_on_the_rows_that_have_the_chance_of_it() -> None:
    """Moved as much as others whatever its chance, it was spread over rows that have next to none: 3.6, where 4.0 is right."""
    random = np.random.default_rng(5)
    first = np.minimum(random.geometric(0.5, 6000) - 1, 5)
    places = np.concatenate([first[:, None], random.integers(0, 3, (6000, 5)) + 6 + 3 * np.arange(5)], axis=1)
    rare = 0.0004 * 3.0**first
    chances = np.stack([0.7 - rare, np.full(6000, 0.3), rare], axis=1)
    found = []
    for seed in range(8):
        labels = balanced(chances, places, 21, np.random.default_rng(seed))
        found.append(first[labels == 2].mean())
        assert (labels == 2).sum() == pytest.approx(rare.sum(), abs=6)
    assert np.mean(found) == pytest.approx((rare * first).sum() / rare.sum(), abs=0.2)


def test_a_class_without_a_chance_is_never_drawn() -> None:
    random = np.random.default_rng(6)
    places = np.stack([random.integers(0, 2, 2000), np.full(2000, 2)], axis=1)
    chance = np.where(places[:, 0] == 0, 0.5, 0.0)
    labels = balanced(np.stack([1 - chance, chance], axis=1), places, 3, random)
    assert labels[places[:, 0] == 1].sum() == 0 and 400 < labels.sum() < 600


def test_rows_have_the_shares_of_the_records_and_gaps_stay_gaps() -> None:
    columns, y = people()
    made, labels = run(noise=0.05)
    assert len(labels) == 4000 and labels.mean() == pytest.approx(y.mean(), abs=0.01)
    for name in ("gain", "city"):
        gaps = np.mean([value is None for value in columns[name]])
        assert np.mean([value is None for value in made[name]]) == pytest.approx(gaps, abs=0.015)
    there = [value for value in made["gain"] if value is not None]
    assert np.mean([value == 0 for value in there]) == pytest.approx(0.8, abs=0.02)
    assert np.mean(made["age"]) == pytest.approx(np.mean(columns["age"]), abs=0.7)
    cities = [value for value in made["city"] if value is not None]
    assert np.mean([value == "Lima" for value in cities]) == pytest.approx(0.02, abs=0.008)  # rare, and not lost
    assert (
        np.mean([(age > 50) == (grade == "high") for age, grade in zip(made["age"], made["grade"], strict=True)]) > 0.95
    )


def test_a_label_that_goes_by_two_columns_together_is_not_flattened() -> None:
    made, labels = run(noise=0.05)
    rich = np.array([value is not None and value > 0 for value in made["gain"]])
    known = np.array([value is not None for value in made["gain"]])
    expected = (made["age"] > 50) ^ rich
    assert (labels[known] == expected[known]).mean() > 0.85


def test_the_schemas_number_of_records_may_be_rough() -> None:
    rough = dataclasses.replace(SCHEMA, records=2000)
    made, labels = run(noise=0.05, schema=rough)
    assert len(labels) == 2000
    assert np.mean([value is None for value in made["gain"]]) == pytest.approx(0.2, abs=0.03)


def test_noise_that_drowns_everything_still_makes_a_table() -> None:
    made, labels = run(noise=1e5, rows=50)
    assert len(labels) == 50 and set(made["city"]) <= {"Rome", "Oslo", "Lima", None}
    assert all(17 <= value <= 90 for value in made["age"])


def test_so_many_of_each_class() -> None:
    assert np.bincount(run(noise=0.05, per_class=30)[1]).tolist() == [30, 30]


def test_what_makes_no_sense_is_refused() -> None:
    image = Schema(name="m", shape=(1, 8, 8), classes=("a", "b"), records=100, low=0, high=255)
    with pytest.raises(BadSettings, match="images"):
        method_named("mosaic", {}).check(image)
    with pytest.raises(BadSettings, match="not both"):
        method_named("mosaic", {"rows": 5, "per_class": 5}).check(SCHEMA)


@pytest.mark.parametrize(("epsilon", "sigma"), [(1.0, 3.7306), (0.2, 16.304), (10.0, 0.49989)])
def test_the_price_is_that_of_one_gaussian_exactly(epsilon: float, sigma: float) -> None:
    plan = work.make_plan(SCHEMA, method_named("mosaic", {"share": 0.3}), epsilon, 1e-5)
    together = math.sqrt(1 / sum(query.noise_multiplier**-2 for query in plan.queries))
    assert together == pytest.approx(sigma, rel=1e-3) and plan.price.epsilon <= epsilon
    assert [(query.label, query.count, query.clip) for query in plan.queries] == [
        ("columns", 1, 1.0),
        ("pairs", 1, 1.0),
        ("labels", 1, 1.0),
    ]


def test_runs_that_were_begun_before_the_third_question_go_on_without_it() -> None:
    for settings in ({"form": 2}, {"form": 1}, {"per_class": 5, "search": 0}, {"rows": 50, "search": 9}):
        method = method_named("mosaic", {"share": 0.3, "form": 3, **settings})
        asked = {query.label: query.noise_multiplier for query in method.queries(SCHEMA, 2.0)}
        assert asked == {"columns": 2.0 / math.sqrt(0.3), "pairs": 2.0 / math.sqrt(0.7)}
    asked = {query.label: query.noise_multiplier for query in method_named("mosaic", {}).queries(SCHEMA, 2.0)}
    assert set(asked) == {"columns", "pairs"}  # of a plan without the setting


def source() -> DataSource:
    columns, y = people(600)
    x = encode_rows(columns, SCHEMA)
    return DataSource(SCHEMA, "here", lambda _: Records(x, y))


def released(out: Path, ledger: Path, **settings: Any) -> Any:
    method = method_named("mosaic", {"T": 6, "components": 6, "rows": 40, "search": 0, "sigma": 2.0, **settings})
    plan = work.make_plan(SCHEMA, method, None, 1e-5)
    asked = work.asked(data=None, ledger=str(ledger), insecure_seed=7)
    return work.condense(asked, plan, source(), out, Silent(), checkpoint_seconds=0.0).release


@pytest.mark.parametrize(
    ("owner", "name", "call"),
    [(Ledger, "store", 2), (Ledger, "store", 3), (RunLog, "_save", 3), (RunLog, "_save", 7), (Ledger, "finish", 1)],
)
def test_killed_and_resumed_ends_in_the_same_rows(
    tmp_path: Path, owner: type, name: str, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read_release(released(tmp_path / "whole", tmp_path / "a.sqlite"))
    original, calls = getattr(owner, name), [0]

    def breaking(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return original(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, breaking)
        with pytest.raises(KeyboardInterrupt):
            released(tmp_path / "out", tmp_path / "b.sqlite")
    resumed = read_release(work.resume(tmp_path / "out", Silent(), source=source()).release)
    assert np.array_equal(resumed.x, whole.x) and np.array_equal(resumed.y, whole.y)
    assert_paid_once(tmp_path / "b.sqlite")


def test_a_table_of_one_column_is_resumed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its only answer is asked for again when the run goes on, so no checkpoint may drop it."""
    schema = Schema(
        name="one", shape=(1,), classes=("a", "b"), records=300, low=-1.0, high=1.0, label="l", augmentation=(),
        columns=(Column(name="n", low=0, high=9, integer=True),),
    )  # fmt: skip
    records = Records(np.linspace(-1, 1, 300, dtype=np.float32)[:, None], np.arange(300) % 2)
    one = DataSource(schema, "here", lambda _: records)
    plan = work.make_plan(schema, method_named("mosaic", {"T": 6, "components": 4, "sigma": 2.0}), None, 1e-5)
    save, calls = RunLog._save, [0]

    def breaking(*arguments: Any) -> None:
        calls[0] += 1
        if calls[0] == 4:
            raise KeyboardInterrupt
        save(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(RunLog, "_save", breaking)
        with pytest.raises(KeyboardInterrupt):
            asked = work.asked(data=None, ledger=str(tmp_path / "l.sqlite"), insecure_seed=7)
            work.condense(asked, plan, one, tmp_path / "out", Silent(), checkpoint_seconds=0.0)
    assert len(read_release(work.resume(tmp_path / "out", Silent(), source=one).release).x) == 300
    assert_paid_once(tmp_path / "l.sqlite")
