"""Faults of ensembles: who learns from what, who votes, who is drawn, and what is kept of them."""

from __future__ import annotations

from mutation import Faults, Mutation

votes, desk, ensemble = (
    Faults("vault/ensemble/votes.py"),
    Faults("vault/ensemble/desk.py"),
    Faults("vault/ensemble/ensemble.py"),
)
critics, partition, store = (
    Faults("vault/ensemble/critics.py"),
    Faults("vault/ensemble/partition.py", "vault/keyed_hash.py"),
    Faults("vault/ensemble/store.py"),
)
noise = Faults("vault/noise.py")
hashes = Faults("vault/keyed_hash.py")
folder, discriminators = Faults("vault/private_folder.py"), Faults("vault/ensemble/discriminators.py")
features = Faults("vault/ensemble/feature_discriminators.py")

ANSWERS = "privacy/test_teacher_answers.py"
HALF = f"{ANSWERS}::test_one_teachers_vote_has_half_of_the_clip"
PARTS = f"{ANSWERS}::test_every_part_has_a_teacher_of_its_own"
VOTES_NOISE = f"{ANSWERS}::test_votes_have_just_the_noise_that_was_paid_for"
GRADIENT_NOISE = f"{ANSWERS}::test_gradients_have_just_the_noise_that_was_paid_for"
TEACHERS_TESTS = "privacy/test_teachers.py"
ONE = f"{TEACHERS_TESTS}::test_one_record_changes_one_teacher_bit_for_bit"
REFUSED = f"{TEACHERS_TESTS}::test_questions_that_were_not_paid_for_are_refused"
CRITICS = "vault/test_critics.py"
STORE = "vault/test_ensemble_store.py"
SEAL = "vault/test_ensemble_seal.py"
WALL = "privacy/test_vault_wall.py"
DAMAGE = "runs/test_damage.py"

TEACHERS: tuple[Mutation, ...] = (
    # Votes
    votes(
        "votes-whole-clip",
        "bound.half().rows(votes.flatten(1))",
        "bound.rows(votes.flatten(1))",
        "2 clips",
        HALF,
    ),
    votes(
        "votes-image-by-image",
        "bound.half().rows(votes.flatten(1))",
        "bound.half().rows(votes.flatten(0, -2)).view(len(votes), -1)",
        "each image has the whole bound",
        HALF,
    ),
    votes(
        "votes-bins-root-two",
        "if math.sqrt(2 * numbers) > bound.clip",
        "if math.sqrt(numbers) > bound.clip",
        "a vote leaves one bin and enters another",
        f"{ANSWERS}::test_votes_for_bins_need_a_clip_of_the_root_of_twice_their_number",
    ),
    votes(
        "votes-bins-of-one-image",
        "numbers = votes[0].numel()",
        "numbers = votes.shape[-1]",
        "images are not added up",
        f"{ANSWERS}::test_votes_for_bins_need_a_clip_of_the_root_of_twice_their_number",
    ),
    votes(
        "votes-bins-twice",
        "F.one_hot(votes.flatten(1), self.bins).flatten(1).double()",
        "2 * F.one_hot(votes.flatten(1), self.bins).flatten(1).double()",
        "votes count double",
        f"{ANSWERS}::test_two_votes_for_bins_are_never_further_apart_than_the_clip",
    ),
    # The desk
    desk(
        "desk-one-teacher-for-all-parts",
        "stream.integers(query.draws)",
        "np.repeat(stream.integers(1), query.draws)",
        "parts are not independent draws",
        PARTS,
    ),
    desk(
        "desk-one-teacher-for-a-chunk",
        "stream.integers(query.draws)",
        "np.repeat(stream.integers(query.draws), 2)[: query.draws]",
        "pairs of parts share a draw",
        PARTS,
    ),
    desk(
        "desk-a-teacher-is-never-drawn",
        "% np.uint64(query.teachers)",
        "% np.uint64(max(query.teachers - 1, 1))",
        "teachers are drawn more often than priced",
        PARTS,
    ),
    desk(
        "desk-part-whole-clip",
        "Bound.of(query).half().rows(",
        "Bound.of(query).rows(",
        "a part moves by two clips",
        f"{ANSWERS}::test_every_part_of_a_gradient_has_half_of_the_clip",
    ),
    desk(
        "desk-image-by-image",
        "half().rows(gradients.flatten(1))",
        "half().rows(gradients.flatten(0, 1).flatten(1)).view(len(gradients), -1)",
        "images of a part are clipped one by one",
        f"{ANSWERS}::test_every_part_of_a_gradient_has_half_of_the_clip",
    ),
    noise(
        "noise-0.97-votes",
        "stream.whole_gaussian(query",
        "stream.whole_gaussian(0.97 * query",
        "little noise",
        VOTES_NOISE,
    ),
    noise(
        "noise-0.97-gradients",
        "stream.whole_gaussian(query",
        "stream.whole_gaussian(0.97 * query",
        "too little noise",
        GRADIENT_NOISE,
    ),
    desk(
        "desk-one-number-of-noise",
        "noise = drawn_noise(query, shape, noises) if",
        "noise = drawn_noise(query, (1,), noises) if",
        "shared noise",
        GRADIENT_NOISE,
    ),
    desk(
        "desk-no-number",
        "torch.nan_to_num(value, 0.0, 0.0, 0.0)",
        "torch.clone(value)",
        "a teacher gone wild stops the sum",
        f"{TEACHERS_TESTS}::test_a_teacher_gone_wild_moves_the_sum_by_its_bound_at_most",
        explained="Every kind of vote, and its bound, counts what is not finite as 0 by itself: two fences, either suffices.",
    ),
    desk("desk-out-of-turn", "if index != self.clock", "if index < self.clock", "ticks are skipped", TEACHERS_TESTS),
    desk(
        "desk-other-teachers",
        "if question.identity() != self._identity",
        "if not self._identity",
        "teachers change on the way",
        TEACHERS_TESTS,
    ),
    desk(
        "desk-other-number",
        "if question.ensemble.teachers != query.teachers",
        "if not query.teachers",
        "fewer teachers than priced",
        REFUSED,
    ),
    desk(
        "desk-mixing-teachers",
        "if teachers_mix(teacher)",
        "if teacher.shape is None and teachers_mix(teacher)",
        "one record reaches all teachers",
        f"{WALL}::test_teachers_that_mix_are_refused_although_their_kind_is_known",
    ),
    desk(
        "desk-unknown-teacher",
        "if TEACHERS.get(teacher.kind) is not type(teacher)",
        "if teacher.kind not in TEACHERS",
        "a teacher of somebody's own",
        f"{WALL}::test_a_lookalike_of_a_teacher_is_refused",
    ),
    desk("desk-label", "int(y.max()) >= len(schema.classes)", "int(y.max()) > 99", "labels that are none", REFUSED),
    desk(
        "desk-parts-not-equal",
        "len(question.x) % query.draws",
        "len(question.x) < query.draws",
        "images are lost or in two parts",
        f"{TEACHERS_TESTS}::test_images_that_cannot_be_shared_out_are_refused",
    ),
    # Learning
    ensemble(
        "ensemble-others-records",
        "self._partition.indices(rows, ",
        "self._partition.indices(np.zeros_like(rows), ",
        "all learn from one part",
        ONE,
    ),
    ensemble(
        "ensemble-next-part",
        "self._partition.indices(rows, ",
        "self._partition.indices(np.concatenate([rows[1:], rows[:1]]) // 2, ",
        "two teachers share a part",
        ONE,
    ),
    ensemble(
        "ensemble-empty-part",
        "weight = torch.from_numpy(there).to(self.device, torch.float32)",
        "weight = torch.ones(there.shape, device=self.device)",
        "a teacher without records learns the first one",
        f"{TEACHERS_TESTS}::test_an_empty_part_and_a_class_that_is_missing_are_no_error",
    ),
    ensemble(
        "ensemble-shared-moments",
        "[ensemble.first[name][part] for name in names]",
        "[ensemble.first[name][part].sub_(ensemble.first[name][part].mean(0)) for name in names]",
        "teachers learn from one another's moments",
        ONE,
    ),
    ensemble(
        "ensemble-mean-gradient",
        "[gradient.contiguous() for gradient in gradients]",
        "[gradient.mean(0, keepdim=True).expand_as(gradient).contiguous() for gradient in gradients]",
        "all take one step",
        ONE,
    ),
    ensemble(
        "ensemble-mixing-is-fine",
        "return any(\n        not torch.equal(",
        "return all(\n        not torch.equal(",
        "mixing in one place passes",
        f"{TEACHERS_TESTS}::test_teachers_that_mix_are_found",
    ),
    discriminators(
        "discriminators-mixing",
        "return as_real + as_fake\n",
        "return as_real * as_real.detach().mean() + as_fake\n",
        "teachers learn from one another's records",
        f"{TEACHERS_TESTS}::test_no_kind_of_teacher_mixes",
    ),
    features(
        "features-mixing",
        "reals, fakes = (self._net().logits(weights, batch.x, batch.y) for batch in (real, fake))",
        "reals, fakes = (self._net().logits(weights, batch.x - real.x.mean(0), batch.y) for batch in (real, fake))",
        "teachers over features learn from one another's records",
        f"{TEACHERS_TESTS}::test_no_kind_of_teacher_mixes",
    ),
    features(
        "features-no-record",
        "(F.softplus(-reals) * real.weight).mean(1)",
        "F.softplus(-reals).mean(1)",
        "teachers over features learn from places where no record is",
        "vault/test_feature_teachers.py::test_places_without_a_record_do_not_count",
    ),
    # Critics
    critics(
        "critics-one-generator",
        "vmap(one)(self._weights)",
        "vmap(one)({name: value[:1].expand_as(value) for name, value in self._weights.items()})",
        "critics meet in one throw-away generator",
        f"{CRITICS}::test_a_throw_away_generator_learns_from_its_own_critic_alone",
    ),
    critics(
        "critics-mixing",
        "apart = as_fake - (",
        "apart = as_fake * as_fake.detach().mean() - (",
        "critics learn from one another's records",
        f"{CRITICS}::test_critics_do_not_mix_and_chunks_do_not_matter",
    ),
    critics(
        "critics-no-record",
        "(scores[:, :records] * real.weight).mean(1)",
        "scores[:, :records].mean(1)",
        "places without a record count",
        f"{CRITICS}::test_places_without_a_record_do_not_count",
    ),
    critics(
        "critics-penalty-without-a-record",
        "((norms - 1).square() * real.weight)",
        "((norms - 1).square())",
        "places without a record count",
        f"{CRITICS}::test_places_without_a_record_do_not_count",
    ),
    # Who owns a record
    partition(
        "partition-by-place",
        "(unit_hashes(records, key)[:, 0] % np.uint64(teachers))",
        "(np.arange(len(records)) % teachers)",
        "one record more moves all others",
        f"{TEACHERS_TESTS}::test_a_records_part_depends_on_the_record_alone",
    ),
    partition(
        "partition-order-of-the-file",
        "np.lexsort((record_hashes(records, key)[:, 1], teacher))",
        'np.argsort(teacher, kind="stable")',
        "the file's order is learned",
        f"{TEACHERS_TESTS}::test_a_records_part_depends_on_the_record_alone",
    ),
    partition(
        "partition-persons-apart",
        "teacher = (unit_hashes(records, key)",
        "teacher = (record_hashes(records, key)",
        "a person is in many teachers",
        "privacy/test_person_sums.py::test_a_person_changes_one_teacher_bit_for_bit",
    ),
    hashes(
        "partition-known-key",
        "key=key, digest_size=16",
        'key=b"", digest_size=16',
        "all can tell whose teacher a record has",
        f"{TEACHERS_TESTS}::test_copies_share_a_teacher_and_another_key_shares_out_otherwise",
    ),
    partition(
        "partition-past-the-end",
        "np.maximum(sizes - 1, 0)[:, None])",
        "np.maximum(sizes, 0)[:, None])",
        "the last share is the next teacher's first record",
        f"{WALL}::test_no_share_reaches_the_next_teachers_part",
    ),
    partition(
        "partition-sizes-seen",
        "return np.where(sizes[:, None] > 0, found, -1)",
        "return found",
        "an empty part gives a neighbour's record",
        f"{TEACHERS_TESTS}::test_an_empty_part_and_a_class_that_is_missing_are_no_error",
    ),
    # Checkpoints of teachers
    store("store-readable", "mode=0o600", "mode=0o644", "others read the key", STORE),
    store("store-open-folder", "folder.chmod(0o700)", "folder.chmod(0o755)", "others list the folder", STORE),
    store("store-one-nonce", "nonce = os.urandom(12)", "nonce = bytes(12)", "frames give each other away", SEAL),
    store(
        "store-frames-swapped",
        "[self.grant, label, unique.hex(), index]",
        "[self.grant, label, unique.hex()]",
        "a tensor is taken for another",
        SEAL,
    ),
    store(
        "store-other-query",
        "[self.grant, label, unique.hex(), index]",
        "[self.grant, unique.hex(), index]",
        "the teachers of another query",
        SEAL,
    ),
    store(
        "store-other-file",
        "[self.grant, label, unique.hex(), index]",
        "[self.grant, label, index]",
        "frames of two checkpoints in one",
        SEAL,
    ),
    store(
        "store-other-grant",
        "[self.grant, label, unique.hex(), index]",
        "[label, unique.hex(), index]",
        "the teachers of another run",
        SEAL,
    ),
    store(
        "store-other-configuration",
        'if header["identity"] != json',
        'if header["identity"] is json',
        "weights of other teachers",
        STORE,
    ),
    store(
        "store-seeded-seal",
        "keys = os.urandom(SEALING_KEY) + self",
        "keys = bytes(SEALING_KEY) + self",
        "a seed opens the seal",
        SEAL,
    ),
    store("store-key-length", "if len(keys) != KEYS or digest", "if digest", "half a key", SEAL),
    store(
        "store-key-damaged",
        'digest not in (b"", hashlib.sha256(keys).digest())',
        "not keys",
        "another key shares out the records anew",
        DAMAGE,
    ),
    folder(
        "folder-stays", "shutil.rmtree(folder, ignore_errors=True)", "folder.exists()", "teachers outlive a run", STORE
    ),
)
