"""Normative statements about sessions and wills, by their numbers.

The statements are listed in docs/mqtt-statements.md.
"""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.tests.peer import V3, V5, acknowledge, publish, subscribe

OLD_AND_NEW = pytest.mark.parametrize("version", [V3, V5])


def lasting(version: int, seconds: int = 3600) -> dict[str, Any]:
    """The options of a CONNECT that resumes a session, or begins one that lasts."""
    properties = b"\x11" + seconds.to_bytes(4, "big") if version == V5 else b""
    return {"version": version, "clean": False, "properties": properties}


# -- beginning and end --------------------------------------------------------------------------


@OLD_AND_NEW
async def test_a_session_begins_and_is_resumed(stage: Stage, version: int) -> None:
    """Without a stored session a new one begins [MQTT-3.1.2-6], with Session Present 0
    [MQTT-3.2.2-3 of 3.1.1]; it outlives its connection and is resumed [MQTT-3.1.2-4 of 3.1.1],
    with Session Present 1 [MQTT-3.2.2-2 of 3.1.1], [MQTT-3.2.2-3].
    """
    options = lasting(version)
    client, (connack,) = await stage.connects("d", **options)
    assert connack.number == 0
    await client.says(subscribe(("t", 1), version=version))
    await client.is_cut()
    await (await stage.connected("w")).says(publish("t", b"x", qos=1, number=1))
    _, (connack, message) = await stage.connects("d", **options)
    assert (connack.number, message.payload) == (1, b"x")


@OLD_AND_NEW
async def test_a_clean_start(stage: Stage, version: int) -> None:
    """It is carried out [MQTT-3.1.4-4], [MQTT-3.1.4-3 of 3.1.1]: the old session, and what waits
    in it, is discarded [MQTT-3.1.2-4], [MQTT-3.1.2-6 of 3.1.1]; Session Present is 0
    [MQTT-3.2.2-2], [MQTT-3.2.2-1 of 3.1.1].
    """
    old = await stage.subscribed("d", ("t", 1), **lasting(version))
    await old.leaves()
    writer = await stage.connected("w")
    await writer.says(publish("t", b"x", qos=1, number=1))
    clean, (connack, *more) = await stage.connects("d", **{**lasting(version), "clean": True})
    assert (connack.number, more) == (0, [])
    await writer.says(publish("t", b"x", qos=1, number=1))
    assert await clean.receive() == []
    await clean.leaves()
    _, (connack,) = await stage.connects("d", **lasting(version))
    assert connack.number == int(version == V5), "that of 3.1.1 has ended with its connection"


@OLD_AND_NEW
async def test_a_session_that_does_not_last_ends_with_its_connection(
    stage: Stage, version: int
) -> None:
    """[MQTT-3.1.2-6 of 3.1.1], and in 5.0 at an expiry interval of 0 [MQTT-4.1.0-2]"""
    client = await stage.subscribed("d", ("t", 1), version=version)
    await (await stage.connected("w")).says(publish("t", b"x", qos=1, number=1))
    assert len(await client.receive()) == 1
    await client.is_cut()
    assert (stage.services.sessions.records.count, stage.services.matcher.count) == (0, 0)
    _, (connack, *more) = await stage.connects("d", **lasting(version))
    assert (connack.number, more) == (0, [])


async def test_a_session_is_discarded_when_its_interval_has_passed(stage: Stage) -> None:
    """[MQTT-4.1.0-2]: counted from the end of the last connection."""
    for _ in range(2):
        client = await stage.connected("d", **lasting(V5, 100))
        await client.says(subscribe(("t", 1), version=V5))
        await stage.forward(1_000)  # while it is connected
        await client.is_cut()
        await stage.forward(99)
    assert stage.services.sessions.records.count == 1
    await stage.forward(2)
    assert stage.services.sessions.records.count == 0
    _, (connack,) = await stage.connects("d", **lasting(V5, 100))
    assert connack.number == 0


@OLD_AND_NEW
async def test_a_session_lasts_as_long_as_its_connection(stage: Stage, version: int) -> None:
    """[MQTT-4.1.0-1], [MQTT-4.1.0-2 of 3.1.1]: whatever its interval, and whatever time passes."""
    for client_id, options in (("clean", {"version": version}), ("lasts", lasting(version, 1))):
        client = await stage.subscribed(client_id, ("t", 2), **options)
        writer = await stage.connected("w")
        await writer.says(publish("t", b"0", qos=2, number=1))
        (sent,) = await client.receive()
        await client.says(acknowledge("PUBREC", sent.number))
        stage.stores.clock.forward(10_000_000)
        await stage.services.sessions.end_due()
        assert [one.kind for one in await client.acknowledges(sent)] == ["PUBREL"]
        await writer.says(publish("t", b"1", qos=1, number=2))
        (later,) = await client.receive()
        await client.acknowledges(later)
        assert later.payload == b"1"
        await writer.leaves()


@pytest.mark.parametrize("away_seconds", [0, 100, 500_000])
async def test_the_whole_state_is_kept(away_seconds: int) -> None:
    """[MQTT-4.1.0-1 of 3.1.1]: subscriptions, messages in flight in both directions, and those
    that wait; also while the server is not there.
    """
    stores = Stores()
    async with serving(stores) as stage:
        client = await stage.subscribed("d", ("t/+", 2), clean=False)
        writer = await stage.connected("w")
        await writer.says(publish("t/1", b"1", qos=1, number=1))
        await writer.says(publish("t/2", b"2", qos=2, number=2))
        one, two = await client.receive()
        await client.says(acknowledge("PUBREC", two.number))
        await client.says(publish("own", b"x", qos=2, number=9))
        await client.leaves()
        await writer.says(publish("t/3", b"3", qos=1, number=3))
        await stage.front.stop()
    stores.clock.forward(away_seconds)
    async with serving(stores) as stage:
        await stage.forward(0)
        client, (connack, *again) = await stage.connects("d", clean=False)
        assert connack.number == 1
        assert [(each.kind, each.number, each.payload) for each in again[:2]] == [
            ("PUBLISH", one.number, b"1"), ("PUBREL", two.number, b"")
        ]  # fmt: skip
        assert [each.payload for each in again[2:]] == [b"3"]
        watcher = await stage.subscribed("watcher", ("own", 0))
        assert [each.kind for each in await client.says(
            publish("own", b"x", qos=2, number=9, dup=True), acknowledge("PUBREL", 9)
        )] == ["PUBREC", "PUBCOMP"]  # fmt: skip
        assert await watcher.receive() == [], "the message was stored before"


@OLD_AND_NEW
@pytest.mark.parametrize("is_cut", [True, False])
async def test_messages_are_stored_for_a_client_that_is_away(
    stage: Stage, version: int, is_cut: bool
) -> None:
    """[MQTT-3.1.2-5 of 3.1.1]: those of QoS 1 and 2 that its subscriptions match; they are added
    to every session with such a subscription [MQTT-4.5.0-1 of both].
    """
    for client_id in ("first", "second"):
        client = await stage.subscribed(client_id, ("t/#", 2), **lasting(version))
        await (client.is_cut() if is_cut else client.leaves())
    here = await stage.subscribed("here", ("t/1", 2), version=version)
    writer = await stage.connected("w")
    await writer.says(publish("t/1", b"1", qos=1, number=1), publish("other", qos=1, number=2))
    await writer.says(publish("t/2", b"2", qos=2, number=3))
    assert [one.payload for one in await here.receive()] == [b"1"]
    for client_id in ("first", "second"):
        _, (_, *messages) = await stage.connects(client_id, **lasting(version))
        assert [(one.payload, one.qos) for one in messages] == [(b"1", 1), (b"2", 2)]


# -- client identifiers -------------------------------------------------------------------------


@OLD_AND_NEW
async def test_client_identifiers_identify_sessions(stage: Stage, version: int) -> None:
    """[MQTT-3.1.3-2 of both]: byte by byte, so that case and length count."""
    ids = ["d", "D", "d ", "dd", "é", "e\u0301"]
    for client_id in ids:
        client = await stage.subscribed(client_id, (f"t/{client_id}", 1), **lasting(version))
        await client.leaves()
    writer = await stage.connected("w")
    for number, client_id in enumerate(ids, 1):
        await writer.says(publish(f"t/{client_id}", client_id.encode(), qos=1, number=number))
    for client_id in ids:
        _, (connack, *messages) = await stage.connects(client_id, **lasting(version))
        assert connack.number == 1
        assert [one.payload.decode() for one in messages] == [client_id]


@pytest.mark.parametrize("clean", [True, False])
async def test_a_second_connection_ends_the_first(stage: Stage, clean: bool) -> None:
    """[MQTT-3.1.4-2 of 3.1.1]: it is closed, and gets nothing more."""
    first = await stage.subscribed("d", ("t", 1), clean=clean)
    second, (connack, *_) = await stage.connects("d", clean=clean)
    assert connack.number == int(not clean)
    assert first.line.ending is not None
    await second.says(subscribe(("t", 1)))
    await (await stage.connected("w")).says(publish("t", b"x", qos=1, number=1))
    assert await first.receive() == []
    assert [one.payload for one in await second.receive()] == [b"x"]
