"""Faults of the vault on several ranks: noise, coins, shards, what is compared, and what is told."""

from __future__ import annotations

from mutation import Faults, Mutation

vault, holder, shard, partial, said, group = (
    Faults("vault/sharded/vault.py"),
    Faults("vault/sharded/holder.py"),
    Faults("vault/sharded/shard.py"),
    Faults("vault/sharded/partial.py"),
    Faults("vault/sharded/requests.py"),
    Faults("vault/sharded/group.py"),
)
streams, sums, team = Faults("vault/noise.py"), Faults("vault/clipped_sums.py"), Faults("runs/ranks.py")

SUMS = "privacy/test_sharded_sums.py"
BITS = f"{SUMS}::test_an_answer_has_the_same_bits_for_any_number_of_ranks"
COINS = f"{SUMS}::test_every_record_is_in_one_shard_and_has_its_own_coin"
KEEPS = f"{SUMS}::test_a_shard_keeps_nothing_of_the_rest"
REFUSED = f"{SUMS}::test_teachers_and_doubles_are_refused_before_they_are_booked"
VAULT = "vault/test_sharded.py"
OTHERS = f"{VAULT}::test_other_records_on_another_rank_are_refused_and_cost_nothing"
WHOLE = f"{VAULT}::test_without_one_rank_there_is_no_answer_and_the_next_try_is_whole"
RANKS = "runs/test_ranks.py"

SHARDED: tuple[Mutation, ...] = (
    # Noise
    vault(
        "sharded-no-noise", "with_noise(query, total, noise)", "with_noise(query, total, 0 * noise)", "bare sums", BITS
    ),
    holder(
        "sharded-noise-on-every-rank",
        "return self._sums.summed(said.query, said.mapping, records, SecretStream(key), coins, said.block)",
        "from limbeck.vault.noise import drawn_noise\n"
        "        total = self._sums.summed(said.query, said.mapping, records, SecretStream(key), coins, said.block)\n"
        "        return total + drawn_noise(said.query, total.shape, SecretStream(bytes(32)))",
        "noise that was not paid for, and a key on the other ranks",
        BITS,
    ),
    vault(
        "sharded-noise-last",
        "        noise = drawn_noise(query, shape, self._randomness.stream(f\"{query.label}: noise\", index))\n"
        "        block = self._agreed_block(query, mapping)\n",
        "        block = self._agreed_block(query, mapping)\n"
        "        noise = drawn_noise(query, shape, self._randomness.stream(f\"{query.label}: noise\", index))\n",
        "the time of noise beside that of others",
        f"{SUMS}::test_noise_is_drawn_once_at_rank_0_before_any_record_is_touched",
    ),
    vault(
        "sharded-one-key",
        "key = self._randomness.key(query.label, index)",
        'key = self._randomness.key(f"{query.label}: noise", index)',
        "the ranks, and the wire, have the key of the noise",
        f"{SUMS}::test_the_key_of_the_noise_and_the_noise_stay_with_rank_0",
    ),
    # Coins
    shard("sharded-coins-by-rank", "skip=shard.first", "skip=0", "records of two ranks share their coins", COINS),
    streams("sharded-odd-skip", "        self.integers(rest)\n", "", "two records share a coin", COINS),
    shard(
        "sharded-coins-by-place",
        "places=places[first:last].copy()",
        "places=np.arange(first, last)",
        "a test's coins depend on the order of the file",
        COINS,
        f"{SUMS}::test_the_order_of_the_file_changes_no_bit",
    ),
    sums(
        "sharded-coins-of-the-first",
        "poisson_sample(records.y, rates, thrown or coins)",
        "poisson_sample(records.y, rates, coins)",
        "every shard is sampled by the coins of the first records",
        BITS,
    ),
    # Shards
    shard(
        "sharded-record-lost",
        "first, last = (len(records) * each // size",
        "first, last = (len(records) * each // (size + 1)",
        "records that nobody holds",
        COINS,
    ),
    shard(
        "sharded-person-torn",
        "(before * size // max(len(units), 1)).astype(np.int64)[person]",
        "np.arange(len(units)) * size // max(len(units), 1)",
        "a person is clipped on every rank by itself",
        f"{SUMS}::test_a_person_is_on_one_rank_with_all_records",
    ),
    shard("sharded-view", "Records(records.x[chosen].copy(),", "Records(records.x[chosen],", "all records stay", KEEPS),
    vault(
        "sharded-shards-uncounted",
        "replies(self._group, Taken)) != len(own)",
        "replies(self._group, Taken)) < 0",
        "a rank holds other records than it should",
        f"{VAULT}::test_a_shard_that_is_not_what_it_should_be_is_noticed",
    ),
    vault("sharded-rank-missing", "        if failed:\n", "        if failed < 0:\n", "a sum without a shard", WHOLE),
    partial("sharded-failure-unsaid", "fault, values[-1] = error, 1", "fault = error", "a sum without a shard", WHOLE),
    holder(
        "sharded-no-shard-no-matter",
        'raise LimbeckError("There is no shard here to add up.")',
        "return np.zeros(self._sums.shape_of(said.query, said.mapping), dtype=np.int64)",
        "a sum without a shard",
        f"{VAULT}::test_a_rank_without_its_shard_adds_no_zeros",
    ),
    # What is compared
    vault("sharded-any-file", "if other != found]", "if other.records != found.records]", "two data sets", OTHERS),
    shard("sharded-labels-uncompared", "in (records.x, records.y, records.units)", "in (records.x,)", "two sets", OTHERS),
    holder(
        "sharded-any-schema",
        "if source.schema != said.schema:",
        "if source.schema.name != said.schema.name:",
        "records in two ranges",
        f"{VAULT}::test_another_schema_on_another_rank_is_refused",
    ),
    vault(
        "sharded-any-kernels",
        "if each != own]",
        "if each.block != own.block]",
        "a record's row depends on its rank",
        f"{VAULT}::test_machines_that_round_differently_get_no_answer",
    ),
    holder(
        "sharded-block-of-its-own",
        "coins, said.block)",
        "coins)",
        "a record's row depends on its rank",
        f"{VAULT}::test_all_ranks_take_the_smallest_block",
    ),
    vault(
        "sharded-teachers", "if not isinstance(query, ClippedSum):", "if isinstance(query, str):", "booked for nothing",
        REFUSED,
    ),
    vault("sharded-doubles", "if not query.on_grid:", "if query.on_grid is None:", "sums that depend on order", REFUSED),
    # What is told
    said(
        "sharded-code-of-others",
        "{code if code in SENTENCES else 'failed'}",
        "{code}",
        "a text of another machine",
        f"{VAULT}::test_a_failure_elsewhere_is_a_code_here",
    ),
    group(
        "sharded-any-size",
        "0 < size <= PREFIX.size + MOST_HEADER + MOST_BODY",
        "0 < size",
        "all memory for a message",
        "vault/test_torch_group.py::test_a_message_is_no_larger_than_one_may_be",
    ),
    team(
        "sharded-note-quotes",
        "({type(error).__name__} at",
        "({error} at",
        "an error quotes a value",
        f"{RANKS}::test_a_rank_that_fails_ends_the_work_and_nobody_waits",
    ),
    team(
        "sharded-any-order",
        "return [done[part] for part in range(work.parts)]",
        "return list(done.values())",
        "the images of one class move by another's answer",
        f"{RANKS}::test_shared_out_it_has_the_same_bits",
    ),
)  # fmt: skip
