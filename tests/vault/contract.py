"""What every vault keeps. A new vault gets a `Premises` of its own and passes all of this, unchanged."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from limbeck.data import Records
from limbeck.errors import BudgetRefused, DataUnreadable, RunConflict, WallBreach
from limbeck.privacy.accounting import price
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Grant, Identity, OneHot, Randomness, Vault

DELTA = 1e-5
SHAPE = (1, 12, 12)
SCHEMA = Schema(name="kept", shape=SHAPE, classes=("a", "b", "c"), records=90, class_sizes=(30, 30, 30), low=0, high=1)
CLIP = 5.0
FALSE_ALARM = 1e-9  # of a test of noise, by chance


def records_of(seed: int = 0, count: int = 90) -> Records:
    generator = np.random.default_rng(seed)
    x = generator.uniform(0, 1, (count, *SHAPE)).astype(np.float32)
    x[0] = np.nan  # whatever it holds, it is one record
    x[1] = 1e30
    return Records(x, np.arange(count, dtype=np.int64) % 3)


@dataclass
class Source:
    """Records that tell when they are read."""

    records: Records
    on_load: Callable[[], None] = lambda: None
    loads: int = 0
    schema: Schema = SCHEMA

    def load(self) -> Records:
        self.loads += 1
        self.on_load()
        return self.records


class Premises(ABC):
    """Where vaults of one kind stand: they share books that outlive each of them.

    noise: the std of an answer's noise / that of the query. A vault may add more than is paid for, and then says so.
    """

    noise: float = 1.0

    @abstractmethod
    def vault(self, source: Source, randomness: Randomness | None = None) -> Vault:
        """A vault over these records, as after a restart."""

    @abstractmethod
    def set_budget(self, epsilon: float) -> None: ...

    @abstractmethod
    def spent(self) -> float: ...


def query_of(**changes: object) -> ClippedSum:
    plain = ClippedSum(label="sums", map="identity", clip=CLIP, noise_multiplier=2.0, count=3)
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


def plan_of(*queries: Query, dataset: str = SCHEMA.name) -> Plan:
    asked: tuple[Query, ...] = queries or (query_of(),)
    return Plan(dataset=dataset, method="test", settings={}, queries=asked, price=price(asked, DELTA))


def exact_sum(records: Records, clip: float = CLIP, by_class: bool = True) -> np.ndarray:
    """In double precision, one record after the other."""
    total = np.zeros((3 if by_class else 1, math.prod(SHAPE)))
    for x, y in zip(records.x, records.y, strict=True):
        row = np.clip(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1.0, neginf=0.0), 0, 1).ravel() * 2 - 1
        total[y if by_class else 0] += row * min(1.0, clip / np.linalg.norm(row))
    return total if by_class else total[0]


class VaultContract:
    """Inherit it and give a fixture `premises`."""

    # Booking

    def test_describing_and_booking_read_nothing(self, premises: Premises) -> None:
        source = Source(records_of())
        vault, plan = premises.vault(source), plan_of()
        assert vault.describe() == SCHEMA
        grant = vault.grant(plan)
        assert grant.plan == plan and vault.state(grant.id) == "open"
        assert premises.spent() == pytest.approx(plan.price.epsilon) and source.loads == 0

    def test_records_are_read_after_the_booking_and_not_before(self, premises: Premises) -> None:
        seen: list[tuple[object, float]] = []
        source = Source(records_of())
        vault, plan = premises.vault(source), plan_of()
        source.on_load = lambda: seen.append((vault.state("1" * 32), premises.spent()))
        vault.ask(vault.grant(plan, "1" * 32), "sums", 0, Identity())
        assert seen == [("open", pytest.approx(plan.price.epsilon))]

    def test_a_plan_that_the_budget_does_not_cover_is_refused_unread(self, premises: Premises) -> None:
        source, plan = Source(records_of()), plan_of()
        premises.set_budget(plan.price.epsilon * 1.1)  # however tightly two of them are composed
        vault = premises.vault(source)
        vault.grant(plan)
        with pytest.raises(BudgetRefused):
            vault.grant(plan)
        assert source.loads == 0 and premises.spent() == pytest.approx(plan.price.epsilon)

    def test_what_is_booked_is_what_the_queries_cost(self, premises: Premises) -> None:
        vault, plan = premises.vault(Source(records_of())), plan_of()
        cheap = dataclasses.replace(plan, price=dataclasses.replace(plan.price, epsilon=plan.price.epsilon / 2))
        with pytest.raises(WallBreach):
            vault.grant(cheap)
        with pytest.raises(WallBreach):
            vault.grant(plan_of(dataset="other"))
        assert premises.spent() == 0

    def test_one_identity_pays_once(self, premises: Premises) -> None:
        plan = plan_of()
        first = premises.vault(Source(records_of())).grant(plan, "2" * 32)
        again = premises.vault(Source(records_of())).take_up("2" * 32, plan, booked=True)
        assert first == again and premises.spent() == pytest.approx(plan.price.epsilon)

    def test_a_crash_before_booking_is_booked_by_taking_up(self, premises: Premises) -> None:
        vault, plan = premises.vault(Source(records_of())), plan_of()
        assert vault.state("3" * 32) is None
        vault.take_up("3" * 32, plan)
        assert vault.state("3" * 32) == "open" and premises.spent() == pytest.approx(plan.price.epsilon)

    def test_a_run_that_was_booked_elsewhere_is_refused(self, premises: Premises) -> None:
        vault = premises.vault(Source(records_of()))
        with pytest.raises(RunConflict):
            vault.take_up("4" * 32, plan_of(), booked=True)
        assert premises.spent() == 0

    # Giving back

    def test_a_booking_without_an_answer_is_given_back(self, premises: Premises) -> None:
        source = Source(records_of())
        vault = premises.vault(source)
        grant = vault.grant(plan_of())
        assert vault.give_back(grant) is True
        assert vault.state(grant.id) == "void" and premises.spent() == 0
        with pytest.raises(RunConflict):
            vault.ask(grant, "sums", 0, Identity())
        with pytest.raises(RunConflict):
            vault.open_records(grant)
        assert source.loads == 0

    def test_an_answered_booking_stays_spent(self, premises: Premises) -> None:
        vault, plan = premises.vault(Source(records_of())), plan_of()
        grant = vault.grant(plan)
        vault.ask(grant, "sums", 0, Identity())
        assert vault.give_back(grant) is False
        assert vault.state(grant.id) == "open" and premises.spent() == pytest.approx(plan.price.epsilon)

    def test_records_that_cannot_be_read_cost_nothing(self, premises: Premises) -> None:
        def fail() -> None:
            raise DataUnreadable("It cannot be read.")

        for read in (
            lambda vault, grant: vault.open_records(grant),
            lambda vault, grant: vault.ask(grant, "sums", 0, Identity()),
        ):
            vault = premises.vault(Source(records_of(), fail))
            grant = vault.grant(plan_of())
            with pytest.raises(DataUnreadable):
                read(vault, grant)
            assert vault.state(grant.id) == "void" and premises.spent() == 0

    # What an answer is

    @pytest.mark.parametrize("by_class", [True, False])
    def test_without_noise_the_answer_is_the_clipped_sum(self, premises: Premises, by_class: bool) -> None:
        premises.set_budget(math.inf)
        records = records_of()
        vault = premises.vault(Source(records))
        grant = vault.grant(plan_of(query_of(noise_multiplier=0.0, by_class=by_class)))
        found = vault.ask(grant, "sums", 0, Identity()).values
        assert found.dtype == np.float32 and not found.flags.writeable
        np.testing.assert_allclose(found, exact_sum(records, by_class=by_class), rtol=0, atol=2e-4)

    def test_one_record_moves_the_sum_by_at_most_the_clip(self, premises: Premises) -> None:
        premises.set_budget(math.inf)
        records = records_of()
        sums = []
        for removed in (None, 0, 1, 2, 50):
            left = [index for index in range(len(records.y)) if index != removed]
            vault = premises.vault(Source(Records(records.x[left], records.y[left])))
            grant = vault.grant(plan_of(query_of(noise_multiplier=0.0)))
            sums.append(vault.ask(grant, "sums", 0, Identity()).values.astype(np.float64))
        moves = [float(np.linalg.norm(sums[0] - other)) for other in sums[1:]]
        assert all(CLIP * 0.99 < move <= CLIP * (1 + 1e-4) for move in moves), moves

    def test_the_order_of_the_records_changes_no_bit(self, premises: Premises) -> None:
        """Sums are whole steps, so that under one seed the same records give the same answer in any order."""
        premises.set_budget(100.0)
        records, order = records_of(), np.random.default_rng(1).permutation(90)
        found = []
        for held in (records, Records(records.x[order], records.y[order])):
            vault = premises.vault(Source(held), Randomness(insecure_seed=7))
            found.append(vault.ask(vault.grant(plan_of()), "sums", 0, Identity()).values)
        assert found[0].tobytes() == found[1].tobytes()

    def test_no_record_at_all_is_a_normal_sample(self, premises: Premises) -> None:
        vault = premises.vault(Source(Records(records_of().x[:0], records_of().y[:0])))
        values = vault.ask(vault.grant(plan_of()), "sums", 0, Identity()).values
        assert values.shape == (3, math.prod(SHAPE)) and np.abs(values).min() > 0

    def test_an_answer_has_just_the_noise_that_was_paid_for(self, premises: Premises) -> None:
        query, records = query_of(count=12), records_of()
        vault = premises.vault(Source(records))
        grant = vault.grant(plan_of(query))
        exact = exact_sum(records)
        noise = np.array([vault.ask(grant, "sums", index, Identity()).values - exact for index in range(12)])
        assert vault.ask(grant, "sums", 0, Identity()).noise_std == pytest.approx(premises.noise * query.noise_std)
        standard = (noise / (premises.noise * query.noise_std)).reshape(12, -1)
        assert stats.kstest(standard.ravel(), "norm").pvalue > FALSE_ALARM
        # The sum of squares is chi-square, so a noise that is a few per cent off shows.
        share = stats.chi2.cdf(float((standard**2).sum()), standard.size)
        assert FALSE_ALARM < share < 1 - FALSE_ALARM
        correlation = np.corrcoef(standard) - np.eye(12)
        assert np.abs(correlation).max() < 7 / math.sqrt(standard.shape[1])

    def test_each_record_is_sampled_by_a_coin_of_its_own(self, premises: Premises) -> None:
        premises.set_budget(math.inf)
        counting = query_of(map="one_hot", clip=1.0, noise_multiplier=0.0, rate=(0.3,), by_class=False, count=20)
        vault = premises.vault(Source(records_of()))
        grant = vault.grant(plan_of(counting))
        counts = np.array([vault.ask(grant, "sums", index, OneHot(classes=3)).values for index in range(20)])
        assert stats.binomtest(round(counts.sum()), 20 * 90, 0.3).pvalue > FALSE_ALARM
        assert len({tuple(row) for row in counts.round().tolist()}) > 10

    def test_noise_is_fresh_for_every_grant(self, premises: Premises) -> None:
        answers = []
        premises.set_budget(100.0)
        for _ in range(2):
            vault = premises.vault(Source(records_of()))
            answers.append(vault.ask(vault.grant(plan_of()), "sums", 0, Identity()).values)
        assert (answers[0] != answers[1]).all()

    def test_only_an_insecure_seed_repeats_noise_and_is_no_secret(self, premises: Premises) -> None:
        answers = []
        premises.set_budget(100.0)
        for _ in range(2):
            vault = premises.vault(Source(records_of()), Randomness(insecure_seed=7))
            assert not vault.randomness.releasable
            answers.append(vault.ask(vault.grant(plan_of()), "sums", 0, Identity()).values)
        assert (answers[0] == answers[1]).all()
        assert premises.vault(Source(records_of())).randomness.releasable

    # What may be asked

    @pytest.mark.parametrize("index", [-1, 3, 10**6])
    def test_no_answer_past_the_plan(self, premises: Premises, index: int) -> None:
        vault = premises.vault(Source(records_of()))
        grant = vault.grant(plan_of())
        with pytest.raises(WallBreach):
            vault.ask(grant, "sums", index, Identity())
        assert vault.drawn(grant) == {"sums": 0}

    def test_no_answer_of_another_query_or_map(self, premises: Premises) -> None:
        class Mine(Identity):
            pass

        vault = premises.vault(Source(records_of()))
        grant = vault.grant(plan_of())
        for label, mapping in (("other", Identity()), ("sums", OneHot(classes=3)), ("sums", Mine())):
            with pytest.raises(WallBreach):
                vault.ask(grant, label, 0, mapping)
        assert vault.drawn(grant) == {"sums": 0}

    def test_no_answer_for_what_was_not_booked(self, premises: Premises) -> None:
        source = Source(records_of())
        vault = premises.vault(source)
        with pytest.raises(RunConflict):
            vault.ask(Grant("5" * 32, plan_of()), "sums", 0, Identity())
        booked = vault.grant(plan_of())
        quieter = plan_of(query_of(noise_multiplier=0.5))
        with pytest.raises(WallBreach):
            vault.ask(Grant(booked.id, quieter), "sums", 0, Identity())
        assert source.loads == 0

    # Answers stay

    def test_the_same_question_has_the_same_answer_and_counts_once(self, premises: Premises) -> None:
        vault = premises.vault(Source(records_of()))
        grant = vault.grant(plan_of())
        first, again = (vault.ask(grant, "sums", 1, Identity()).values for _ in range(2))
        assert (first == again).all() and vault.drawn(grant) == {"sums": 1}

    def test_an_answer_is_stored_before_it_is_given(self, premises: Premises) -> None:
        plan = plan_of()
        vault = premises.vault(Source(records_of()))
        given = vault.ask(vault.grant(plan, "6" * 32), "sums", 0, Identity()).values
        unread = Source(records_of(seed=1))
        restarted = premises.vault(unread)
        grant = restarted.take_up("6" * 32, plan, booked=True)
        assert (restarted.ask(grant, "sums", 0, Identity()).values == given).all()
        assert unread.loads == 0 and restarted.drawn(grant) == {"sums": 1}

    def test_a_stored_answer_is_not_given_for_another_question(self, premises: Premises) -> None:
        vault = premises.vault(Source(records_of()))
        grant = vault.grant(plan_of())
        vault.ask(grant, "sums", 0, Identity())
        with pytest.raises(RunConflict):
            vault.ask(grant, "sums", 0, Identity(scale=2.0))

    def test_a_forgotten_answer_counts_and_is_never_drawn_again(self, premises: Premises) -> None:
        vault = premises.vault(Source(records_of()))
        grant = vault.grant(plan_of())
        for index in range(2):
            vault.ask(grant, "sums", index, Identity())
        vault.keep(grant)
        vault.forget(grant, "sums", 1)
        assert vault.drawn(grant) == {"sums": 2} and vault.give_back(grant) is False
        with pytest.raises(RunConflict):
            vault.ask(grant, "sums", 0, Identity())
        vault.ask(grant, "sums", 1, Identity())

    def test_a_closed_grant_answers_no_more_and_stays_spent(self, premises: Premises) -> None:
        vault, plan = premises.vault(Source(records_of())), plan_of()
        grant = vault.grant(plan, "7" * 32)
        vault.ask(grant, "sums", 0, Identity())
        for _ in range(2):
            vault.close(grant)
        for index in (0, 1):
            with pytest.raises((RunConflict, WallBreach)):
                vault.ask(grant, "sums", index, Identity())
        assert vault.state(grant.id) == "finished" and premises.spent() == pytest.approx(plan.price.epsilon)
        assert vault.take_up("7" * 32, plan, booked=True) == grant
        assert vault.drawn(grant) == {"sums": 1} and premises.spent() == pytest.approx(plan.price.epsilon)
