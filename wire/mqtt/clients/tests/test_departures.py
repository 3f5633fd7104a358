"""Clients that leave at the same time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from magnetar.core.testing.bench import settled
from magnetar.wire.mqtt.clients import departures
from magnetar.wire.mqtt.conftest import Client, Stage
from magnetar.wire.mqtt.mapping.rules import MappingRule
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V5

CROWD = departures.AT_ONCE + 50


async def crowd(stage: Stage, count: int = CROWD) -> list[Client]:
    """Clients that have sessions, after which nothing is stored before `sync`."""
    clients = [await stage.subscribed(f"c{n}", ("t", 1), clean=False) for n in range(count)]
    stage.stores.ledgers.sync_at_once = False
    return clients


async def sync_until(stage: Stage, condition: Callable[[], bool]) -> None:
    while not condition():
        stage.stores.ledgers.sync()
        await settled()


async def test_of_a_crowd_only_the_records_wait(stage: Stage) -> None:
    clients = await crowd(stage)
    sessions = stage.services.sessions
    for client in clients:
        client.session.closed("the peer closed")
    assert sessions.connected == {}
    assert (len(sessions.records.awake()), sessions.records.asleep) == (CROWD, 0)
    await sync_until(stage, lambda: sessions.records.asleep == CROWD)
    assert sessions.records.awake() == []
    assert (stage.services.departures._tasks, stage.services.departures._written) == (0, 0)


async def test_beyond_the_limit_a_crowd_leaves_with_few_tasks(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(departures, "WRITTEN_AT_ONCE", 10)
    clients = await crowd(stage)
    sessions = stage.services.sessions
    for client in clients:
        client.session.closed("the peer closed")
    await settled()
    assert stage.services.departures._written == 10
    assert stage.services.departures._tasks == departures.AT_ONCE
    assert sessions.records.asleep == 0
    stage.stores.ledgers.sync_at_once = True
    await sync_until(stage, lambda: sessions.records.asleep == CROWD)
    assert stage.services.departures._tasks == 0
    assert sessions.connected == {}


@pytest.mark.parametrize("limit", [0, departures.WRITTEN_AT_ONCE])
async def test_a_client_that_comes_back_does_not_wait(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(departures, "WRITTEN_AT_ONCE", limit)
    for client in await crowd(stage):
        client.session.closed("the peer closed")
    await settled()
    stage.stores.ledgers.sync_at_once = True
    _, (connack,) = await stage.connects(f"c{CROWD - 1}", clean=False)
    assert connack.number == 1


async def test_a_record_that_is_stored_late_replaces_no_later_one(stage: Stage) -> None:
    (client,) = await crowd(stage, 1)
    client.session.closed("the peer closed")
    again = stage.stranger()
    again.feed(peer.connect("c0", clean=False))
    await settled()
    records = stage.services.sessions.records
    await sync_until(stage, lambda: not stage.services.departures._written)
    (connack,) = await again.receive()
    assert connack.number == 1
    assert (records.is_awake("c0"), len(records.awake()), records.asleep) == (True, 1, 0)


async def test_a_client_that_comes_back_for_a_new_session_ends_the_one_on_its_way(
    stage: Stage,
) -> None:
    (client,) = await crowd(stage, 1)
    client.session.closed("the peer closed")
    again = stage.stranger()
    again.feed(peer.connect("c0", clean=True))
    while not (answers := await again.receive()):
        stage.stores.ledgers.sync()
    assert [one.number for one in answers] == [0]
    assert stage.services.sessions.records.count == 0


async def test_a_session_on_its_way_to_storage_reads_new_logs(stage: Stage) -> None:
    """Its place is stored before the rules change."""
    rules, changes = (MappingRule("t/#", "other"),), stage.services.rule_changes
    await changes.change(rules, None)  # so that the log is open later
    await changes.change((), None)
    (client,) = await crowd(stage, 1)
    client.session.closed("the peer closed")
    stage.broker.spawn(changes.change, rules, None)
    await settled()
    await sync_until(stage, lambda: stage.services.logs.rules.rules[0] == rules[0])
    record = await stage.services.sessions.records.read("c0")
    assert record is not None
    assert any("other" in one.log for one in record.places)


async def test_a_record_that_cannot_be_stored_is_tried_again(stage: Stage) -> None:
    client = await stage.subscribed("c", ("t", 1), clean=False)
    stage.stores.ledgers.full = True
    await client.is_cut()
    records = stage.services.sessions.records
    assert (records.is_awake("c"), len(records.awake()), records.asleep) == (True, 1, 0)
    stage.stores.ledgers.full = False
    await stage.forward(6)
    assert (records.awake(), records.asleep) == ([], 1)


async def test_a_will_is_published_before_the_session_sleeps(stage: Stage) -> None:
    reader = await stage.subscribed("reader", ("will/#", 1))
    will = ("will/t", b"bye", 1, False)
    client = await stage.connected(
        "w", version=V5, clean=False, properties=b"\x11\0\0\0\x64", will=will
    )
    await client.is_cut()
    (got,) = await reader.receive()
    assert got.payload == b"bye"
    record = await stage.services.sessions.records.read("w")
    assert record is not None
    assert record.will is None
