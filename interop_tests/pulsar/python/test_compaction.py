"""Compaction, asked for as Pulsar's own tests do, and what readers and table views see then."""

import time

import httpx
import pulsar
import pytest
from pulsar import MessageId

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
        deadline = time.monotonic() + DEADLINE_SECONDS
        while (last := self.ask("GET", "compaction"))["status"] == "RUNNING":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert last == {"status": "SUCCESS", "lastError": ""}


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
