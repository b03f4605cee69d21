"""Composition of plans on a real PostgreSQL server: the tests of the file, a second time."""

from __future__ import annotations

import on_server
import test_ledger_filter

pytestmark = on_server.MARKS
path, server, ledger = on_server.path, on_server.server, test_ledger_filter.ledger
globals().update(on_server.of_both(test_ledger_filter))
