"""A connected client: its record, and what is stored before it is acknowledged."""

from __future__ import annotations

import gc

import pytest

from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.mapping.rules import MappingRule
from magnetar.wire.mqtt.session.client import ConnectedClient
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V5, acknowledge, publish, subscribe, unsubscribe


async def test_a_session_that_does_not_last_stores_nothing(stage: Stage) -> None:
    reader = await stage.subscribed("r", ("t", 2))
    writer = await stage.connected("w")
    await writer.says(publish("t", b"x", qos=2, number=1), acknowledge("PUBREL", 1))
    await reader.acknowledges(*await reader.receive())
    await reader.leaves()
    assert not await stage.broker.exists(stage.services.sessions.topic)


async def test_pubrel_waits_until_it_is_stored_that_the_message_is_received() -> None:
    stores = Stores()
    async with serving(stores) as stage:
        reader = await stage.subscribed("d", ("t", 2), clean=False)
        writer = await stage.connected("w")
        await writer.says(publish("t", b"x", qos=2, number=1))
        (sent,) = await reader.receive()
        stores.ledgers.sync_at_once = False
        assert await reader.says(acknowledge("PUBREC", sent.number)) == []
        stores.ledgers.sync()
        (pubrel,) = await reader.receive()
        assert pubrel.kind == "PUBREL"


async def test_suback_waits_until_the_subscription_is_stored() -> None:
    stores = Stores()
    async with serving(stores) as stage:
        client = await stage.subscribed("d", ("a", 1), clean=False)
        stores.ledgers.sync_at_once = False
        assert await client.says(subscribe(("t", 1))) == []
        for _ in range(3):
            stores.ledgers.sync()
            await settled()
        assert [one.kind for one in await client.receive()] == ["SUBACK"]


async def test_places_follow_the_subscriptions() -> None:
    """A log that no filter of QoS 1 or 2 reads is not held."""
    async with serving(rules=(MappingRule("o/#", "orders"),)) as stage:
        reader = await stage.subscribed("r", ("a", 1), clean=False)
        writer = await stage.connected("w")
        await writer.says(publish("a", b"x"), publish("o/1", b"x"))
        client = stage.services.sessions.connected["r"]
        assert isinstance(client, ConnectedClient)

        def held() -> list[str]:
            return [
                one.log.rpartition("/")[2] for one in client.record().places if one.ledger_id >= 0
            ]

        assert held() == ["mqtt"]
        await reader.says(subscribe(("o/#", 1)))
        assert held() == ["mqtt", "orders"]
        await reader.says(subscribe(("a", 0)))
        assert held() == ["orders"]
        await reader.says(subscribe(("b", 2)), unsubscribe("o/#"))
        assert held() == ["mqtt"]


async def test_acknowledgements_of_qos_1_are_stored_a_moment_later() -> None:
    stores = Stores()
    async with serving(stores) as stage:
        reader = await stage.subscribed("d", ("t", 1), clean=False)
        writer = await stage.connected("w")
        await writer.says(*(publish("t", b"%d" % n, qos=1, number=n + 1) for n in range(3)))
        await reader.acknowledges(*(await reader.receive())[:2])
        await stage.forward(0.2)
    async with serving(stores) as stage:
        _, (_, *again) = await stage.connects("d", clean=False)
        assert [one.payload for one in again] == [b"2"]


async def test_reasons_are_left_out_if_the_client_does_not_want_them(stage: Stage) -> None:
    """[MQTT-3.1.2-29]"""
    name = "persistent://public/none/t"
    for wanted, properties in ((True, b""), (False, b"\x17\0")):
        client = await stage.connected("c", version=V5, properties=properties)
        (puback,) = await client.says(publish(name, b"x", version=V5, qos=1, number=1))
        assert (puback.reasons, b"\x1f" in puback.properties) == ((0x90,), wanted)
        (suback,) = await client.says(subscribe((name, 1), version=V5))
        assert (b"\x1f" in suback.properties) == wanted


async def test_publishes_under_way_when_the_connection_breaks() -> None:
    """They are stored, so their identifiers are known when the client comes back."""
    stores = Stores()
    async with serving(stores) as stage:
        writer = await stage.connected("w", clean=False)
        await writer.says(publish("t", b"0", qos=2, number=9))
        stores.ledgers.sync_at_once = False
        writer.feed(publish("t", b"x", qos=2, number=1))
        writer.session.closed("the peer closed")
        await settled()
        stores.ledgers.sync_at_once = True
        stores.ledgers.sync()
        await settled()
        reader = await stage.subscribed("r", ("t", 0))
        again = await stage.connected("w", clean=False)
        (pubrec,) = await again.says(publish("t", b"x", qos=2, number=1, dup=True))
        assert pubrec.kind == "PUBREC"
        assert await reader.receive() == []


async def test_a_packet_for_a_client_that_is_gone(stage: Stage) -> None:
    reader = await stage.subscribed("r", ("t", 1))
    client = reader.session.client
    assert client is not None
    await reader.is_cut()
    client.send(peer.PINGREQ)
    client.changed()
    client.save_if_dirty()
    assert await reader.receive() == []


@pytest.mark.parametrize("clean", [True, False])
async def test_nothing_is_kept_of_clients_that_came_and_went(stage: Stage, clean: bool) -> None:
    """100,000 sleeping sessions held 500 MB until the garbage collector looked at old objects."""
    gc.collect()
    gc.disable()
    try:
        for number in range(5):
            client = await stage.subscribed(f"gone-{number}", ("t", 1), clean=clean)
            await client.says(publish("t", b"x", qos=1, number=1))
            await client.leaves()
        displaced = await stage.connected("gone", clean=clean)
        client, _ = await stage.connects("gone", clean=clean)
        await displaced.is_cut()
        await client.leaves()
        del client, displaced
        last = await stage.connected("last")  # storage refers to who has published last
        await last.says(publish("t", b"x", qos=1, number=1))
        present = [one for one in gc.get_objects() if isinstance(one, ConnectedClient)]
        assert [one.client_id for one in present if one.client_id.startswith("gone")] == []
    finally:
        gc.enable()


async def test_a_sleeping_session_of_qos_0_holds_no_log() -> None:
    """It gets only what comes after its return, while another session reads the log on."""
    stores = Stores()
    async with serving(stores) as stage:
        sleeper = await stage.subscribed("sleeper", ("t", 0), clean=False)
        await sleeper.leaves()
        reader = await stage.subscribed("reader", ("t", 1), clean=False)
        writer = await stage.connected("w")
        for number in range(1, 21):
            await writer.says(publish("t", b"%d" % number, qos=1, number=number))
            await reader.acknowledges(*await reader.receive())
        await stage.forward(1)
        await stage.services.hold.advance()
        topic = (await stage.services.logs.open_for("t")).topic
        assert topic is not None
        cursor = topic.subscriptions["mqtt-sessions"].cursor
        assert cursor.mark_delete == topic.ledger.chain.confirmed
    async with serving(stores) as stage:
        sleeper, (connack, *packets) = await stage.connects("sleeper", clean=False)
        assert (connack.number, packets) == (1, [])
        assert not sleeper.session.client.subscriber.lags
        (suback,) = await sleeper.says(subscribe(("t", 1)))
        assert suback.kind == "SUBACK"
        await sleeper.is_cut()
        writer = await stage.connected("w")
        await writer.says(publish("t", b"new", qos=1, number=1))
        sleeper, (_, *packets) = await stage.connects("sleeper", clean=False)
        assert [one.payload for one in packets] == [b"new"]
