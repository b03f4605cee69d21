"""Faults of certificates, editions and releases: lies that pass, files that nobody listed, the owner's pages outside."""

from __future__ import annotations

from mutation import Faults, Mutation

certificate, editions, release = (
    Faults("release/certificate.py", "release/statement.py", "release/signature.py", "release/verification.py"),
    Faults("release/editions.py"),
    Faults("release/writer.py", "release/reader.py"),
)
run_file = Faults("runs/run_file.py")
staging, checkpoint = Faults("release/staged.py"), Faults("runs/checkpoint.py")
provenance = Faults("evaluate/provenance.py")
rows = Faults(
    "methods/mosaic/model.py",
    "methods/mosaic/insides.py",
    "methods/mosaic/axes.py",
    "privacy/condition.py",
    "release/conditions.py",
    "release/drawing.py",
)

network = Faults("methods/graphical/network.py", "nets/generators/graph_spec.py")
NETWORK = "release/test_network_generator.py"
frames = Faults("release/pandas_column.py", "release/framed.py")
drafts, figures = Faults("privacy/schema.py"), Faults("evaluate/evaluation.py")

TESTS = "privacy/test_certificate.py"
LIES = f"{TESTS}::test_a_lie_is_found_even_if_the_owner_signs_it"
FILES = f"{TESTS}::test_no_file_can_be_changed_emptied_removed_renamed_or_added"
WORDS = "privacy/test_certificate_words.py"
EDITIONS = "release/test_editions.py"
STAGING = "runs/test_damage.py"
PROVENANCE = "cli/test_evaluate.py"
CONSTRAINTS = "methods/test_constraints.py"
MODEL, DRAWN = "methods/test_table_model.py", "release/test_table_generator.py"

RELEASE: tuple[Mutation, ...] = (
    network(
        "network-negative-chances",
        "bool((shaped >= 0).all()) and np.allclose(shaped.sum(1), 1, atol=1e-3)",
        "np.allclose(np.abs(shaped).sum(1), 1, atol=1e-3)",
        "chances below 0 are drawn from",
        f"{NETWORK}::test_damaged_weights_are_refused",
    ),
    network(
        "network-later-columns",
        "right and set(given) <= done and",
        "right and",
        "a column given one that is not drawn yet",
        f"{NETWORK}::test_a_spec_that_says_something_else_is_refused",
    ),
    network(
        "network-condition-dropped",
        "model = model.given(place, torch.from_numpy(left))",
        "model = model.given(place, torch.ones_like(torch.from_numpy(left)))",
        "rows under a condition have the shares of all rows",
        f"{NETWORK}::test_rows_keep_to_conditions_and_come_in_the_models_shares",
    ),
    certificate(
        "certificate-not-verified",
        "key.verify(bytes.fromhex(signature.value), canonical(stated))",
        "bytes.fromhex(signature.value)",
        "anybody may change it",
        f"{TESTS}::test_no_field_can_be_changed",
    ),
    certificate(
        "certificate-date-not-signed",
        "if key != ENTRY}",
        'if key not in (ENTRY, "created")}',
        "a part of it is not signed",
        f"{TESTS}::test_no_field_can_be_changed",
    ),
    certificate(
        "certificate-any-key",
        "if expected_key is not None and signature.public_key != expected_key.lower()",
        "if expected_key is not None and not expected_key",
        "somebody else signed",
        f"{TESTS}::test_another_key_is_found_where_the_owners_is_known",
    ),
    certificate(
        "certificate-twins",
        "if len(values) != len(pairs)",
        "if not pairs and values",
        "one name, two values",
        f"{TESTS}::test_a_name_that_stands_twice_is_refused",
    ),
    certificate("certificate-unknown-entry", "        if unknown:", "        if not values:", "a score in it", LIES),
    certificate(
        "certificate-accounting-differs",
        'for name in ("epsilon", "delta", "adjacency"))',
        'for name in ("delta", "adjacency"))',
        "two epsilons",
        LIES,
    ),
    certificate(
        "certificate-adjacency",
        "if (certificate.adjacency, certificate.unit) != (schema.adjacency, schema.unit)",
        "if certificate.adjacency != schema.adjacency",
        "another unit of privacy",
        LIES,
    ),
    certificate(
        "certificate-insecure-releasable",
        "(certificate.private and certificate.randomness == SECURE)",
        "certificate.private",
        "noise that is not secret is called so",
        LIES,
    ),
    certificate(
        "certificate-epsilon-lower",
        "cost.epsilon * (1 - 1e-4) <= stated",
        "cost.epsilon * 0.98 <= stated",
        "less than the queries cost",
        LIES,
    ),
    certificate(
        "certificate-not-private",
        "if certificate.private != math.isfinite(stated)",
        "if certificate.private is None",
        "the word private is free",
        f"{WORDS}::test_the_word_private_is_for_a_finite_epsilon_only",
    ),
    certificate(
        "certificate-drawn",
        "if not drawn <= paid.get(label, 0)",
        "if not drawn <= paid.get(label, drawn)",
        "answers of a query that was never paid for",
        LIES,
    ),
    certificate(
        "certificate-drawn-one-more",
        "if not drawn <= paid.get(label, 0)",
        "if not drawn - 1 <= paid.get(label, -1)",
        "one answer more than was paid for",
        LIES,
    ),
    certificate(
        "certificate-delta",
        "require_delta(certificate.delta + certificate.sampler_delta, schema.privacy_units, schema.by_person)",
        "require_delta(certificate.delta)",
        "delta above 1/N",
        f"{WORDS}::test_a_delta_above_one_in_n_is_found_although_epsilon_follows_from_it",
    ),
    certificate(
        "certificate-sampler",
        "if certificate.sampler_delta != sampler_delta_of(certificate.queries)",
        "if certificate.sampler_delta < 0",
        "the sampler's error is anybody's word",
        f"{WORDS}::test_the_sampler_is_stated_as_the_queries_make_it",
    ),
    certificate(
        "certificate-file-changed",
        "if file_hash(present[name]) != stated",
        "if not stated",
        "a file is not what was signed",
        FILES,
    ),
    certificate(
        "certificate-file-missing", "if name not in present", "if not name", "a file that was signed is gone", FILES
    ),
    certificate(
        "certificate-file-added",
        "_refuse_foreign(present, sorted(set(present) - set(files) - {NAME}))",
        "sorted(set(present) - set(files))",
        "a file that nobody listed",
        FILES,
    ),
    certificate(
        "certificate-link",
        "if path.is_symlink() or not path.is_dir()]",
        "if not path.is_dir()]",
        "a folder behind a link",
        f"{TESTS}::test_a_link_to_a_folder_outside_is_refused",
    ),
    certificate(
        "certificate-owners-copy",
        "require_no_owner_copy(present[name] for name in files)",
        "len(files)",
        "the owner's page, listed and signed",
        f"{WORDS}::test_an_owners_copy_is_found_even_if_the_owner_signs_it",
    ),
    certificate(
        "certificate-content",
        "if present != [content] or ",
        "if ",
        "a model is taken for a set",
        f"{WORDS}::test_a_set_that_calls_itself_a_model_is_found",
    ),
    certificate(
        "certificate-records",
        " or (certificate.records > 0) != (content == SET)",
        "",
        "a set without records, a model with some",
        f"{WORDS}::test_a_set_that_calls_itself_a_model_is_found",
    ),
    certificate(
        "certificate-half-a-generator",
        "if any(generator) and (content != SET or not all(generator))",
        "if any(generator) and content != SET",
        "weights without their description",
        "release/test_generator.py",
    ),
    certificate(
        "certificate-shared-not-private",
        "if not certificate.private:",
        "if certificate.private is None:",
        "what is not private is shared",
        f"{WORDS}::test_the_word_private_is_for_a_finite_epsilon_only",
    ),
    certificate(
        "certificate-shared-insecure",
        "if not certificate.releasable:",
        "if certificate.releasable is None:",
        "noise that is not secret is shared",
        "privacy/test_rules.py::test_rule_05_an_insecure_seed_is_stamped_and_not_releasable",
    ),
    staging(
        "staged-other-plan",
        "if stated != (plan.dataset, plan.method, plan.settings, plan.queries)",
        "if not stated",
        "a release of another plan is put in place",
        STAGING,
    ),
    staging(
        "staged-files",
        "check_files(dict(_present(folder, staged, state)), certificate.files)",
        "dict(certificate.files)",
        "a damaged release is put in place",
        STAGING,
    ),
    run_file(
        "run-file-edited",
        "if stated is not None and stated != _digest(values)",
        "if stated is not None and not stated",
        "an edited run is taken up",
        "runs/test_run_file_digest.py",
    ),
    checkpoint(
        "checkpoint-damaged",
        "metadata.get(DIGEST) not in (None, digest_of(owner, tensors))",
        "not owner",
        "a damaged checkpoint is taken up and signed",
        STAGING,
    ),
    provenance(
        "marks-one-of-two",
        "if len(proofs) == len(used)",
        "if proofs",
        "a score on private records counts as public",
        PROVENANCE,
    ),
    certificate(
        "certificate-stated-price",
        "cost = price(plan.queries, plan.price.delta)",
        "cost = plan.price",
        "the certificate takes the plan's word",
        f"{WORDS}::test_a_certificate_prices_the_queries_itself",
    ),
    # Editions
    editions(
        "editions-page", "found.lower() == OWNER.encode()", "found == OWNER.encode()", "Owner is not owner", EDITIONS
    ),
    editions(
        "editions-first-mark",
        "_EDITION_IN_PAGE.findall(content)",
        "_EDITION_IN_PAGE.findall(content)[:1]",
        "a second mark is not seen",
        EDITIONS,
    ),
    editions(
        "editions-json",
        'values.get("edition") == OWNER',
        'values.get("owner") == OWNER',
        "the owner's scores pass",
        EDITIONS,
    ),
    editions(
        "editions-not-refused",
        "if is_owner_copy(path.read_bytes())",
        "if not path.read_bytes",
        "the owner's copies pass",
        EDITIONS,
    ),
    # Releases
    release(
        "release-owners-copy",
        "require_no_owner_copy(files)",
        "list(files)",
        "the owner's page is signed",
        f"{WORDS}::test_a_release_is_not_written_with_an_owners_copy_in_it",
    ),
    release(
        "release-drawn",
        "drawn=self.drawn(),",
        "drawn={},",
        "answers that were given are not stated",
        f"{WORDS}::test_what_was_drawn_is_stated",
    ),
    # Rows that are drawn from a release
    rows(
        "drawn-not-finite",
        "if not bool(found.isfinite().all()):",
        "if found is None:",
        "a damaged model is drawn from",
        f"{MODEL}::test_weights_that_do_not_fit_are_refused",
    ),
    rows(
        "drawn-edges-anywhere",
        "bool((np.diff(axis.edges) > 0).all())",
        "len(axis.edges) > 0",
        "cells that hold nothing are drawn from",
        f"{MODEL}::test_weights_that_do_not_fit_are_refused",
    ),
    rows(
        "drawn-components-not-weighed",
        "shares *= chances[:, part].sum(1).reshape(shares.shape)",
        "shares *= 1.0",
        "rows under conditions come from the wrong components",
        f"{MODEL}::test_rows_under_limits_are_those_of_plain_rejection",
    ),
    rows(
        "drawn-labels-not-weighed",
        "keeps = rng.random(len(total)) < total",
        "keeps = total > 0",
        "rows of a class are rows of all classes under its name",
        f"{MODEL}::test_a_class_is_drawn_as_it_is_among_all",
    ),
    rows(
        "drawn-not-checked",
        "conditions.hold(records, labels)",
        "np.ones(len(labels), dtype=bool)",
        "rows that do not keep to a condition are given",
        f"{DRAWN}::test_a_network_that_makes_a_table_takes_conditions_too",
    ),
    rows(
        "drawn-constraints-not-checked",
        "self.classes()[y] & hold(x, y, self.schema)",
        "self.classes()[y]",
        "rows that break a declared constraint are given",
        f"{CONSTRAINTS}::test_every_sampled_row_keeps_to_constraints_and_conditions",
    ),
    rows(
        "drawn-finer-cells-anyhow",
        "if not np.allclose(np.bincount(owner, weights=shares), 1, atol=1e-6):",
        "if not len(shares):",
        "a damaged model is drawn from",
        f"{MODEL}::test_finer_cells_that_do_not_fit_are_refused",
    ),
    certificate(
        "certificate-broken-constraints",
        "    require_kept(release, certificate)\n",
        "",
        "rows break what the certificate declares",
        f"{CONSTRAINTS}::test_verify_finds_rows_that_break_a_constraint",
    ),
    rows(
        "drawn-gap-differs",
        "self.hold_for(_numbers(self.column, values, is_gap)) & ~is_gap",
        "self.hold_for(_numbers(self.column, values, is_gap))",
        "a row without a value counts as one that differs",
        "release/test_conditions.py::test_every_operator_on_every_kind_of_column",
    ),
    frames(
        "frames-own-categories",
        "if sorted(own) != sorted(words):",
        "if not own:",
        "a dtype lists categories that only a record has",
        "release/test_framed.py::test_categories_that_only_the_records_have_stay_out",
    ),
    drafts(
        "draft-confirms-all",
        "unconfirmed=tuple(e for e in self.unconfirmed if entries and e not in entries)",
        "unconfirmed=()",
        "whoever confirms one entry declares all of them public",
        "data/test_drafting.py::test_drafted_confirmed_and_planned",
    ),
    figures(
        "targets-ceiling-released",
        "tuple(each.public() for each in self.targets)",
        "self.targets",
        "what real training rows reach would be on a released page",
        "evaluate/test_targets.py::test_what_real_rows_reach_stays_with_their_owner",
    ),
)
