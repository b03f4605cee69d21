"""The parts of a report as plain values for its template: texts, drawings, and which parts there are."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from limbeck.evaluate.reading import finite
from limbeck.evaluate.target_score import TargetScore
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import Certificate
from limbeck.release.working_size import working_shape
from limbeck.report import brief, loading, wording
from limbeck.report.charts import Segment, bar, score_bar
from limbeck.report.protected import adjacency_words, protected, query_note
from limbeck.report.scores import ScoreRow, ScoreTable
from limbeck.report.strips import Strip

BRIEF_NAME = 3  # class names up to this length stand beside their pictures on a phone, too


@dataclass(frozen=True, kw_only=True)
class Headline:
    """What the release is, and its few most important numbers.

    warnings   (headline, explanation) of what forbids sharing it
    tiles      (value, name, meaning) of the numbers that a reader looks for first
    sentence   the promise: what stands before the one figure, the figure, what follows
    """

    name: str
    is_model: bool
    warnings: list[tuple[str, str]]
    subtitle: str
    tiles: list[tuple[str, str, str]]
    sentence: tuple[str, str, str]
    meter: Markup
    footer: str


@dataclass(frozen=True, kw_only=True)
class Promises:
    """Paragraphs; limits, each split after its first sentence; (question, answer)."""

    paragraphs: list[str]
    limits: list[list[str]]
    questions: list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Making:
    """What was asked and spent, with which settings and versions; pairs are (name, value)."""

    asked: list[tuple[str, str]]
    accountants: list[tuple[str, str, bool]]  # the third: whether it is the one that counts
    queries: list[wording.QueryRow]
    query_note: str
    settings: list[tuple[str, str]]
    versions: list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class HowToLoad:
    snippets: list[loading.Snippet]
    scaling: str
    size: str
    parquet: str


@dataclass(frozen=True, kw_only=True)
class ClassRow:
    """A class with its strips: (what it shows, the strip). `compared`: whether real records stand beside them."""

    name: str
    strips: list[tuple[str, Strip | None]]
    compared: bool


@dataclass(frozen=True, kw_only=True)
class ScoreRowView:
    model: str
    mean: str
    std: str
    ceiling: str
    control: str
    area: str
    f1: str
    runs: str
    bar: Markup | str


@dataclass(frozen=True, kw_only=True)
class ScoresView:
    """A table of scores as texts and bars."""

    rows: list[ScoreRowView]
    has_ceiling: bool
    has_control: bool
    has_area: bool
    has_f1: bool
    decoded: bool
    size: int | None
    libraries: list[str]
    classifiers: tuple[int, float] | None
    majority: str | None
    test: str
    preset: str
    labels: str
    repeats: str
    targets: list[tuple[str, ...]]


def headline(certificate: Certificate, schema: Schema) -> Headline:
    return Headline(
        name=schema.name,
        is_model=certificate.is_model,
        warnings=wording.warnings(certificate),
        subtitle=_subtitle(certificate, schema),
        tiles=_tiles(certificate),
        sentence=wording.in_one_sentence(certificate),
        meter=_meter(certificate),
        footer=_footer(certificate),
    )


def promises(certificate: Certificate, schema: Schema) -> Promises:
    return Promises(
        paragraphs=wording.promise(certificate),
        limits=[limit.split(". ", 1) for limit in wording.not_promised(certificate, schema)],
        questions=wording.questions(certificate),
    )


def making(certificate: Certificate, schema: Schema) -> Making:
    return Making(
        asked=_asked(certificate, schema),
        accountants=_accountants(certificate),
        queries=wording.query_rows(certificate),
        query_note=query_note(certificate),
        settings=wording.setting_rows(certificate),
        versions=list(certificate.versions.items()),
    )


def how_to_load(certificate: Certificate, schema: Schema, generator: bool) -> HowToLoad:
    """`generator`: whether the set has one beside it."""
    model = certificate.is_model
    made_at = None if model else working_shape(certificate)
    snippets = loading.model_snippets(schema) if model else loading.set_snippets(schema, made_at)
    return HowToLoad(
        snippets=[*snippets, loading.generator_snippet()] if generator else snippets,
        scaling=loading.scaling_sentence(schema),
        size=loading.size_sentence(made_at),
        parquet="" if model else loading.parquet_sentence(schema),
    )


def source(png: bytes | None) -> str | None:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii") if png else None


def _subtitle(certificate: Certificate, schema: Schema) -> str:
    kind = "pictures" if schema.is_image else "table rows"
    if certificate.is_model:
        return f"A classifier that tells {len(schema.classes)} classes of {kind} apart"
    classes = f" in {len(schema.classes)} classes" if schema.has_label else ""
    return f"{certificate.records} synthetic {kind}{classes}"


def _tiles(certificate: Certificate) -> list[tuple[str, str, str]]:
    epsilon, exactly = brief.brief_epsilon(certificate)
    meaning = f"how much one {protected(certificate).noun} can matter; smaller is more private"
    return [
        (epsilon, "epsilon", f"exactly {exactly}: {meaning}" if exactly else meaning),
        (wording.exact(certificate.delta), "delta", "the remainder that epsilon does not cover"),
        (f"one {protected(certificate).noun}", "unit", f"neighbours differ by {adjacency_words(certificate)}"),
    ]


def _meter(certificate: Certificate) -> Markup:
    """From a coin toss to certainty: how sure anybody can get about one unit, at most."""
    share = wording.guess_share(certificate)
    kind = "alarm" if share >= 1.0 else "own"
    words = f"At most {wording.percent_up(share)}, on a scale from 50 % (a coin toss) to 100 % (certain)."
    return bar([Segment(kind=kind, share=2 * share - 1)], words)


def _asked(certificate: Certificate, schema: Schema) -> list[tuple[str, str]]:
    title, paper = wording.method_words(certificate)
    shape = " × ".join(str(side) for side in schema.shape)
    persons = f" of about {schema.units} persons ({schema.unit})" if schema.by_person else ""
    rows = [
        ("Data set", schema.name),
        ("Private records", f"about {schema.records}{persons}, each of {shape} numbers"),
        ("Method", title),
        ("Paper", paper),
        ("Synthetic records", "" if certificate.is_model else wording.number(certificate.records)),
        ("Random generator", certificate.randomness),
        ("Noise", wording.noise_form(certificate)),
    ]
    return [(key, value) for key, value in rows if value]


def _accountants(certificate: Certificate) -> list[tuple[str, str, bool]]:
    """(accountant, its epsilon, whether it is the one that counts)."""
    price = certificate.accounting
    found = {
        "Privacy loss distribution (PLD)": price.epsilon_pld,
        "Rényi (RDP)": price.epsilon_rdp,
        "Exact Gaussian; nothing was sampled": price.epsilon_exact,
    }
    rows, counted = [], False
    for name, epsilon in found.items():
        if epsilon is None:
            continue
        counts = not counted and math.isfinite(epsilon) and epsilon == price.epsilon
        counted = counted or counts
        rows.append((name, wording.exact(finite_or_word(epsilon)), counts))
    return rows


def classes(
    schema: Schema, strips: Sequence[Strip | None], nearest: Sequence[Strip | None], real: Sequence[Strip | None]
) -> list[ClassRow]:
    rows = []
    for index, strip in enumerate(strips):
        others = [("nearest real", _at(nearest, index)), ("real", _at(real, index))]
        shown = [("synthetic", strip), *(pair for pair in others if pair[1] is not None)]
        rows.append(ClassRow(name=schema.classes[index], strips=shown, compared=len(shown) > 1))
    return rows


def brief_names(schema: Schema) -> bool:
    return max(map(len, schema.classes)) <= BRIEF_NAME


def _at(strips: Sequence[Strip | None], index: int) -> Strip | None:
    return strips[index] if index < len(strips) else None


def scores(table: ScoreTable) -> ScoresView:
    return ScoresView(
        rows=[_score_row(row) for row in table.rows],
        has_ceiling=table.has_ceiling,
        has_control=table.has_control,
        has_area=table.has_area,
        has_f1=table.has_f1,
        decoded=table.decoded,
        size=table.size,
        libraries=[f"{row.model} by {row.library}" for row in table.rows if row.library],
        classifiers=table.classifiers,
        majority=None if table.majority is None else percent(table.majority),
        test=table.test,
        preset=table.preset,
        labels=table.labels,
        repeats=wording.number(table.repeats),
        targets=[_target_row(each) for each in table.targets],
    )


def _target_row(each: TargetScore) -> tuple[str, ...]:
    """(target, model, R2, mean absolute error, accuracy, what real rows reach)."""
    means = [None if found is None else found.mean for found in (each.r2, each.mae, each.accuracy)]
    cells = [wording.number(value, 4) for value in (*means, each.ceiling)]
    return (each.target, each.skipped or each.model, *cells)


def _score_row(row: ScoreRow) -> ScoreRowView:
    return ScoreRowView(
        model=row.model,
        mean=percent(row.mean),
        std=percent(row.std).removesuffix(" %"),
        ceiling=percent(row.ceiling).removesuffix(" %"),
        control=percent(row.control).removesuffix(" %"),
        area=percent(row.area).removesuffix(" %"),
        f1=", ".join(f"{name} {percent(value).removesuffix(' %')}" for name, value in row.f1) or "-",
        runs=row.skipped or ", ".join(f"{run:.2f}" for run in row.runs) or "-",
        bar="" if row.mean is None else score_bar(row.mean, row.ceiling, row.control),
    )


def percent(value: Any) -> str:
    """
    >>> percent(93.712), percent(None), percent(float('nan'))
    ('93.71 %', '-', '-')
    """
    number = finite(value)
    return "-" if number is None else f"{number:.2f} %"


def _footer(certificate: Certificate) -> str:
    created = brief.moment(certificate.created)
    return f"Made {created} with Limbeck." if created else "Made with Limbeck."
