"""Topics of several partitions, which come into being because the policy says so."""

import time

import httpx
import pulsar
import pytest
from pulsar import ConsumerType, InitialPosition, PartitionsRoutingMode

from magnetar import standalone

from .stock import bodies, drain, numbered, publish, receive

PARTITIONS = 4


@pytest.fixture(scope="module")
def partitioned():
    """A server on which topics have partitions."""
    broker = {"allow_auto_topic_creation_type": "partitioned", "default_num_partitions": PARTITIONS}
    with standalone(broker=broker) as server:
        yield server


@pytest.fixture
def client(partitioned, connect):
    return connect(partitioned.pulsar_url)


def by_partition(messages):
    found: dict[int, list[int]] = {}
    for message in messages:
        found.setdefault(message.message_id().partition(), []).append(int(message.data()))
    return found


def test_partitions_are_named(client, topic):
    assert client.get_topic_partitions(topic) == [
        f"persistent://public/default/{topic}-partition-{number}" for number in range(PARTITIONS)
    ]


@pytest.mark.parametrize("kind", list(ConsumerType.__members__))
def test_all_arrives(client, topic, kind):
    consumer = client.subscribe(topic, "s", ConsumerType.__members__[kind])
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(100))
    got = by_partition(receive(consumer, 100))
    assert sorted(number for numbers in got.values() for number in numbers) == list(range(100))
    assert set(got) == set(range(PARTITIONS))
    assert all(numbers == sorted(numbers) for numbers in got.values())


def test_a_key_has_its_partition(client, topic):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=False)
    for number in range(100):
        producer.send_async(b"%d" % number, None, partition_key=f"key-{number % 20}")
    producer.flush()
    where: dict[str, set[int]] = {}
    for message in receive(consumer, 100):
        where.setdefault(message.partition_key(), set()).add(message.message_id().partition())
    assert all(len(partitions) == 1 for partitions in where.values())


def test_one_partition(client, topic):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(
        topic, message_routing_mode=PartitionsRoutingMode.UseSinglePartition
    )
    publish(producer, numbered(50))
    messages = receive(consumer, 50)
    assert bodies(messages) == numbered(50)
    assert len(by_partition(messages)) == 1


def test_failover_spreads_partitions(client, topic):
    """Of two consumers each is served half of the partitions."""
    consumers = [
        client.subscribe(topic, "s", ConsumerType.Failover, consumer_name=name) for name in "ab"
    ]
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(100))
    got = [by_partition(receive(consumer, 50)) for consumer in consumers]
    assert [len(each) for each in got] == [2, 2]
    assert not set(got[0]) & set(got[1])


def test_acknowledged_per_partition(client, topic):
    consumer = client.subscribe(topic, "s", ConsumerType.Shared)
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(40))
    for message in receive(consumer, 40):
        if int(message.data()) >= 10:
            consumer.acknowledge(message)
    consumer.close()
    again = client.subscribe(topic, "s", ConsumerType.Shared)
    assert sorted(map(int, drain(again, 10))) == list(range(10))


def test_seek_all(client, topic):
    consumer = client.subscribe(topic, "s")
    client.subscribe(topic, "keeper").close()
    producer = client.create_producer(topic)
    publish(producer, numbered(40))
    drain(consumer, 40)
    consumer.seek(pulsar.MessageId.earliest)
    assert sorted(map(int, drain(consumer, 40))) == list(range(40))


def test_reader_of_all(client, topic):
    client.subscribe(topic, "keeper").close()
    publish(client.create_producer(topic), numbered(40))
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(int(reader.read_next(15_000).data()))
    assert sorted(found) == list(range(40))


def test_one_partition_by_name(client, topic):
    assert len(client.get_topic_partitions(topic)) == PARTITIONS
    name = f"{topic}-partition-2"
    consumer = client.subscribe(name, "s", initial_position=InitialPosition.Earliest)
    client.create_producer(name).send(b"2")
    assert drain(consumer, 1) == [b"2"]
    with pytest.raises(pulsar.PulsarException):
        client.subscribe(f"{topic}-partition-{PARTITIONS}", "s")


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_a_partition_of_no_topic(server, client, domain):
    """It is not created, by nobody; a topic of that name that MQTT has made is there for all."""
    name = f"{domain}://public/default/nothing-partition-3"
    for attach in (
        lambda: client.create_producer(name),
        lambda: client.subscribe(name, "s"),
        lambda: client.create_reader(name, pulsar.MessageId.earliest),
    ):
        with pytest.raises(pulsar.NotAllowedError):
            attach()
    path = f"{server.http_url}/admin/v2/{domain}/public/default"
    assert httpx.put(f"{path}/nothing-partition-3").status_code == 412
    assert name not in httpx.get(path).json()


def test_chunks_and_batches(client, topic):
    consumer = client.subscribe(topic, "s")
    chunked = client.create_producer(topic, chunking_enabled=True)
    large = bytes(range(256)) * 4096 * 18
    chunked.send(large)
    assert drain(consumer, 1) == [large]
    batched = client.create_producer(topic, batching_enabled=True)
    publish(batched, numbered(400))
    assert sorted(map(int, drain(consumer, 400))) == list(range(400))


# -- made by an administrator --------------------------------------------------------------------


def test_made_and_grown_by_hand(server, connect, topic):
    """A producer that is there sees what was added when it asks again; a new one at once."""
    url = f"{server.http_url}/admin/v2/persistent/public/default/{topic}/partitions"
    assert httpx.put(url, json=2).status_code == 204
    client = connect(server.pulsar_url)
    assert len(client.get_topic_partitions(topic)) == 2
    consumer = client.subscribe(topic, "s")
    publish(client.create_producer(topic, batching_enabled=False), numbered(20))
    assert set(by_partition(receive(consumer, 20))) == {0, 1}
    consumer.close()
    assert httpx.post(url, json=5).status_code == 204
    assert len(client.get_topic_partitions(topic)) == 5
    again = client.subscribe(topic, "t")
    publish(client.create_producer(topic, batching_enabled=False), numbered(50))
    assert set(by_partition(receive(again, 50))) == set(range(5))


def test_what_comes_before_consumers_look_again(server, connect, topic):
    """New partitions have the subscriptions of the first: nothing is lost until they are found."""
    url = f"{server.http_url}/admin/v2/persistent/public/default/{topic}/partitions"
    assert httpx.put(url, json=1).is_success
    client = connect(server.pulsar_url)
    client.subscribe(topic, "s").close()
    assert httpx.post(url, json=3).is_success
    producer = client.create_producer(
        topic,
        message_routing_mode=PartitionsRoutingMode.RoundRobinDistribution,
        batching_enabled=False,
    )
    publish(producer, numbered(9))
    assert sorted(drain(client.subscribe(topic, "s"), 9)) == numbered(9)


def test_terminated(server, connect, topic):
    """Nothing more is taken; what is there can still be read."""
    client = connect(server.pulsar_url)
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    publish(producer, numbered(5))
    url = f"{server.http_url}/admin/v2/persistent/public/default/{topic}/terminate"
    assert httpx.post(url).status_code == 200
    for _again in range(3):  # the producer was sent away, came back, and heard why it may not stay
        began = time.monotonic()
        with pytest.raises(pulsar.TopicTerminated):
            producer.send(b"too late")
        assert time.monotonic() - began < 5
    with pytest.raises(pulsar.TopicTerminated):
        client.create_producer(topic)
    assert drain(consumer, 5) == numbered(5)
    with pytest.raises(pulsar.Timeout):
        consumer.receive(300)
    assert consumer.is_connected()
