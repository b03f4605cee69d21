"""The book that every answer is paid from."""

from limbeck.vault.ledger.accounts import Account, SplitCost
from limbeck.vault.ledger.address import default_path
from limbeck.vault.ledger.book import Ledger
from limbeck.vault.ledger.booking import Wanted
from limbeck.vault.ledger.rows import GrantRow
from limbeck.vault.ledger.splits import Split
from limbeck.vault.ledger.sums import Booking

__all__ = ["Account", "Booking", "GrantRow", "Ledger", "Split", "SplitCost", "Wanted", "default_path"]
