"""Who is protected, in words: a person where the unit is one, and the very sentences of before where it is a record."""

from __future__ import annotations

import dataclasses

import pytest

from limbeck.privacy.schema import Schema
from limbeck.release.certificate import Certificate
from limbeck.report import views, wording
from limbeck.report.card import data_card
from limbeck.report.protected import adjacency_words, query_note


@pytest.fixture
def patients(gray: Schema) -> Schema:
    return dataclasses.replace(gray, unit="patient_id", units=70, unit_records=4)


@pytest.fixture
def stated(certificate: Certificate, patients: Schema) -> Certificate:
    return dataclasses.replace(certificate, unit="patient_id", public_assumptions=patients)


def all_words(certificate: Certificate, schema: Schema) -> str:
    said = [*wording.promise(certificate), *wording.in_one_sentence(certificate), query_note(certificate)]
    said += [*wording.not_promised(certificate, schema), *(" ".join(pair) for pair in wording.questions(certificate))]
    return "\n".join(said)


def test_a_person_is_promised_what_a_record_was(stated: Certificate, patients: Schema) -> None:
    said = all_words(stated, patients)
    for words in (
        "adding or removing all records of one person (patient_id)",
        "The protected unit is one person (patient_id).",
        "adding or leaving out any one person, with all of their records,",
        "guesses whether one given person's records were used",
        "Somebody who knows all records of every person but one",
        "a person under several names. Persons are told apart by 'patient_id' alone",
        "number of records (600) and of persons (70), the most records of one person that are used (4)",
        "learnt about a single person",
        "how far all records of one person together can move it",
        "every record of everybody else becomes public",
    ):
        assert words in said, words
    for words in ("The unit is one record", "any one record", "one given record", "every record but one"):
        assert words not in said, words


def test_the_sentences_about_records_are_those_of_before(certificate: Certificate, gray: Schema) -> None:
    said = all_words(certificate, gray)
    for words in (
        "differ by adding or removing one record. The protected unit is one record.",
        "In plain words: adding or leaving out any one record changes the chances",
        "guesses whether one given record was used, where a coin toss",
        "Somebody who knows every record but one, has this set, and guesses whether that one was used as well, is right ",
        "The same for a person with several records. The unit is one record: for k records epsilon counts k times",
        "number of records (600).",
        "limited in how far one record can move it and then covered with noise",
        "even if every other record becomes public later",
        "Clip bounds what one record adds to a sum; noise / clip is the noise multiplier",
    ):
        assert words in said, words
    assert "person (" not in said


@pytest.mark.parametrize(
    ("most", "words"), [(None, "add no more than that"), (1, "no more than that"), (4, "at most 2 times")]
)
def test_the_note_says_how_far_a_person_reaches(stated: Certificate, most: int | None, words: str) -> None:
    schema = dataclasses.replace(stated.public_assumptions, unit_records=most)
    note = query_note(dataclasses.replace(stated, public_assumptions=schema))
    assert words in note and "chance of a person to be in the sample" in note


def test_nothing_is_promised_to_a_person_either(stated: Certificate, not_private: Certificate) -> None:
    bare = dataclasses.replace(not_private, unit="patient_id")
    assert "whether a given person's records were used" in "".join(wording.in_one_sentence(bare))


def test_the_page_names_the_person(stated: Certificate, patients: Schema) -> None:
    tiles = views._tiles(stated)
    assert ("one person", "unit", f"neighbours differ by {adjacency_words(stated)}") in tiles
    asked = dict(views.making(stated, patients).asked)
    assert "about 600 of about 70 persons (patient_id)" in asked["Private records"]


def test_no_name_of_a_unit_breaks_out_of_the_card(certificate: Certificate, gray: Schema) -> None:
    name = "<script>*x*|[a](b)`"
    schema = dataclasses.replace(gray, unit=name, units=7)
    card = data_card(dataclasses.replace(certificate, unit=name, public_assumptions=schema), schema, [5, 5])
    body = card.split("---\n", 2)[2]
    assert "<script>" not in body and "[a](b)" not in body and "&lt;script&gt;" in body
