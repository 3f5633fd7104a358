"""Schemas: what clients declare is kept with the topic, compared, and told to those who ask."""

import httpx
import pulsar
import pytest
from google.protobuf import timestamp_pb2
from pulsar.schema import (
    AvroSchema,
    BytesSchema,
    Integer,
    JsonSchema,
    Long,
    Record,
    String,
    StringSchema,
)

import magnetar

from .stock import RECEIVE_MS


class Order(Record):
    number = Integer()
    article = String()


class PricedOrder(Record):
    _avro_namespace = None
    number = Integer()
    article = String()
    price = Integer(default=1, required_default=True)


class NumberedOrder(Record):
    number = String(required=True)
    article = String()


class LongOrder(Record):
    number = Long()
    article = String()


def refuses(call, *args, **kwargs) -> None:
    with pytest.raises(pulsar.IncompatibleSchema):
        call(*args, **kwargs)


def test_text(client, topic):
    consumer = client.subscribe(topic, "s", schema=StringSchema())
    client.create_producer(topic, schema=StringSchema()).send("grün")
    assert consumer.receive(RECEIVE_MS).value() == "grün"


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("kind", [JsonSchema, AvroSchema])
def test_records(client, topic, kind, batched):
    consumer = client.subscribe(topic, "s", schema=kind(Order))
    producer = client.create_producer(topic, schema=kind(Order), batching_enabled=batched)
    producer.send(Order(number=7, article="lamp"))
    message = consumer.receive(RECEIVE_MS)
    order = message.value()
    assert (order.number, order.article) == (7, "lamp")


def test_bytes_beside_it(client, topic):
    """A consumer without a schema reads what was written with one."""
    consumer = client.subscribe(topic, "s", schema=BytesSchema())
    client.create_producer(topic, schema=JsonSchema(Order)).send(Order(number=1, article="x"))
    assert b'"number"' in consumer.receive(RECEIVE_MS).data()


def test_reader(client, topic):
    client.subscribe(topic, "keeper").close()
    client.create_producer(topic, schema=StringSchema()).send("x")
    reader = client.create_reader(topic, pulsar.MessageId.earliest, schema=StringSchema())
    assert reader.read_next(RECEIVE_MS).value() == "x"


def test_what_may_follow(client, server, topic):
    client.create_producer(topic, schema=AvroSchema(Order))
    client.create_producer(topic, schema=AvroSchema(PricedOrder))
    for schema in (AvroSchema(NumberedOrder), JsonSchema(Order), StringSchema()):
        refuses(client.create_producer, topic, schema=schema)
        refuses(client.subscribe, topic, "s", schema=schema)
    path = f"{server.http_url}/admin/v2/schemas/public/default/{topic}"
    versions = httpx.get(f"{path}/schemas").json()["getSchemaResponses"]
    assert [each["version"] for each in versions] == [0, 1]
    assert {each["type"] for each in versions} == {"AVRO"}


def test_each_topic_has_a_strategy(client, server, topics):
    for strategy, taken in (("BACKWARD", True), ("FORWARD", False)):
        topic = topics()
        path = f"/admin/v2/persistent/public/default/{topic}/schemaCompatibilityStrategy"
        client.create_producer(topic, schema=AvroSchema(Order))
        assert httpx.put(server.http_url + path, json=strategy).status_code == 204
        if taken:
            client.create_producer(topic, schema=AvroSchema(LongOrder))
        else:
            refuses(client.create_producer, topic, schema=AvroSchema(LongOrder))


def test_partitions_share_their_schemas(client, server, topic):
    path = f"{server.http_url}/admin/v2/persistent/public/default/{topic}/partitions"
    httpx.put(path, json=3)
    consumer = client.subscribe(topic, "s", schema=AvroSchema(Order))
    producer = client.create_producer(
        topic,
        schema=AvroSchema(Order),
        message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution,
    )
    for number in range(6):
        producer.send(Order(number=number, article="lamp"))
    found = [consumer.receive(RECEIVE_MS).value().number for _ in range(6)]
    assert sorted(found) == list(range(6))
    schemas = f"{server.http_url}/admin/v2/schemas/public/default/{topic}-partition-1/schemas"
    assert len(httpx.get(schemas).json()["getSchemaResponses"]) == 1


def test_protobuf(client, topic):
    schema = pulsar.schema.ProtobufNativeSchema(timestamp_pb2.Timestamp)
    consumer = client.subscribe(topic, "s", schema=schema)
    client.create_producer(topic, schema=schema).send(timestamp_pb2.Timestamp(seconds=7))
    assert consumer.receive(RECEIVE_MS).value().seconds == 7


def test_after_a_crash():
    with magnetar.standalone() as server:
        for crashes in (True, False):
            client = pulsar.Client(server.pulsar_url)
            client.create_producer("t", schema=AvroSchema(Order))
            refuses(client.create_producer, "t", schema=AvroSchema(NumberedOrder))
            client.close()
            path = f"{server.http_url}/admin/v2/schemas/public/default/t/schema"
            assert httpx.get(path).json()["version"] == 0
            if crashes:
                server.kill()
                server.start()
