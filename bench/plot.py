#!/usr/bin/env python3
"""Draw results as one SVG, by hand: bars of each figure, and latency by percentile.

`bench/plot.py bench/out/latest.json` writes `bench/out/latest.svg`; docs/performance.svg is drawn
from docs/performance.json in the same way. Pure but for `main`.
"""

import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.drive.command import Report
from bench.drive.histogram import Buckets, merge, quantile_ms
from bench.drive.table import Joined, join

WIDTH, BAR, GAP, LEFT = 900, 16, 14, 240
CURVE_HEIGHT = 260
COLOURS = ("#3b6fb6", "#c8553d", "#4f9d69", "#8a6fb0", "#c59b3a", "#5d8a94", "#a05d7d", "#70706a")
NINES = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)
STYLE = "font-family:system-ui,sans-serif;font-size:12px"


FIGURES = (
    ("cpu_us", "us", "server CPU a message (less is better)", ""),
    ("cpu_ms_mb", "ms/MB", "server CPU a MB (less is better)", ""),
    ("msg_per_s", "msg/s", "messages a second (more is better)", ""),
    ("mb_per_s", "MB/s", "MB a second (more is better)", ""),
    ("p99_ms", "ms", "p99 of receipts at a fixed rate (less is better)", "rate-"),
    ("rss_mb", "MB", "resident memory, idle (less is better)", "idle"),
    ("peak_mb", "MB", "most resident memory (less is better)", ""),
    ("kept_mb", "MB", "memory that a load leaves (less is better)", ""),
    ("first_s", "s", "spawn to first message stored (less is better)", ""),
)
"""Figure, unit, heading, and what the name of a case must have in it: of a closed loop, latency
says only how deep it was."""


def words(x: float, y: float, content: str, anchor: str = "start", bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight}>{escape(content)}</text>'


def bar(y: float, length: float, colour: str, label: str) -> list[str]:
    size = f'width="{max(length, 1):.1f}" height="{BAR}"'
    box = f'<rect x="{LEFT}" y="{y:.1f}" {size} fill="{colour}"/>'
    return [box, words(LEFT + max(length, 1) + 6, y + BAR - 4, label)]


def bars(results: Sequence[Joined], figure: str, unit: str, top: float) -> tuple[list[str], float]:
    """One group per case, each to its own scale: cases differ a thousandfold."""
    servers = list(dict.fromkeys(result.server for result in results))
    drawn: list[str] = []
    y = top
    for case in dict.fromkeys(result.case for result in results):
        group = [result for result in results if result.case == case and figure in result.figures]
        largest = max((result.figures[figure] for result in group), default=0.0)
        if not largest:
            continue
        drawn.append(words(LEFT - 10, y + BAR - 4, case, "end"))
        for result in group:
            value = result.figures[figure]
            length = (WIDTH - LEFT - 220) * value / largest
            digits = 0 if value >= 100 else 2
            label = f"{value:,.{digits}f} {unit}  {result.server}"
            drawn += bar(y, length, COLOURS[servers.index(result.server) % len(COLOURS)], label)
            y += BAR + 2
        y += GAP
    return drawn, y


def curve_points(buckets: Buckets, steps: int = 60) -> list[tuple[float, float]]:
    """Return (nines, milliseconds): 1 is p90, 2 is p99, as far as there are samples to say so."""
    count = sum(held for _, held in buckets)
    points = []
    for step in range(steps + 1):
        nines = step * 4 / steps
        if count * 10**-nines >= 1:
            points.append((nines, quantile_ms(buckets, 1 - 10**-nines)))
    return points


def curves(named: Sequence[tuple[str, Buckets]], top: float) -> tuple[list[str], float]:
    """Latency over the percentile; the percentile's axis counts nines, the latency's is linear."""
    lines = [(name, curve_points(buckets)) for name, buckets in named if buckets]
    if not lines:
        return [], top
    largest = max(value for _, points in lines for _, value in points) or 1.0
    wide, bottom = WIDTH - LEFT - 60, top + CURVE_HEIGHT
    drawn = [f'<path d="M{LEFT} {top}V{bottom}H{LEFT + wide}" fill="none" stroke="#888"/>']
    for nines, label in enumerate(("p0", "p90", "p99", "p99.9", "p99.99")):
        drawn.append(words(LEFT + wide * nines / 4, bottom + 16, label, "middle"))
    for part in range(5):
        y = bottom - CURVE_HEIGHT * part / 4
        drawn.append(words(LEFT - 8, y + 4, f"{largest * part / 4:.2f} ms", "end"))
    for index, (name, points) in enumerate(lines):
        path = " ".join(
            f"{LEFT + wide * nines / 4:.1f},{bottom - CURVE_HEIGHT * value / largest:.1f}"
            for nines, value in points
        )
        colour = COLOURS[index % len(COLOURS)]
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn.append(
            f'<rect x="{LEFT + 14}" y="{top + 18 * index}" width="12" height="12" fill="{colour}"/>'
        )
        drawn.append(words(LEFT + 32, top + 18 * index + 10, name))
    return drawn, bottom + 40


def latencies(report: Report) -> list[tuple[str, Buckets]]:
    """The cases at a fixed rate: of a closed loop, latency says only how deep it was."""
    keys = dict.fromkeys(
        (sample.case, sample.server) for sample in report.samples if "rate-" in sample.case
    )
    return [
        (
            f"{case}  {server}",
            merge(
                s.publish_buckets for s in report.samples if (s.case, s.server) == (case, server)
            ),
        )
        for case, server in keys
    ]


def draw(report: Report) -> str:
    """The whole picture as SVG text."""
    results = join(report.samples)
    machine = report.machine
    subtitle = (
        f"{machine.get('cores', '?')} cores, {machine.get('when', '')}, each case to its own scale"
    )
    body = [words(20, 28, "Magnetar benchmarks", bold=True), words(20, 46, subtitle)]
    y = 76.0
    for figure, unit, heading, part in FIGURES:
        drawn, end = bars([of for of in results if part in of.case], figure, unit, y + 16)
        if drawn:
            body += [words(20, y, heading, bold=True), *drawn]
            y = end + 20
    drawn, end = curves(latencies(report), y + 16)
    if drawn:
        body += [words(20, y, "publish latency at a fixed rate", bold=True), *drawn]
        y = end
    size = f'width="{WIDTH}" height="{y:.0f}" viewBox="0 0 {WIDTH} {y:.0f}"'
    ground = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{STYLE}">',
            ground,
            *body,
            "</svg>",
            "",
        ]
    )


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print("usage: bench/plot.py RESULTS.json", file=sys.stderr)
        return 2
    source = Path(arguments[0])
    picture = source.with_suffix(".svg")
    picture.write_text(draw(msgspec.json.decode(source.read_bytes(), type=Report)))
    print(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
