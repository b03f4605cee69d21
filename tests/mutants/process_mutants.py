"""Faults of the vault as a process: bounds of messages, closed lists, what is signed, and what is told of a failure."""

from __future__ import annotations

from mutation import Faults, Mutation

wire, codec, requests, counter = (
    Faults("vault/process/wire.py"),
    Faults("vault/process/codec.py"),
    Faults("vault/process/requests.py"),
    Faults("vault/process/counter.py"),
)
server, failures, door, records = (
    Faults("vault/process/server.py"),
    Faults("vault/process/failures.py"),
    Faults("vault/process/socket_file.py"),
    Faults("vault/process/shared_records.py"),
)
booked, joint, client, one_hot = (
    Faults("release/booked.py"),
    Faults("runs/vault_server.py"),
    Faults("vault/process/client.py"),
    Faults("vault/maps/moments.py"),
)

WIRE = "vault/test_process_wire.py"
SIZES = f"{WIRE}::test_nothing_is_allocated_for_sizes_that_are_not_allowed"
READING = f"{WIRE}::test_a_message_has_one_reading"
GARBAGE = f"{WIRE}::test_garbage_is_refused_with_one_code"
CODEC = "vault/test_process_codec.py"
VAULT = "vault/test_process.py"
MISFIT = f"{VAULT}::test_whether_a_map_fails_tells_nothing_about_the_sample"
SIGNING = "vault/test_process_signing.py"
RUNS = "vault/test_process_runs.py"

sums = Faults("vault/clipped_sums.py")

PROCESS: tuple[Mutation, ...] = (
    # Messages
    wire("process-wire-any-header", "0 < header_size <= MOST_HEADER", "0 < header_size", "4 GB for a header", SIZES),
    wire("process-wire-any-body", " or body > most:", ":", "all memory for a body", SIZES),
    wire("process-wire-body-unlisted", "!= body:", "> body:", "bytes that nobody reads", READING),
    wire("process-wire-sizes-after", "forms) != body:", "forms) < body:", "tensors beyond what was announced", SIZES),
    wire(
        "process-wire-any-version", "magic != MAGIC or version != VERSION", "magic != MAGIC", "another format", GARBAGE
    ),
    wire(
        "process-wire-twins",
        "if len(values) != len(pairs)",
        "if not pairs and values",
        "two readings of one text",
        READING,
    ),
    wire("process-wire-infinite", "if not math.isfinite(value)", "if math.isnan(value)", "1e999 is no number", READING),
    wire(
        "process-wire-more-entries",
        'set(values) != {"kind"',
        'not set(values) >= {"kind"',
        "unknown is harmless",
        GARBAGE,
    ),
    wire(
        "process-wire-patience-without-end",
        "if left is not None and left <= 0:",
        "if left is None:",
        "drip-fed for ever",
        WIRE,
    ),
    server(
        "process-server-bytes-after",
        "            line.require_end()\n",
        "",
        "a second message behind the first",
        GARBAGE,
    ),
    server(
        "process-server-many-giants",
        "if size <= self.limits.small:",
        "if size >= 0:",
        "as many giants as connections",
        f"{WIRE}::test_of_large_bodies_one_at_a_time_is_taken_in",
    ),
    server(
        "process-server-any-connections",
        "if not self._free.acquire(blocking=False):",
        "if self._free.acquire(blocking=False) is None:",
        "threads without end",
        f"{VAULT}::test_more_connections_than_it_takes_are_told_so_and_come_again",
    ),
    # Values
    codec(
        "process-codec-any-field",
        "or set(values) != set(hints)",
        "or not set(values) <= set(hints)",
        "half a value",
        CODEC,
    ),
    codec(
        "process-codec-lookalike",
        "if choice.get(kind) is not type(value)",
        "if kind not in choice",
        "code of others",
        CODEC,
    ),
    codec(
        "process-codec-true-is-one",
        "fits = type(value) is int and",
        "fits = isinstance(value, int) and",
        "true is 1",
        CODEC,
    ),
    codec("process-codec-loose-tensor", "    if left:\n", "    if left is None:\n", "bytes that mean nothing", CODEC),
    requests(
        "process-requests-any-grant",
        "if identity is not None and not _IDENTITY.fullmatch(identity)",
        "if identity is not None and not identity",
        "a folder of the owner is removed",
        f"{VAULT}::test_a_grant_is_named_by_what_a_run_draws",
    ),
    # One at a time, by the booked plan
    counter(
        "process-counter-forged-plan",
        "            self._require_booked(said.grant)\n",
        "            pass\n",
        "teachers answer without noise",
        f"{RUNS}::test_a_forged_plan_takes_no_noise_off_the_teachers",
    ),
    counter(
        "process-counter-half-done",
        "        reply = self._counted(vault, said)\n",
        "        self._put_back(grant, vault)\n        reply = self._counted(vault, said)\n",
        "a vault that stopped half-way is asked again",
        f"{VAULT}::test_after_a_failure_in_the_middle_the_vault_is_opened_afresh",
    ),
    counter(
        "process-counter-failures-for-free",
        "self._failures += 1",
        "self._failures += 0",
        "bits without end",
        f"{VAULT}::test_failures_that_nobody_foresaw_are_told_so_many_times_at_most",
    ),
    counter(
        "process-counter-map-untried",
        "                _require_fit(tried, vault.describe())\n",
        "                pass\n",
        "a failure tells whether the sample is empty",
        MISFIT,
    ),
    sums(
        "process-width-of-the-form",
        "        x = torch.zeros(0, *self._schema.shape, device=self._device)\n",
        "        self.__dict__.setdefault('w', mapping)\n        mapping = self.__dict__['w']\n"
        "        x = torch.zeros(0, *self._schema.shape, device=self._device)\n",
        "a failure tells whether the sample is empty",
        MISFIT,
    ),
    counter(
        "process-counter-doubles",
        "if any(query.is_private and not query.on_grid for",
        "if any(not query.label for",
        "the noise of older versions, and sums by record where the unit is a person",
        f"{VAULT}::test_noise_in_doubles_is_for_runs_of_older_versions",
    ),
    one_hot(
        "process-one-hot-raises",
        "(y[:, None] == torch.arange(self.classes, device=y.device)).to(x.dtype)",
        "torch.nn.functional.one_hot(y, self.classes).to(x.dtype)",
        "a failure tells that a label is there",
        f"{VAULT}::test_a_map_for_fewer_classes_tells_nothing_about_labels",
    ),
    # What is told
    server(
        "process-server-tells-why",
        "            return Failed(code)\n",
        "            return Failed(str(error))\n",
        "an error quotes a record",
        f"{VAULT}::test_whatever_a_reader_says_the_client_hears_one_sentence",
        f"{VAULT}::test_no_text_of_an_error_crosses_the_socket",
    ),
    server(
        "process-server-logs-records",
        "    if isinstance(error, LimbeckError | Malformed):\n",
        "    if isinstance(error, Exception):\n",
        "the log quotes a record",
        f"{VAULT}::test_no_text_of_an_error_crosses_the_socket",
    ),
    failures(
        "process-failures-sentence",
        "    return kind(sentence)\n",
        "    return kind(sentence + code)\n",
        "a text of the other side is shown",
        f"{VAULT}::test_no_text_of_an_error_crosses_the_socket",
    ),
    records(
        "process-records-kinds-of-failure",
        'raise DataUnreadable("The records cannot be read.") from None',
        "raise",
        "how the records fail is told",
        f"{VAULT}::test_whatever_a_reader_says_the_client_hears_one_sentence",
    ),
    client(
        "process-client-any-generator",
        "return self.generator == SECURE",
        "return True",
        "a seed is shared",
        f"{VAULT}::test_the_seed_and_the_streams_stay_with_the_vault",
    ),
    # Who may connect
    door(
        "process-door-open-first",
        "            os.chmod(path, door.mode)\n            listener.listen(64)\n",
        "            listener.listen(64)\n            os.chmod(path, door.mode)\n",
        "others connect before it is shut",
        f"{VAULT}::test_the_socket_has_its_mode_before_anybody_can_connect",
    ),
    door(
        "process-door-any-mask",
        "os.umask(0o177)",
        "os.umask(0)",
        "made for everybody",
        f"{VAULT}::test_the_socket_has_its_mode_before_anybody_can_connect",
    ),
    door(
        "process-door-live-replaced",
        '    raise RunConflict(f"A server answers at',
        '    path.unlink()\n    return\n    raise RunConflict(f"A server answers at',
        "two servers at one place",
        f"{VAULT}::test_a_dead_servers_socket_is_replaced_and_a_live_one_refused",
    ),
    joint(
        "process-joint-no-budget",
        "if not ledger.has_budget(schema.name):",
        "if not schema.name:",
        "whoever comes first sets the budget",
        f"{RUNS}::test_a_data_set_without_a_budget_is_not_served",
    ),
    # What is signed
    booked(
        "process-booked-any-plan",
        "vault.take_up(grant.id, grant.plan, booked=True)",
        "vault.describe()",
        "a cheaper plan",
        SIGNING,
    ),
    booked(
        "process-booked-any-words",
        "canonical(stated) != canonical(expected.to_dict())",
        "not canonical(stated)",
        "whatever is stated is signed",
        SIGNING,
    ),
    booked(
        "process-booked-closed",
        'if vault.state(grant.id) != "open":',
        "if not grant.id:",
        "a grant that is over",
        SIGNING,
    ),
    booked("process-booked-any-file", "    check_files(certificate)\n", "", "files outside of the release", SIGNING),
    booked(
        "process-booked-any-time",
        "    check_created(certificate.created)\n",
        "",
        "a certificate of another day",
        SIGNING,
    ),
)
