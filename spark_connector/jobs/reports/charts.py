"""Charts as SVG, for the pages of reports. Pure.

They need no script and no font, and show their values on their own: a bar has its figure beside it,
a line its highest value and its first and last time.
"""

from __future__ import annotations

from datetime import datetime
from html import escape
from typing import Final

from magnetar.spark_connector.jobs.reports.report import BarChart, LineChart, shown

WIDTH: Final = 760
BARS_MAX: Final = 30
LINES_MAX: Final = 8
COLOURS: Final = (
    "#3572b0", "#d9822b", "#4b9b5d", "#b5433c", "#7d5fa8", "#8a6d4e", "#c26fa3", "#6b7a86",
)  # fmt: skip
_BAR: Final = 22
_LABELS: Final = 300
_LABEL_LETTERS: Final = 44
_HEIGHT: Final = 220
_EDGE: Final = 30


def drawn(chart: BarChart | LineChart) -> str:
    """One `<svg>` element."""
    return _bars(chart) if isinstance(chart, BarChart) else _lines(chart)


def _bars(chart: BarChart) -> str:
    bars = list(chart.bars[:BARS_MAX])
    if not bars:
        return _nothing(chart.title)
    most = max(value for _, value in bars) or 1
    room = WIDTH - _LABELS - 110
    parts = []
    for row, (label, value) in enumerate(bars):
        y, width = row * _BAR, max(room * value / most, 1)
        parts += [
            _text(_LABELS - 8, y + 15, _fitting(label), "end"),
            f'<rect x="{_LABELS}" y="{y + 3}" width="{width:.1f}" height="{_BAR - 7}" rx="2" '
            f'fill="{COLOURS[0]}"/>',
            _text(_LABELS + width + 6, y + 15, shown(value)),
        ]
    rows = len(bars)
    if len(chart.bars) > BARS_MAX:
        rows += 1
        more = f"and {len(chart.bars) - BARS_MAX:,} more"
        parts.append(_text(_LABELS - 8, len(bars) * _BAR + 15, more, "end"))
    return _svg(chart.title, rows * _BAR, parts)


def _lines(chart: LineChart) -> str:
    lines = dict(list(chart.lines.items())[:LINES_MAX])
    points = [point for line in lines.values() for point in line]
    if not points:
        return _nothing(chart.title)
    first, last = min(time for time, _ in points), max(time for time, _ in points)
    most = max(value for _, value in points) or 1
    floor = _HEIGHT - _EDGE
    parts = [
        f'<path d="M{_EDGE} {floor}H{WIDTH - _EDGE}" stroke="#999" fill="none"/>',
        _text(_EDGE, 12, f"{shown(most)} at most"),
        _text(_EDGE, floor + 18, shown(first)),
        _text(WIDTH - _EDGE, floor + 18, shown(last), "end"),
    ]
    for row, (label, line) in enumerate(lines.items()):
        colour = COLOURS[row]
        places = [
            (f"{_across(time, first, last):.1f}", f"{floor - (floor - 20) * value / most:.1f}")
            for time, value in line
        ]
        at = " ".join(f"{x},{y}" for x, y in places)
        parts.append(f'<polyline points="{at}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if len(places) == 1:  # a line of one point is not seen
            x, y = places[0]
            parts.append(f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>')
        below = _HEIGHT + row * _BAR
        parts.append(f'<rect x="{_EDGE}" y="{below + 5}" width="12" height="12" fill="{colour}"/>')
        parts.append(_text(_EDGE + 20, below + 15, _short(label)))
    return _svg(chart.title, _HEIGHT + len(lines) * _BAR, parts)


def _nothing(title: str) -> str:
    return _svg(title, _BAR, [_text(0, 15, "nothing yet")])


def _across(time: datetime, first: datetime, last: datetime) -> float:
    span = (last - first).total_seconds() or 1
    return _EDGE + (WIDTH - 2 * _EDGE) * (time - first).total_seconds() / span


def _short(label: str) -> str:
    """Without what most names of topics begin with."""
    return label.replace("persistent://public/default/", "").replace("persistent://", "")


def _fitting(label: str) -> str:
    """The beginning of a long one, which says who reads a topic, and its end, which says what."""
    label = _short(label)
    return label if len(label) <= _LABEL_LETTERS else f"{label[:17]}...{label[-24:]}"


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(title: str, height: int, parts: list[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title, quote=True)}">'
        + "".join(parts)
        + "</svg>"
    )
