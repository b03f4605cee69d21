"""The report page: one HTML file that needs no network, for the people who decide about a release or use it."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from limbeck.report import wording
from limbeck.schema import Schema


def report_page(
    certificate: Mapping[str, Any], schema: Schema, grid_png: bytes, evaluation: Mapping[str, Any] | None = None
) -> str:
    """The whole page as text. Everything that comes from a schema or a setting is escaped."""
    environment = Environment(
        loader=PackageLoader("limbeck.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    title, paper = wording.method_words(certificate)
    return environment.get_template("report.html").render(
        name=schema.name,
        warnings=wording.warnings(certificate),
        subtitle=_subtitle(certificate, schema),
        tiles=_tiles(certificate),
        asked=_asked(certificate, schema, title, paper),
        accountants=_accountants(certificate),
        promise=wording.promise(certificate),
        not_promised=[limit.split(". ", 1) for limit in wording.not_promised(certificate, schema)],
        grid=base64.b64encode(grid_png).decode("ascii"),
        grid_words=_grid_words(schema),
        accuracy=_accuracy(evaluation) if evaluation else None,
        queries=wording.query_rows(certificate),
        settings=wording.setting_rows(certificate),
        shape=", ".join(str(side) for side in schema.shape),
        is_image=schema.is_image,
        versions=[(str(key), str(value)) for key, value in (certificate.get("versions") or {}).items()],
        footer=_footer(certificate),
    )


def _subtitle(certificate: Mapping[str, Any], schema: Schema) -> str:
    kind = "pictures" if schema.is_image else "table rows"
    return f"{certificate.get('records', 'A number of')} synthetic {kind} in {len(schema.classes)} classes"


def _tiles(certificate: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(value, name, meaning) of the few numbers that a reader looks for first."""
    epsilon = wording.exact(wording.epsilon_of(certificate)) if wording.is_private(certificate) else "∞"
    unit = str(certificate.get("unit", "record"))
    return [
        (epsilon, "epsilon", "how much one record can matter; smaller is more private"),
        (wording.exact(certificate.get("delta")), "delta", "the remainder that epsilon does not cover"),
        (f"one {unit}", "unit", f"neighbours differ by {wording.adjacency_words(certificate)}"),
    ]


def _asked(certificate: Mapping[str, Any], schema: Schema, title: str, paper: str) -> list[tuple[str, str]]:
    shape = " × ".join(str(side) for side in schema.shape)
    rows = [
        ("Data set", schema.name),
        ("Private records", f"about {schema.records}, each of {shape} numbers"),
        ("Method", title),
        ("Paper", paper),
        ("Synthetic records", wording.number(certificate.get("records"))),
        ("Random generator", str(certificate.get("generator", ""))),
    ]
    return [(key, value) for key, value in rows if value]


def _accountants(certificate: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
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


def _grid_words(schema: Schema) -> str:
    images, rows = "Synthetic pictures, one row per class.", "Synthetic rows, class by class, scaled to [-1, 1]."
    return images if schema.is_image else rows


def _accuracy(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    majority = evaluation.get("majority_rate")
    rows = []
    for name, result in (evaluation.get("accuracy") or {}).items():
        mean, runs = result.get("mean"), list(result.get("runs") or [])
        rows.append(
            {
                "model": str(name),
                "mean": percent(mean),
                "std": percent(result.get("std")),
                "runs": _runs(runs),
                "share": round(min(max(mean, 0.0), 100.0), 2) if _finite(mean) else 0,
            }
        )
    return {
        "rows": rows,
        "majority": percent(majority) if _finite(majority) else None,
        "test": str(evaluation.get("test", "unknown")),
        "preset": str(evaluation.get("preset", "unknown")),
        "labels": str(evaluation.get("labels", "hard")),
        "repeats": wording.number(evaluation.get("repeats")),
    }


def _runs(runs: Sequence[Any]) -> str:
    return ", ".join(percent(run).removesuffix(" %") for run in runs) or "-"


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def percent(value: Any) -> str:
    """
    >>> percent(93.712), percent(None)
    ('93.71 %', '-')
    """
    return f"{value:.2f} %" if _finite(value) else "-"


def _footer(certificate: Mapping[str, Any]) -> str:
    created = str(certificate.get("created", "")).replace("T", " ").replace("+00:00", " UTC")
    return f"Made {created} with Limbeck." if created else "Made with Limbeck."
