"""Composition across plans: the filter is a bound, an account keeps the rule it is bound to, and answers choose nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import ComposedDpEvent, NeighboringRelation
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from limbeck import make_plan, open_source
from limbeck.errors import BudgetRefused
from limbeck.methods import method_named
from limbeck.privacy.accountants import gaussian_epsilon, mu_of, terms_of
from limbeck.privacy.accounting import price
from limbeck.privacy.part import PartOf
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import ClippedSum, Query, TeacherGradient, TeacherVote
from limbeck.vault.ledger import Account, Ledger
from limbeck.vault.ledger.renyi_filter import divergence, order_for, overhead

DELTA = 1e-5
REPLACED = NeighboringRelation.REPLACE_ONE


def planned(*queries: Query, dataset: str = "digits", delta: float = DELTA) -> Plan:
    return Plan(dataset=dataset, method="mine", settings={}, queries=queries, price=price(queries, delta))


def sums(noise: float, rate: float = 1.0, count: int = 1) -> ClippedSum:
    return ClippedSum(label="s", map="identity", clip=1.0, noise_multiplier=noise, rate=(rate,), count=count)


def of_method(method: str, epsilon: float, dataset: str = "digits", delta: float = DELTA, **settings: object) -> Plan:
    return make_plan(open_source(dataset).schema, method_named(method, settings), epsilon, delta)


def text_of(plan: Plan) -> str:
    return json.dumps({"generator": "secret", "plan": plan.to_dict()}, sort_keys=True)


def counts_of(plan: Plan) -> str:
    return json.dumps(plan.counts, sort_keys=True)


def book(ledger: Ledger, plan: Plan, part: PartOf | None = None) -> str:
    return ledger.book(
        plan.dataset if part is None else part.account,
        plan=text_of(plan),
        method=plan.method,
        epsilon=plan.price.epsilon,
        delta=plan.price.delta,
        counts=plan.counts,
        part=part,
    )


def account(ledger: Ledger, name: str = "digits") -> Account:
    found = ledger.account(name)
    assert found is not None
    return found


def composed(plans: list[Plan], delta: float) -> float:
    """All answers of all plans at once, by privacy-loss distributions: an accountant that the ledger does not use."""
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(ComposedDpEvent([query.event() for plan in plans for query in plan.queries]))
    return float(accountant.get_epsilon(delta))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger.open(path) as opened:
        opened.set_budget("digits", 2.0, 2e-5)
        yield opened


# The target: two plans of epsilon 1 are not 2


@pytest.mark.parametrize("method", ["dpmerf", "ldpdc"])
def test_two_plans_of_one_cost_less_than_two_and_a_third_fits(ledger: Ledger, method: str) -> None:
    first, third = of_method(method, 1.0), of_method(method, 0.4)
    assert 0.999 < first.price.epsilon <= 1.0
    book(ledger, first)
    book(ledger, first)
    found = account(ledger)
    assert (found.rule, found.order) == ("renyi", 12)
    assert composed([first, first], 2e-5) <= found.spent_epsilon < 1.6
    assert found.spent_epsilon_sum == pytest.approx(2 * first.price.epsilon) and found.spent_delta == 2e-5
    assert found.remaining_epsilon > 0.4
    book(ledger, third)
    assert composed([first, first, third], 2e-5) <= account(ledger).spent_epsilon < 2.0
    assert account(ledger).spent_epsilon_sum > 2.0 and account(ledger).spent_delta_sum > 2e-5


def test_the_filter_is_above_the_exact_figure_for_gaussians(ledger: Ledger) -> None:
    plan = of_method("dpmerf", 1.0)
    terms = [terms_of(query.event()) for query in plan.queries for _ in range(2)]
    exact = gaussian_epsilon(mu_of(tuple(term for found in terms if found for term in found)), 2e-5)
    assert exact == pytest.approx(1.4002, abs=2e-3)
    book(ledger, plan)
    book(ledger, plan)
    assert account(ledger).spent_epsilon > exact


@pytest.mark.parametrize(
    "plans",
    [
        [planned(sums(8.0))] * 4,
        [planned(sums(2.0, 0.01, 500)), planned(sums(9.0))],
        [planned(sums(1.5, 0.02, 100)), planned(sums(4.0, 0.3, 5)), planned(sums(20.0))],
    ],
)
def test_the_filter_is_never_below_direct_composition(tmp_path: Path, plans: list[Plan]) -> None:
    for epsilon, delta in ((3.0, 3e-5), (8.0, 1e-4), (1.6, 1e-5)):
        with Ledger.open(tmp_path / f"{epsilon}.sqlite") as ledger:
            ledger.set_budget("digits", epsilon, delta)
            booked: list[Plan] = []
            for plan in plans:
                try:
                    book(ledger, plan)
                except BudgetRefused:
                    continue
                booked.append(plan)
                assert composed(booked, delta) <= account(ledger).spent_epsilon <= epsilon
            assert booked


def test_a_ledger_bound_to_the_filter_stops_before_the_budget_is_passed(ledger: Ledger) -> None:
    plan, booked = of_method("dpmerf", 0.3), 0
    with pytest.raises(BudgetRefused) as refused:
        while True:
            book(ledger, plan)
            booked += 1
    assert booked > 2 / 0.3 and composed([plan] * booked, 2e-5) <= 2.0
    message, command = refused.value.message, refused.value.next_command
    assert "Renyi filter of order 12" in message and all(
        word in message for word in ("requested", "remaining", "difference")
    )
    assert command is not None and command.startswith("limbeck budget set digits --epsilon 2.")
    words = command.split()
    ledger.set_budget("digits", float(words[5]), float(words[7]))
    book(ledger, plan)  # what the refusal names is enough


def test_remaining_is_what_a_gaussian_plan_may_cost(ledger: Ledger) -> None:
    book(ledger, of_method("dpmerf", 1.0))
    for _ in range(3):
        left = account(ledger).remaining_epsilon
        if left < 1e-3:
            break
        with pytest.raises(BudgetRefused):
            book(ledger, of_method("dpmerf", left * 1.02 + 1e-4))
        book(ledger, of_method("dpmerf", left))
    assert account(ledger).remaining_epsilon < 0.02 and account(ledger).spent_epsilon <= 2.0


# Where the filter would not help, nothing is as it was not before


def test_an_account_with_a_huge_curve_is_bound_to_the_sum_and_behaves_as_ever(tmp_path: Path) -> None:
    plan = of_method("ldpdc", 1.0, "mnist")
    found = divergence(text_of(plan), counts_of(plan), 12)
    assert found is not None and found > 50
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        ledger.set_budget("mnist", 2.0, 2e-5)
        book(ledger, plan)
        book(ledger, plan)
        total = account(ledger, "mnist")
        assert (total.rule, total.order, total.spent_epsilon) == ("sum", None, total.spent_epsilon_sum)
        assert total.spent_epsilon == pytest.approx(2 * plan.price.epsilon) and total.spent_delta == 2e-5
        with pytest.raises(BudgetRefused, match=r"delta requested 1e-05, remaining 0\.0, difference 1e-05"):
            book(ledger, of_method("dpmerf", 0.1, "mnist"))


@pytest.mark.parametrize(
    ("epsilon", "delta", "plan", "price_epsilon", "price_delta"),
    [
        (2.0, 2e-5, "{}", 0.1, 1e-6),
        (2.0, 2e-5, "no json", 0.1, 1e-6),
        (2.0, 2e-5, '{"plan": {"queries": []}}', 0.1, 1e-6),
        (2.0, 2e-5, '{"plan": {"queries": [{"kind": "unknown"}]}}', 0.1, 1e-6),
        (2.0, 2e-5, "[[]]", 0.1, 1e-6),
        (2.0, 0.0, "{}", 0.1, 0.0),
        (math.inf, 2e-5, "{}", 0.1, 1e-6),
        (math.inf, 2e-5, "{}", math.inf, 1e-6),
    ],
)
def test_whatever_has_no_curve_is_added_up(
    tmp_path: Path, epsilon: float, delta: float, plan: str, price_epsilon: float, price_delta: float
) -> None:
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        ledger.set_budget("digits", epsilon, delta)
        ledger.book("digits", plan=plan, method="m", epsilon=price_epsilon, delta=price_delta, counts={"s": 1})
        assert (account(ledger).rule, account(ledger).order) == ("sum", None)


def test_one_plan_that_is_the_whole_budget_still_fits(tmp_path: Path) -> None:
    plan = of_method("dpmerf", 1.0)
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        ledger.set_budget("digits", plan.price.epsilon, DELTA)
        book(ledger, plan)
        assert account(ledger).rule == "sum" and account(ledger).remaining_epsilon == 0.0


def test_the_sum_wins_a_tie(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        ledger.set_budget("digits", 3.0, 1e-5)
        text, counts, order = text_of(planned(sums(3.0))), {"s": 1}, order_for(3.0, 1e-5)
        rho = divergence(text, json.dumps(counts), order)
        assert rho is not None and int((3 - overhead(order, 1e-5)) / rho) == 3
        ledger.book("digits", plan=text, method="m", epsilon=1.0, delta=1e-6, counts=counts)
        assert account(ledger).rule == "sum"


def test_without_a_budget_the_sum_speaks(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        plan = of_method("dpmerf", 1.0)
        book(ledger, plan)
        assert account(ledger).rule == "sum"
        with pytest.raises(BudgetRefused):
            book(ledger, of_method("dpmerf", 0.1))


def test_a_plan_without_a_curve_is_refused_by_an_account_that_is_bound_to_the_filter(ledger: Ledger) -> None:
    book(ledger, of_method("dpmerf", 1.0))
    for text, counts in (("{}", {"s": 1}), (text_of(planned(sums(50.0))), {"s": 2})):
        with pytest.raises(BudgetRefused, match="has no curve"):
            ledger.book("digits", plan=text, method="m", epsilon=0.1, delta=1e-6, counts=counts)
    with pytest.raises(BudgetRefused):
        ledger.book("digits", plan="{}", method="m", epsilon=math.inf, delta=1e-6, counts={"s": 1})
    with pytest.raises(BudgetRefused, match=r"delta requested 0\.001"):
        book(ledger, planned(sums(200.0), delta=1e-3))


# The rule is a commitment


def rules_of(ledger: Ledger) -> list[tuple[str, str, str, str, str]]:
    with ledger.file.transaction(write=False) as db:
        return db.execute("SELECT dataset, budget, booking, rule, alpha FROM rules ORDER BY number").fetchall()


def test_the_rule_is_on_record_and_outlives_its_first_booking(ledger: Ledger, tmp_path: Path) -> None:
    plan = of_method("dpmerf", 0.5)
    first = book(ledger, plan)
    book(ledger, plan)
    ledger.void(first)
    assert rules_of(ledger) == [("digits", "1", "1", "renyi", "12")]
    with Ledger.open(tmp_path / "ledger.sqlite") as other:
        assert account(other).rule == "renyi"
        with pytest.raises(BudgetRefused, match="no curve"):
            other.book("digits", plan="{}", method="m", epsilon=0.1, delta=1e-6, counts={"s": 1})
    book(ledger, plan)
    assert len(rules_of(ledger)) == 1


def test_a_sum_stays_a_sum_though_the_filter_would_leave_more(ledger: Ledger) -> None:
    """The first plan, which has no curve, was given back; another one counts, so nothing is chosen anew."""
    first = ledger.book("digits", plan="{}", method="m", epsilon=0.5, delta=1e-6, counts={"s": 1})
    plan = of_method("dpmerf", 0.9)
    book(ledger, plan)
    ledger.void(first)
    assert account(ledger).rule == "sum"
    with pytest.raises(BudgetRefused, match="delta requested"):
        for _ in range(2):
            book(ledger, plan)
    assert len(account(ledger).bookings) == 3


def test_when_all_was_given_back_nothing_was_answered_and_the_next_plan_binds_anew(ledger: Ledger) -> None:
    ledger.void(ledger.book("digits", plan="{}", method="m", epsilon=0.5, delta=1e-6, counts={"s": 1}))
    book(ledger, of_method("dpmerf", 0.5))
    assert [(booking, rule) for _, _, booking, rule, _ in rules_of(ledger)] == [("1", "sum"), ("2", "renyi")]


def test_answers_cannot_choose_the_rule(ledger: Ledger) -> None:
    """Whoever sees answers and then picks a plan gets no second rule: for either choice of the next plan the ledger counts by
    the rule that was fixed before the first answer."""
    plan = of_method("dpmerf", 0.5)
    grant = book(ledger, plan)
    label = plan.queries[0].label
    ledger.store(grant, label, 0, map_digest="m", payload=b"answer")
    # By the plain sum this would fit (0.5 + 1.5 = 2, and the deltas); by the filter it does not, and that is what counts.
    heavy = of_method("ldpdc", 1.4, "mnist")
    with pytest.raises(BudgetRefused, match="Renyi filter"):
        ledger.book(
            "digits", plan=text_of(heavy), method="ldpdc", epsilon=heavy.price.epsilon, delta=DELTA, counts=heavy.counts
        )
    with pytest.raises(BudgetRefused, match="no curve"):
        ledger.book("digits", plan="{}", method="m", epsilon=1.4, delta=DELTA, counts={"s": 1})
    assert account(ledger).rule == "renyi" and len(rules_of(ledger)) == 1


def test_what_a_refusal_names_is_another_budget(ledger: Ledger) -> None:
    """By the sum the budget in force would do, but to set it once more binds nobody anew."""
    book(ledger, of_method("dpmerf", 0.5))

    def without_a_curve() -> str:
        return ledger.book("digits", plan="{}", method="m", epsilon=1.0, delta=DELTA, counts={"s": 1})

    with pytest.raises(BudgetRefused) as refused:
        without_a_curve()
    assert refused.value.next_command == "limbeck budget set digits --epsilon 2.02 --delta 2e-05"
    ledger.set_budget("digits", 2.02, 2e-5)
    without_a_curve()


def test_a_new_budget_has_a_new_order_and_a_new_rule_at_the_next_booking(ledger: Ledger) -> None:
    plan = of_method("dpmerf", 1.0)
    for _ in range(3):
        book(ledger, plan)
    assert account(ledger).spent_epsilon_sum > 2.9
    assert ledger.set_budget("digits", 2.0, 2e-5).rule == "renyi"  # the same budget changes nothing
    raised = ledger.set_budget("digits", 4.0, 2e-5)
    assert raised.rule is None and raised.spent_epsilon < 3.0 and raised.remaining_epsilon > 0.9
    book(ledger, plan)
    assert [(budget, rule, alpha) for _, budget, _, rule, alpha in rules_of(ledger)] == [
        ("1", "renyi", "12"), ("2", "renyi", str(order_for(4.0, 2e-5))),
    ]  # fmt: skip
    assert composed([plan] * 4, 2e-5) <= account(ledger).spent_epsilon <= 4.0
    with pytest.raises(BudgetRefused, match="already spent"):
        ledger.set_budget("digits", 1.0, 2e-5)


def test_a_budget_may_be_lowered_to_what_the_filter_says(ledger: Ledger) -> None:
    plan = of_method("dpmerf", 1.0)
    book(ledger, plan)
    book(ledger, plan)
    assert ledger.set_budget("digits", 1.6, 2e-5).spent_epsilon <= 1.6
    with pytest.raises(BudgetRefused, match="already spent"):
        ledger.set_budget("digits", 1.45, 2e-5)


# The tree, in the filter's currency


def test_parts_are_composed_by_the_same_recursion(ledger: Ledger) -> None:
    ledger.declare_split("digits", "halves", parts=2)
    ledger.declare_split("digits", "kinds", classes=[[0, 1], [2, 3]], unit="person")
    plan = of_method("dpmerf", 1.0)
    rho = divergence(text_of(plan), counts_of(plan), 12)
    assert rho is not None
    for part in (1, 2):
        book(ledger, plan, PartOf(parent="digits", split="halves", part=part))
    one = float(rho + overhead(12, 2e-5))
    assert account(ledger).spent_epsilon == pytest.approx(min(plan.price.epsilon, one))
    book(ledger, plan)
    assert account(ledger).spent_epsilon == pytest.approx(float(2 * rho + overhead(12, 2e-5)))
    kinds = [PartOf(parent="digits", split="kinds", part=1, classes=(0, 1), unit="person")]
    kinds.append(PartOf(parent="digits", split="kinds", part=2, classes=(2, 3), unit="person"))
    book(ledger, plan, kinds[0])
    with pytest.raises(BudgetRefused, match="'digits', of which 'digits/kinds/2' is a part"):
        book(ledger, plan, kinds[1])
    assert account(ledger).spent_epsilon <= 2.0


def test_the_rule_is_chosen_for_the_room_that_the_plans_own_part_has(ledger: Ledger) -> None:
    """By the sum the whole is overspent under its new budget, by the filter the second half has room that the first has not."""
    ledger.declare_split("digits", "halves", parts=2)
    first, second = (PartOf(parent="digits", split="halves", part=number) for number in (1, 2))
    for _ in range(3):
        book(ledger, of_method("dpmerf", 1.0), first)
    ledger.set_budget("digits", 2.1, 2e-5)
    found = account(ledger, second.account)
    assert account(ledger).spent_epsilon_sum > 2.9 and found.remaining_epsilon > 1.0
    book(ledger, of_method("dpmerf", found.remaining_epsilon, delta=found.remaining_delta), second)
    assert account(ledger).rule == "renyi" and account(ledger).spent_epsilon <= 2.1


def test_a_part_may_be_bound_to_another_rule_than_the_whole(ledger: Ledger) -> None:
    ledger.declare_split("digits", "halves", parts=2)
    ledger.set_budget("digits/halves/1", 1.0, DELTA)
    plan, part = of_method("dpmerf", 1.0), PartOf(parent="digits", split="halves", part=1)
    book(ledger, plan, part)
    assert [(name, rule) for name, _, _, rule, _ in rules_of(ledger)] == [
        ("digits/halves/1", "sum"), ("digits", "renyi"),
    ]  # fmt: skip
    with pytest.raises(BudgetRefused, match="'digits/halves/1' does not cover"):
        book(ledger, plan, part)


# The numbers themselves


def reference(plan: Plan, order: int, relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE) -> float:
    accountant = RdpAccountant(orders=[order], neighboring_relation=relation)
    accountant.compose(ComposedDpEvent([query.event() for query in plan.queries]))
    return float(accountant._rdp[0])


@pytest.mark.parametrize("order", [2, 3, 12, 64, 500])
@pytest.mark.parametrize(
    "plan",
    [
        planned(sums(4.0)),
        planned(sums(2.0, 0.05, 30)),
        planned(sums(20.0, 1e-3, 1000)),
        planned(TeacherVote(label="v", map="sign", clip=1.0, noise_multiplier=30.0, teachers=10, count=7)),
    ],
)
def test_divergences_agree_with_another_accountant_and_are_never_below(plan: Plan, order: int) -> None:
    found, expected = divergence(text_of(plan), counts_of(plan), order), reference(plan, order)
    assert found is not None and expected * (1 - 1e-7) <= float(found) <= expected * (1 + 1e-5) + 1e-8


def test_divergences_of_subsets_are_those_of_dp_accounting() -> None:
    query = TeacherGradient(label="g", map="x", clip=1.0, noise_multiplier=2.0, teachers=50, draws=2, count=3)
    plan = planned(query)
    found = divergence(text_of(plan), counts_of(plan), 8)
    assert found is not None and float(found) == pytest.approx(reference(plan, 8, REPLACED), rel=0.05)


def test_plans_that_are_not_private_or_hardly_have_no_curve() -> None:
    for noise in (0.0, 0.01):
        query = sums(noise)
        text = json.dumps({"plan": {"queries": [query.to_dict()]}})
        assert divergence(text, '{"s": 1}', 12) is None


def test_the_order_follows_from_the_budget_alone_and_is_whole() -> None:
    for epsilon in (0.01, 0.1, 1.0, 2.0, 10.0, 300.0):
        for delta in (1e-9, 1e-5, 1e-3, 0.5):
            order = order_for(epsilon, delta)
            assert type(order) is int and 2 <= order <= 1024 and overhead(order, delta) >= 0
    assert order_for(2.0, 2e-5) == 12


def test_the_overhead_is_that_of_balle_and_others() -> None:
    for order, delta in ((2, 1e-5), (12, 2e-5), (700, 1e-6)):
        exact = math.log(1 - 1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
        assert Decimal(exact) <= overhead(order, delta) <= Decimal(exact) + Decimal("1e-7")


def test_a_gaussian_at_the_filters_limit_is_within_its_delta() -> None:
    """The conversion itself, against the exact curve: a mechanism with this divergence has at most this delta."""
    for order in (3, 12, 40):
        for mu in np.linspace(0.05, 1.5, 12):
            epsilon = order * mu**2 / 2 + float(overhead(order, 2e-5))
            assert gaussian_epsilon(float(mu), 2e-5) <= epsilon
