"""Normative statements about SUBSCRIBE and UNSUBSCRIBE, by their numbers.

The statements are listed in docs/mqtt-statements.md; those about the bytes of both are in
`codec/tests/test_statements_packets.py`.
"""

from __future__ import annotations

import pytest

from magnetar.core.kernel import errors
from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.tests.peer import (
    V3,
    V5,
    acknowledge,
    publish,
    subscribe,
    unsubscribe,
)

OLD_AND_NEW = pytest.mark.parametrize("version", [V3, V5])
SUBACK_CODES = {0, 1, 2, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2}
"""3.9.3, table 3-8."""
NEVER, IF_NEW = 32, 16
"""Retain Handling 2 and 1."""


@OLD_AND_NEW
@pytest.mark.parametrize("number", [1, 256, 65_535])
async def test_each_request_has_its_answer(stage: Stage, version: int, number: int) -> None:
    """SUBACK [MQTT-3.8.4-1 of both] and UNSUBACK [MQTT-3.10.4-4], with the packet identifier of
    the request [MQTT-2.2.1-6], [MQTT-2.3.1-7 of 3.1.1], [MQTT-3.8.4-2 of both],
    [MQTT-3.10.4-4 of 3.1.1]; also if no subscription has ended [MQTT-3.10.4-5 of both].
    """
    client = await stage.connected(version=version)
    for request, kind in (
        (subscribe(("t", 1), number=number, version=version), "SUBACK"),
        (unsubscribe("t", number=number, version=version), "UNSUBACK"),
        (unsubscribe("t", "never", number=number, version=version), "UNSUBACK"),
    ):
        (answer,) = await client.says(request)
        assert (answer.kind, answer.number) == (kind, number)


@OLD_AND_NEW
async def test_suback_has_the_granted_qos_or_a_failure(stage: Stage, version: int) -> None:
    """For each filter [MQTT-3.8.4-5 of 3.1.1], [MQTT-3.8.4-7]; what it says is what is done."""
    client = await stage.connected(version=version)
    filters = [("a", 0), ("b", 1), ("c", 2), ("d#", 2), ("+e", 0)]
    (suback,) = await client.says(subscribe(*filters, version=version))
    failure = 0x80 if version == V3 else 0x8F
    assert suback.reasons == (0, 1, 2, failure, failure)
    writer = await stage.connected("w")
    for number, topic in enumerate(("a", "b", "c", "d", "e"), 1):
        await writer.says(publish(topic, b"x", qos=2, number=number))
    assert [(one.topic, one.qos) for one in await client.receive()] == [
        ("a", 0), ("b", 1), ("c", 2)
    ]  # fmt: skip


_KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.BrokerError)
]


@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.__name__)
async def test_suback_has_its_own_codes(
    stage: Stage, kind: type[errors.BrokerError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """[MQTT-3.9.3-2]: whatever the broker's error is."""

    async def fails(_filter: str) -> None:
        raise kind("as this test wants it")

    client = await stage.connected(version=V5)
    monkeypatch.setattr(stage.services.logs, "sources_of", fails)
    (suback,) = await client.says(subscribe(("t", 1), version=V5))
    (code,) = suback.reasons
    assert code in SUBACK_CODES
    assert code >= 0x80


@OLD_AND_NEW
async def test_several_filters_are_several_requests_with_one_answer(
    stage: Stage, version: int
) -> None:
    """[MQTT-3.8.4-4 of 3.1.1], [MQTT-3.10.4-6 of both]: one after the other, so that of a filter
    that is repeated the last one counts.
    """
    client = await stage.connected(version=version)
    request = subscribe(("a", 1), ("b", 2), ("a", 0), number=7, version=version)
    (suback,) = await client.says(request)
    assert (suback.number, suback.reasons) == (7, (1, 2, 0))
    writer = await stage.connected("w")
    await writer.says(publish("a", b"1", qos=1, number=1), publish("b", b"2", qos=2, number=2))
    assert [(one.payload, one.qos) for one in await client.receive()] == [(b"1", 0), (b"2", 2)]
    (unsuback,) = await client.says(unsubscribe("a", "c", "a", "b", number=8, version=version))
    assert unsuback.number == 8
    assert unsuback.reasons == ((0, 0x11, 0x11, 0) if version == V5 else ())
    await writer.says(publish("a", b"1"), publish("b", b"2"))
    assert await client.receive() == []


@OLD_AND_NEW
async def test_the_lower_qos_of_publisher_and_subscription(stage: Stage, version: int) -> None:
    """[MQTT-3.8.4-8], [MQTT-3.8.4-6 of 3.1.1]"""
    readers = [
        await stage.subscribed(f"r{granted}", ("t", granted), version=version)
        for granted in (0, 1, 2)
    ]
    for publisher in (V3, V5):
        writer = await stage.connected("w", version=publisher)
        for qos in (0, 1, 2):
            await writer.says(publish("t", b"x", qos=qos, number=qos, version=publisher))
            for granted, reader in enumerate(readers):
                (message,) = await reader.receive()
                assert message.qos == min(qos, granted)
                await reader.acknowledges(message)


async def test_overlapping_subscriptions_of_3_1_1(stage: Stage) -> None:
    """[MQTT-3.3.5-1 of 3.1.1]: with the highest of their QoS, in whatever order they were made."""
    for number, filters in enumerate(([("a/#", 2), ("a/+", 0)], [("a/b", 0), ("+/b", 2)])):
        reader = await stage.connected(f"r{number}")
        for filter in filters:
            await reader.says(subscribe(filter))
        writer = await stage.connected("w")
        await writer.says(publish("a/b", b"x", qos=2, number=1))
        assert max(one.qos for one in await reader.receive()) == 2


@OLD_AND_NEW
async def test_topics_match_a_filter_of_their_subscriber(stage: Stage, version: int) -> None:
    """[MQTT-3.3.2-3 of both]: nothing else comes, and the name is the one that was published; to a
    client that is here, and to one that was away.
    """
    filters = {"a/+": {"a/1", "a/"}, "b/#": {"b", "b/1/2"}, "c": {"c"}, "+/d": {"/d", "x/d"}}
    topics = sorted({*set().union(*filters.values()), "a", "a/1/2", "c/1", "/c", "d", "B", "e"})
    readers = {
        filter: await stage.subscribed(filter, (filter, 1), version=version) for filter in filters
    }
    properties = b"\x11\0\0\0\x60" if version == V5 else b""
    lasting = {"version": version, "clean": False, "properties": properties}
    for filter in filters:
        await (await stage.subscribed(f"away {filter}", (filter, 1), **lasting)).leaves()
    writer = await stage.connected("w", version=version)
    for number, topic in enumerate(topics, 1):
        packet = publish(topic, topic.encode(), qos=1, number=number, version=version)
        await writer.says(packet)
    for filter, reader in readers.items():
        got = await reader.receive()
        _, (_, *later) = await stage.connects(f"away {filter}", **lasting)
        for messages in (got, later):
            assert {one.topic for one in messages} == filters[filter]
            assert all(one.topic.encode() == one.payload for one in messages)


# -- a repeated SUBSCRIBE -----------------------------------------------------------------------


@OLD_AND_NEW
async def test_a_repeated_filter(stage: Stage, version: int) -> None:
    """It replaces its subscription, and retained messages come again [MQTT-3.8.4-3 of 3.1.1], in
    5.0 if its options say so [MQTT-3.8.4-4].
    """
    writer = await stage.connected("w")
    await writer.says(publish("t", b"kept", qos=1, number=1, retain=True))
    client = await stage.connected(version=version)
    for options, again in ((1, 1), (2, 1), (2 | IF_NEW, 0), (1 | NEVER, 0), (0, 1)):
        if version == V3 and options > 2:
            continue
        suback, *retained = await client.says(subscribe(("t", options), version=version))
        assert suback.reasons == (options & 3,)
        assert [(one.payload, one.retain) for one in retained] == [(b"kept", True)] * again
        await client.acknowledges(*retained)
    await writer.says(publish("t", b"x", qos=2, number=2))
    assert [(one.payload, one.qos) for one in await client.receive()] == [(b"x", 0)]


@OLD_AND_NEW
async def test_replacing_a_subscription_loses_nothing(stage: Stage, version: int) -> None:
    """[MQTT-3.8.4-3 of 3.1.1], [MQTT-3.8.4-4]: neither what waits, nor what comes meanwhile."""
    window = b"\x21\0\x02" if version == V5 else b""
    client = await stage.connected(version=version, properties=window)
    options = 1 | NEVER if version == V5 else 1
    writer = await stage.connected("w")
    await client.says(subscribe(("t", options), version=version))
    for number in range(40):
        client.feed(subscribe(("t", options), number=number + 2, version=version))
        writer.feed(publish("t", b"%d" % number, qos=1, number=number + 1))
        client.feed(subscribe(("t", options), number=number + 101, version=version))
    got, expected = [], [b"%d" % number for number in range(40)]
    fresh = await client.receive()
    while messages := [one for one in fresh if one.kind == "PUBLISH"]:
        got += [one.payload for one in messages]
        fresh = await client.acknowledges(*messages)
    assert got == expected, "each once, and in their order"


# -- UNSUBSCRIBE --------------------------------------------------------------------------------


@OLD_AND_NEW
async def test_unsubscribe_is_by_the_exact_filter(stage: Stage, version: int) -> None:
    """[MQTT-3.10.4-1 of both]: compared character by character, without regard to what it matches;
    nothing new comes for it [MQTT-3.10.4-2 of both].
    """
    filters = ["a/#", "a/+", "a/b", "A/b", "/a/b"]
    client = await stage.subscribed("c", *((filter, 1) for filter in filters), version=version)
    writer = await stage.connected("w")
    assert len(await client.says(unsubscribe("+/b", "#", "a/b/", version=version))) == 1
    for number, (filter, still) in enumerate(
        [("a/#", True), ("a/b", True), ("a/+", False), ("A/b", False)], 1
    ):
        await client.says(unsubscribe(filter, version=version))
        await writer.says(publish("a/b", b"x", qos=1, number=number))
        got = await client.receive()
        assert [one.payload for one in got] == [b"x"] * still, f"after {filter}"
    await writer.says(publish("/a/b", b"y", qos=1, number=9))
    assert [one.payload for one in await client.receive()] == [b"y"]


@OLD_AND_NEW
@pytest.mark.parametrize("lasts", [False, True])
async def test_deliveries_that_have_begun_are_completed(
    stage: Stage, version: int, lasts: bool
) -> None:
    """[MQTT-3.10.4-3 of both]: QoS 1 and 2, also by the next connection of the session."""
    options = {"version": version, "clean": not lasts}
    if version == V5 and lasts:
        options["properties"] = b"\x11\0\0\0\x60"
    client = await stage.subscribed("c", ("t", 2), **options)
    writer = await stage.connected("w")
    await writer.says(publish("t", b"1", qos=1, number=1), publish("t", b"2", qos=2, number=2))
    one, two = await client.receive()
    (unsuback,) = await client.says(unsubscribe("t", version=version))
    assert unsuback.kind == "UNSUBACK"
    if lasts:
        await client.is_cut()
        client, (_, *again) = await stage.connects("c", **options)
        assert [(each.payload, each.number, each.dup) for each in again] == [
            (b"1", one.number, True), (b"2", two.number, True)
        ]  # fmt: skip
    assert await client.says(acknowledge("PUBACK", one.number)) == []
    (pubrel,) = await client.says(acknowledge("PUBREC", two.number))
    assert (pubrel.kind, pubrel.number) == ("PUBREL", two.number)
    assert await client.says(acknowledge("PUBCOMP", two.number)) == []
    await writer.says(publish("t", b"3", qos=1, number=3))
    assert await client.receive() == []


@OLD_AND_NEW
async def test_a_request_that_cannot_be_stored(version: int) -> None:
    """A transient error ends the connection [MQTT-4.8.0-2 of 3.1.1]: SUBSCRIBE is not answered as
    if it were done.
    """
    stores = Stores()
    async with serving(stores) as stage:
        properties = b"\x11\0\0\0\x60" if version == V5 else b""
        client = await stage.subscribed(
            "c", ("t", 1), version=version, clean=False, properties=properties
        )
        stores.ledgers.full = True
        answers = await client.says(subscribe(("t", 1), version=version))
        assert client.line.ending is not None
        assert [one.kind for one in answers] == (["DISCONNECT"] if version == V5 else [])
