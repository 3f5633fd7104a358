"""The job that keeps tables of topics: each message once, whatever happens."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyarrow import dataset

from interop_tests.waiting import until
from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.jobs import lake
from magnetar.spark_connector.jobs.session import TopicSelection
from magnetar.spark_connector.jobs.tables.parquet_table import ParquetTable

from .conftest import workers_environment

pytestmark = pytest.mark.spark
ROWS_PER_BATCH = 50
COUNT = 40 * ROWS_PER_BATCH
FORMATS = ("parquet", "delta")


@pytest.fixture
def kept(spark, lending, topic, tmp_path):
    """Brings a table up to date."""

    def kept(format: str, *topics: str, **more) -> lake.JobReport:
        selection = TopicSelection(lending.http_url, topics or (topic,))
        chosen = lake.LakeOptions(selection, tmp_path / "table", format, **more)
        return lake.run(spark, chosen)

    return kept


@pytest.fixture
def send(lending, connect):
    client = connect(lending.pulsar_url)

    def send(topic: str, *numbers: int) -> None:
        producer = client.create_producer(topic, block_if_queue_full=True)
        for number in numbers:
            producer.send_async(b"%d" % number, lambda *_: None)
        producer.flush()
        producer.close()

    return send


def values(format: str, folder: Path, column: str = "value") -> list[int]:
    """The rows, as a reader sees them that is not Spark."""
    if format == "delta":
        import deltalake

        table = deltalake.DeltaTable(str(folder)).to_pyarrow_dataset()
    else:
        table = dataset.dataset(folder, partitioning="hive")
    return sorted(int(value) for value in table.to_table()[column].to_pylist())


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_is_brought_up_to_date(spark, kept, send, topic, tmp_path, format) -> None:
    other = f"{topic}-other"
    send(topic, *range(30))
    send(other, *range(30, 40))
    assert kept(format, topic, other, rows_per_batch=10).facts["messages"] == 40
    assert kept(format, topic, other).facts["messages"] == 0
    send(topic, *range(40, 45))
    report = kept(format, topic, other)
    assert report.facts["messages"] == 5
    assert values(format, tmp_path / "table") == list(range(45))
    if format == "parquet":
        frame = spark.read.parquet(f"file://{tmp_path}/table")
        days = {str(datetime.now(UTC).date())}
        found = frame.selectExpr("topic", "CAST(date AS STRING) date").distinct().collect()
        assert {(row.topic, row.date) for row in found} >= {(topic, day) for day in days}
        assert {row.topic for row in found} == {topic, other}
        assert {"offset", "publish_time", "headers", "key"} <= set(frame.columns)


def test_columns_are_chosen_and_small_files_merged(spark, kept, send, topic, tmp_path) -> None:
    select = ("CAST(CAST(value AS STRING) AS INT) number",)
    for number in range(3):
        send(topic, number)
        kept("parquet", select=select)
    folder = tmp_path / "table"
    assert len(list(folder.glob("topic=*/date=*/*.parquet"))) == 3
    with ParquetTable(folder) as table:
        counts = list(table.compact(spark, "9999-01-01"))
    assert [(one.before, one.after) for one in counts] == [(3, 1)]
    assert len(list(folder.glob("topic=*/date=*/*.parquet"))) == 1
    assert values("parquet", folder, "number") == [0, 1, 2]
    send(topic, 3)
    kept("parquet", select=select, compact=True)
    assert values("parquet", folder, "number") == [0, 1, 2, 3]


def test_delta_files_are_merged(spark, kept, send, topic, tmp_path) -> None:
    from magnetar.spark_connector.jobs.tables.delta_table import DeltaTableSink

    for number in range(3):
        send(topic, number)
        kept("delta")
    with DeltaTableSink(tmp_path / "table") as table:
        (count,) = table.compact(spark, "9999-01-01")
    assert (count.before, count.after) == (3, 1)
    assert values("delta", tmp_path / "table") == [0, 1, 2]


@pytest.mark.parametrize("format", FORMATS)
def test_a_batch_that_was_written_is_not_written_again(
    kept, send, topic, tmp_path, monkeypatch, format
) -> None:
    """The job ends after the table has the batch, and before the checkpoint knows."""
    send(topic, *range(20))
    table = lake.FORMATS[format]
    write = table.write

    def write_and_fail(*arguments):
        write(*arguments)
        raise RuntimeError("it ends here")

    with monkeypatch.context() as patch:
        patch.setattr(table, "write", write_and_fail)
        with pytest.raises(Exception, match="it ends here"):
            kept(format)
    assert values(format, tmp_path / "table") == list(range(20))
    assert kept(format).facts["messages"] == 0
    assert values(format, tmp_path / "table") == list(range(20))


def batches_done(folder: Path) -> int:
    commits = folder / "_jobs/checkpoint/commits"
    return len([one for one in commits.glob("*") if one.name.isdecimal()])


@pytest.fixture
def started(lending, topic, tmp_path):
    """Starts a job as users do, in a group of processes of its own, as a terminal does."""

    @contextmanager
    def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
        words = [
            sys.executable, "-m", "magnetar.spark_connector.jobs.lake", "--url", lending.http_url,
            "--topic", topic, "--to", str(tmp_path / "table"), "--master", "local[2]",
            "--rows-per-batch", str(ROWS_PER_BATCH), *arguments,
        ]  # fmt: skip
        with (
            (tmp_path / "stdout").open("w") as out,
            (tmp_path / "stderr").open("w") as said,
            subprocess.Popen(
                words, env={**os.environ, **workers_environment()}, stdout=out, stderr=said,
                text=True, start_new_session=True,
            ) as job,
        ):  # fmt: skip
            try:
                yield job
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(job.pid, signal.SIGKILL)

    return started


@pytest.fixture
def busy(started, send, topic, tmp_path):
    """A job in the middle of forty batches, whose table is in the folder `table`."""
    send(topic, *range(COUNT))
    with started() as job:
        while batches_done(tmp_path / "table") < 3:
            assert job.poll() is None
        yield job


def test_a_killed_job_goes_on(busy, kept, tmp_path) -> None:
    folder = tmp_path / "table"
    os.killpg(busy.pid, signal.SIGKILL)
    busy.wait(60)
    assert batches_done(folder) < 40, "it came too late"
    kept("parquet", rows_per_batch=1_000_000)
    assert values("parquet", folder) == list(range(COUNT))


def test_a_job_that_is_stopped_says_so_in_one_line(busy, kept, tmp_path) -> None:
    """Ctrl-C goes to all processes of a terminal, Spark's workers too."""
    os.killpg(busy.pid, signal.SIGINT)
    assert busy.wait(60) == 130
    said = (tmp_path / "stderr").read_text()
    _, _, behind = said.partition("starting Spark")
    _, *lines = behind.splitlines()
    assert lines.pop() == "magnetar: stopped by Ctrl-C; run it again, and it goes on where it was"
    assert "while sending command" not in behind, "what PySpark's own handler led to"
    assert "python_streaming_source_runner" not in behind, "nor is the planner surprised"
    assert (tmp_path / "stdout").read_text() == ""
    kept("parquet", rows_per_batch=1_000_000)
    assert values("parquet", tmp_path / "table") == list(range(COUNT))


def test_a_job_that_is_stopped_while_spark_starts_leaves_no_java(started, tmp_path) -> None:
    said = tmp_path / "stderr"
    with started() as job:
        until(lambda: said.read_text() or job.poll() is not None)  # Java's first words
        os.killpg(job.pid, signal.SIGINT)
        assert job.wait(60) == 130
        until(lambda: not alive(job.pid))
    assert "Traceback" not in said.read_text()


def alive(group: int) -> list[str]:
    """The processes of a group that run."""
    words = ["ps", "-e", "-o", "pgid=,stat=,args="]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.split(maxsplit=2) for line in lines]
    return [args for each, stat, *args in found if int(each) == group and not stat.startswith("Z")]


def test_a_job_that_goes_on_ends_when_it_is_told(started, send, topic, tmp_path) -> None:
    send(topic, *range(20))
    with started("--continuous", "1", "--json") as job:
        until(lambda: batches_done(tmp_path / "table") or job.poll() is not None, seconds=120)
        job.terminate()
        assert job.wait(60) == 0
    assert json.loads((tmp_path / "stdout").read_text())["facts"]["messages"] == 20
    assert values("parquet", tmp_path / "table") == list(range(20))


def test_two_jobs_do_not_share_a_table(kept, send, topic, tmp_path) -> None:
    send(topic, 1)
    with (
        ParquetTable(tmp_path / "table"),
        pytest.raises(Exception, match="another job is writing there"),
    ):
        kept("parquet")


def test_a_table_stays_of_its_format(kept, send, topic, tmp_path) -> None:
    """The other one would begin where this one is, without what is before."""
    send(topic, 1)
    kept("parquet")
    with pytest.raises(OptionError, match="is a table of Parquet files, and cannot be a Delta"):
        kept("delta")
