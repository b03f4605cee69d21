"""What a certificate promises, in plain words. The card and the page say the same, so the sentences stand here once.

Whatever is unclear on a certificate is read against the release: no finite epsilon means no promise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.queries import Choice, ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.privacy.unit import unit_words
from limbeck.release.certificate import Certificate
from limbeck.report.owners import owner_sentences
from limbeck.report.protected import adjacency_words, protected, public_persons, several_limit

NOT_PRIVATE = "NOT PRIVATE"
NOT_RELEASABLE = "NOT RELEASABLE"
# From here on the factor exp(epsilon) says nothing to anybody.
LARGEST_FACTOR = 1e4
WEAK_EPSILON = 10


def noun(certificate: Certificate) -> str:
    """What the release is: "set" or "model"."""
    return "model" if certificate.is_model else "set"


def epsilon_of(certificate: Certificate) -> float:
    """What is stated, where it is a number that could be one; otherwise infinity."""
    return certificate.epsilon if certificate.epsilon >= 0 else math.inf


def is_private(certificate: Certificate) -> bool:
    return certificate.private and math.isfinite(epsilon_of(certificate))


def has_secret_noise(certificate: Certificate) -> bool:
    """False where the noise came from a known seed: whoever knows it can take the noise off again."""
    if "insecure" in certificate.randomness:
        return False
    return certificate.releasable or not is_private(certificate)


def warnings(certificate: Certificate) -> list[tuple[str, str]]:
    """(headline, explanation) of everything that forbids sharing the release."""
    found = []
    if not is_private(certificate):
        found.append(
            (
                NOT_PRIVATE,
                f"This {noun(certificate)} was made without the protection of differential privacy (epsilon: infinity). "
                "It may reveal records it was made from. Do not share it.",
            )
        )
    if not has_secret_noise(certificate):
        found.append(
            (
                NOT_RELEASABLE,
                "The noise came from a known seed, as tests need it, so it can be taken off again. "
                f"The numbers below hold only with secret noise. Do not share this {noun(certificate)}.",
            )
        )
    return found


def number(value: Any, digits: int = 6) -> str:
    """A number as people write it: 1e-5, not 1e-05.

    >>> number(1e-5), number(11.2), number(60000), number("infinity"), number(None)
    ('1e-5', '11.2', '60000', 'infinity', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return _tidy(f"{value:.{digits}g}") if isinstance(value, float) else str(value)


def exact(value: Any) -> str:
    """All digits of an epsilon or a delta: rounding it to fewer could print less than was spent (rule 9)."""
    return _tidy(repr(value)) if isinstance(value, float) else number(value)


def _tidy(text: str) -> str:
    mantissa, e, exponent = text.partition("e")
    mantissa = mantissa.removesuffix(".0")
    return f"{mantissa}e{int(exponent)}" if e else mantissa


def guess_share(certificate: Certificate) -> float:
    """How often somebody who knows all the others guesses right whether one was used, at most; 1 without a promise."""
    if not is_private(certificate) or not has_secret_noise(certificate):
        return 1.0
    return _guess_bound(epsilon_of(certificate), certificate.delta)


def _guess_bound(epsilon: float, delta: float) -> float:
    """Balanced guessing against an (epsilon, delta) mechanism succeeds with probability at most this."""
    return min((1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon)), 1.0)


def in_one_sentence(certificate: Certificate) -> tuple[str, str, str]:
    """The promise for somebody who reads nothing else: what stands before the one figure, the figure, what follows."""
    unit, what = protected(certificate), noun(certificate)
    if guess_share(certificate) >= 1.0:
        return (
            "",
            "Nothing is promised:",
            f" whoever has this {what} may find out whether a given {unit.given} used for it.",
        )
    return (
        f"Somebody who knows {unit.others}, has this {what}, and guesses whether {unit.that_one} used as well, is right ",
        f"at most {percent_up(guess_share(certificate))}",
        " of the time. A coin toss is right half of the time.",
    )


def promise(certificate: Certificate) -> list[str]:
    """The guarantee as paragraphs; for a release without one, the one sentence that says so."""
    if not is_private(certificate):
        return [f"None. This {noun(certificate)} carries no privacy promise of any kind."]
    epsilon, delta, unit = epsilon_of(certificate), certificate.delta, protected(certificate)
    first = (
        f"The way this {noun(certificate)} was made is differentially private with epsilon = {exact(epsilon)} and "
        f"delta = {exact(delta)}, where two data sets count as neighbours if they differ by "
        f"{adjacency_words(certificate)}. The protected unit is {unit_words(certificate.unit)}."
    )
    share = _guess_bound(epsilon, delta)
    second = (
        f"In plain words: adding or leaving out any one {unit.whole} changes the chances of what comes out only so far. "
        f"{_factor_sentence(epsilon, delta)}Somebody who knows everything else and guesses whether one given {unit.given} "
        f"used, where a coin toss is right half of the time, is right at most {percent_up(share)} of the time."
    )
    third = (
        "The promise holds whatever else an attacker knows, now and later. No amount of computing undoes the noise, short of "
        "breaking the cipher that its generator is made of."
    )
    if epsilon > WEAK_EPSILON:
        third = f"An epsilon above {WEAK_EPSILON} is a weak promise. Think twice before you rely on it."
    if not has_secret_noise(certificate):
        return ["Nothing, since the noise is not secret. With secret noise this would hold:", first, second]
    return [first, second, third, *owner_sentences(certificate)]


def _factor_sentence(epsilon: float, delta: float) -> str:
    factor = math.exp(min(epsilon, 700.0))
    if factor > LARGEST_FACTOR:
        return ""
    shown = number(math.ceil(factor * 100) / 100)
    return f"No outcome becomes more than {shown} times as likely by it, up to a remainder of {exact(delta)}. "


def percent_up(share: float) -> str:
    """Per cent with one decimal, rounded up and so against the tool.

    >>> percent_up(0.7310586)
    '73.2 %'
    """
    return f"{min(math.ceil(share * 1000) / 10, 100.0):g} %"


def not_promised(certificate: Certificate, schema: Schema) -> list[str]:
    """The limits of the promise, each a sentence."""
    if not is_private(certificate):
        return []
    sizes = ", the class sizes" if schema.class_sizes is not None else ""
    content = "column names, value ranges and categories" if schema.columns else "record shape and value range"
    classes = ", the class names" if schema.has_label else ""
    return [
        several_limit(certificate),
        "Secrecy of facts about the whole group. What is true of the population can be learned from this "
        f"{noun(certificate)}, as it could be without any one {protected(certificate).noun}.",
        f"Secrecy of what was declared public. That is the name of the data set, {content}{classes}, the "
        f"approximate number of records ({schema.records}){public_persons(schema)}{sizes}.",
        "The same for several releases. Each further release from the same records adds to what is spent; the owner's "
        "ledger keeps count.",
        _quality_limit(certificate),
    ]


def questions(certificate: Certificate) -> list[tuple[str, str]]:
    """(question, answer) of what people ask before they share or use a release."""
    if not is_private(certificate) or not has_secret_noise(certificate):
        return []
    what, unit = noun(certificate), protected(certificate)
    made = "trained on it" if what == "set" else "computed with it"
    return [
        (
            f"Is epsilon = {exact(epsilon_of(certificate))} much or little?",
            f"At 0 nothing at all could be learnt about a single {unit.noun}. Up to about 1 is commonly called strong and above "
            f"{WEAK_EPSILON} weak. No number is right for all data: who decides should weigh what harm a right guess does.",
        ),
        (
            f"What may be done with this {what}?",
            f"As far as the privacy of the records goes, anything. Whatever is {made}, joined with it or published from it "
            "needs no further look at the private records, so it is covered by the same promise and adds nothing to what is "
            "spent.",
        ),
        (
            "Does the promise wear off?",
            f"No. It assumes nothing about what an attacker knows or will know, and it holds even if {unit.rest} "
            "public later.",
        ),
        (
            "Is a record of mine in it?",
            f"No record is copied. The {what} was computed from sums over many records, each limited in how far {unit.moved} "
            f"can move it and then covered with noise. Nothing else left the private data.",
        ),
        (
            "Whose word is this?",
            "The owner's. The certificate lists every question that was asked of the records and is signed with the "
            "owner's key, so it cannot be changed unnoticed. That it was these records, and that what was declared public "
            "is public, is what the owner states by signing.",
        ),
        (
            "Can I check it myself?",
            "Yes, without the private data: limbeck verify computes epsilon again from the listed questions, compares "
            "every file with its hash and checks the signature.",
        ),
    ]


def _quality_limit(certificate: Certificate) -> str:
    if noun(certificate) == "model":
        return "The same accuracy for everybody. Noise hides rare groups first, so the model may do worse on them."
    return "Faithful statistics. The records are made to train models; they describe nobody, and rare groups may be missing."


def method_words(certificate: Certificate) -> tuple[str, str]:
    """(title, paper) of the method, as far as this version knows it."""
    from limbeck.methods import METHODS  # imports torch, which a reader of a card does not need otherwise

    name = certificate.method
    method = METHODS.get(name)
    return (f"{method.title} ({name})", method.paper) if method else (name, "")


def setting_rows(certificate: Certificate) -> list[tuple[str, str]]:
    """The settings as texts; a setting that was left to the tool says so."""
    settings = certificate.settings.items()
    return [(name, "chosen by the tool" if value is None else number(value)) for name, value in settings]


@dataclass(frozen=True, kw_only=True)
class QueryRow:
    """A query as the texts of a table's row."""

    label: str
    map: str
    clip: str
    noise: str
    rate: str
    count: str
    drawn: str


def noise_form(certificate: Certificate) -> str:
    """What the noise is made of, and what that adds to delta."""
    if not is_private(certificate):
        return ""
    if not certificate.sampler_delta:
        return "Gaussian, in double precision"
    chosen = any(isinstance(query, Choice) for query in certificate.queries)
    choices = "; choices by the exponential mechanism, drawn exactly" if chosen else ""
    words = "Gaussian, in whole steps, sampled exactly: adds less than"
    return f"{words} {certificate.sampler_delta * 1.1:.0e} to delta{choices}"


def query_rows(certificate: Certificate) -> list[QueryRow]:
    return [
        QueryRow(
            label=query.label,
            map=query.map,
            clip=number(finite_or_word(query.clip)),
            noise=number(query.noise_multiplier),
            rate=_rates(query.rate) if isinstance(query, ClippedSum) else "-",
            count=number(query.count),
            drawn=number(certificate.drawn.get(query.label, 0)),
        )
        for query in certificate.queries
    ]


def _rates(rates: tuple[float, ...]) -> str:
    """One rate, or the range that the rates of the classes lie in."""
    low, high = number(float(min(rates)), 4), number(float(max(rates)), 4)
    return low if low == high else f"{low} to {high}"
