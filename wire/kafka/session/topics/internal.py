"""`__consumer_offsets`, in which Kafka keeps what groups commit: here a view, with nothing to read.

Clients look for it: tools count topics with and without the internal ones, monitors wait for it
before they ask for groups. Groups and offsets are stored elsewhere (`groups/group_records.py`,
cursors of topics), so it is shown as Kafka's is from the first group on (partitions, compacted,
`is_internal`), is empty, and takes nothing.
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
"""Which Kafka gives it."""


def is_meant(name: str | None, topic_id: bytes = NO_UUID) -> bool:
    """Whether it is called so, or by its id."""
    return topic_id == TOPIC_ID or name == OFFSETS


async def names(records: GroupRecords) -> list[str]:
    """Its name, once there is a group."""
    return [OFFSETS] if await records.names() else []


async def check_is_there(records: GroupRecords, partition: int = 0) -> None:
    """`TopicNotFound` while there is no group, or for a partition that it does not have."""
    if not 0 <= partition < PARTITIONS or not await names(records):
        raise TopicNotFound(f"{OFFSETS} is not there, or has no partition {partition}")


def refuse_change(name: str | None, topic_id: bytes = NO_UUID) -> None:
    """In Kafka's words for those who write to it."""
    if is_meant(name, topic_id):
        raise KafkaRefusal(
            INVALID_TOPIC, f"{OFFSETS} is internal, and a view: nothing can be changed"
        )
