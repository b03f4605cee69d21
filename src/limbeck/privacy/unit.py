"""The unit of privacy: what neighbouring data sets differ by. One record, or one person with all of their records.

Who a record is about stands in a column, an array or a folder, and the schema's `unit` names it. The name is public; what stands
there never is.
"""

from __future__ import annotations

from collections.abc import Collection

from limbeck.errors import BadInput
from limbeck.privacy.entries import is_whole, require, shown

ADD_REMOVE = "add_remove"
UNIT_RECORD = "record"
LONGEST_UNIT = 200


def require_unit(
    unit: str, units: int | None, unit_records: int | None, records: int, taken: Collection[str], label: str
) -> None:
    """The entries about the unit fit each other and the rest of a schema.

    Guarantee: with a person as the unit, `units` is a whole number, so the limit on delta that is taken from it holds; and who a
    record is about is neither a column of it nor its label.
    """
    require("unit", unit, isinstance(unit, str), "a text")
    if unit == UNIT_RECORD:
        for entry, value in (("units", units), ("unit_records", unit_records)):
            if value is not None:
                raise BadInput(
                    f"{entry}={shown(value)} is for persons, but the unit is '{UNIT_RECORD}'. Set unit to the column, array or "
                    f"folder that says who a record is about, or leave {entry} out."
                )
        return
    if unit != unit.strip() or not unit or not unit.isprintable() or len(unit) > LONGEST_UNIT:
        raise BadInput(
            f"unit must be '{UNIT_RECORD}' or a printable name of at most {LONGEST_UNIT} characters without space around it, "
            f"got {shown(unit)}."
        )
    if unit in taken or unit == label:
        what = "the label" if unit == label else "listed as a column"
        raise BadInput(
            f"The unit '{unit}' is also {what}. Who a record is about is no part of a record; take it out there."
        )
    if not is_whole(units) or not 1 <= units <= records:  # type: ignore[operator]
        raise BadInput(
            f"With the unit '{unit}' a schema needs units, about how many persons there are: a whole number from 1 to the "
            f"{records} of records, got {shown(units)}."
        )
    if unit_records is not None and not (is_whole(unit_records) and 1 <= unit_records <= records):
        raise BadInput(
            f"unit_records must be a whole number from 1 to the {records} of records, got {shown(unit_records)}; leave it out "
            "for no limit."
        )


def unit_words(unit: str) -> str:
    """The unit in a sentence about neighbours.

    >>> unit_words("record"), unit_words("patient_id")
    ('one record', 'one person (patient_id)')
    """
    return "one record" if unit == UNIT_RECORD else f"one person ({unit})"


def adjacency_and_unit(adjacency: str, unit: str) -> str:
    """What every printed epsilon is about. A record, the unit of all earlier versions, goes without saying.

    >>> adjacency_and_unit("add_remove", "record"), adjacency_and_unit("add_remove", "patient_id")
    ('add_remove', 'add_remove of one person (patient_id)')
    """
    return adjacency if unit == UNIT_RECORD else f"{adjacency} of {unit_words(unit)}"


def stated_unit(unit: str) -> str | None:
    """The unit as results state it: only where it is no record, which is what the absence meant in earlier versions."""
    return None if unit == UNIT_RECORD else unit
