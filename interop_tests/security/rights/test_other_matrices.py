"""Each command of Pulsar's, each of MQTT's ways to a topic, and a path of HTTP for each kind of
right, by each role. All paths of HTTP are in `wire/http/tests/test_rights.py`.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from interop_tests.hostile.mqtt_peer import MqttPeer
from interop_tests.raw import Raw
from magnetar.wire.http.rights import DEMANDS, Needs
from magnetar.wire.http.tests.test_rights import ROWS, path_of
from magnetar.wire.mqtt.tests import peer as mqtt
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar import events
from magnetar.wire.pulsar.session.rights import RIGHTS, CommandRight
from magnetar.wire.pulsar.tests import peer

from .roles import MAY, TOPIC, may, proof

# -- Pulsar ------------------------------------------------------------------------------------


def _schema(kind: str, command: type, **fields: Any) -> bytes:
    return peer.frame(kind, command(request_id=1, topic=TOPIC, **fields))


NAMESPACE = "public/default"
SCHEMA = pb.Schema(name="", schema_data=b"", type=pb.Schema.Type.Value("STRING"))
ATTACHED = "read topic"
"""The right of the consumer that a command is about: without it there is none. There never is a
transaction.
"""
COMMANDS: dict[type, tuple[bytes, str]] = {
    events.Lookup: (peer.lookup(1, TOPIC), "describe topic"),
    events.PartitionedMetadata: (peer.partitioned_metadata(1, TOPIC), "describe topic"),
    events.TopicsOfNamespace: (peer.topics_of_namespace(1, NAMESPACE), "describe namespace"),
    events.WatchTopics: (
        peer.frame(
            "WATCH_TOPIC_LIST",
            pb.CommandWatchTopicList(
                request_id=1, watcher_id=1, namespace=NAMESPACE, topics_pattern="x"
            ),
        ),
        "describe namespace",
    ),
    events.GetSchema: (_schema("GET_SCHEMA", pb.CommandGetSchema), "describe topic"),
    events.GetOrCreateSchema: (
        _schema("GET_OR_CREATE_SCHEMA", pb.CommandGetOrCreateSchema, schema=SCHEMA),
        "write topic",
    ),
    events.AddPartitionsToTxn: (peer.add_partitions(1, (0, 1), TOPIC), "write topic"),
    events.AddSubscriptionsToTxn: (peer.add_subscription(1, (0, 1), TOPIC, "s"), "read topic"),
    events.Producer: (peer.producer(1, 1, TOPIC), "write topic"),
    events.Subscribe: (peer.subscribe(1, 1, TOPIC, "s"), "read topic"),
    events.GetLastMessageId: (peer.get_last_message_id(1, 1), ATTACHED),
    events.ConsumerStats: (peer.consumer_stats(1, 1), ATTACHED),
    events.Seek: (peer.seek(1, 1, message_publish_time=0), ATTACHED),
    events.Unsubscribe: (peer.unsubscribe(1, 1), ATTACHED),
}
"""A frame of each command that needs a right, with the right. In order: the last ones are about the
consumer of those before.
"""


def error_of(answer: Any) -> int | None:
    """The error of an answer, which responses have by two names; None if it has none."""
    for name in ("error", "error_code"):
        if name in answer.DESCRIPTOR.fields_by_name and answer.HasField(name):
            return int(getattr(answer, name))
    return None


def test_each_command_that_needs_a_right_is_here() -> None:
    needing = {event for event, right in RIGHTS.items() if isinstance(right, CommandRight)}
    assert set(COMMANDS) == needing


@pytest.mark.parametrize("role", MAY)
def test_each_command(server: Any, role: str) -> None:
    wrong = []
    with Raw(server) as client:
        client.introduce(auth_method_name="token", auth_data=proof(role).encode())
        for event, (said, right) in COMMANDS.items():
            found = client.ask(said)
            while found.kind in ("ACTIVE_CONSUMER_CHANGE", "CLOSE_CONSUMER"):
                found = client.receive()
            error = error_of(found.body)
            allowed = error != pb.AuthorizationError
            if right == ATTACHED and event is not events.AddSubscriptionsToTxn:
                allowed = error is None
            if allowed is not may(role, right):
                wrong.append((event.__name__, right, found))
    assert not wrong


def test_each_command_of_nobody(server: Any) -> None:
    """It is told so, and disconnected; a command that comes with it is not looked at."""
    for said, _right in COMMANDS.values():
        with Raw(server) as client:
            frames = client.say(peer.connect() + said).until_closed()
        assert [(one.kind, one.body.error) for one in frames] in (
            [("ERROR", pb.AuthenticationError)],
            [],  # it was closed with the command unread
        )


# -- MQTT --------------------------------------------------------------------------------------

NOT_AUTHORIZED = 0x87


@pytest.mark.parametrize("role", MAY)
def test_each_way_to_a_topic(server: Any, role: str) -> None:
    known = {"username": "x", "password": proof(role).encode()}
    with MqttPeer(server).connected("of-the-matrix", **known) as client:
        client.say(mqtt.publish("m", b"x", qos=1, number=1, version=client.version))
        published = client.take_until("PUBACK").reasons
        assert (NOT_AUTHORIZED not in published) is may(role, "write topic"), published
        client.say(mqtt.subscribe(("m", 1), number=2, version=client.version))
        subscribed = client.take_until("SUBACK").reasons
        assert (NOT_AUTHORIZED not in subscribed) is may(role, "read topic"), subscribed
    with MqttPeer(server) as client:
        reasons = client.connect("with-a-will", will=("m", b"x", 1, False), **known).reasons
        assert (NOT_AUTHORIZED not in reasons) is may(role, "write topic"), reasons


def test_each_way_of_nobody(server: Any) -> None:
    with MqttPeer(server) as client:
        assert client.connect("nobody").reasons == (NOT_AUTHORIZED,)


# -- HTTP --------------------------------------------------------------------------------------

PATHS: dict[Needs, str] = {
    Needs.SUPERUSER: "alter server",
    Needs.TENANT_ADMIN: "alter tenant",
    Needs.NAMESPACE: "describe namespace",
    Needs.TOPIC: "describe topic",
    Needs.CONSUMER: "read topic",
    Needs.PRODUCER: "write topic",
    Needs.SUBJECT: "describe topic",
    Needs.SUBJECT_WRITER: "write topic",
}
CHANGING = {Needs.PRODUCER: "POST", Needs.SUBJECT_WRITER: "POST"}
"""The method of those that read nothing; a request without a body changes nothing."""


@pytest.mark.parametrize("role", MAY)
def test_a_path_for_each_kind_of_right(server: Any, role: str) -> None:
    assert set(PATHS) | {Needs.OF_BOOKIE} == set(DEMANDS), "a broker has no paths of bookies"
    headers = {"authorization": f"Bearer {proof(role)}"}
    with httpx.Client(base_url=server.http_url) as http:
        for need, right in PATHS.items():
            method = CHANGING.get(need, "GET")
            where = next(
                path_of(mount, row)
                for mount, row in ROWS
                if row[3] is need and method in row[0].split()
            )
            status = http.request(method, where, headers=headers).status_code
            assert (status != 403) is may(role, right), (where, right, status)
            assert http.request(method, where).status_code == 401, where
