"""Who a certificate protects, in the words that the sentences about it need: a record, or a person with all of their records."""

from __future__ import annotations

import math
from dataclasses import dataclass

from limbeck.privacy.schema import ADD_REMOVE, Schema
from limbeck.privacy.unit import UNIT_RECORD, unit_words
from limbeck.release.certificate import Certificate


@dataclass(frozen=True, kw_only=True)
class Protected:
    """Pieces of sentences.

    noun      "record" or "person"
    whole     what is added or left out
    others    what an attacker is taken to know
    rest      all but the one, becoming public
    that_one  the one that is guessed about, after "whether"
    given     any one that is guessed about, after "whether one given"
    moved     what a sum is limited for
    """

    noun: str
    whole: str
    others: str
    rest: str
    that_one: str
    given: str
    moved: str


RECORD = Protected(
    noun="record",
    whole="record",
    others="every record but one",
    rest="every other record becomes",
    that_one="that one was",
    given="record was",
    moved="one record",
)
PERSON = Protected(
    noun="person",
    whole="person, with all of their records,",
    others="all records of every person but one",
    rest="every record of everybody else becomes",
    that_one="those of that person were",
    given="person's records were",
    moved="all records of one person together",
)


def protected(certificate: Certificate) -> Protected:
    return RECORD if certificate.unit == UNIT_RECORD else PERSON


def adjacency_words(certificate: Certificate) -> str:
    one = unit_words(certificate.unit)
    neighbours = one if certificate.unit == UNIT_RECORD else f"all records of {one}"
    return {ADD_REMOVE: f"adding or removing {neighbours}"}.get(certificate.adjacency, certificate.adjacency)


def several_limit(certificate: Certificate) -> str:
    """What is not promised to somebody who is more than one unit."""
    if certificate.unit == UNIT_RECORD:
        return (
            "The same for a person with several records. The unit is one record: for k records epsilon counts k times, and "
            "delta grows faster still."
        )
    return (
        f"The same for a person under several names. Persons are told apart by {certificate.unit!r} alone: for k of its values "
        "that are one person epsilon counts k times, and delta grows faster still."
    )


def public_persons(schema: Schema) -> str:
    """What else is declared public where the unit is a person."""
    if not schema.by_person:
        return ""
    cap = (
        "" if schema.unit_records is None else f", the most records of one person that are used ({schema.unit_records})"
    )
    return f" and of persons ({schema.units}){cap}"


def query_note(certificate: Certificate) -> str:
    """What the columns of the table of queries mean."""
    digits = "here with six digits and in the certificate with all"
    if certificate.unit == UNIT_RECORD:
        return (
            f"Clip bounds what one record adds to a sum; noise / clip is the noise multiplier, {digits}; rate is the chance of a "
            "record to be in the sample."
        )
    most = certificate.public_assumptions.unit_records
    bound = "no more than that" if most in (None, 1) else f"at most {math.sqrt(most or 1):.4g} times that"
    used = "" if most is None else f", of which at most {most} are used,"
    return (
        f"Clip bounds what one record adds to a sum; all records of one person{used} add {bound} together, and the noise "
        f"multiplier under noise / clip, {digits}, is in units of this; rate is the chance of a person to be in the sample."
    )
