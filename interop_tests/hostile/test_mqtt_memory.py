"""Floods of MQTT that aim at memory: whatever many peers do together, the server stays within its
budgets, and the clients of all protocols beside them get their answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from struct import pack

import pytest

import magnetar
from interop_tests.hostile.conftest import MIB
from interop_tests.hostile.flood import Ask, Asking
from interop_tests.hostile.mqtt_peer import MqttPeer, Watch
from interop_tests.hostile.test_memory import BUDGET
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V3, V5, acknowledge, publish, subscribe

QUOTA_EXCEEDED = 0x97
FLOOD_SECONDS = 4.0


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture
def server(stack):
    return stack.enter_context(magnetar.standalone())


@pytest.fixture
def watch(server, stack) -> Watch:
    return Watch(server, stack)


@pytest.fixture
def peers(server, stack):
    """Makes so many peers."""

    def make(count: int, version: int = V5, **options) -> list[MqttPeer]:
        return [stack.enter_context(MqttPeer(server, version, **options)) for _ in range(count)]

    return make


# -- who does not read, or does not acknowledge ---------------------------------------------------


def fill(watch: Watch, writer: MqttPeer, topic: str, qos: int, count: int, size: int) -> None:
    """Publish so many messages; who does not read does not hold their publisher up."""
    for number in range(1, count + 1):
        writer.say(publish(topic, bytes(size), qos=qos, number=number if qos else 0))
        if qos:
            assert writer.take().kind == "PUBACK"
        if number % 20 == 0:
            watch.look()
    writer.say(peer.PINGREQ)
    assert writer.take().kind == "PINGRESP"


@pytest.mark.parametrize("qos", [0, 1])
def test_subscribers_that_never_read(watch, peers, qos):
    for number, one in enumerate(peers(50, V3, receive_bytes=4096)):
        one.connected(f"s{number}").say(subscribe(("flood/#", qos)))
    (writer,) = peers(1, V3)
    fill(watch, writer.connected("w"), "flood/x", qos, 200, MIB // 2)
    watch.judge(BUDGET)


@pytest.mark.parametrize("version", [V3, V5])
def test_subscribers_that_never_acknowledge(watch, peers, version):
    """Each is sent its window, a thousand messages, and no more."""
    readers = peers(20, version)
    for number, one in enumerate(readers):
        one.connected(f"s{number}").say(subscribe(("flood", 1), version=version))
        assert one.take().reasons == (1,)
    (writer,) = peers(1, V3)
    writer.connected("w")
    for first in range(1, 2_001, 200):
        writer.say(
            *(publish("flood", bytes(500), qos=1, number=n) for n in range(first, first + 200))
        )
        assert {writer.take().kind for _ in range(200)} == {"PUBACK"}
        watch.look()
    for one in readers:
        assert {one.take().kind for _ in range(1_000)} == {"PUBLISH"}
        one.say(peer.PINGREQ)
        assert one.take().kind == "PINGRESP"
    watch.judge(64 * MIB)


def test_retained_messages_that_nobody_takes(watch, peers):
    """Subscribing again and again, without ever reading, to twenty thousand of them."""
    (writer,) = peers(1, V3)
    writer.connected("w")
    for first in range(1, 20_001, 500):
        numbers = range(first, first + 500)
        writer.say(*(publish(f"r/{n}", b"x" * 100, qos=1, number=n, retain=True) for n in numbers))
        assert {writer.take().kind for _ in numbers} == {"PUBACK"}
    readers = peers(50, V3, receive_bytes=4096)
    for number, one in enumerate(readers):
        one.connected(f"s{number}")
    for _ in range(20):
        for one in readers:
            one.try_to_say(subscribe(("r/#", 1)) * 20)
        watch.look()
    watch.judge(BUDGET // 2)


# -- who sends much that is kept ------------------------------------------------------------------


def test_aliases_of_large_topics(watch, peers):
    """64 aliases of 64 KB each: most of a hundred clients have to go."""
    refused = 0
    for number, one in enumerate(peers(100)):
        one.connected()
        for alias in range(1, 65):
            topic = f"{number}/{alias}/" + "x" * 60_000
            properties = b"\x23" + pack(">H", alias)
            one.say(publish(topic, version=V5, properties=properties))
        one.say(peer.PINGREQ)
        refused += (QUOTA_EXCEEDED,) in [packet.reasons for packet in [one.take()]]
        watch.look()
    assert refused > 80
    watch.judge(BUDGET // 2)


def test_ever_new_large_topics(watch, peers):
    """To subscribers of all, with aliases and without, who read them."""
    readers = peers(10)
    for one in readers[:5]:
        one.connected(properties=b"\x22" + pack(">H", 64))
    for one in readers[5:]:
        one.connected()
    for one in readers:
        one.say(subscribe(("#", 0), version=V5))
    writers = peers(5)
    for one in writers:
        one.connected()
    for turn in range(120):
        for number, one in enumerate(writers):
            one.say(publish(f"{turn}/{number}/" + "x" * 60_000, version=V5))
        for one in readers:
            one.skim()
        watch.look()
    watch.judge(BUDGET // 2)


def test_large_wills(stack):
    """Of clients without a session: as many as there is memory for, and then CONNACK 0x97."""
    server = stack.enter_context(magnetar.standalone())
    watch = Watch(server, stack)
    answers = []
    for first in range(0, 1_200, 40):
        peers = [stack.enter_context(MqttPeer(server)) for _ in range(40)]
        for number, one in enumerate(peers, first):
            will = ("will", bytes(65_000), 1, False)
            one.say(peer.connect(f"w{number}", will=will, version=V5))
        answers += [one.take().reasons for one in peers]
        watch.look()
    assert set(answers) == {(0,), (QUOTA_EXCEEDED,)}
    assert answers.count((0,)) > 900
    watch.judge(BUDGET)


def test_half_a_connect(watch, peers):
    """Each has sent most of a CONNECT with all that it may have."""
    whole = peer.connect("c", will=("w", bytes(65_000), 0, False), version=V5)
    for number, one in enumerate(peers(2_000)):
        one.try_to_say(whole[:-1], 0.02 if number % 20 else 0.1)
        if number % 50 == 0:
            watch.look()
    watch.judge(BUDGET)


def test_identifiers_that_are_never_released(stack):
    """Of many sessions that last: their records may not grow for ever."""
    server = stack.enter_context(magnetar.standalone(mqtt={"session_storage_mb": 1}))
    watch = Watch(server, stack)
    stored = 0
    for number in range(60):
        one = stack.enter_context(MqttPeer(server, V3))
        if one.connect(f"c{number}", clean=False).reasons != (0,):
            continue
        one.say(*(publish("t", qos=2, number=n) for n in range(1, 20_001)))
        packets = [one.take() for _ in range(20_000)]
        assert {packet.kind for packet in packets} == {"PUBREC"}
        stored += 20_000
        watch.look()
    assert 20_000 <= stored < 60 * 20_000, "some are refused, as there is no room for more sessions"
    watch.judge(BUDGET // 2)


def test_retained_messages_beyond_their_budget(stack):
    """Their names are in memory, too: there is a limit, which is said."""
    server = stack.enter_context(magnetar.standalone(mqtt={"retained_memory_mb": 2}))
    watch = Watch(server, stack)
    one = stack.enter_context(MqttPeer(server)).connected()
    reasons = set()
    for first in range(1, 1_000_001, 500):
        numbers = range(first, first + 500)
        deep = "/x" * 60
        one.say(
            *(
                publish(f"{n}{deep}", b"x", qos=1, number=n % 60_000 + 1, retain=True, version=V5)
                for n in numbers
            )
        )
        reasons |= {one.take().reasons for _ in numbers}
        watch.look()
        if (QUOTA_EXCEEDED,) in reasons:
            break
    assert reasons == {(), (QUOTA_EXCEEDED,)}
    one.say(publish(f"1{deep}", b"", qos=1, number=1, retain=True, version=V5))
    assert one.take().reasons == ()
    watch.judge(96 * MIB)


def test_subscriptions_beyond_their_budget(stack):
    server = stack.enter_context(magnetar.standalone(mqtt={"subscription_memory_mb": 16}))
    watch = Watch(server, stack)
    reasons = []
    for number in range(10):
        one = stack.enter_context(MqttPeer(server)).connected()
        for turn in range(8):
            filters = [(f"{number}/{turn}/{each}/+/x/y/#", 1) for each in range(1_000)]
            one.say(subscribe(*filters, version=V5))
            reasons += one.take_until("SUBACK").reasons
            watch.look()
    assert set(reasons) == {1, QUOTA_EXCEEDED}
    watch.judge(64 * MIB)


# -- who asks without end -------------------------------------------------------------------------


def flood(server, watch: Watch, stack: ExitStack, count: int, ask: Ask, *, reads: bool) -> None:
    asking = []
    for number in range(count):
        asking.append(Asking(server.mqtt_url, number, ask, reads=reads))
        stack.callback(asking[-1].socket.close)
    watch.look_for(FLOOD_SECONDS, lambda: [one.go_on() for one in asking])


GREETED = {
    "pings": peer.PINGREQ * 5_000,
    "QoS 0": publish("flood", b"x" * 20) * 2_000,
    "QoS 1": b"".join(publish("flood", b"x" * 20, qos=1, number=n) for n in range(1, 2_000)),
    "QoS 2": b"".join(publish("flood", b"x" * 20, qos=2, number=n) for n in range(1, 2_000)),
    "released": b"".join(acknowledge("PUBREL", n) for n in range(1, 5_000)),
    "subscribing": b"".join(
        subscribe((f"f/{n}", 1)) + peer.unsubscribe(f"f/{n}") for n in range(500)
    ),
    "ever new topics": b"".join(publish(f"flood/{n}", b"") for n in range(2_000)),
}


@pytest.mark.parametrize(
    "reads",
    [
        pytest.param(True, id="reads", marks=pytest.mark.heavy),
        pytest.param(False, id="never reads"),
    ],
)
@pytest.mark.parametrize("what", GREETED)
def test_floods(server, watch, stack, what, reads):
    def ask(number: int, turn: int) -> bytes:
        return GREETED[what] if turn else peer.connect(f"{number}", clean=True)

    flood(server, watch, stack, 10, ask, reads=reads)
    watch.judge(BUDGET)


def test_connecting_without_end(server, watch, stack):
    """With ever new names of sessions that last."""
    names = itertools.count()

    def connect_some() -> None:
        for _ in range(20):
            with MqttPeer(server) as one:
                one.connected(f"{next(names)}", clean=False, properties=b"\x11\0\0\x0e\x10")

    watch.look_for(FLOOD_SECONDS, connect_some)
    watch.judge(64 * MIB)
