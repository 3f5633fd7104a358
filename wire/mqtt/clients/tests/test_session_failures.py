"""Sessions and wills when something fails: a crash, a topic that cannot be written, a full disk."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.kernel.errors import NotReady
from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V5, publish

NOWHERE = "persistent://nobody/nowhere/t"


def lasting(seconds: int = 100) -> dict[str, Any]:
    return {"version": V5, "properties": b"\x11" + seconds.to_bytes(4, "big")}


async def crash_before_pubrec(stores: Stores, will: Any = None) -> None:
    """A message of QoS 2 is stored, and the server is killed before its record is."""
    async with serving(stores) as stage:
        device = await stage.connected("d", clean=False, will=will)
        await device.says(publish("t", b"first", qos=2, number=1))
        await device.says(peer.acknowledge("PUBREL", 1))
        records = stage.services.sessions.records
        records.put_progress = lambda *_: None  # type: ignore[method-assign,assignment]
        assert await device.says(publish("t", b"second", qos=2, number=2)) == []


async def repeats(stage: Stage) -> None:
    """The device sends its message again, and a witness gets only what is new."""
    witness = await stage.subscribed("witness", ("t", 0))
    device, (connack, *_) = await stage.connects("d", clean=False)
    assert connack.number == 1
    (pubrec,) = await device.says(publish("t", b"second", qos=2, number=2, dup=True))
    assert (pubrec.kind, pubrec.number) == ("PUBREC", 2)
    assert await witness.receive() == []


async def test_after_a_crash_and_the_will_that_it_causes() -> None:
    """[MQTT-4.3.3-10]: the message is not stored again."""
    stores = Stores()
    await crash_before_pubrec(stores, ("will", b"gone", 0, False))
    async with serving(stores) as stage:
        watcher = await stage.subscribed("watcher", ("will", 0))
        await stage.forward(1)
        assert len(await watcher.receive()) == 1
        await repeats(stage)


async def test_after_a_crash_and_a_connection_that_is_given_up() -> None:
    stores = Stores()
    await crash_before_pubrec(stores)
    async with serving(stores) as stage:
        client = stage.stranger()
        client.feed(peer.connect("d", clean=False))
        await client.is_cut()
        await repeats(stage)


async def test_a_client_that_is_back_at_once_after_a_crash() -> None:
    """Its will is due with the end of the server's process."""
    stores = Stores()
    async with serving(stores) as stage:
        await stage.connected("d", clean=False, will=("will", b"gone", 0, False))
    async with serving(stores) as stage:
        watcher = await stage.subscribed("watcher", ("will", 0))
        await stage.connected("d", clean=False)
        assert [one.payload for one in await watcher.receive()] == [b"gone"]
        await stage.forward(10)
        assert await watcher.receive() == []


@pytest.mark.parametrize("seconds", [0, 100])
async def test_a_will_that_cannot_be_published_now_is_tried_again(
    stage: Stage, seconds: int
) -> None:
    watcher = await stage.subscribed("watcher", ("will", 0))
    client = await stage.connected("d", will=("will", b"gone", 0, False), **lasting(seconds))
    sessions = stage.services.sessions
    publish_will = sessions._publish_will

    async def fail(*_: Any) -> None:
        raise NotReady("the topic is being unloaded")

    sessions._publish_will = fail
    await client.is_cut()
    await stage.forward(1)
    sessions._publish_will = publish_will
    await stage.forward(7)
    assert [one.payload for one in await watcher.receive()] == [b"gone"]
    await stage.forward(200)
    assert sessions.records.count == 0


async def test_wills_that_nobody_can_publish_delay_no_others(stage: Stage) -> None:
    """They are given up, and their sessions expire."""
    watcher = await stage.subscribed("watcher", ("will", 0))
    for number in range(150):
        client = await stage.connected(
            f"bad{number}", will=(NOWHERE, b"", 0, False), will_properties=b"\x18\0\0\0\x01",
            **lasting(),
        )  # fmt: skip
        await client.is_cut()
    good = await stage.connected(
        "good", will=("will", b"gone", 0, False), will_properties=b"\x18\0\0\0\x01", **lasting()
    )
    await good.is_cut()
    for _ in range(3):
        await stage.forward(1)
    assert [one.payload for one in await watcher.receive()] == [b"gone"]
    for _ in range(3):
        await stage.forward(100)
    assert stage.services.sessions.records.count == 0


async def test_a_session_whose_removal_fails_is_still_there(stage: Stage) -> None:
    client = await stage.subscribed("d", ("t", 1), clean=False)
    await client.leaves()
    await client.is_cut()
    stage.stores.ledgers.full = True
    _, (connack,) = await stage.connects("d", clean=True)
    assert connack.reasons == (3,)
    stage.stores.ledgers.full = False
    _, (connack,) = await stage.connects("d", clean=False)
    assert connack.number == 1
