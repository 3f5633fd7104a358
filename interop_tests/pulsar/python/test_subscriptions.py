"""Who gets what: the four types, several topics at once, coming, leaving and ending."""

import queue
import re
from collections import Counter

import pulsar
import pytest
from pulsar import ConsumerKeySharedPolicy, ConsumerType, InitialPosition, KeySharedMode

from .stock import RECEIVE_MS, bodies, drain, numbered, only_then, publish, receive

DEADLINE_SECONDS = 15


class Inbox:
    """A message listener that keeps what comes, with who it came to."""

    def __init__(self) -> None:
        self._queue: queue.Queue[tuple[str, pulsar.Message]] = queue.Queue()

    def listener(self, name, *, acknowledge=True):
        def hear(consumer, message):
            if acknowledge:
                consumer.acknowledge(message)
            self._queue.put((name, message))

        return hear

    @property
    def empty(self) -> bool:
        return self._queue.empty()

    def take(self, count: int) -> list[tuple[str, pulsar.Message]]:
        return [self._queue.get(timeout=DEADLINE_SECONDS) for _ in range(count)]


# -- types ---------------------------------------------------------------------------------------


def test_exclusive_admits_one(client, connect, magnetar, topic):
    first = client.subscribe(topic, "s")
    for other in (client, connect(magnetar.pulsar_url)):
        with pytest.raises(pulsar.ConsumerBusy):
            other.subscribe(topic, "s")
    first.close()
    client.subscribe(topic, "s")


def test_types_do_not_mix(connect, magnetar, topic):
    client = connect(magnetar.pulsar_url, operation_timeout_seconds=2)
    client.subscribe(topic, "s", ConsumerType.Shared)
    with pytest.raises(pulsar.PulsarException):
        client.subscribe(topic, "s", ConsumerType.Failover)


def test_type_may_change_when_nobody_is_there(client, topic):
    producer = client.create_producer(topic)
    for kind in (ConsumerType.Shared, ConsumerType.Failover, ConsumerType.KeyShared):
        consumer = client.subscribe(topic, "s", kind)
        producer.send(kind.name.encode())
        assert drain(consumer, 1) == [kind.name.encode()]
        consumer.close()


def test_shared_spreads(client, topic):
    inbox = Inbox()
    for name in "abc":
        client.subscribe(
            topic,
            "s",
            ConsumerType.Shared,
            consumer_name=name,
            message_listener=inbox.listener(name),
        )
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(300))
    got = inbox.take(300)
    assert sorted(int(message.data()) for _, message in got) == list(range(300))
    assert all(count >= 50 for count in Counter(name for name, _ in got).values())
    assert {name for name, _ in got} == set("abc")


def test_shared_serves_who_has_room(client, topic):
    """A consumer that takes nothing holds no more than its queue."""
    full = client.subscribe(topic, "s", ConsumerType.Shared, receiver_queue_size=5)
    free = client.subscribe(topic, "s", ConsumerType.Shared, receiver_queue_size=1000)
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(100))
    got = drain(free, 95)
    got += drain(full, 5)
    assert sorted(map(int, got)) == list(range(100))


def test_failover_serves_one_in_order(client, topic):
    inbox = Inbox()
    consumers = {
        name: client.subscribe(
            topic,
            "s",
            ConsumerType.Failover,
            consumer_name=name,
            message_listener=inbox.listener(name),
        )
        for name in "abc"
    }
    producer = client.create_producer(topic)
    publish(producer, numbered(100))
    got = inbox.take(100)
    assert [int(message.data()) for _, message in got] == list(range(100))
    assert len({name for name, _ in got}) == 1
    served = got[0][0]
    consumers[served].close()
    publish(producer, numbered(100, first=100))
    later = inbox.take(100)
    assert [int(message.data()) for _, message in later] == list(range(100, 200))
    assert {name for name, _ in later} < set("abc") - {served}


def _first_served(one, other):
    """Which of two is served, which not, and what came first."""
    for _ in range(150):
        try:
            return one, other, one.receive(100)
        except pulsar.Timeout:
            one, other = other, one
    raise AssertionError("nobody is served")


def test_failover_hands_over_what_is_not_acknowledged(client, topic):
    names = ["a", "b"]
    consumers = [
        client.subscribe(
            topic, "s", ConsumerType.Failover, consumer_name=name, receiver_queue_size=100
        )
        for name in names
    ]
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(10))
    active, waiting, first = _first_served(*consumers)
    rest = receive(active, 9)
    for message in (first, rest[0], rest[1]):
        active.acknowledge(message)
    active.close()
    assert drain(waiting, 7) == numbered(7, first=3)


def test_key_shared_keeps_a_key_together(client, topic):
    inbox = Inbox()
    for name in "abc":
        client.subscribe(topic, "s", ConsumerType.KeyShared, message_listener=inbox.listener(name))
    producer = client.create_producer(topic, batching_enabled=False)
    for number in range(600):
        producer.send_async(b"%d" % number, None, partition_key=f"key-{number % 60}")
    producer.flush()
    owners: dict[str, set[str]] = {}
    order: dict[str, list[int]] = {}
    for name, message in inbox.take(600):
        owners.setdefault(message.partition_key(), set()).add(name)
        order.setdefault(message.partition_key(), []).append(int(message.data()))
    assert all(len(names) == 1 for names in owners.values())
    assert set().union(*owners.values()) == set("abc")
    assert order == {f"key-{rest}": list(range(rest, 600, 60)) for rest in range(60)}


def test_key_shared_ordering_key_comes_first(client, topic):
    inbox = Inbox()
    for name in "ab":
        client.subscribe(topic, "s", ConsumerType.KeyShared, message_listener=inbox.listener(name))
    producer = client.create_producer(topic, batching_enabled=False)
    for number in range(200):
        producer.send(b"%d" % number, partition_key=f"{number}", ordering_key=f"{number % 10}")
    owners: dict[str, set[str]] = {}
    for name, message in inbox.take(200):
        owners.setdefault(message.ordering_key(), set()).add(name)
    assert all(len(names) == 1 for names in owners.values())


def test_key_shared_newcomer_takes_over_in_order(client, topic):
    """Keys that move to a newcomer wait until their former owner has acknowledged them."""
    inbox = Inbox()
    old = client.subscribe(topic, "s", ConsumerType.KeyShared)
    producer = client.create_producer(topic, batching_enabled=False)
    keys = [f"key-{number}" for number in range(40)]
    for key in keys:
        producer.send(b"first", partition_key=key)
    held = receive(old, 40)
    client.subscribe(topic, "s", ConsumerType.KeyShared, message_listener=inbox.listener("young"))
    for key in keys:
        producer.send(b"second", partition_key=key)
    # a key that stayed with the old one comes at once; behind it, a mark for the last of those
    kept = [old.receive(RECEIVE_MS)]
    producer.send(b"mark", partition_key=kept[0].partition_key())
    while kept[-1].data() != b"mark":
        kept.append(old.receive(RECEIVE_MS))
    assert inbox.empty
    for message in held:
        old.acknowledge(message)
    moved = [message for _, message in inbox.take(40 - len(kept[:-1]))]
    assert {message.data() for message in (*kept[:-1], *moved)} == {b"second"}
    assert {message.partition_key() for message in (*kept, *moved)} == set(keys)
    assert 0 < len(moved) < 40


def test_key_shared_sticky_ranges(client, topic):
    inbox = Inbox()
    for name, ranges in (("low", [(0, 32767)]), ("high", [(32768, 65535)])):
        client.subscribe(
            topic,
            "s",
            ConsumerType.KeyShared,
            key_shared_policy=ConsumerKeySharedPolicy(KeySharedMode.Sticky, False, ranges),
            message_listener=inbox.listener(name),
        )
    with pytest.raises(pulsar.ConsumerAssignError):
        client.subscribe(
            topic,
            "s",
            ConsumerType.KeyShared,
            key_shared_policy=ConsumerKeySharedPolicy(KeySharedMode.Sticky, False, [(10, 20)]),
        )
    producer = client.create_producer(topic, batching_enabled=False)
    for number in range(200):
        producer.send_async(b"%d" % number, None, partition_key=f"key-{number % 50}")
    producer.flush()
    owners: dict[str, set[str]] = {}
    for name, message in inbox.take(200):
        owners.setdefault(message.partition_key(), set()).add(name)
    assert all(len(names) == 1 for names in owners.values())
    assert set().union(*owners.values()) == {"low", "high"}


# -- several topics ------------------------------------------------------------------------------


def test_list_of_topics(client, topics):
    names = [topics() for _ in range(3)]
    consumer = client.subscribe(names, "s", ConsumerType.Shared)
    for name in names:
        client.create_producer(name).send(name.encode())
    assert sorted(drain(consumer, 3)) == sorted(name.encode() for name in names)


def test_pattern_of_topics(client, topics, topic):
    names = [f"{topic}-x-{number}" for number in range(3)]
    producers = {name: client.create_producer(name) for name in names}
    other = client.create_producer(f"{topic}-y")
    pattern = re.compile(f"persistent://public/default/{topic}-x-.*")
    consumer = client.subscribe(pattern, "s", ConsumerType.Shared)
    other.send(b"not for you")
    for name, producer in producers.items():
        producer.send(name.encode())
    assert sorted(drain(consumer, 3)) == sorted(name.encode() for name in names)


# -- coming and leaving --------------------------------------------------------------------------


def test_subscriptions_are_independent(client, topic):
    one, two = (client.subscribe(topic, name) for name in ("one", "two"))
    producer = client.create_producer(topic)
    publish(producer, numbered(10))
    assert drain(one, 10) == numbered(10)
    assert drain(two, 10) == numbered(10)


@pytest.mark.parametrize("position", ["Earliest", "Latest"])
def test_where_a_new_subscription_begins(client, topic, position):
    producer = client.create_producer(topic)
    client.subscribe(topic, "keeps the topic's messages")
    publish(producer, numbered(3))
    where = InitialPosition.__members__[position]
    consumer = client.subscribe(topic, "s", initial_position=where)
    if position == "Earliest":
        assert drain(consumer, 3) == numbered(3)
    only_then(consumer, producer)


@pytest.mark.parametrize("kind", list(ConsumerType.__members__))
def test_what_a_closed_consumer_held_comes_again(client, topic, kind):
    kind = ConsumerType.__members__[kind]
    consumer = client.subscribe(topic, "s", kind)
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(10))
    messages = receive(consumer, 10)
    for message in messages[:4]:
        consumer.acknowledge(message)
    consumer.close()
    again = client.subscribe(topic, "s", kind)
    assert sorted(drain(again, 6)) == numbered(6, first=4)
    only_then(again, producer)


def test_shared_hands_over_when_a_consumer_leaves(client, topic):
    leaving = client.subscribe(topic, "s", ConsumerType.Shared, receiver_queue_size=10)
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(10))
    held = receive(leaving, 10)
    staying = client.subscribe(topic, "s", ConsumerType.Shared)
    leaving.acknowledge(held[0])
    leaving.close()
    got = receive(staying, 9)
    assert bodies(got) == numbered(9, first=1)
    assert {message.redelivery_count() for message in got} == {1}


def test_unsubscribe(client, topic):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    producer.send(b"never read")
    consumer.unsubscribe()
    again = client.subscribe(topic, "s")
    only_then(again, producer)


def test_unsubscribe_with_others_is_refused(client, topic):
    one = client.subscribe(topic, "s", ConsumerType.Shared)
    two = client.subscribe(topic, "s", ConsumerType.Shared)
    with pytest.raises(pulsar.PulsarException):
        one.unsubscribe()
    two.close()
    one.unsubscribe()


# -- how much at a time --------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 10])
@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared], ids=str)
def test_small_receiver_queues(client, topic, size, kind):
    consumer = client.subscribe(topic, "s", kind, receiver_queue_size=size)
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(50))
    assert drain(consumer, 50) == numbered(50)


@pytest.mark.timeout(30)  # receiving without a queue takes no deadline
@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared], ids=str)
def test_no_receiver_queue(client, topic, kind):
    consumer = client.subscribe(topic, "s", kind, receiver_queue_size=0)
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(50))
    for body in numbered(50):
        message = consumer.receive()
        assert message.data() == body
        consumer.acknowledge(message)


def test_small_queue_and_large_batches(client, topic):
    """A batch is delivered whole, whatever is left of the permits."""
    consumer = client.subscribe(topic, "s", receiver_queue_size=2)
    producer = client.create_producer(topic, batching_enabled=True, batching_max_messages=50)
    publish(producer, numbered(200))
    assert drain(consumer, 200) == numbered(200)


def test_zero_queue_leaves_the_rest_to_others(client, topic):
    idle = client.subscribe(topic, "s", ConsumerType.Shared, receiver_queue_size=0)
    other = client.subscribe(topic, "s", ConsumerType.Shared)
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(20))
    assert drain(other, 20) == numbered(20)
    idle.close()


def test_paused_listener(client, topic):
    inbox = Inbox()
    consumer = client.subscribe(
        topic, "s", message_listener=inbox.listener("it"), receiver_queue_size=3
    )
    consumer.pause_message_listener()
    producer = client.create_producer(topic, batching_enabled=False)
    publish(producer, numbered(20))
    consumer.resume_message_listener()
    assert [int(message.data()) for _, message in inbox.take(20)] == list(range(20))


def test_batch_receive(client, topic):
    policy = pulsar.ConsumerBatchReceivePolicy(10, -1, 5_000)
    consumer = client.subscribe(topic, "s", batch_receive_policy=policy)
    producer = client.create_producer(topic)
    publish(producer, numbered(30))
    got = [message.data() for _ in range(3) for message in consumer.batch_receive()]
    assert got == numbered(30)
