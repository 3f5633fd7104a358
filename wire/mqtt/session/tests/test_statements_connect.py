"""Normative statements about CONNECT and CONNACK that sessions decide, by their numbers.

The statements are listed in docs/mqtt-statements.md; those about the bytes of CONNECT are in
`codec/tests/test_statements_connect.py`.
"""

from __future__ import annotations

import string
from typing import Any

import pytest

from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Client, Stage, serving
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V3, V5, Received, publish, subscribe

OLD_AND_NEW = pytest.mark.parametrize("version", [V3, V5])
LASTS = b"\x11\0\0\x0e\x10"
"""A session expiry interval of an hour."""
ASSIGNED, KEEP_ALIVE, RESPONSE_INFORMATION, MAXIMUM_QOS = 0x12, 0x13, 0x1A, 0x24
RETAIN_AVAILABLE, WILDCARDS_AVAILABLE = 0x25, 0x28
NO_SUCH_METHOD = b"\x15" + peer.text("SCRAM-SHA-256")
NO_TOPIC = {"will": ("$SYS/broker/version", b"", 0, False)}
"""A will to a topic of the server's own."""
CONNACK_CODES = {0, *range(0x80, 0x8B), 0x8C, 0x90, 0x95, 0x97, 0x99, *range(0x9A, 0x9E), 0x9F}
"""3.2.2.2, table 3-1."""


def found_in(connack: Received) -> dict[int, bytes]:
    return dict(peer.properties_in(connack.properties))


@OLD_AND_NEW
async def test_an_accepted_connect(stage: Stage, version: int) -> None:
    """One CONNACK with 0 [MQTT-3.1.4-5], [MQTT-3.1.4-4 of 3.1.1], and never a second one
    [MQTT-3.2.0-2]: not for a later CONNECT either.
    """
    client, answers = await stage.connects(version=version)
    assert [(one.kind, one.reasons) for one in answers] == [("CONNACK", (0,))]
    later = await client.says(subscribe(("t", 1), version=version), peer.PINGREQ)
    later += await client.says(peer.connect(version=version))
    assert "CONNACK" not in [one.kind for one in later]


REFUSED: dict[str, tuple[int, dict[str, Any], int]] = {
    "an unknown authentication method": (V5, {"properties": NO_SUCH_METHOD}, 0x8C),
    "a will to no topic": (V5, NO_TOPIC, 0x90),
    "an empty identifier": (V3, {"client_id": "", "clean": False}, 2),
}


@pytest.mark.parametrize(("version", "options", "reason"), REFUSED.values(), ids=REFUSED)
async def test_a_refused_connect(
    stage: Stage, version: int, options: dict[str, Any], reason: int
) -> None:
    """The connection is closed after CONNACK [MQTT-3.2.2-7], [MQTT-3.2.2-5 of 3.1.1],
    [MQTT-4.13.2-1], whatever was checked [MQTT-3.1.4-2]. CONNACK is the only one [MQTT-3.2.0-2].
    """
    client = stage.stranger(version)
    answers = await client.says(peer.connect(version=version, **options), peer.PINGREQ)
    assert [(one.kind, one.number, one.reasons) for one in answers] == [("CONNACK", 0, (reason,))]
    await is_closed(client)


async def is_closed(client: Client) -> None:
    """The connection ends, and nothing is sent any more."""
    assert client.line.ending is not None
    client.wire.pack([peer.PINGREQ])
    assert await client.receive() == []


async def test_connack_has_its_own_codes() -> None:
    """[MQTT-3.2.2-8]: also where the server fails, or has no room."""
    stores = Stores()
    async with serving(stores, sessions_bytes_max=0) as stage:
        client = stage.stranger(V5)
        client.line.refusal = "too many connections"
        reasons = [one.reasons[0] for one in await client.says(peer.connect(version=V5))]
        lasting = {"clean": False, "properties": LASTS}
        will = {"will": ("t", b"", 1, False)}
        for options in (lasting, NO_TOPIC, {"properties": NO_SUCH_METHOD}, {}, will):
            stores.ledgers.full = options is will
            _, (connack,) = await stage.connects(version=V5, **options)
            reasons += connack.reasons
    assert reasons == [0x89, 0x97, 0x90, 0x8C, 0, 0x88]
    assert set(reasons) <= CONNACK_CODES


# -- client identifiers -------------------------------------------------------------------------


@OLD_AND_NEW
@pytest.mark.parametrize(
    "client_id", ["0", "zZ9", string.digits + "abcdefghijklm", string.ascii_uppercase[:23]]
)
async def test_identifiers_of_23_letters_and_digits(
    stage: Stage, client_id: str, version: int
) -> None:
    """[MQTT-3.1.3-5 of both]"""
    await stage.connected(client_id, version=version)
    assert list(stage.services.sessions.connected) == [client_id]


@OLD_AND_NEW
@pytest.mark.parametrize("client_id", ["a/+/#", "$SYS", "日本", " ", "x" * 65_535])
async def test_all_other_identifiers_are_allowed_too(
    stage: Stage, client_id: str, version: int
) -> None:
    """[MQTT-3.1.3-8]: none is rejected, so no connection stays open that should be closed."""
    properties = LASTS if version == V5 else b""
    options = {"version": version, "clean": False, "properties": properties}
    await (await stage.connected(client_id, **options)).leaves()
    _, (connack,) = await stage.connects(client_id, **options)
    assert connack.number == 1


@pytest.mark.parametrize("version", [3, V3])
async def test_an_empty_identifier_without_clean_session(stage: Stage, version: int) -> None:
    """[MQTT-3.1.3-7 of 3.1.1]: it is rejected with 2, and the connection closed
    [MQTT-3.1.3-9 of 3.1.1].
    """
    client, (connack,) = await stage.connects("", version=version, clean=False)
    assert (connack.kind, connack.reasons) == ("CONNACK", (2,))
    await is_closed(client)
    assert stage.services.sessions.connected == {}


async def test_an_empty_identifier_of_3_1_1_is_replaced(stage: Stage) -> None:
    """[MQTT-3.1.3-6 of 3.1.1]: each client has a session of its own."""
    first, second = await stage.connected(""), await stage.connected("")
    assert len({*stage.services.sessions.connected} - {""}) == 2
    await first.says(subscribe(("t", 0)))
    await second.says(publish("t", b"x"))
    assert [one.payload for one in await first.receive()] == [b"x"]
    assert await second.receive() == []


async def test_an_assigned_identifier(stage: Stage) -> None:
    """It is used as if the client had sent it, and returned [MQTT-3.1.3-7]; no other session has
    it [MQTT-3.2.2-16].
    """
    ids = set()
    for _ in range(5):
        client, (connack,) = await stage.connects("", version=V5, properties=LASTS)
        assert connack.reasons == (0,)
        ids.add(found_in(connack)[ASSIGNED].decode())
        await client.says(subscribe(("t", 1), version=V5))
        await client.leaves()
    assert {name async for name, _ in stage.services.sessions.records.sleeping()} == ids
    assert len(ids) == 5
    await (await stage.connected("w")).says(publish("t", b"x", qos=1, number=1))
    for client_id in ids:
        _, (connack, message) = await stage.connects(
            client_id, version=V5, clean=False, properties=LASTS
        )
        assert (connack.number, message.payload) == (1, b"x")
        assert ASSIGNED not in found_in(connack)


# -- what CONNACK says --------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [b"", b"\x19\0", b"\x19\x01"])
async def test_response_information(stage: Stage, wanted: bytes) -> None:
    """[MQTT-3.1.2-28]: not without a request; the server has none to give to others."""
    _, (connack,) = await stage.connects(version=V5, properties=wanted)
    assert (connack.reasons, RESPONSE_INFORMATION in found_in(connack)) == ((0,), False)


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_every_qos_is_supported(stage: Stage, qos: int) -> None:
    """So CONNACK names no Maximum QoS [MQTT-3.2.2-9], subscriptions are granted
    [MQTT-3.2.2-10], and so are wills [MQTT-3.2.2-12].
    """
    will = ("will", b"bye", qos, False)
    client, (connack,) = await stage.connects("w", version=V5, will=will)
    assert (connack.reasons, MAXIMUM_QOS in found_in(connack)) == ((0,), False)
    reader = await stage.subscribed("r", ("#", 2), version=V5)
    (suback,) = await client.says(subscribe(("other", qos), version=V5))
    assert suback.reasons == (qos,)
    answers = await client.says(publish("t", b"x", qos=qos, number=int(qos > 0), version=V5))
    assert [one.kind for one in answers] == [[], ["PUBACK"], ["PUBREC"]][qos]
    await client.is_cut()
    assert [(one.payload, one.qos) for one in await reader.receive()] == [
        (b"x", qos), (b"bye", qos)
    ]  # fmt: skip


async def test_retained_wills_are_supported(stage: Stage) -> None:
    """So CONNACK does not say the contrary [MQTT-3.2.2-13]."""
    client, (connack,) = await stage.connects("w", version=V5, will=("will", b"bye", 1, True))
    assert connack.reasons == (0,)
    assert found_in(connack).get(RETAIN_AVAILABLE, b"\1") == b"\1"
    await client.is_cut()
    reader = await stage.connected("r", version=V5)
    _, message = await reader.says(subscribe(("will", 0), version=V5))
    assert (message.payload, message.retain) == (b"bye", True)


@OLD_AND_NEW
async def test_wildcards_are_supported(stage: Stage, version: int) -> None:
    """So they are not rejected [MQTT-3.8.3-2 of 3.1.1], and CONNACK does not say so."""
    client, (connack,) = await stage.connects(version=version)
    assert found_in(connack).get(WILDCARDS_AVAILABLE, b"\1") == b"\1"
    (suback,) = await client.says(subscribe(("a/+", 0), ("b/#", 0), version=version))
    assert suback.reasons == (0, 0)
    for topic in ("a/b", "b", "c/d"):
        await client.says(publish(topic, b"x", qos=1, number=1, version=version))
    assert {one.topic for one in await client.receive() if one.kind == "PUBLISH"} <= {"a/b", "b"}


@pytest.mark.parametrize(("limit", "expected"), [(0, 100), (60, 60), (200, 100)])
async def test_keep_alive_of_client_and_server(limit: int, expected: int) -> None:
    """[MQTT-3.2.2-22]: the client's interval counts, unless CONNACK names another one."""
    async with serving(keep_alive_seconds_max=limit) as stage:
        client, (connack,) = await stage.connects(version=V5, keep_alive=100)
        named = found_in(connack).get(KEEP_ALIVE)
        assert named == (None if expected == 100 else expected.to_bytes(2, "big"))
        await stage.forward(1.5 * expected - 1)
        assert client.line.ending is None
        await stage.forward(3)
        assert client.line.ending == "the client is silent"


@OLD_AND_NEW
async def test_a_client_that_is_silent(stage: Stage, version: int) -> None:
    """[MQTT-3.1.2-24 of 3.1.1]: for one and a half times its interval, counted from its last
    packet, whatever that was; then its will is published.
    """
    watcher = await stage.subscribed("watcher", ("will", 0))
    client = await stage.connected(version=version, keep_alive=10, will=("will", b"bye", 0, False))
    for packet in (peer.PINGREQ, publish("t", b"x", version=version), peer.PINGREQ):
        await stage.forward(14)
        assert client.line.ending is None
        await client.says(packet)
    await stage.forward(17)
    assert client.line.ending == "the client is silent"
    await client.is_cut()
    assert [one.payload for one in await watcher.receive()] == [b"bye"]
