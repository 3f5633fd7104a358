"""What a job has found: as text for a terminal, as JSON for programs, and for `page.py`. Pure.

A job fills one `JobReport`. Invariant: `problems` is empty if, and only if, all is well; each of
them is a sentence that names the place.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

ROWS_SHOWN_MAX: Final = 50
"""Of a table, on a terminal and on a page; JSON has all."""
PROBLEMS_SHOWN_MAX: Final = 100


class Size(int):
    """Bytes: people read them with a unit, programs as a number."""


class ReportTable(Struct, frozen=True):
    """Rows below one title."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]


class BarChart(Struct, frozen=True):
    """One bar for each label."""

    title: str
    bars: Sequence[tuple[str, float]]


class LineChart(Struct, frozen=True):
    """Values over time, one line for each label."""

    title: str
    lines: dict[str, Sequence[tuple[datetime, float]]]


class JobReport(Struct, frozen=True):
    """See the module's docstring."""

    job: str
    facts: dict[str, Any]
    """Figures of the whole, by their names."""
    problems: Sequence[str] = ()
    tables: Sequence[ReportTable] = ()
    charts: Sequence[BarChart | LineChart] = ()

    @property
    def ok(self) -> bool:
        return not self.problems

    def as_json(self) -> bytes:
        """One object; tables are lists of objects."""
        tables = {
            table.title: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
            for table in self.tables
        }
        found = {
            "job": self.job,
            "ok": self.ok,
            "facts": self.facts,
            "problems": self.problems,
            "tables": tables,
        }
        return msgspec.json.encode(found, enc_hook=int)

    def as_text(self) -> str:
        lines = [f"{name}: {shown(value)}" for name, value in self.facts.items()]
        for table in self.tables:
            if table.rows:
                lines += ["", f"{table.title}:", *_aligned(table)]
        if self.problems:
            lines += ["", f"{counted(len(self.problems), 'problem')}:"]
            lines += [f"  {each}" for each in self.problems[:PROBLEMS_SHOWN_MAX]]
            lines += _more(self.problems, PROBLEMS_SHOWN_MAX)
        return "\n".join(lines)


def counted(number: int, what: str) -> str:
    """A number and a noun: `1 message`, `2,000 messages`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def shown(value: Any) -> str:
    """A value for people."""
    if value is None:
        return "-"
    if isinstance(value, Size):
        return _with_unit(value)
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return str(value)


def _with_unit(size: float) -> str:
    if abs(size) < 1024:
        return f"{int(size):,} B"
    units = iter(("KB", "MB", "GB", "TB"))
    name = ""
    while abs(size) >= 1024 and (unit := next(units, "")):
        size, name = size / 1024, unit
    return f"{size:,.1f} {name}"


def _aligned(table: ReportTable) -> list[str]:
    """Rows in columns; numbers to the right."""
    rows = [list(map(shown, row)) for row in table.rows[:ROWS_SHOWN_MAX]]
    numbers = [isinstance(value, int | float) for value in table.rows[0]]
    widths = [max(map(len, column)) for column in zip(table.columns, *rows, strict=True)]
    lines = []
    for row in [list(table.columns), *rows]:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numbers, strict=True)
        ]
        lines.append(f"  {'  '.join(cells)}".rstrip())
    return lines + _more(table.rows, ROWS_SHOWN_MAX)


def _more(of: Sequence[Any], most: int) -> list[str]:
    return [f"  and {len(of) - most:,} more"] if len(of) > most else []
