"""All mutations. A new wall deserves a few that would tear it down."""

from __future__ import annotations

from accounting_mutants import ACCOUNTING
from choice_mutants import CHOICES
from federated_mutants import FEDERATED
from ledger_mutants import LEDGER
from mutation import Mutation
from person_mutants import PERSONS
from process_mutants import PROCESS
from release_mutants import RELEASE
from sharded_mutants import SHARDED
from stream_mutants import STREAMS
from teacher_mutants import TEACHERS
from tree_mutants import LEDGER_TREE
from vault_mutants import VAULT

MUTATIONS: tuple[Mutation, ...] = (
    *VAULT, *TEACHERS, *LEDGER, *LEDGER_TREE, *ACCOUNTING, *RELEASE, *PERSONS, *PROCESS, *CHOICES, *STREAMS,
    *SHARDED, *FEDERATED,
)  # fmt: skip
