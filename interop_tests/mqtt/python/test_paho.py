"""paho, the client of Eclipse, in each version of the protocol and at each QoS."""

from __future__ import annotations

import time

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from interop_tests.mqtt.conftest import Paho
from magnetar import standalone

VERSIONS = [3, 4, 5]


def lasting(version: int) -> dict:
    """How a session is made to last, in `connect` or in the constructor."""
    if version < 5:
        return {"clean_session": False}
    return {}


def with_expiry(version: int, seconds: int = 100) -> dict:
    if version < 5:
        return {}
    properties = Properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = seconds
    return {"clean_start": False, "properties": properties}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_in_order(paho, topic, version, qos):
    """A client of others needs no extension of the specification [MQTT-7.0.0-2 of 3.1.1]."""
    reader, writer = paho(version=version), paho(version=version)
    reader.connect()
    writer.connect()
    assert reader.subscribe(f"{topic}/+", qos) == [qos]
    payloads = [b"%d" % number * (number % 50) for number in range(300)]
    for payload in payloads:
        writer.client.publish(f"{topic}/x", payload, qos)
    got = reader.take(300)
    assert [message.payload for message in got] == payloads
    assert {(message.qos, message.retain, message.dup) for message in got} == {(qos, False, False)}


def test_a_quiet_server_answers_at_once():
    """What is to be stored for a session waits for the disk only, and not for other traffic."""
    with standalone() as server:
        client = Paho(server.mqtt_url.removeprefix("mqtt://"), "c", **lasting(4))
        begun = time.monotonic()
        client.connect()
        for number in range(5):
            assert client.subscribe(f"t/{number}", 1) == [1]
        client.publish("u", b"x", 2)
        took = time.monotonic() - begun
        client.disconnect()
        client.cut()
    assert took < 3, "each step took a second"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_lower_qos_counts(paho, topic, version):
    reader, writer = paho(version=version), paho(version=version)
    reader.connect()
    writer.connect()
    for granted in (0, 1, 2):
        assert reader.subscribe(topic, granted) == [granted]
        for published in (0, 1, 2):
            writer.publish(topic, b"x", published)
            (message,) = reader.take(1)
            assert message.qos == min(granted, published)


@pytest.mark.parametrize("version", VERSIONS)
def test_retained_messages(paho, topic, version):
    writer = paho(version=version)
    writer.connect()
    for number in range(20):
        writer.publish(f"{topic}/{number}", b"%d" % number, number % 3, retain=True)
    writer.publish(f"{topic}/3", b"", 1, retain=True)
    reader = paho(version=version)
    reader.connect()
    reader.subscribe(f"{topic}/#", 1)
    got = sorted((int(message.payload), message.qos, message.retain) for message in reader.take(19))
    assert got == [(n, min(n % 3, 1), True) for n in range(20) if n != 3]
    writer.publish(f"{topic}/3", b"now", 1, retain=True)
    (live,) = reader.take(1)
    assert (live.payload, live.retain) == (b"now", False)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [1, 2])
def test_a_session_while_its_client_is_away(paho, topic, version, qos):
    first = paho(topic, version, **lasting(version))
    assert not first.connect(**with_expiry(version))
    first.subscribe(topic, qos)
    first.disconnect()
    writer = paho(version=version)
    writer.connect()
    for number in range(50):
        writer.publish(topic, b"%d" % number, qos)
    second = paho(topic, version, **lasting(version))
    assert second.connect(**with_expiry(version)) == (version > 3)  # 3.1 cannot say it
    assert [message.payload for message in second.take(50)] == [b"%d" % n for n in range(50)]


@pytest.mark.parametrize("version", VERSIONS)
def test_messages_of_qos_0_are_not_kept(paho, topic, version):
    """Neither those of a publisher's QoS 0, nor those for a subscription of QoS 0."""
    first = paho(topic, version, **lasting(version))
    first.connect(**with_expiry(version))
    first.subscribe(topic, 1)
    first.subscribe(f"{topic}/0", 0)
    first.disconnect()
    writer = paho(version=version)
    writer.connect()
    writer.publish(topic, b"of QoS 0", 0)
    writer.publish(f"{topic}/0", b"for QoS 0", 1)
    writer.publish(topic, b"kept", 1)
    second = paho(topic, version, **lasting(version))
    second.connect(**with_expiry(version))
    assert [message.payload for message in second.take(1)] == [b"kept"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [1, 2])
def test_it_connects_again_in_the_middle(paho, topic, version, qos):
    """Reader and writer lose their connections again and again; nothing is lost."""
    reader = paho(f"{topic}-r", version, **lasting(version))
    writer = paho(f"{topic}-w", version, **lasting(version))
    for client in (reader, writer):
        client.client.reconnect_delay_set(1, 1)
        client.connect(**with_expiry(version))
    reader.subscribe(topic, qos)
    for turn in range(3):
        for number in range(20):
            writer.client.publish(topic, b"%d" % (20 * turn + number), qos)
        for client in (reader, writer):
            client.stumble()
            client.connacks.get(timeout=20)
    writer.publish(topic, b"60", qos)
    came: list[int] = []
    while not came or came[-1] != 60:
        came += [int(message.payload) for message in reader.take(1)]
    assert sorted(set(came)) == list(range(61))
    if qos == 2:
        assert len(came) == 61


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_shared_subscription(paho, topic, version, qos):
    members = [paho(version=version) for _ in range(2)]
    for member in members:
        member.connect()
        assert member.subscribe(f"$share/group/{topic}/#", qos) == [qos]
    writer = paho(version=version)
    writer.connect()
    for number in range(40):
        writer.publish(f"{topic}/x", b"%d" % number, qos)
    came = [[int(one.payload) for one in member.take(20)] for member in members]
    assert sorted(came[0] + came[1]) == list(range(40))
    assert all(numbers == sorted(numbers) for numbers in came)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_will(paho, topic, version, qos):
    reader = paho(version=version)
    reader.connect()
    reader.subscribe(topic, 2)
    for is_cut in (False, True):
        client = paho(version=version)
        client.client.will_set(topic, b"gone", qos)
        client.connect()
        if is_cut:
            client.cut()
            (will,) = reader.take(1)
            assert (will.payload, will.qos) == (b"gone", qos)
        else:
            client.disconnect()
    assert reader.received.empty()


def test_another_client_takes_over(paho, topic):
    first, second = paho(topic, 5), paho(topic, 5)
    first.client.reconnect_on_failure = first.client._reconnect_on_failure = False
    first.connect()
    second.connect()
    assert first.disconnects.get(timeout=20).getName() == "Session taken over"


def test_properties_of_5(paho, topic):
    reader, writer = paho(version=5), paho(version=5)
    reader.connect()
    writer.connect()
    identifier = Properties(PacketTypes.SUBSCRIBE)
    identifier.SubscriptionIdentifier = 77
    reader.subscribe(topic, options=SubscribeOptions(1), properties=identifier)
    sent = Properties(PacketTypes.PUBLISH)
    sent.UserProperty = [("a", "1"), ("b", "2"), ("a", "3")]
    sent.ContentType, sent.ResponseTopic = "text/plain", "answers/here"
    sent.CorrelationData, sent.PayloadFormatIndicator = b"\0\xff\x80", 1
    sent.MessageExpiryInterval = 1_000
    writer.publish(topic, b"x", 1, properties=sent)
    (message,) = reader.take(1)
    found = message.properties
    assert found.UserProperty == sent.UserProperty
    assert (found.ContentType, found.ResponseTopic) == ("text/plain", "answers/here")
    assert (found.CorrelationData, found.PayloadFormatIndicator) == (b"\0\xff\x80", 1)
    assert found.SubscriptionIdentifier == [77]
    assert 990 <= found.MessageExpiryInterval <= 1_000


def test_a_request_and_its_response(paho, topic):
    server, client = paho(version=5), paho(version=5)

    def respond(mine, _data, message):
        properties = Properties(PacketTypes.PUBLISH)
        properties.CorrelationData = message.properties.CorrelationData
        mine.publish(message.properties.ResponseTopic, message.payload[::-1], 1,
                     properties=properties)  # fmt: skip

    server.client.on_message = respond
    server.connect()
    server.subscribe(f"{topic}/requests", 1)
    client.connect()
    client.subscribe(f"{topic}/responses", 1)
    properties = Properties(PacketTypes.PUBLISH)
    properties.ResponseTopic, properties.CorrelationData = f"{topic}/responses", b"\x01"
    client.publish(f"{topic}/requests", b"abc", 1, properties=properties)
    (response,) = client.take(1)
    assert (response.payload, response.properties.CorrelationData) == (b"cba", b"\x01")


def test_a_message_that_expires(paho, topic):
    reader = paho(topic, 5)
    reader.connect(**with_expiry(5))
    reader.subscribe(topic, 1)
    reader.disconnect()
    writer = paho(version=5)
    writer.connect()
    properties = Properties(PacketTypes.PUBLISH)
    properties.MessageExpiryInterval = 1
    writer.publish(topic, b"expires", 1, properties=properties)
    writer.publish(topic, b"stays", 1)
    published = time.monotonic()
    while time.monotonic() < published + 1.1:
        time.sleep(0.1)  # the interval itself is tested
    again = paho(topic, 5)
    assert again.connect(**with_expiry(5))
    assert [message.payload for message in again.take(1)] == [b"stays"]


@pytest.mark.parametrize("version", VERSIONS)
def test_large_messages(paho, topic, version):
    """TCP carries all bytes in their order, both ways [MQTT-4.2.0-1], [MQTT-7.1.1-1 of 3.1.1]."""
    reader, writer = paho(version=version), paho(version=version)
    reader.connect()
    writer.connect()
    reader.subscribe(topic, 1)
    for size in (100_000, 1_000_000, 4_000_000):
        payload = bytes(range(256)) * (size // 256)
        writer.publish(topic, payload, 1)
        assert reader.take(1)[0].payload == payload
