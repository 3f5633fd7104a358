"""Normative statements about DISCONNECT, AUTH and the end of connections, by their numbers.

The statements are listed in docs/mqtt-statements.md. No authentication method is supported here;
`test_authentication.py` has one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Client, Stage, serving
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V5, acknowledge, publish, subscribe

SESSION_EXPIRY, AUTHENTICATION_METHOD = 0x11, 0x15
LASTS = b"\x11\0\0\0\x60"
METHODS = ["SCRAM-SHA-1", "SCRAM-SHA-256", "GS2-KRB5", "PLAIN", "", "x" * 1_000]


def method(name: str, data: bytes | None = None) -> bytes:
    found = b"\x15" + peer.text(name)
    return found if data is None else found + b"\x16" + peer.text(data)


def auth(reason: int, properties: bytes = b"") -> bytes:
    return peer.frame(0xF0, bytes((reason,)) + peer.block(properties, V5))


# -- DISCONNECT ---------------------------------------------------------------------------------


async def malformed(_: Stage, client: Client) -> None:
    client.feed(peer.frame(0xC1, b""))


async def no_alias(_: Stage, client: Client) -> None:
    client.feed(publish("", b"", version=V5, properties=b"\x23\0\x01"))


async def silence(stage: Stage, client: Client) -> None:
    await stage.forward(16)


async def take_over(stage: Stage, client: Client) -> None:
    stage.stranger(V5).feed(peer.connect("c", version=V5, clean=False, properties=LASTS))


async def stop(stage: Stage, client: Client) -> None:
    await stage.front.stop()


ENDS: dict[int, Callable[[Stage, Client], Awaitable[None]]] = {
    0x81: malformed, 0x82: no_alias, 0x8D: silence, 0x8E: take_over, 0x8B: stop,
}  # fmt: skip


@pytest.mark.parametrize("reason", ENDS, ids=hex)
async def test_nothing_follows_disconnect(reason: int) -> None:
    """[MQTT-3.14.4-1]: neither messages, nor answers that were under way. Its sender closes the
    connection [MQTT-3.14.4-2], [MQTT-4.13.2-1]. It has no Session Expiry Interval
    [MQTT-3.14.2-2].
    """
    stores = Stores()
    async with serving(stores) as stage:
        client = await stage.connected(
            "c", version=V5, clean=False, properties=LASTS, keep_alive=10
        )
        await client.says(subscribe(("t", 1), version=V5))
        writer = await stage.connected("w")
        await writer.says(publish("t", b"first"))
        await client.says(publish("other", b"", qos=1, number=1, version=V5))
        stores.ledgers.sync_at_once = False
        client.feed(publish("t", b"own", qos=1, number=2, version=V5))  # its PUBACK comes too late
        stores.ledgers.sync_at_once = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ENDS[reason], stage, client)
            await settled()
            stores.ledgers.sync()
        await writer.says(publish("t", b"later", qos=1, number=1))
        packets = await client.receive()
        kinds = [one.kind for one in packets]
        assert kinds.count("DISCONNECT") == 1
        assert kinds[-1] == "DISCONNECT"
        assert packets[-1].reasons == (reason,)
        names = [name for name, _ in peer.properties_in(packets[-1].properties)]
        assert SESSION_EXPIRY not in names
        if reason != 0x8B:  # the process ends
            assert client.line.ending is not None


@pytest.mark.parametrize("packet", [peer.PINGREQ, publish("t", b"x", version=V5)])
async def test_what_follows_a_clients_disconnect_is_not_handled(
    stage: Stage, packet: bytes
) -> None:
    """The connection is closed, and nothing is sent on it [MQTT-3.14.4-1]."""
    watcher = await stage.subscribed("watcher", ("t", 0))
    client = await stage.connected("c", version=V5)
    assert await client.says(peer.disconnect(0), packet) == []
    assert client.line.ending is not None
    assert await watcher.receive() == []


@pytest.mark.parametrize("breach", [b"\xc1\0", auth(0), b"\x36\x05\0\x01t\0\x01", peer.connect()])
async def test_nothing_is_sent_before_connack(breach: bytes) -> None:
    """[MQTT-3.14.0-1], [MQTT-3.2.0-1]: not even DISCONNECT, for what follows CONNECT before it is
    answered.
    """
    stores = Stores()
    async with serving(stores) as stage:
        watcher = await stage.subscribed("watcher", ("will", 0))
        stores.ledgers.sync_at_once = False
        connect = peer.connect("c", version=V5, will=("will", b"bye", 0, False))
        client = stage.stranger(V5)
        assert await client.says(connect) == [], "the will is being stored"
        assert await client.says(breach) == []
        assert client.line.ending is not None
        stores.ledgers.sync_at_once = True
        stores.ledgers.sync()
        assert await client.receive() == []
        await client.is_cut()
        assert [one.payload for one in await watcher.receive()] in ([], [b"bye"])


# -- enhanced authentication --------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS, ids=lambda name: name[:20])
@pytest.mark.parametrize("data", [None, b"", b"n,,n=user,r=x"])
async def test_a_method_that_is_not_supported(stage: Stage, name: str, data: bytes | None) -> None:
    """It is answered with 0x8C, and the connection closed [MQTT-4.12.0-1], [MQTT-4.12.0-4],
    [MQTT-3.1.4-2]; no exchange begins.
    """
    client, answers = await stage.connects(version=V5, properties=method(name, data))
    assert [(one.kind, one.reasons) for one in answers] == [("CONNACK", (0x8C,))]
    assert client.line.ending is not None
    assert stage.services.sessions.connected == {}


@pytest.mark.parametrize("reason", [0x18, 0x19, 0])
async def test_auth_while_a_client_connects(stage: Stage, reason: int) -> None:
    """Whatever its reason, it does not continue what was refused; before CONNECT it ends the
    connection.
    """
    client = stage.stranger(V5)
    connect = peer.connect(version=V5, properties=method("PLAIN"))
    answers = await client.says(connect, auth(reason, method("PLAIN")))
    refused = [("CONNACK", (0x8C,))] * (reason != 0)  # 0 is malformed, and nothing is answered
    assert [(one.kind, one.reasons) for one in answers] == refused
    assert client.line.ending is not None
    first = stage.stranger(V5)
    assert await first.says(auth(reason, method("PLAIN"))) == []
    assert first.line.ending is not None


async def test_without_a_method(stage: Stage) -> None:
    """The server sends no AUTH, and CONNACK names no method [MQTT-4.12.0-6]; whether the client is
    accepted or not.
    """
    for options in ({}, {"will": ("$SYS/x", b"", 0, False)}):
        client, answers = await stage.connects(version=V5, **options)
        answers += await client.says(peer.PINGREQ) if not options else []
        assert "AUTH" not in [one.kind for one in answers]
        names = [name for name, _ in peer.properties_in(answers[0].properties)]
        assert AUTHENTICATION_METHOD not in names


@pytest.mark.parametrize("reason", [0x18, 0x19])
@pytest.mark.parametrize("name", METHODS[:4])
async def test_auth_without_a_method_in_connect(stage: Stage, reason: int, name: str) -> None:
    """[MQTT-4.12.0-7]: it is a protocol error, and so is re-authentication with any method."""
    client = await stage.connected("c", version=V5)
    answers = await client.says(auth(reason, method(name)), peer.PINGREQ)
    assert [(one.kind, one.reasons) for one in answers] == [("DISCONNECT", (0x82,))]
    assert client.line.ending is not None


async def test_acknowledgements_still_count_before_the_end(stage: Stage) -> None:
    """What came in one piece before a packet that ends the connection is handled."""
    client = await stage.connected("c", version=V5, clean=False, properties=LASTS)
    await client.says(subscribe(("t", 1), version=V5))
    await (await stage.connected("w")).says(publish("t", b"x", qos=1, number=1))
    (message,) = await client.receive()
    await client.says(acknowledge("PUBACK", message.number), peer.frame(0xC1, b""))
    await client.is_cut()
    _, answers = await stage.connects("c", version=V5, clean=False, properties=LASTS)
    assert [one.kind for one in answers] == ["CONNACK"]
