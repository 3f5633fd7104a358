"""Acknowledgements of every kind, and what comes again without one."""

import time

import pulsar
import pytest
from pulsar import ConsumerType, InitialPosition

from .stock import RECEIVE_MS, bodies, drain, numbered, only_then, publish, receive


def reopen(client, consumer, topic, kind=ConsumerType.Exclusive, **options):
    """Leave and come again: what is delivered then was not acknowledged."""
    consumer.close()
    return client.subscribe(topic, "s", kind, **options)


def batch_of(client, topic, count):
    """One batch of so many messages, in one entry; returns a producer for what comes after it."""
    producer = client.create_producer(
        topic,
        batching_enabled=True,
        batching_max_messages=count,
        batching_max_publish_delay_ms=60_000,
    )
    ids = publish(producer, numbered(count))
    assert len({(each.ledger_id(), each.entry_id()) for each in ids}) == 1
    assert [each.batch_index() for each in ids] == list(range(count))
    return client.create_producer(topic, batching_enabled=False)


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared], ids=str)
def test_individual_leaves_holes(client, topic, kind):
    consumer = client.subscribe(topic, "s", kind)
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(20))
    for message in receive(consumer, 20):
        if int(message.data()) % 3:
            consumer.acknowledge(message)
    again = reopen(client, consumer, topic, kind)
    assert drain(again, 7) == [b"%d" % number for number in range(0, 20, 3)]
    only_then(again, producer)


def test_cumulative(client, topic):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(20))
    consumer.acknowledge_cumulative(receive(consumer, 20)[12])
    again = reopen(client, consumer, topic)
    assert drain(again, 7) == numbered(7, first=13)
    only_then(again, producer)


def test_cumulative_by_id_after_reading_on(client, topic):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=False)
    ids = publish(producer, numbered(10))
    receive(consumer, 10)
    consumer.acknowledge_cumulative(ids[4])
    again = reopen(client, consumer, topic)
    assert drain(again, 5) == numbered(5, first=5)


def test_cumulative_on_shared_is_refused_by_the_client(client, topic):
    consumer = client.subscribe(topic, "s", ConsumerType.Shared)
    client.create_producer(topic).send(b"x")
    with pytest.raises(pulsar.CumulativeAcknowledgementNotAllowedError):
        consumer.acknowledge_cumulative(consumer.receive(RECEIVE_MS))


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared], ids=str)
def test_indexes_of_a_batch(client, topic, kind):
    consumer = client.subscribe(topic, "s", kind, batch_index_ack_enabled=True)
    producer = batch_of(client, topic, 10)
    for message in receive(consumer, 10):
        if int(message.data()) in (0, 3, 4, 9):
            consumer.acknowledge(message)
    again = reopen(client, consumer, topic, kind, batch_index_ack_enabled=True)
    assert drain(again, 6) == [b"1", b"2", b"5", b"6", b"7", b"8"]
    only_then(again, producer)


def test_cumulative_into_a_batch(client, topic):
    consumer = client.subscribe(topic, "s", batch_index_ack_enabled=True)
    producer = batch_of(client, topic, 10)
    consumer.acknowledge_cumulative(receive(consumer, 10)[6])
    again = reopen(client, consumer, topic, batch_index_ack_enabled=True)
    assert drain(again, 3) == numbered(3, first=7)
    only_then(again, producer)


def test_batch_without_index_acks_comes_again_whole(client, topic):
    consumer = client.subscribe(topic, "s")
    producer = batch_of(client, topic, 5)
    for message in receive(consumer, 5)[:4]:
        consumer.acknowledge(message)
    again = reopen(client, consumer, topic)
    assert drain(again, 5) == numbered(5)
    only_then(again, producer)


@pytest.mark.parametrize("batched", [False, True])
def test_negative_ack(client, topic, batched):
    consumer = client.subscribe(
        topic,
        "s",
        ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=200,
        batch_index_ack_enabled=batched,
    )
    if batched:
        producer = batch_of(client, topic, 10)
    else:
        producer = client.create_producer(topic, batching_enabled=False)
        publish(producer, numbered(10))
    for message in receive(consumer, 10):
        assert message.redelivery_count() == 0
        if int(message.data()) % 2:
            consumer.negative_acknowledge(message)
        else:
            consumer.acknowledge(message)
    again = receive(consumer, 5)
    assert sorted(bodies(again)) == [b"1", b"3", b"5", b"7", b"9"]
    assert {message.redelivery_count() for message in again} == {1}
    for message in again:
        consumer.acknowledge(message)
    only_then(consumer, producer)


def test_negative_ack_on_exclusive(client, topic):
    """Order comes first there: all that is not acknowledged comes again."""
    consumer = client.subscribe(topic, "s", negative_ack_redelivery_delay_ms=200)
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(5))
    messages = receive(consumer, 5)
    consumer.acknowledge(messages[0])
    consumer.negative_acknowledge(messages[3])
    assert drain(consumer, 4) == numbered(4, first=1)


def test_negative_ack_waits(client, topic):
    consumer = client.subscribe(
        topic, "s", ConsumerType.Shared, negative_ack_redelivery_delay_ms=1_000
    )
    client.create_producer(topic).send(b"x")
    message = consumer.receive(RECEIVE_MS)
    began = time.monotonic()
    consumer.negative_acknowledge(message)
    consumer.receive(RECEIVE_MS)
    assert time.monotonic() - began >= 0.6  # the client's timer is coarse, but waits it does


def test_redelivery_count_goes_up(client, topic):
    consumer = client.subscribe(
        topic, "s", ConsumerType.Shared, negative_ack_redelivery_delay_ms=100
    )
    producer = client.create_producer(topic)
    producer.send(b"x")
    for count in range(4):
        message = consumer.receive(RECEIVE_MS)
        assert message.redelivery_count() == count
        consumer.negative_acknowledge(message)
    assert drain(consumer, 1) == [b"x"]
    only_then(consumer, producer)


def test_ack_timeout(client, topic):
    """Of both types at once: ten seconds is the shortest that this client has."""
    consumers = [
        client.subscribe(topic, kind.name, kind, unacked_messages_timeout_ms=10_000)
        for kind in (ConsumerType.Exclusive, ConsumerType.Shared)
    ]
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(3))
    for consumer in consumers:
        consumer.acknowledge(receive(consumer, 3)[0])
    for consumer in consumers:
        assert sorted(bodies(receive(consumer, 2, ms=30_000))) == numbered(2, first=1)


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared], ids=str)
def test_redeliver_all(client, topic, kind):
    consumer = client.subscribe(topic, "s", kind)
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(10))
    messages = receive(consumer, 10)
    for message in messages[:5]:
        consumer.acknowledge(message)
    # acknowledgements are gathered, this is not: let one that waits be sent first
    client.subscribe(topic, "other").close()
    consumer.redeliver_unacknowledged_messages()
    assert set(numbered(5, first=5)) <= set(bodies(receive(consumer, 5)))


def test_dead_letters(client, topic):
    consumer = client.subscribe(
        topic,
        "s",
        ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(2, f"{topic}-dead", "dead-sub"),
    )
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(5))
    for _ in range(5 * 3):
        consumer.negative_acknowledge(consumer.receive(RECEIVE_MS))
    dead = client.subscribe(f"{topic}-dead", "dead-sub", initial_position=InitialPosition.Earliest)
    messages = receive(dead, 5)
    assert sorted(bodies(messages)) == numbered(5)
    real = {message.properties()["REAL_TOPIC"] for message in messages}
    assert real == {f"persistent://public/default/{topic}"}
    only_then(consumer, producer)


def test_ack_twice_is_no_harm(client, topic):
    consumer = client.subscribe(topic, "s", ConsumerType.Shared)
    producer = client.create_producer(topic)
    producer.send(b"x")
    message = consumer.receive(RECEIVE_MS)
    consumer.acknowledge(message)
    consumer.acknowledge(message)
    again = reopen(client, consumer, topic, ConsumerType.Shared)
    again.acknowledge(message)
    only_then(again, producer)


def test_one_consumer_acks_for_another(client, topic):
    one = client.subscribe(topic, "s", ConsumerType.Shared, receiver_queue_size=1)
    producer = client.create_producer(topic)
    producer.send(b"x")
    message = one.receive(RECEIVE_MS)
    two = client.subscribe(topic, "s", ConsumerType.Shared)
    two.acknowledge(message.message_id())
    two.close()
    one.close()
    three = client.subscribe(topic, "s", ConsumerType.Shared)
    only_then(three, producer)
