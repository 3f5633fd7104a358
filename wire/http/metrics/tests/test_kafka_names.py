"""What dashboards of Kafka look for."""

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.wire.http.metrics.kafka_names import (
    GROUP_LAG,
    GROUP_OFFSET,
    OF_PARTITIONS,
    OFFSET,
    labels_of,
)
from magnetar.wire.http.tests.visitor import OPTIONS, Visitor, visiting


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


async def test_groups_have_an_offset_and_a_lag() -> None:
    committed = {"group": 3, "beyond": 9}

    def committed_offset(_ledger: ManagedLedger, cursor: Cursor) -> int | None:
        return committed.get(cursor.name)

    options = msgspec.structs.replace(OPTIONS, committed_offset=committed_offset)
    async with visiting(options) as visitor:
        topic = await visitor.topic("a-partition-1")
        for name in ("group", "beyond", "of-pulsar"):
            await topic.subscription(name)
        await visitor.publish("a-partition-1", [b"x"] * 5)
        page = (await visitor.ask("GET", "/metrics")).text
    found = {
        (sample.name, sample.labels["consumergroup"]): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.labels.get("consumergroup")
    }
    assert found == {
        (GROUP_OFFSET, "group"): 3,
        (GROUP_LAG, "group"): 2,
        (GROUP_OFFSET, "beyond"): 9,
        (GROUP_LAG, "beyond"): 0,
    }


async def test_what_stores_nothing_has_no_offsets(visitor: Visitor) -> None:
    await visitor.broker.topic(TopicName.parse("non-persistent://public/default/v"))
    assert 'partition="0"' not in (await visitor.ask("GET", "/metrics")).text


def test_topics_are_called_as_kafkas_clients_call_them() -> None:
    assert labels_of(TopicName.parse("t")) == '{topic="t",partition="0"}'
    elsewhere = TopicName.parse("persistent://a/b/t-partition-2")
    assert labels_of(elsewhere) == '{topic="a/b/t",partition="2"}'
