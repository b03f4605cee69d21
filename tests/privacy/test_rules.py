"""The twelve rules that make the known mistakes of this field impossible, each with the tests that hold it."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from dp_accounting import GaussianDpEvent, NonPrivateDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from tiny import DELTA, MemorySource, plan_of, release_of
from torch import Tensor

from limbeck.data.records import Records
from limbeck.errors import BadInput, NotAuthentic, NotReleasable, RunConflict, WallBreach
from limbeck.evaluate.evaluation import Evaluation
from limbeck.methods import method_named
from limbeck.nets import NetSpec
from limbeck.privacy.accounting import price, sampled_gaussian
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import ADD_REMOVE, Schema
from limbeck.release import certificate as certificates
from limbeck.release import verification
from limbeck.release.statement import read_certificate
from limbeck.report.page import report_page
from limbeck.vault.api import (
    FeatureResidual,
    Grant,
    Identity,
    Map,
    OneHot,
    RandomFeatures,
    Residual,
    ResidualFourier,
)
from limbeck.vault.encoding import encode
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.maps import MAPS, blocks
from limbeck.vault.maps.base import records_mix
from limbeck.vault.maps.bound import Bound
from limbeck.vault.noise import INSECURE, SECURE, Randomness
from limbeck.vault.sampling import poisson_sample
from working import make_plan

MakeVault = Callable[..., LocalVault]
COUNT = ClippedSum(label="counts", map="one_hot", clip=1.0, noise_multiplier=5.0, by_class=False)


def spent(ledger: Ledger) -> float:
    account = ledger.account("tiny")
    return 0.0 if account is None else account.spent_epsilon


# Rule 1: a query is accounted by the event it builds, and by nothing else.


def test_rule_01_the_event_is_built_from_every_field_that_matters(query: ClippedSum) -> None:
    assert query.event() == SelfComposedDpEvent(PoissonSampledDpEvent(0.3, GaussianDpEvent(4.0)), 3)
    assert dataclasses.replace(query, rate=(1.0,)).event() == SelfComposedDpEvent(GaussianDpEvent(4.0), 3)
    assert isinstance(dataclasses.replace(query, noise_multiplier=0.0).event(), NonPrivateDpEvent)


def test_rule_01_the_ledger_books_the_price_of_the_queries_not_the_stated_one(
    vault: LocalVault, ledger: Ledger, query: ClippedSum
) -> None:
    true = price((query,), DELTA)
    overstated = dataclasses.replace(plan_of(query), price=dataclasses.replace(true, epsilon=true.epsilon + 5))
    vault.grant(overstated)
    assert spent(ledger) == true.epsilon == sampled_gaussian(0.3, 3, 4.0, DELTA).epsilon


def test_rule_01_an_understated_price_is_refused_and_nothing_is_booked_or_read(
    vault: LocalVault, source: MemorySource, ledger: Ledger, query: ClippedSum
) -> None:
    true = price((query,), DELTA)
    understated = dataclasses.replace(plan_of(query), price=dataclasses.replace(true, epsilon=true.epsilon - 1e-6))
    with pytest.raises(WallBreach):
        vault.grant(understated)
    assert ledger.account("tiny") is None and not source.loads


def test_rule_01_a_step_past_the_plan_is_refused(vault: LocalVault, ledger: Ledger, query: ClippedSum) -> None:
    grant = vault.grant(plan_of(query))
    for index in range(query.count):
        vault.ask(grant, "groups", index, Identity())
    for index in (query.count, -1):
        with pytest.raises(WallBreach):
            vault.ask(grant, "groups", index, Identity())
        with pytest.raises(WallBreach):
            ledger.store(grant.id, "groups", index, map_digest="m", payload=b"more")
    with pytest.raises(WallBreach):
        vault.ask(grant, "others", 0, Identity())
    assert ledger.drawn(grant.id) == {"groups": 3}


def test_rule_01_the_ledger_counts_calls(vault: LocalVault, ledger: Ledger, query: ClippedSum) -> None:
    grant = vault.grant(plan_of(query, COUNT))
    assert ledger.drawn(grant.id) == {"groups": 0, "counts": 0}
    vault.ask(grant, "groups", 2, Identity())
    vault.ask(grant, "groups", 0, Identity())
    vault.ask(grant, "counts", 0, OneHot(classes=3))
    assert ledger.drawn(grant.id) == {"groups": 2, "counts": 1}


def test_rule_01_a_plan_that_was_not_booked_is_not_answered(
    vault: LocalVault, source: MemorySource, ledger: Ledger, query: ClippedSum
) -> None:
    booked = vault.grant(plan_of(query))
    for forged in (
        Grant(booked.id, plan_of(dataclasses.replace(query, noise_multiplier=2.0))),
        Grant(booked.id, plan_of(dataclasses.replace(query, clip=1e6))),
        Grant(booked.id, plan_of(dataclasses.replace(query, rate=(0.9,)))),
        Grant(booked.id, plan_of(dataclasses.replace(query, count=50))),
    ):
        with pytest.raises(WallBreach):
            vault.ask(forged, "groups", 0, Identity())
    with pytest.raises(RunConflict):
        vault.ask(Grant("never booked", plan_of(query)), "groups", 0, Identity())
    assert not source.loads and ledger.drawn(booked.id) == {"groups": 0}


def test_rule_01_a_query_is_answered_with_the_map_that_was_booked(vault: LocalVault, query: ClippedSum) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Lookalike(Identity):
        pass

    grant = vault.grant(plan_of(query))
    for mapping in (OneHot(classes=3), Lookalike()):
        with pytest.raises(WallBreach):
            vault.ask(grant, "groups", 0, mapping)


def test_rule_01_a_plan_for_another_data_set_is_refused(vault: LocalVault, query: ClippedSum) -> None:
    with pytest.raises(WallBreach):
        vault.grant(plan_of(query, dataset="other"))


# Rule 2: clip jointly everything one record touches in a query.


def test_rule_02_the_appended_count_is_inside_the_clip() -> None:
    x, y = torch.rand((1, 1, 8, 8), generator=torch.Generator().manual_seed(0)), torch.zeros(1, dtype=torch.long)
    mapping = RandomFeatures(net=NetSpec(kind="convnet", width=4), shape=(1, 8, 8), seed=1, with_count=True)
    assert mapping.rows(x, y)[0, -1] == 1
    total = mapping.clipped_sum(x, y, y, 1, Bound(0.5))
    assert 0 < total[0, -1] < 0.5 and total.norm().item() <= 0.5


def test_rule_02_one_record_moves_the_whole_answer_by_at_most_the_clip(make_vault: MakeVault, records: Records) -> None:
    fewer = Records(records.x[:-1], records.y[:-1])
    mapping = RandomFeatures(net=NetSpec(kind="convnet", width=4), shape=(1, 8, 8), seed=1, with_count=True)
    for kind, chosen in (("identity", Identity()), ("random_features", mapping), ("one_hot", OneHot(classes=3))):
        for by_class in (True, False):
            asked = ClippedSum(label=kind, map=kind, clip=0.5, noise_multiplier=0.0, by_class=by_class)
            sums = [vault._noised_sum(asked, 0, chosen) for vault in _opened(make_vault, records, fewer)]
            assert 0 < np.linalg.norm(sums[0] - sums[1]) <= 0.5


def _opened(make_vault: MakeVault, *sets: Records) -> list[LocalVault]:
    vaults = [make_vault(each) for each in sets]
    for vault, each in zip(vaults, sets, strict=True):
        vault._records = each
    return vaults


def test_rule_02_a_table_with_a_row_per_class_is_one_event_at_the_largest_rate(query: ClippedSum) -> None:
    table = price((query,), DELTA).epsilon
    assert table == price((dataclasses.replace(query, by_class=False),), DELTA).epsilon
    assert table == sampled_gaussian(max(query.rate), 3, 4.0, DELTA).epsilon


# Rule 3: sums leave the vault, never means; an empty sample is a normal sample.


def test_rule_03_the_answer_is_the_sum_and_not_divided_by_the_sample(make_vault: MakeVault, records: Records) -> None:
    doubled = Records(np.concatenate([records.x] * 2), np.concatenate([records.y] * 2))
    asked = ClippedSum(label="sum", map="identity", clip=100.0, noise_multiplier=0.0, rate=(1.0,))
    once, twice = (vault._noised_sum(asked, 0, Identity()) for vault in _opened(make_vault, records, doubled))
    assert np.allclose(twice, 2 * once)
    expected = (records.x[records.y == 1] / 8 - 1).sum(0).ravel()
    assert np.allclose(once[1], expected, atol=1e-3)


def test_rule_03_an_empty_sample_gives_noise_and_no_error(
    make_vault: MakeVault, records: Records, query: ClippedSum
) -> None:
    vault = make_vault(seed=0)
    assert not len(poisson_sample(records.y, (0.01,) * 3, vault.randomness.stream("groups", 0)))
    grant = vault.grant(plan_of(dataclasses.replace(query, rate=(0.01,), count=1)))
    answer = vault.ask(grant, "groups", 0, Identity()).values
    assert answer.shape == (3, 64)
    assert answer.std() == pytest.approx(query.noise_std, rel=0.25) and abs(answer.mean()) < 4 * 8 / math.sqrt(192)


def test_rule_03_no_record_at_all_is_answered_as_well(make_vault: MakeVault, records: Records) -> None:
    vault = make_vault(Records(records.x[:0], records.y[:0]))
    grant = vault.grant(plan_of(COUNT))
    assert vault.ask(grant, "counts", 0, OneHot(classes=3)).values.shape == (3,)


# Rule 4: a stored sum is noised once.


def test_rule_04_the_same_question_has_the_same_answer_and_one_row(
    vault: LocalVault, ledger: Ledger, query: ClippedSum
) -> None:
    grant = vault.grant(plan_of(query))
    first, again = (vault.ask(grant, "groups", 1, Identity()).values for _ in range(2))
    assert first.tobytes() == again.tobytes()
    assert ledger.drawn(grant.id) == {"groups": 1}
    assert first.tobytes() != vault.ask(grant, "groups", 2, Identity()).values.tobytes()


def test_rule_04_another_vault_over_the_same_ledger_replays_the_answer(
    make_vault: MakeVault, source: MemorySource, query: ClippedSum
) -> None:
    grant = make_vault().grant(plan_of(query))
    first = make_vault().ask(grant, "groups", 0, Identity()).values
    loads = source.loads
    assert make_vault().ask(grant, "groups", 0, Identity()).values.tobytes() == first.tobytes()
    assert source.loads == loads


def test_rule_04_a_stored_answer_is_not_given_for_other_parameters(vault: LocalVault, query: ClippedSum) -> None:
    grant = vault.grant(plan_of(query))
    vault.ask(grant, "groups", 0, Identity())
    with pytest.raises(RunConflict):
        vault.ask(grant, "groups", 0, Identity(shift=1.0))


def test_rule_04_answers_are_immutable(vault: LocalVault, query: ClippedSum) -> None:
    answer = vault.ask(vault.grant(plan_of(query)), "groups", 0, Identity())
    with pytest.raises(ValueError, match="read-only"):
        answer.values[0, 0] = 0
    before = answer.values.copy()
    answer.tensor().zero_()
    assert np.array_equal(answer.values, before)


def test_rule_04_a_forgotten_answer_is_not_drawn_again(vault: LocalVault, query: ClippedSum) -> None:
    grant = vault.grant(plan_of(query))
    vault.ask(grant, "groups", 0, Identity())
    vault.forget(grant, "groups", 1)
    with pytest.raises(RunConflict):
        vault.ask(grant, "groups", 0, Identity())


def test_rule_04_nothing_is_answered_after_the_end(vault: LocalVault, query: ClippedSum) -> None:
    grant = vault.grant(plan_of(query))
    vault.close(grant)
    with pytest.raises(WallBreach):
        vault.ask(grant, "groups", 0, Identity())


# Rule 5: noise and masks come from the operating system, apart from every seedable generator.


def test_rule_05_no_public_seed_reaches_noise_or_mask(make_vault: MakeVault, ledger: Ledger, query: ClippedSum) -> None:
    ledger.set_budget("tiny", 100.0, 1e-3)
    answers, masks = [], []
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)
        vault = make_vault()
        asked = plan_of(dataclasses.replace(query, count=1))
        answers.append(vault.ask(vault.grant(asked), "groups", 0, Identity()).values)
        masks.append(vault.randomness.stream("groups", 0).integers(4).tolist())
    assert not np.array_equal(answers[0], answers[1]) and masks[0] != masks[1]


def test_rule_05_the_public_generators_are_left_alone(vault: LocalVault, query: ClippedSum) -> None:
    torch.manual_seed(0)
    np.random.seed(0)
    states = torch.get_rng_state(), np.random.get_state()[1].copy()
    vault.ask(vault.grant(plan_of(query)), "groups", 0, Identity())
    assert torch.equal(torch.get_rng_state(), states[0]) and np.array_equal(np.random.get_state()[1], states[1])


def test_rule_05_an_insecure_seed_is_stamped_and_not_releasable(
    source: MemorySource, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    release = release_of(source, tmp_path, seed=3)
    stated = verification.verify(release)
    assert stated.randomness == INSECURE and stated.releasable is False
    with pytest.raises(NotReleasable):
        verification.require_releasable(stated)
    ended = cli("verify", release)
    assert ended.code == NotReleasable.exit_code != 0 and "Never share" in ended.err


def test_rule_05_a_grant_booked_with_an_insecure_seed_never_turns_secure(
    source: MemorySource, ledger: Ledger, query: ClippedSum
) -> None:
    insecure, secure = LocalVault(source, ledger, Randomness(3)), LocalVault(source, ledger)
    grant = insecure.grant(plan_of(query))
    with pytest.raises(WallBreach, match="generator"):
        secure.ask(grant, "groups", 0, Identity())
    with pytest.raises(RunConflict):
        secure.take_up(grant.id, grant.plan)
    assert not source.loads


def test_rule_05_a_secure_release_says_so(source: MemorySource, tmp_path: Path) -> None:
    stated = verification.verify(release_of(source, tmp_path))
    assert stated.randomness == SECURE and stated.releasable is True
    verification.require_releasable(stated)


# Rule 6: nothing public is read from private data.


def test_rule_06_an_unconfirmed_schema_is_refused_before_anything_is_read_or_booked(
    source: MemorySource, ledger: Ledger, query: ClippedSum
) -> None:
    source.schema = dataclasses.replace(source.schema, unconfirmed=("high",))
    with pytest.raises(BadInput, match="high"):
        make_plan(source.schema, method_named("ldpdc", {"per_class": 2}), 1.0, DELTA)
    with pytest.raises(BadInput, match="high"):
        LocalVault(source, ledger).grant(plan_of(query))
    assert not source.loads and ledger.account("tiny") is None


@pytest.mark.parametrize("method", ["ldpdc", "ndpdc"])
def test_rule_06_class_sizes_that_are_not_public_are_bought(method: str, schema: Schema, unsized: Schema) -> None:
    asked = method_named(method, {"per_class": 2, "sigma": 2.0, "L": 5, **({"I": 3} if method == "ndpdc" else {})})
    bought = [query for query in asked.queries(unsized, 2.0) if query.map == "one_hot"]
    assert len(bought) == 1 and bought[0].is_private and not bought[0].by_class
    assert not [query for query in asked.queries(schema, 2.0) if query.map == "one_hot"]
    public = price(asked.queries(unsized, 2.0)[:1], DELTA).epsilon
    assert price(asked.queries(unsized, 2.0), DELTA).epsilon > public


def test_rule_06_the_encoding_is_a_fixed_function_of_each_record_alone(schema: Schema, records: Records) -> None:
    changed = records.x.copy()
    changed[0] = 1e9
    assert torch.equal(encode(records.x, schema)[1:], encode(changed, schema)[1:])
    assert torch.equal(encode(records.x[:1], schema), encode(records.x, schema)[:1])
    assert encode(np.array([0.0, 8.0, 16.0], dtype=np.float32), schema).tolist() == [-1.0, 0.0, 1.0]


# Rule 7: no layer that mixes records inside a per-record map.


@dataclass(frozen=True, kw_only=True)
class BatchNorm(Map):
    kind: ClassVar[str] = "batch_norm"

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        flat = x.flatten(1)
        return (flat - flat.mean(0)) / (flat.std(0) + 1e-5)


@dataclass(frozen=True, kw_only=True)
class ClassMean(Map):
    kind: ClassVar[str] = "class_mean"

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        flat = x.flatten(1)
        same = (y[:, None] == y[None]).to(x.dtype)
        return flat - (same @ flat) / same.sum(1, keepdim=True)


@pytest.mark.parametrize("kind", [BatchNorm, ClassMean])
def test_rule_07_a_map_that_mixes_records_is_refused_before_anything_is_read(
    kind: type[Map], vault: LocalVault, source: MemorySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MAPS, kind.kind, kind)
    grant = vault.grant(plan_of(ClippedSum(label="sum", map=kind.kind, clip=1.0, noise_multiplier=3.0)))
    with pytest.raises(WallBreach, match="one record change another"):
        vault.ask(grant, "sum", 0, kind())
    assert not source.loads


@dataclass(frozen=True, kw_only=True)
class Hidden(Map):
    """Mixes records, and hides it while its scale is large."""

    kind: ClassVar[str] = "hidden"
    scale: float

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        return (x.flatten(1) - x.flatten(1).mean(0)) / self.scale


@dataclass(frozen=True, kw_only=True)
class Crossed(Map):
    """As many numbers in a row as there are records."""

    kind: ClassVar[str] = "crossed"
    scale: float

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.zeros(len(x), len(x)) / self.scale


@pytest.mark.parametrize("kind", [Hidden, Crossed])
def test_rule_07_no_number_of_a_map_hides_that_it_mixes_records(
    kind: type[Hidden] | type[Crossed], vault: LocalVault, source: MemorySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A form is tried once. A first map of it must not open the door for a second one with other numbers."""
    monkeypatch.setitem(MAPS, kind.kind, kind)
    asked = ClippedSum(label="sum", map=kind.kind, clip=1.0, noise_multiplier=3.0, count=2)
    grant = vault.grant(plan_of(asked))
    for index, scale in enumerate((1e300, 1.0)):
        with pytest.raises(WallBreach, match="one record change another"):
            vault.ask(grant, "sum", index, kind(scale=scale))
    assert not source.loads


@pytest.mark.parametrize("shape", [(3, 1, 64), (64,), (1, 3, 64), ()])
def test_rule_07_no_axis_of_a_residual_lies_along_the_records(shape: tuple[int, ...]) -> None:
    """With a centre of (classes, 1, dimension) every record's row would hold all records of its block."""
    odd, table = torch.zeros(shape), torch.zeros(3, 64)
    net = NetSpec(kind="mlp", width=4)
    for make in (
        lambda: Residual(centre=odd, scale=1.0),
        lambda: Residual(centre=table, scale=1.0, basis=odd),
        lambda: FeatureResidual(net=net, shape=(1, 8, 8), weights={}, centre=odd, scale=1.0),
        lambda: ResidualFourier(directions=odd, phases=torch.zeros(5), centre=table, scale=1.0),
        lambda: ResidualFourier(directions=table, phases=table, centre=table, scale=1.0),
        lambda: ResidualFourier(directions=table, phases=torch.zeros(5), centre=odd, scale=1.0),
    ):
        with pytest.raises(BadInput, match="rows and columns"):
            make()


def test_rule_07_the_maps_of_the_toolkit_pass() -> None:
    for net in ("convnet", "lenet", "mlp", "linear"):
        mapping = RandomFeatures(net=NetSpec(kind=net, width=4), shape=(1, 8, 8), seed=1)
        assert not records_mix(mapping, (1, 8, 8), 3)


# Rule 8: records are clamped silently; nothing raises because of a record's content.


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e30, -1e30, 3.4e38])
def test_rule_08_a_strange_record_is_clamped_and_moves_the_sum_by_at_most_the_clip(
    value: float, make_vault: MakeVault, schema: Schema, records: Records
) -> None:
    strange = records.x.copy()
    strange[5] = value
    encoded = encode(strange, schema)
    assert encoded.isfinite().all() and encoded.abs().max() <= 1
    others = np.arange(len(strange)) != 5
    pair = Records(strange, records.y), Records(strange[others], records.y[others])
    mapping = RandomFeatures(net=NetSpec(kind="convnet", width=4), shape=(1, 8, 8), seed=1)
    for kind, chosen in (("identity", Identity()), ("random_features", mapping)):
        asked = ClippedSum(label=kind, map=kind, clip=0.5, noise_multiplier=0.0)
        sums = [vault._noised_sum(asked, 0, chosen) for vault in _opened(make_vault, *pair)]
        assert np.isfinite(sums[0]).all() and np.linalg.norm(sums[0] - sums[1]) <= 0.5


def test_rule_08_a_set_of_strange_records_is_answered(make_vault: MakeVault, records: Records) -> None:
    vault = make_vault(Records(np.full_like(records.x, math.nan), records.y))
    grant = vault.grant(plan_of(ClippedSum(label="sum", map="identity", clip=1.0, noise_multiplier=3.0)))
    assert np.isfinite(vault.ask(grant, "sum", 0, Identity()).values).all()


def test_rule_08_a_map_for_too_few_classes_fails_for_every_data_set_alike(
    make_vault: MakeVault, records: Records
) -> None:
    only_first = Records(records.x, np.zeros_like(records.y))
    vault = make_vault(only_first)
    few = dataclasses.replace(COUNT, label="few", map="residual")
    grant = vault.grant(plan_of(few, COUNT))
    with pytest.raises(Exception):  # noqa: B017  whatever it is, no record has been looked at
        vault.ask(grant, "few", 0, Residual(centre=torch.zeros(2, 64), scale=1.0))
    assert vault._records is None
    assert vault.ask(grant, "counts", 0, OneHot(classes=2)).values.shape == (2,)  # a label beyond them counts nowhere


# Rule 9: epsilon is data-independent, the smaller of two accountants, rounded up.


def test_rule_09_epsilon_is_the_same_for_different_data(source: MemorySource, tmp_path: Path) -> None:
    other = MemorySource(source.schema, Records(source.records.x[:7] * 0, source.records.y[:7]))
    releases = [release_of(source, tmp_path / "one"), release_of(other, tmp_path / "two")]
    stated = [read_certificate(release) for release in releases]
    for key in ("epsilon", "delta", "accounting", "queries", "drawn", "records"):
        assert getattr(stated[0], key) == getattr(stated[1], key)


def test_rule_09_the_smaller_accountant_counts_and_both_are_on_the_certificate(
    source: MemorySource, tmp_path: Path
) -> None:
    accounting = read_certificate(release_of(source, tmp_path)).accounting
    assert accounting.epsilon == min(accounting.epsilon_pld, accounting.epsilon_rdp)
    assert accounting.epsilon_pld != accounting.epsilon_rdp
    exact = price((COUNT,), DELTA)
    assert exact.epsilon == exact.epsilon_exact == min(exact.epsilon_exact, exact.epsilon_pld, exact.epsilon_rdp)


@pytest.mark.parametrize(("pld", "rdp"), [(0.1234561, 0.5), (0.5, 0.1234561)])
def test_rule_09_epsilon_is_rounded_up(pld: float, rdp: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limbeck.privacy.accounting.epsilon_pld", lambda *_: pld)
    monkeypatch.setattr("limbeck.privacy.accounting.epsilon_rdp", lambda *_: rdp)
    found = sampled_gaussian(0.1, 1, 1.0, DELTA)
    assert found.epsilon == 0.123457 and {found.epsilon_pld, found.epsilon_rdp} == {0.123457, 0.5}


def test_rule_09_the_plan_keeps_the_epsilon_that_was_asked_for(schema: Schema) -> None:
    asked = make_plan(schema, method_named("ldpdc", {"per_class": 2, "L": 5}), 0.7, DELTA)
    assert 0.69 < asked.price.epsilon <= 0.7


# Rule 10: adjacency is add/remove one record, and it is printed with every epsilon.


def test_rule_10_no_other_adjacency_is_taken_for_this_one(schema: Schema) -> None:
    with pytest.raises(BadInput):
        dataclasses.replace(schema, adjacency="replace")
    with pytest.raises(BadInput):
        dataclasses.replace(schema, unit="user")


def test_rule_10_adjacency_stands_on_plan_certificate_and_card(source: MemorySource, tmp_path: Path) -> None:
    plan = make_plan(source.schema, method_named("ldpdc", {"per_class": 2}), 1.0, DELTA)
    assert plan.to_dict()["price"]["adjacency"] == ADD_REMOVE
    release = release_of(source, tmp_path)
    stated = read_certificate(release)
    assert stated.adjacency == stated.accounting.adjacency == ADD_REMOVE and stated.unit == "record"
    for name in ("README.md", "report.html"):
        text = (release / name).read_text()
        assert "add" in text and "remov" in text


def test_rule_10_adjacency_is_in_all_output_with_an_epsilon(tmp_path: Path, cli: Callable[..., Any]) -> None:
    book = ("--ledger", tmp_path / "ledger.sqlite")
    run = ("digits", "--method", "ldpdc", "--epsilon", "1", "--per-class", "2")
    commands = (
        ("plan", *run),
        ("privacy", "--rate", "1", "--steps", "3", "--noise-multiplier", "2"),
        ("condense", *run, "--out", tmp_path / "out", *book),
        ("verify", tmp_path / "out"),
        ("budget", "show", "digits", *book),
    )
    for command in commands:
        ended = cli(*command)
        assert ended.code == 0 and ADD_REMOVE in ended.out, (command, ended)
        said = [line for line in ended.err.splitlines() if "epsilon" in line and "delta" in line]
        assert all(ADD_REMOVE in line for line in said)
    for command in (commands[0], commands[1], commands[3], commands[4]):
        assert cli(*command, "--json").json["adjacency"] == ADD_REMOVE


# Rule 11: selection, scores and pictures of real records are refused in a release.

SCORES = ("accuracy", "score", "evaluation", "test_records", "majority_rate", "loss")


def test_rule_11_a_release_holds_what_its_certificate_lists_and_nothing_else(
    source: MemorySource, tmp_path: Path
) -> None:
    release = release_of(source, tmp_path)
    present = {path.relative_to(release).as_posix() for path in release.rglob("*") if path.is_file()}
    assert present == {"certificate.json", *read_certificate(release).files}
    assert present == {
        "README.md", "certificate.json", "config.json", "data/train.parquet", "grid.png", "report.html", "set.npz",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["evaluation.json", "data/real.png", ".hidden", "data/deeper/x.npz"])
def test_rule_11_an_evaluation_in_a_release_is_refused(name: str, source: MemorySource, tmp_path: Path) -> None:
    release = release_of(source, tmp_path)
    verification.verify(release)
    (release / name).parent.mkdir(exist_ok=True)
    (release / name).write_text("{}")
    with pytest.raises(NotAuthentic, match="not on its certificate"):
        verification.verify(release)


def test_rule_11_a_certificate_states_no_score(source: MemorySource, tmp_path: Path) -> None:
    release = release_of(source, tmp_path)
    stated = json.loads((release / certificates.NAME).read_text())
    # What is not said to be a model, of several sites, joined or distilled is a set of one owner, as certificates always were.
    assert set(stated) == certificates.FIELDS - {"content", "federation", "joined", "distilled"}
    config = json.loads((release / "config.json").read_text())
    for values in (stated, config):
        assert not [key for key in _keys(values) if any(word in key for word in SCORES)]
    scores = {"accuracy": {"convnet": {"mean": 91.2, "std": 1.0, "runs": [91.2]}}, "majority_rate": 10.0}
    mark = "of models that were trained on the synthetic set alone"
    assert mark in report_page(read_certificate(release), source.schema, b"", Evaluation.from_dict(scores))
    assert mark not in (release / "report.html").read_text()


def _keys(values: Any) -> set[str]:
    if isinstance(values, dict):
        return set(values).union(*(_keys(value) for value in values.values()))
    return set().union(*(_keys(value) for value in values)) if isinstance(values, list) else set()


def test_rule_11_a_release_is_made_of_answers_only(
    source: MemorySource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same insecure noise, records that were in no sample leave no trace in any file of the release."""
    monkeypatch.setattr("limbeck.vault.clipped_sums.poisson_sample", lambda *_: np.zeros(0, dtype=np.int64))
    none = MemorySource(source.schema, Records(source.records.x[:0], source.records.y[:0]))
    releases = [release_of(source, tmp_path / "one", seed=1), release_of(none, tmp_path / "two", seed=1)]
    assert source.loads and none.loads
    for name in ("set.npz", "data/train.parquet", "grid.png", "config.json"):
        one, two = ((release / name).read_bytes() for release in releases)
        assert one == two


def test_rule_05_randomness_is_secure_unless_a_seed_is_given(source: MemorySource, ledger: Ledger) -> None:
    assert LocalVault(source, ledger).randomness == Randomness(None)


# Rule 12: a row is the same bits whatever stands beside it.


@pytest.mark.parametrize("steady", [True, False])
def test_rule_12_the_vault_passes_records_in_blocks_that_were_tried(
    steady: bool, make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    class Watched(Identity):
        def rows(self, x: Tensor, y: Tensor) -> Tensor:
            seen.append(len(x))
            return super().rows(x, y)

    monkeypatch.setitem(MAPS, "identity", Watched)
    monkeypatch.setattr(blocks, "is_steady", lambda *_: steady)
    vault = make_vault()
    grant = vault.grant(plan_of(ClippedSum(label="sum", map="identity", clip=1.0, noise_multiplier=3.0, count=2)))
    vault.ask(grant, "sum", 0, Watched())
    seen.clear()
    vault.ask(grant, "sum", 1, Watched())
    assert set(seen) == ({blocks.MOST} if steady else {1})
