"""Faults of queries, plans and accountants: events that say too little, bounds that are none, rounding in the wrong direction."""

from __future__ import annotations

from mutation import Faults, Mutation

queries, plan, accounting = (
    Faults("privacy/queries.py", "privacy/noised.py", "privacy/numbers.py"),
    Faults("privacy/plan.py"),
    Faults("privacy/accounting.py", "privacy/accountants.py", "privacy/calibration.py"),
)
renyi = Faults("privacy/renyi.py")

EVENTS = "privacy/test_events.py"
PRICES = "privacy/test_accounting.py"
EXACT = f"{PRICES}::test_an_unsampled_gaussian_is_accounted_exactly"
RENYI = "privacy/test_renyi.py"
RULES = "privacy/test_rules.py"
RULE_1 = f"{RULES}::test_rule_01_the_event_is_built_from_every_field_that_matters"
WALL = "privacy/test_vault_wall.py"
SCALE = "privacy/test_vault_noise.py::test_a_sum_has_just_the_noise_that_was_paid_for"
TEACHERS_TESTS = "privacy/test_teachers.py"
TRIP = f"{TEACHERS_TESTS}::test_a_vote_that_was_not_noised_has_no_price_and_a_query_survives_the_trip"

ACCOUNTING: tuple[Mutation, ...] = (
    # Queries
    queries(
        "queries-smallest-rate", "PoissonSampledDpEvent(max(", "PoissonSampledDpEvent(min(", "other classes", RULE_1
    ),
    queries("queries-one-sum", "(once, self.count)", "(once, 1)", "all answers for the price of one", RULE_1),
    queries(
        "queries-one-vote",
        "(GaussianDpEvent(self.noise_multiplier), self.count)",
        "(GaussianDpEvent(self.noise_multiplier), 1)",
        "all votes for the price of one",
        EVENTS,
    ),
    queries("queries-one-part", "self.count * self.draws", "self.count", "all parts for the price of one", EVENTS),
    queries("queries-one-answer", "self.count * self.draws", "self.draws", "all answers for the price of one", EVENTS),
    queries(
        "queries-more-teachers",
        "SampledWithoutReplacementDpEvent(self.teachers, 1, once)",
        "SampledWithoutReplacementDpEvent(2 * self.teachers, 1, once)",
        "half of the true chance",
        EVENTS,
    ),
    queries(
        "queries-noise-without-clip",
        "self.noise_multiplier * self.clip if",
        "self.noise_multiplier if",
        "noise that forgets the clip",
        "privacy/test_vault_noise.py::test_a_query_states_the_noise_that_its_answers_have",
    ),
    queries(
        "queries-no-noise",
        "return self.noise_multiplier > 0",
        "return self.noise_multiplier >= 0",
        "a bare sum has a finite price",
        RULE_1,
    ),
    queries(
        "queries-rate-above-one",
        "all(SMALLEST_NORMAL <= rate <= 1 for",
        "all(SMALLEST_NORMAL <= rate for",
        "a rate that is none",
        f"{PRICES}::test_bad_rates_are_refused",
    ),
    queries(
        "queries-no-count",
        "not 1 <= value < 2**53",
        "not value < 2**53",
        "fewer answers than none are free",
        f"{PRICES}::test_bad_counts_are_refused",
    ),
    queries(
        "queries-not-positive",
        "SMALLEST_NORMAL <= value < math.inf",
        "value < math.inf",
        "negative noise has a price",
        f"{PRICES}::test_a_query_refuses_bad_noise_and_clip",
    ),
    queries(
        "queries-unknown-field",
        'if set(values) - fields - {"kind", "step"}:',
        "if not values:",
        "unknown is harmless",
        TRIP,
    ),
    # Plans
    plan(
        "plan-labels",
        "if not labels or len(set(labels)) != len(labels)",
        "if not labels",
        "two queries share their count",
        WALL,
    ),
    plan("plan-counts", "query.label: query.count for", "query.label: query.count + 1 for", "one more", WALL),
    plan(
        "plan-above-epsilon",
        "cost.epsilon > epsilon:",
        "cost.epsilon > 2 * epsilon:",
        "more than the epsilon that was asked for",
        f"{EVENTS}::test_a_plan_never_costs_more_than_was_asked_for",
    ),
    plan(
        "plan-any-delta",
        "require_delta(delta, schema.privacy_units, schema.by_person)",
        "require_delta(delta)",
        "delta above 1/N",
        f"{EVENTS}::test_a_plan_never_costs_more_than_was_asked_for",
    ),
    plan(
        "plan-unconfirmed",
        "schema.require_confirmed()",
        "schema.name.strip()",
        "a guessed schema is public",
        f"{EVENTS}::test_a_plan_never_costs_more_than_was_asked_for",
    ),
    # Accountants
    accounting(
        "accounting-rounded-down",
        "scaled: float = math.ceil(value * 10.0**DECIMALS) / 10.0**DECIMALS\n    return scaled if scaled >= value else scaled",
        "scaled: float = math.floor(value * 10.0**DECIMALS) / 10.0**DECIMALS\n    return scaled if scaled <= value else scaled",
        "less is printed than was computed",
        f"{PRICES}::test_rounding_is_upwards_and_by_less_than_a_millionth",
    ),
    accounting(
        "accounting-rounding-not-checked",
        "return scaled if scaled >= value else scaled + 10.0**-DECIMALS",
        "return scaled",
        "a product that is rounded down before it is rounded up",
        f"{EVENTS}::test_what_is_rounded_up_is_never_below",
    ),
    accounting(
        "accounting-floor",
        "math.ceil(value * 10.0",
        "math.floor(value * 10.0",
        "less is printed than was computed",
        f"{PRICES}::test_rounding_is_upwards_and_by_less_than_a_millionth",
        explained="The next line adds one unit wherever the result lies below the value: it holds by itself.",
    ),
    accounting(
        "accounting-one-gaussian",
        "sum(term.times / term.noise**2",
        "sum(1 / term.noise**2",
        "all answers for the price of one",
        f"{PRICES}::test_unsampled_gaussians_compose_like_one",
    ),
    accounting(
        "accounting-exact-formula",
        "norm.cdf(mu / 2 - epsilon / mu)",
        "norm.cdf(mu / 2 - epsilon)",
        "another formula",
        EXACT,
    ),
    accounting(
        "accounting-largest",
        "best = min(value for value in (pld, rdp, exact) if value is not None)",
        "best = min(value for value in (pld, rdp, exact) if value is not None) * 0.99",
        "below every bound",
        EXACT,
    ),
    accounting(
        "accounting-tiny-rate",
        "PoissonSampledDpEvent(max(term.rate, SMALLEST_RATE), once)",
        "PoissonSampledDpEvent(term.rate, once)",
        "a tiny rate is free",
        f"{PRICES}::test_a_tiny_rate_is_not_free_because_the_accountants_lose_their_digits",
    ),
    accounting(
        "accounting-subset-as-poisson",
        "return renyi.subset_gaussian(rate, noise, orders)",
        "return renyi.poisson_gaussian(rate, noise, orders)",
        "a draw that replaces is priced as one that adds",
        EVENTS,
    ),
    accounting("accounting-no-subset", "subset=share < 1)", "subset=share > 1)", "a grid that is not proved", EVENTS),
    accounting(
        "accounting-not-private-among-private",
        "None if any(part is None for part in parts)",
        "None if all(part is None for part in parts)",
        "a bare sum among noised ones is free",
        f"{WALL}::test_a_plan_with_one_query_that_is_not_private_is_not_private",
    ),
    accounting(
        "accounting-nested",
        "times=term.times * event.count",
        "times=event.count",
        "repeated repetitions",
        f"{EVENTS}::test_repetitions_of_repetitions_multiply",
    ),
    accounting(
        "accounting-any-delta",
        "delta >= 1 / units",
        "delta >= 1",
        "delta above 1/N",
        f"{PRICES}::test_delta_must_be_below_one_over_the_number_of_records",
    ),
    accounting(
        "accounting-calibrated-above",
        "while round_up(cost(ticks / 1e4)) > epsilon",
        "while round_up(cost(ticks / 1e4)) > epsilon * 1.002",
        "noise for more than epsilon",
        f"{EVENTS}::test_calibrated_noise_is_raised_until_the_price_holds",
    ),
    accounting(
        "accounting-little-noise",
        "if multiplier < SMALLEST_MULTIPLIER",
        "if multiplier < 0",
        "noise for which the grids are not made",
        f"{PRICES}::test_noise_outside_of_what_the_accountants_can_price_is_refused",
    ),
    accounting(
        "accounting-unknown-event",
        'raise BadInput(f"No accountant is proved for the event {type(event).__name__}.")',
        "return ()",
        "what is not known is free",
        f"{EVENTS}::test_an_unknown_event_is_refused_among_known_ones_too",
    ),
    # Renyi curves
    renyi("renyi-factor-two", "bound = math.log(2) + ", "bound = ", "a factor of the theorem is lost", RENYI),
    renyi(
        "renyi-factor-four", "by_moments = math.log(4) + ", "by_moments = ", "a factor of the theorem is lost", RENYI
    ),
    renyi(
        "renyi-from-three",
        "_binomials(orders, first=2)",
        "_binomials(orders, first=3)",
        "the first term is lost",
        RENYI,
    ),
    renyi("renyi-conversion", "+ np.log1p(-1 / orders) - (", "- (", "another conversion", RENYI),
    renyi(
        "renyi-largest-order", "np.log(orders)) / (orders - 1)", "np.log(orders)) / orders", "below the bound", RENYI
    ),
    renyi(
        "renyi-poisson",
        "j * (j - 1) / (2 * noise_multiplier**2)\n    summed",
        "j * (j - 1) / (4 * noise_multiplier**2)\n    summed",
        "half of the price",
        RENYI,
    ),
    renyi("renyi-gaussian", "return orders / (2 * noise", "return orders / (4 * noise", "half of the price", RENYI),
)
