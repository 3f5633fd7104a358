"""The topic aliases that one client has set (3.3.2.3.4), in a memory that all clients share.

Invariant: `_bytes` of the shared memory are taken, until `close`.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from magnetar.core.entry.mqtt import properties as stored_properties
from magnetar.core.entry.mqtt import run as runs
from magnetar.wire.mqtt.budget import MemoryBudget
from magnetar.wire.mqtt.codec.properties import Property
from magnetar.wire.mqtt.codec.publishes import Publish
from magnetar.wire.mqtt.errors import PacketError
from magnetar.wire.mqtt.reason_codes import ReasonCode

ALIAS_BYTES: Final = 120
"""What a topic alias costs besides the topic."""


class ReceivedAliases:
    """See the module's docstring."""

    __slots__ = ("_bytes", "_limit", "_memory", "_topics")

    def __init__(self, memory: MemoryBudget, limit: int) -> None:
        """`limit` is the largest alias."""
        self._memory = memory
        self._limit = limit
        self._topics: dict[int, str] = {}
        self._bytes = 0

    def resolve(self, packets: list[Publish]) -> None:
        """Set and replace topic aliases, in order. What was resolved before stays as it is."""
        for place, packet in enumerate(packets):
            alias = packet.properties.get(Property.TOPIC_ALIAS) if packet.properties else None
            if alias is None:
                continue
            if alias > self._limit:
                text = f"topic alias {alias} is too large"
                raise PacketError(ReasonCode.TOPIC_ALIAS_INVALID, text)
            if packet.topic:
                self._set_alias(alias, packet.topic)
                continue
            found = self._topics.get(alias)
            if found is None:
                raise PacketError(ReasonCode.PROTOCOL_ERROR, f"topic alias {alias} is not set")
            packets[place] = replace(packet, topic=found)

    def close(self) -> None:
        """The connection is closed: forget them."""
        self._topics.clear()
        self._give_back(self._bytes)

    def _set_alias(self, alias: int, topic: str) -> None:
        before = self._topics.get(alias)
        if before == topic:
            return
        more = ALIAS_BYTES + len(topic)
        if not self._memory.take(more):
            raise PacketError(ReasonCode.QUOTA_EXCEEDED, "no memory for topic aliases")
        self._topics[alias] = topic
        self._bytes += more
        if before is not None:
            self._give_back(ALIAS_BYTES + len(before))

    def _give_back(self, size: int) -> None:
        self._bytes -= size
        self._memory.give_back(size)


def without_alias(packet: bytes) -> bytes:
    """The encoded properties of a PUBLISH of 5.0, without their length and a topic alias."""
    run = runs.opened(runs.head(b"", has_properties=True) + packet)
    (found,) = run
    pieces, at = [], 0
    for field in stored_properties.fields(found.properties):
        size = stored_properties.size_of(field)
        if field.number != stored_properties.TOPIC_ALIAS:
            pieces.append(found.properties[at : at + size])
        at += size
    return b"".join(pieces)
