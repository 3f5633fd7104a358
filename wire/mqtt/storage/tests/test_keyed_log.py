"""A compacted topic as a mapping: the last value counts, also after a restart."""

from __future__ import annotations

import logging

import pytest
import trio

from magnetar.core.broker.broker import Broker
from magnetar.core.entry.mqtt import form
from magnetar.core.entry.mqtt.run import head, packet
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, Corrupted, NotReady
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import Position
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.wire.mqtt.delivery.stored_messages import KeyedMessage
from magnetar.wire.mqtt.storage.keyed_log import KeyedLog

NAME = TopicName.parse("persistent://pulsar/system/__test")


async def contents(log: KeyedLog) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}

    def apply(message: KeyedMessage) -> None:
        found[message.packet.topic] = message.packet.payload

    await log.replay(apply)
    return {key: value for key, value in found.items() if value}


async def test_the_last_value_of_each_key() -> None:
    stores = Stores()
    async with running(stores) as broker:
        log = KeyedLog(broker, NAME)
        assert not await log.exists()
        for number in range(30):
            await log.store(b"k%d" % (number % 7), b"%d" % number)
        await log.store(b"k3", b"")
        expected = {b"k%d" % (n % 7): b"%d" % n for n in range(30) if n % 7 != 3}
        assert await contents(log) == expected
    async with running(stores) as broker:
        log = KeyedLog(broker, NAME)
        assert await log.exists()
        assert await contents(log) == expected


async def test_its_policies_make_it_a_mapping() -> None:
    async with running() as broker:
        topic = await KeyedLog(broker, NAME).open()
        policies = topic.policies
        assert policies.compaction is not None
        assert policies.retention.retention_time_in_minutes == -1
        assert not policies.inactive_topics.delete_while_inactive


async def test_one_entry_by_its_position() -> None:
    async with running() as broker:
        log = KeyedLog(broker, NAME)
        await log.open()
        positions: list[Position | BrokerError] = []
        for value in (b"a", b"b"):
            log.put(b"k", value, positions.append)
            await settled()
        for position, value in zip(positions, (b"a", b"b"), strict=True):
            assert not isinstance(position, BrokerError)
            assert (await log.message_at(position)).packet.payload == value
        with pytest.raises((Corrupted, BrokerError)):
            with trio.fail_after(1):
                await log.message_at((99, 0))


async def test_before_it_is_open_nothing_is_written() -> None:
    async with running() as broker:
        results: list[object] = []
        KeyedLog(broker, NAME).put(b"k", b"v", results.append)
        assert [type(one) for one in results] == [NotReady]


async def test_an_unloaded_topic_is_loaded_again() -> None:
    async with running() as broker:
        log = KeyedLog(broker, NAME)
        await log.store(b"k", b"1")
        await broker.unload(NAME)
        assert not log.is_open
        await log.store(b"k", b"2")
        assert await contents(log) == {b"k": b"2"}


async def test_damaged_entries_are_skipped(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as broker:
        log = KeyedLog(broker, NAME)
        topic = await log.open()
        await log.store(b"a", b"1")
        topic.publish([form.head(1, 0) + b"\x01\x00\x00\x09"], [1], lambda _result: None)
        await settled()
        await log.store(b"b", b"2")
        with caplog.at_level(logging.ERROR):
            assert await contents(log) == {b"a": b"1", b"b": b"2"}
        assert "is skipped" in caplog.text


async def test_what_is_appended_while_it_is_unloaded_is_stored_in_order() -> None:
    async with running() as broker:
        log = KeyedLog(broker, NAME)
        await log.store(b"k", b"0")
        await broker.unload(NAME)
        results: list[Position | BrokerError] = []
        for number in (1, 2, 3):
            log.put(b"k", b"%d" % number, results.append)
        await settled()
        assert all(isinstance(result, tuple) for result in results)
        assert results == sorted(results)
        assert await contents(log) == {b"k": b"3"}


async def test_what_is_appended_fails_if_it_cannot_be_loaded_again() -> None:
    async with running() as broker:
        log = KeyedLog(broker, NAME)
        await log.store(b"k", b"0")
        await broker.stop()
        results: list[Position | BrokerError] = []
        for number in (1, 2):
            log.put(b"k", b"%d" % number, results.append)
        await settled()
        assert [type(result) for result in results] == [NotReady, NotReady]


async def stored_as(broker: Broker, log: KeyedLog, run: bytes) -> None:
    topic = await log.open()
    done = Completion[Position]()
    topic.publish([form.head(1, 1) + run], [1], done.done)
    await done.result()


@pytest.mark.parametrize(
    ("packet", "named"),
    [
        (packet(0x31, b"key", None, b"value")[:-1], b"key"),
        (packet(0x31, b"\xff", None, b"value")[:-1], b"\xff"),
        (b"\x31\x7f\0\7key", None),
        (b"\x31\xff\xff\xff\xff", None),
    ],
)
async def test_a_damaged_entry_is_named_by_its_key(
    caplog: pytest.LogCaptureFixture, packet: bytes, named: bytes | None
) -> None:
    async with running() as broker:
        log = KeyedLog(broker, NAME)
        await stored_as(broker, log, head(b"", has_properties=False) + packet)
        await log.store(b"other", b"1")
        assert await contents(log) == {b"other": b"1"}
    (line,) = [line for line in caplog.messages if "is skipped" in line]
    assert (f"of {named!r}" if named else "of an unknown key") in line


async def test_what_its_reader_cannot_apply_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as broker:
        log = KeyedLog(broker, NAME)
        for key in (b"a", b"b", b"c"):
            await log.store(key, b"1")
        found = []

        def apply(message: KeyedMessage) -> None:
            if message.packet.topic == b"b":
                raise Corrupted("it is damaged")
            found.append(message.packet.topic)

        await log.replay(apply)
    assert found == [b"a", b"c"]
    (line,) = [line for line in caplog.messages if "is skipped" in line]
    assert "of b'b'" in line
    assert line.endswith("it is damaged")
