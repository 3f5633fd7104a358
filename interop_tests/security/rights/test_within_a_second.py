"""A right that is taken: how long it takes until whoever is connected hears of it, by protocol.

On bare sockets, so that no client's own timers count. From the answer to the change on it may be a
second; what else the machine does only adds to that, so the quickest of three changes counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from interop_tests.hostile.mqtt_peer import MqttPeer
from interop_tests.hostile.test_kafka_bytes import Peer
from interop_tests.raw import Raw
from interop_tests.security.pulsar_people import Administrator, secured, token
from interop_tests.security.rights.roles import TOPIC
from interop_tests.security.rights.test_kafka_matrix import REFUSED, codes, request_of
from magnetar import Standalone
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from magnetar.wire.mqtt.tests import peer as mqtt
from magnetar.wire.pulsar.tests import peer

SECONDS: Final = 1.0
ROUNDS: Final = 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """Not that of the folder: nobody else changes what may be done here."""
    with secured(Path(tmp_path_factory.mktemp("second"))) as server:
        yield server


def loser(server: Any, stack: ExitStack) -> Raw:
    client = stack.enter_context(Raw(server))
    client.introduce(auth_method_name="token", auth_data=token("loser").encode())
    return client


def producer(server: Any, stack: ExitStack) -> Callable[[], None]:
    client = loser(server, stack)
    assert client.ask(peer.producer(1, 1, TOPIC)).kind == "PRODUCER_SUCCESS"

    def hears() -> None:
        assert client.receive().kind == "CLOSE_PRODUCER"

    return hears


def consumer(server: Any, stack: ExitStack) -> Callable[[], None]:
    client = loser(server, stack)
    assert client.ask(peer.subscribe(1, 1, TOPIC, "s")).kind == "SUCCESS"

    def hears() -> None:
        assert client.receive().kind == "CLOSE_CONSUMER"

    return hears


def kafka(server: Any, stack: ExitStack) -> Callable[[], None]:
    """Who is told with the next request."""
    client = stack.enter_context(Peer(server))
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    said = b"\0x\0token:" + token("loser").encode()
    assert client.ask(SaslAuthenticateRequest(auth_bytes=said), 2).error_code == 0
    produce = request_of(ApiKey.PRODUCE)
    assert REFUSED.isdisjoint(codes(client.ask(*produce)))

    def hears() -> None:
        assert not REFUSED.isdisjoint(codes(client.ask(*produce)))

    return hears


def subscriber(server: Any, stack: ExitStack) -> Callable[[], None]:
    client = stack.enter_context(MqttPeer(server))
    client.connected("of-the-loser", username="x", password=token("loser").encode())
    client.say(mqtt.subscribe(("t", 0), version=client.version))
    assert client.take().reasons == (0,)

    def hears() -> None:
        told = client.take()
        assert (told.kind, told.reasons) == ("DISCONNECT", (0x87,))

    return hears


def test_a_right_that_is_taken_is_gone_within_a_second(server) -> None:
    administrator = Administrator(server)
    administrator.http.put(f"/admin/v2/persistent/public/default/{TOPIC}").raise_for_status()
    taken: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        with ExitStack() as stack:
            administrator.grant("loser", "produce", "consume")
            hearing = {
                made.__name__: made(server, stack)
                for made in (producer, consumer, kafka, subscriber)
            }
            administrator.revoke("loser")
            answered = time.monotonic()
            for name, hears in hearing.items():
                hears()
                taken.setdefault(name, []).append(time.monotonic() - answered)
    administrator.http.close()
    assert all(min(seconds) < SECONDS for seconds in taken.values()), taken
