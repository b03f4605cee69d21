"""Runs of one method on the digits, whole or broken off on the way and taken up again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import working as work
from limbeck.progress import Silent
from limbeck.vault.ledger import Ledger


def make(method: str, settings: dict[str, Any], out: Path, ledger: Path, **request: Any) -> Path:
    ledger.parent.mkdir(exist_ok=True)
    asked = work.asked(ledger=str(ledger), insecure_seed=7, **request)
    plan, source = work.plan_for(asked.data, method, settings, None, 1e-5)
    return work.condense(asked, plan, source, out, Silent(), checkpoint_seconds=0.0).release


def broken_off_and_resumed(
    method: str, settings: dict[str, Any], out: Path, ledger: Path, owner: type, name: str, call: int
) -> Path:
    """The run stops before the `call`-th call of owner.name, and is then taken up by what is on the disk."""
    original, calls = getattr(owner, name), [0]

    def breaking(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return original(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, breaking)
        with pytest.raises(KeyboardInterrupt):
            make(method, settings, out, ledger)
    assert calls[0] == call
    return work.resume(out, Silent()).release


def assert_paid_once(ledger: Path) -> None:
    with Ledger.open(ledger) as book:
        assert [booking.state for account in book.accounts() for booking in account.bookings] == ["finished"]
