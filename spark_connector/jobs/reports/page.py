"""A report as one HTML file that needs nothing else. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from html import escape
from typing import Final

from magnetar.spark_connector.jobs.reports import charts
from magnetar.spark_connector.jobs.reports.report import (
    PROBLEMS_SHOWN_MAX,
    ROWS_SHOWN_MAX,
    JobReport,
    ReportTable,
    counted,
    shown,
)

STYLE: Final = """
:root{color-scheme:light dark;--well:#2c7a3f;--wrong:#a8322a;--line:#ddd;--label:#333}
body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}
table{border-collapse:collapse}
td,th{padding:.2rem .7rem;border-bottom:1px solid var(--line);text-align:left;white-space:nowrap}
.number{text-align:right;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto}li{overflow-wrap:anywhere}
.well{color:var(--well)}.wrong{color:var(--wrong)}
svg{max-width:760px;min-width:560px;width:100%}svg text{font-size:12px;fill:var(--label)}
@media(prefers-color-scheme:dark){
:root{--well:#6fc383;--wrong:#ee8077;--line:#444;--label:#ccc}body{background:#1b1d20;color:#ddd}}
"""
"""Whatever is wider than the window, on a telephone, moves by itself and not with the page."""
NUMBER: Final = ' class="number"'


def of(report: JobReport, made_at: datetime) -> str:
    """The page."""
    verdict = (
        '<p class="well">Nothing is wrong.</p>'
        if report.ok
        else f'<p class="wrong">{counted(len(report.problems), "problem")}</p>'
    )
    facts = ReportTable("", ("", ""), list(report.facts.items()))
    parts = [
        f"<h1>{escape(report.job)}</h1><p>{shown(made_at.replace(tzinfo=None))} UTC</p>{verdict}",
        _table(facts, head=False),
        _problems(report),
        *(f"<h2>{escape(one.title)}</h2>{_wide(charts.drawn(one))}" for one in report.charts),
        *(f"<h2>{escape(one.title)}</h2>{_table(one)}" for one in report.tables if one.rows),
    ]
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report.job)}</title><style>{STYLE}</style></head><body>"
    )
    return head + "\n".join(parts) + "</body></html>\n"


def _problems(report: JobReport) -> str:
    if report.ok:
        return ""
    items = "".join(f"<li>{escape(one)}</li>" for one in report.problems[:PROBLEMS_SHOWN_MAX])
    return f"<h2>Problems</h2><ul>{items}</ul>{_more(len(report.problems), PROBLEMS_SHOWN_MAX)}"


def _table(table: ReportTable, *, head: bool = True) -> str:
    shown_rows = table.rows[:ROWS_SHOWN_MAX]
    numbers = [isinstance(value, int | float) for value in table.rows[0]]
    rows = [_row("th", table.columns, numbers)] if head else []
    rows += [_row("td", row, [isinstance(each, int | float) for each in row]) for row in shown_rows]
    body = "".join(rows)
    return _wide(f"<table>{body}</table>") + _more(len(table.rows), ROWS_SHOWN_MAX)


def _row(tag: str, values: Sequence[object], numbers: Sequence[bool]) -> str:
    """Numbers to the right, and their names too."""
    cells = (
        f"<{tag}{NUMBER if right else ''}>{escape(shown(value))}</{tag}>"
        for value, right in zip(values, numbers, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _wide(part: str) -> str:
    return f'<div class="wide">{part}</div>'


def _more(there: int, most: int) -> str:
    return f"<p>and {there - most:,} more</p>" if there > most else ""
