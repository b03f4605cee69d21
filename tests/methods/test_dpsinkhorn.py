"""DP-Sinkhorn: the plan of Sinkhorn's iteration, shares that are each record's own, the price, and a run that resumes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from interrupted import assert_paid_once, broken_off_and_resumed, make

from limbeck.errors import BadInput, BadSettings
from limbeck.methods import method_named
from limbeck.methods.parts.sinkhorn import costs, self_transport, transport_plan
from limbeck.privacy.accounting import price
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.release.reader import read_release
from limbeck.runs.log import RunLog
from limbeck.vault.api import Answer, Transport
from limbeck.vault.ledger import Ledger

MNIST = Schema(
    name="m", shape=(1, 28, 28), low=0, high=255, classes=tuple("0123456789"), records=60_000, class_sizes=(6000,) * 10
)
SMALL: dict[str, Any] = {"T": 4, "L": 5, "fit": 2, "width": 2, "latent": 3, "turns": 3, "per_class": 3, "sigma": 1.0}


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 - 1


def test_a_plan_has_even_masses_on_both_sides() -> None:
    plan = transport_plan(costs(drawn(2, 7, 4), drawn(2, 5, 4, seed=1)), blur=0.05, turns=2000)
    assert torch.allclose(plan.sum(2), torch.full((2, 7), 1 / 7, dtype=torch.float64))
    assert torch.allclose(plan.sum(1), torch.full((2, 5), 1 / 5, dtype=torch.float64), atol=1e-6)


def test_with_little_blur_a_plan_is_the_best_assignment() -> None:
    from scipy.optimize import linear_sum_assignment

    cost = costs(drawn(6, 3), drawn(6, 3, seed=1))
    rows, columns = linear_sum_assignment(cost.numpy())
    plan = transport_plan(cost, blur=2e-3, turns=20_000)
    assert (plan * cost).sum().item() * 6 == pytest.approx(float(cost[rows, columns].sum()), rel=0.02)


def test_a_far_cost_does_not_overflow() -> None:
    assert transport_plan(torch.tensor([[0.0, 1e8], [1e8, 3.0]]), blur=1e-3, turns=50).isfinite().all()


def test_the_semi_dual_has_the_plan_of_sinkhorns_iteration() -> None:
    """With potentials that have climbed until all points have even masses, each record's own shares are its row of the plan."""
    points, records = drawn(1, 4, 3), drawn(9, 3, seed=1)
    plan = transport_plan(costs(records, points[0]), blur=0.1, turns=5000)
    potentials, labels = torch.zeros(1, 4, dtype=torch.float64), torch.zeros(9, dtype=torch.int64)
    for _ in range(500):
        rows = Transport(points=points, potentials=potentials, blur=0.1).rows(records, labels)
        potentials = potentials - (rows[:, :4].sum(0, keepdim=True) * 4 / 9).log()
    assert torch.allclose(rows[:, :4] / 9, plan, atol=1e-5)
    moves = rows[:, 4:].view(9, 4, 3).sum(0) / 9
    wanted = plan.T @ records - plan.sum(0)[:, None] * points[0]
    assert torch.allclose(moves, wanted, atol=1e-5)


def test_points_that_crowd_push_each_other_away() -> None:
    x = (drawn(1, 6, 3) * 0.1).requires_grad_(True)
    (gradient,) = torch.autograd.grad(-self_transport(x, 0.5, 50), x)
    apart = x - 0.1 * gradient
    assert costs(apart, apart).sum() > costs(x, x).sum()


def test_a_record_is_shared_out_among_its_own_class_by_itself() -> None:
    mapping = Transport(points=drawn(3, 5, 4), potentials=torch.zeros(3, 5), blur=0.1, weight=2.0)
    x, y = drawn(6, 4, seed=2), torch.arange(6) % 3
    rows = mapping.rows(x, y)
    assert rows.shape == (6, 25) and torch.allclose(rows[:, :5].sum(1), torch.full((6,), 2.0, dtype=torch.float64))
    for i in range(6):
        assert torch.allclose(mapping.rows(x[i : i + 1], y[i : i + 1])[0], rows[i])


@pytest.mark.parametrize(
    "other",
    [{"points": torch.ones(3, 5, 4)}, {"potentials": torch.ones(3, 5)}, {"blur": 0.2}, {"weight": 2.0}],
    ids=["points", "potentials", "blur", "weight"],
)
def test_other_potentials_are_another_question(other: dict[str, Any]) -> None:
    given: dict[str, Any] = {"points": torch.zeros(3, 5, 4), "potentials": torch.zeros(3, 5), "blur": 0.1}
    assert Transport(**given).digest() != Transport(**{**given, **other}).digest()


@pytest.mark.parametrize(
    "wrong",
    [
        {"points": torch.zeros(3, 4)},
        {"points": torch.zeros(3, 5)},  # a potential for each, and yet no table of points
        {"points": torch.zeros(3, 5, 2, 2)},  # against records of four numbers these would lie along the block
        {"potentials": torch.zeros(3, 4)},
        {"potentials": torch.zeros(15)},
        {"blur": 0.0},
        {"blur": float("nan")},
        {"weight": -1.0},
        {"weight": float("inf")},
    ],
)
def test_maps_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        Transport(**{"points": torch.zeros(3, 5, 4), "potentials": torch.zeros(3, 5), "blur": 0.1, **wrong})


def test_every_answer_is_priced() -> None:
    (query,) = method_named("dpsinkhorn", {"T": 70, "L": 60, "C": 0.5}).queries(MNIST, 0.9)
    assert (query.count, query.map, query.clip) == (70, "transport", pytest.approx(14.0))
    assert isinstance(query, ClippedSum) and query.rate == (0.01,) * 10 and query.by_class
    same = ClippedSum(label="x", map="identity", clip=1.0, noise_multiplier=0.9, rate=(0.01,), count=70)
    assert price((query,), 1e-5).epsilon == price((same,), 1e-5).epsilon


class Plain:
    def steps(self, total: int, state: dict[str, torch.Tensor], answers: str) -> Iterator[int]:
        return iter(range(total))


def test_it_finds_both_places_where_a_class_is() -> None:
    """Of a class at -0.8 and at 0.8; means alone would put everything in between."""
    labels = torch.arange(400) % 2
    records = torch.where(torch.arange(400) // 2 % 2 == 0, 0.8, -0.8)[:, None].repeat(1, 4)
    records[labels == 1] = 0.0
    schema = Schema(
        name="s", shape=(4,), low=0, high=1, classes=("a", "b"), records=400, class_sizes=(200, 200), augmentation=()
    )

    def ask(label: str, index: int, mapping: Any) -> Answer:
        rows = mapping.rows(records, labels)
        rows = rows * (0.5 * 2 / rows.norm(dim=1, keepdim=True)).clamp(max=1)
        return Answer(torch.zeros(2, rows.shape[1]).index_add_(0, labels, rows).numpy())

    method = method_named(
        "dpsinkhorn", {"L": 200, "C": 0.5, "T": 40, "per_class": 10, "memory": 0.5, "width": 8, "blur": 0.3}
    )
    made = method.run(schema, ask, Plain(), torch.device("cpu"))
    first = made.x[made.y == 0].mean(1)
    assert (first > 0.5).sum() >= 3 and (first < -0.5).sum() >= 3
    assert abs(made.x[made.y == 1]).max() < 0.5


@pytest.mark.parametrize(("owner", "name", "call"), [(Ledger, "store", 2), (RunLog, "_save", 3), (Ledger, "finish", 1)])
def test_killed_and_resumed_ends_in_the_same_set(tmp_path: Path, owner: type, name: str, call: int) -> None:
    whole = make("dpsinkhorn", SMALL, tmp_path / "whole", tmp_path / "whole.sqlite")
    ledger = tmp_path / "ledger.sqlite"
    resumed = broken_off_and_resumed("dpsinkhorn", SMALL, tmp_path / "out", ledger, owner, name, call)
    assert (resumed / "set.npz").read_bytes() == (whole / "set.npz").read_bytes()
    assert (resumed / "generator.safetensors").read_bytes() == (whole / "generator.safetensors").read_bytes()
    assert read_release(resumed).certificate.drawn == {"transport": 4}
    assert_paid_once(ledger)


@pytest.mark.parametrize(
    "settings",
    [
        {"T": 0},
        {"L": 0},
        {"C": 0},
        {"blur": 0},
        {"debias": 1.1},
        {"memory": 1},
        {"fit": 0},
        {"climb": -1},
        {"sigma": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(BadSettings):
        method_named("dpsinkhorn", settings)


def test_an_answer_that_no_memory_holds_is_refused() -> None:
    large = Schema(
        name="l", shape=(3, 512, 512), low=0, high=255, classes=("a", "b"), records=10_000, class_sizes=(5000, 5000)
    )
    with pytest.raises(BadSettings, match="--per-class 42 or less"):
        method_named("dpsinkhorn", {"per_class": 50}).check(large)
