"""The topic aliases of one client, and the memory that they share with those of others."""

from __future__ import annotations

import pytest

from magnetar.core.entry.mqtt.run import packet
from magnetar.wire.mqtt.budget import MemoryBudget
from magnetar.wire.mqtt.codec.properties import Properties, Property
from magnetar.wire.mqtt.codec.publishes import Publish
from magnetar.wire.mqtt.errors import PacketError
from magnetar.wire.mqtt.reason_codes import ReasonCode
from magnetar.wire.mqtt.session.received_aliases import (
    ALIAS_BYTES,
    ReceivedAliases,
    without_alias,
)


def publish(topic: str, alias: int = 0) -> Publish:
    properties: Properties = {Property.TOPIC_ALIAS: alias} if alias else {}
    return Publish(0, topic, [], 1, 0, 0, 0, properties)


def topics(aliases: ReceivedAliases, *packets: Publish) -> list[str]:
    resolved = list(packets)
    aliases.resolve(resolved)
    return [one.topic for one in resolved]


def test_an_alias_stands_for_the_topic_that_was_sent_with_it_last() -> None:
    aliases = ReceivedAliases(MemoryBudget(1_000), 2)
    found = topics(aliases, publish("a", 1), publish("", 1), publish("b", 1), publish("", 1))
    assert found == ["a", "a", "b", "b"]


def test_the_memory_of_a_topic_is_given_back_when_another_has_its_alias() -> None:
    memory = MemoryBudget(2 * ALIAS_BYTES + 4)
    aliases = ReceivedAliases(memory, 2)
    topics(aliases, publish("a", 1), publish("abc", 1))
    assert memory.bytes == ALIAS_BYTES + 3
    with pytest.raises(PacketError) as refused:
        topics(aliases, publish("ab", 2))
    assert refused.value.reason is ReasonCode.QUOTA_EXCEEDED
    aliases.close()
    assert memory.bytes == 0


def test_aliases_that_are_too_large_or_not_set_are_refused() -> None:
    aliases = ReceivedAliases(MemoryBudget(1_000), 2)
    with pytest.raises(PacketError) as refused:
        topics(aliases, publish("a", 3))
    assert refused.value.reason is ReasonCode.TOPIC_ALIAS_INVALID
    with pytest.raises(PacketError) as refused:
        topics(aliases, publish("", 1))
    assert refused.value.reason is ReasonCode.PROTOCOL_ERROR


def test_an_alias_is_not_stored() -> None:
    alias, indicator = b"\x23\x00\x01", b"\x01\x01"
    assert without_alias(packet(0x30, b"a", alias + indicator, b"1")) == indicator
