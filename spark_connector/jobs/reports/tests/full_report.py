"""A report with everything in it."""

from datetime import UTC, datetime, timedelta

from magnetar.spark_connector.jobs.reports.report import (
    BarChart,
    JobReport,
    LineChart,
    ReportTable,
    Size,
)

BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def full_report(*problems: str) -> JobReport:
    rows = [("a<b", 7, BEGIN), ("c", 10, None)]
    times = [(BEGIN + timedelta(hours=hour), float(hour)) for hour in range(3)]
    return JobReport(
        "audit",
        {"messages": 12_345, "bytes": Size(3 << 20)},
        problems,
        (ReportTable("Topics", ("topic", "messages", "first"), rows),),
        (BarChart("Messages", [("a<b", 7), ("c", 10)]), LineChart("Over time", {"a<b": times})),
    )
