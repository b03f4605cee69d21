"""The top of a report: who releases, when, by which key, for how much; short words with the exact ones beside them."""

from __future__ import annotations

import math

from limbeck.privacy.schema import Schema
from limbeck.release.certificate import Certificate
from limbeck.release.imprint import Imprint
from limbeck.report.protected import protected
from limbeck.report.wording import epsilon_of, exact, is_private, number

# An epsilon with at most so many letters is its own short form.
SHORT = 5


def brief_epsilon(certificate: Certificate) -> tuple[str, str]:
    """The epsilon as it is spoken of, and all of its digits where these are more: "<= 1" is 0.9998, never 1.0002 (rule 9)."""
    if not is_private(certificate):
        return "∞", ""
    epsilon = epsilon_of(certificate)
    full = exact(epsilon)
    if len(full) <= SHORT:
        return full, ""
    places = max(0, 1 - math.floor(math.log10(epsilon))) if epsilon else 0
    up = math.ceil(round(epsilon * 10**places, 9)) / 10**places
    brief = up if up >= epsilon else up + 10**-places
    return f"≤ {number(round(brief, places))}", full


def fingerprint(key: str) -> str:
    """A public key as people compare it: its first half, in fours.

    >>> fingerprint("0123456789abcdef" * 4)
    '0123 4567 89ab cdef 0123 4567 89ab cdef'
    """
    return " ".join(key[place : place + 4] for place in range(0, 32, 4))


def imprint_rows(certificate: Certificate, imprint: Imprint | None) -> list[tuple[str, str]]:
    """Who releases it, when, and by which key it was signed: the first things that a reader of a document looks for."""
    rows = [] if imprint is None else imprint.rows
    key = None if certificate.signature is None else certificate.signature.public_key
    made = [("Made", moment(certificate.created))] if certificate.created else []
    return [*rows, *made, *([] if key is None else [("Signed by the key", fingerprint(key))])]


def why_noisy(certificate: Certificate, schema: Schema) -> str:
    """For whoever looks at synthetic pictures for the first time; empty where there are none."""
    if not schema.is_image or certificate.is_model:
        return ""
    noun = protected(certificate).noun
    return (
        "They may look like noise, or like a class only from afar. They were not drawn to be looked at: each is made so that all "
        f"together teach a model what the records have in common. The less any one {noun} may matter, the less detail is left. "
        "Whether they are useful is what the accuracy says, not the eye."
    )


def grid_words(schema: Schema) -> str:
    if schema.is_image:
        return "Synthetic pictures, one row per class."
    return f"Synthetic rows, {'class by class, ' if schema.has_label else ''}scaled to [-1, 1]."


def moment(created: str) -> str:
    return created.replace("T", " ").replace("+00:00", " UTC")
