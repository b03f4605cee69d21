"""Whether a site's records are of the kind that the federation is about."""

from __future__ import annotations

from limbeck.errors import BadInput
from limbeck.privacy.schema import Schema

# What may differ between the sites' own schemas: their names, and how many records of whom they hold.
OWN = ("name", "records", "class_sizes", "units", "unit_records", "augmentation", "unconfirmed")


def require_fitting(schema: Schema, site: str, own: Schema) -> None:
    """Guarantee: returns only if a record is the same thing at this site as in the federation, down to its unit of privacy."""
    ours, theirs = schema.to_dict(), own.to_dict()
    differ = sorted(
        name for name in ours.keys() | theirs.keys() if name not in OWN and ours.get(name) != theirs.get(name)
    )
    if differ:
        raise BadInput(
            f"Site '{site}' has another schema than the federation: {', '.join(differ)} differ. Nothing was booked. All sites "
            "need the same shape, classes, range, columns and unit."
        )
