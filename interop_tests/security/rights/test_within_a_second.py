"""A right that is taken: how long it takes until whoever is connected hears of it, by protocol.

On bare sockets, so that no client's own timers count. From the answer to the change on it may be a
second; what else the machine does only adds to that, so the quickest of three changes counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from interop_tests.hostile.mqtt_peer import MqttPeer
from interop_tests.hostile.test_kafka_bytes import Peer
from interop_tests.raw import Raw
from interop_tests.security.kafka_people import config
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


def denial() -> AclBinding:
    return AclBinding(
        *(ResourceType.TOPIC, "*", ResourcePatternType.LITERAL, "User:loser", "*"),
        *(AclOperation.ALL, AclPermissionType.DENY),
    )


@contextmanager
def taken_by_acl(server: Any, _: Administrator) -> Iterator[None]:
    """A right of each protocol, taken by Kafka's."""
    root = AdminClient(config(server, ("x", f"token:{token('root')}"), "PLAIN"))
    for done in root.create_acls([denial()]).values():
        done.result(20)
    yield
    rule = denial()
    found = AclBindingFilter(
        *(rule.restype, rule.name, rule.resource_pattern_type, rule.principal, rule.host),
        *(rule.operation, rule.permission_type),
    )
    for done in root.delete_acls([found]).values():
        assert len(done.result(20)) == 1


@contextmanager
def taken_by_http(_: Any, administrator: Administrator) -> Iterator[None]:
    administrator.revoke("loser")
    yield


@pytest.mark.parametrize("take", [taken_by_http, taken_by_acl])
def test_a_right_that_is_taken_is_gone_within_a_second(server, take) -> None:
    administrator = Administrator(server)
    made = administrator.http.put(f"/admin/v2/persistent/public/default/{TOPIC}")
    assert made.status_code in (204, 409)
    taken: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        with ExitStack() as stack:
            administrator.grant("loser", "produce", "consume")
            hearing = {
                one.__name__: one(server, stack) for one in (producer, consumer, kafka, subscriber)
            }
            with take(server, administrator):
                answered = time.monotonic()
                for name, hears in hearing.items():
                    hears()
                    taken.setdefault(name, []).append(time.monotonic() - answered)
    administrator.http.close()
    assert all(min(seconds) < SECONDS for seconds in taken.values()), taken
