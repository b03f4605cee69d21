"""A certificate is one value with one reader and one writer; its signature is over the file as it was read."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from limbeck.errors import NotAuthentic
from limbeck.files import as_json
from limbeck.privacy.federation import Terms, views
from limbeck.privacy.queries import TeacherVote
from limbeck.release.certificate import FIELDS, MODEL, NAME, Certificate
from limbeck.release.distilled import Distilled
from limbeck.release.federated import Federated
from limbeck.release.joined import Joined
from limbeck.release.signature import Signature
from limbeck.release.statement import Statement, read_certificate
from stated import QUERY, WHOLE, certificate_with, signed

KEPT = sorted((Path(__file__).parents[1] / "kept").rglob(NAME))
SIGNATURE = Signature(algorithm="ed25519", public_key="00" * 32, value="00" * 64)
TERMS = Terms(name="f", sites=("a", "b"), keys=("0" * 64, "1" * 64))
FEDERATED = Federated(terms=TERMS, views=views((QUERY,), 1e-5, TERMS), parts=({"site": "a"},))
DISTILLED = Distilled({"dataset": "a"}, {"per_class": 500})
JOINED = Joined(({"dataset": "a"}, {"dataset": "b"}))
VOTE = TeacherVote(label="votes", map="sign", clip=2.0, noise_multiplier=1.5, teachers=4)


def as_read(certificate: Certificate) -> dict[str, Any]:
    values = json.loads(as_json(certificate.to_dict()))
    assert isinstance(values, dict)
    return values


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"content": MODEL, "records": 0},
        {"signature": SIGNATURE},
        {"federation": FEDERATED},
        {"joined": JOINED},
        {"distilled": DISTILLED},
        {"epsilon": math.inf, "private": False, "releasable": False},
        {"queries": (QUERY, VOTE), "drawn": {"groups": 5, "votes": 0}},
    ],
)
def test_what_is_written_is_read_back(changes: dict[str, Any]) -> None:
    certificate = certificate_with(**changes)
    assert Certificate.from_dict(as_read(certificate)) == certificate


def test_every_field_is_written_and_only_these() -> None:
    assert set(WHOLE.to_dict()) == FIELDS - {
        "content",
        "signature",
        "sampler_delta",
        "federation",
        "joined",
        "distilled",
    }
    more = {"federation": FEDERATED, "joined": JOINED, "distilled": DISTILLED}
    whole = certificate_with(content=MODEL, signature=SIGNATURE, sampler_delta=1e-280, **more)
    assert set(whole.to_dict()) == FIELDS


@pytest.mark.parametrize("path", KEPT, ids=lambda path: "-".join(path.parts[-4:-1]))
def test_certificates_of_earlier_versions_are_written_again_byte_for_byte(path: Path) -> None:
    assert as_json(read_certificate(path.parent).to_dict()) == path.read_bytes()


@pytest.mark.parametrize("name", sorted(FIELDS - {"format", "content", "signature"}))
@pytest.mark.parametrize("value", [None, [], "missing"])
def test_an_entry_of_another_form_is_refused(name: str, value: Any) -> None:
    values = as_read(WHOLE)
    if value == "missing":
        values.pop(name, None)
    else:
        values[name] = value
    if (
        name in ("sampler_delta", "federation", "joined", "distilled") and value == "missing"
    ):  # as before 0.4.0; of one vault, made at once
        return
    if (name, value) == ("queries", []):  # a list of none is a list; that it costs nothing is for verify to say
        return
    with pytest.raises(NotAuthentic, match=r"form|cannot be checked"):
        Certificate.from_dict(values)


def test_an_unknown_entry_or_content_is_refused() -> None:
    with pytest.raises(NotAuthentic, match="does not know: accuracy"):
        Certificate.from_dict({**as_read(WHOLE), "accuracy": 99.0})
    with pytest.raises(NotAuthentic, match="'poem', which this version does not know"):
        Certificate.from_dict({**as_read(WHOLE), "content": "poem"})


def sixty_thousand(values: dict[str, Any]) -> None:
    values["public_assumptions"]["records"] = 6e4


def left_out(values: dict[str, Any]) -> None:
    del values["public_assumptions"]["unconfirmed"]  # an older version did not know the entry


@pytest.mark.parametrize("change", [sixty_thousand, left_out])
def test_the_signature_is_over_the_object_as_it_was_read(change: Callable[[dict[str, Any]], None]) -> None:
    """Written again from its value, the object would be another one, and the signature would not fit it."""
    values = as_read(WHOLE)
    change(values)
    read = Statement.parse(json.dumps(signed(values, Ed25519PrivateKey.generate())).encode(), Path(NAME))
    read.require_signed()
    certificate = read.certificate()
    again = Statement.parse(as_json(certificate.to_dict()), Path(NAME))
    assert again.certificate() == certificate
    with pytest.raises(NotAuthentic, match="changed after it was signed"):
        again.require_signed()


def test_it_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        WHOLE.epsilon = 0.1  # type: ignore[misc]
