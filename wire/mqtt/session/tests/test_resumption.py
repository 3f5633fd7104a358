"""A stored session in memory again: what it reads, what is in flight, and what is gone."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from magnetar.core.broker import administration
from magnetar.core.broker.catalog import Tenant
from magnetar.core.kernel.names import NamespaceName
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.mapping.rules import MappingRule
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V5, publish, subscribe

EXPIRY = b"\x11\0\0\x0e\x10"
"""A session expiry interval of an hour."""


async def asleep_with_all(stage: Stage, count: int, *packets: bytes) -> None:
    """So many sessions, whose clients have sent the same and left."""
    for number in range(count):
        client = await stage.connected(f"d{number}", clean=False)
        await client.says(*packets)
        await client.is_cut()


async def test_messages_in_flight_are_sent_again(stage: Stage) -> None:
    """[MQTT-4.4.0-1]: with DUP, their identifiers, and in their order."""
    reader = await stage.subscribed("d", ("t", 2), clean=False)
    writer = await stage.connected("w")
    await writer.says(*(publish("t", b"%d" % n, qos=n % 2 + 1, number=n + 1) for n in range(6)))
    sent = await reader.receive()
    await reader.says(peer.acknowledge("PUBACK", sent[0].number))
    await reader.says(peer.acknowledge("PUBREC", sent[1].number))
    await reader.is_cut()
    _, (_, *again) = await stage.connects("d", clean=False)
    released, *others = again
    assert (released.kind, released.number) == ("PUBREL", sent[1].number)
    assert [(one.number, one.payload, one.qos) for one in others] == [
        (one.number, one.payload, one.qos) for one in sent[2:]
    ]
    assert all(one.dup for one in others)


async def test_a_smaller_window_than_before(stage: Stage) -> None:
    """The oldest first, within the new Receive Maximum [MQTT-3.3.4-9]."""
    lasting = {"version": V5, "clean": False}
    reader = await stage.subscribed("d", ("t", 1), properties=EXPIRY, **lasting)
    writer = await stage.connected("w")
    await writer.says(*(publish("t", b"%d" % n, qos=1, number=n + 1) for n in range(5)))
    assert len(await reader.receive()) == 5
    await reader.is_cut()
    small = EXPIRY + b"\x21\0\x02"
    again, (_, *sent) = await stage.connects("d", properties=small, **lasting)
    got = []
    while sent:
        assert len(sent) <= 2
        got += [one.payload for one in sent]
        sent = await again.acknowledges(*sent)
    assert got == [b"0", b"1", b"2", b"3", b"4"]


async def test_the_state_survives_a_crash() -> None:
    """Messages that were in flight come with DUP and their identifiers."""
    stores = Stores()
    async with serving(stores) as stage:
        reader = await stage.subscribed("d", ("t", 2), clean=False)
        writer = await stage.connected("w")
        await writer.says(*(publish("t", b"%d" % n, qos=2, number=n + 1) for n in range(4)))
        sent = await reader.receive()
        await reader.says(peer.acknowledge("PUBREC", sent[0].number))
        await reader.says(peer.acknowledge("PUBCOMP", sent[0].number))
        await reader.says(peer.acknowledge("PUBREC", sent[1].number))
    async with serving(stores) as stage:
        _, (connack, *again) = await stage.connects("d", clean=False)
        assert connack.number == 1
        released = [one.number for one in again if one.kind == "PUBREL"]
        assert sent[1].number in released
        assert set(released) <= {sent[0].number, sent[1].number}
        others = [one for one in again if one.kind == "PUBLISH"]
        assert [(one.number, one.payload) for one in others] == [
            (one.number, one.payload) for one in sent[2:]
        ]
        assert all(one.dup for one in others)


async def test_messages_before_a_crash_have_dup_in_later_connections_too() -> None:
    """[MQTT-3.3.1-1]: the first connection after it has room for one, the next one for all."""
    stores = Stores()
    async with serving(stores) as stage:
        await stage.subscribed("d", ("t", 1), clean=False, version=V5, properties=EXPIRY)
        writer = await stage.connected("w")
        await writer.says(*(publish("t", b"%d" % n, qos=1, number=n + 1) for n in range(3)))
    async with serving(stores) as stage:
        options = {"clean": False, "version": V5}
        narrow = EXPIRY + b"\x21\0\1"
        first, (_, only) = await stage.connects("d", properties=narrow, **options)
        assert (only.payload, only.dup) == (b"0", True)
        await first.is_cut()
        writer = await stage.connected("w")
        await writer.says(publish("t", b"new", qos=1, number=1))
        _, (_, *found) = await stage.connects("d", properties=EXPIRY, **options)
        assert [(one.payload, one.dup) for one in found] == [
            (b"0", True), (b"1", True), (b"2", True), (b"new", False),
        ]  # fmt: skip


async def test_messages_that_come_after_a_crash_were_never_sent() -> None:
    """[MQTT-4.3.2-2], [MQTT-3.3.2-5]: they come without DUP, and not once they have expired."""
    stores = Stores()
    async with serving(stores) as stage:
        await stage.subscribed("d", ("t", 1), clean=False, version=V5, properties=EXPIRY)
        writer = await stage.connected("w")
        await writer.says(publish("t", b"0", qos=1, number=1))
    async with serving(stores) as stage:
        writer = await stage.connected("w", version=V5)
        soon = b"\x02\0\0\0\1"
        await writer.says(publish("t", b"1", qos=1, number=1, version=V5))
        await writer.says(publish("t", b"2", qos=1, number=2, version=V5, properties=soon))
        stores.clock.forward(4)
        options = {"clean": False, "version": V5, "properties": EXPIRY}
        _, (_, *found) = await stage.connects("d", **options)
        assert [(one.payload, one.dup) for one in found] == [(b"0", True), (b"1", False)]


async def test_a_session_that_lasts_no_longer_is_resumed_after_a_crash_as_it_was() -> None:
    """[MQTT-3.3.1-1], [MQTT-4.4.0-1]: the last connection of a session, without an expiry."""
    stores = Stores()
    async with serving(stores) as stage:
        reader = await stage.subscribed("d", ("t", 1), clean=False, version=V5, properties=EXPIRY)
        writer = await stage.connected("w")
        await writer.says(publish("t", b"x", qos=1, number=1))
        (sent,) = await reader.receive()
    async with serving(stores) as stage:
        _, (connack, again) = await stage.connects("d", clean=False, version=V5)
        assert connack.number == 1
        assert (again.number, again.payload, again.dup) == (sent.number, b"x", True)


async def test_a_session_of_a_deleted_namespace_is_resumed_without_it(stage: Stage) -> None:
    broker, devices = stage.broker, NamespaceName.parse("acme/devices")
    tenant = Tenant(allowed_clusters=["standalone"])
    await broker.catalog.put_tenant("acme", tenant, create=True)
    await broker.catalog.create_namespace(devices, NamespacePolicies())
    theirs = "persistent://acme/devices/x"
    asleep = await stage.subscribed(
        "d", (theirs, 1), ("t", 1), (f"$share/g/{theirs}", 1), clean=False
    )
    writer = await stage.connected("w")
    await writer.says(publish(theirs, b"lost", qos=1, number=1))
    await asleep.receive()
    await asleep.leaves()
    await administration.delete_namespace(broker, devices, force=True)
    for _ in range(2):
        again, (connack, *_) = await stage.connects("d", clean=False)
        assert (connack.number, connack.reasons) == (1, (0,))
    await writer.says(publish("t", b"x", qos=1, number=1))
    assert [one.payload for one in await again.receive()] == [b"x"]
    new_rules = (MappingRule("t/#", "other"),)
    await stage.services.rule_changes.change(new_rules, None)  # the others do not wait for it
    await again.leaves()
    await stage.services.rule_changes.change(None, None)


@pytest.mark.parametrize(("version", "reason"), [(4, 3), (V5, 0x97)])
async def test_subscriptions_of_resumed_sessions_have_a_budget(version: int, reason: int) -> None:
    async with serving(subscriptions_bytes_max=20_000) as stage:
        filters = [(f"f/{number}", 0) for number in range(10)]
        await asleep_with_all(stage, 4, subscribe(*filters))
        lasts = {"version": version, "clean": False, "properties": EXPIRY if version == 5 else b""}
        clients = [await stage.connects(f"d{number}", **lasts) for number in range(4)]
        assert [connack.reasons for _, (connack, *_) in clients] == [
            (0,),
            (0,),
            (reason,),
            (reason,),
        ]
        assert stage.services.statistics().subscriptions == 20
        await clients[0][0].is_cut()
        _, (connack,) = await stage.connects("d2", **lasts)
        assert (connack.number, connack.reasons) == (1, (0,))
        assert stage.services.statistics().subscriptions == 20


async def test_identifiers_of_resumed_sessions_have_a_budget() -> None:
    async with serving(unreleased_bytes_max=400) as stage:
        await asleep_with_all(
            stage, 3, *(publish("t", qos=2, number=number) for number in range(1, 51))
        )
        memory = stage.services.unreleased_memory
        assert memory.bytes == 0
        clients = [await stage.connects(f"d{number}", clean=False) for number in range(3)]
        assert [connack.reasons for _, (connack, *_) in clients] == [(0,), (0,), (3,)]
        assert memory.bytes == 400
        await clients[0][0].says(*(peer.acknowledge("PUBREL", number) for number in range(1, 51)))
        assert memory.bytes == 200
        await stage.connected("d2", clean=False)
        await clients[1][0].is_cut()
        assert memory.bytes == 200


async def test_the_rules_change_while_a_session_is_resumed(stage: Stage) -> None:
    """It has taken another connection over, and is neither connected nor asleep."""
    await stage.subscribed("d", ("t/#", 1), ("u/#", 1), clean=False)
    logs: Any = stage.services.logs
    sources_of, change_is_made = logs.sources_of, trio.Event()

    async def slow(filter: str, **options: bool) -> Any:
        found = await sources_of(filter, **options)
        if filter == "u/#":
            await change_is_made.wait()
        return found

    logs.sources_of = slow
    client = stage.stranger()
    assert await client.says(peer.connect("d", clean=False)) == []
    await stage.services.rule_changes.change((MappingRule("t/#", "other"),), None)
    change_is_made.set()
    (connack,) = await client.receive()
    assert (connack.number, connack.reasons) == (1, (0,))
    writer = await stage.connected("w")
    await writer.says(publish("t/1", b"x", qos=1, number=1))
    assert [one.payload for one in await client.receive()] == [b"x"]
    await client.is_cut()
    _, (_, *again) = await stage.connects("d", clean=False)
    assert [one.payload for one in again] == [b"x"], "its place is stored"
