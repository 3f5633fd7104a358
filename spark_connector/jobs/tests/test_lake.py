"""What of a table can be told without Spark."""

from pathlib import Path

import pytest

from magnetar.spark_connector.jobs import command, lake
from magnetar.spark_connector.jobs.lake import _done, _offsets
from magnetar.spark_connector.jobs.tables.staging import StagedFile

END = {"v": 1, "pos": {"t": [5, 6, 70], "u": [1, 2, 3]}}


class Query:
    """A query whose last batch ended there."""

    def __init__(self, end: object, latest: object) -> None:
        self.lastProgress = {"sources": [{"endOffset": end, "latestOffset": latest}]}


def test_progress() -> None:
    latest = '{"v": 1, "pos": {"t": [5, 6, 100], "u": [1, 2, 3], "new": [1, 1, 9]}}'
    assert _done(Query(END, latest)) == (73, 103)
    assert _done(Query(END, None)) == (73, 73)


@pytest.mark.parametrize("said", [None, {"v": 1}, '{"v": 1}'])
def test_before_the_first_batch(said: object) -> None:
    assert _offsets(said) == {}


def test_the_report_counts_by_day() -> None:
    files = [StagedFile(Path("x"), "t", day, 10, 1000) for day in ("2026-01-02", "2026-01-01")]
    report = lake._report([*files, files[0]], 3, 1)
    assert report.tables[0].rows == [
        ("t", "2026-01-01", 10, 1000, 1),
        ("t", "2026-01-02", 20, 2000, 2),
    ]
    assert report.facts["messages"] == 30
    assert report.facts["merged"] == "3 files to 1"


def test_command_line() -> None:
    parser = command.parser_of(lake.COMMAND)
    found = parser.parse_args(["--topic", "t", "--to", "/d", "--select", "a, b", "--select", "c"])
    options = lake._options(found)
    assert options.select == ("a, b", "c")
    assert (options.format, options.continuous_seconds, options.compact) == ("parquet", 0.0, False)
