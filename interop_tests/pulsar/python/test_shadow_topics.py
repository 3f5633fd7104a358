"""Shadow topics (PIP-180), as administrators make them and clients of all protocols read them."""

import httpx
import pulsar
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from pulsar import ConsumerType, InitialPosition
from pulsar.schema import AvroSchema, Record, String

from interop_tests.waiting import until

from .stock import DEADLINE_SECONDS, RECEIVE_MS, bodies, drain, numbered, publish, readable, receive

FULL = "persistent://public/default/{}".format
EARLIEST = InitialPosition.Earliest


def ask(server, method, path, body=None):
    url = f"{server.http_url}/admin/v2/persistent/public/default/{path}"
    return httpx.request(method, url, json=body, timeout=DEADLINE_SECONDS)


def make_shadow(server, source, partitions=0):
    """As `pulsar-admin topics create-shadow-topic` does."""
    shadow, shown = f"{source}-shadow", {"PULSAR.SHADOW_SOURCE": FULL(source)}
    if partitions:
        body = {"partitions": partitions, "properties": shown}
        answer = ask(server, "PUT", f"{shadow}/partitions", body)
    else:
        answer = ask(server, "PUT", shadow, shown)
    assert answer.is_success, answer.text
    return shadow


def backlog(server, topic):
    return ask(server, "GET", f"{topic}/stats").json()["subscriptions"]["s"]["msgBacklog"]


@pytest.mark.parametrize("batched", [False, True])
def test_a_shadow_has_the_messages_of_its_source(server, client, topic, batched):
    producer = client.create_producer(topic, batching_enabled=batched)
    publish(producer, numbered(10))
    shadow = make_shadow(server, topic)
    consumer = client.subscribe(shadow, "s", initial_position=EARLIEST)
    publish(producer, numbered(10, first=10))
    messages = receive(consumer, 20)
    assert bodies(messages) == numbered(20)
    for message in messages:
        consumer.acknowledge(message)
    own = client.subscribe(topic, "s", initial_position=EARLIEST)
    others = receive(own, 20)
    assert bodies(others) == numbered(20), "a subscription of another topic"
    assert [str(one.message_id()) for one in messages] == [str(one.message_id()) for one in others]
    assert readable(client, shadow) == numbered(20)


def test_who_would_publish_is_told(server, client, topic):
    client.create_producer(topic)
    shadow = make_shadow(server, topic)
    with pytest.raises(pulsar.NotAllowedError):
        client.create_producer(shadow)
    errors = []
    producer = Producer({"bootstrap.servers": server.bootstrap_servers})
    producer.produce(shadow, b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(DEADLINE_SECONDS) == 0
    assert errors[0].code() == KafkaError.POLICY_VIOLATION, errors
    assert readable(client, shadow) == []


def test_its_subscriptions_outlive_a_kill(magnetar_function, connect, topic):
    server = magnetar_function
    client = connect(server.pulsar_url)
    producer = client.create_producer(topic)
    shadow = make_shadow(server, topic)
    consumer = client.subscribe(shadow, "s", ConsumerType.Shared, initial_position=EARLIEST)
    publish(producer, numbered(10))
    for message in receive(consumer, 10):
        if int(message.data()) % 2:
            consumer.acknowledge(message)
    client.close()
    assert ask(server, "PUT", f"{shadow}/unload").is_success  # acknowledgements are stored
    server.kill()
    server.restart()
    client = connect(server.pulsar_url)
    consumer = client.subscribe(shadow, "s", ConsumerType.Shared)
    assert sorted(bodies(receive(consumer, 5))) == [b"0", b"2", b"4", b"6", b"8"]
    publish(client.create_producer(topic), [b"10"])
    assert bodies(receive(consumer, 1)) == [b"10"]


@pytest.mark.parametrize("unloaded", ["source", "shadow"])
def test_consumers_stay_while_topics_are_unloaded(server, client, topic, unloaded):
    producer = client.create_producer(topic)
    shadow = make_shadow(server, topic)
    consumer = client.subscribe(shadow, "s", initial_position=EARLIEST)
    publish(producer, numbered(5))
    assert drain(consumer, 5) == numbered(5)
    until(lambda: backlog(server, shadow) == 0)
    name = topic if unloaded == "source" else shadow
    assert ask(server, "PUT", f"{name}/unload").is_success
    publish(producer, numbered(5, first=5))
    assert drain(consumer, 5) == numbered(5, first=5)


def test_partitions(server, client, topic):
    assert ask(server, "PUT", f"{topic}/partitions", 3).is_success
    shadow = make_shadow(server, topic, 3)
    producer = client.create_producer(topic)
    consumer = client.subscribe(shadow, "s", initial_position=EARLIEST)
    publish(producer, numbered(30))
    assert sorted(map(int, drain(consumer, 30))) == list(range(30))


def test_other_protocols_read_it(server, client, topic):
    producer = client.create_producer(topic)
    publish(producer, numbered(3))
    shadow = make_shadow(server, topic)
    reader = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": shadow})
    reader.assign([TopicPartition(shadow, 0, 0)])
    found = [message.value() for message in reader.consume(3, DEADLINE_SECONDS)]
    publish(producer, [b"3"])
    found += [message.value() for message in reader.consume(1, DEADLINE_SECONDS)]
    assert found == numbered(4)
    reader.commit(asynchronous=False)
    reader.close()
    assert ask(server, "GET", f"{topic}/subscriptions").json() == []
    assert ask(server, "GET", f"{shadow}/subscriptions").json() == [shadow]


def test_what_pulsars_and_kafkas_producers_wrote(server, client, topic):
    """Kafka's batches are converted for Pulsar's consumers of a shadow, too."""
    client.create_producer(topic).send(b"pulsar")
    shadow = make_shadow(server, topic)
    consumer = client.subscribe(shadow, "s", initial_position=EARLIEST)
    producer = Producer({"bootstrap.servers": server.bootstrap_servers})
    producer.produce(topic, b"kafka")
    assert producer.flush(DEADLINE_SECONDS) == 0
    assert drain(consumer, 2) == [b"pulsar", b"kafka"]


def test_a_source_that_is_deleted(server, client, topic):
    publish(client.create_producer(topic), numbered(3))
    shadow = make_shadow(server, topic)
    assert ask(server, "PUT", f"{topic}/shadowTopics", [FULL(shadow)]).is_success
    assert ask(server, "DELETE", topic).status_code == 422
    assert ask(server, "DELETE", f"{topic}?force=true").is_success
    until(lambda: ask(server, "GET", f"{shadow}/stats").status_code == 404)
    with pytest.raises(pulsar.PulsarException):
        client.subscribe(shadow, "s")
    assert ask(server, "DELETE", shadow).is_success
    client.create_producer(shadow).send(b"its own")
    assert readable(client, shadow) == [b"its own"]


def test_the_schemas_are_the_sources(server, client, topic):
    class Order(Record):
        item = String()

    schema = AvroSchema(Order)
    producer = client.create_producer(topic, schema=schema)
    producer.send(Order(item="tea"))
    shadow = make_shadow(server, topic)
    consumer = client.subscribe(shadow, "s", schema=schema, initial_position=EARLIEST)
    assert consumer.receive(RECEIVE_MS).value().item == "tea"
    consumer.close()
    with pytest.raises(pulsar.IncompatibleSchema):
        client.subscribe(shadow, "s", schema=pulsar.schema.StringSchema())
    shown = f"{server.http_url}/admin/v2/schemas/public/default/{{}}/schema".format
    found, own = [httpx.get(shown(name)).json() for name in (shadow, topic)]
    assert found == own
    assert httpx.delete(shown(shadow)).status_code == 412
    assert httpx.get(shown(topic)).json() == own
