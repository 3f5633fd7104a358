"""`__consumer_offsets`, the topic in which Kafka stores offsets: here an empty, read-only view.

Clients look for it: tools count topics with and without the internal ones, and monitors wait for it
before they list groups. Groups and offsets are stored elsewhere (`groups/group_records.py`, cursors
of topics). From the first group on the topic is listed as in Kafka (50 partitions, compacted,
`is_internal`). It is always empty, and writes are refused.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.errors import TopicNotFound
from magnetar.wire.kafka.codec.declare import NO_UUID
from magnetar.wire.kafka.configs import CLEANUP_POLICY, COMPRESSION_TYPE, SEGMENT_BYTES
from magnetar.wire.kafka.errors import INVALID_TOPIC, KafkaRefusal

if TYPE_CHECKING:
    from magnetar.wire.kafka.groups.group_records import GroupRecords

OFFSETS: Final = "__consumer_offsets"
PARTITIONS: Final = 50
"""Kafka's default for `offsets.topic.num.partitions`."""
TOPIC_ID: Final = uuid.uuid5(uuid.NAMESPACE_DNS, f"{OFFSETS}.magnetar").bytes
CONFIGS: Final[Mapping[str, str]] = {
    CLEANUP_POLICY: "compact",
    COMPRESSION_TYPE: "producer",
    SEGMENT_BYTES: "104857600",
}
"""As `GroupCoordinatorService.groupMetadataTopicConfigs` of Kafka 4.3."""


def is_meant(name: str | None, topic_id: bytes = NO_UUID) -> bool:
    """Whether a request names it, by name or by id."""
    return topic_id == TOPIC_ID or name == OFFSETS


async def names(records: GroupRecords) -> list[str]:
    """Its name if there is a group, else nothing."""
    return [OFFSETS] if await records.names() else []


async def check_is_there(records: GroupRecords, partition: int = 0) -> None:
    """Raise `TopicNotFound` if there is no group, or no such partition."""
    if not 0 <= partition < PARTITIONS or not await names(records):
        raise TopicNotFound(f"{OFFSETS} is not there, or has no partition {partition}")


def refuse_change(name: str | None, topic_id: bytes = NO_UUID) -> None:
    """Raise INVALID_TOPIC_EXCEPTION, as `ReplicaManager` of Kafka does for a write."""
    if is_meant(name, topic_id):
        raise KafkaRefusal(
            INVALID_TOPIC, f"{OFFSETS} is internal, and a view: nothing can be changed"
        )
