"""What dashboards of Kafka look for."""

from prometheus_client.parser import text_string_to_metric_families

from core.names import TopicName
from wire.http.metrics.kafka_names import OF_PARTITIONS, OFFSET, labels_of
from wire.http.tests.visitor import Visitor


async def test_partitions_have_offsets_and_traffic(visitor: Visitor) -> None:
    await visitor.publish("a-partition-1", [b"x" * 10] * 5)
    page = (await visitor.ask("GET", "/metrics")).text
    found = {
        sample.name: (sample.labels, sample.value)
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name.startswith("kafka_")
    }
    labels = {"topic": "a", "partition": "1"}
    assert found[OFFSET] == (labels, 5)
    assert found["kafka_topic_partition_oldest_offset"] == (labels, 0)
    assert found["kafka_server_brokertopicmetrics_messagesin_total"] == (labels, 5)
    assert found["kafka_server_brokertopicmetrics_bytesin_total"] == (labels, 50)
    assert found["kafka_server_replicamanager_leadercount"] == ({}, 1)
    assert found["kafka_controller_kafkacontroller_activecontrollercount"] == ({}, 1)
    assert {name for name, _, _ in OF_PARTITIONS} <= found.keys()


async def test_what_stores_nothing_has_no_offsets(visitor: Visitor) -> None:
    await visitor.broker.topic(TopicName.parse("non-persistent://public/default/v"))
    assert 'partition="0"' not in (await visitor.ask("GET", "/metrics")).text


def test_topics_are_called_as_kafkas_clients_call_them() -> None:
    assert labels_of(TopicName.parse("t")) == '{topic="t",partition="0"}'
    elsewhere = TopicName.parse("persistent://a/b/t-partition-2")
    assert labels_of(elsewhere) == '{topic="a/b/t",partition="2"}'
