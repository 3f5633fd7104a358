"""Readers, table views, seeking, and the questions about where one is."""

import threading
import time

import pulsar
import pytest
from pulsar import ConsumerType, InitialPosition, MessageId

from .stock import RECEIVE_MS, bodies, drain, numbered, only_then, publish, receive


def read(reader, count):
    return [reader.read_next(RECEIVE_MS) for _ in range(count)]


def filled(client, topic, count, *, batched=False):
    """A topic that keeps its messages, as a subscription that reads nothing holds on to them."""
    client.subscribe(topic, "keeper").close()
    producer = client.create_producer(
        topic,
        batching_enabled=batched,
        batching_max_messages=10,
        batching_max_publish_delay_ms=60_000,
    )
    return producer, publish(producer, numbered(count))


# -- readers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("batched", [False, True])
def test_reader_from_the_start(client, topic, batched):
    filled(client, topic, 50, batched=batched)
    reader = client.create_reader(topic, MessageId.earliest)
    assert bodies(read(reader, 50)) == numbered(50)
    assert not reader.has_message_available()


def test_reader_from_the_end(client, topic):
    producer, _ = filled(client, topic, 5)
    reader = client.create_reader(topic, MessageId.latest)
    assert not reader.has_message_available()
    producer.send(b"new")
    assert reader.has_message_available()
    assert reader.read_next(RECEIVE_MS).data() == b"new"


@pytest.mark.parametrize("inclusive", [False, True])
@pytest.mark.parametrize("batched", [False, True])
def test_reader_from_an_id(client, topic, batched, inclusive):
    _, ids = filled(client, topic, 50, batched=batched)
    reader = client.create_reader(topic, ids[23], start_message_id_inclusive=inclusive)
    first = 23 if inclusive else 24
    assert bodies(read(reader, 50 - first)) == numbered(50 - first, first=first)
    assert not reader.has_message_available()


def test_reader_does_not_disturb_subscriptions(client, topic):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    publish(producer, numbered(5))
    assert bodies(read(client.create_reader(topic, MessageId.earliest), 5)) == numbered(5)
    assert drain(consumer, 5) == numbered(5)


def test_reader_with_a_small_queue(client, topic):
    """Of one place it would not do: this client gives none back for the start that it skips."""
    _, ids = filled(client, topic, 30)
    reader = client.create_reader(topic, ids[9], receiver_queue_size=2)
    assert bodies(read(reader, 20)) == numbered(20, first=10)


def test_reader_seeks(client, topic):
    _, ids = filled(client, topic, 20)
    reader = client.create_reader(topic, MessageId.earliest)
    read(reader, 20)
    reader.seek(ids[9])
    assert bodies(read(reader, 10)) == numbered(10, first=10)
    reader.seek(MessageId.earliest)
    assert bodies(read(reader, 20)) == numbered(20)
    reader.seek(MessageId.latest)
    assert not reader.has_message_available()


def test_reader_seeks_by_time(client, topic):
    producer, _ = filled(client, topic, 5)
    reader = client.create_reader(topic, MessageId.earliest)
    last = read(reader, 5)[-1].publish_timestamp()
    while int(time.time() * 1000) <= last:
        pass
    between = int(time.time() * 1000)
    publish(producer, numbered(5, first=5))
    reader.seek(between)
    assert bodies(read(reader, 5)) == numbered(5, first=5)


def test_named_reader(client, topic):
    filled(client, topic, 3)
    reader = client.create_reader(topic, MessageId.earliest, reader_name="me")
    assert bodies(read(reader, 3)) == numbered(3)


# -- seeking consumers ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(ConsumerType.__members__))
def test_consumer_seeks_back_and_on(client, topic, kind):
    consumer = client.subscribe(topic, "s", ConsumerType.__members__[kind])
    producer = client.create_producer(topic, batching_enabled=False)
    client.subscribe(topic, "keeper").close()
    ids = publish(producer, numbered(20))
    assert sorted(drain(consumer, 20)) == sorted(numbered(20))
    consumer.seek(MessageId.earliest)
    assert sorted(drain(consumer, 20)) == sorted(numbered(20))
    consumer.seek(ids[14])
    assert sorted(drain(consumer, 5)) == sorted(numbered(5, first=15))
    consumer.seek(MessageId.latest)
    only_then(consumer, producer)


def test_seek_inclusive(client, topic):
    consumer = client.subscribe(topic, "s", start_message_id_inclusive=True)
    client.subscribe(topic, "keeper").close()
    producer = client.create_producer(topic, batching_enabled=False)
    ids = publish(producer, numbered(10))
    drain(consumer, 10)
    consumer.seek(ids[6])
    assert drain(consumer, 4) == numbered(4, first=6)


def test_seek_into_a_batch(client, topic):
    consumer = client.subscribe(topic, "s", start_message_id_inclusive=True)
    _, ids = filled(client, topic, 30, batched=True)
    drain(consumer, 30)
    consumer.seek(ids[14])
    assert drain(consumer, 16) == numbered(16, first=14)


def test_seek_by_time(client, topic):
    consumer = client.subscribe(topic, "s")
    producer, _ = filled(client, topic, 5)
    messages = receive(consumer, 5)
    while int(time.time() * 1000) <= messages[-1].publish_timestamp():
        pass
    between = int(time.time() * 1000)
    publish(producer, numbered(5, first=5))
    consumer.seek(between)
    assert drain(consumer, 5) == numbered(5, first=5)
    consumer.seek(messages[0].publish_timestamp() - 1000)
    assert drain(consumer, 10) == numbered(10)
    consumer.seek(int(time.time() * 1000) + 100_000)
    only_then(consumer, producer)


def test_seek_survives_coming_again(client, topic):
    """To the server the id is the first to deliver; that it be skipped only that consumer knows."""
    consumer = client.subscribe(topic, "s")
    _, ids = filled(client, topic, 10)
    drain(consumer, 10)
    consumer.seek(ids[4])
    receive(consumer, 5)
    consumer.close()
    assert drain(client.subscribe(topic, "s"), 6) == numbered(6, first=4)


# -- where one is --------------------------------------------------------------------------------


def test_last_message_id(client, topic):
    consumer = client.subscribe(topic, "s")
    assert consumer.get_last_message_id().entry_id() == -1
    producer = client.create_producer(topic, batching_enabled=False)
    sent = publish(producer, numbered(3))[-1]
    last = consumer.get_last_message_id()
    assert (last.ledger_id(), last.entry_id()) == (sent.ledger_id(), sent.entry_id())
    assert last.batch_index() == -1


def test_last_message_id_of_a_batch(client, topic):
    consumer = client.subscribe(topic, "s")
    _, ids = filled(client, topic, 10, batched=True)
    last = consumer.get_last_message_id()
    assert (last.entry_id(), last.batch_index()) == (ids[-1].entry_id(), 9)


def test_message_ids_can_be_kept(client, topic):
    """An id written down by one client is where another begins."""
    _, ids = filled(client, topic, 10)
    kept = ids[3].serialize()
    reader = client.create_reader(topic, MessageId.deserialize(kept))
    assert bodies(read(reader, 6)) == numbered(6, first=4)


# -- table views ---------------------------------------------------------------------------------


def test_table_view(client, topic):
    client.subscribe(topic, "keeper").close()
    producer = client.create_producer(topic)
    for number in range(30):
        producer.send(b"%d" % number, partition_key=f"k{number % 3}")
    view = client.create_table_view(topic)
    assert {key: view.get(key) for key in ("k0", "k1", "k2")} == {
        "k0": b"27",
        "k1": b"28",
        "k2": b"29",
    }
    assert view.get("k3") is None
    view.close()


def test_table_view_follows(client, topic):
    producer = client.create_producer(topic)
    view = client.create_table_view(topic)
    seen: dict[str, bytes] = {}
    came = threading.Event()

    def hear(key, value):
        seen[key] = value
        came.set()

    view.for_each_and_listen(hear)
    producer.send(b"new", partition_key="k")
    assert came.wait(15)
    assert seen == {"k": b"new"}
    view.close()


def test_compacted_reading_without_compaction(client, topic):
    producer = client.create_producer(topic)
    consumer = client.subscribe(
        topic, "s", is_read_compacted=True, initial_position=InitialPosition.Earliest
    )
    publish(producer, numbered(5))
    assert drain(consumer, 5) == numbered(5)
    with pytest.raises(pulsar.PulsarException):
        client.subscribe(topic, "t", ConsumerType.Shared, is_read_compacted=True)
