"""PUBLISH of a client: stored once, acknowledged in order, within its quotas."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from magnetar.core.entry.mqtt import form
from magnetar.core.entry.mqtt.properties import fields
from magnetar.core.kernel.errors import BrokerError, Fenced, NotReady, StorageFailed
from magnetar.core.kernel.names import TopicName
from magnetar.core.link.memory.pauses import PAUSE_PUBLISHES
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.delivery.logs import MqttLog
from magnetar.wire.mqtt.session.client import ConnectedClient
from magnetar.wire.mqtt.session.publish import without_alias
from magnetar.wire.mqtt.session.unreleased import ID_BYTES
from magnetar.wire.mqtt.storage.retained import RetainedWrite
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V5, acknowledge, publish, subscribe

FUNNEL = TopicName.parse("public/default/mqtt")


async def stored(stage: Stage, name: TopicName = FUNNEL) -> list[list[tuple[bytes, bytes]]]:
    """The runs in a log: topics and payloads of each."""
    topic = (await stage.broker.topic(name)).stored
    assert topic is not None
    position, found = topic.ledger.chain.first, []
    while topic.ledger.chain.has(position):
        part = await topic.ledger.read(position, 1, 1)
        found.append([(one.topic, one.payload) for one in form.run_of(part.sent(0))])
        position = topic.ledger.chain.after(position)
    return found


def alias(number: int) -> bytes:
    return b"\x23" + number.to_bytes(2, "big")


async def test_consecutive_packets_are_one_entry(stage: Stage) -> None:
    writer = await stage.connected()
    await writer.says(publish("first", b"0"))
    await writer.says(*(publish(f"t/{n}", b"%d" % n, qos=n % 2, number=n) for n in range(1, 4)))
    first, second = await stored(stage)
    assert first == [(b"first", b"0")]
    assert second == [(b"t/1", b"1"), (b"t/2", b"2"), (b"t/3", b"3")]


async def test_each_rule_has_its_log() -> None:
    from magnetar.wire.mqtt.mapping.rules import MappingRule

    rules = (MappingRule("orders/#", "orders"), MappingRule("old/+", "{each}"))
    async with serving(rules=rules) as stage:
        writer = await stage.connected()
        answers = await writer.says(
            publish("orders/1", b"a", qos=1, number=1), publish("old/x", b"b", qos=1, number=2),
            publish("else", b"c", qos=1, number=3), publish("orders/2", b"d", qos=1, number=4),
        )  # fmt: skip
        assert [one.number for one in answers] == [1, 2, 3, 4], "in their order [MQTT-4.6.0-2]"
        assert await stored(stage, TopicName.parse("public/default/orders")) == [
            [(b"orders/1", b"a")], [(b"orders/2", b"d")]
        ]  # fmt: skip
        assert await stored(stage, TopicName.parse("public/default/old%2Fx")) == [
            [(b"old/x", b"b")]
        ]
        assert await stored(stage) == [[(b"else", b"c")]]


async def test_nothing_is_acknowledged_before_it_is_stored() -> None:
    stores = Stores(sync_at_once=False)
    async with serving(stores) as stage:
        writer = stage.stranger()
        writer.feed(peer.connect("w"))
        while not writer.session.client:
            await settled()
            stores.ledgers.sync()
        await writer.receive()
        writer.feed(publish("t", b"1", qos=1, number=1), publish("t", b"2", qos=2, number=2))
        assert await writer.receive() == []
        answers = []
        for _ in range(10):
            stores.ledgers.sync()
            answers += await writer.receive()
        assert [(one.kind, one.number) for one in answers] == [("PUBACK", 1), ("PUBREC", 2)]


async def test_a_repeated_identifier_of_qos_2(stage: Stage) -> None:
    """[MQTT-4.3.3-10]: not stored again before PUBREL, whatever its DUP flag; then a new one."""
    writer = await stage.connected()
    await writer.says(publish("t", b"1", qos=2, number=1))
    for dup in (False, True):
        (pubrec,) = await writer.says(publish("t", b"1", qos=2, number=1, dup=dup))
        assert (pubrec.kind, pubrec.number) == ("PUBREC", 1)
    answers = await writer.says(
        publish("t", b"2", qos=2, number=2), publish("t", b"2", qos=2, number=2, dup=True)
    )
    assert [one.number for one in answers] == [2]
    await writer.says(acknowledge("PUBREL", 1))
    await writer.says(publish("t", b"3", qos=2, number=1))
    payloads = [payload for run in await stored(stage) for _, payload in run]
    assert payloads == [b"1", b"2", b"3"]


async def test_aliases(stage: Stage) -> None:
    """[MQTT-3.3.2-12] and 3.3.2.3.4: they are replaced before a message is stored."""
    reader = await stage.subscribed("r", ("#", 0), version=V5)
    writer = await stage.connected("w", version=V5)
    answers = await writer.says(
        publish("long/name", b"1", version=V5, properties=alias(1)),
        publish("", b"2", version=V5, properties=b"\x01\x01" + alias(1)),
        publish("other", b"3", version=V5, properties=alias(1), qos=1, number=1),
        publish("", b"4", version=V5, properties=alias(1)),
    )
    assert [one.kind for one in answers] == ["PUBACK"]
    got = await reader.receive()
    assert [(one.topic, one.payload, one.properties) for one in got] == [
        ("long/name", b"1", b""), ("long/name", b"2", b"\x01\x01"),
        ("other", b"3", b""), ("other", b"4", b""),
    ]  # fmt: skip


@pytest.mark.parametrize(("number", "reason"), [(65, 0x94), (0, 0x94), (2, 0x82)])
async def test_an_alias_that_is_not_valid(stage: Stage, number: int, reason: int) -> None:
    """[MQTT-3.3.2-9]; one that is not set is a protocol error."""
    writer = await stage.connected("w", version=V5)
    answers = await writer.says(publish("", b"x", version=V5, properties=alias(number)))
    assert [(one.kind, one.reasons) for one in answers] == [("DISCONNECT", (reason,))]


async def test_more_messages_than_receive_maximum() -> None:
    """[MQTT-3.3.4-7], as a server (4.9): DISCONNECT with 0x93."""
    async with serving(receive_maximum=2) as stage:
        writer = await stage.connected("w", version=V5)
        for number in (1, 2):
            await writer.says(publish("t", b"x", version=V5, qos=2, number=number))
        await writer.says(acknowledge("PUBREL", 1))
        await writer.says(publish("t", b"x", version=V5, qos=2, number=3))
        assert writer.line.ending is None
        answers = await writer.says(publish("t", b"x", version=V5, qos=1, number=4))
        assert [(one.kind, one.reasons) for one in answers] == [("DISCONNECT", (0x93,))]


@pytest.mark.parametrize("version", [peer.V3, V5])
async def test_storage_fails(stage: Stage, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """5.0 has reasons; before, only the end of the connection makes a client send again."""
    writer = await stage.connected("w", version=version)
    await writer.says(publish("t", b"x", qos=1, number=1, version=version))
    topic = (await stage.broker.topic(FUNNEL)).stored
    assert topic is not None
    monkeypatch.setattr(
        topic, "publish", lambda _entries, _counts, done: done(StorageFailed("the disk is gone"))
    )
    answers = await writer.says(
        publish("t", b"a", qos=1, number=2, version=version),
        publish("t", b"b", qos=2, number=3, version=version),
        publish("t", b"c", version=version),
    )
    if version == V5:
        assert [(one.kind, one.number, one.reasons) for one in answers] == [
            ("PUBACK", 2, (0x80,)), ("PUBREC", 3, (0x80,))
        ]  # fmt: skip
        assert writer.line.ending is None
    else:
        assert answers == []
        assert writer.line.ending == "the disk is gone"
    monkeypatch.undo()
    (again,) = await (await stage.connected("x")).says(publish("t", b"b", qos=2, number=3))
    assert again.kind == "PUBREC"


@pytest.mark.parametrize("error", [Fenced("the topic is being unloaded"), NotReady("it moves")])
@pytest.mark.parametrize("version", [peer.V3, V5])
async def test_a_topic_that_is_away(
    stage: Stage, version: int, error: BrokerError, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is acknowledged, so that the client sends it again."""
    writer = await stage.connected("w", version=version)
    await writer.says(publish("t", b"x", qos=1, number=1, version=version))
    topic = (await stage.broker.topic(FUNNEL)).stored
    assert topic is not None
    monkeypatch.setattr(topic, "publish", lambda _entries, _counts, done: done(error))
    answers = await writer.says(
        publish("t", b"a", qos=1, number=2, version=version),
        publish("t", b"b", qos=2, number=3, version=version),
        publish("u", b"c", qos=1, number=4, version=version),
    )
    expected = [("DISCONNECT", (0x89,))] if version == V5 else []
    assert [(one.kind, one.reasons) for one in answers] == expected
    assert writer.line.ending == str(error)


async def test_a_message_that_waits_while_the_server_stops(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not stored, as the last record does not name it: its repeat would be stored too."""
    mark = ConnectedClient.mark

    async def mark_and_stop(client: ConnectedClient, log: MqttLog) -> None:
        await mark(client, log)
        await stage.services.stop()

    monkeypatch.setattr(ConnectedClient, "mark", mark_and_stop)
    writer = await stage.connected("w", clean=False)
    assert await writer.says(publish("t", b"x", qos=2, number=1)) == []
    assert await stored(stage) == []


async def test_a_topic_that_no_log_can_have(stage: Stage) -> None:
    writer = await stage.connected("w", version=V5)
    name = "persistent://public/none/t"
    answers = await writer.says(
        publish(name, b"x", version=V5, qos=1, number=1),
        publish("t", b"y", version=V5, qos=1, number=2),
    )
    assert [(one.number, one.reasons) for one in answers] == [(1, (0x90,)), (2, ())]


async def test_reading_pauses_while_much_waits_for_storage() -> None:
    stores = Stores(sync_at_once=False)
    async with serving(stores, pending_messages_max=4) as stage:
        writer = stage.stranger()
        writer.feed(peer.connect("w"))
        await writer.receive()
        writer.feed(publish("t", b"x", qos=1, number=1))
        for _ in range(5):
            stores.ledgers.sync()
            await writer.receive()
        writer.feed(*(publish("t", b"x", qos=1, number=n) for n in range(2, 7)))
        await settled()
        assert writer.line.paused & PAUSE_PUBLISHES
        for _ in range(3):
            stores.ledgers.sync()
            await settled()
        assert not writer.line.paused & PAUSE_PUBLISHES


def test_a_packet_without_its_alias() -> None:
    user = b"\x26" + peer.text("a") + peer.text("b")
    packet = publish("t", b"x", version=V5, qos=1, number=9, properties=user + alias(3) + user)
    properties = without_alias(packet)
    assert properties == user + user
    assert [(one.name, one.value) for one in fields(properties)] == [(b"a", b"b")] * 2


async def test_an_alias_that_gets_another_topic(stage: Stage) -> None:
    """In one read, each message has the topic that the alias had before it."""
    reader = await stage.subscribed("r", ("x/#", 0))
    writer = await stage.connected("w", version=V5)
    alias = b"\x23\0\1"
    await writer.says(publish("x/1", b"1", version=V5, properties=alias))
    await writer.says(
        publish("", b"2", version=V5, properties=alias),
        publish("x/2", b"3", version=V5, properties=alias),
        publish("", b"4", version=V5, properties=alias),
    )
    got = [(one.topic, one.payload) for one in await reader.receive()]
    assert got == [("x/1", b"1"), ("x/1", b"2"), ("x/2", b"3"), ("x/2", b"4")]


async def test_a_crash_before_a_message_is_retained(monkeypatch: pytest.MonkeyPatch) -> None:
    """[MQTT-3.3.1-5] holds for a message of QoS 2 that is sent again: it was in neither place."""
    stores = Stores()
    async with serving(stores) as stage:
        writer = await stage.connected("w", clean=False)
        first = await writer.says(publish("first", b"1", qos=2, number=1, retain=True))
        await writer.completes(*first)
        monkeypatch.setattr(stage.services.retained, "put", lambda *_: None)
        assert await writer.says(publish("t", b"2", qos=2, number=2, retain=True)) == []
        assert [payload for run in await stored(stage) for _, payload in run] == [b"1"]
    async with serving(stores) as stage:
        writer, _ = await stage.connects("w", clean=False)
        answers = await writer.says(publish("t", b"2", qos=2, number=2, retain=True, dup=True))
        assert [one.kind for one in await writer.completes(*answers)] == ["PUBCOMP"]
        assert [payload for run in await stored(stage) for _, payload in run] == [b"1", b"2"]
        reader = await stage.connected("r")
        _, *retained = await reader.says(subscribe(("t", 1)))
        assert [one.payload for one in retained] == [b"2"]


async def test_a_retained_message_does_not_change_the_order(stage: Stage) -> None:
    """[MQTT-4.6.0-6]: packets behind it wait until it is stored, also when that takes its time."""
    writer = await stage.connected("w")
    for number in (1, 4):
        packets = [
            publish(f"t/{n}", b"%d" % n, qos=n % 3, number=n, retain=n == number)
            for n in range(number, number + 3)
        ]
        for packet in packets:  # in reads of their own, without a wait between them
            writer.feed(packet)
        await writer.receive()
    payloads = [payload for run in await stored(stage) for _, payload in run]
    assert payloads == [b"1", b"2", b"3", b"4", b"5", b"6"]


async def test_a_message_that_cannot_be_retained_is_not_stored(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = await stage.connected("w", version=V5)
    await writer.says(publish("t", b"1", qos=1, number=1, retain=True, version=V5))
    with monkeypatch.context() as patch:

        def put(_message: object, _now: int, done: Callable[[BrokerError], None]) -> RetainedWrite:
            done(StorageFailed("the disk is gone"))
            return RetainedWrite()

        patch.setattr(stage.services.retained, "put", put)
        writer.feed(publish("t", b"2", qos=2, number=2, retain=True, version=V5))
        writer.feed(publish("t", b"3", qos=1, number=3, version=V5))
        answers = await writer.receive()
    assert [(one.kind, one.number, one.reasons) for one in answers] == [
        ("PUBREC", 2, (0x80,)), ("PUBACK", 3, ())
    ]  # fmt: skip
    assert [payload for run in await stored(stage) for _, payload in run] == [b"1", b"3"]


@pytest.mark.parametrize("version", [peer.V3, V5])
async def test_more_retained_topics_than_allowed(version: int) -> None:
    """Such a message is not stored, however often a client of 3.1.1 sends it. Others are."""
    async with serving(retained_names_bytes_max=1) as stage:
        writer = await stage.connected("w", clean=False, version=version)
        await writer.says(publish("a", b"x", qos=1, number=1, retain=True, version=version))
        for _ in range(2):
            writer, _connack = await stage.connects("w", clean=False, version=version)
            answers = await writer.says(
                publish("t", b"1", qos=1, number=1, version=version),
                publish("new", b"2", qos=2, number=2, retain=True, version=version),
                publish("a", b"3", qos=1, number=3, retain=True, version=version),
                publish("new", b"", qos=1, number=4, retain=True, version=version),
            )
            if version == V5:
                reasons = {one.number: one.reasons for one in answers}
                assert reasons == {1: (), 2: (0x97,), 3: (), 4: ()}
                assert writer.line.ending is None
            else:
                assert [one.number for one in answers] == [1]
                assert writer.line.ending
            await writer.is_cut()
        found = {payload for run in await stored(stage) for _, payload in run}
        assert found == {b"x", b"1", b"3", b""}


async def test_a_duplicate_whose_log_cannot_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """[MQTT-4.3.3-10]: the message is stored and PUBREC was lost, so that is sent again."""
    stores = Stores()
    expiry = b"\x11\0\0\0\x64"
    async with serving(stores) as stage:
        writer = await stage.connected("w", clean=False, version=V5, properties=expiry)
        await writer.says(publish("t", b"1", qos=2, number=1, version=V5))
    async with serving(stores) as stage:

        async def fails(_topic: str) -> None:
            raise StorageFailed("the disk is gone")

        writer, _ = await stage.connects("w", clean=False, version=V5, properties=expiry)
        monkeypatch.setattr(stage.services.logs, "open_for", fails)
        answers = await writer.says(
            publish("t", b"1", qos=2, number=1, dup=True, version=V5),
            publish("new", b"2", qos=2, number=2, version=V5),
        )
        assert sorted((one.kind, one.number, one.reasons) for one in answers) == [
            ("PUBREC", 1, ()), ("PUBREC", 2, (0x80,))
        ]  # fmt: skip


async def test_refused_messages_of_qos_2_free_no_memory_of_others(stage: Stage) -> None:
    memory = stage.services.unreleased_memory
    writer = await stage.connected("w", version=V5)
    await writer.says(*(publish("t", qos=2, number=n, version=V5) for n in (1, 2, 3)))
    taken = memory.bytes
    assert taken == 3 * ID_BYTES
    answers = await writer.says(
        *(publish(f"$SYS/{n}", qos=2, number=n, version=V5) for n in (4, 5))
    )
    assert [one.reasons for one in answers] == [(0x90,)] * 2
    assert memory.bytes == taken
    await writer.says(acknowledge("PUBREL", 1))
    assert memory.bytes == 2 * ID_BYTES
    await writer.is_cut()
    assert memory.bytes == 0


class Held:
    """Writes of retained messages, which the test lets go on."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writes: list[Callable[[], None]] = []
        log = stage.services.retained._stored
        append = log.append
        hold = lambda *words: self.writes.append(partial(append, *words))  # noqa: E731
        monkeypatch.setattr(log, "append", hold)


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_a_message_of_qos_1_is_stored_in_both_places_at_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, qos: int
) -> None:
    """And acknowledged after both; one of QoS 2 is retained before."""
    writer = await stage.connected("w")
    await writer.says(publish("t", b"1", qos=1, number=1, retain=True))
    held = Held(stage, monkeypatch)
    assert await writer.says(publish("t", b"2", qos=qos, number=2, retain=True)) == []
    payloads = [payload for run in await stored(stage) for _, payload in run]
    assert payloads == ([b"1"] if qos == 2 else [b"1", b"2"])
    held.writes.pop()()
    assert [one.kind for one in await writer.receive()] == [[], ["PUBACK"], ["PUBREC"]][qos]
    assert not held.writes


async def test_who_subscribes_then_gets_what_is_being_retained(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would get neither: its subscription begins behind the message. It need not wait for
    later ones.
    """
    writer = await stage.connected("w")
    await writer.says(publish("other", b"1", qos=1, number=1, retain=True))
    held = Held(stage, monkeypatch)
    await writer.says(publish("t", b"2", qos=1, number=2, retain=True))
    reader = await stage.connected("r")
    assert [one.kind for one in await reader.says(subscribe(("t", 1)))] == ["SUBACK"]
    await writer.says(publish("other", b"3", qos=1, number=3, retain=True))
    held.writes.pop(0)()
    assert [(one.payload, one.retain) for one in await reader.receive()] == [(b"2", True)]
    assert len(held.writes) == 1
