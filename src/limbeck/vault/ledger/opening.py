"""Opening a ledger by what names it: a file, or the address of a server."""

from __future__ import annotations

from pathlib import Path

from limbeck.vault.ledger.address import server_url
from limbeck.vault.ledger.database import Store
from limbeck.vault.ledger.file import open_file
from limbeck.vault.ledger.file import open_to_read as open_file_to_read
from limbeck.vault.ledger.server import open_server, open_server_to_read


def open_ledger(path: Path, patience: float, create: bool) -> Store:
    url = server_url(path)
    return open_file(path, patience, create) if url is None else open_server(path, url, patience, create)


def open_to_read(path: Path, patience: float) -> Store:
    url = server_url(path)
    return open_file_to_read(path, patience) if url is None else open_server_to_read(path, url, patience)
