"""Confluent's serializers with the registry of this server, and Pulsar's client beside them."""

import json

import httpx
import pulsar
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

WATTS = {"name": "watts", "type": "int"}
COLOUR = {"name": "colour", "type": "string"}
RECEIVE_SECONDS = 15


def lamp(*more):
    fields = [WATTS, *more]
    return json.dumps({"type": "record", "name": "Lamp", "namespace": "shop", "fields": fields})


COLOURED = lamp({**COLOUR, "default": "white"})


@pytest.fixture
def registry(server):
    with SchemaRegistryClient({"url": server.http_url}) as client:
        yield client


def test_values_cross_with_their_schemas(server, registry, topic):
    """Two versions in one topic; a reader of the second one reads both."""
    producer = Producer({"bootstrap.servers": server.bootstrap_servers})
    context = SerializationContext(topic, MessageField.VALUE)
    for text, value in ((lamp(), {"watts": 40}), (COLOURED, {"watts": 60, "colour": "red"})):
        serialize = AvroSerializer(registry, text)
        producer.produce(topic, serialize(value, context))
    producer.flush()
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
        }
    )
    deserialize = AvroDeserializer(registry, COLOURED)
    consumer.subscribe([topic])
    found = []
    for _ in range(2):
        message = consumer.poll(RECEIVE_SECONDS)
        assert message is not None
        assert message.error() is None
        found.append(deserialize(message.value(), context))
    consumer.close()
    assert found == [{"watts": 40, "colour": "white"}, {"watts": 60, "colour": "red"}]
    assert registry.get_versions(f"{topic}-value") == [1, 2]


def test_values_in_json_schema_cross(registry, topic):
    """A reader of the second version reads what was written with the first one."""
    subject, context = f"{topic}-value", SerializationContext(topic, MessageField.VALUE)
    watts, colour = {"watts": {"type": "integer"}}, {"colour": {"type": "string"}}
    lamps = [
        {"title": "Lamp", "type": "object", "properties": fields, "additionalProperties": False}
        for fields in (watts, {**watts, **colour})
    ]
    values = [{"watts": 40}, {"watts": 60, "colour": "red"}]
    written = [
        JSONSerializer(json.dumps(schema), registry)(value, context)
        for schema, value in zip(lamps, values, strict=True)
    ]
    read = JSONDeserializer(json.dumps(lamps[1]), schema_registry_client=registry)
    assert [read(each, context) for each in written] == values
    assert registry.get_versions(subject) == [1, 2]
    assert registry.get_latest_version(subject).schema.schema_type == "JSON"
    less = {**lamps[0], "properties": {"watts": {"type": "string"}}}
    with pytest.raises(SchemaRegistryError) as refused:
        JSONSerializer(json.dumps(less), registry)({"watts": "40"}, context)
    assert (refused.value.http_status_code, "colour" in str(refused.value)) == (409, True)


def test_a_pulsar_client_has_the_same_schema(server, registry, client, topic):
    subject = f"{topic}-value"
    schema_id = registry.register_schema(subject, Schema(lamp(), "AVRO"))
    path = f"{server.http_url}/admin/v2/schemas/public/default/{topic}/schema"
    assert json.loads(httpx.get(path).json()["data"]) == json.loads(lamp())
    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer(topic, schema=pulsar.schema.StringSchema())
    found = registry.get_latest_version(subject)
    assert (found.version, found.schema_id) == (1, schema_id)
    assert registry.lookup_schema(subject, Schema(lamp(), "AVRO")).schema_id == schema_id
    assert registry.get_schema(schema_id).schema_str == lamp()


def test_what_may_follow(registry, topic):
    subject = f"{topic}-value"
    registry.register_schema(subject, Schema(lamp(), "AVRO"))
    other = Schema(lamp(COLOUR), "AVRO")
    assert not registry.test_compatibility(subject, other)
    assert registry.test_compatibility(subject, Schema(COLOURED, "AVRO"))
    with pytest.raises(SchemaRegistryError) as refused:
        registry.register_schema(subject, other)
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 409)
    registry.set_compatibility(subject, "NONE")
    assert registry.get_compatibility(subject) == "NONE"
    registry.register_schema(subject, other)
    assert registry.get_versions(subject) == [1, 2]


def test_subjects_come_and_go(registry, topic):
    subject = f"{topic}-key"
    registry.register_schema(subject, Schema('"string"', "AVRO"))
    assert subject in registry.get_subjects()
    assert registry.delete_subject(subject) == [1]
    assert subject not in registry.get_subjects()
    with pytest.raises(SchemaRegistryError) as refused:
        registry.get_latest_version(subject)
    assert refused.value.error_code == 40401


def test_versions_come_and_go(registry, topic):
    subject = f"{topic}-key"
    registry.set_compatibility(subject, "NONE")
    for text in ('"string"', '"int"', '"long"'):
        registry.register_schema(subject, Schema(text, "AVRO"))
    assert registry.delete_version(subject, 2) == 2
    assert registry.get_versions(subject) == [1, 3]
    with pytest.raises(SchemaRegistryError) as refused:
        registry.delete_version(subject, 3, permanent=True)
    assert refused.value.error_code == 40407
    assert registry.delete_version(subject, 2, permanent=True) == 2
    assert registry.get_version(subject, 3).schema.schema_str == '"long"'
