"""Faults of records in pieces: coins on other records, records left out or read twice, changes that nobody notices."""

from __future__ import annotations

from mutation import Faults, Mutation

samples, sums = Faults("vault/streamed_samples.py"), Faults("vault/clipped_sums.py")
streamed, marks, memory = (
    Faults("data/streams/streamed.py"),
    Faults("data/streams/marks.py"),
    Faults("data/streams/memory.py"),
)
rows, arrays, tables, parquet, folders, shards = (
    Faults("data/streams/rows.py"),
    Faults("data/streams/array_stream.py"),
    Faults("data/streams/table_stream.py"),
    Faults("data/streams/parquet_stream.py"),
    Faults("data/streams/folder_stream.py"),
    Faults("data/streams/stream.py"),
)
local, parts, quiet = Faults("vault/local.py"), Faults("vault/part_records.py"), Faults("vault/process/quiet_stream.py")

SAME = "privacy/test_streamed_answers.py::test_every_form_of_file_answers_the_same_bits_from_pieces"
PIECES, CHOSEN = (
    f"data/streams/test_pieces.py::{name}"
    for name in ("test_pieces_of_every_form_are_the_whole", "test_chosen_places_of_every_form")
)
RANGE = "data/streams/test_pieces.py::test_a_rank_holds_a_range_and_knows_how_many_stand_before_it"
RANKS = "privacy/test_streamed_answers.py::test_ranges_of_a_file_add_up_to_the_whole"
CHOICE = "data/streams/test_pieces.py::test_a_choice_is_the_same_part_in_the_same_order"
VAULT = "vault/test_streamed_records.py"
CHANGED = f"{VAULT}::test_a_file_that_changes_between_answers_ends_in_one_sentence_and_the_run_goes_on_when_it_is_back"
UNDER = f"{VAULT}::test_a_file_that_changes_under_a_pass_gives_no_answer"
FAULT = f"{VAULT}::test_a_fault_of_one_record_is_found_before_the_first_answer_whoever_is_in_the_sample"
DAMAGE = f"{VAULT}::test_a_damaged_archive_is_found_although_its_rows_are_read_where_they_lie"
TEACHERS = f"{VAULT}::test_teachers_hold_their_records_and_say_so_where_there_is_no_room"
BLAMED = f"{VAULT}::test_what_goes_wrong_while_adding_up_is_not_blamed_on_the_file"
SERVER = f"{VAULT}::test_a_server_says_one_sentence_whatever_is_wrong"
PARTS = f"{VAULT}::test_parts_are_the_same_records_in_the_same_order"
PROMISE = f"{VAULT}::test_a_reader_that_breaks_its_promise_is_found_in_pieces_too"

STREAMS: tuple[Mutation, ...] = (
    samples(
        "stream-coin-of-no-class",
        "found.only(thrown[wanted] < limits[found.y])",
        "found",
        "all classes at the largest rate",
        SAME,
    ),
    samples(
        "stream-more-coins", "thrown < limits.max()", "thrown <= limits.max() // 2", "records lose their coins", SAME
    ),
    samples(
        "stream-no-sample",
        "is_sampled, count = rate_limits(rates), min(rates) < 1,",
        "is_sampled, count = rate_limits(rates), False,",
        "the rate is paid for, and all are taken",
        SAME,
    ),
    samples(
        "stream-coins-of-the-whole",
        "        coins.skip(records.before)\n",
        "        pass\n",
        "a range has the coins of another",
        RANKS,
    ),
    samples(
        "stream-last-span",
        "for start in range(0, count, span):\n            length",
        "for start in range(0, count - 1, span):\n            length",
        "the last record may be left out",
        SAME,
    ),
    samples(
        "stream-unordered-chunks",
        "records.only(order[start : start + chunk])",
        "records.only(order[: start + chunk])",
        "records count twice",
        RANKS,
    ),
    samples(
        "stream-no-order",
        "words[canonical_order(hashes)] = coins",
        "words[:] = coins",
        "predictable coins fall by the file",
        SAME,
    ),
    sums(
        "stream-order-always",
        "is_ordered = not self._in_file_order and",
        "is_ordered = self._in_file_order and",
        "secret coins need no order",
        SAME,
    ),
    streamed(
        "stream-no-mark-before",
        "        with _as_before(self):\n            self._require_marks()\n        with _later",
        "        with _later",
        "a changed file is read",
        CHANGED,
        explained="The comparison at the end finds it as well; this one only saves the pass.",
    ),
    streamed(
        "stream-no-mark-after",
        "            yield reading\n        with _as_before(self):\n            self._require_marks()",
        "            yield reading",
        "a file that changes under a pass is answered from",
        UNDER,
    ),
    streamed(
        "stream-any-mark",
        "if self.stream.marks() != self.marks:",
        "if len(self.stream.marks()) != len(self.marks):",
        "nothing counts as a change",
        CHANGED,
    ),
    streamed(
        "stream-error-names-a-record",
        "        raise has_changed(records.stream.where) from None",
        "        raise",
        "an error names who is in the sample",
        CHANGED,
    ),
    streamed(
        "stream-no-first-check",
        "                check(found if choice is None else choice.of(found))\n",
        "",
        "the vault trusts the reader",
        PROMISE,
    ),
    streamed("stream-damage-unseen", "        stream.check()\n", "", "a damaged archive is answered from", DAMAGE),
    streamed(
        "stream-bits-lost",
        "bits = np.concatenate([left, choice.keeps(found)])",
        "bits = choice.keeps(found)",
        "records of a part get lost",
        CHOICE,
    ),
    streamed(
        "stream-other-part",
        "bits = np.unpackbits(self.kept[start // 8 : (stop + 7) // 8])[start % 8 :]",
        "bits = np.unpackbits(self.kept[start // 8 : (stop + 7) // 8])",
        "records of another part",
        CHOICE,
    ),
    streamed(
        "stream-not-renumbered",
        "        return renumbered(found, self._records.renumbered)",
        "        return found",
        "records of the wrong class",
        CHOICE,
    ),
    streamed(
        "stream-range-from-zero",
        "        self._pass_to(records.first, NONE)\n",
        "",
        "every rank has the first records",
        RANGE,
    ),
    streamed(
        "stream-nobody-before",
        "before=self.before + len(replace(self, last=first))",
        "before=self.before",
        "coins of one range fall on another",
        RANGE,
    ),
    marks(
        "mark-no-time",
        ' {about.st_mtime_ns}".encode()\n    return',
        '".encode()\n    return',
        "a file that was written to is the same",
        UNDER,
    ),
    marks(
        "mark-first-picture",
        "    for name in names:\n",
        "    for name in list(names)[:0]:\n",
        "a picture is another one",
        CHANGED,
    ),
    memory(
        "memory-never-refused",
        "    if needed > allowed:",
        "    if needed < 0:",
        "the process dies in place of a sentence",
        TEACHERS,
    ),
    rows(
        "rows-run-too-long",
        "yield first, end\n",
        "yield first, last\n",
        "more is read than fits",
        "data/streams/test_pieces.py::test_no_more_is_read_at_a_time_than_is_said",
    ),
    rows(
        "rows-other-places",
        "found[wanted[first:last] - low]",
        "found[: last - first]",
        "other records than the coins chose",
        CHOSEN,
    ),
    rows(
        "rows-packed-places",
        "found[wanted[first:last] - start]",
        "found[: last - first]",
        "other records than the coins chose",
        CHOSEN,
    ),
    arrays(
        "arrays-sums-unread",
        "lambda: arrays.require_sums(path, plain)",
        "lambda: None",
        "a damaged archive is answered from",
        DAMAGE,
    ),
    tables(
        "csv-tail-not-passed", "        self._skipped(count - start)\n", "", "the next piece has other records", CHOSEN
    ),
    parquet(
        "parquet-group-too-many",
        "self._groups[self._next] <= count - skipped:",
        "self._groups[self._next] <= count - skipped + 1:",
        "a wanted record is passed over",
        CHOSEN,
    ),
    folders("folder-place", 'side="right"', 'side="left"', "a picture with the class of its neighbour", PIECES),
    shards(
        "shards-rest",
        "wanted[wanted >= passed] - passed",
        "wanted[wanted >= passed]",
        "other records of the next shard",
        CHOSEN,
    ),
    local(
        "local-teachers-in-pieces",
        "    return isinstance(query, ClippedSum) and (query.on_grid",
        "    return not isinstance(query, ClippedSum) or (query.on_grid",
        "teachers have no records",
        TEACHERS,
    ),
    parts(
        "stream-part-is-the-whole",
        "lambda records: checked_records(records, schema), choice)",
        "lambda records: checked_records(records, schema), None)",
        "a part spends for the whole and reads it",
        PARTS,
    ),
    quiet(
        "quiet-tells",
        '            raise DataUnreadable("The records cannot be read.") from None',
        "            raise",
        "a client learns what is wrong with the records",
        SERVER,
    ),
)
