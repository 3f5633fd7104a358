"""Compaction, asked for as Pulsar's own tests do, and what readers and table views see then."""

import time

import httpx
import pulsar
import pytest
from pulsar import ConsumerType, InitialPosition, MessageId

from interop_tests.waiting import until

from .stock import DEADLINE_SECONDS, RECEIVE_MS

RETAINED = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
"""With limits of no size: what is acknowledged stays."""


class Admin:
    """The REST paths of one topic."""

    def __init__(self, server, topic):
        self.base = f"{server.http_url}/admin/v2/persistent/public/default/{topic}"

    def ask(self, method, path, body=None):
        response = httpx.request(method, f"{self.base}/{path}", json=body, timeout=DEADLINE_SECONDS)
        response.raise_for_status()
        return response.json() if response.content else None

    def compact(self):
        """Compact the topic, and wait for the end as the tests of Apache's client do."""
        self.ask("PUT", "compaction")
        until(lambda: self.ask("GET", "compaction")["status"] != "RUNNING")
        assert self.ask("GET", "compaction") == {"status": "SUCCESS", "lastError": ""}


@pytest.fixture
def admin(magnetar, client, topic):
    client.create_producer(topic).close()
    made = Admin(magnetar, topic)
    made.ask("POST", "retention", RETAINED)
    return made


def publish(client, topic, pairs, *, batched=False):
    """Send pairs of keys and values in order; the last id of each key."""
    producer = client.create_producer(
        topic,
        batching_enabled=batched,
        batching_max_messages=10,
        batching_max_publish_delay_ms=60_000,
    )
    ids = {}
    for key, value in pairs:

        def done(result, message_id, key=key):
            assert result == pulsar.Result.Ok
            ids[key] = message_id

        producer.send_async(value, done, partition_key=key)
    producer.flush()
    producer.close()
    return ids


def rows(reader):
    """What a reader has now: keys, values and ids."""
    found = []
    while reader.has_message_available():
        message = reader.read_next(RECEIVE_MS)
        found.append((message.partition_key(), message.data(), message.message_id()))
    return found


def compacted(client, topic, start=MessageId.earliest, **options):
    return rows(client.create_reader(topic, start, is_read_compacted=True, **options))


@pytest.mark.parametrize("batched", [False, True])
def test_last_values_are_read(client, topic, admin, batched):
    pairs = [(f"k{number % 7}", b"%d" % number) for number in range(50)]
    ids = publish(client, topic, [*pairs, ("k3", b"")], batched=batched)
    whole = rows(client.create_reader(topic, MessageId.earliest))
    admin.compact()
    expected = {f"k{number % 7}": b"%d" % number for number in range(50)}
    del expected["k3"]
    found = compacted(client, topic)
    assert {key: value for key, value, _ in found} == expected
    assert len(found) == 6
    assert {key: one for key, _, one in found} == {key: ids[key] for key in expected}
    assert rows(client.create_reader(topic, MessageId.earliest)) == whole
    publish(client, topic, [("k1", b"new"), ("k9", b"nine")])
    assert [one[:2] for one in compacted(client, topic)[-2:]] == [("k1", b"new"), ("k9", b"nine")]
    admin.compact()
    after = {key: value for key, value, _ in compacted(client, topic)}
    assert after == {**expected, "k1": b"new", "k9": b"nine"}


@pytest.mark.parametrize("batched", [False, True])
def test_table_view(client, topic, admin, batched):
    """Also of keys that the topic itself has lost."""
    pairs = [(f"k{number % 5}", b"%d" % number) for number in range(40)]
    publish(client, topic, [*pairs, ("k4", b"")], batched=batched)
    admin.compact()
    admin.ask("DELETE", "truncate")
    assert rows(client.create_reader(topic, MessageId.earliest)) == []
    publish(client, topic, [("k1", b"new"), ("k2", b"")])
    view = client.create_table_view(topic)
    found = {f"k{number}": view.get(f"k{number}") for number in range(5)}
    assert found == {"k0": b"35", "k1": b"new", "k2": None, "k3": b"38", "k4": None}
    assert len(view) == 3
    view.close()


def test_a_topic_whose_keys_are_all_deleted(client, topic, admin):
    ids = publish(client, topic, [("a", b"1"), ("b", b"2")])
    publish(client, topic, [("a", b""), ("b", b"")])
    admin.compact()
    reader = client.create_reader(topic, MessageId.earliest, is_read_compacted=True)
    assert not reader.has_message_available()
    reader.seek(ids["a"])
    assert not reader.has_message_available()
    publish(client, topic, [("c", b"3")])
    assert [one[:2] for one in rows(reader)] == [("c", b"3")]


def test_seeking_by_time(client, topic, admin):
    publish(client, topic, [("a", b"1"), ("b", b"2"), ("c", b"3")])
    time.sleep(0.01)
    between = int(time.time() * 1000)
    time.sleep(0.01)
    publish(client, topic, [("b", b"4"), ("d", b"5")])
    admin.compact()
    admin.ask("DELETE", "truncate")
    reader = client.create_reader(topic, MessageId.earliest, is_read_compacted=True)
    assert [one[1] for one in rows(reader)] == [b"1", b"3", b"4", b"5"]
    reader.seek(between)
    assert [one[1] for one in rows(reader)] == [b"4", b"5"]
    reader.seek(0)
    assert [one[1] for one in rows(reader)] == [b"1", b"3", b"4", b"5"]


def test_a_durable_subscription(client, topic, admin):
    """It gets all keys, acknowledges them one by one, and then has no backlog."""
    publish(client, topic, [(f"k{number % 6}", b"%d" % number) for number in range(30)])
    admin.compact()
    options = {"is_read_compacted": True, "initial_position": InitialPosition.Earliest}
    consumer = client.subscribe(topic, "s", ConsumerType.Failover, **options)
    messages = [consumer.receive(RECEIVE_MS) for _ in range(6)]
    assert [one.data() for one in messages] == [b"%d" % number for number in range(24, 30)]
    consumer.close()
    consumer = client.subscribe(topic, "s", **options)
    for _ in range(6):
        consumer.acknowledge(consumer.receive(RECEIVE_MS))
    until(lambda: admin.ask("GET", "stats")["subscriptions"]["s"]["msgBacklog"] == 0)
    publish(client, topic, [("new", b"x")])
    assert consumer.receive(RECEIVE_MS).data() == b"x"
