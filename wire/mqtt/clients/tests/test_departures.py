"""Clients that leave at the same time."""

from __future__ import annotations

from magnetar.core.testing.bench import settled
from magnetar.wire.mqtt.clients import departures
from magnetar.wire.mqtt.conftest import Stage


async def test_a_crowd_leaves_with_few_tasks(stage: Stage) -> None:
    count = departures.AT_ONCE + 50
    clients = [await stage.subscribed(f"c{n}", ("t", 1), clean=False) for n in range(count)]
    stage.stores.ledgers.sync_at_once = False
    for client in clients:
        client.session.closed("the peer closed")
    await settled()
    assert stage.services.departures._tasks == departures.AT_ONCE
    assert stage.services.sessions.records.asleep == 0
    stage.stores.ledgers.sync_at_once = True
    while stage.services.sessions.records.asleep < count:
        stage.stores.ledgers.sync()
        await settled()
    assert stage.services.departures._tasks == 0
    assert stage.services.sessions.connected == {}


async def test_a_client_that_comes_back_does_not_wait(stage: Stage) -> None:
    count = departures.AT_ONCE + 1
    clients = [await stage.subscribed(f"c{n}", ("t", 1), clean=False) for n in range(count)]
    stage.stores.ledgers.sync_at_once = False
    for client in clients:
        client.session.closed("the peer closed")
    await settled()
    stage.stores.ledgers.sync_at_once = True
    _, (connack,) = await stage.connects(f"c{count - 1}", clean=False)
    assert connack.number == 1
