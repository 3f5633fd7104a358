"""Normative statements about wills, by their numbers.

The statements are listed in docs/mqtt-statements.md.
"""

from __future__ import annotations

import pytest

from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V3, V5, publish, subscribe

OLD_AND_NEW = pytest.mark.parametrize("version", [V3, V5])
LASTS = b"\x11\0\0\x0e\x10"


@OLD_AND_NEW
@pytest.mark.parametrize("crashes", [False, True])
async def test_a_will_is_stored(version: int, crashes: bool) -> None:
    """With the session [MQTT-3.1.2-7], and published when the connection ends
    [MQTT-3.1.2-8 of 3.1.1], also by the crash of the server.
    """
    stores = Stores()
    async with serving(stores) as stage:
        watcher = await stage.subscribed("watcher", ("will", 2), clean=False)
        client = await stage.connected("c", version=version, will=("will", b"bye", 2, False))
        record = await stage.services.sessions.records.read("c")
        assert record is not None
        assert record.will is not None
        assert (record.will.topic, record.will.payload) == ("will", b"bye")
        assert await watcher.receive() == []
        if not crashes:
            await client.is_cut()
            (message,) = await watcher.receive()
            assert (message.topic, message.payload, message.qos) == ("will", b"bye", 2)
            return
    async with serving(stores) as stage:
        await stage.forward(0)
        watcher, (_, *messages) = await stage.connects("watcher", clean=False)
        messages += await watcher.receive()
        assert [(one.topic, one.payload, one.qos) for one in messages] == [("will", b"bye", 2)]


@OLD_AND_NEW
@pytest.mark.parametrize(
    "breach",
    [peer.frame(0xC1, b""), peer.connect(), publish("a/#"), None],
    ids=["malformed", "protocol error", "name", "cut"],
)
async def test_whatever_ends_the_connection_but_disconnect(
    stage: Stage, version: int, breach: bytes | None
) -> None:
    """[MQTT-3.1.2-8 of 3.1.1], [MQTT-3.1.2-8]: errors and a broken connection publish the will."""
    watcher = await stage.subscribed("watcher", ("will", 0))
    client = await stage.connected("c", version=version, will=("will", b"bye", 0, False))
    if breach is not None:
        await client.says(breach)
        assert client.line.ending is not None
    await client.is_cut()
    assert [one.payload for one in await watcher.receive()] == [b"bye"]


@OLD_AND_NEW
async def test_disconnect_discards_the_will(stage: Stage, version: int) -> None:
    """[MQTT-3.14.4-3 of both], [MQTT-3.1.2-10 of both]: it is removed from the session that
    lasts, too.
    """
    watcher = await stage.subscribed("watcher", ("will", 0))
    client = await stage.connected(
        "c", version=version, clean=False, will=("will", b"bye", 0, False),
        properties=LASTS if version == V5 else b"",
    )  # fmt: skip
    await client.leaves()
    await stage.forward(1)
    assert await watcher.receive() == []
    record = await stage.services.sessions.records.read("c")
    assert record is not None
    assert record.will is None


@OLD_AND_NEW
async def test_a_will_is_published_once(stage: Stage, version: int) -> None:
    """[MQTT-3.1.2-10 of both]: it is removed then; the next connection has none
    [MQTT-3.1.2-12 of 3.1.1].
    """
    watcher = await stage.subscribed("watcher", ("will", 0))
    options = {"version": version, "clean": False, "properties": LASTS if version == V5 else b""}
    client = await stage.connected("c", will=("will", b"bye", 0, False), **options)
    await client.is_cut()
    assert len(await watcher.receive()) == 1
    record = await stage.services.sessions.records.read("c")
    assert record is not None
    assert record.will is None
    client, _ = await stage.connects("c", **options)
    await client.is_cut()
    await stage.forward(10_000)
    assert await watcher.receive() == []


@OLD_AND_NEW
async def test_without_the_flag_no_will_is_published(stage: Stage, version: int) -> None:
    """[MQTT-3.1.2-12 of 3.1.1]"""
    watcher = await stage.subscribed("watcher", ("#", 0))
    client = await stage.connected("c", version=version)
    await client.is_cut()
    await stage.forward(1)
    assert await watcher.receive() == []


@OLD_AND_NEW
@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_will_retain(stage: Stage, version: int, qos: int, retain: bool) -> None:
    """Without it the will is an ordinary message [MQTT-3.1.2-14], [MQTT-3.1.2-16 of 3.1.1]; with
    it a retained one [MQTT-3.1.2-15], [MQTT-3.1.2-17 of 3.1.1].
    """
    writer = await stage.connected("w")
    await writer.says(publish("will", b"old", retain=True))
    client = await stage.connected("c", version=version, will=("will", b"bye", qos, retain))
    await client.is_cut()
    reader = await stage.connected("r")
    _, message = await reader.says(subscribe(("will", 2)))
    expected = (b"bye", qos, True) if retain else (b"old", 0, True)
    assert (message.payload, message.qos, message.retain) == expected


async def test_the_properties_of_a_will(stage: Stage) -> None:
    """User properties keep their order [MQTT-3.1.3-10]; the others come as they were, without the
    delay, which is the server's.
    """
    pairs = [("b", "1"), ("a", "2"), ("b", "0"), ("", "")]
    user = b"".join(b"\x26" + peer.text(name) + peer.text(value) for name, value in pairs)
    others = b"\x01\x01" + b"\x03" + peer.text("text/plain") + b"\x09" + peer.text(b"\0\xff")
    watcher = await stage.subscribed("watcher", ("will", 0), version=V5)
    client = await stage.connected(
        "c", version=V5, properties=LASTS, will=("will", b"bye", 0, False),
        will_properties=user + b"\x18\0\0\0\x05" + others,
    )  # fmt: skip
    await client.is_cut()
    await stage.forward(6)
    (message,) = await watcher.receive()
    found = peer.properties_in(message.properties)
    assert [value for name, value in found if name == 0x26] == [
        peer.text(name) + peer.text(value) for name, value in pairs
    ]
    assert sorted(one for one in found if one[0] != 0x26) == sorted(peer.properties_in(others))
