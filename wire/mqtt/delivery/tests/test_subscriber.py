"""Messages from a log to clients: who lags catches up, and nobody gets anything twice."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import trio

from magnetar.core.entry.mqtt import form
from magnetar.core.entry.mqtt.properties import properties_of
from magnetar.core.entry.mqtt.run import head, packet
from magnetar.core.testing.bench import NO_AGE, Bench, settled
from magnetar.core.testing.broker import Stores
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.mqtt.codec.publishes import Publish, TopicNames, one_by_one, parse_publishes
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.delivery.feed import Feed, FeedReader
from magnetar.wire.mqtt.delivery.matcher import Matcher, TopicSubscription
from magnetar.wire.mqtt.delivery.subscriber import Subscriber
from magnetar.wire.mqtt.tests.peer import V3, V5, Received, acknowledge, publish, subscribe


class Outlet:
    """A connection that takes what it is given, or says that it is congested."""

    def __init__(self) -> None:
        self.congested = False
        self.lost = 0
        self.packets: list[tuple[Publish, bytes]] = []

    def send(self, pieces: Sequence[bytes], packets: int) -> None:
        data, before = b"".join(pieces), len(self.packets)
        end, found = parse_publishes(data, 0, TopicNames(), 10_000, has_properties=False)
        found = [single for one in found for single in one_by_one(data, one)]
        assert (end, len(found)) == (len(data), packets)
        self.packets += [(one, data[one.payload_at : one.end]) for one in found]
        assert len(self.packets) == before + packets

    def dropped(self, packets: int) -> None:
        self.lost += packets

    @property
    def payloads(self) -> list[bytes]:
        return [payload for _, payload in self.packets]


class Desk:
    """One topic, its feed, and subscribers."""

    def __init__(self, desk: Bench, topic: PersistentTopic) -> None:
        self.bench = desk
        self.topic = topic
        self.matcher: Matcher[FeedReader] = Matcher()
        self.feed = Feed(topic.name, self.matcher, lambda key: key, desk.env.spawn)
        self.feed.attach(topic)

    def subscriber(
        self, name: str, *filters: tuple[str, int], window: int = 10
    ) -> tuple[Subscriber, Outlet]:
        outlet = Outlet()
        made = Subscriber(name.encode(), outlet, window, self.bench.clock, self.bench.env.spawn)
        for filter, qos in filters:
            subscription = TopicSubscription(filter, qos)
            made.subscriptions.add(subscription)
            self.matcher.add(made, subscription)
        self.feed.join(made)
        return made, outlet

    async def publish(
        self, *messages: tuple[str, int, bytes], client: bytes = b"p", properties: bytes = b""
    ) -> None:
        """All in one entry."""
        run = head(client, has_properties=bool(properties)) + b"".join(
            packet(0x30 | qos << 1, topic.encode(), properties or None, payload)
            for topic, qos, payload in messages
        )
        sent = form.head(len(messages), self.bench.clock.wall_ms()) + run
        self.topic.publish([sent], [len(messages)], lambda _result: None)
        await settled()


@pytest.fixture
async def desk(nursery: trio.Nursery) -> Desk:
    made = Bench(nursery, NO_AGE, sync_at_once=True)
    return Desk(made, await made.topic())


async def test_the_lower_quality_of_service_counts(desk: Desk) -> None:
    _, outlet = desk.subscriber("a", ("t", 1))
    await desk.publish(("t", 0, b"0"), ("t", 1, b"1"), ("other", 2, b"x"), ("t", 2, b"2"))
    assert [(one.qos, one.packet_id) for one, _ in outlet.packets] == [(0, 0), (1, 1), (1, 2)]
    assert outlet.payloads == [b"0", b"1", b"2"]


async def test_who_lags_goes_on_when_half_of_its_window_is_free(desk: Desk) -> None:
    slow, outlet = desk.subscriber("slow", ("#", 1), window=4)
    _, quick = desk.subscriber("quick", ("#", 1), window=100)
    for number in range(10):
        await desk.publish(("t", 1, b"%d" % number), ("t", 0, b"zero %d" % number))
    ones = [payload for one, payload in outlet.packets if one.qos]
    assert ones == [b"0", b"1", b"2", b"3"], "so many as its window has"
    assert len(outlet.packets) == 4 + 10, "those of QoS 0 are not held up"
    assert len(quick.packets) == 20
    for number in (1, 2):
        assert slow.ids.acknowledged(number)
        slow.has_room()
    await settled()
    ones = [payload for one, payload in outlet.packets if one.qos]
    assert ones == [b"%d" % number for number in range(6)]


async def test_a_congested_connection_is_spared(desk: Desk) -> None:
    one, outlet = desk.subscriber("a", ("#", 1))
    await desk.publish(("t", 1, b"0"))
    outlet.congested = True
    await desk.publish(("t", 1, b"1"))
    await desk.publish(("t", 0, b"lost"), ("t", 1, b"2"))
    assert outlet.payloads == [b"0", b"1"], "it was congested after the second"
    assert one.dropped == 1
    outlet.congested = False
    one.has_room()
    await settled()
    assert outlet.payloads == [b"0", b"1", b"2"]
    await desk.publish(("t", 0, b"3"))
    assert outlet.payloads == [b"0", b"1", b"2", b"3"]


async def test_what_has_expired_or_is_too_large_is_not_sent(desk: Desk) -> None:
    one, outlet = desk.subscriber("a", ("#", 1), window=1)
    one.packet_bytes_max = 30
    expiring = properties_of([(b"mqtt.expires-at", b"%d" % (desk.bench.clock.wall_ms() + 5_000))],
                             desk.bench.clock.wall_ms())  # fmt: skip
    await desk.publish(("t", 1, b"first"))
    await desk.publish(("t", 1, b"expires"), properties=expiring)
    await desk.publish(("t", 1, b"x" * 40), ("t", 1, b"last"))
    desk.bench.clock.forward(6)
    assert one.ids.acknowledged(1)
    one.has_room()
    await settled()
    assert outlet.payloads == [b"first", b"last"]
    assert one.dropped == 1
    assert len(one.ids) == 1


async def test_what_is_no_longer_in_memory_is_read(desk: Desk) -> None:
    one, outlet = desk.subscriber("a", ("#", 1), window=2)
    for number in range(12):
        await desk.publish(("t", 1, b"%d" % number))
    desk.bench.cache.bytes_max = 0
    await desk.publish(("t", 1, b"12"))
    for number in range(1, 13):
        assert one.ids.acknowledged(number)
        one.has_room()
        await settled()
    assert outlet.payloads == [b"%d" % number for number in range(13)]
    assert not one.lags


@pytest.mark.parametrize("seed", range(12))
async def test_each_gets_all_of_its_messages_once_and_in_order(desk: Desk, seed: int) -> None:
    chance = random.Random(seed)
    filters = [[("a/+", 1)], [("#", 1)], [("a/1", 1), ("b", 0), ("a/#", 1)]]
    pairs = [desk.subscriber(str(n), *each, window=chance.randint(1, 6))
             for n, each in enumerate(filters)]  # fmt: skip
    expected: list[list[bytes]] = [[], [], []]
    for number in range(120):
        topic, payload = chance.choice(["a/1", "a/2", "b", "c"]), b"%d" % number
        await desk.publish((topic, 1, payload))
        expected[1].append(payload)
        for place in (0, 2):
            if topic.startswith("a/"):
                expected[place].append(payload)
        one, outlet = chance.choice(pairs)
        outlet.congested = chance.random() < 0.3
        for packet_id, _ in list(one.ids):
            if chance.random() < 0.7:
                one.ids.acknowledged(packet_id)
        one.has_room()
        if chance.random() < 0.1:
            desk.bench.cache.bytes_max = chance.choice([0, 500, 100_000])
    for one, outlet in pairs:
        outlet.congested = False
        while one.lags or one.ids:
            for packet_id, _ in list(one.ids):
                one.ids.acknowledged(packet_id)
            one.has_room()
            await settled()
    got = [[payload for packet, payload in outlet.packets if packet.qos] for _, outlet in pairs]
    assert got == expected
    assert all(len(one.ids) == 0 for one, _ in pairs)


async def test_a_feed_that_nobody_reads_rests(desk: Desk) -> None:
    one, outlet = desk.subscriber("a", ("#", 1))
    desk.feed.leave(one)
    await desk.publish(("t", 1, b"0"))
    assert not desk.feed.is_read
    desk.feed.join(one)
    await desk.publish(("t", 1, b"1"))
    assert outlet.payloads == [b"1"], "what came in between is not for it"


@pytest.mark.parametrize("in_flight", [False, True])
@pytest.mark.parametrize("whole_ledger", [False, True])
async def test_a_session_goes_on_behind_what_is_lost(in_flight: bool, whole_ledger: bool) -> None:
    """Whether it is to be sent for the first time, or again. Ledgers have ten entries here."""
    stores = Stores()
    async with serving(stores) as stage:
        client = await stage.subscribed("c", ("t", 1), clean=False)
        if not in_flight:
            await client.leaves()
        writer = await stage.connected("w")
        await writer.says(publish("t", b"0", qos=1, number=1))
        if in_flight:
            assert [one.payload for one in await client.receive()] == [b"0"]
            await client.leaves()
        for number in range(1, 21):
            await writer.says(publish("t", b"%d" % number, qos=1, number=number))
        topic = (await stage.services.logs.open_for("t")).topic
        assert topic is not None
        ledger_id, entry_id = topic.ledger.chain.first
    if whole_ledger:
        await stores.ledgers.delete(ledger_id)
    else:
        stores.ledgers.ledgers[ledger_id].damaged.add(entry_id)
    async with serving(stores) as stage:
        client, (_, *got) = await stage.connects("c", clean=False)
        while got and got[-1].payload != b"20":
            await client.acknowledges(*got)
            got = await client.receive()
        assert got


async def test_a_retained_message_of_qos_2_keeps_its_identifier_in_a_crash() -> None:
    """PUBREC is lost with the server, so the client drops what comes with that identifier until
    PUBREL [MQTT-4.3.3-10], and no other message may have it.
    """
    stores = Stores()
    async with serving(stores) as stage:
        writer = await stage.connected("w")
        for number, topic in enumerate(("a", "b", "c"), 1):
            await writer.says(publish(topic, topic.encode(), qos=2, number=number, retain=True))
            await writer.says(acknowledge("PUBREL", number))
        client = await stage.connected("c", clean=False)
        _, *sent = await client.says(subscribe(("a", 2), ("b", 2)))
        assert {one.payload for one in sent} == {b"a", b"b"}
    async with serving(stores) as stage:
        client, (_, *again) = await stage.connects("c", clean=False)
        numbers = {one.number: one.payload for one in sent}
        assert {one.number: one.payload for one in again} == numbers
        (third,) = [one for one in await client.says(subscribe(("c", 2))) if one.payload == b"c"]
        assert third.number not in numbers
        await client.acknowledges(*again, third)
        assert len(client.session.client.subscriber.ids) == 0


async def test_a_retained_message_of_qos_2_is_sent_once_it_is_recorded() -> None:
    """And not overtaken by a newer message of its topic."""
    stores = Stores()
    async with serving(stores) as stage:
        writer = await stage.connected("w")
        await writer.says(publish("t", b"old", qos=2, number=1, retain=True))
        client = await stage.connected("c", clean=False)
        topic = (await stage.services.logs.open_for("t")).topic
        assert topic is not None
        stores.ledgers.sync_at_once = False
        answers = await client.says(subscribe(("t", 2)))
        while not answers:
            stores.ledgers.sync()
            answers = await client.receive()
        assert [one.kind for one in answers] == ["SUBACK"]
        writer.feed(publish("t", b"new", qos=2, number=2))
        await settled()
        stores.ledgers.ledgers[topic.ledger.chain.confirmed[0]].sync()
        assert await client.receive() == []
        stores.ledgers.sync()
        assert [one.payload for one in await client.receive()] == [b"old", b"new"]


async def in_flight_to(stage: Stage, version: int, *, retain: bool = False) -> Received:
    """A message of QoS 2 that a client has received, whose PUBREC the server has not."""
    writer = await stage.connected("w")
    packet = publish("t", b"x" * 300, qos=2, number=1, retain=retain)
    properties = b"\x11\0\0\0\x64" if version == V5 else b""
    client = await stage.connected("c", version=version, clean=False, properties=properties)
    if retain:
        await writer.completes(*await writer.says(packet))
    answers = await client.says(subscribe(("t", 2), version=version))
    if not retain:
        await writer.completes(*await writer.says(packet))
        answers += await client.receive()
    _, sent = answers
    assert (sent.kind, sent.flags >> 1 & 3) == ("PUBLISH", 2)
    await client.is_cut()
    return sent


async def exchange_ends(
    stage: Stage, version: int, sent: Received, properties: bytes = b""
) -> None:
    """PUBREL is sent, and no other message has its identifier until PUBCOMP."""
    properties += b"\x11\0\0\0\x64" if version == V5 else b""
    client, (connack, *got) = await stage.connects(
        "c", version=version, clean=False, properties=properties
    )
    assert connack.number == 1
    got += await client.receive()
    assert [(one.kind, one.number) for one in got] == [("PUBREL", sent.number)]
    assert client.session.client is not None
    ids = client.session.client.subscriber.ids
    assert [(number, one.released) for number, one in ids] == [(sent.number, True)]
    await client.says(acknowledge("PUBCOMP", sent.number))
    assert len(ids) == 0


@pytest.mark.parametrize("version", [V3, V5])
@pytest.mark.parametrize("retain", [False, True])
async def test_an_exchange_of_qos_2_ends_whose_message_is_gone(version: int, retain: bool) -> None:
    """4.3.3: its receiver may have it, and drops what comes with that identifier until PUBREL. It
    answers PUBREL also if it does not know the identifier.
    """
    stores = Stores()
    async with serving(stores) as stage:
        sent = await in_flight_to(stage, version, retain=retain)
        topic = (await stage.services.logs.open_for("t")).topic
        if retain:
            topic = await stage.services.retained._stored.open()
        assert topic is not None
        ledger_id, entry_id = topic.ledger.chain.confirmed
    stores.ledgers.ledgers[ledger_id].damaged.add(entry_id)
    async with serving(stores) as stage:
        await exchange_ends(stage, version, sent)


async def test_an_exchange_of_qos_2_ends_whose_message_is_too_large_now() -> None:
    """[MQTT-3.1.2-25]: as if sending it had been completed."""
    async with serving() as stage:
        sent = await in_flight_to(stage, V5)
        await exchange_ends(stage, V5, sent, b"\x27" + (200).to_bytes(4, "big"))
