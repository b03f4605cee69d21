"""Faults of choices: prices that say too little, draws that are not exact, units that move a score by more than the clip."""

from __future__ import annotations

from mutation import Faults, Mutation

query, price, accounting = (
    Faults("privacy/choice.py", "privacy/plan.py"),
    Faults("privacy/bounded_range.py"),
    Faults("privacy/accountants.py"),
)
draw, chooser, scores = (
    Faults("vault/choices/exponential.py"),
    Faults("vault/choices/chooser.py"),
    Faults("vault/choices/marginal_errors.py"),
)
cells = Faults("vault/maps/cells.py")

PRICE = "privacy/test_choice.py"
COVERS = f"{PRICE}::test_the_price_covers_composed_choices"
VAULT = "vault/test_choices.py"
SHARE = f"{VAULT}::test_every_candidate_gets_just_its_share_of_the_unit_interval"

CHOICES: tuple[Mutation, ...] = (
    query("choice-half-range", "BoundedRangeDpEvent(2 /", "BoundedRangeDpEvent(1 /", "half the price", COVERS),
    query(
        "choice-one-answer",
        "(BoundedRangeDpEvent(2 / self.noise_multiplier), self.count)",
        "(BoundedRangeDpEvent(2 / self.noise_multiplier), 1)",
        "all choices for the price of one",
        PRICE,
    ),
    query("choice-no-clip", "        require_clip(self.clip)\n", "", "a choice without a bound has a price", PRICE),
    query(
        "choice-person-as-record",
        "not isinstance(query, ClippedSum | Choice)",
        "not isinstance(query, ClippedSum)",
        "methods and vault disagree about what a person's records are worth",
        PRICE,
    ),
    price("choice-renyi-half", "orders * range_**2 / 8", "orders * range_**2 / 16", "half of the divergence", PRICE),
    price("choice-losses-rounded-down", "math.ceil(range_", "math.floor(range_", "a smaller range is priced", PRICE),
    price("choice-losses-lighter", "np.exp((x - x[-1]) / 2)", "np.exp((x - x[-1]) / 4)", "another profile", PRICE),
    accounting(
        "choice-as-gaussian",
        "term.rate == 1 and not term.choice",
        "term.rate == 1",
        "choices are priced as exact Gaussians, which are cheaper",
        COVERS,
    ),
    accounting(
        "choice-zero-concentrated-half",
        "ZCDpEvent(term.range**2 / 8)",
        "ZCDpEvent(term.range**2 / 16)",
        "half of the divergence",
        f"{PRICE}::test_a_choice_weighs_as_much_as_a_gaussian_of_its_noise",
    ),
    accounting(
        "choice-losses-once",
        "loss_distribution(term.range, interval).self_compose(term.times)",
        "loss_distribution(term.range, interval)",
        "all choices for the price of one",
        COVERS,
    ),
    draw("choice-unsure", "<= low[place + 1] * unit", "<= high[place + 1] * unit", "a draw before it is sure", VAULT),
    draw(
        "choice-wrong-way",
        "_bounds(highest - score, scale",
        "_bounds(score - min(scores), scale",
        "the worst wins",
        SHARE,
    ),
    chooser(
        "choice-half-noise",
        "scale = Fraction(query.noise_multiplier)",
        "scale = Fraction(query.noise_multiplier) / 2",
        "twice the epsilon that was paid",
        f"{VAULT}::test_neighbours_are_told_apart_by_just_what_was_paid_for",
    ),
    chooser(
        "choice-person-whole",
        "np.minimum(ONE, most // held[person])",
        "np.full(len(sample), ONE)",
        "a person with many records moves a score by all of them",
        f"{VAULT}::test_a_person_counts_for_no_more_than_the_clip",
    ),
    chooser(
        "choice-clip-ignored",
        "min(ONE, most), dtype",
        "ONE, dtype",
        "a clip below 1 is none",
        f"{VAULT}::test_records_are_counted_once_whatever_they_hold",
    ),
    scores(
        "choice-heavy-weight",
        " & (self.weights <= 1)",
        "",
        "a candidate that counts twice moves by twice the clip",
        f"{VAULT}::test_numbers_that_cannot_be_compared_are_refused",
    ),
    scores(
        "choice-double-worth",
        "Fraction(weight) / (ONE * step)",
        "2 * Fraction(weight) / (ONE * step)",
        "a record moves a score by twice the clip",
        f"{VAULT}::test_a_unit_moves_no_score_by_more_than_its_worth",
    ),
    scores(
        "choice-digest-without-estimates",
        'for name in ("estimates", "weights", "penalties")}\n        return',
        'for name in ("weights", "penalties")}\n        return',
        "an answer about other estimates is given again",
        f"{VAULT}::test_other_numbers_are_another_question",
    ),
    cells(
        "choice-label-beyond",
        "[y.clamp(0, self.classes - 1)]",
        "[y]",
        "a label that there should not be stops the answer, or is counted elsewhere",
        "vault/test_cells.py::test_a_label_is_a_column_and_none_is_out_of_range",
    ),
)
