"""`pushdown`: a query's filters decide what is read, and change no answer."""

import httpx
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, LessThan

from magnetar.spark_connector.options import parse
from magnetar.spark_connector.planning import planner

from .conftest import kafka_producer

pytestmark = pytest.mark.spark
SETTING = "spark.sql.python.filterPushdown.enabled"
ROWS = 300
PER_BATCH = 20
OFFSETS = [GreaterThanOrEqual(("offset",), 100), LessThan(("offset",), 150)]


@pytest.fixture
def filled(lending, topic):
    """Two partitions with as many rows, in entries of twenty."""
    where = f"{lending.http_url}/admin/v2/persistent/public/default/{topic}/partitions"
    httpx.put(where, json=2).raise_for_status()
    producer = kafka_producer(lending, **{"linger.ms": 10_000, "batch.num.messages": PER_BATCH})
    for number in range(ROWS):
        for partition in (0, 1):
            producer.produce(topic, b"%d" % number, partition=partition)
    assert producer.flush(20) == 0
    return topic


@pytest.fixture
def offering(spark):
    spark.conf.set(SETTING, "true")
    yield spark
    spark.conf.unset(SETTING)


@pytest.mark.parametrize(
    "wanted",
    [
        "partition = 1",
        "offset >= 100 AND offset < 150",
        "partition = 0 AND offset = 299",
        "offset IN (3, 205, 1000)",
        "offset > 1000",
        "NOT partition IN (1)",
        "topic LIKE '%nobody' OR offset < 5",
        "entry_id <= 2",
        "publish_time >= '2020-01-01' AND ledger_id >= 0",
        "publish_time < '2020-01-01'",
        "topic IS NULL",
        "length(value) = 1",
    ],
)
def test_the_answer_is_the_same(offering, lending, filled, wanted) -> None:
    options = {"service.url": lending.http_url, "topic": filled}
    reader = offering.read.format("magnetar").options(**options)
    whole = reader.load().collect()
    assert len(whole) == 2 * ROWS
    offering.conf.set(SETTING, "false")
    expected = sorted(reader.load().where(wanted).select("partition", "offset").collect())
    offering.conf.set(SETTING, "true")
    pruned = reader.options(pushdown="true", publishTimeSlackMs="60000").load().where(wanted)
    assert sorted(pruned.select("partition", "offset").collect()) == expected


def test_other_entries_are_not_read(lending, filled) -> None:
    chosen = parse({"service.url": lending.http_url, "topic": filled, "pushdown": "true"})
    read = [
        (one.log, one.last - one.first + 1)
        for task in planner.batch(chosen, 2, [EqualTo(("partition",), 1), *OFFSETS])
        for one in task.ranges
    ]
    assert read == [(f"persistent://public/default/{filled}-partition-1", 3)], "not 15, nor 30"
    (task,) = planner.batch(chosen, 2, [EqualTo(("topic",), "persistent://public/default/x")]) or [
        None
    ]
    assert task is None


def test_spark_says_which_setting_is_missing(spark, lending, filled) -> None:
    reader = spark.read.format("magnetar").option("service.url", lending.http_url)
    frame = reader.option("topic", filled).option("pushdown", "true").load().where("partition = 1")
    with pytest.raises(AnalysisException, match=SETTING):
        frame.collect()
