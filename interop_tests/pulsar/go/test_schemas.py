"""Schemas of Apache's client for Go, with the Python client beside it."""

import httpx
import pulsar
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

pytestmark = [pytest.mark.go, pytest.mark.timeout(180)]

RECEIVE_MS = 15_000


def test_messages_of_protobuf(pulsar_go, server, client, topic):
    """Both clients have the same message, each with its own descriptor; each reads the other's."""
    schema = pulsar.schema.ProtobufNativeSchema(Timestamp)
    scene = pulsar_go.start("schemas.native", server.pulsar_url, topic)
    scene.wait_for("sent")
    first = pulsar.InitialPosition.Earliest
    consumer = client.subscribe(topic, "python", schema=schema, initial_position=first)
    assert consumer.receive(RECEIVE_MS).value() == Timestamp(seconds=40, nanos=1)
    client.create_producer(topic, schema=schema).send(Timestamp(seconds=60))
    scene.tell("answered")
    (version, *sent), (other, *answered) = scene.result()
    assert (sent, answered) == ([40, 1], [60, 0])
    path = f"{server.http_url}/admin/v2/schemas/public/default/{topic}/schemas"
    kinds = [each["type"] for each in httpx.get(path).json()["getSchemaResponses"]]
    assert kinds == ["PROTOBUF_NATIVE"] * (other + 1)
    assert version == 0
