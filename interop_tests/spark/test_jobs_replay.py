"""The job that copies messages from topic to topic."""

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from msgspec.structs import replace

from magnetar.spark_connector.jobs import replay
from magnetar.spark_connector.jobs.session import TopicSelection

from .conftest import kafka_producer

pytestmark = pytest.mark.spark


def test_messages_are_copied_in_order_and_once(spark, lending, read, topic) -> None:
    admin = AdminClient({"bootstrap.servers": lending.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 2)])[topic].result(10)
    producer = kafka_producer(lending)
    for number in range(100):
        producer.produce(
            topic, str(number), f"k{number % 10}", partition=number % 2,
            headers=[("n", b"%d" % number)], timestamp=1000 + number,
        )  # fmt: skip
    producer.flush()
    target = f"{topic}-copy"
    chosen = replay.ReplayOptions(
        TopicSelection(lending.http_url, (topic,), options={"minPartitions": "4"}),
        target,
        where="CAST(CAST(value AS STRING) AS INT) >= 20",
        name=f"once-{topic}",
    )
    told = replay.run(spark, replay.ReplayOptions(chosen.topics, target, dry_run=True))
    assert told.facts["messages"] == 100
    assert [row[:3] for row in told.tables[0].rows] == [
        (f"persistent://public/default/{topic}", partition, 50) for partition in range(2)
    ]
    assert replay.run(spark, chosen).facts == {"messages": 80, "to": target}
    again = replay.run(spark, replace(chosen, where="")).facts
    assert (again["messages"], "nothing is copied" in again["written before"]) == (0, True)
    rows = read(target)
    assert len(rows) == 80
    for partition in range(2):
        values = [int(row.value) for row in rows if int(row.value) % 2 == partition]
        assert values == list(range(20 + partition, 100, 2))
    first = next(row for row in rows if int(row.value) == 20)
    assert (bytes(first.key), first.event_time.microsecond) == (b"k0", 20_000)
    assert [(one["key"], bytes(one["value"])) for one in first.headers] == [("n", b"20")]


def test_a_topic_is_not_copied_to_itself(spark, lending, connect, topic) -> None:
    connect(lending.pulsar_url).create_producer(topic).send(b"x")
    selection = TopicSelection(lending.http_url, (topic,))
    with pytest.raises(Exception, match="is copied to itself"):
        replay.run(spark, replay.ReplayOptions(selection, topic))
