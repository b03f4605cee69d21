"""A certificate as it stands in its file, and how it is read.

The signature is over the JSON object that stands there (article 5 of the certificate format), so that object is kept until the
signature is checked; everybody else gets a `Certificate`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from limbeck.errors import LimbeckError, NotAuthentic
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import FORMAT, NAME, Certificate, well_formed
from limbeck.release.destination import is_unfinished, resume_command
from limbeck.release.federated import core_digest
from limbeck.release.signature import check_signature


@dataclass(frozen=True)
class Statement:
    """A certificate as it stands in its file: a JSON object of this format, of which nothing is understood yet.

    `release` is what messages call it. Two statements are equal if their objects are.
    """

    _values: Mapping[str, Any] = field(repr=False)
    release: Path | None = field(default=None, compare=False)

    def require_signed(self, expected_key: str | None = None) -> None:
        """Only the signature: what a list of many releases has the time for. `verify` checks all of a release.

        Guarantee: it is checked over the object that was read (article 5).
        """
        with well_formed(self.release):
            check_signature(self._values, expected_key)

    def core(self) -> str:
        """The hash that the sites' parts of a federation's certificate name it by, over the object that was read."""
        with well_formed(self.release):
            return core_digest(self._values)

    def certificate(self) -> Certificate:
        return Certificate.from_dict(self._values, self.release)

    @staticmethod
    def parse(content: bytes, path: Path, release: Path | None = None) -> Statement:
        """From the bytes of the file; `path` and `release` are what messages call it."""
        try:
            values = json.loads(content.decode("utf-8"), object_pairs_hook=_without_twins)
        except (ValueError, RecursionError):
            raise NotAuthentic(f"{path} cannot be read as JSON.") from None
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise NotAuthentic(f"{path} is not a certificate of format {FORMAT}.")
        return Statement(values, release)

    @staticmethod
    def read(release: Path) -> Statement:
        """From a release; anything but a JSON object of this format is an error."""
        path = release / NAME
        try:
            content = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            unfinished = is_unfinished(release)
            raise NotAuthentic(
                f"There is no release in {release}: {'its run is unfinished' if unfinished else f'it has no {NAME}'}.",
                resume_command(release) if unfinished else None,
            ) from None
        except OSError:
            raise NotAuthentic(f"{path} cannot be read as JSON.") from None
        return Statement.parse(content, path, release)


def read_certificate(release: Path) -> Certificate:
    """What a release states about itself, believed as it stands. `limbeck verify` checks it."""
    return Statement.read(release).certificate()


def public_schema(release: Path) -> Schema | None:
    """What a release says is public about its data: test records without a schema are read by it. None if it says nothing that
    can be understood; whoever opens the release says why."""
    try:
        return read_certificate(release).public_assumptions
    except LimbeckError:
        return None


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A name that stands twice would show one value to a reader and another one to the signature."""
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a name stands twice")
    return values
