"""The same figures under the names that Kafka's dashboards use. Pure.

Kafka itself has no metrics page. Dashboards read the output of Prometheus' JMX exporter, with the
rules that Strimzi and Confluent publish, and of `kafka_exporter`. This server shows the metrics of
both that apply to it: offsets, sizes and traffic of each topic, positions of groups, and a single
broker that leads everything.
"""

from __future__ import annotations

from typing import Final

from magnetar.core.kernel.names import DEFAULT_NAMESPACE, TopicName
from magnetar.core.topic.backlog import own_size
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.http.metrics.exposition import Family, gauge, label_text

OFFSET: Final = "kafka_topic_partition_current_offset"
OLDEST: Final = "kafka_topic_partition_oldest_offset"
SIZE: Final = "kafka_log_log_size"
MESSAGES_IN: Final = "kafka_server_brokertopicmetrics_messagesin_total"
BYTES_IN: Final = "kafka_server_brokertopicmetrics_bytesin_total"
BYTES_OUT: Final = "kafka_server_brokertopicmetrics_bytesout_total"
OF_PARTITIONS: Final = (
    (OFFSET, "gauge", "The offset that the next message gets"),
    (OLDEST, "gauge", "The offset of the first message that is stored"),
    (SIZE, "gauge", "Bytes stored"),
    (MESSAGES_IN, "counter", "Messages published, by any protocol"),
    (BYTES_IN, "counter", "Bytes published, by any protocol"),
    (BYTES_OUT, "counter", "Bytes delivered to subscriptions"),
)
GROUP_OFFSET: Final = "kafka_consumergroup_current_offset"
GROUP_LAG: Final = "kafka_consumergroup_lag"
OF_GROUPS: Final = (
    (GROUP_OFFSET, "gauge", "The committed offset of the group"),
    (GROUP_LAG, "gauge", "Offsets from there to the end"),
)


def labels_of(name: TopicName, group: str = "") -> str:
    """Labels with the topic and partition as Kafka clients name them."""
    base = name.base
    namespace = str(base.namespace)
    called = base.local if namespace == DEFAULT_NAMESPACE else f"{namespace}/{base.local}"
    labels = (("topic", called), ("partition", str(max(name.partition_index, 0))))
    return label_text(((("consumergroup", group),) if group else ()) + labels)


def of_partition(topic: PersistentTopic, bytes_out: float) -> dict[str, float]:
    return {
        OFFSET: topic.ledger.confirmed_index,
        OLDEST: topic.ledger.first_index,
        SIZE: own_size(topic),
        MESSAGES_IN: topic.messages_in,
        BYTES_IN: topic.bytes_in,
        BYTES_OUT: bytes_out,
    }


def of_group(topic: PersistentTopic, offset: int) -> dict[str, float]:
    return {GROUP_OFFSET: offset, GROUP_LAG: max(topic.ledger.confirmed_index - offset, 0)}


def of_broker(partitions: int) -> list[Family]:
    """One broker that leads every loaded partition, and is the controller."""
    manager = "kafka_server_replicamanager"
    controller = "kafka_controller_kafkacontroller"
    return [
        gauge("kafka_brokers", "Brokers there are", 1),
        gauge(f"{manager}_partitioncount", "Partitions that are loaded", partitions),
        gauge(f"{manager}_leadercount", "Partitions that this broker leads: all", partitions),
        gauge(f"{manager}_underreplicatedpartitions", "There are no replicas to fall behind", 0),
        gauge(f"{manager}_offlinereplicacount", "There are no replicas", 0),
        gauge(f"{controller}_activecontrollercount", "This broker is the one controller", 1),
        gauge(f"{controller}_offlinepartitionscount", "Partitions without a leader", 0),
        gauge(f"{controller}_activebrokercount", "Brokers there are", 1),
    ]
