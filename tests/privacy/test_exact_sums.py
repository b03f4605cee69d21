"""Sums on the grid do not depend on order, chunks or threads: the same bits, for every map."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from test_sensitivity import CLASSES, MAPPINGS, SHAPE
from through import answers
from tiny import MemorySource

from limbeck.data.records import Records
from limbeck.nets import NetSpec, build
from limbeck.privacy.grid import step_of
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.vault.maps.bound import Bound
from limbeck.vault.maps.clipped_gradients import ClippedGradients
from limbeck.vault.maps.layer_gradients import Ghost

SCHEMA = Schema(name="tiny", shape=SHAPE, classes=("a", "b", "c"), records=700, low=-1.0, high=1.0)
RECORDS = 700


def held(seed: int | None = None) -> MemorySource:
    """The same records, in the order of their making or shuffled. Some of them twice."""
    random = np.random.default_rng(8)
    x = random.uniform(-1.2, 1.2, (RECORDS, *SHAPE)).astype(np.float32)
    y = random.integers(0, CLASSES, RECORDS)
    x[:50], y[:50], x[50] = x[50:100], y[50:100], np.nan
    order = np.arange(RECORDS) if seed is None else np.random.default_rng(seed).permutation(RECORDS)
    return MemorySource(SCHEMA, Records(x[order], y[order].astype(np.int64)))


@pytest.fixture
def two_threads_at_the_end() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", MAPPINGS)
def test_the_answers_of_a_plan_are_the_same_bits_however_they_are_added_up(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, two_threads_at_the_end: None
) -> None:
    mapping = MAPPINGS[name]
    query = ClippedSum(label="sums", map=mapping.kind, clip=0.7, noise_multiplier=1.5, rate=(0.9, 1.0, 0.5))
    queries = query, replace(query, label="whole", rate=(1.0,), by_class=False)

    def given(folder: str, source: MemorySource, chunk: int, threads: int) -> list[bytes]:
        monkeypatch.setattr(type(mapping), "chunk", chunk)
        torch.set_num_threads(threads)
        found = answers(source, tmp_path / folder, lambda *_: mapping, *queries, seed=3)
        return [values.tobytes() for label in found for values in found[label]]

    expected = given("first", held(), 512, 1)
    for number, chunk in enumerate((64, 4096)):
        assert given(f"chunk-{number}", held(), chunk, 1) == expected
    assert given("shuffled", held(seed=1), 512, 1) == expected
    assert given("threads", held(), 512, 2) == expected


def test_the_order_of_records_decides_where_sums_are_doubles(tmp_path: Path) -> None:
    """What the grid is for: the same plan as an older version booked it has other bits for a shuffled file."""
    mapping = MAPPINGS["identity"]
    query = ClippedSum(label="sums", map="identity", clip=0.7, noise_multiplier=0.0, on_grid=False)
    found = [
        answers(held(seed), tmp_path / str(seed), lambda *_: mapping, query, seed=3)["sums"][0] for seed in (None, 1)
    ]
    assert np.abs(found[0] - found[1]).max() < 1e-6
    doubles = []
    for seed in (None, 1):
        records = held(seed).records
        rows = torch.from_numpy(np.nan_to_num(records.x)).flatten(1).double()
        doubles.append((rows * 0.1).sum(0))
    assert not torch.equal(*doubles)


# A record within its clip, rounding included. Coarse steps, so that rounding weighs something.


@pytest.mark.parametrize("step", [1.0, 0.25, 2.0**-10])
@pytest.mark.parametrize("numbers", [1, 7, 400])
def test_rounding_is_taken_off_the_clip_first(step: float, numbers: int) -> None:
    random = torch.Generator().manual_seed(1)
    rows = torch.rand((2000, numbers), generator=random) * torch.logspace(-3, 3, 2000)[:, None]
    rows[::2] -= rows[1::2]
    # The worst there is: every number stands just above half a step.
    rows[:50] = (torch.arange(50)[:, None] % 7 + 0.5000001) * step
    bound = Bound(40.0, step)
    whole = bound.rows(rows)
    assert torch.equal(whole, whole.round())
    assert (whole.norm(dim=1) * step).max().item() <= 40.0
    assert (whole.norm(dim=1) * step).max().item() > 40.0 - step * (math.sqrt(numbers) + 1)


@pytest.mark.parametrize("kind", ["mlp", "convnet", "lenet", "resnet18"])
@pytest.mark.parametrize("per_layer", [False, True])
@pytest.mark.parametrize("bits", [10, 16, 22])
def test_rounding_is_taken_off_the_clip_of_gradients_first(kind: str, per_layer: bool, bits: int) -> None:
    """Every record by itself, with steps of 2^-10 of the clip and finer: no record passes the clip."""
    network = build(NetSpec(kind=kind, width=8 if kind != "resnet18" else 4), (1, 16, 16), CLASSES, seed=2)
    weights = {name: value.detach() for name, value in network.named_parameters()}
    engine = ClippedGradients(network, (1, 16, 16), weights, torch.device("cpu"))
    random = torch.Generator().manual_seed(4)
    x, y = (
        torch.randn((12, 1, 16, 16), generator=random) * torch.logspace(-3, 2, 12)[:, None, None, None],
        torch.arange(12) % 3,
    )
    bound = Bound(0.5, 4.0 ** -(bits // 2))
    with torch.no_grad():
        for record in range(12):
            total = engine.clipped_sum(x[record : record + 1], y[record : record + 1], bound, per_layer)
            assert torch.equal(total, total.round()) and total.isfinite().all()
            assert total.norm().item() * bound.step <= 0.5
    if bits == 22:
        assert total.norm().item() * bound.step > 0.2


def test_a_ghost_whose_factors_cancel_adds_little_or_nothing() -> None:
    """Two positions of opposite sign: factors as long as you like, a gradient of next to nothing."""
    entered, flow = torch.full((1, 2, 30), 1e4), torch.full((1, 2, 20), 1e4)
    flow[0, 1] = -1e4 + 0.01
    ghost = Ghost(entered, flow)
    bound = Bound(1.0, step_of(1.0, 1.0))
    factors = torch.ones(1, dtype=torch.float64)
    total = ghost.weighted(factors, bound.step)
    assert total.isfinite().all() and (total.abs() < 2.0**53).all()
