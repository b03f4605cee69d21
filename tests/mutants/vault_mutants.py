"""Faults of the vault: noise, samples, clipped sums and what may be asked."""

from __future__ import annotations

from mutation import Faults, Mutation

noise, sampling, local, sums = (
    Faults("vault/noise.py"),
    Faults("vault/sampling.py"),
    Faults("vault/local.py", "vault/source.py"),
    Faults("vault/clipped_sums.py"),
)
persons = Faults("vault/persons.py")
sampler, bound, grid = (
    Faults("vault/rounded_gaussian.py"),
    Faults("vault/maps/bound.py"),
    Faults("privacy/grid.py"),
)
maps, gradients, residuals = (
    Faults(
        "vault/maps/base.py",
        "vault/maps/moments.py",
        "vault/maps/random_features.py",
        "vault/maps/network_gradient.py",
        "vault/maps/__init__.py",
    ),
    Faults("vault/maps/clipped_gradients.py", "vault/maps/layer_gradients.py"),
    Faults("vault/maps/residuals.py"),
)
pooling = Faults("nets/features/pooled.py")
top, encoding = Faults("vault/maps/top_gradient.py"), Faults("vault/encoding.py")
cells = Faults("vault/maps/cells.py")
label_cells = Faults("vault/maps/label_cells.py")
hermite, transport = Faults("nets/features/hermite.py"), Faults("vault/maps/transport.py")
codes = Faults("vault/maps/random_fourier.py")
blocks, api, schema, base = (
    Faults("vault/maps/blocks.py"),
    Faults("vault/api.py"),
    Faults("privacy/schema.py"),
    Faults("methods/base.py"),
)

NUMBERS = "privacy/test_vault_noise.py"
SAMPLER = "privacy/test_rounded_gaussian.py"
PERSONS = "privacy/test_person_sums.py"
EXACT = "privacy/test_exact_sums.py"
SCALE = f"{NUMBERS}::test_a_sum_has_just_the_noise_that_was_paid_for"
DRAWS = f"{NUMBERS}::test_a_number_is_a_sum_of_several_draws"
STREAMS = "privacy/test_noise.py"
SAMPLES = "privacy/test_vault_samples.py"
RULES = "privacy/test_rules.py"
WALL = "privacy/test_vault_wall.py"
BOUND = "privacy/test_sensitivity.py"
ENGINE = "vault/test_gradients.py"
TOP = "privacy/test_top_gradient.py"
STEADY = "privacy/test_steady_rows.py"
BLOCKS = "vault/test_blocks.py"
PLACES = "vault/test_block_places.py"
CONTRACT = "vault/test_contract.py::TestLocalVault"
CELLS = "vault/test_cells.py"
LABEL_CELLS = "vault/test_label_cells.py"
CODED = "methods/test_dpmerf_ae.py"

VAULT: tuple[Mutation, ...] = (
    # Cells of a table
    cells(
        "cells-each-tuple-whole",
        "return 1 / math.sqrt(len(self.tuples))",
        "return 1.0",
        "a record adds 1 for each tuple, and the root of their number moves the sum",
        f"{BOUND}::test_adding_an_ordinary_record_moves_the_sum_by_at_most_the_clip",
    ),
    cells(
        "cells-clip-ignored",
        "most = min(bound.clip, 1.0) * SAFE",
        "most = SAFE",
        "a clip below 1 is none",
        f"{BOUND}::test_adding_an_ordinary_record_moves_the_sum_by_at_most_the_clip",
    ),
    cells(
        "cells-weights-whole",
        "each / math.hypot(*self.weights)",
        "each / max(self.weights)",
        "the heaviest tuple has the whole clip, and the others come on top",
        f"{BOUND}::test_adding_an_ordinary_record_moves_the_sum_by_at_most_the_clip",
    ),
    cells(
        "cells-digest-without-weights",
        '("weights", "classes")',
        '("classes",)',
        "an answer for other weights is given again",
        f"{CELLS}::test_other_weights_are_another_question_and_none_are_what_they_were",
    ),
    cells(
        "cells-digest-without-edges",
        "(self.start, self.numbers, digest_of(self.edges.double()), self.missing, ",
        "(self.start, self.numbers, self.missing, ",
        "an answer for other edges is given again",
        f"{CELLS}::test_other_edges_are_another_question",
    ),
    cells(
        "cells-digest-without-groups",
        "(self.groups,) if self.groups else ()",
        "(bool(self.groups),)",
        "an answer for other groups is given again",
        f"{CELLS}::test_other_groups_are_another_question_and_none_is_the_one_it_always_was",
    ),
    cells(
        "cells-groups-not-checked",
        "len(self.groups) != self.numbers or ",
        "",
        "a record without a cell raises, and that tells about it",
        f"{CELLS}::test_groups_that_leave_a_category_or_a_cell_out_are_refused",
    ),
    label_cells(
        "label-cells-not-clipped",
        "beside = in_blocks(self._beside, x, y, bound, ",
        "beside = in_blocks(self._beside, x, y, Bound(max(bound.clip, 1.0), bound.step), ",
        "a clip below 1 is none",
        f"{BOUND}::test_adding_an_ordinary_record_moves_the_sum_by_at_most_the_clip",
    ),
    label_cells(
        "label-cells-on-one-another",
        "begin += cut.cells",
        "begin += 0",
        "columns share their cells, and what a record adds for each of them adds up there",
        f"{BOUND}::test_adding_an_ordinary_record_moves_the_sum_by_at_most_the_clip",
    ),
    label_cells(
        "label-cells-longer-rows",
        "1 / math.sqrt(len(self.cuts) * (1 - 1 / self.classes))",
        "1 / math.sqrt(1 - 1 / self.classes)",
        "a row is longer than its proof says, the vault cuts it, and what it says is no sum of chances",
        f"{LABEL_CELLS}::test_no_model_and_no_record_make_a_longer_row_than_the_proof_says",
    ),
    label_cells(
        "label-cells-digest-without-terms",
        "None if self.terms is None else digest_of(self.terms)",
        "self.terms is None",
        "an answer for another model is given again",
        f"{LABEL_CELLS}::test_another_model_other_edges_and_no_model_are_other_questions",
    ),
    label_cells(
        "label-cells-digest-without-cuts",
        "cut.parameters() for cut in self.cuts",
        "cut.start for cut in self.cuts",
        "an answer for other edges is given again",
        f"{LABEL_CELLS}::test_another_model_other_edges_and_no_model_are_other_questions",
    ),
    # The contract by itself
    noise(
        "contract-noise",
        "stream.whole_gaussian(query",
        "stream.whole_gaussian(0.9 * query",
        "less noise than was paid for",
        CONTRACT,
    ),
    sums(
        "contract-sum",
        "shape[0], bound, block).cpu()",
        "shape[0], Bound(2 * query.clip, query.step), block).cpu()",
        "a record weighs too much",
        CONTRACT,
    ),
    local(
        "contract-booking-order",
        "        identity = self._ledger.book(",
        "        self._records = checked_records(self._source.load(), self._schema)\n        identity = self._ledger.book(",
        "records are read before they are paid for",
        CONTRACT,
    ),
    # Noise
    noise("noise-one-draw", "DRAWS_PER_NUMBER = 4", "DRAWS_PER_NUMBER = 1", "last bits tell the sum", DRAWS),
    noise(
        "noise-two-draws", "DRAWS_PER_NUMBER = 4", "DRAWS_PER_NUMBER = 2", "cosine and sine of one draw are one", DRAWS
    ),
    noise("noise-not-scaled-back", "/ np.sqrt(DRAWS_PER_NUMBER)", "/ DRAWS_PER_NUMBER", "half of the noise", STREAMS),
    noise(
        "noise-cosine-twice", "radius * np.sin(angle)", "radius * np.cos(angle)", "numbers of a pair are one", STREAMS
    ),
    noise(
        "noise-few-bits",
        "angle_bits >> np.uint64(11)) * (2.0**-53",
        "angle_bits >> np.uint64(44)) * (2.0**-20",
        "a million angles can be told apart",
        DRAWS,
    ),
    noise(
        "noise-log-of-zero",
        ">> np.uint64(11)) + np.uint64(1)) * 2.0**-53",
        ">> np.uint64(11))) * 2.0**-53",
        "a radius without bound",
        f"{NUMBERS}::test_no_bits_at_all_give_a_number_that_is_not_finite",
    ),
    noise("noise-known-key", "return os.urandom(32)", "return bytes(32)", "all know the key", STREAMS),
    noise("noise-insecure-releasable", "return self.insecure_seed is None", "return True", "a seed is shared", STREAMS),
    noise(
        "noise-insecure-stamp",
        "return SECURE if self.insecure_seed is None else INSECURE",
        "return SECURE",
        "a certificate calls a seed secret",
        f"{RULES}::test_rule_05_an_insecure_seed_is_stamped_and_not_releasable",
    ),
    # Samples
    sampling(
        "sampling-rounded-up",
        "< rate_limits(rates)[labels]",
        "<= rate_limits(rates)[labels]",
        "a chance above the rate",
        SAMPLES,
    ),
    sampling(
        "sampling-first-rate",
        "< rate_limits(rates)[labels]",
        "< rate_limits(rates)[0]",
        "one class's rate for all",
        SAMPLES,
    ),
    sampling("sampling-larger-rate", "int(rate * 2**64)", "int(rate * 1.1 * 2**64)", "more than was priced", SAMPLES),
    sampling("sampling-all-if-one", "if min(rates) >= 1", "if max(rates) >= 1", "all are in", STREAMS),
    sampling(
        "sampling-one-coin",
        "stream.integers(len(labels))",
        "np.repeat(stream.integers(1), len(labels))",
        "records share a coin",
        SAMPLES,
    ),
    sampling(
        "sampling-coin-of-the-place",
        "stream.integers(len(labels))",
        "np.resize(stream.integers(max(len(labels) // 2, 1)), len(labels))",
        "pairs of records share a coin",
        SAMPLES,
    ),
    # Whole steps
    sampler(
        "sampler-keeps-all", "keep = height < self._safe[piece]", "keep = height >= 0", "columns, no Gaussian", SAMPLER
    ),
    sampler(
        "sampler-drops-the-edge",
        "keep = there & (height + 1.0 <= density * (1 - MARGIN))",
        "keep = there & (height < 0)",
        "nothing beyond the safe height is kept",
        SAMPLER,
        explained="Exact arithmetic then decides all of these points, and decides them as the double does; it takes longer.",
    ),
    sampler("sampler-no-sign", "sign = (more & np.uint64(1))", "sign = (more & np.uint64(0))", "one-sided", SAMPLER),
    sampler(
        "sampler-cut-down",
        "((at >> self._shift) + np.uint64(1) >> np.uint64(1))",
        "(at >> self._shift >> np.uint64(1))",
        "rounds towards 0",
        SAMPLER,
    ),
    sampler(
        "sampler-short-columns",
        "math.ceil(self._height * float(value) * (1 + MARGIN))",
        "math.ceil(self._height * float(value) * 0.98)",
        "columns end below the density",
        SAMPLER,
    ),
    sampler(
        "sampler-bases", "Segment(strip, laid[strip] - begin)", "Segment(strip, -begin)", "a column twice", SAMPLER
    ),
    sampler(
        "sampler-exact-decides-wrongly",
        "if height + (f + 1) * unit <= low:\n                    return True",
        "if height + (f + 1) * unit <= low:\n                    return False",
        "exact arithmetic says the opposite",
        f"{SAMPLER}::test_exact_arithmetic_decides_as_the_double_does",
    ),
    grid("grid-coarse", "CLIP_BITS = 30", "CLIP_BITS = 8", "rounding takes the clip away", SAMPLER),
    grid("grid-error", "SAMPLER_ERROR_BITS = 1000", "SAMPLER_ERROR_BITS = 3000", "less error than is proved", SAMPLER),
    bound(
        "bound-rounding-is-free",
        "- math.sqrt(rows.shape[1]) / 2, 0.0) * SAFE",
        "+ math.sqrt(rows.shape[1]) / 2, 0.0) * SAFE",
        "rounded rows pass the clip",
        f"{EXACT}::test_rounding_is_taken_off_the_clip_first",
    ),
    bound("bound-not-whole", "MOST_FACTOR))).round_()", "MOST_FACTOR)))", "rows between the steps", BOUND),
    gradients(
        "gradients-slack",
        "(SAFE - slack / bound.clip)",
        "(SAFE + slack / bound.clip)",
        "rounded gradients pass the clip",
        f"{EXACT}::test_rounding_is_taken_off_the_clip_of_gradients_first",
    ),
    gradients(
        "gradients-ghosts-not-whole",
        "scaled = (scaled * (_power_of_two(across) / root)[:, None, None]).round_()",
        "scaled = scaled * (_power_of_two(across) / root)[:, None, None]",
        "sums between the steps",
        BOUND,
    ),
    gradients(
        "gradients-held-not-whole",
        "(rows * factors[:, None]).round_().sum(0) if step",
        "(rows * factors[:, None]).sum(0) if step",
        "sums between the steps",
        BOUND,
    ),
    sampling(
        "sampling-order-of-the-file",
        "np.lexsort((contents[:, 1], contents[:, 0]))",
        "np.arange(len(contents))",
        "a shuffled file has another sample under a seed",
        EXACT,
    ),
    # Persons
    persons(
        "persons-rows-apart",
        "squares = np.add.reduceat(np.square(sums, dtype=np.float64).sum(1), starts)",
        "squares = np.maximum.reduceat(np.square(sums, dtype=np.float64).sum(1), starts)",
        "the rows of a person are clipped apart",
        PERSONS,
    ),
    persons(
        "persons-rounding-is-free",
        "np.sqrt(rows_each * sums.shape[1]) / 2) * SAFE",
        "0 * rows_each) * (2 - SAFE)",
        "a clipped person passes the clip",
        PERSONS,
    ),
    persons(
        "persons-closed-too-early",
        "is_open = person == person[-1:]",
        "is_open = person < person[-1:]",
        "a person is clipped in pieces",
        PERSONS,
    ),
    persons(
        "persons-coin-of-a-record",
        "coin[person] < rate_limits",
        "coins.integers(len(labels)) < rate_limits",
        "records of a person have coins of their own",
        PERSONS,
    ),
    persons("persons-no-cap", "(units[taken]) < most]", "(units[taken]) < 99 * most]", "more than declared", PERSONS),
    sums(
        "sums-by-record",
        "if records.units is not None and query.on_grid:",
        "if records.units is None and query.on_grid:",
        "persons are added up record by record",
        PERSONS,
    ),
    sums(
        "sums-record-has-the-clip-of-a-person",
        "bound = Bound(query.clip / self._schema.reach, query.step)",
        "bound = Bound(query.clip, query.step)",
        "one record weighs as much as a whole person",
        PERSONS,
    ),
    # The way of an answer
    noise("noise-0.97", "stream.whole_gaussian(query", "stream.whole_gaussian(0.97 * query", "too little noise", SCALE),
    noise(
        "noise-of-clip-one",
        "(query.clip / query.step), shape)",
        "(1.0 / query.step), shape)",
        "noise that forgets the clip",
        SCALE,
    ),
    noise(
        "noise-0.97-of-doubles",
        "query.noise_std * stream.gaussian(shape)",
        "0.97 * query.noise_std * stream.gaussian(shape)",
        "a run of an older version goes on with too little noise",
        f"{NUMBERS}::test_a_run_of_an_older_version_goes_on_with_its_own_noise",
    ),
    noise(
        "noise-as-doubles",
        "np.multiply(total + noise, query.step or 1.0, dtype=np.float64)",
        "total * (query.step or 1.0) + noise * (query.step or 1.0)",
        "sum and noise are rounded before they meet",
        f"{SAMPLER}::test_noise_and_sum_are_added_as_integers",
    ),
    sums(
        "sums-one-noise-row",
        "noise = drawn_noise(query, shape, noises) if query.on_grid else None",
        "noise = drawn_noise(query, (1, shape[1]), noises) if query.on_grid else None",
        "differences of classes have no noise",
        f"{NUMBERS}::test_rows_answers_and_queries_share_no_noise",
    ),
    sums(
        "sums-noise-last",
        "        noise = drawn_noise(query, shape, noises) if query.on_grid else None\n        total = self",
        "        noise = None\n        total = self",
        "how long the noise takes tells of it",
        f"{NUMBERS}::test_noise_is_drawn_before_a_record_is_touched",
    ),
    local(
        "local-one-stream",
        'self._randomness.stream(f"{query.label}: noise", index)',
        "self._randomness.stream(query.label, index)",
        "coins and noise come from the same bits under a seed",
        f"{NUMBERS}::test_coins_and_noise_have_keys_of_their_own",
    ),
    sums(
        "sums-doubles",
        "np.zeros(shape, dtype=np.int64) if query.on_grid else np.zeros(shape, dtype=np.float64)",
        "np.zeros(shape, dtype=np.float32)",
        "sums move with their order",
        EXACT,
    ),
    sums(
        "sums-mean",
        "total += added.astype(total.dtype)",
        "total += (added / max(len(sample), 1)).astype(total.dtype)",
        "a mean over the realised sample",
        f"{RULES}::test_rule_03_the_answer_is_the_sum_and_not_divided_by_the_sample",
    ),
    local(
        "local-understated",
        "cost.epsilon > plan.price.epsilon",
        "cost.epsilon > plan.price.epsilon + 1",
        "a plan states less than it costs",
        f"{RULES}::test_rule_01_an_understated_price_is_refused_and_nothing_is_booked_or_read",
    ),
    local(
        "local-books-what-is-stated",
        "epsilon=cost.epsilon,",
        "epsilon=plan.price.epsilon,",
        "the price is the caller's word",
        f"{RULES}::test_rule_01_the_ledger_books_the_price_of_the_queries_not_the_stated_one",
    ),
    local(
        "local-any-delta",
        "require_delta(plan.price.delta, self._schema.privacy_units, self._schema.by_person)",
        "require_delta(plan.price.delta)",
        "delta above 1/N",
        f"{WALL}::test_a_delta_that_lets_whole_records_leak_is_refused",
    ),
    local(
        "local-unconfirmed",
        "self._schema.require_confirmed()",
        "self._schema.name.strip()",
        "a guessed schema is public",
        f"{RULES}::test_rule_06_an_unconfirmed_schema_is_refused_before_anything_is_read_or_booked",
    ),
    local(
        "local-other-set",
        "if plan.dataset != self._schema.name",
        "if not plan.dataset",
        "another account pays",
        f"{RULES}::test_rule_01_a_plan_for_another_data_set_is_refused",
    ),
    local(
        "local-other-plan",
        "not same_plan(self._not_void(grant).plan, self._booked_text(grant.plan))",
        "self._not_void(grant).plan == self._schema.name",
        "what is answered is not what was paid for",
        f"{RULES}::test_rule_01_a_plan_that_was_not_booked_is_not_answered",
    ),
    local(
        "local-other-generator",
        '"generator": self._randomness.mode',
        '"generator": ""',
        "begun with a seed, stamped as secret",
        f"{RULES}::test_rule_05_a_grant_booked_with_an_insecure_seed_never_turns_secure",
    ),
    local(
        "local-one-answer-more",
        "0 <= index < query.count",
        "0 <= index <= query.count",
        "one answer that nobody paid for",
        f"{WALL}::test_the_vault_itself_counts_answers",
    ),
    local(
        "local-lookalike-map",
        "mapping.kind != query.map or known is not type(mapping)",
        "mapping.kind != query.map",
        "a map of somebody's own",
        f"{RULES}::test_rule_01_a_query_is_answered_with_the_map_that_was_booked",
    ),
    local(
        "local-other-map",
        "mapping.kind != query.map or known is not type(mapping)",
        "known is not type(mapping)",
        "another map than was booked",
        f"{RULES}::test_rule_01_a_query_is_answered_with_the_map_that_was_booked",
    ),
    local(
        "local-stored-for-another",
        "if stored.map_digest != mapping.digest()",
        "if not stored.map_digest",
        "an answer is taken for another one",
        f"{RULES}::test_rule_04_a_stored_answer_is_not_given_for_other_parameters",
    ),
    local(
        "local-second-noise",
        "return self._answer(query, payload)",
        "return self._answer(query, noised.tobytes())",
        "two processes give two draws of one answer",
        f"{WALL}::test_two_vaults_that_answer_at_once_give_the_first_answer",
    ),
    sums(
        "local-mixing-map",
        "if any(records_mix(",
        "if not self._schema and any(records_mix(",
        "a map without a sensitivity",
        f"{RULES}::test_rule_07_a_map_that_mixes_records_is_refused_before_anything_is_read",
    ),
    sums(
        "local-trial-of-chosen-numbers",
        "typical: Map = stand_in(mapping)",
        "typical: Map = mapping",
        "a first map of a form hides what its kernels do, and the second one is not tried",
        f"{RULES}::test_rule_07_no_number_of_a_map_hides_that_it_mixes_records",
    ),
    local(
        "local-read-before-paid",
        "        self.open_records(grant)\n        noised",
        "        self._records = self._source.load()\n        noised",
        "records are read without a look at them, and a file that cannot be read is paid for",
        CONTRACT,
    ),
    local(
        "local-label-past-the-last",
        "records.y.max() < len(schema.classes)",
        "records.y.max() <= len(schema.classes)",
        "a record's label stops the run",
        f"{WALL}::test_a_reader_that_breaks_its_promise_is_stopped",
    ),
    local(
        "local-shape-of-records",
        "records.x.shape != (len(records.y), *schema.shape)",
        "records.x.shape[1:] != schema.shape",
        "records and labels of different number",
        f"{WALL}::test_a_reader_that_breaks_its_promise_is_stopped",
    ),
    # Encoding
    encoding(
        "encoding-not-clamped",
        ".clamp_(\n        schema.low, schema.high\n    )",
        ".clamp_(schema.low)",
        "values above the range",
        f"{RULES}::test_rule_08_a_strange_record_is_clamped_and_moves_the_sum_by_at_most_the_clip",
    ),
    encoding(
        "encoding-no-number",
        "torch.nan_to_num(values, nan=schema.low, posinf=schema.high, neginf=schema.low)",
        "values",
        "values that are no number",
        f"{RULES}::test_rule_08_a_strange_record_is_clamped_and_moves_the_sum_by_at_most_the_clip",
    ),
    # Public values
    api(
        "api-answers-change",
        "self.values.setflags(write=False)",
        "self.values.setflags(write=True)",
        "an answer is changed where it is stored",
        f"{RULES}::test_rule_04_answers_are_immutable",
    ),
    schema(
        "schema-adjacency",
        "if self.adjacency != ADD_REMOVE:",
        "if not self.adjacency:",
        "another adjacency is taken for this one",
        f"{RULES}::test_rule_10_no_other_adjacency_is_taken_for_this_one",
    ),
    base(
        "base-sizes-not-bought",
        "if schema.class_sizes is not None:\n        return ()",
        "if schema.records:\n        return ()",
        "class sizes are read off the records",
        f"{RULES}::test_rule_06_class_sizes_that_are_not_public_are_bought",
    ),
    # Clipped sums
    bound("maps-safe", "SAFE = 1 - 1e-6", "SAFE = 1 + 1e-3", "rows pass the clip", BOUND),
    bound("maps-loose-sum", "room / norms", "1.01 * room / norms", "a looser clip", BOUND),
    maps(
        "maps-outer",
        "x, y, bound.root(), block or self.block)",
        "x, y, bound, block or self.block)",
        "|z z^T| is |z|^2",
        BOUND,
    ),
    maps(
        "maps-padding-counts",
        "flatten(1))[:real] for real",
        "flatten(1)) for real",
        "what fills a block up is added",
        BOUND,
        STEADY,
    ),
    maps(
        "maps-single-sum",
        "dtype=torch.float64, device=x.device)\n        return total.index_add_(0, row, rows)",
        "dtype=torch.float32, device=x.device)\n        return total.index_add_(0, row, rows.float()).double()",
        "a sum that is rounded moves with its order",
        f"{STEADY}::test_the_sum_over_thousands_of_records_has_no_residual_of_single_precision",
        f"{STEADY}::test_a_sum_is_that_of_its_records_one_by_one_to_the_last_bits_of_a_double",
    ),
    sums(
        "local-block-not-tried",
        "self._blocks[form] = steady_block(typical.trial, preferred, shape, classes, self._device)",
        "self._blocks[form] = preferred",
        "rows that depend on their place",
        f"{RULES}::test_rule_12_the_vault_passes_records_in_blocks_that_were_tried",
    ),
    blocks(
        "blocks-not-filled-up",
        "tensor.new_zeros(size, *",
        "tensor.new_zeros(real, *",
        "the last shape is secret",
        f"{BLOCKS}::test_every_block_has_one_shape_and_is_filled_up_with_zeros",
    ),
    blocks(
        "blocks-steady-is-always",
        "while size > 1 and not is_steady(",
        "while size > MOST and not is_steady(",
        "no block is tried",
        f"{BLOCKS}::test_the_largest_block_without_a_difference_is_taken",
    ),
    blocks(
        "blocks-turned",
        "return all(same_bits(rows(x.roll",
        "return any(same_bits(rows(x.roll",
        "one place at which a row stays the same is enough",
        PLACES,
    ),
    blocks("blocks-tried-once", "if compared >= ENOUGH", "if compared", "short rows agree by luck", BLOCKS),
    blocks(
        "blocks-neighbours",
        "if not same_bits(rows(beside, labels)[half], expected[half])",
        "if rows(beside, labels)[half] is None",
        "neighbours are not tried",
        PLACES,
    ),
    blocks("blocks-same", "((a == b) | (", "(((a - b).abs() < 1e-6) | (", "nearly the same bits", PLACES),
    bound(
        "maps-single-precision",
        "rows.double() * (self.clip * SAFE / norms).clamp(max=1.0)",
        "(rows * (self.clip * SAFE / norms).clamp(max=1.0).float()).double()",
        "tiny clips are rounded away",
        BOUND,
    ),
    bound(
        "maps-no-number", "torch.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)", "rows", "one record is NaN", BOUND
    ),
    maps(
        "maps-mixing-is-fine",
        "return not same_bits(before[[0, 2]], after[[0, 2]])",
        "return bool(before.isnan().all()) and not after.isnan().all()",
        "batch norm passes",
        f"{RULES}::test_rule_07_a_map_that_mixes_records_is_refused_before_anything_is_read",
    ),
    maps(
        "maps-digest",
        '{"kind": self.kind, **self.parameters()}',
        '{"kind": self.kind}',
        "a stored answer for any parameters",
        f"{RULES}::test_rule_04_a_stored_answer_is_not_given_for_other_parameters",
    ),
    maps(
        "maps-digest-of-weights",
        "tensor.cpu().contiguous().numpy().tobytes()",
        "str(tensor.shape).encode()",
        "a stored gradient for any weights",
        f"{WALL}::test_the_digest_of_a_map_covers_every_parameter",
    ),
    # Gradients
    gradients("gradients-safe", "SAFE = 1 - 4e-6", "SAFE = 1 + 1e-3", "gradients pass the clip", BOUND),
    gradients("gradients-not-joint", "squares.sum(0)", "squares.amax(0)", "layers are clipped apart", BOUND),
    gradients(
        "gradients-share", "each = bound.share(len(parts))", "each = bound", "each layer has the whole clip", ENGINE
    ),
    gradients("gradients-never-less", ".clamp(max=1.0)", ".clamp(min=1.0)", "nothing is scaled down", BOUND),
    gradients(
        "gradients-no-number", "        if not finite.all():", "        if not finite.any():", "NaN spoils", ENGINE
    ),
    gradients(
        "gradients-padding",
        "torch.arange(len(x), device=x.device) < real",
        "row >= 0",
        "zeros that fill up count",
        ENGINE,
        STEADY,
    ),
    gradients(
        "gradients-ghost-norm", "* flow.square().sum((1, 2))", "* flow.square().amax((1, 2))", "too short", ENGINE
    ),
    gradients(
        "gradients-ghost-norms", ".sum((1, 2)).clamp_min(0)", ".sum((1, 2)).clamp_min(0) / 2", "too short", ENGINE
    ),
    gradients("gradients-held-norm", "runs.double().square()", "runs.double()", "norms are none", BOUND),
    gradients(
        "gradients-held-tail",
        "self._flat[:, whole:].double()",
        "0 * self._flat.double()",
        "an end is not counted",
        ENGINE,
    ),
    gradients(
        "gradients-underflow", "(squares.sqrt() + UNDERFLOW)", "squares.sqrt()", "tiny gradients pass the clip", ENGINE
    ),
    gradients(
        "gradients-single-sum",
        "factors @ rows.double()",
        "(factors.float() @ rows).double()",
        "sums drift",
        f"{ENGINE}::test_sums_of_older_bookings_are_added_up_in_double_precision",
    ),
    gradients("gradients-groups", "module.groups != 1", "module.groups < 1", "a rule that does not hold", ENGINE),
    gradients(
        "gradients-batch-norm",
        "isinstance(module, nn.modules.batchnorm._BatchNorm)",
        "isinstance(module, nn.modules.batchnorm.BatchNorm3d)",
        "records mix",
        f"{ENGINE}::test_layers_without_a_sound_rule_are_refused_by_name",
    ),
    maps(
        "score-is-an-entropy",
        "loss: ClassVar[str] = SCORE",
        "loss: ClassVar[str] = ENTROPY",
        "the critic learns from a loss that it was not booked for",
        "methods/test_gans.py::test_rows_are_the_gradients_of_single_records",
    ),
    maps(
        "reconstruction-is-an-entropy",
        "loss: ClassVar[str] = RECONSTRUCTION",
        "loss: ClassVar[str] = ENTROPY",
        "the autoencoder learns labels in place of records",
        f"{CODED}::test_rows_are_the_gradients_of_single_reconstructions",
    ),
    gradients(
        "reconstruction-of-the-batch",
        "outputs, (x.flatten(1) + 1) / 2, reduction",
        "outputs, ((x + x.mean(0)).flatten(1) + 2) / 4, reduction",
        "a record's gradient depends on the others of its block",
        f"{CODED}::test_rows_are_the_gradients_of_single_reconstructions",
    ),
    codes(
        "code-digest",
        '"weights": hashes, "spec"',
        '"spec"',
        "a resumed run may ask with another encoder and get the answer of the first",
        f"{CODED}::test_features_are_those_of_the_code_and_of_norm_one",
    ),
    # The largest coordinates
    top("top-more-than-the-share", "target = share * ", "target = 1.2 * share * ", "more norm than paid for", TOP),
    top("top-ties", "squares > first_out", "squares >= first_out", "ties pass the share", TOP),
    top(
        "top-not-clipped",
        "clip_rows(self.gradient.rows(x, y), self.clip)",
        "self.gradient.rows(x, y).double()",
        "the root of the share bounds nothing",
        TOP,
    ),
    # Hermite features and transport
    hermite(
        "hermite-numbers-whole",
        "math.sqrt((1 - spec.share) / spec.numbers)",
        "math.sqrt(1 / spec.numbers)",
        "the pairs come on top of a whole norm, and the clip takes from both",
        "methods/test_dphp.py::test_a_row_has_norm_one_at_most",
    ),
    hermite(
        "hermite-planes-not-checked",
        " or self.numbers % (self.height * self.width)",
        "",
        "a pair beyond the record fails where, and only where, there is a record",
        "methods/test_dphp.py::test_specs_that_make_no_sense_are_refused",
    ),
    transport(
        "transport-shares-of-all-records",
        "shares = torch.softmax(potentials - moves.square().mean(2) / self.blur, dim=1)",
        "shares = torch.softmax(potentials - moves.square().mean(2) / self.blur, dim=0)",
        "a record's shares depend on the others of its block",
        "methods/test_dpsinkhorn.py::test_a_record_is_shared_out_among_its_own_class_by_itself",
    ),
    transport(
        "transport-any-table",
        "self.points.dim() != 3 or ",
        "",
        "points may be laid along the records of a block",
        "methods/test_dpsinkhorn.py::test_maps_that_make_no_sense_are_refused",
    ),
    transport(
        "transport-digest",
        '"potentials": digest_of(self.potentials)',
        "",
        "an answer for other potentials is given again",
        "methods/test_dpsinkhorn.py::test_other_potentials_are_another_question",
    ),
    # Residuals
    residuals(
        "residuals-outer",
        "x, y, bound.root(), block",
        "x, y, bound, block",
        "outer products pass the clip",
        BOUND,
    ),
    residuals(
        "residuals-size-digest",
        'return {} if size is None else {"size": list(size)}',
        "return {}",
        "a stored answer for pictures of any size",
        f"{WALL}::test_the_digest_of_a_map_covers_every_parameter",
    ),
    pooling(
        "pooled-mixes",
        "averaged: Tensor = F.adaptive_avg_pool2d(x, (size[0], size[1]))",
        "averaged: Tensor = F.adaptive_avg_pool2d(x - x.mean(0), (size[0], size[1]))",
        "pictures are averaged with each other",
        BOUND,
    ),
    residuals(
        "residuals-digest",
        "digest_of(tensor)",
        "str(tensor.shape)",
        "a stored answer for any centre",
        f"{WALL}::test_the_digest_of_a_map_covers_every_parameter",
    ),
)
