"""Where a ledger is: a file, or tables on a PostgreSQL server that several machines share.

Whatever names a ledger is a path, also on the command line and in run folders. A path drops one of the two slashes of
`postgresql://`; here it gets it back.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from urllib.parse import unquote

from limbeck.errors import BadInput

_SERVER = re.compile(r"postgres(?:ql)?:/(?P<rest>.*)", re.DOTALL)
_IN_USER = re.compile(r"//[^/@]*:[^/@]*@")
_IN_SETTING = re.compile(r"[?&](ssl)?password=")  # the server's client reads names of settings encoded, too


def server_url(path: Path) -> str | None:
    """The address of the server; None for a file.

    >>> server_url(Path("postgresql://books@db.example/limbeck?sslmode=verify-full"))
    'postgresql://books@db.example/limbeck?sslmode=verify-full'
    >>> server_url(Path("ledger.sqlite")) is None
    True
    """
    found = _SERVER.fullmatch(str(path))
    if found is None:
        return None
    url = f"postgresql://{found['rest'].lstrip('/')}"
    if _IN_USER.search(url) or _IN_SETTING.search(unquote(url)):
        # Addresses stand in run folders, logs and errors.
        raise BadInput(
            "The address of a ledger's server must hold no password. Put it into a password file (~/.pgpass, PGPASSFILE) or "
            "into PGPASSWORD, and give the address without it."
        )
    return url


def shown(path: Path) -> str:
    """The address as a person writes it."""
    return server_url(path) or str(path)


def absolute(path: Path) -> Path:
    """Of a file its full path. An address on a server means the same everywhere."""
    return path if server_url(path) else path.absolute()


def resolved(path: Path) -> Path:
    return path if server_url(path) else path.resolve()


def may_exist(path: Path) -> bool:
    """Whether opening it to read makes sense: there is such a file, or a server to be asked."""
    return server_url(path) is not None or path.exists()


def default_path() -> Path:
    """LIMBECK_LEDGER if set, else limbeck/ledger.sqlite in the user's data folder."""
    chosen = os.environ.get("LIMBECK_LEDGER")
    return Path(os.path.expanduser(chosen)) if chosen else path_in_data_folder()


def path_in_data_folder() -> Path:
    return _data_folder() / "limbeck" / "ledger.sqlite"


def _data_folder() -> Path:
    data = os.environ.get("XDG_DATA_HOME", "")
    # The XDG rules say that a relative folder is to be ignored.
    return Path(data) if os.path.isabs(data) else Path(os.path.expanduser("~/.local/share"))


def home(path: Path) -> Path:
    """What signing key and teachers lie beside: the file, or what stands for a server's ledger on this machine."""
    url = server_url(path)
    return path if url is None else home_of(url)


def home_of(url: str) -> Path:
    """What stands for a server's ledger on this machine: signing key and teachers never leave it."""
    digest = hashlib.sha256(url.encode()).hexdigest()[:16]
    return _data_folder() / "limbeck" / "servers" / digest / "ledger"
