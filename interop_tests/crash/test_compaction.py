"""A server that is killed while it compacts a topic: readers have the last values all the same."""

import time

import httpx
from pulsar import MessageId

from interop_tests.pulsar.python.stock import RECEIVE_MS
from interop_tests.waiting import until
from magnetar import standalone

KEYS = 300
COUNT = 3_000
DELAYS_SECONDS = (0, 0.03, 0.1)
"""From the request of a compaction to the kill."""


def publish(client, topic, first):
    """Numbers as values of keys in turn; every tenth key is deleted in the end."""
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=1, block_if_queue_full=True
    )
    for number in range(first, first + COUNT):
        producer.send_async(b"%d" % number, None, partition_key=f"k{number % KEYS}")
    for key in range(0, KEYS, 10):
        producer.send_async(b"", None, partition_key=f"k{key}")
    producer.flush()
    producer.close()
    last = {f"k{number % KEYS}": b"%d" % number for number in range(first, first + COUNT)}
    return {key: value for key, value in last.items() if int(key[1:]) % 10}


def compacted(client, topic):
    """The last values that a reader gets."""
    found = {}
    reader = client.create_reader(topic, MessageId.earliest, is_read_compacted=True)
    while reader.has_message_available():
        message = reader.read_next(RECEIVE_MS)
        found[message.partition_key()] = message.data()
    reader.close()
    return {key: value for key, value in found.items() if value}


def test_killed_while_it_compacts(connect, topic, tmp_path):
    """Retention deletes at once what is compacted, so most keys come from the compacted ledger. In
    the end there is one, and nothing is left to be deleted.
    """
    often = {"housekeeping_interval_seconds": 0.05}
    rolls = {"max_entries": 20, "min_rollover_minutes": 0}
    first, expected = 0, {}
    for delay in DELAYS_SECONDS:
        with standalone(tmp_path, broker=often, ledgers=rolls) as server:
            base = f"{server.http_url}/admin/v2/persistent/public/default/{topic}"
            client = connect(server.pulsar_url)
            if first:
                assert compacted(client, topic) == expected
            else:
                assert httpx.put(base).status_code == 204
                assert httpx.post(f"{base}/compactionThreshold", json=10**9).status_code == 204
            expected = publish(client, topic, first)
            first += COUNT
            httpx.put(f"{base}/compaction").raise_for_status()
            time.sleep(delay)
            server.kill()
    with standalone(tmp_path, broker=often, ledgers=rolls) as server:
        base = f"{server.http_url}/admin/v2/persistent/public/default/{topic}"
        client = connect(server.pulsar_url)
        assert compacted(client, topic) == expected
        httpx.put(f"{base}/compaction").raise_for_status()
        until(lambda: httpx.get(f"{base}/compaction").json()["status"] == "SUCCESS")
        assert compacted(client, topic) == expected
        stats = httpx.get(f"{base}/internalStats").json()
        assert "magnetar.doomed" not in stats["properties"]
        assert stats["compactedLedger"]["entries"] > 0
