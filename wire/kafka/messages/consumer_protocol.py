"""What consumers of the classic protocol say inside JoinGroup and SyncGroup.

To the protocol these are bytes; tools and the broker look inside to see who reads what. On the wire
the version, an int16, stands before each of them.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from magnetar.wire.kafka.codec.declare import Bytes, Int32, Message, String, since
from magnetar.wire.kafka.messages.parts import TopicPartitions


class ConsumerSubscription(Message):
    """Which topics a member wants, and what it still holds."""

    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)

    topics: list[String]
    user_data: Bytes | None = None
    owned_partitions: Annotated[list[TopicPartitions], since(1)] = []
    generation_id: Annotated[Int32, since(2)] = -1
    rack_id: Annotated[String | None, since(3)] = None


class ConsumerAssignment(Message):
    """What the leader gives to one member."""

    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)

    assigned_partitions: list[TopicPartitions]
    user_data: Bytes | None = None
