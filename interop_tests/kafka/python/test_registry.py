"""Confluent's serializers with the registry of this server, and Pulsar's client beside them."""

import json

import httpx
import pulsar
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from google.protobuf import timestamp_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from magnetar import standalone

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


def test_ids_in_headers(server, registry, topic):
    """The value is as it would be without a registry; its schema's GUID is in a header."""
    producer = Producer({"bootstrap.servers": server.bootstrap_servers})
    headers = []
    serialize = AvroSerializer(
        registry, COLOURED, conf={"schema.id.serializer": header_schema_id_serializer}
    )
    lit = {"watts": 40, "colour": "yellow"}  # the client's deserializer wants six bytes
    value = serialize(lit, SerializationContext(topic, MessageField.VALUE, headers))
    assert value == b"\x50\x0cyellow"
    producer.produce(topic, value, headers=headers)
    producer.flush()
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    message = consumer.poll(RECEIVE_SECONDS)
    assert message is not None
    assert message.error() is None
    context = SerializationContext(topic, MessageField.VALUE, message.headers())
    with SchemaRegistryClient({"url": server.http_url}) as elsewhere:
        assert AvroDeserializer(elsewhere)(message.value(), context) == lit
    consumer.close()


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


def test_values_in_protobuf_cross(registry, topic):
    """Messages of compiled classes; a reader of the second version reads both."""
    subject, context = f"{topic}-value", SerializationContext(topic, MessageField.VALUE)
    file = FileDescriptorProto(name=f"{topic}.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    lamp = file.message_type.add(name="Lamp")
    lamp.field.add(name="watts", number=1, type=FieldDescriptorProto.TYPE_INT32, label=1)
    stamp = {"type": FieldDescriptorProto.TYPE_MESSAGE, "label": 1}
    lamp.field.add(name="since", number=2, type_name=".google.protobuf.Timestamp", **stamp)
    first = class_of(file)
    lamp.field.add(name="colour", number=3, type=FieldDescriptorProto.TYPE_STRING, label=1)
    second = class_of(file)
    written = [
        ProtobufSerializer(kind, registry, {"use.deprecated.format": False})(kind(**value), context)
        for kind, value in ((first, {"watts": 40}), (second, {"watts": 60, "colour": "red"}))
    ]
    read = ProtobufDeserializer(second, {"use.deprecated.format": False})
    assert [(one.watts, one.colour) for one in (read(each, context) for each in written)] == [
        (40, ""), (60, "red"),
    ]  # fmt: skip
    assert registry.get_versions(subject) == [1, 2]
    found = registry.get_latest_version(subject).schema
    assert found.schema_type == "PROTOBUF"
    assert "string colour = 3;" in found.schema_str
    lamp.field[0].type = FieldDescriptorProto.TYPE_STRING
    other = class_of(file)
    with pytest.raises(SchemaRegistryError) as refused:
        ProtobufSerializer(other, registry, {"use.deprecated.format": False})(other(), context)
    assert (refused.value.http_status_code, "field 1" in str(refused.value)) == (409, True)


def test_files_of_protobuf_that_import_others(registry, topic):
    """The serializer registers them one by one, and refers to each."""
    subject, context = f"{topic}-value", SerializationContext(topic, MessageField.VALUE)
    colours = FileDescriptorProto(name=f"{topic}/colours.proto", package="shop", syntax="proto3")
    colours.enum_type.add(name="Colour").value.add(name="WHITE", number=0)
    colours.enum_type[0].value.add(name="RED", number=1)
    bulbs = FileDescriptorProto(name=f"{topic}/bulbs.proto", package="shop", syntax="proto3")
    bulbs.dependency.append(colours.name)
    bulb = bulbs.message_type.add(name="Bulb")
    enum = {"type": FieldDescriptorProto.TYPE_ENUM, "label": 1}
    bulb.field.add(name="colour", number=1, type_name=".shop.Colour", **enum)
    lamps = FileDescriptorProto(name=f"{topic}/lamps.proto", package="shop", syntax="proto3")
    lamps.dependency.extend([bulbs.name, "google/protobuf/timestamp.proto"])
    message = {"type": FieldDescriptorProto.TYPE_MESSAGE, "label": 1}
    lamp = lamps.message_type.add(name="Lamp")
    lamp.field.add(name="bulb", number=1, type_name=".shop.Bulb", **message)
    lamp.field.add(name="since", number=2, type_name=".google.protobuf.Timestamp", **message)
    kind = class_of(lamps, colours, bulbs)
    serialize = ProtobufSerializer(kind, registry, {"use.deprecated.format": False})
    written = serialize(kind(bulb={"colour": 1}), context)
    options = {"use.deprecated.format": False}
    for read in (
        ProtobufDeserializer(kind, options),
        ProtobufDeserializer(kind, options, schema_registry_client=registry),
    ):
        assert read(written, context).bulb.colour == 1
    latest = registry.get_latest_version(subject)
    assert [(one.name, one.version) for one in latest.schema.references] == [(bulbs.name, 1)]
    needed = registry.get_version(bulbs.name, 1)
    assert [one.subject for one in needed.schema.references] == [colours.name]
    path = f"/subjects/{colours.name.replace('/', '%2F')}/versions/1/referencedby"
    assert registry._rest_client.get(path) == [needed.schema_id]
    with pytest.raises(SchemaRegistryError) as refused:
        registry.delete_subject(bulbs.name)
    assert (refused.value.http_status_code, refused.value.error_code) == (422, 42206)


def test_types_of_avro_by_reference(registry, topic):
    """Values of two types in one topic; each type is a subject of its own."""
    context = SerializationContext(topic, MessageField.VALUE)
    names = [f"{topic}.Lamp", f"{topic}.Chair"]
    references = []
    for name, field in zip(names, (WATTS, COLOUR), strict=True):
        space, _, local = name.rpartition(".")
        text = {"type": "record", "name": local, "namespace": f"n{space}", "fields": [field]}
        registry.register_schema(name, Schema(json.dumps(text), "AVRO"))
        references.append(SchemaReference(f"n{name}", name, 1))
    either = Schema(json.dumps([f"n{name}" for name in names]), "AVRO", references)
    serialize = AvroSerializer(registry, either, conf={"auto.register.schemas": True})
    deserialize = AvroDeserializer(registry)
    for value in ({"watts": 40}, {"colour": "red"}):
        assert deserialize(serialize(value, context), context) == value
    with pytest.raises(SchemaRegistryError) as refused:
        registry.delete_version(names[0], 1)
    assert refused.value.error_code == 42206


def test_documents_of_json_schema_by_reference(registry, topic):
    subject, context = f"{topic}-value", SerializationContext(topic, MessageField.VALUE)
    part = {"type": "object", "properties": {"watts": {"type": "integer"}}}
    registry.register_schema(f"{topic}-part", Schema(json.dumps(part), "JSON"))
    whole = {"title": "Lamps", "type": "object", "properties": {"lamp": {"$ref": "part.json"}}}
    reference = SchemaReference("part.json", f"{topic}-part", 1)
    schema = Schema(json.dumps(whole), "JSON", [reference])
    value = {"lamp": {"watts": 40}}
    written = JSONSerializer(schema, registry)(value, context)
    read = JSONDeserializer(None, schema_registry_client=registry)
    assert read(written, context) == value
    with pytest.raises(SerializationError):
        JSONSerializer(schema, registry)({"lamp": {"watts": "40"}}, context)
    assert registry.get_latest_version(subject).schema.references == [reference]


def test_references_are_there_after_a_crash():
    with standalone() as server:
        with SchemaRegistryClient({"url": server.http_url}) as registry:
            registry.register_schema("part", Schema(lamp(), "AVRO"))
            references = [SchemaReference("shop.Lamp", "part", 1)]
            text = '{"type": "array", "items": "shop.Lamp"}'
            schema_id = registry.register_schema("t-value", Schema(text, "AVRO", references))
        server.kill()
        server.start()
        with SchemaRegistryClient({"url": server.http_url}) as registry:
            found = registry.get_schema(schema_id)
            assert (found.schema_str, found.references) == (text, references)
            with pytest.raises(SchemaRegistryError) as refused:
                registry.delete_subject("part")
            assert refused.value.error_code == 42206
            registry.register_schema("u-value", Schema(text, "AVRO", references))


def class_of(file, *imported):
    """The class of the only message of a file, as `protoc` would compile it."""
    pool = DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    for each in (*imported, file):
        pool.AddSerializedFile(each.SerializeToString())
    (message,) = pool.FindFileByName(file.name).message_types_by_name.values()
    return GetMessageClass(message)


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


def test_a_pulsar_client_at_a_topic_whose_schema_refers_to_another(registry, client, topic):
    """It produces and consumes bytes, or brings a schema that goes with what that one means."""
    registry.register_schema(f"{topic}-part", Schema(lamp(), "AVRO"))
    fields = [{"name": "lamp", "type": "shop.Lamp"}]
    whole = {"type": "record", "name": "Room", "fields": fields}
    reference = SchemaReference("shop.Lamp", f"{topic}-part", 1)
    registry.register_schema(f"{topic}-value", Schema(json.dumps(whole), "AVRO", [reference]))
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(b"bytes")
    assert consumer.receive(RECEIVE_SECONDS * 1_000).value() == b"bytes"
    fields[0]["type"] = json.loads(lamp())
    client.create_producer(topic, schema=avro_schema(whole))
    fields[0]["type"] = "string"
    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer(topic, schema=avro_schema(whole))


def avro_schema(definition):
    return pulsar.schema.AvroSchema(None, schema_definition=definition)


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
