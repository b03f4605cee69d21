"""The book that every answer is paid from."""

from limbeck.vault.ledger.book import Ledger
from limbeck.vault.ledger.file import default_path
from limbeck.vault.ledger.rows import GrantRow
from limbeck.vault.ledger.sums import Account, Booking

__all__ = ["Account", "Booking", "GrantRow", "Ledger", "default_path"]
