"""Small inline SVG drawings of the pages: meters, bars and a curve. Colours come from the page's style sheet.

A drawing has geometry in attributes and looks in classes, so that a page needs no style attribute and its policy can
forbid them. Texts are escaped by Markup's formatting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

# A used part that is smaller could not be seen.
THINNEST = 0.5

_Scale = Callable[[float], float]


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One part of a bar; `share` of the whole, 0 ... 1."""

    kind: str
    share: float


def bar(segments: Sequence[Segment], words: str) -> Markup:
    """A bar made of parts, from the left; what is left over shows the track."""
    parts, x = [], 0.0
    for segment in segments:
        width = max(min(segment.share, 1.0) * 100, THINNEST)
        parts.append(
            Markup('<rect class="{}" x="{}" y="0" width="{}" height="10"></rect>').format(
                segment.kind, plain_number(x), plain_number(min(width, 100 - x))
            )
        )
        x = min(x + width, 100.0)
    return Markup(
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="track" x="0" y="0" width="100" height="10"></rect>{}</svg>'
    ).format(words, Markup("").join(parts))


def score_bar(mean: float, ceiling: float | None, control: float | None) -> Markup:
    """A score between 0 and 100, with a tick where real records and where random pictures get."""
    ticks = [
        Markup('<rect class="{}" x="{}" y="0" width="0.8" height="10"></rect>').format(
            kind, plain_number(min(value, 99.2))
        )
        for kind, value in (("control", control), ("ceiling", ceiling))
        if value is not None
    ]
    return Markup(
        '<svg class="bar score" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" x="0" y="2" width="100" height="6"></rect>'
        '<rect class="own" x="0" y="2" width="{}" height="6"></rect>{}</svg>'
    ).format(plain_number(min(max(mean, 0.0), 100.0)), Markup("").join(ticks))


@dataclass(frozen=True, kw_only=True)
class Point:
    x: float
    y: float
    spread: float = 0.0


WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 460, 250, 46, 40, 14, 14


def curve(points: Sequence[Point], x_title: str, y_title: str, words: str, highest: float = 100.0) -> Markup:
    """A line with its spread as a band, on two axes with round ticks; the axis stays below `highest`."""
    points = sorted(points, key=lambda point: point.x)
    x_ticks = _ticks(min(point.x for point in points), max(point.x for point in points))
    lows, highs = [point.y - point.spread for point in points], [point.y + point.spread for point in points]
    least = max(min(lows), 0.0)
    y_ticks = _ticks(least, max(min(max(highs), highest), least))

    def across(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * _share(value, x_ticks)

    def down(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * _share(value, y_ticks)

    line = " ".join(f"{plain_number(across(p.x))},{plain_number(down(p.y))}" for p in points)
    upper = [f"{plain_number(across(p.x))},{plain_number(down(p.y + p.spread))}" for p in points]
    lower = [f"{plain_number(across(p.x))},{plain_number(down(p.y - p.spread))}" for p in reversed(points)]
    marks = [
        Markup('<circle cx="{}" cy="{}" r="3"></circle>').format(plain_number(across(p.x)), plain_number(down(p.y)))
        for p in points
    ]
    band = Markup('<polygon class="band" points="{}"></polygon>').format(" ".join(upper + lower))
    return Markup(
        '<svg class="curve" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}{}'
        '<polyline class="line" points="{}"></polyline>{}</svg>'
    ).format(
        WIDTH,
        HEIGHT,
        words,
        _axis(x_ticks, y_ticks, across, down),
        _titles(x_title, y_title),
        band if any(point.spread for point in points) else "",
        line,
        Markup("").join(marks),
    )


def _axis(x_ticks: list[float], y_ticks: list[float], across: _Scale, down: _Scale) -> Markup:
    lines = [
        Markup(
            '<line class="rule" x1="{}" x2="{}" y1="{}" y2="{}"></line><text class="tick end" x="{}" y="{}">{}</text>'
        ).format(
            LEFT,
            WIDTH - RIGHT,
            plain_number(down(tick)),
            plain_number(down(tick)),
            LEFT - 7,
            plain_number(down(tick) + 4),
            f"{tick:g}",
        )
        for tick in y_ticks
    ]
    lines += [
        Markup('<text class="tick mid" x="{}" y="{}">{}</text>').format(
            plain_number(across(tick)), HEIGHT - BOTTOM + 16, f"{tick:g}"
        )
        for tick in x_ticks
    ]
    return Markup("").join(lines)


def _titles(x_title: str, y_title: str) -> Markup:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return Markup(
        '<text class="title mid" x="{}" y="{}">{}</text>'
        '<text class="title mid" transform="rotate(-90 11 {})" x="11" y="{}">{}</text>'
    ).format((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, x_title, middle, middle, y_title)


def _ticks(low: float, high: float) -> list[float]:
    """Four to seven round numbers that take in both ends.

    >>> _ticks(81.2, 96.0)
    [80, 85, 90, 95, 100]
    """
    span = (high - low) or max(abs(high), 1.0) * 0.1
    step = 10 ** math.floor(math.log10(span / 3))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 5)
    first, last = math.floor(low / step), max(math.ceil(high / step), math.floor(low / step) + 1)
    return [round(index * step, 12) for index in range(first, last + 1)]


def _share(value: float, ticks: list[float]) -> float:
    return min(max((value - ticks[0]) / (ticks[-1] - ticks[0]), 0.0), 1.0)


def plain_number(value: float) -> str:
    """With two digits after the point, or fewer.

    >>> plain_number(2.5), plain_number(3.0)
    ('2.5', '3')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")
