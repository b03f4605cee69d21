"""The parts of a report as plain values for its template: texts, drawings, and which parts there are."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from limbeck.evaluate.reading import finite
from limbeck.privacy.schema import Schema
from limbeck.report import loading, wording
from limbeck.report.charts import Segment, bar, score_bar
from limbeck.report.scores import ScoreTable
from limbeck.report.strips import Strip

Certificate = Mapping[str, Any]
BRIEF_NAME = 3  # class names up to this length stand beside their pictures on a phone, too


def headline(certificate: Certificate, schema: Schema) -> dict[str, Any]:
    """What the release is, and its few most important numbers."""
    return {
        "name": schema.name,
        "is_model": is_model(certificate),
        "warnings": wording.warnings(certificate),
        "subtitle": _subtitle(certificate, schema),
        "tiles": _tiles(certificate),
        "sentence": wording.in_one_sentence(certificate),
        "meter": _meter(certificate),
        "footer": _footer(certificate),
    }


def promises(certificate: Certificate, schema: Schema) -> dict[str, Any]:
    return {
        "promise": wording.promise(certificate),
        "not_promised": [limit.split(". ", 1) for limit in wording.not_promised(certificate, schema)],
        "questions": wording.questions(certificate),
    }


def making(certificate: Certificate, schema: Schema) -> dict[str, Any]:
    """What was asked and spent, with which settings and versions."""
    title, paper = wording.method_words(certificate)
    return {
        "asked": _asked(certificate, schema, title, paper),
        "accountants": _accountants(certificate),
        "queries": wording.query_rows(certificate),
        "settings": wording.setting_rows(certificate),
        "versions": [(str(key), str(value)) for key, value in (certificate.get("versions") or {}).items()],
    }


def loads(certificate: Certificate, schema: Schema, generator: bool) -> dict[str, Any]:
    """How to load it. `generator`: whether the set has one beside it."""
    model = is_model(certificate)
    snippets = loading.model_snippets(schema) if model else loading.set_snippets(schema)
    return {
        "snippets": [*snippets, loading.generator_snippet()] if generator else snippets,
        "scaling": loading.scaling_sentence(schema),
        "parquet": "" if model else loading.parquet_sentence(schema),
    }


def source(png: bytes | None) -> str | None:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii") if png else None


def is_model(certificate: Certificate) -> bool:
    return wording.noun(certificate) == "model"


def _subtitle(certificate: Certificate, schema: Schema) -> str:
    kind = "pictures" if schema.is_image else "table rows"
    if is_model(certificate):
        return f"A classifier that tells {len(schema.classes)} classes of {kind} apart"
    return f"{certificate.get('records', 'A number of')} synthetic {kind} in {len(schema.classes)} classes"


def _tiles(certificate: Certificate) -> list[tuple[str, str, str]]:
    """(value, name, meaning) of the few numbers that a reader looks for first."""
    epsilon = wording.exact(wording.epsilon_of(certificate)) if wording.is_private(certificate) else "∞"
    unit = str(certificate.get("unit", "record"))
    return [
        (epsilon, "epsilon", "how much one record can matter; smaller is more private"),
        (wording.exact(certificate.get("delta")), "delta", "the remainder that epsilon does not cover"),
        (f"one {unit}", "unit", f"neighbours differ by {wording.adjacency_words(certificate)}"),
    ]


def _meter(certificate: Certificate) -> Markup:
    """From a coin toss to certainty: how sure anybody can get about one record, at most."""
    share = wording.guess_share(certificate)
    kind = "alarm" if share >= 1.0 else "own"
    words = f"At most {wording.percent_up(share)}, on a scale from 50 % (a coin toss) to 100 % (certain)."
    return bar([Segment(kind=kind, share=2 * share - 1)], words)


def _asked(certificate: Certificate, schema: Schema, title: str, paper: str) -> list[tuple[str, str]]:
    shape = " × ".join(str(side) for side in schema.shape)
    records = "" if is_model(certificate) else wording.number(certificate.get("records"))
    rows = [
        ("Data set", schema.name),
        ("Private records", f"about {schema.records}, each of {shape} numbers"),
        ("Method", title),
        ("Paper", paper),
        ("Synthetic records", records),
        ("Random generator", str(certificate.get("generator", ""))),
    ]
    return [(key, value) for key, value in rows if value]


def _accountants(certificate: Certificate) -> list[tuple[str, str, bool]]:
    """(accountant, its epsilon, whether it is the one that counts)."""
    accounting = certificate.get("accounting") or {}
    names = {
        "epsilon_pld": "Privacy loss distribution (PLD)",
        "epsilon_rdp": "Rényi (RDP)",
        "epsilon_exact": "Exact Gaussian; nothing was sampled",
    }
    rows, counted = [], False
    for key, name in names.items():
        value = accounting.get(key)
        if value is None:
            continue
        counts = not counted and isinstance(value, (int, float)) and value == accounting.get("epsilon")
        counted = counted or counts
        rows.append((name, wording.exact(value), counts))
    return rows


def grid_words(schema: Schema) -> str:
    images, rows = "Synthetic pictures, one row per class.", "Synthetic rows, class by class, scaled to [-1, 1]."
    return images if schema.is_image else rows


def classes(
    schema: Schema, strips: Sequence[Strip | None], nearest: Sequence[Strip | None], real: Sequence[Strip | None]
) -> list[dict[str, Any]]:
    """Each class with its strips: (what it shows, the strip)."""
    rows = []
    for place, strip in enumerate(strips):
        others = [("nearest real", _at(nearest, place)), ("real", _at(real, place))]
        shown = [("synthetic", strip), *(pair for pair in others if pair[1] is not None)]
        rows.append({"name": schema.classes[place], "strips": shown, "compared": len(shown) > 1})
    return rows


def brief_names(schema: Schema) -> bool:
    return max(map(len, schema.classes)) <= BRIEF_NAME


def _at(strips: Sequence[Strip | None], place: int) -> Strip | None:
    return strips[place] if place < len(strips) else None


def scores(table: ScoreTable) -> dict[str, Any]:
    """A table of scores as texts and bars."""
    rows = [
        {
            "model": row.model,
            "mean": percent(row.mean),
            "std": percent(row.std).removesuffix(" %"),
            "ceiling": percent(row.ceiling).removesuffix(" %"),
            "control": percent(row.control).removesuffix(" %"),
            "runs": row.skipped or ", ".join(f"{run:.2f}" for run in row.runs) or "-",
            "bar": "" if row.mean is None else score_bar(row.mean, row.ceiling, row.control),
        }
        for row in table.rows
    ]
    return {
        "rows": rows,
        "has_ceiling": table.has_ceiling,
        "has_control": table.has_control,
        "classifiers": table.classifiers,
        "majority": None if table.majority is None else percent(table.majority),
        "test": table.test,
        "preset": table.preset,
        "labels": table.labels,
        "repeats": wording.number(table.repeats),
    }


def percent(value: Any) -> str:
    """
    >>> percent(93.712), percent(None), percent(float('nan'))
    ('93.71 %', '-', '-')
    """
    number = finite(value)
    return "-" if number is None else f"{number:.2f} %"


def _footer(certificate: Certificate) -> str:
    created = str(certificate.get("created", "")).replace("T", " ").replace("+00:00", " UTC")
    return f"Made {created} with Limbeck." if created else "Made with Limbeck."
