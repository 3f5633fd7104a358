"""Retained messages: in memory, beyond it, and after a restart."""

from __future__ import annotations

import pytest
import trio

from magnetar.core.entry.mqtt import run as runs
from magnetar.core.kernel.completion import Completion
from magnetar.core.ledger.log.chain import Position
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V5, Received, publish, subscribe, unsubscribe


async def retain(stage: Stage, *messages: tuple[str, bytes], qos: int = 0) -> None:
    writer = await stage.connected("w", version=V5)
    for number, (topic, payload) in enumerate(messages):
        await writer.says(
            publish(topic, payload, qos=qos, number=number + 1, retain=True, version=V5)
        )
    await writer.leaves()


async def retained(stage: Stage, filter: str, options: int = 0) -> list[Received]:
    reader = await stage.connected("r", version=V5)
    _, *found = await reader.says(subscribe((filter, options), version=V5))
    while more := await reader.acknowledges(*found):
        found += [one for one in more if one.kind == "PUBLISH"]
    await reader.leaves()
    return found


@pytest.mark.parametrize("budget", [10_000, 150, 0])
async def test_they_survive_a_restart(budget: int) -> None:
    """[MQTT-3.3.1-5]: whether they fit into memory or not."""
    stores = Stores()
    messages = [(f"a/{n}", b"value %d" % n) for n in range(9)]
    async with serving(stores, retained_bytes_max=budget) as stage:
        await retain(stage, *messages, ("a/4", b""), ("a/5", b"later"), qos=1)
        expected = sorted({**dict(messages), "a/5": b"later"}.items())
        expected.remove(("a/4", b"value 4"))
        found = await retained(stage, "a/+", 1)
        assert sorted((one.topic, one.payload) for one in found) == expected
        assert stage.services.retained.bytes <= budget
    async with serving(stores, retained_bytes_max=budget) as stage:
        assert stage.services.retained.count == 8
        found = await retained(stage, "#", 1)
        assert sorted((one.topic, one.payload) for one in found) == expected
        assert all(one.retain and one.qos == 1 for one in found)


async def test_the_budget_is_free_again() -> None:
    async with serving(retained_bytes_max=1_000) as stage:
        await retain(stage, ("a", b"x" * 700), ("b", b"y" * 700))
        used = stage.services.retained.bytes
        assert 700 < used < 1_000
        await retain(stage, ("a", b""))
        assert stage.services.retained.bytes == 0
        await retain(stage, ("c", b"z" * 700))
        assert 700 < stage.services.retained.bytes < 1_000
        assert sorted(one.topic for one in await retained(stage, "#")) == ["b", "c"]


async def test_expired_ones_are_not_sent(stage: Stage) -> None:
    """[MQTT-3.3.2-5], [MQTT-3.3.2-6]: others with the rest of their interval."""
    writer = await stage.connected("w", version=V5)
    for name, seconds in (("short", 10), ("long", 100)):
        properties = b"\x02" + seconds.to_bytes(4, "big")
        await writer.says(publish(name, b"x", version=V5, retain=True, properties=properties))
    stage.stores.clock.forward(40)
    (only,) = await retained(stage, "+")
    assert (only.topic, only.properties) == ("long", b"\x02\0\0\0\x3c")


async def test_own_messages_and_no_local(stage: Stage) -> None:
    client = await stage.connected("c", version=V5)
    await client.says(publish("t", b"x", version=V5, retain=True))
    assert len(await client.says(subscribe(("t", 4), version=V5))) == 1
    assert len(await client.says(subscribe(("t", 0), version=V5))) == 2


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("stored", [None, 0, -1])
async def test_one_that_is_being_stored_comes_once(qos: int, stored: int | None) -> None:
    """From its log, or as a retained one, whichever of its two writes has ended before."""
    stores = Stores()
    async with serving(stores) as stage:
        await retain(stage, ("t", b"older"))
        writer = await stage.connected("w")
        reader = await stage.connected("r")
        stores.ledgers.sync_at_once = False
        writer.feed(publish("t", b"newer", qos=qos, number=1, retain=True))
        await settled()
        if stored is not None:
            ledgers = [one for one in stores.ledgers.ledgers.values() if one.waits]
            assert len(ledgers) == (1 if qos == 2 else 2)
            ledgers[stored].sync()
        found = await reader.says(subscribe(("t", 0), number=1))
        for _ in range(4):
            stores.ledgers.sync()
            found += await reader.receive()
    received = [(one.payload, one.retain) for one in found if one.kind == "PUBLISH"]
    assert received in ([(b"newer", True)], [(b"newer", False)])


async def test_they_come_behind_what_a_session_is_still_to_get(stage: Stage) -> None:
    await (await stage.subscribed("r", ("t", 1), clean=False)).leaves()
    await retain(stage, *(("t", b"%d" % number) for number in range(30)), qos=1)
    window = b"\x21\0\4\x11\0\0\1\0"  # Receive Maximum, Session Expiry Interval
    options = {"clean": False, "version": V5, "properties": window}
    reader, (_, *found) = await stage.connects("r", **options)
    found += await reader.says(subscribe(("t", 1), version=V5))
    received: list[tuple[bytes, bool]] = []
    while pending := [one for one in found if one.kind == "PUBLISH"]:
        received += [(one.payload, one.retain) for one in pending]
        found = await reader.acknowledges(*pending)
    assert received == [*((b"%d" % number, False) for number in range(30)), (b"29", True)]


async def test_none_is_sent_after_a_newer_one_of_its_topic(stage: Stage) -> None:
    await retain(stage, *((f"a/{n}", b"old") for n in range(5)), qos=1)
    reader = await stage.connected("r", version=V5, properties=b"\x21\0\1")
    found = await reader.says(subscribe(("a/#", 1), version=V5))
    await retain(stage, *((f"a/{n}", b"new") for n in range(5)), qos=1)
    received: dict[str, list[bytes]] = {}
    while pending := [one for one in found if one.kind == "PUBLISH"]:
        for one in pending:
            received.setdefault(one.topic, []).append(one.payload)
        found = await reader.acknowledges(*pending)
    assert all(payloads in ([b"old", b"new"], [b"new"]) for payloads in received.values())
    assert len(received) == 5


async def test_one_in_flight_is_sent_again(stage: Stage) -> None:
    await retain(stage, ("t", b"x"), qos=1)
    reader = await stage.connected("r", clean=False)
    _, sent = await reader.says(subscribe(("t", 1)))
    await reader.is_cut()
    _, (_, again) = await stage.connects("r", clean=False)
    assert (again.number, again.payload, again.dup, again.retain) == (sent.number, b"x", True, True)


async def test_system_topics_need_their_name(stage: Stage) -> None:
    """[MQTT-4.7.2-1]"""
    await retain(stage, ("$x/y", b"1"), ("z/y", b"2"))
    assert [one.topic for one in await retained(stage, "#")] == ["z/y"]
    assert [one.topic for one in await retained(stage, "+/y")] == ["z/y"]
    assert [one.topic for one in await retained(stage, "$x/#")] == ["$x/y"]


async def test_there_is_a_limit_to_their_topics() -> None:
    async with serving(retained_names_bytes_max=600) as stage:
        writer = await stage.connected("w", version=V5)

        async def keep(topic: str, payload: bytes = b"x") -> tuple[int, ...]:
            packet = publish(topic, payload, qos=1, number=1, retain=True, version=V5)
            (puback,) = await writer.says(packet)
            return puback.reasons

        assert [await keep(topic) for topic in ("a", "b", "c", "d")] == [()] * 4
        assert await keep("e") == (0x97,)
        assert await keep("d", b"later") == ()
        assert await keep("a", b"") == ()
        assert await keep("e") == ()
        assert stage.services.retained.count == 4


async def test_a_client_gets_them_once_if_it_subscribes_again_before_their_turn() -> None:
    """A client that does not read holds one replay, however often it subscribes."""
    async with serving() as stage:
        await retain(stage, *((f"a/{n}", b"x") for n in range(5)), qos=1)
        reader = await stage.connected("r", version=V5, properties=b"\x21\0\1")
        found = await reader.says(subscribe(("a/#", 1), number=1, version=V5))  # its turn begins
        found += await reader.says(*[subscribe(("a/#", 1), number=n, version=V5) for n in (2, 3)])
        subscriber = stage.services.sessions.connected["r"].subscriber
        assert list(subscriber.replays) == ["a/#"]
        pending = [one for one in found if one.kind == "PUBLISH"]
        topics = []
        while pending:
            topics += [one.topic for one in pending]
            pending = await reader.acknowledges(*pending)
        assert topics == 2 * [f"a/{n}" for n in range(5)]


async def test_none_comes_to_a_filter_that_is_unsubscribed() -> None:
    async with serving() as stage:
        await retain(stage, *((f"a/{n}", b"x") for n in range(5)), qos=1)
        reader = await stage.connected("r", version=V5, properties=b"\x21\0\1")
        _, first = await reader.says(subscribe(("a/#", 1), version=V5))
        await reader.says(unsubscribe("a/#", version=V5))
        assert await reader.acknowledges(first) == []
        assert await reader.says(peer.PINGREQ) != []


@pytest.mark.parametrize("budget", [0, 1_000_000])
async def test_messages_that_expire_are_deleted(budget: int) -> None:
    """(3.3.2.3.3) Also if they are in storage only; one that replaces them meanwhile stays."""
    stores = Stores()
    expiry = b"\x02\0\0\0\x0a"
    async with serving(stores, retained_bytes_max=budget) as stage:
        writer = await stage.connected("w", version=V5)
        for topic in ("a", "b", "c"):
            await writer.says(
                publish(topic, b"x", retain=True, version=V5, properties=expiry),
            )
        await writer.says(publish("stays", b"x", retain=True, version=V5))
        await writer.says(publish("b", b"new", retain=True, version=V5))
        retained = stage.services.retained
        size = retained.bytes
        await retained.sweep()
        assert retained.count == 4
        await stage.forward(11)
        reader = await stage.connected("r")
        _, *got = await reader.says(subscribe(("#", 0)))
        assert sorted(one.topic for one in got) == ["b", "stays"]
        assert await retained.find("a") is None
        await retained.sweep()
        assert sorted(retained.topics()) == ["b", "stays"]
        assert retained.bytes < size or not budget
        assert [await stored_for(stage, topic) for topic in "abc"] == [b"", b"new", b""]
    async with serving(stores) as stage:
        assert sorted(stage.services.retained.topics()) == ["b", "stays"]


async def stored_for(stage: Stage, topic: str) -> bytes:
    """The last payload in the log for a topic: what compaction leaves."""
    found = b"never there"
    async for message in stage.services.retained._stored.messages():
        if message.packet.topic.decode() == topic:
            found = message.packet.payload
    return found


async def test_messages_that_have_expired_while_no_server_ran_are_deleted() -> None:
    stores = Stores()
    async with serving(stores) as stage:
        writer = await stage.connected("w", version=V5)
        await writer.says(publish("a", b"x", retain=True, version=V5, properties=b"\x02\0\0\0\x0a"))
    stores.clock.forward(11)
    async with serving(stores) as stage:
        assert (await retained(stage, "#")) == []
        await stage.services.retained.sweep()
        assert stage.services.retained.count == 0
        assert await stored_for(stage, "a") == b""


async def test_a_message_that_is_being_replaced_is_not_deleted(stage: Stage) -> None:
    """The deletion would come behind the new message, and delete that."""
    writer = await stage.connected("w", version=V5)
    for topic in ("a", "b"):
        expiry = b"\x02\0\0\0\x0a"
        await writer.says(publish(topic, b"x", retain=True, version=V5, properties=expiry))
    await stage.forward(11)
    stage.stores.ledgers.sync_at_once = False
    writer.feed(publish("a", b"new", retain=True, version=V5))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.services.retained.sweep)
        await settled()
        stage.stores.ledgers.sync()
    await settled()
    stage.stores.ledgers.sync()
    await settled()
    assert list(stage.services.retained.topics()) == ["a"]
    assert await stored_for(stage, "a") == b"new"


async def test_a_sweep_that_fails_is_repeated(stage: Stage) -> None:
    writer = await stage.connected("w", version=V5)
    expiry = b"\x02\0\0\0\x0a"
    await writer.says(publish("a", b"x", retain=True, version=V5, properties=expiry))
    await stage.forward(11)
    stage.stores.ledgers.full = True
    await stage.services.retained.sweep()
    assert stage.services.retained._may_expire
    stage.stores.ledgers.full = False
    await stage.services.retained.sweep()
    assert stage.services.retained.count == 0


@pytest.mark.parametrize(
    ("topic", "properties"), [(b"t", b"\x02\0"), (b"\xff", b""), (b"t", b"\x7f")]
)
async def test_a_damaged_one_is_named_and_keeps_no_server_from_starting(
    caplog: pytest.LogCaptureFixture, topic: bytes, properties: bytes
) -> None:
    stores = Stores()
    async with serving(stores) as stage:
        await retain(stage, ("whole", b"x"), qos=1)
        log, done = stage.services.retained._stored, Completion[Position]()
        packet = runs.packet(0x31, topic, properties, b"x")
        log.append(runs.head(b"c", has_properties=True) + packet, 1, done.done)
        await done.result()
    async with serving(stores) as stage:
        assert list(stage.services.retained.topics()) == ["whole"]
    (line,) = [line for line in caplog.messages if "is skipped" in line]
    assert f"of {topic!r}" in line
