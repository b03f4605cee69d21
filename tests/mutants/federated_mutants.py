"""Faults of federations: masks, shares, terms, what a site signs and what the server may take for true."""

from __future__ import annotations

from mutation import Faults, Mutation

masking, masked = Faults("vault/masking.py"), Faults("vault/masked.py")
terms, vault = Faults("privacy/federation.py"), Faults("federated/vault.py")
fitting, stepped, staying = (
    Faults("federated/fitting.py"),
    Faults("methods/parts/stepped.py"),
    Faults("federated/staying.py"),
)
parts, endorsing, joined = Faults("release/parts.py"), Faults("release/endorsing.py"), Faults("release/joined.py")
desk, owner = Faults("federated/desk.py"), Faults("federated/owner.py")

MASKING = "federated/test_masking.py"
SITES = "federated/test_sites.py"
SHARES = "federated/test_shares.py"
RUNS = "federated/test_federated_runs.py"
BETWEEN = f"{MASKING}::test_the_server_cannot_come_in_between"
LIES = f"{RUNS}::test_a_server_that_lies_is_found_out"
SIGNS = f"{RUNS}::test_a_site_endorses_only_what_it_booked"
JOINING = "release/test_joining.py"
STAYING = "federated/test_staying.py"

FEDERATED: tuple[Mutation, ...] = (
    masking(
        "masking-any-signature",
        "verifier.verify(bytes.fromhex(key.signature),",
        "(lambda *_: None)(bytes.fromhex(key.signature),",
        "the server's own keys pass for a site's",
        BETWEEN,
    ),
    masking(
        "masking-signed-for-any-grant",
        "context_of(terms.digest(), site, grant, public)",
        "context_of(terms.digest(), site, public)",
        "keys of another run",
        BETWEEN,
    ),
    masking(
        "masking-signed-for-any-terms",
        "context_of(terms.digest(), site, grant, public)",
        "context_of(site, grant, public)",
        "keys for looser terms",
        f"{MASKING}::test_a_key_is_signed_for_the_terms",
    ),
    masking(
        "masking-few-keys",
        "if tuple(key.site for key in keys) != terms.sites:",
        "if not {key.site for key in keys} <= set(terms.sites):",
        "masks with some of the sites, or none",
        BETWEEN,
    ),
    masking(
        "masking-another-own-key",
        "if keys[mine].public_key != _public_text(secret):",
        "if not keys[mine].public_key:",
        "masks that do not cancel, unnoticed",
        BETWEEN,
    ),
    masking(
        "masking-all-added",
        "total = total + words if mine < other else total - words",
        "total = total + words",
        "masks do not cancel",
        f"{MASKING}::test_masks_cancel_exactly",
    ),
    masking(
        "masking-one-stream-for-two-pairs",
        "_context_of_a_pair(context, *pair)",
        "context",
        "a site that offers another one's key takes a third one's mask off",
        f"{MASKING}::test_a_site_that_offers_anothers_key_takes_no_mask_off",
    ),
    masking(
        "masking-any-spelling",
        "if not all(_PUBLIC.fullmatch(key.public_key) for key in keys)",
        "if not all(key.public_key for key in keys)",
        "one key counts as two",
        f"{MASKING}::test_a_key_has_one_spelling",
    ),
    masking(
        "masking-one-stream",
        'info=b"limbeck mask %d\\0" % PROTOCOL + context',
        'info=b"limbeck mask %d\\0" % PROTOCOL',
        "a mask is used for every answer: differences of sums are bare",
        f"{MASKING}::test_streams_are_of_their_key_and_context",
    ),
    masking(
        "masking-low-bits",
        'dtype="<u8").astype(np.uint64)',
        'dtype="<u8").astype(np.uint64) >> np.uint64(20)',
        "the high bits of a sum are bare",
        f"{MASKING}::test_what_the_server_sees_of_one_sum_is_uniform",
    ),
    masking(
        "masking-not-in-the-terms",
        "if site not in terms.sites or terms.keys[terms.sites.index(site)] != public:",
        "if site not in terms.sites:",
        "a site with a key that nobody knows",
        f"{MASKING}::test_a_site_needs_the_key_that_the_terms_name",
    ),
    masked(
        "masked-answers-in-the-clear",
        "if isinstance(grant.plan.query(label), ClippedSum):\n            raise",
        "if grant.plan.query(label) is None:\n            raise",
        "sums leave without masks",
        f"{SITES}::test_sums_never_leave_a_site_without_their_mask",
    ),
    masked(
        "masked-no-mask",
        "(noised.view(np.uint64) + mask)",
        "(noised.view(np.uint64) + 0 * mask)",
        "the server sees each site's sum, with a share of the noise",
        f"{SITES}::test_sums_never_leave_a_site_without_their_mask",
    ),
    masked(
        "masked-another-question",
        "if stored.map_digest != digest:",
        "if not stored.map_digest:",
        "one mask for two questions, and sums of lost keys",
        f"{SITES}::test_a_lost_key_of_masks_is_noticed_and_gives_no_garbage",
    ),
    masked(
        "masked-context-without-map",
        "label, index, mapping.digest(), list(shape))",
        "label, index, list(shape))",
        "sites that are asked different things answer together",
        f"{SITES}::test_sites_that_are_asked_different_things_give_noise",
    ),
    masked(
        "masked-any-protocol",
        "context_of(PROTOCOL, *said)",
        "context_of(*said)",
        "sites of different versions answer together, and add up to noise",
        f"{SITES}::test_answers_masked_by_another_version_are_not_given_again",
    ),
    masked(
        "masked-terms-unbooked",
        '{**booked, "terms": self._masks.terms.digest()}',
        "{**booked}",
        "what was booked under terms is answered under others",
        f"{SITES}::test_what_was_booked_under_terms_is_not_answered_under_others",
    ),
    masked(
        "masked-share-of-a-share",
        "* self._masks.terms.share\n",
        "* self._masks.terms.share**2\n",
        "too little noise",
        f"{SITES}::test_each_site_adds_its_share_of_the_noise_and_no_more",
        "federated/test_federated_contract.py::TestNoiseOnce",
    ),
    masked(
        "masked-key-after-the-end",
        'if self.state(grant.id) != "open":',
        'if self.state(grant.id) == "void":',
        "keys of runs that are over",
        f"{SITES}::test_the_key_of_masks_goes_with_the_grant",
    ),
    masked(
        "masked-without-a-grid",
        "            if not query.on_grid:\n",
        "            if query.on_grid and not query.label:\n",
        "doubles under a mask of whole numbers",
        f"{SITES}::test_sums_without_a_grid_cannot_be_masked",
    ),
    terms(
        "terms-all-sites-count",
        "math.sqrt(len(self.sites) - self.collusion)",
        "math.sqrt(len(self.sites))",
        "those who tell are counted on",
        f"{SHARES}::test_shares_of_those_who_do_not_tell_are_all_of_the_noise",
    ),
    terms(
        "terms-one-honest-site",
        "most = len(self.sites) - 2 if",
        "most = len(self.sites) - 1 if",
        "the sum shows the one who does not tell",
        f"{MASKING}::test_terms_that_cannot_be_right_are_refused",
    ),
    terms(
        "terms-told-for-free",
        "all_told=booked if terms.noise == SITE else",
        "all_told=booked if terms.noise else",
        "what is left when all tell is stated too low",
        f"{SHARES}::test_prices_follow_from_who_sees_what",
    ),
    vault(
        "federated-booked-at-some",
        "if booked and not self._answered(grant, booked):",
        "if not booked:",
        "bookings that nobody gives back",
        f"{SITES}::test_a_site_with_too_little_budget_ends_it_and_nothing_is_booked_anywhere",
    ),
    vault(
        "federated-given-back-though-answered",
        "if any(self.drawn(grant).values()):\n            return False\n        return all(",
        "return all(",
        "budget comes back for what others have answered",
        f"{SITES}::test_nothing_is_given_back_anywhere_once_one_site_has_answered",
    ),
    fitting(
        "federated-any-schema",
        "    if differ:\n        raise BadInput(",
        "    if differ == ['none']:\n        raise BadInput(",
        "records of different kinds, or units, in one sum",
        f"{SITES}::test_sites_with_different_schemas_are_refused_before_anything_is_booked",
    ),
    desk(
        "desk-tells-the-text",
        "return to_bytes(message_of(Failed(code)))",
        "return to_bytes(message_of(Failed(str(error))))",
        "texts of a site's errors reach the server",
        f"{SITES}::test_an_unforeseen_failure_is_one_fixed_reply",
    ),
    owner(
        "owner-unmarked",
        "self._ledger.store(grant.id,",
        "(lambda *_, **__: None)(grant.id,",
        "an owner's booking is given back though sites have answered",
        f"{RUNS}::test_what_sites_have_answered_cannot_be_given_back_at_the_owners",
    ),
    owner(
        "owner-unbooked",
        "booked = self._owner.grant(plan, identity)",
        "booked = super().grant(plan, identity)",
        "a simulation makes a budget for records that have one",
        f"{RUNS}::test_an_owner_without_budget_ends_a_simulation_before_any_site_books",
    ),
    parts("parts-unsigned", "        check_signature(part, key)\n", "", "parts that no site signed", LIES),
    parts(
        "parts-of-another",
        "if canonical(stated) != canonical(expected):",
        "if not stated:",
        "parts of another certificate",
        LIES,
    ),
    parts(
        "parts-any-view",
        "if not near or stated.delta != delta:",
        "if stated.delta != delta:",
        "prices that do not follow from the queries",
        f"{RUNS}::test_what_it_costs_from_every_side_is_computed_again",
    ),
    endorsing(
        "endorsing-any-price",
        "if certificate.epsilon != price(plan.queries, plan.price.delta).epsilon:",
        "if certificate.epsilon < 0:",
        "a price that is not the site's",
        SIGNS,
    ),
    endorsing(
        "endorsing-fewer-answers",
        "if any(count > certificate.drawn.get(label, 0) for label, count in drawn.items()):",
        "if not drawn:",
        "answers that the certificate does not count",
        SIGNS,
    ),
    endorsing(
        "endorsing-any-plan",
        "    if said != (plan.method,",
        "    if not said and said != (plan.method,",
        "a plan that was not booked",
        SIGNS,
    ),
    joined(
        "joined-one-owner-twice",
        "            if owner in owners:",
        "            if owner in ():",
        "costs of one owner's sets do not add up",
        f"{JOINING}::test_one_owners_data_set_is_not_joined_with_itself",
    ),
    joined(
        "joined-another-set",
        'if certificate.files.get(part_file(number)) != part.files["set.npz"]:',
        'if "set.npz" not in part.files:',
        "records that no part released",
        f"{JOINING}::test_a_set_that_no_owner_released_is_found_out",
    ),
    staying(
        "staying-another-answer",
        "self.first + index - self.step",
        "index",
        "a site answers what another one's turn is, or is asked for more than was booked",
        f"{STAYING}::test_a_block_of_steps_at_a_site_is_the_same_bits_as_step_by_step",
    ),
    stepped(
        "staying-any-state",
        'raise BadInput("The generator\'s state is not of the form that its method has.")',
        "return",
        "a site goes on with what somebody else made up",
        f"{STAYING}::test_luggage_that_is_not_of_this_method_is_refused_and_costs_nothing",
    ),
    stepped(
        "staying-any-number-of-steps",
        "if not 0 <= step < step + count <= method.rounds(schema):",
        "if count == 0:",
        "steps that the method does not have",
        f"{STAYING}::test_luggage_that_is_not_of_this_method_is_refused_and_costs_nothing",
    ),
    terms(
        "whole-site-one-draw",
        "return math.sqrt(query.draws)",
        "return 1.0",
        "a whole site is priced as one teacher",
        f"{SHARES}::test_a_whole_site_costs_what_all_its_teachers_can_move",
    ),
    terms(
        "whole-site-one-vote",
        "return float(query.teachers) if",
        "return 1.0 if",
        "a whole site is priced as one voter",
        f"{SHARES}::test_a_whole_site_costs_what_all_its_teachers_can_move",
    ),
    parts(
        "whole-site-not-priced-again",
        '_check_price("site", stated.site, found.site, certificate.delta)',
        "pass",
        "a whole site's price is the server's word",
        f"{RUNS}::test_a_price_of_a_whole_site_that_is_too_low_or_has_no_ground_is_found_out",
    ),
)
