"""The subscription and the assignment inside JoinGroup and SyncGroup of consumers.

To the group protocol they are opaque bytes; tools and the broker decode them to see the partitions
of each member. On the wire an int16 with the version precedes each (`ConsumerProtocol.java`).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from magnetar.wire.kafka.codec.declare import Bytes, Int32, Message, String, since
from magnetar.wire.kafka.messages.parts import TopicPartitions


class ConsumerSubscription(Message):
    """The subscription of a member, and the partitions that it owns (KIP-429)."""

    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)

    topics: list[String]
    user_data: Bytes | None = None
    owned_partitions: Annotated[list[TopicPartitions], since(1)] = []
    generation_id: Annotated[Int32, since(2)] = -1
    rack_id: Annotated[String | None, since(3)] = None


class ConsumerAssignment(Message):
    """The assignment of a member."""

    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)

    assigned_partitions: list[TopicPartitions]
    user_data: Bytes | None = None
