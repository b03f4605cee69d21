"""Drawings of a table's marginals: a small chart of each column, and a map of how far pairs of columns are off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from limbeck.report.charts import plain_number

WIDTH, HEIGHT, FEWEST_PLACES = 160, 64, 6
LEVELS = 8
CELL, LABELS = 30, 120
# From so many columns on a cell of the map is too small for its number.
MOST_NUMBERS = 24


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bin: its share of the real rows, or by a model, and of the synthetic ones, 0 to 1. real is None where neither is."""

    name: str
    real: float | None
    synthetic: float


def small_chart(bars: Sequence[Bar], words: str, beside: str = "of the real rows") -> Markup:
    """For each bin a wide bar, the real share or whatever is said `beside`, and a narrow one upon it, the synthetic share."""
    highest = max((max(bar.real or 0.0, bar.synthetic) for bar in bars), default=0.0) or 1.0
    step = WIDTH / max(len(bars), FEWEST_PLACES)
    parts = []
    for place, bar in enumerate(bars):
        said = "" if bar.real is None else f"{100 * bar.real:.2f} % {beside}, "
        title = f"{bar.name}: {said}{100 * bar.synthetic:.2f} % of the synthetic ones"
        wide = _upright("real", place * step + 0.08 * step, 0.84 * step, (bar.real or 0.0) / highest)
        narrow = _upright("own", place * step + 0.3 * step, 0.4 * step, bar.synthetic / highest)
        parts.append(Markup("<g><title>{}</title>{}{}</g>").format(title, wide, narrow))
    return Markup(
        '<svg class="multiple" viewBox="0 0 {} {}" role="img" aria-label="{}">{}'
        '<line class="rule" x1="0" x2="{}" y1="{}" y2="{}"></line></svg>'
    ).format(WIDTH, HEIGHT, words, Markup("").join(parts), WIDTH, HEIGHT, HEIGHT)


def _upright(kind: str, x: float, width: float, share: float) -> Markup:
    height = share * HEIGHT
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"></rect>').format(
        kind, plain_number(x), plain_number(HEIGHT - height), plain_number(width), plain_number(height)
    )


def heat_map(names: Sequence[str], pairs: Sequence[Sequence[float | None]], words: str) -> Markup:
    """The lower triangle of all pairs: the darker, the farther. Row i of `pairs` has name i with each name before it."""
    highest = max((each for row in pairs for each in row if each is not None), default=0.0) or 1.0
    side = CELL * max(len(names) - 1, 1)
    parts = [_cell(names, i, j, value, highest) for i, row in enumerate(pairs) for j, value in enumerate(row)]
    parts += [_label(LABELS - 8, CELL * place + 19 - CELL, "end", name) for place, name in enumerate(names) if place]
    parts += [_below(place, side, name) for place, name in enumerate(names[:-1])]
    # With a width of its own, or few columns would be drawn as large as a page.
    return Markup('<svg class="heat" width="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        round(1.3 * (LABELS + side)), LABELS + side, side + LABELS, words, Markup("").join(parts)
    )


def _cell(names: Sequence[str], i: int, j: int, value: float | None, highest: float) -> Markup:
    if value is None:
        return Markup("")
    level = min(int(LEVELS * value / highest), LEVELS - 1)
    x, y = LABELS + CELL * j, CELL * (i - 1)
    number = _label(x + CELL / 2, y + 19, f"mid on-{level}", f"{100 * value:.1f}") if len(names) <= MOST_NUMBERS else ""
    return Markup(
        '<g><title>{} and {}: {} %</title><rect class="level-{}" x="{}" y="{}" width="{}" height="{}"></rect>{}</g>'
    ).format(names[i], names[j], f"{100 * value:.2f}", level, x, y, CELL - 1, CELL - 1, number)


def _label(x: float, y: float, kind: str, text: str) -> Markup:
    return Markup('<text class="tick {}" x="{}" y="{}">{}</text>').format(kind, plain_number(x), plain_number(y), text)


def _below(place: int, side: int, name: str) -> Markup:
    x, y = LABELS + CELL * place + CELL / 2 + 4, side + 8
    return Markup('<text class="tick end" transform="rotate(-60 {} {})" x="{}" y="{}">{}</text>').format(
        plain_number(x), y, plain_number(x), y, name
    )
