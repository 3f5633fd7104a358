"""Confluent's Java client of registries and Flink's Avro, at this server's; see Registry.java."""

import json

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

pytestmark = pytest.mark.java

RECEIVE_SECONDS = 15


def avro(*fields):
    return json.dumps({"type": "record", "name": "Lamp", "fields": fields})


def document(**types):
    properties = {name: {"type": kind} for name, kind in types.items()}
    return json.dumps({"type": "object", "properties": properties, "additionalProperties": False})


def message(*fields):
    lines = "".join(f"  {field};\n" for field in fields)
    return f'syntax = "proto3";\npackage shop;\n\nmessage Lamp {{\n{lines}}}\n'


WATTS = {"name": "watts", "type": "int"}
COLOUR = {"name": "colour", "type": "string"}
TEXTS = {
    "AVRO": {
        "first": avro(WATTS),
        "second": avro(WATTS, {**COLOUR, "default": "white"}),
        "other": avro(WATTS, {**COLOUR, "name": "shade"}),
        "broken": '{"type": "record"}',
    },
    "JSON": {
        "first": document(watts="integer"),
        "second": document(watts="integer", colour="string"),
        "other": document(watts="string"),
        "broken": '{"type": "lamp"}',
    },
    "PROTOBUF": {
        "first": message("int32 watts = 1"),
        "second": message("int32 watts = 1", "string colour = 2"),
        "other": message("string watts = 1"),
        "broken": "message {",
    },
}
"""Versions of a schema, one that may not follow the first two, and one that is none."""


@pytest.mark.parametrize("language", TEXTS)
def test_versions(play, server, topic, language):
    texts = TEXTS[language]
    assert play("registry.versions", topic, registry=server.http_url, type=language, **texts) == {
        "again": True,
        "by id": True,
        "follows": "yes",
        "does not": "no",
        "refused": 409,
        "broken": 42201,
        "versions": [1, 2],
        "first": [True, True],
        "latest": [2, True, True],
        "types": [language, language],
        "found": 1,
        "used": 2,
    }


def test_levels_references_and_what_is_deleted(play, server, topic):
    assert play("registry.subjects", topic, registry=server.http_url) == {
        "nothing": [40401, 40401, 40401, 40403, 40408],
        "refers": True,
        "used by": True,
        "in use": 42206,
        "unknown": 42201,
        "level": "NONE",
        "everyone's": ["BACKWARD", "FULL", "FULL", "BACKWARD"],
        "no level": 42203,
        "deleted": 2,
        "left": [1],
        "too late": 40402,
        "too early": 40405,
        "hidden": [1],
        "listed": [True, False],
        "gone": [1],
        "free": [1],
    }


def test_values(play, server, topic):
    """Java's values are read by Java and by Python; Pulsar's clients are shown the schema."""
    assert play("registry.values", topic, registry=server.http_url) == {
        "read": [[40, "white"], [60, "red"]],
        "versions": [1, 2],
        "id": True,
        "version": True,
        "text": True,
        "strings": [False, 409],
    }
    shown = httpx.get(f"{server.http_url}/admin/v2/schemas/public/default/{topic}/schema").json()
    fields = [field["name"] for field in json.loads(shown["data"])["fields"]]
    assert (shown["version"], shown["type"], fields) == (1, "AVRO", ["watts", "colour"])
    with SchemaRegistryClient({"url": server.http_url}) as registry:
        deserialize = AvroDeserializer(registry, shown["data"])
        context = SerializationContext(topic, MessageField.VALUE)
        found = [deserialize(value, context) for value in values(server, topic)]
    assert found == [{"watts": 40, "colour": "white"}, {"watts": 60, "colour": "red"}]


def values(server, topic):
    """The first two of a topic."""
    consumer = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "python"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    for _ in range(2):
        record = consumer.poll(RECEIVE_SECONDS)
        assert record is not None
        assert record.error() is None
        yield record.value()
    consumer.close()
