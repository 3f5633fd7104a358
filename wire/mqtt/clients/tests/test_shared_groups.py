"""Shared subscriptions of whole clients: turns, members that leave, and restarts."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.clients.shared_groups import GROUP_BYTES, SESSION_BYTES
from magnetar.wire.mqtt.conftest import Client, Stage, serving
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V5, Received, publish, subscribe, unsubscribe

LASTS = b"\x11\xff\xff\xff\xff"


async def member(stage: Stage, name: str, qos: int = 1, *, lasts: bool = False) -> Client:
    properties = LASTS if lasts else b""
    options = {"version": V5, "clean": not lasts, "properties": properties}
    return await stage.subscribed(name, ("$share/g/t/#", qos), **options)


async def send(writer: Client, *payloads: bytes, qos: int = 1) -> None:
    for number, payload in enumerate(payloads, 1):
        found = await writer.says(publish("t/x", payload, qos=qos, number=number if qos else 0))
        await writer.says(*(peer.acknowledge("PUBREL", one.number) for one in found if qos == 2))


def payloads(got: list[Received]) -> list[bytes]:
    return [one.payload for one in got]


async def test_each_message_goes_to_one_member_and_to_each_group(stage: Stage) -> None:
    """(4.8.2) And a plain subscription gets all."""
    first, second = await member(stage, "1"), await member(stage, "2")
    other = await stage.subscribed("3", ("$share/h/t/x", 1), ("t/x", 1), version=V5)
    writer = await stage.connected("w")
    await send(writer, b"a", b"b", b"c", b"d")
    assert payloads(await first.receive()) == [b"a", b"c"]
    assert payloads(await second.receive()) == [b"b", b"d"]
    assert sorted(payloads(await other.receive())) == sorted([b"a", b"b", b"c", b"d"] * 2)


async def test_each_member_has_its_own_options(stage: Stage) -> None:
    """[MQTT-4.8.2-3]: the QoS that was granted to the member."""
    readers = [await member(stage, str(qos), qos) for qos in (0, 1, 2)]
    writer = await stage.connected("w")
    await send(writer, b"a", b"b", b"c", qos=2)
    got = [await reader.receive() for reader in readers]
    assert [[one.qos for one in part] for part in got] == [[0], [1], [2]]


async def test_messages_of_qos_0(stage: Stage) -> None:
    first, second = await member(stage, "1"), await member(stage, "2", 0)
    await send(await stage.connected("w"), b"a", b"b", qos=0)
    assert payloads(await first.receive()) + payloads(await second.receive()) == [b"a", b"b"]


async def test_what_a_member_has_not_acknowledged_goes_to_others(stage: Stage) -> None:
    """(4.8.2) Those of QoS 1."""
    first, second = await member(stage, "1"), await member(stage, "2")
    writer = await stage.connected("w")
    await send(writer, b"a", b"b", b"c", b"d")
    a, _c = await first.receive()
    await first.acknowledges(a)
    await first.is_cut()
    assert payloads(await second.receive()) == [b"b", b"d", b"c"]


async def test_a_message_of_qos_2_stays_with_a_session_that_lasts(stage: Stage) -> None:
    """[MQTT-4.8.2-4]"""
    first, second = await member(stage, "1", 2, lasts=True), await member(stage, "2", 2)
    await send(await stage.connected("w"), b"a", b"b", qos=2)
    assert payloads(await first.receive()) == [b"a"]
    await first.is_cut()
    assert payloads(await second.receive()) == [b"b"]
    again, (connack, one) = await stage.connects("1", version=V5, clean=False, properties=LASTS)
    assert (connack.number, one.payload, one.dup, one.qos) == (1, b"a", True, 2)
    assert [each.kind for each in await again.acknowledges(one)] == ["PUBREL"]
    assert await second.receive() == []


async def test_messages_wait_while_nobody_is_connected(stage: Stage) -> None:
    first = await member(stage, "1", lasts=True)
    await first.leaves()
    writer = await stage.connected("w")
    await send(writer, b"a", b"b")
    _again, (connack, *got) = await stage.connects("1", version=V5, clean=False, properties=LASTS)
    assert (connack.kind, payloads(got)) == ("CONNACK", [b"a", b"b"])
    second = await member(stage, "2")
    await send(writer, b"c", b"d")
    assert len(await second.receive()) == 1


async def test_a_group_ends_with_its_last_session(stage: Stage) -> None:
    first, second = await member(stage, "1", lasts=True), await member(stage, "2")
    await second.leaves()
    assert stage.services.groups.count == 1
    (unsuback,) = await first.says(unsubscribe("$share/g/t/#", "$share/g/t", version=V5))
    assert unsuback.reasons == (0, 0x11)
    assert (stage.services.groups.count, stage.services.matcher.count) == (0, 0)
    await send(await stage.connected("w"), b"lost")
    assert await first.receive() == []
    third = await member(stage, "3")
    assert await third.receive() == []


async def test_a_group_ends_when_its_last_session_expires(stage: Stage) -> None:
    client = await stage.connected("1", version=V5, properties=b"\x11\0\0\0\x0a")
    await client.says(subscribe(("$share/g/t/#", 1), version=V5))
    await client.is_cut()
    assert stage.services.groups.count == 1
    await stage.forward(11)
    assert stage.services.groups.count == 0


async def test_no_retained_messages(stage: Stage) -> None:
    """(4.8.2) None at SUBSCRIBE; new ones come with RETAIN 0."""
    writer = await stage.connected("w")
    await writer.says(publish("t/r", b"old", retain=True))
    reader = await member(stage, "1")
    assert await reader.receive() == []
    await writer.says(publish("t/r", b"new", retain=True))
    (only,) = await reader.receive()
    assert (only.payload, only.retain) == (b"new", False)


async def test_a_subscription_identifier(stage: Stage) -> None:
    reader = await stage.connected("1", version=V5)
    await reader.says(subscribe(("$share/g/t/#", 1), version=V5, properties=b"\x0b\x07"))
    await send(await stage.connected("w"), b"a")
    (only,) = await reader.receive()
    assert only.properties == b"\x0b\x07"


async def test_nothing_comes_before_connack(stage: Stage) -> None:
    """[MQTT-3.2.0-1]: also not what has waited."""
    first = await member(stage, "1", lasts=True)
    await first.is_cut()
    await send(await stage.connected("w"), b"a")
    _, got = await stage.connects("1", version=V5, clean=False, properties=LASTS)
    assert [one.kind for one in got] == ["CONNACK", "PUBLISH"]


async def test_members_without_room_leave_messages_to_others(stage: Stage) -> None:
    small = await stage.connected("1", version=V5, properties=b"\x21\0\x01")  # receive maximum 1
    await small.says(subscribe(("$share/g/t/#", 1), version=V5))
    other = await stage.connected("2", version=V5, properties=b"\x21\0\x02")
    await other.says(subscribe(("$share/g/t/#", 1), version=V5))
    await send(await stage.connected("w"), *(b"%d" % n for n in range(6)))
    one = await small.receive()
    two = await other.receive()
    assert (len(one), len(two)) == (1, 2)
    got = payloads(one) + payloads(two)
    for _ in range(4):
        one = await small.acknowledges(*one)
        two = await other.receive() + await other.acknowledges(*two)
        one += await small.receive()
        got += payloads(one) + payloads(two)
    assert sorted(got) == [b"%d" % n for n in range(6)]


async def test_after_a_crash_all_that_is_not_acknowledged_comes_again() -> None:
    stores = Stores()
    async with serving(stores) as stage:
        first = await member(stage, "1", lasts=True)
        writer = await stage.connected("w")
        await send(writer, b"a", b"b", b"c")
        a, _b, _c = await first.receive()
        await first.acknowledges(a)
        await stage.forward(1)  # records are stored
        await send(writer, b"d")
    async with serving(stores) as stage:
        assert stage.services.groups.count == 1
        _, (connack, *got) = await stage.connects("1", version=V5, clean=False, properties=LASTS)
        assert connack.number == 1
        assert set(payloads(got)) == {b"b", b"c", b"d"}


async def test_after_a_stop_nothing_comes_twice() -> None:
    stores = Stores()
    async with serving(stores) as stage:
        first = await member(stage, "1", lasts=True)
        writer = await stage.connected("w")
        await send(writer, b"a", b"b", b"c")
        await first.acknowledges(*(await first.receive()))
        await first.leaves()
        await send(writer, b"d")
        await stage.front.stop()
    async with serving(stores) as stage:
        _, (_connack, *got) = await stage.connects("1", version=V5, clean=False, properties=LASTS)
        assert payloads(got) == [b"d"]


async def test_a_damaged_record_is_told(caplog: pytest.LogCaptureFixture) -> None:
    stores = Stores()
    async with serving(stores) as stage:
        await member(stage, "1", lasts=True)
        await stage.services.groups._stored.store(b"$share/g/t/#", b"\xff")
    async with serving(stores) as stage:
        assert "continues at the end" in caplog.text
        again, _ = await stage.connects("1", version=V5, clean=False, properties=LASTS)
        await send(await stage.connected("w"), b"a")
        assert payloads(await again.receive()) == [b"a"]


async def test_a_group_without_sessions_is_forgotten() -> None:
    """Its last session ended, and a crash came before its record was deleted."""
    stores = Stores()
    async with serving(stores) as stage:
        await member(stage, "1", lasts=True)
        await stage.services.sessions.records.stored.store(b"1", b"")
    async with serving(stores) as stage:
        assert stage.services.groups.count == 0


async def test_groups_count_as_memory() -> None:
    """One client could have ten thousand, of 4 KB each, a hundred clients 4 GB."""
    async with serving(subscriptions_bytes_max=100_000) as stage:
        client = await stage.connected("c", version=V5)
        (suback,) = await client.says(
            subscribe(*((f"$share/g{number}/s", 1) for number in range(100)), version=V5)
        )
        granted = suback.reasons.count(1)
        assert 20 < granted < 30
        assert set(suback.reasons[granted:]) == {0x97}
        await client.is_cut()
        assert stage.services.groups.bytes == 0


async def test_sessions_that_sleep_count_as_memory() -> None:
    """Until they end: random client ids cannot fill it."""
    stores = Stores()
    async with serving(stores) as stage:
        groups = stage.services.groups
        for name in ("1", "2"):
            await (await member(stage, name, lasts=True)).is_cut()
        size = groups.bytes
        assert size == GROUP_BYTES + 2 * (SESSION_BYTES + 1)
    async with serving(stores) as stage:
        groups = stage.services.groups
        assert groups.bytes == size
        await stage.connected("1", version=V5)
        assert groups.bytes == GROUP_BYTES + SESSION_BYTES + 1
        await stage.connected("2", version=V5)
        assert groups.bytes == 0


async def test_the_logs_keep_what_a_group_needs(stage: Stage) -> None:
    first = await member(stage, "1", lasts=True)
    await send(await stage.connected("w"), b"a", b"b")
    (name,) = {name for name, _ in stage.services.groups.positions()}
    a, _b = await first.receive()
    before = min(position for _, position in stage.services.groups.positions())
    await first.acknowledges(a)
    assert min(position for _, position in stage.services.groups.positions()) > before
    assert name.startswith("persistent://")


async def test_a_second_member_waits_for_the_record_too(stage: Stage) -> None:
    first, second = [await stage.connected(name, clean=False) for name in "ab"]
    stored: Any = stage.services.groups
    store, go = stored._stored.store, trio.Event()

    async def slow(*arguments: Any) -> Any:
        await go.wait()
        return await store(*arguments)

    stored._stored.store = slow
    assert await first.says(subscribe(("$share/g/t", 1))) == []
    assert await second.says(subscribe(("$share/g/t", 1))) == []
    go.set()
    for client in (first, second):
        (suback,) = await client.receive()
        assert suback.reasons == (1,)
