"""Who releases, why and under which licence: the owner's own words, kept beside the ledger, stated in every release.

All of it is optional, and all of it becomes public with the next release. Nothing of it is read off records.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbeck.errors import BadInput, LedgerFault
from limbeck.files import as_json, write_atomic
from limbeck.release.signature import KeyFile, Signer

NAME = "imprint.json"
LONGEST = 500
ENTRIES = ("name", "contact", "purpose", "licence")


@dataclass(frozen=True, kw_only=True)
class Imprint:
    """name: of who releases. contact: where to ask. purpose: what the release is for. licence: under which it may be used.

    >>> Imprint(name="City Hospital", licence="CC-BY-4.0").rows
    [('Released by', 'City Hospital'), ('Licence', 'CC-BY-4.0')]
    """

    name: str = ""
    contact: str = ""
    purpose: str = ""
    licence: str = ""

    def __post_init__(self) -> None:
        for entry in ENTRIES:
            value = getattr(self, entry)
            if not isinstance(value, str) or len(value) > LONGEST or not (value.isprintable() or not value):
                raise BadInput(f"The owner's {entry} must be one line of at most {LONGEST} printable letters.")

    @property
    def rows(self) -> list[tuple[str, str]]:
        """(name, value) of what is said."""
        words = ("Released by", "Contact", "Purpose", "Licence")
        return [(word, value) for word, entry in zip(words, ENTRIES, strict=True) if (value := getattr(self, entry))]

    def to_dict(self) -> dict[str, str]:
        return dataclasses.asdict(self)

    @staticmethod
    def from_dict(values: Any) -> Imprint:
        """Takes the known entries; a file of a later version may have more."""
        if not isinstance(values, dict):
            raise BadInput("The owner's words must be a table of entries.")
        return Imprint(**{entry: values.get(entry, "") for entry in ENTRIES})


def path_beside(ledger: Path) -> Path:
    """Where it is kept: beside the ledger and the key, because the owner of these is who it is about."""
    return ledger.with_name(NAME)


def read_imprint(path: Path) -> Imprint | None:
    """None where nobody has said anything yet."""
    try:
        return Imprint.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError, BadInput):
        raise LedgerFault(
            f"{path}, which holds the owner's name, contact, purpose and licence, cannot be read. Correct it, or take it away.",
            "limbeck owner set --name NAME",
        ) from None


def write_imprint(path: Path, imprint: Imprint) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, as_json(imprint.to_dict()))


def imprint_of(signer: Signer) -> Imprint | None:
    """What the holder of a key in a file of this user has said; a signer elsewhere has said nothing here."""
    found = read_imprint(signer.path.with_name(NAME)) if isinstance(signer, KeyFile) else None
    return found if found is not None and found.rows else None


def imprint_in(release: Path) -> Imprint | None:
    """What a release states. It is hashed on the certificate like every file of it, so `verify` covers it."""
    try:
        return Imprint.from_dict(json.loads((release / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError, BadInput):
        return None
