"""Settings that hold for all topics, whatever those and their namespaces decide."""

import httpx
import pulsar
import pytest
from pulsar.schema import StringSchema

from interop_tests.pulsar.python.test_compaction import Admin, compacted, publish
from magnetar import standalone

SETTINGS = {
    "is_schema_validation_enforced": True,
    "topic_compaction_retain_null_key": True,
}


@pytest.fixture(scope="module")
def server():
    with standalone(broker=SETTINGS) as server:
        yield server


def test_producers_without_a_schema_are_refused(server, client, topic):
    """At topics that have one, although their namespace has been told otherwise."""
    namespace = f"{server.http_url}/admin/v2/namespaces/public/default"
    httpx.post(f"{namespace}/schemaValidationEnforced", json=False).raise_for_status()
    client.create_producer(topic).send(b"there is no schema yet")
    client.create_producer(topic, schema=StringSchema()).send("there is now")
    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer(topic)
    client.create_producer(topic, schema=StringSchema()).send("and may be used")


def test_compaction_retains_messages_without_a_key(server, client, topic):
    """The last value of each key, and all that have none, batched or not."""
    publish(client, topic, [(None, b"0"), ("k", b"1"), (None, b"2"), ("k", b"3")])
    publish(client, topic, [("k", b"4"), (None, b"5"), ("k", b"6"), (None, b"7")], batched=True)
    Admin(server, topic).compact()
    assert [value for _, value, _ in compacted(client, topic)] == [b"0", b"2", b"5", b"6", b"7"]
