"""Faults of the ledger's tree, of its rules and of the step from format 1: who pays, by which rule, and what is kept."""

from __future__ import annotations

from mutation import Faults, Mutation

booking, splits = Faults("vault/ledger/booking.py"), Faults("vault/ledger/splits.py")
tree = Faults("vault/ledger/fitting.py", "vault/ledger/family.py")
rules, curve = Faults("vault/ledger/rules.py"), Faults("vault/ledger/renyi_filter.py")
migration, schema = Faults("vault/ledger/migration.py"), Faults("vault/ledger/tables.py")
checks, file = Faults("vault/ledger/checks.py"), Faults("vault/ledger/file.py")
members, hashes = Faults("vault/part_records.py"), Faults("vault/keyed_hash.py")
reading = Faults("data/parts.py")

TREE = "vault/test_ledger_tree.py"
FILTER = "vault/test_ledger_filter.py"
MIGRATION = "vault/test_ledger_migration.py"
PARTS = "runs/test_part_runs.py"
GUARDS = "vault/test_ledger_guards.py"

LEDGER_TREE: tuple[Mutation, ...] = (
    # Who pays
    tree(
        "tree-own-account-only",
        "for name in family.path(booking.dataset))\n    for",
        "for name in family.path(booking.dataset)[:1])\n    for",
        "a part spends what the whole has spent",
        f"{TREE}::test_parts_after_the_whole_get_what_it_left",
    ),
    tree(
        "tree-parts-are-free",
        "total = added(total, _together(split, parts, prices, along))",
        "str(parts)",
        "the whole is spent once more after its parts",
        f"{TREE}::test_the_whole_after_its_parts_adds_to_the_dearest",
    ),
    tree(
        "tree-smallest-part",
        "return max(prices, default=Decimal(0))",
        "return min(prices, default=Decimal(0))",
        "the cheapest part counts",
        f"{TREE}::test_disjoint_parts_cost_the_largest_of_them",
    ),
    tree(
        "tree-all-disjoint",
        "if not split.disjoint:",
        'if split.kind == "none":',
        "overlapping parts are counted as disjoint",
        f"{TREE}::test_a_person_may_be_in_several_classes_so_such_parts_add_up",
    ),
    splits(
        "tree-persons-by-class",
        "disjoint=unit == UNIT_RECORD",
        "disjoint=True",
        "persons with records of several classes pay once",
        f"{TREE}::test_a_person_may_be_in_several_classes_so_such_parts_add_up",
    ),
    booking(
        "tree-persons-in-a-split-of-records",
        "split.disjoint and part.unit != UNIT_RECORD",
        "split.disjoint and part.unit is None",
        "persons are booked on parts that keep records apart only",
        f"{TREE}::test_a_split_of_records_is_not_used_for_persons",
    ),
    booking(
        "tree-other-classes",
        "if split.parts[part.part - 1] != part.classes",
        "if not split.parts",
        "a part reads the records of another",
        f"{TREE}::test_a_part_that_no_split_declares_is_refused",
    ),
    booking(
        "tree-name-of-a-part",
        'if place is not None and place.kind != "stages"',
        'if place is not None and place.kind == "none"',
        "other records are booked as a part",
        f"{TREE}::test_records_that_are_not_given_as_the_part_are_not_booked_on_it",
    ),
    booking(
        "tree-undeclared",
        "or not 1 <= part.part <= len(split.parts)",
        "",
        "parts that no split has",
        f"{TREE}::test_a_part_that_no_split_declares_is_refused",
    ),
    booking(
        "tree-split-changed",
        "if not known.same_parts(wanted)",
        "if known is wanted",
        "another split under the same name",
        f"{TREE}::test_the_same_split_again_is_the_same_and_another_one_is_refused",
    ),
    booking(
        "tree-whole-becomes-part",
        'if (found := db.execute(booked, (name, f"{name}/", f"{name}0")).fetchone()) is not None',
        'if (found := db.execute(booked, (name, f"{name}/", f"{name}0")).fetchone()) == ()',
        "a data set of its own is taken for a part",
        f"{TREE}::test_a_name_with_slashes_is_a_whole_until_a_split_says_otherwise",
    ),
    booking(
        "tree-booked-below",
        "WHERE dataset = ? OR (dataset >= ? AND dataset < ?) LIMIT 1",
        "WHERE dataset = ? OR (dataset >= ? AND dataset < ? AND FALSE) LIMIT 1",
        "an account with parts of its own gets the budget of another data set",
        f"{TREE}::test_what_is_booked_below_an_account_keeps_it_from_becoming_a_part",
    ),
    booking(
        "tree-stage-beside-the-tree",
        'or split.kind == "stages"',
        'or split.kind == "none"',
        "an earlier stage is booked under a name that no account above it knows",
        f"{MIGRATION}::test_an_earlier_stage_is_booked_under_its_own_name_only",
    ),
    booking(
        "tree-read-otherwise",
        'if any(_entry(booking.plan, "reading", "") != reading for booking in booked):',
        "if reading == str(booked):",
        "a record is in two disjoint parts after its schema was changed",
        f"{TREE}::test_parts_that_were_not_read_alike_are_not_disjoint",
    ),
    reading(
        "tree-reading-without-columns",
        '*([] if by_class else ["shape", "columns"])',
        "*([] if by_class else [])",
        "a wider range of a column moves records to other parts",
        f"{PARTS}::test_a_changed_schema_does_not_bring_a_record_into_a_second_part",
    ),
    # Which records
    members(
        "hash-by-place",
        "unit_hashes(records, split.secret, split.by_value)[:, 0] % np.uint64(len(split.parts))",
        "np.arange(len(records)) % len(split.parts)",
        "one record more moves all others to other parts",
        f"{PARTS}::test_one_record_more_changes_one_part_and_the_order_of_the_file_none",
    ),
    members(
        "hash-by-bytes",
        "split.secret, split.by_value)",
        "split.secret)",
        "a record is in a second part when its file holds it as floats",
        f"{PARTS}::test_a_record_is_in_one_part_whether_it_is_held_in_bytes_or_floats",
    ),
    hashes(
        "hash-of-bytes",
        "return small if np.array_equal(small, x) else x + np.float32(0)",
        "return x",
        "a record is in a second part when its file holds it as floats",
        f"{PARTS}::test_a_record_is_in_one_part_whether_it_is_held_in_bytes_or_floats",
    ),
    splits(
        "hash-of-earlier-splits",
        'by_value = kind == "hash" and isinstance(content, dict)',
        'by_value = kind == "hash"',
        "records of a split from before move to other parts",
        f"{PARTS}::test_a_split_from_before_keeps_its_parts",
    ),
    reading(
        "tree-reading-without-range",
        "if ranged else digest",
        "if False else digest",
        "a deep picture that is cut to another range moves to another part",
        f"{PARTS}::test_another_range_of_deep_pictures_is_another_reading",
    ),
    booking(
        "tree-reading-of-before",
        "return bool(with_range) and booked ==",
        "return False and booked ==",
        "a run of a part that an earlier version began is refused",
        f"{PARTS}::test_a_run_from_before_pictures_said_their_range_goes_on",
    ),
    members(
        "hash-of-nobody",
        "part.unit != UNIT_RECORD and records.units is None",
        "part.unit is None",
        "a person's records are shared out over parts that count as disjoint",
        f"{PARTS}::test_persons_without_their_numbers_are_not_shared_out",
    ),
    hashes(
        "hash-by-record",
        "if records.units is None:",
        "if records.units is None or len(records.units):",
        "a person is in several parts that count as disjoint",
        f"{PARTS}::test_persons_stay_together",
    ),
    splits(
        "hash-known-key",
        "secrets.token_bytes(KEY_BYTES)",
        "bytes(KEY_BYTES)",
        "all can tell which part a record is in",
        f"{PARTS}::test_another_key_shares_out_otherwise",
    ),
    splits(
        "hash-key-shown",
        'field(default=b"", repr=False)',
        'field(default=b"")',
        "the key is printed",
        f"{TREE}::test_the_same_split_again_is_the_same_and_another_one_is_refused",
    ),
    Faults("vault/local.py")(
        "vault-part-forgotten",
        "part=part_of_source(self._source),",
        "",
        "a part is booked as a whole",
        f"{PARTS}::test_parts_by_hash_are_condensed_and_cost_the_dearest",
    ),
    # By which rule
    rules(
        "rule-chosen-again",
        "any(booking.number >= found[-1].booking for",
        "any(booking.number == found[-1].booking for",
        "the rule is chosen anew after answers, when the first booking is given back",
        f"{FILTER}::test_a_sum_stays_a_sum_though_the_filter_would_leave_more",
    ),
    booking(
        "rule-not-written",
        "append_rule(db, rule, grant)",
        "str(rule)",
        "whichever rule fits is taken at each booking, after seeing answers",
        f"{FILTER}::test_answers_cannot_choose_the_rule",
        f"{FILTER}::test_the_rule_is_on_record_and_outlives_its_first_booking",
    ),
    rules(
        "rule-filter-on-ties",
        "if by_filter > _copies_by_sum(",
        "if by_filter >= _copies_by_sum(",
        "the filter is taken where it gains nothing",
        f"{FILTER}::test_the_sum_wins_a_tie",
    ),
    rules(
        "rule-without-overhead",
        "else added(used, overhead(order, budget.delta))",
        "else used",
        "a divergence is taken for an epsilon",
        f"{FILTER}::test_two_plans_of_one_cost_less_than_two_and_a_third_fits",
    ),
    rules(
        "rule-of-an-older-budget",
        "if each.budget == budget.number",
        "if each.budget",
        "an order that was fixed for another budget",
        f"{FILTER}::test_a_new_budget_has_a_new_order_and_a_new_rule_at_the_next_booking",
    ),
    tree(
        "filter-unknown-is-free",
        "if price is None:\n                    return None",
        "if price is None:\n                    continue",
        "a plan without a curve costs nothing",
        f"{FILTER}::test_a_plan_without_a_curve_is_refused_by_an_account_that_is_bound_to_the_filter",
    ),
    tree(
        "filter-any-delta",
        "if largest > budget.delta",
        "if largest > 1",
        "a plan states a delta beyond the budget",
        f"{FILTER}::test_a_plan_without_a_curve_is_refused_by_an_account_that_is_bound_to_the_filter",
    ),
    curve(
        "filter-other-counts",
        "if not queries or {query.label: query.count for query in queries} != json.loads(counts)",
        "if not queries",
        "one answer is priced and two are paid out",
        f"{FILTER}::test_a_plan_without_a_curve_is_refused_by_an_account_that_is_bound_to_the_filter",
    ),
    curve(
        "filter-rounded-down",
        "value * (1 + 1e-9) + 1e-12",
        "value * (1 - 1e-6)",
        "divergences below the true ones",
        f"{FILTER}::test_divergences_agree_with_another_accountant_and_are_never_below",
    ),
    curve(
        "filter-asked-once",
        "total += term.times * _up(",
        "total += _up(",
        "many answers are priced as one",
        f"{FILTER}::test_divergences_agree_with_another_accountant_and_are_never_below",
    ),
    Faults("privacy/accountants.py")(
        "filter-subset-as-sample",
        "if term.subset:",
        "if term is None:",
        "a secret choice of one teacher is priced as a Poisson sample",
        f"{FILTER}::test_divergences_of_subsets_are_those_of_dp_accounting",
    ),
    # From format 1
    splits(
        "stages-disjoint",
        "sorted(numbers)), disjoint=False)",
        "sorted(numbers)), disjoint=True)",
        "stages of which nothing is known are counted as disjoint",
        f"{MIGRATION}::test_stages_are_parts_that_add_up",
    ),
    migration(
        "migration-no-copy",
        "    _keep_copy(path, connection)\n    try:",
        "    try:",
        "the old file is gone",
        f"{MIGRATION}::test_the_old_file_is_kept_beside_as_it_was",
    ),
    migration(
        "migration-copy-replaced",
        "os.link(temporary, kept)",
        "os.replace(temporary, kept)",
        "an earlier copy is lost",
        f"{MIGRATION}::test_a_copy_that_is_there_is_never_replaced",
    ),
    migration(
        "migration-not-alone",
        'connection.execute("PRAGMA locking_mode = EXCLUSIVE")',
        "connection.in_transaction",
        "an earlier version goes on booking without the tree",
        f"{MIGRATION}::test_a_process_that_has_the_old_ledger_open_has_to_end_first",
    ),
    migration(
        "migration-put-back-not-alone",
        'connection.execute("PRAGMA journal_mode = WAL")',
        "connection.in_transaction",
        "a copy that was put back is brought up to date while another process reads it",
        f"{MIGRATION}::test_a_copy_that_was_put_back_is_brought_up_to_date_by_one_process_alone",
    ),
    migration(
        "migration-faster-one-not-seen",
        "if check_kind(path, reader) != OLD:",
        "if False:",
        "whoever was slower waits for the faster one, which goes on for hours",
        f"{MIGRATION}::test_one_that_was_faster_may_keep_it_open",
    ),
    migration(
        "migration-not-in-turn",
        "turn.enter_context(alone_in(path.parent, patience))",
        "turn.close()",
        "several processes that wait for sole use keep each other from it",
        f"{MIGRATION}::test_migrations_take_turns",
    ),
    file(
        "file-kind-of-another-moment",
        'reader.execute("BEGIN")  # kind',
        "reader.in_transaction  # kind",
        "a ledger that is being brought up to date is taken for an altered one",
        f"{MIGRATION}::test_kind_and_content_are_of_one_moment",
    ),
    file(
        "migration-by-looking",
        "bring_up_to_date(copy)",
        "migrate(path, patience)",
        "whoever looks changes the ledger",
        f"{MIGRATION}::test_looking_changes_nothing_and_shows_the_same",
    ),
    # Damage
    checks(
        "file-stray-rule",
        "WHERE budgets.number IS NULL OR bookings.number IS NULL OR",
        "WHERE",
        "a rule that belongs to no budget",
        f"{GUARDS}::test_a_last_row_with_a_digest_of_its_own_still_has_to_make_sense",
    ),
    checks(
        "file-unread-split",
        "            split_from_row(row)",
        "            str(row)",
        "a split that nobody can read",
        f"{GUARDS}::test_a_last_row_with_a_digest_of_its_own_still_has_to_make_sense",
    ),
    schema(
        "schema-split-changed",
        "CREATE TRIGGER splits_keep_their_values BEFORE UPDATE ON splits\nBEGIN SELECT RAISE(ABORT",
        "CREATE TRIGGER splits_keep_their_values BEFORE UPDATE ON splits\nBEGIN SELECT RAISE(IGNORE); SELECT RAISE(ABORT",
        "the file lets a split be changed without a word",
        f"{TREE}::test_triggers_refuse",
    ),
    schema(
        "schema-rule-removed",
        "CREATE TRIGGER rules_stay BEFORE DELETE ON rules\nBEGIN SELECT RAISE(ABORT",
        "CREATE TRIGGER rules_stay BEFORE DELETE ON rules\nBEGIN SELECT RAISE(IGNORE); SELECT RAISE(ABORT",
        "the file lets a rule go without a word",
        f"{TREE}::test_triggers_refuse",
    ),
)
