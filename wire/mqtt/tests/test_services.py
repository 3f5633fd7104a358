"""What connections share: subscriptions to logs, wills, and what a crash left."""

from __future__ import annotations

import trio

from magnetar.wire.mqtt.clients.record import StoredPlace, StoredWill
from magnetar.wire.mqtt.conftest import Stage
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import publish, subscribe, unsubscribe


async def test_a_log_is_left_with_the_last_filter_that_needs_it(stage: Stage) -> None:
    client = await stage.subscribed("c", ("a", 0), ("b", 0))
    log = stage.services.logs.for_topic("a")
    assert log is not None
    await client.says(unsubscribe("a"))
    assert log.feed.is_read
    await client.says(unsubscribe("b"))
    assert not log.feed.is_read


async def test_a_client_that_leaves_is_no_subscriber(stage: Stage) -> None:
    client = await stage.subscribed("c", ("a/+", 0), ("b", 1))
    assert stage.services.matcher.count == 2
    await client.is_cut()
    assert stage.services.matcher.count == 0
    assert stage.services.sessions.connected == {}


async def test_a_will(stage: Stage) -> None:
    reader = await stage.subscribed("r", ("w", 2))
    await stage.services.publish_will("c", StoredWill("w", b"x", 1, True))
    (only,) = await reader.receive()
    assert (only.topic, only.payload, only.qos, only.retain) == ("w", b"x", 1, False)
    _, retained = await reader.says(subscribe(("w", 0)))
    assert retained.retain


async def test_a_will_is_retained_before_it_is_received(stage: Stage) -> None:
    """Also the first retained message of a server, which makes the topic of them."""
    reader = await stage.subscribed("r", ("w", 0))
    async with trio.open_nursery() as nursery:
        will = StoredWill("w", b"x", 0, True)
        nursery.start_soon(stage.services.publish_will, "c", will)
        while not peer.parse(reader.wire.take_outgoing()):
            await trio.lowlevel.checkpoint()
        assert stage.services.retained.count == 1


async def test_messages_of_qos_2_behind_a_mark(stage: Stage) -> None:
    writer = await stage.connected("w")
    for number in (1, 2, 3):
        await writer.says(publish("t", b"x", qos=2, number=number))
    other = await stage.connected("other")
    await other.says(publish("t", b"x", qos=2, number=9), publish("t", b"x", qos=1, number=8))
    log = stage.services.logs.for_topic("t")
    assert log is not None
    assert log.topic is not None
    ledger_id, _ = log.topic.ledger.chain.first
    for entry_id, expected in ((0, [1, 2, 3]), (1, [2, 3]), (3, [])):
        mark = StoredPlace(log.name.full, ledger_id, entry_id, 0)
        assert await stage.services.received_since("w", mark) == expected
