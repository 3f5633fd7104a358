"""Sessions as administrators see and end them."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.kernel.errors import NotAllowed, NotFound
from magnetar.core.ports.client_administration import SessionQuery
from magnetar.core.testing.bench import settled
from magnetar.wire.mqtt.administration import administration_of
from magnetar.wire.mqtt.administration.sessions import MqttSessionAdministration
from magnetar.wire.mqtt.conftest import Stage
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V5, acknowledge, publish, subscribe

ADMINISTRATIVE_ACTION = 0x98
HOUR = b"\x11\x00\x00\x0e\x10"


def administration(stage: Stage) -> MqttSessionAdministration:
    return MqttSessionAdministration(stage.services)


async def names(stage: Stage, **query: Any) -> list[str]:
    page = await administration(stage).sessions(SessionQuery(**query))
    return [one.client_id for one in page.items]


async def sleeper(stage: Stage, name: str, **options: Any) -> None:
    client = await stage.subscribed(name, ("t/#", 1), clean=False, **options)
    await client.leaves()


async def test_the_list_has_connected_and_sleeping_sessions(stage: Stage) -> None:
    for name in ("c", "a"):
        await sleeper(stage, name)
    await stage.connected("b")
    await stage.subscribed("d", ("t", 1), clean=False)
    assert await names(stage) == ["a", "b", "c", "d"]
    assert await names(stage, state="connected") == ["b", "d"]
    assert await names(stage, state="asleep") == ["a", "c"]
    assert await names(stage, prefix="c") == ["c"]
    page = await administration(stage).sessions(SessionQuery(limit=3))
    assert (len(page.items), page.next) == (3, "c")
    assert await names(stage, after="c", limit=3) == ["d"]


async def test_a_summary(stage: Stage) -> None:
    await sleeper(stage, "s", version=V5, properties=HOUR)
    await stage.connected("c", version=V5)
    connected, asleep = (await administration(stage).sessions(SessionQuery())).items
    assert (connected.state, connected.address, connected.protocol_version) == (
        "connected", "1.2.3.4:1", "5.0"
    )  # fmt: skip
    assert (asleep.state, asleep.address, asleep.subscriptions) == ("asleep", None, 1)
    assert asleep.expires_at == stage.stores.clock.wall_ms() + 3_600_000


async def test_a_connected_client(stage: Stage) -> None:
    now_ms = stage.stores.clock.wall_ms()
    client = await stage.connected(
        "d", version=V5, properties=HOUR, keep_alive=60, will=("w", b"gone", 1, True),
        will_properties=b"\x18\x00\x00\x00\x05",
    )  # fmt: skip
    await client.says(subscribe(("t/#", 2 | 4 | 8), version=V5, properties=b"\x0b\x07"))
    writer = await stage.connected("w")
    await writer.says(*(publish("t/1", b"x", qos=1, number=number) for number in (1, 2, 3)))
    first, *_ = await client.receive()
    await client.says(acknowledge("PUBACK", first.number))
    await client.says(publish("t/1", b"own", qos=2, number=9, version=V5))
    found = await administration(stage).session("d")
    assert (found.state, found.address, found.protocol_version) == (
        "connected", "1.2.3.4:1", "5.0"
    )  # fmt: skip
    assert (found.keep_alive_seconds, found.connected_since) == (60, now_ms)
    assert (found.expiry_seconds, found.expires_at, found.disconnected_at) == (3600, None, None)
    (subscription,) = found.subscriptions
    assert (subscription.filter, subscription.qos, subscription.identifier) == ("t/#", 2, 7)
    assert subscription.no_local
    assert subscription.retain_as_published
    assert (found.in_flight, len(found.in_flight_messages)) == (2, 2)
    one = found.in_flight_messages[0]
    assert (one.qos, one.released, one.topic) == (1, False, "persistent://public/default/mqtt")
    assert (found.receiving, found.sent) == (1, 3)
    (place,) = found.places
    assert (place.topic, place.backlog) == ("persistent://public/default/mqtt", 0)
    assert found.will is not None
    assert (found.will.topic, found.will.payload, found.will.delay_seconds) == ("w", b"gone", 5)
    assert found.record_bytes > 50


async def test_a_sleeping_session(stage: Stage) -> None:
    await sleeper(stage, "s")
    ended_ms = stage.stores.clock.wall_ms()
    writer = await stage.connected("w")
    await writer.says(*(publish("t/1", b"x", qos=1, number=number) for number in (1, 2, 3)))
    await writer.says(publish("u", b"for others, in the same log"))
    found = await administration(stage).session("s")
    assert (found.state, found.address, found.sent, found.will) == ("asleep", None, None, None)
    assert found.disconnected_at == ended_ms
    assert found.expires_at == ended_ms + 1000 * (found.expiry_seconds or 0)
    assert [place.backlog for place in found.places] == [4]


async def test_what_is_not_there(stage: Stage) -> None:
    for request in (
        administration(stage).session,
        administration(stage).end_session,
        administration(stage).disconnect,
    ):
        with pytest.raises(NotFound):
            await request("nobody")
    await sleeper(stage, "s")
    with pytest.raises(NotAllowed):
        await administration(stage).disconnect("s")


async def test_a_connected_session_is_ended(stage: Stage) -> None:
    """The client is told why, its will is published, and nothing is left."""
    watcher = await stage.subscribed("watcher", ("w", 1))
    client = await stage.connected(
        "d", version=V5, clean=False, properties=HOUR, will=("w", b"gone", 1, False),
        will_properties=b"\x18\x00\x00\x00\x05",
    )  # fmt: skip
    await client.says(subscribe(("t", 1), ("$share/g/t", 1), version=V5))
    await administration(stage).end_session("d")
    (told,) = await client.receive()
    assert (told.kind, told.reasons) == ("DISCONNECT", (ADMINISTRATIVE_ACTION,))
    assert client.line.ending is not None
    await client.is_cut()
    assert [one.payload for one in await watcher.receive()] == [b"gone"]
    assert "d" not in stage.services.sessions.records
    assert "d" not in stage.services.sessions.connected
    assert stage.services.groups.count == 0
    _, (connack, *_) = await stage.connects("d", version=V5, clean=False, properties=HOUR)
    assert connack.number == 0, "no session is present"


async def test_a_client_of_version_3_is_ended_without_a_word(stage: Stage) -> None:
    client = await stage.connected("d")
    await administration(stage).end_session("d")
    assert await client.receive() == []
    assert client.line.ending is not None
    assert await names(stage) == []


async def test_a_sleeping_session_is_ended(stage: Stage) -> None:
    """Its will, which waits for its delay, is published at once (3.1.3.2.2)."""
    watcher = await stage.subscribed("watcher", ("w", 1))
    client = await stage.connected(
        "d", version=V5, properties=HOUR, will=("w", b"gone", 1, False),
        will_properties=b"\x18\x00\x00\x00\x64",
    )  # fmt: skip
    await client.is_cut()
    assert await watcher.receive() == []
    await administration(stage).end_session("d")
    assert [one.payload for one in await watcher.receive()] == [b"gone"]
    assert await names(stage, state="asleep") == []


async def test_a_client_is_disconnected_and_its_session_lasts(stage: Stage) -> None:
    client = await stage.connected("d", version=V5, clean=False, properties=HOUR)
    await client.says(subscribe(("t", 1), version=V5))
    await administration(stage).disconnect("d")
    (told,) = await client.receive()
    assert (told.kind, told.reasons) == ("DISCONNECT", (ADMINISTRATIVE_ACTION,))
    await client.is_cut()
    assert await names(stage, state="asleep") == ["d"]
    writer = await stage.connected("w")
    await writer.says(publish("t", b"meanwhile", qos=1, number=1))
    _, (connack, message) = await stage.connects("d", version=V5, clean=False, properties=HOUR)
    assert (connack.number, message.payload) == (1, b"meanwhile")


async def test_ending_a_session_waits_for_one_that_connects(stage: Stage) -> None:
    """[MQTT-3.1.4-3]: it takes the turn of the client id."""
    client = stage.stranger(V5)
    client.feed(peer.connect("d", version=V5, clean=False, properties=HOUR))
    async with stage.services.sessions.turn_of("other"):
        await settled()
    await administration(stage).end_session("d")
    assert [one.kind for one in await client.receive()] == ["CONNACK", "DISCONNECT"]
    assert await names(stage) == []


async def test_all_of_it_is_given_together(stage: Stage) -> None:
    await stage.connected("c")
    found = await administration_of(stage.services).sessions.session("c")
    assert found.client_id == "c"
