"""One topic, two protocols, stock clients on both sides: what goes in there comes out here."""

from __future__ import annotations

import json

import httpx
import pulsar
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from interop_tests.waiting import until

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
PULSAR_CODECS = list(pulsar.CompressionType.__members__.values())
SECONDS = 20


@pytest.fixture
def produce(server):
    """Kafka's side of writing; what was not stored fails the test."""
    made: list[Producer] = []

    def make(**options) -> Producer:
        options = {key.replace("_", "."): value for key, value in options.items()}
        made.append(Producer({"bootstrap.servers": server.bootstrap_servers, **options}))
        return made[-1]

    yield make
    for producer in made:
        assert producer.flush(SECONDS) == 0


@pytest.fixture
def fetched(server):
    """So many messages from the beginning of a topic's one partition."""

    def fetch(topic: str, count: int) -> list:
        consumer = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "none"})
        consumer.assign([TopicPartition(topic, 0, 0)])
        try:
            found = consumer.consume(count, SECONDS)
        finally:
            consumer.close()
        assert [message.error() for message in found] == [None] * count
        return found

    return fetch


def received(client: pulsar.Client, topic: str, count: int) -> list[pulsar.Message]:
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    return [reader.read_next(SECONDS * 1000) for _ in range(count)]


@pytest.mark.parametrize("codec", CODECS)
def test_kafkas_codecs(produce, client, topic, codec) -> None:
    values = [b"%d " % number * 50 for number in range(500)]
    producer = produce(compression_type=codec, linger_ms=50)
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(SECONDS) == 0
    assert [message.data() for message in received(client, topic, 500)] == values


@pytest.mark.parametrize("codec", PULSAR_CODECS, ids=lambda codec: codec.name)
@pytest.mark.parametrize("batched", [True, False], ids=["batches", "single"])
def test_pulsars_codecs(client, fetched, topic, codec, batched) -> None:
    values = [b"%d " % number * 50 for number in range(100)]
    producer = client.create_producer(topic, compression_type=codec, batching_enabled=batched)
    for value in values:
        producer.send_async(value, None)
    producer.flush()
    found = fetched(topic, 100)
    assert [message.value() for message in found] == values
    assert [message.offset() for message in found] == list(range(100))


def test_keys_times_and_nothing_from_kafka(produce, client, topic) -> None:
    producer = produce()
    for key, value in (
        (b"text", b"v"),
        (b"\xff\x00", b"v"),
        (b"", b""),
        (None, b"v"),
        (b"k", None),
    ):
        producer.produce(topic, value, key, timestamp=1_600_000_000_000)
    producer.flush(SECONDS)
    found = received(client, topic, 5)
    assert [message.partition_key() for message in found] == ["text", "/wA=", "", "", "k"]
    assert [message.data() for message in found] == [b"v", b"v", b"", b"v", b""]
    assert {message.event_timestamp() for message in found} == {1_600_000_000_000}


def test_headers_from_kafka(produce, client, topic) -> None:
    producer = produce()
    producer.produce(topic, b"1", headers=[("a", "text"), ("b", "\u20ac")])
    producer.produce(topic, b"2", headers=[("a", "1"), ("a", "2"), ("n", None), ("b", b"\xff")])
    producer.flush(SECONDS)
    plain, odd = [message.properties() for message in received(client, topic, 2)]
    assert plain == {"a": "text", "b": "\u20ac"}
    said = json.loads(odd.pop("kafka.headers"))
    assert odd == {"a": "2", "b": "/w=="}
    assert said == [["a", "MQ=="], ["a", "Mg=="], ["n", None], ["b", "/w=="]]


def test_headers_that_went_through_pulsar(produce, client, fetched, topics) -> None:
    there, back = topics(), topics()
    headers = [("a", b"1"), ("a", b"2"), ("n", None), ("b", b"\xff")]
    producer = produce()
    producer.produce(there, b"v", headers=headers)
    producer.flush(SECONDS)
    (message,) = received(client, there, 1)
    client.create_producer(back).send(message.data(), properties=message.properties())
    assert fetched(back, 1)[0].headers() == headers


@pytest.mark.parametrize("batched", [True, False], ids=["batches", "single"])
def test_everything_from_pulsar(client, fetched, topic, batched) -> None:
    producer = client.create_producer(topic, batching_enabled=batched)
    for number in range(3):
        producer.send_async(
            b"v%d" % number,
            None,
            partition_key=f"key-{number}",
            properties={"a": "text", "b": "\u20ac"},
            event_timestamp=1_600_000_000_000 + number,
        )
    producer.send_async(b"", None)
    producer.flush()
    *found, last = fetched(topic, 4)
    assert [message.key() for message in found] == [b"key-0", b"key-1", b"key-2"]
    assert [message.value() for message in found] == [b"v0", b"v1", b"v2"]
    assert [message.timestamp()[1] - 1_600_000_000_000 for message in found] == [0, 1, 2]
    assert {tuple(message.headers()) for message in found} == {
        (("a", b"text"), ("b", "\u20ac".encode()))
    }
    assert (last.key(), last.value(), last.headers()) == (None, b"", None)


def test_a_property_of_somebody_elses(client, fetched, topic) -> None:
    """It has the name by which we tell headers, and is no text."""
    said = b'[["\xff", null]]'
    producer = client.create_producer(topic)
    producer.send(b"1", properties={"kafka.headers": said})
    producer.send(b"2")
    first, second = fetched(topic, 2)
    assert (first.headers(), second.value()) == ([("kafka.headers", said)], b"2")


def test_a_large_message_in_parts(client, fetched, topic) -> None:
    producer = client.create_producer(topic, chunking_enabled=True, batching_enabled=False)
    large = bytes(range(256)) * 70_000  # more than a message may have
    producer.send(b"before")
    assert producer.send(large) is not None
    producer.send(b"after")
    found = fetched(topic, 3)
    assert [message.value() for message in found] == [b"before", large, b"after"]


def test_taking_turns(produce, client, fetched, topic) -> None:
    theirs, ours = produce(), client.create_producer(topic)
    expected = []
    for number in range(20):
        expected.append(b"%d" % number)
        if number % 2:
            theirs.produce(topic, expected[-1])
            theirs.flush(SECONDS)
        else:
            ours.send(expected[-1])
    assert [message.value() for message in fetched(topic, 20)] == expected
    assert [message.data() for message in received(client, topic, 20)] == expected


@pytest.mark.parametrize(
    "kind",
    [
        pulsar.ConsumerType.Exclusive,
        pulsar.ConsumerType.Shared,
        pulsar.ConsumerType.Failover,
        pulsar.ConsumerType.KeyShared,
    ],
    ids=str,
)
def test_a_consumer_acknowledges_what_kafka_wrote(produce, client, topic, kind) -> None:
    producer = produce(linger_ms=20)
    for number in range(200):
        producer.produce(topic, b"%d" % number, b"k%d" % (number % 7))
    producer.flush(SECONDS)

    def subscribed() -> pulsar.Consumer:
        return client.subscribe(topic, "s", kind, initial_position=pulsar.InitialPosition.Earliest)

    consumer = subscribed()
    got = []
    for _ in range(200):
        message = consumer.receive(SECONDS * 1000)
        got.append(int(message.data()))
        consumer.acknowledge(message)
    assert got == list(range(200))
    consumer.close()
    producer.produce(topic, b"last")
    producer.flush(SECONDS)
    assert subscribed().receive(SECONDS * 1000).data() == b"last"


def test_messages_of_a_batch_are_sent_again_one_by_one(produce, client, topic) -> None:
    producer = produce(linger_ms=100)
    for number in range(3):
        producer.produce(topic, b"%d" % number)
    producer.flush(SECONDS)
    consumer = client.subscribe(
        topic,
        "s",
        pulsar.ConsumerType.Shared,
        initial_position=pulsar.InitialPosition.Earliest,
        negative_ack_redelivery_delay_ms=100,
    )
    first = [consumer.receive(SECONDS * 1000) for _ in range(3)]
    consumer.negative_acknowledge(first[1])
    again = consumer.receive(SECONDS * 1000)
    assert again.data() in (b"0", b"1", b"2")
    assert again.redelivery_count() == 1


def test_partitions_are_the_same(produce, client, topic) -> None:
    """A topic that Kafka's client made by naming it is a partitioned one."""
    producer = produce()
    producer.produce(topic, b"v", partition=0)
    producer.flush(SECONDS)
    assert client.get_topic_partitions(topic) == [
        f"persistent://public/default/{topic}-partition-0"
    ]


def test_pulsars_tools_show_what_kafka_wrote(produce, client, server, topic) -> None:
    client.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest).close()
    producer = produce()
    producer.produce(topic, b"value", b"key")
    producer.flush(SECONDS)
    path = f"/admin/v2/persistent/public/default/{topic}/subscription/s/position/1"
    answer = httpx.get(server.http_url + path)
    assert answer.status_code == 200
    assert answer.headers["X-Pulsar-num-batch-message"] == "1"
    assert answer.content.endswith(b"value")


def test_a_groups_lag_is_a_subscriptions_backlog(produce, client, server, topic) -> None:
    producer = produce()
    for number in range(10):
        producer.produce(topic, b"%d" % number)
        producer.flush(SECONDS)
    group = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "lagging"})
    try:
        offsets = [TopicPartition(topic, 0, 4)]
        (results,) = group.commit(offsets=offsets, asynchronous=False)
        assert results.error is None
    finally:
        group.close()
    path = f"/admin/v2/persistent/public/default/{topic}-partition-0/stats"
    stats = httpx.get(server.http_url + path).json()
    assert stats["subscriptions"]["lagging"]["msgBacklog"] == 6


def test_a_subscription_is_a_group_with_a_lag(produce, client, server, topic) -> None:
    producer = produce()
    consumer = client.subscribe(topic, "mine", initial_position=pulsar.InitialPosition.Earliest)
    for number in range(10):
        producer.produce(topic, b"%d" % number)
        producer.flush(SECONDS)
    for _ in range(3):
        message = consumer.receive(SECONDS * 1000)
    consumer.acknowledge_cumulative(message)
    consumer.close()
    group = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "mine"})
    try:
        (found,) = group.committed([TopicPartition(topic, 0)], SECONDS)
    finally:
        group.close()
    assert found.offset == 3


@pytest.mark.parametrize(
    "kind", [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared], ids=str
)
def test_pulsars_consumers_see_what_is_committed_when_it_is(
    produce, client, server, topic, kind
) -> None:
    producer = produce(transactional_id=topic)
    producer.init_transactions(SECONDS)
    consumer = client.subscribe(topic, "s", kind)
    expected = []
    for number in range(6):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % number)
        producer.flush(SECONDS)
        with pytest.raises(pulsar.Timeout):
            consumer.receive(100)
        if number % 2:
            producer.abort_transaction(SECONDS)
        else:
            producer.commit_transaction(SECONDS)
            expected.append(b"%d" % number)
            message = consumer.receive(SECONDS * 1000)
            assert message.data() == expected[-1]
            consumer.acknowledge(message)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert [reader.read_next(SECONDS * 1000).data() for _ in expected] == expected
    with pytest.raises(pulsar.Timeout):
        reader.read_next(100)
    consumer.close()
    path = f"/admin/v2/persistent/public/default/{topic}/stats"
    stats = httpx.get(server.http_url + path).json()
    assert stats["subscriptions"]["s"]["msgBacklog"] == 0


def test_pulsars_compaction_counts_keys_of_both(produce, client, server, topic) -> None:
    """Kafka's readers do not see that the topic was compacted."""
    producer = produce(linger_ms=50)
    for number in range(30):
        producer.produce(topic, b"%d" % number, key=b"k%d" % (number % 4))
    producer.produce(topic, None, key=b"k2")
    assert producer.flush(SECONDS) == 0
    other = client.create_producer(topic)
    other.send(b"of Pulsar", partition_key="k1")
    base = f"{server.http_url}/admin/v2/persistent/public/default/{topic}-partition-0/compaction"
    httpx.put(base).raise_for_status()
    until(lambda: httpx.get(base).json()["status"] == "SUCCESS")
    reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=True)
    found = [reader.read_next(SECONDS * 1000) for _ in range(3)]
    assert {one.partition_key(): one.data() for one in found} == {
        "k0": b"28",
        "k1": b"of Pulsar",
        "k3": b"27",
    }
    assert not reader.has_message_available()
