"""Schemas: what clients declare is taken, and what they send is passed on."""

import pulsar
import pytest
from pulsar.schema import BytesSchema, Integer, JsonSchema, Record, String, StringSchema

from .stock import RECEIVE_MS


class Order(Record):
    number = Integer()
    article = String()


def test_text(client, topic):
    consumer = client.subscribe(topic, "s", schema=StringSchema())
    client.create_producer(topic, schema=StringSchema()).send("grün")
    assert consumer.receive(RECEIVE_MS).value() == "grün"


@pytest.mark.parametrize("batched", [False, True])
def test_records(client, topic, batched):
    consumer = client.subscribe(topic, "s", schema=JsonSchema(Order))
    producer = client.create_producer(topic, schema=JsonSchema(Order), batching_enabled=batched)
    producer.send(Order(number=7, article="lamp"))
    order = consumer.receive(RECEIVE_MS).value()
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
