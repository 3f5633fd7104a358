"""Publishing in every way the client has, and what arrives."""

import os
import time
from datetime import timedelta

import pulsar
import pytest
from pulsar import BatchingType, CompressionType

from .stock import RECEIVE_MS, bodies, drain, numbered, only_then, publish, receive

MIB = 1024 * 1024


def test_sync(client, topic):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    ids = [producer.send(body) for body in numbered(10)]
    messages = receive(consumer, 10)
    assert bodies(messages) == numbered(10)
    assert [str(message.message_id()) for message in messages] == [str(each) for each in ids]


@pytest.mark.parametrize("batched", [False, True])
def test_async_keeps_order(client, topic, batched):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(
        topic, batching_enabled=batched, block_if_queue_full=True, batching_max_messages=100
    )
    ids = publish(producer, numbered(5_000))
    keys = [(each.ledger_id(), each.entry_id(), each.batch_index()) for each in ids]
    assert keys == sorted(set(keys))
    assert (ids[50].batch_index() >= 0) is batched
    assert drain(consumer, 5_000) == numbered(5_000)


def test_one_message_in_a_batch(client, topic):
    """A batching producer marks even a lone message as a batch of one."""
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=True)
    producer.send(b"alone")
    message = consumer.receive(RECEIVE_MS)
    assert message.data() == b"alone"
    assert message.message_id().batch_index() in (-1, 0)


def test_all_that_a_message_carries(client, topic):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, "who-sends", batching_enabled=False)
    before_ms = int(time.time() * 1000)
    producer.send(
        b"body",
        properties={"one": "1", "zwei": "ü", "empty": ""},
        partition_key="the key",
        ordering_key="the order",
        event_timestamp=1_234_567,
        sequence_id=41,
    )
    message = consumer.receive(RECEIVE_MS)
    assert message.properties() == {"one": "1", "zwei": "ü", "empty": ""}
    assert message.partition_key() == "the key"
    assert message.ordering_key() == "the order"
    assert message.event_timestamp() == 1_234_567
    assert message.producer_name() == "who-sends"
    assert message.topic_name() == f"persistent://public/default/{topic}"
    assert before_ms <= message.publish_timestamp() <= int(time.time() * 1000)
    assert producer.last_sequence_id() == 41


@pytest.mark.parametrize("batched", [False, True])
def test_keys_and_properties_in_batches(client, topic, batched):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=batched)
    for number in range(20):
        producer.send_async(
            b"%d" % number, None, properties={"n": str(number)}, partition_key=f"k{number % 3}"
        )
    producer.flush()
    for number, message in enumerate(receive(consumer, 20)):
        assert message.properties() == {"n": str(number)}
        assert message.partition_key() == f"k{number % 3}"


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("codec", list(CompressionType.__members__))
def test_compression(client, topic, codec, batched):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(
        topic, compression_type=CompressionType.__members__[codec], batching_enabled=batched
    )
    sent = [b"%d " % number * 500 for number in range(50)]
    publish(producer, sent)
    assert drain(consumer, 50) == sent


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4], ids=["plain", "lz4"])
def test_chunks_of_many_megabytes(client, topic, codec):
    consumer = client.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest)
    producer = client.create_producer(topic, chunking_enabled=True, compression_type=codec)
    large = os.urandom(34 * MIB)
    message_id = producer.send(large)
    producer.send(b"small")
    message = consumer.receive(RECEIVE_MS)
    assert message.data() == large
    assert message.message_id().entry_id() == message_id.entry_id() >= 2
    consumer.acknowledge(message)
    assert drain(consumer, 1) == [b"small"]


def test_too_big_without_chunks(client, topic):
    producer = client.create_producer(topic)
    with pytest.raises(pulsar.MessageTooBig):
        producer.send(bytes(17 * MIB))
    producer.send(b"still there")


@pytest.mark.standalone
def test_largest_message(client, topic):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=False)
    # the limit is for metadata and payload together
    body = os.urandom(16 * MIB - 1024)
    producer.send(body)
    assert consumer.receive(RECEIVE_MS).data() == body


def test_empty_message(client, topic):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    producer.send(b"")
    assert consumer.receive(RECEIVE_MS).data() == b""


def test_key_based_batches(client, topic):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(
        topic, batching_enabled=True, batching_type=BatchingType.KeyBased
    )
    for number in range(90):
        producer.send_async(b"%d" % number, None, partition_key=f"k{number % 3}")
    producer.flush()
    by_key: dict[str, list[int]] = {}
    for message in receive(consumer, 90):
        by_key.setdefault(message.partition_key(), []).append(int(message.data()))
    assert by_key == {f"k{rest}": list(range(rest, 90, 3)) for rest in range(3)}


def test_delivered_later(client, topic):
    """Only what is due is delivered; what is not does not hold up what is."""
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    producer = client.create_producer(topic, batching_enabled=False)
    sent = time.time()
    producer.send(b"late", deliver_after=timedelta(seconds=1.5))
    producer.send(b"now")
    assert consumer.receive(RECEIVE_MS).data() == b"now"
    assert consumer.receive(RECEIVE_MS).data() == b"late"
    assert time.time() - sent >= 1.4


def test_topic_without_storage(client, topic):
    name = f"non-persistent://public/default/{topic}"
    consumer = client.subscribe(name, "s")
    producer = client.create_producer(name)
    for body in numbered(10):
        producer.send(body)
    assert drain(consumer, 10) == numbered(10)
    only_then(consumer, producer)


def test_producers_have_different_names(client, topic):
    names = {client.create_producer(topic).producer_name() for _ in range(5)}
    assert len(names) == 5


def test_same_producer_name_is_refused(client, topic):
    first = client.create_producer(topic, "me")
    with pytest.raises(pulsar.ProducerBusy):
        client.create_producer(topic, "me")
    first.close()
    client.create_producer(topic, "me").send(b"now it is free")


@pytest.mark.parametrize("name", ["persistent://no-such-tenant/ns/t", "public/no-such-namespace/t"])
def test_where_no_namespace_is(client, name):
    with pytest.raises(pulsar.TopicNotFound):
        client.create_producer(name)


def test_many_topics_on_one_connection(client, topic):
    """Producers and consumers of 300 topics, all at work at once."""
    names = [f"{topic}-{number}" for number in range(300)]
    consumers = [client.subscribe(name, "s") for name in names]
    producers = [client.create_producer(name, batching_enabled=False) for name in names]
    for producer, name in zip(producers, names, strict=True):
        producer.send_async(name.encode(), None)
    for consumer, name in zip(consumers, names, strict=True):
        assert consumer.receive(RECEIVE_MS).data() == name.encode()
    for each in (*producers, *consumers):
        each.close()
