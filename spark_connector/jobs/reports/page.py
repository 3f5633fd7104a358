"""A report as one HTML file that needs nothing else. Pure."""

from __future__ import annotations

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
body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:62rem;margin:2rem auto}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}
table{border-collapse:collapse}
td,th{padding:.2rem .7rem;border-bottom:1px solid #ddd;text-align:left}
td.number{text-align:right;font-variant-numeric:tabular-nums}
.well{color:#2c7a3f}.wrong{color:#a8322a}
svg{max-width:760px;width:100%}svg text{font-size:12px;fill:#333}
@media(prefers-color-scheme:dark){
body{background:#1b1d20;color:#ddd}svg text{fill:#ccc}td,th{border-color:#444}}
"""


def of(report: JobReport, made_at: datetime) -> str:
    """The page."""
    verdict = (
        '<p class="well">Nothing is wrong.</p>'
        if report.ok
        else f'<p class="wrong">{counted(len(report.problems), "problem")}</p>'
    )
    facts = ReportTable("", ("", ""), list(report.facts.items()))
    parts = [
        f"<h1>{escape(report.job)}</h1><p>{shown(made_at)}</p>{verdict}",
        _table(facts, head=False),
        _problems(report),
        *(f"<h2>{escape(one.title)}</h2>{charts.drawn(one)}" for one in report.charts),
        *(f"<h2>{escape(one.title)}</h2>{_table(one)}" for one in report.tables if one.rows),
    ]
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(report.job)}</title><style>{STYLE}</style></head><body>"
    )
    return head + "\n".join(parts) + "</body></html>\n"


def _problems(report: JobReport) -> str:
    if report.ok:
        return ""
    items = "".join(f"<li>{escape(one)}</li>" for one in report.problems[:PROBLEMS_SHOWN_MAX])
    return f"<h2>Problems</h2><ul>{items}</ul>{_more(len(report.problems), PROBLEMS_SHOWN_MAX)}"


def _table(table: ReportTable, *, head: bool = True) -> str:
    rows = ""
    if head:
        rows = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in table.columns)}</tr>"
    for row in table.rows[:ROWS_SHOWN_MAX]:
        cells = "".join(
            f'<td class="number">{escape(shown(value))}</td>'
            if isinstance(value, int | float)
            else f"<td>{escape(shown(value))}</td>"
            for value in row
        )
        rows += f"<tr>{cells}</tr>"
    return f"<table>{rows}</table>{_more(len(table.rows), ROWS_SHOWN_MAX)}"


def _more(there: int, most: int) -> str:
    return f"<p>and {there - most:,} more</p>" if there > most else ""
