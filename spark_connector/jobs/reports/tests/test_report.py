"""Reports: the same for people and for programs."""

import json

import pytest

from magnetar.spark_connector.jobs.reports.report import (
    ROWS_SHOWN_MAX,
    JobReport,
    ReportTable,
    Size,
    shown,
)
from magnetar.spark_connector.jobs.reports.tests.full_report import full_report


def test_text() -> None:
    assert full_report("a is broken").as_text().splitlines() == [
        "messages: 12,345",
        "bytes: 3.0 MB",
        "",
        "Topics:",
        "  topic  messages  first",
        "  a<b           7  2026-01-02 03:04:05+00:00",
        "  c            10  -",
        "",
        "1 problem:",
        "  a is broken",
    ]


def test_json() -> None:
    report = json.loads(full_report().as_json())
    assert (report["job"], report["ok"], report["problems"]) == ("audit", True, [])
    assert report["facts"] == {"messages": 12_345, "bytes": 3 << 20}
    assert report["tables"]["Topics"][0] == {
        "topic": "a<b", "messages": 7, "first": "2026-01-02T03:04:05Z",
    }  # fmt: skip
    assert not json.loads(full_report("a").as_json())["ok"]


def test_long_tables_are_cut_for_people_only() -> None:
    rows = [(number,) for number in range(ROWS_SHOWN_MAX + 5)]
    report = JobReport("x", {}, (), (ReportTable("T", ("n",), rows),))
    assert report.as_text().endswith("  and 5 more")
    assert len(json.loads(report.as_json())["tables"]["T"]) == len(rows)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"), (True, "True"), (1234, "1,234"), (0.25, "0.2"), (Size(0), "0 B"),
        (Size(1023), "1,023 B"), (Size(1024), "1.0 KB"), (Size(5 << 40), "5.0 TB"),
        (Size(5 << 50), "5,120.0 TB"), ("a", "a"),
    ],
)  # fmt: skip
def test_values(value: object, text: str) -> None:
    assert shown(value) == text
