"""Samples into tables: text for the terminal, markdown for the documents. Pure.

Rounds are joined by the median; latency by adding the histograms of all rounds.
"""

import statistics
from collections.abc import Iterable, Sequence

import msgspec

from bench.drive.catalogue import CASES
from bench.drive.histogram import merge, quantile_ms
from bench.drive.measure import Sample


class Column(msgspec.Struct, frozen=True):
    """A figure and how it is shown."""

    figure: str
    heading: str
    digits: int


COLUMNS = [
    Column("msg_per_s", "msg/s", 0),
    Column("mb_per_s", "MB/s", 1),
    Column("cpu_us", "CPU us/msg", 2),
    Column("cpu_ms_mb", "CPU ms/MB", 2),
    Column("p50_ms", "p50 ms", 2),
    Column("p99_ms", "p99 ms", 2),
    Column("p999_ms", "p99.9 ms", 2),
    Column("max_ms", "max ms", 1),
    Column("e2e_p50_ms", "e2e p50", 2),
    Column("e2e_p99_ms", "e2e p99", 2),
    Column("ready_s", "ready s", 2),
    Column("first_s", "first msg s", 2),
    Column("cpu_s", "CPU s", 2),
    Column("rss_mb", "RSS MB", 0),
    Column("peak_mb", "peak MB", 0),
    Column("kept_mb", "MB more", 1),
    Column("kept_in_all_mb", "MB more than idle", 1),
    Column("rested_mb", "same, 60 s later", 1),
    Column("restarted_mb", "MB more, restarted", 1),
    Column("attach_s", "attached s", 2),
    Column("attach_cpu_s", "attached CPU s", 2),
    Column("topics_mb", "RSS MB with topics", 0),
    Column("connection_bytes", "B/connection", 0),
    Column("topic_bytes", "B/topic", 0),
    Column("pause_ms", "pause ms", 1),
    Column("own_pause_ms", "own CPU ms", 1),
    Column("disk_p50_ms", "disk p50", 2),
    Column("disk_p99_ms", "disk p99", 2),
    Column("generator_us", "generator us", 2),
    Column("load_average", "load avg", 1),
]
RATIOS = (
    "msg_per_s",
    "mb_per_s",
    "cpu_us",
    "p50_ms",
    "p99_ms",
    "ready_s",
    "first_s",
    "rss_mb",
    "peak_mb",
    "kept_mb",
    "restarted_mb",
    "attach_s",
)


class Joined(msgspec.Struct, frozen=True):
    """All rounds of one case on one server."""

    case: str
    server: str
    rounds: int
    ok: bool
    figures: dict[str, float]


def joined_figures(samples: Sequence[Sample]) -> dict[str, float]:
    names = {name for sample in samples for name in sample.figures}
    figures = {
        name: statistics.median(
            sample.figures[name] for sample in samples if name in sample.figures
        )
        for name in names
    }
    for prefix, histograms in (
        ("", [sample.publish_buckets for sample in samples]),
        ("e2e_", [sample.end_to_end_buckets for sample in samples]),
    ):
        buckets = merge(histograms)
        if buckets:
            for name, quantile in (("p50_ms", 0.5), ("p99_ms", 0.99), ("p999_ms", 0.999)):
                figures[prefix + name] = quantile_ms(buckets, quantile)
    for name in ("max_ms", "pause_ms", "own_pause_ms"):
        if name in figures:
            figures[name] = max(
                sample.figures[name] for sample in samples if name in sample.figures
            )
    return figures


def join(samples: Iterable[Sample]) -> list[Joined]:
    """Group by case and server, in the order in which they were first met."""
    groups: dict[tuple[str, str], list[Sample]] = {}
    for sample in samples:
        groups.setdefault((sample.case, sample.server), []).append(sample)
    return [
        Joined(
            case=case,
            server=server,
            rounds=len(group),
            ok=all(sample.ok for sample in group),
            figures=joined_figures(group),
        )
        for (case, server), group in groups.items()
    ]


def cell(figures: dict[str, float], column: Column) -> str:
    value = figures.get(column.figure)
    return "" if value is None else f"{value:,.{column.digits}f}"


def ratio_row(ours: Joined, peer: Joined, columns: Sequence[Column]) -> list[str]:
    cells = []
    for column in columns:
        mine, theirs = ours.figures.get(column.figure), peer.figures.get(column.figure)
        shown = column.figure in RATIOS and mine is not None and theirs
        cells.append(f"x{(mine or 0) / (theirs or 1):.2f}" if shown else "")
    return ["", f"{ours.server} / {peer.server}", *cells]


def rows(results: Sequence[Joined]) -> list[list[str]]:
    """Heading first; under each case its servers, and the ratio where there are two."""
    columns = [
        column for column in COLUMNS if any(column.figure in result.figures for result in results)
    ]
    table = [["case", "server", *[column.heading for column in columns]]]
    for case in dict.fromkeys(result.case for result in results):
        group = [result for result in results if result.case == case]
        for result in group:
            mark = "" if result.ok else " FAILED"
            table.append(
                [case, result.server + mark, *[cell(result.figures, column) for column in columns]]
            )
        if len(group) == 2:
            table.append(ratio_row(group[0], group[1], columns))
    return table


def text(results: Sequence[Joined]) -> str:
    table = rows(results)
    widths = [max(len(row[index]) for row in table) for index in range(len(table[0]))]
    lines = [
        "  ".join(
            part.ljust(width) if index < 2 else part.rjust(width)
            for index, (part, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    ]
    return "\n".join(line.rstrip() for line in lines)


def markdown(results: Sequence[Joined]) -> str:
    table = rows(results)
    lines = ["| " + " | ".join(row) + " |" for row in table]
    lines.insert(1, "|" + "---|" * 2 + "--:|" * (len(table[0]) - 2))
    goals = [
        f"- `{name}`: {CASES[name].title}"
        for name in dict.fromkeys(result.case for result in results)
    ]
    return "\n".join([*lines, "", *goals, ""])
