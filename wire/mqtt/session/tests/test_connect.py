"""CONNECT: what is refused, what is resumed, and what a client is told."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.cluster.ownership import OwnershipTable, Peer
from magnetar.core.kernel.errors import BrokerError, NotReady
from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.session.connect import IN_FLIGHT_BYTES
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V3, V5, publish, subscribe

EXPIRY = b"\x11\0\0\x0e\x10"
"""A session expiry interval of an hour."""


@pytest.mark.parametrize(
    ("version", "clean", "reason"),
    [(3, True, 2), (3, False, 2), (4, False, 2), (4, True, 0), (5, False, 0), (5, True, 0)],
)
async def test_an_empty_client_id(stage: Stage, version: int, clean: bool, reason: int) -> None:
    """[MQTT-3.1.3-8 of 3.1.1], [MQTT-3.1.3-6]"""
    client, (connack,) = await stage.connects("", version=version, clean=clean)
    assert connack.reasons == (reason,)
    assert (client.line.ending is None) == (not reason)
    if version == V5:
        assert b"\x12" in connack.properties, "the identifier that the server has assigned"


async def test_the_protocol_level_is_unknown(stage: Stage) -> None:
    """[MQTT-3.1.2-2 of 3.1.1]"""
    client = stage.stranger()
    (connack,) = await client.says(peer.connect("c", version=4).replace(b"MQTT\x04", b"MQTT\x06"))
    assert (connack.kind, connack.reasons) == ("CONNACK", (1,))
    assert client.line.ending is not None


async def test_no_authentication_method_is_known(stage: Stage) -> None:
    properties = b"\x15" + peer.text("SCRAM-SHA-256")
    _, (connack,) = await stage.connects(version=V5, properties=properties)
    assert connack.reasons == (0x8C,)


async def test_too_many_connections(stage: Stage) -> None:
    client = stage.stranger(V5)
    client.line.refusal = "too many connections"
    (connack,) = await client.says(peer.connect("c", version=V5))
    assert connack.reasons == (0x89,)


async def test_what_a_client_of_5_is_told() -> None:
    async with serving(
        receive_maximum=9, topic_alias_maximum=3, keep_alive_seconds_max=60,
        session_expiry_seconds_max=100, packet_bytes_max=70_000,
    ) as stage:  # fmt: skip
        _, (connack,) = await stage.connects(version=V5, properties=EXPIRY)
        for expected in (b"\x21\0\x09", b"\x22\0\x03", b"\x13\0\x3c", b"\x11\0\0\0\x64",
                         b"\x27\0\x01\x11\x70"):  # fmt: skip
            assert expected in connack.properties


@pytest.mark.parametrize("version", [V3, V5])
async def test_a_session_is_resumed(stage: Stage, version: int) -> None:
    """[MQTT-3.1.2-5], [MQTT-3.2.2-3]: with what was published meanwhile."""
    properties = EXPIRY if version == V5 else b""
    lasting = {"version": version, "clean": False, "properties": properties}
    first, (connack,) = await stage.connects("d", **lasting)
    assert connack.number == 0
    await first.says(subscribe(("t/#", 1), version=version))
    await first.leaves()
    writer = await stage.connected("w")
    await writer.says(*(publish("t/1", b"%d" % n, qos=1, number=n + 1) for n in range(3)))
    second, answers = await stage.connects("d", **lasting)
    assert [one.kind for one in answers] == ["CONNACK"] + ["PUBLISH"] * 3
    assert answers[0].number == 1
    assert [one.payload for one in answers[1:]] == [b"0", b"1", b"2"]
    assert not any(one.dup for one in answers)
    await second.acknowledges(*answers)
    await second.is_cut()
    _, answers = await stage.connects("d", **lasting)
    assert [one.kind for one in answers] == ["CONNACK"]


async def test_a_clean_start_ends_the_session(stage: Stage) -> None:
    """[MQTT-3.1.2-4]"""
    lasting = await stage.subscribed("d", ("t", 1), clean=False)
    await lasting.leaves()
    clean, (connack,) = await stage.connects("d", clean=True)
    assert connack.number == 0
    await clean.leaves()
    assert stage.services.sessions.records.count == 0
    _, (connack,) = await stage.connects("d", clean=False)
    assert connack.number == 0, "nothing is left of the first session"


async def test_another_connection_takes_the_session_over(stage: Stage) -> None:
    """[MQTT-3.1.4-3]"""
    first = await stage.subscribed("d", ("t", 1), version=V5, clean=False, properties=EXPIRY)
    second, (connack, *_) = await stage.connects("d", version=V5, clean=False, properties=EXPIRY)
    assert connack.number == 1
    (disconnect,) = await first.receive()
    assert (disconnect.kind, disconnect.reasons) == ("DISCONNECT", (0x8E,))
    await first.is_cut()
    writer = await stage.connected("w")
    await writer.says(publish("t", b"x", qos=1, number=1))
    assert [one.payload for one in await second.receive()] == [b"x"]


async def test_the_state_survives_a_second_crash_right_after_connack() -> None:
    """The record that is stored before CONNACK has all that the resumed one had."""
    stores = Stores()
    async with serving(stores) as stage:
        reader = await stage.subscribed("d", ("t", 2), clean=False)
        writer = await stage.connected("w")
        await writer.says(*(publish("t", b"%d" % n, qos=2, number=n + 1) for n in range(3)))
        sent = await reader.receive()
        await reader.says(peer.acknowledge("PUBREC", sent[0].number))
    for _ in range(3):
        async with serving(stores) as stage:
            _, (connack, *again) = await stage.connects("d", clean=False)
            assert connack.number == 1
            expected = [("PUBREL", sent[0].number), *(("PUBLISH", one.number) for one in sent[1:])]
            assert [(one.kind, one.number) for one in again] == expected
            writer = await stage.connected("w")
            await writer.says(publish("t", b"meanwhile", qos=0))


async def test_a_message_of_qos_2_is_stored_once_across_a_crash() -> None:
    """[MQTT-4.3.3-10]"""
    stores = Stores()
    async with serving(stores) as stage:
        writer = await stage.connected("w", clean=False)
        await writer.says(publish("t", b"x", qos=2, number=1))
        await writer.says(publish("t", b"y", qos=2, number=2))
        await writer.says(peer.acknowledge("PUBREL", 1))
    async with serving(stores) as stage:
        reader = await stage.subscribed("r", ("t", 0))
        writer = await stage.connected("w", clean=False)
        (pubrec,) = await writer.says(publish("t", b"y", qos=2, number=2, dup=True))
        assert (pubrec.kind, pubrec.number) == ("PUBREC", 2)
        (pubrec,) = await writer.says(publish("t", b"new", qos=2, number=1))
        assert pubrec.kind == "PUBREC"
        assert [one.payload for one in await reader.receive()] == [b"new"]


async def test_a_client_that_is_gone_before_its_session_is_there(stage: Stage) -> None:
    asleep = await stage.subscribed("d", ("t", 1), clean=False)
    await asleep.leaves()
    client = stage.stranger()
    client.feed(peer.connect("d", clean=False))
    client.session.closed("the peer closed")
    assert await client.receive() == []
    assert stage.services.sessions.connected == {}
    _, (connack,) = await stage.connects("d", clean=False)
    assert connack.number == 1


@pytest.mark.parametrize(("version", "reason"), [(4, 3), (V5, 0x9C)])
async def test_another_server_that_has_the_sessions(version: int, reason: int) -> None:
    """(4.11) A client of 5.0 gets its address."""
    table = OwnershipTable()
    async with serving(ownership=table) as stage:
        table.topics[stage.services.sessions.topic.full] = Peer(2, {"mqtt": "other:1883"})
        client, (connack,) = await stage.connects("d", version=version)
        assert connack.reasons == (reason,)
        assert (b"\x1c\0\x0aother:1883" in connack.properties) is (version == V5)
        assert client.line.ending is not None
        table.topics.clear()
        await stage.connected("d", version=version)


async def test_windows_of_all_clients_have_a_budget() -> None:
    """Clients that acknowledge nothing cannot fill the memory."""
    async with serving(windows_bytes_max=2 * 100 * IN_FLIGHT_BYTES, inflight_max=100) as stage:
        clients = [await stage.subscribed(f"c{number}", ("t", 1)) for number in range(3)]
        writer = await stage.connected("w", version=V5, properties=b"\x21\0\x01")
        for number in range(1, 121):
            await writer.says(publish("t", b"x", qos=1, number=number, version=V5))
        assert [len(await client.receive()) for client in clients] == [100, 100, 20]
        await clients[0].leaves()
        await clients[0].is_cut()
        later = await stage.subscribed("c3", ("t", 1))
        for number in range(1, 121):
            await writer.says(publish("t", b"x", qos=1, number=number, version=V5))
        assert len(await later.receive()) == 100


@pytest.mark.parametrize(("version", "reason"), [(4, 3), (V5, 0x97)])
async def test_long_client_ids_of_all_clients_have_a_budget(version: int, reason: int) -> None:
    """Ten thousand connections would take two gigabytes for them. Short ones are not counted."""
    async with serving(wills_bytes_max=3 * 2 * 65_000) as stage:
        first, _ = [await stage.connected(f"{i}" + "x" * 64_999) for i in (1, 2)]
        refused, (connack,) = await stage.connects("3" + "x" * 64_999, version=version)
        assert connack.reasons == (reason,)
        assert refused.line.ending is not None
        for number in range(10):
            await stage.connected(f"short {number}", version=version)
        await first.leaves()
        await first.is_cut()
        await stage.connected("4" + "x" * 64_999, version=version)


async def test_no_more_sessions_are_kept_than_there_is_room_for() -> None:
    """Random client ids cannot fill it; who has a session, or needs none, is not affected."""
    lasts = {"version": V5, "clean": False, "properties": b"\x11\0\0\0\x64"}
    async with serving(sessions_bytes_max=50) as stage:
        for number in range(10):
            client, (connack,) = await stage.connects(f"c{number}", **lasts)
            await client.is_cut()
            if connack.reasons == (0x97,):
                break
        assert 2 < number < 9
        _, (connack,) = await stage.connects("old", clean=False)
        assert connack.reasons == (3,)
        await stage.connected("none", version=V5)
        await stage.connected("c0", **lasts)
        await stage.forward(101)  # sessions without a connection have expired
        await stage.connected("new", **lasts)


def refuse_logs_of(stage: Stage, filter: str, error: BrokerError) -> None:
    """Have the logs of one filter not be found."""
    logs: Any = stage.services.logs
    sources_of = logs.sources_of

    async def found(asked: str, **options: bool) -> Any:
        if asked == filter:
            raise error
        return await sources_of(asked, **options)

    logs.sources_of = found


async def test_a_session_that_cannot_be_resumed_leaves_no_subscriber(stage: Stage) -> None:
    asleep = await stage.subscribed("d", ("t", 1), ("$share/g/s", 1), ("u", 1), clean=False)
    await asleep.leaves()
    logs: Any = stage.services.logs
    sources_of = logs.sources_of
    refuse_logs_of(stage, "u", NotReady("it moves"))
    _, (connack,) = await stage.connects("d", clean=False)
    assert connack.reasons == (3,)
    assert stage.services.statistics().subscriptions == 0
    assert stage.services.groups.names() == ["$share/g/s"], "its session still has it"
    logs.sources_of = sources_of
    _, (connack,) = await stage.connects("d", clean=False)
    assert (connack.number, connack.reasons) == (1, (0,))
    assert stage.services.statistics().subscriptions == 3


async def test_a_session_that_was_taken_over_in_vain_expires() -> None:
    async with serving(session_expiry_seconds_max=100) as stage:
        former = await stage.subscribed("d", ("t", 1), clean=False)
        refuse_logs_of(stage, "t", NotReady("it moves"))
        _, (connack,) = await stage.connects("d", clean=False)
        assert connack.reasons == (3,)
        assert former.line.ending is not None
        assert stage.services.statistics().asleep == 1
        await stage.forward(101)
        await stage.forward(1)
        assert stage.services.sessions.records.count == 0


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_session_that_cannot_be_stored(is_new: bool) -> None:
    async with serving(session_expiry_seconds_max=100) as stage:
        if not is_new:
            asleep = await stage.subscribed("d", ("t", 1), clean=False)
            await asleep.leaves()
        await (await stage.connected("other", clean=False)).leaves()
        records: Any = stage.services.sessions.records
        put = records.put

        def fails(client_id: str, data: bytes, done: Any) -> None:
            put(client_id, data, lambda _: done(NotReady("it moves")))

        records.put = fails
        _, (connack,) = await stage.connects("d", clean=False)
        assert connack.reasons == (3,)
        records.put = put
        statistics = stage.services.statistics()
        assert (statistics.connected, statistics.subscriptions) == (0, 0)
        assert statistics.asleep == (1 if is_new else 2)
        _, (connack,) = await stage.connects("d", clean=False)
        assert connack.number == (not is_new), "as it was before"


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_session_expires_that_could_not_be_stored_for_a_while(is_new: bool) -> None:
    async with serving(session_expiry_seconds_max=100) as stage:
        if not is_new:
            asleep = await stage.subscribed("d", ("t", 1), clean=False)
            await asleep.leaves()
        await (await stage.connected("other", clean=True)).leaves()
        stage.stores.ledgers.full = True
        _, (connack,) = await stage.connects("d", clean=False)
        assert connack.reasons == (3,)
        stage.stores.ledgers.full = False
        for _ in range(4):
            await stage.forward(101)
        assert stage.services.sessions.records.count == 0
