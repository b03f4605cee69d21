"""Faults of the ledger: what counts as spent, what may be booked, which answer stays, and which damage is noticed."""

from __future__ import annotations

from mutation import Faults, Mutation

ledger = Faults(
    "vault/ledger/book.py", "vault/ledger/booking.py", "vault/ledger/journal.py", "vault/ledger/arguments.py"
)
fitting = Faults(
    "vault/ledger/fitting.py", "vault/ledger/rules.py", "vault/ledger/accounts.py", "vault/ledger/family.py"
)
sums, rows = Faults("vault/ledger/sums.py"), Faults("vault/ledger/rows.py", "vault/ledger/journal.py")
file, schema = Faults("vault/ledger/file.py", "vault/ledger/settling.py"), Faults("vault/ledger/tables.py")
checks, secret = Faults("vault/ledger/checks.py"), Faults("files.py")

TESTS = "vault/test_ledger.py"
GUARDS = "vault/test_ledger_guards.py"
VOID = f"{TESTS}::test_void_gives_back_only_what_was_not_answered"
FLIPS = "vault/test_ledger_flips.py"
COMPANIONS = "vault/test_ledger_companions.py"
SECRETS = "test_files.py"
TAMPERED = f"{TESTS}::test_tampering_is_detected"

LEDGER: tuple[Mutation, ...] = (
    # Booking
    ledger(
        "ledger-any-spend",
        "check_fits(family, [wanted.as_booking()])",
        "[]",
        "budgets bound nothing",
        TESTS,
    ),
    fitting(
        "ledger-infinite-first",
        "any(math.isinf(booking.epsilon) for",
        "any(math.isnan(booking.epsilon) for",
        "privacy is given up by accident",
        f"{TESTS}::test_infinite_spend_needs_an_infinite_budget",
    ),
    ledger(
        "ledger-void-booked-again",
        '(row.dataset, row.state) != (wanted.dataset, "open") or',
        "row.dataset != wanted.dataset or",
        "a grant that was given back is taken up unpaid",
        f"{GUARDS}::test_the_same_grant_is_paid_once_and_for_its_own_plan_only",
    ),
    ledger(
        "ledger-other-plan-same-grant",
        " or not same_plan(row.plan, wanted.plan)",
        "",
        "another plan under a grant that is paid",
        f"{GUARDS}::test_the_same_grant_is_paid_once_and_for_its_own_plan_only",
    ),
    rows(
        "ledger-void-answered",
        'if row.state == "open" and not answered',
        'if row.state == "open"',
        "an answered booking is given back",
        VOID,
    ),
    rows(
        "ledger-void-finished",
        'if row.state == "open" and not answered',
        "if not answered",
        "a finished booking is given back",
        VOID,
    ),
    ledger(
        "ledger-void-of-another",
        "if row is None or row.dataset != dataset",
        "if row is None",
        "the booking of another data set is given back",
        "cli/test_budgets.py",
    ),
    ledger(
        "ledger-void-again",
        'if row.state == "void":\n        raise BudgetRefused',
        'if row.state == "none":\n        raise BudgetRefused',
        "a booking is given back twice",
        "cli/test_budgets.py",
    ),
    ledger(
        "ledger-budget-below-spent",
        "check_not_below_spent(family, dataset, epsilon, delta)",
        "str(family)",
        "a budget below what is spent",
        f"{TESTS}::test_budget_never_below_spent_and_history_stays",
    ),
    ledger(
        "ledger-names-that-look-alike",
        'unicodedata.normalize("NFC", checked_text("dataset", name))',
        'checked_text("dataset", name)',
        "two budgets for one data set",
        f"{TESTS}::test_names_that_look_the_same_share_a_budget",
    ),
    # Answers
    ledger(
        "ledger-answer-after-the-end",
        'if row.state != "open":\n        raise WallBreach(f"Booking {row.grant} is',
        'if row.state == "none":\n        raise WallBreach(f"Booking {row.grant} is',
        "answers for a booking that was closed or given back",
        VOID,
        f"{TESTS}::test_finish_closes",
    ),
    ledger(
        "ledger-second-answer",
        "return first.payload",
        "return payload",
        "two noise draws of one answer",
        f"{TESTS}::test_first_answer_stays",
    ),
    ledger(
        "ledger-other-question",
        "if first.map_digest != map_digest",
        "if not first.map_digest",
        "an answer is taken for another one",
        f"{TESTS}::test_first_answer_stays",
    ),
    ledger(
        "ledger-payloads-stay",
        "WHERE grant_id = ? AND payload IS NOT NULL",
        "WHERE grant_id = ? AND payload IS NULL",
        "answers outlive their run",
        f"{TESTS}::test_finish_closes",
    ),
    ledger(
        "ledger-forgets-one-more",
        "AND position < ? AND",
        "AND position <= ? AND",
        "an answer is lost that the run still needs",
        f"{TESTS}::test_forgotten_answers_still_count",
    ),
    ledger("ledger-counts", "if not 0 <= count < 2**53", "if not count < 2**53", "less than nothing is counted", TESTS),
    rows(
        "rows-one-answer-more",
        "0 <= index < row.counts[label]",
        "0 <= index <= row.counts[label]",
        "one answer that nobody paid for",
        f"{TESTS}::test_nothing_outside_the_plan",
    ),
    rows(
        "rows-before-the-first",
        "0 <= index < row.counts[label]",
        "index < row.counts[label]",
        "answers that nobody paid for",
        f"{TESTS}::test_nothing_outside_the_plan",
    ),
    rows(
        "rows-changed-payload",
        "hashlib.sha256(payload).hexdigest() != expected",
        "not expected",
        "a changed answer is given",
        f"{TESTS}::test_changed_payload_is_detected",
    ),
    rows(
        "rows-drawn-again",
        "if payload is None:",
        "if payload is None and not row.counts:",
        "a forgotten answer is given or drawn again",
        f"{TESTS}::test_forgotten_answers_still_count",
    ),
    # Sums
    fitting(
        "rows-no-first-budget",
        "next(iter(family.below(account)), None) if account == family.root else None",
        "None",
        "without a budget all is allowed",
        f"{TESTS}::test_first_booking_sets_the_budget",
    ),
    fitting(
        "rows-oldest-budget",
        "budgets[name] = Budget(number, float(epsilon), float(delta))",
        "budgets.setdefault(name, Budget(number, float(epsilon), float(delta)))",
        "a budget that was lowered is not",
        f"{TESTS}::test_budget_never_below_spent_and_history_stays",
    ),
    sums(
        "sums-finished-is-free",
        'return self.state != "void"',
        'return self.state == "open"',
        "what is finished is not spent",
        f"{TESTS}::test_finish_closes",
    ),
    fitting(
        "sums-delta-is-free", "if want > exact(limit)", 'if want > exact(limit) and kind == "epsilon"', "deltas", TESTS
    ),
    fitting(
        "sums-only-this-one",
        "after = family.with_bookings(tried)\n    made",
        "after = replace(family, bookings={}).with_bookings(tried)\n    made",
        "earlier bookings are forgotten",
        f"{TESTS}::test_ten_times_a_tenth_is_one",
    ),
    fitting(
        "sums-only-this-delta",
        "epsilon, delta = family.cost(name, epsilon_of), family.cost(name, delta_of)",
        "epsilon, delta = family.cost(name, epsilon_of), Decimal(0)",
        "deltas are forgotten",
        f"{TESTS}::test_refusal_says_requested_remaining_difference_and_the_command",
    ),
    sums(
        "sums-binary",
        "return Decimal(repr(value))",
        "return Decimal(value)",
        "ten tenths are not one",
        f"{TESTS}::test_ten_times_a_tenth_is_one",
    ),
    sums(
        "sums-rounded",
        "_EXACT = Context(prec=800, Emin=-9999, Emax=9999, traps=[Inexact, ",
        "_EXACT = Context(prec=16, Emin=-9999, Emax=9999, traps=[",
        "tiny spends are swallowed by large ones",
        f"{TESTS}::test_huge_and_tiny_spends_are_not_swallowed",
    ),
    sums(
        "sums-remaining-up",
        "return near if exact(near) <= value else math.nextafter(near, -math.inf)",
        "return near",
        "more remains than is there",
        f"{TESTS}::test_huge_and_tiny_spends_are_not_swallowed",
    ),
    sums(
        "sums-spent-down",
        "return near if exact(near) >= value else math.nextafter(near, math.inf)",
        "return near",
        "less is spent than was",
        f"{TESTS}::test_huge_and_tiny_spends_are_not_swallowed",
    ),
    sums(
        "sums-no-number",
        "if not epsilon >= sys.float_info.min",
        "if epsilon < sys.float_info.min",
        "NaN is below every budget",
        f"{TESTS}::test_bad_epsilon",
    ),
    sums(
        "sums-delta-of-one",
        "not sys.float_info.min <= delta < 1.0",
        "not sys.float_info.min <= delta <= 1.0",
        "a delta that protects nobody",
        f"{TESTS}::test_bad_delta",
    ),
    fitting(
        "sums-below-spent-delta",
        "return exact(epsilon) >= used_epsilon and exact(delta) >= used_delta",
        "return exact(epsilon) >= used_epsilon or exact(delta) >= used_delta",
        "a budget below what is spent",
        f"{TESTS}::test_budget_never_below_spent_and_history_stays",
    ),
    # The file
    checks(
        "file-row-altered", "chain_digest(table, row) != digest", "not digest", "a spend is lowered unseen", TAMPERED
    ),
    checks(
        "file-row-renumbered",
        "not whole or row[0] != count or ",
        "not whole or ",
        "rows change places",
        f"{GUARDS}::test_a_row_that_is_replaced_with_a_digest_of_its_own_is_found",
    ),
    checks(
        "file-chain-broken",
        "row[-1] != previous or ",
        "",
        "a row is replaced by one with a digest of its own",
        f"{GUARDS}::test_a_row_that_is_replaced_with_a_digest_of_its_own_is_found",
    ),
    checks(
        "file-rows-missing",
        "if highest != count",
        "if count < 0",
        "the last spend goes",
        TAMPERED,
    ),
    checks(
        "file-void-answered",
        "WHERE state = 'void' LIMIT 1",
        "WHERE state = 'none' LIMIT 1",
        "answered, unpaid",
        TAMPERED,
    ),
    checks(
        "file-guards",
        "if _shape(model) != _shape(reader)",
        "if not _shape(reader)",
        "the guards are gone",
        f"{TESTS}::test_missing_guards_are_detected",
    ),
    checks(
        "file-other-program",
        "if application != APPLICATION_ID",
        "if not APPLICATION_ID",
        "another program's file",
        f"{TESTS}::test_other_programs_and_newer_formats_are_refused",
    ),
    checks(
        "file-newer-format",
        "if version not in SCHEMAS",
        "if version < 1",
        "a format that is not known",
        f"{TESTS}::test_other_programs_and_newer_formats_are_refused",
    ),
    file(
        "file-journal-of-a-lost-ledger",
        "if leftovers and not path.exists()",
        "if leftovers and path.exists()",
        "a lost ledger is replaced by an empty one",
        f"{TESTS}::test_a_lost_ledger_is_not_replaced_while_its_journal_is_there",
    ),
    file(
        "file-forked",
        "if os.getpid() != self._owner",
        "if not self._owner",
        "a connection shared by two processes",
        f"{TESTS}::test_a_forked_process_is_refused",
    ),
    file(
        "file-half-of-a-transaction",
        'self.connection.execute("ROLLBACK")',
        'self.connection.execute("COMMIT")',
        "half of a step stays",
        f"{GUARDS}::test_a_step_that_fails_leaves_nothing",
    ),
    file(
        "file-read-and-write",
        'copy.execute("PRAGMA query_only = ON")',
        "copy.in_transaction",
        "a reader can write",
        "vault/test_ledger_reading.py::test_nothing_can_be_written_through_it",
        explained="`LedgerFile.writable` refuses first, and what is read is a copy in memory",
    ),
    checks("file-index-trusted", "integrity_check(1)", "quick_check(1)", "a flipped bit of an index forgets", FLIPS),
    checks(
        "file-state-flipped",
        "NOT IN ('open', 'finished', 'void')",
        "IN ('none')",
        "a flipped state is no spend",
        TAMPERED,
    ),
    file(
        "file-not-settled",
        'connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()',
        "(0, 0, 0)",
        "a booking is forgotten with its -wal",
        COMPANIONS,
    ),
    file(
        "file-made-by-a-reader",
        "elif not path.parent.is_dir()",
        "elif path.parent.mkdir(parents=True, exist_ok=True)",
        "a disk that is not there is a second budget",
        "cli/test_budgets.py",
        COMPANIONS,
        TESTS,
    ),
    secret("secret-replaced", "os.link(temporary, path)", "os.rename(temporary, path)", "a key is lost", SECRETS),
    file("file-readable", "path.chmod(0o600)", "path.chmod(0o644)", "others read answers", TESTS),
    schema("schema-chain", "json.dumps([table, *row])", "json.dumps(row[1:])", "a number is not covered", TESTS),
    schema(
        "schema-answered-void",
        "WHEN NEW.state IS 'void' AND EXISTS",
        "WHEN NEW.state IS 'none' AND EXISTS",
        "the file lets an answered booking go",
        f"{TESTS}::test_triggers_refuse",
    ),
    schema(
        "schema-budget-deleted",
        "CREATE TRIGGER budgets_stay BEFORE DELETE ON budgets\nBEGIN SELECT RAISE(ABORT",
        "CREATE TRIGGER budgets_stay BEFORE DELETE ON budgets\nBEGIN SELECT RAISE(IGNORE); SELECT RAISE(ABORT",
        "the file lets a budget go without a word",
        f"{TESTS}::test_triggers_refuse",
    ),
    schema(
        "schema-second-answer",
        "WHEN (SELECT state FROM bookings WHERE grant_id = NEW.grant_id) IS NOT 'open'\n  OR EXISTS (SELECT 1 FROM answers",
        "WHEN (SELECT state FROM bookings WHERE grant_id = NEW.grant_id) IS NOT 'open'\n  AND EXISTS (SELECT 1 FROM answers",
        "the file lets an answer be replaced",
        f"{TESTS}::test_triggers_refuse",
    ),
)
