"""Releases in a notebook: certificate, set and model as small pieces of HTML. Everything that stands in them is escaped."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from limbeck.data.images import encode_png
from limbeck.data.records import Array
from limbeck.data.resizing import MODES
from limbeck.privacy.schema import Schema
from limbeck.privacy.unit import adjacency_and_unit
from limbeck.release import framed

ROWS, CLASSES, COLUMNS, MOST_PIXELS = 5, 10, 10, 400_000
STYLE = "border-collapse: collapse; margin: .3em 0"
CELL = "padding: .15em 1em .15em 0; text-align: left; vertical-align: top"


class Certified(Protocol):
    """What is needed of a certificate, which itself shows by this module."""

    def __getitem__(self, name: str) -> Any: ...

    @property
    def releasable(self) -> bool: ...

    @property
    def private(self) -> bool: ...


class Opened(Protocol):
    """What is needed of a release."""

    @property
    def x(self) -> Array: ...

    @property
    def y(self) -> Array: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def certificate(self) -> Certified: ...


def certificate_html(certificate: Certified) -> str:
    """What a release states, as far as a reader looks for it first."""
    stated = {
        name: certificate[name]
        for name in ("dataset", "method", "epsilon", "delta", "adjacency", "unit", "records", "drawn", "created")
    }
    rows = [
        ("data set", stated["dataset"]),
        ("method", stated["method"]),
        ("epsilon", str(stated["epsilon"])),
        ("delta", f"{stated['delta']:g}"),
        ("neighbours", adjacency_and_unit(stated["adjacency"], stated["unit"])),
        ("records", str(stated["records"] or "a model")),
        ("answers", ", ".join(f"{name} {count}" for name, count in stated["drawn"].items()) or "-"),
        ("made", stated["created"]),
    ]
    return loud_html(certificate) + pairs_html(rows)


def loud_html(certificate: Certified) -> str:
    if certificate.releasable:
        return ""
    why = "it is not private" if not certificate.private else "its noise is not secret"
    return f'<p style="color: #a3211b"><strong>NOT RELEASABLE: {why}. Never share it.</strong></p>'


def release_html(release: Opened) -> str:
    """A set: its certificate, then pictures of it or its first rows."""
    shown = _pictures_html(release.x, release.y, release.schema) if release.schema.is_image else _rows_html(release)
    return certificate_html(release.certificate) + shown


def pairs_html(rows: Sequence[tuple[str, str]]) -> str:
    cells = "".join(
        f'<tr><th style="{CELL}; font-weight: normal; opacity: .7">{html.escape(name)}</th>'
        f'<td style="{CELL}">{html.escape(value)}</td></tr>'
        for name, value in rows
    )
    return f'<table style="{STYLE}">{cells}</table>'


def _pictures_html(x: Array, y: Array, schema: Schema) -> str:
    found = montage(x, y, schema)
    if found is None:
        return ""
    source = base64.b64encode(encode_png(found)).decode("ascii")
    words = f"Synthetic pictures, one row for each class: {', '.join(schema.classes[:CLASSES])}"
    return f'<img style="image-rendering: pixelated" alt="{html.escape(words)}" src="data:image/png;base64,{source}">'


def montage(x: Array, y: Array, schema: Schema) -> Array | None:
    """Up to ten pictures of up to ten classes, in [-1, 1]; None where they are no pictures of a file, or too large."""
    channels, height, width = schema.shape
    chosen = [x[np.flatnonzero(y == index)[:COLUMNS]] for index in range(min(len(schema.classes), CLASSES))]
    chosen = [records for records in chosen if len(records)]
    across = max((len(records) for records in chosen), default=0)
    across = min(across, max(1, MOST_PIXELS // max(1, height * width * len(chosen))))
    if channels not in MODES or not chosen or height * width * len(chosen) > MOST_PIXELS:
        return None
    canvas = np.full((channels, len(chosen) * (height + 1), across * (width + 1)), -1.0, dtype=np.float32)
    for row, records in enumerate(chosen):
        for column, record in enumerate(records[:across]):
            top, left = row * (height + 1), column * (width + 1)
            canvas[:, top : top + height, left : left + width] = record
    grow = max(1, 56 // max(height, width))
    return canvas.repeat(grow, axis=1).repeat(grow, axis=2)


def _rows_html(release: Opened) -> str:
    found = framed.to_arrow(release.x[:ROWS], release.y[:ROWS], release.schema)
    head = "".join(f'<th style="{CELL}">{html.escape(name)}</th>' for name in found.column_names)
    body = "".join(
        f"<tr>{''.join(_cell_html(row[name]) for name in found.column_names)}</tr>" for row in found.to_pylist()
    )
    more = f"<p>{len(release.y)} synthetic rows; the first {min(ROWS, len(release.y))} are shown.</p>"
    return f'<div style="overflow-x: auto"><table style="{STYLE}"><tr>{head}</tr>{body}</table></div>{more}'


def _cell_html(value: Any) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return f'<td style="{CELL}">{html.escape(text)}</td>'
