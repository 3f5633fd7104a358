"""What nobody needs any more gives its room back; what is needed stays, also over a kill."""

import os
from contextlib import suppress

import httpx
import pulsar
import pytest

from interop_tests.waiting import until
from magnetar import standalone

COUNT = 200
BODY_BYTES = 16 * 1024
RECEIVE_MS = 20_000
STORAGE = {
    "entry_log_size_limit_mb": 1,
    "flush_interval_seconds": 0.05,
    "gc_wait_seconds": 0.05,
    "minor_compaction_interval_seconds": 0.05,
    "minor_compaction_threshold": 0.9,
}


def logs_bytes(folder) -> int:
    """What all entry logs take on the disk."""
    total = 0
    for path in folder.glob("bookie/ledgers/current/*.log"):
        with suppress(FileNotFoundError):  # it is given back at this moment
            total += path.stat().st_size
    return total


def ledgers(server, topic) -> int:
    url = f"{server.http_url}/admin/v2/persistent/public/default/{topic}/internalStats"
    return len(httpx.get(url).json()["ledgers"])


@pytest.mark.parametrize(
    ("limits", "least"),
    [({"max_entries": 10}, 20), ({"max_size_mb": 1}, 3), ({"max_rollover_minutes": 0.002}, 1)],
    ids=["entries", "size", "time"],
)
def test_trimmed_ledgers_give_their_room_back(connect, topics, tmp_path, limits, least):
    """Ledgers end by each of their limits; two topics share the logs, and one is done with."""
    often = {"housekeeping_interval_seconds": 0.05}
    rolls = {**limits, "min_rollover_minutes": 0}
    with standalone(tmp_path, storage=STORAGE, broker=often, ledgers=rolls) as server:
        client = connect(server.pulsar_url)
        done, kept = topics(), topics()
        consumer = client.subscribe(done, "s")
        client.subscribe(kept, "s").close()
        producers = [client.create_producer(t, batching_enabled=False) for t in (done, kept)]
        for number in range(COUNT):
            for producer in producers:
                producer.send(b"%d " % number + os.urandom(BODY_BYTES))
        assert ledgers(server, kept) >= least
        before = 2 * COUNT * BODY_BYTES
        until(lambda: logs_bytes(tmp_path) >= before)
        for _ in range(COUNT):
            consumer.acknowledge(consumer.receive(RECEIVE_MS))
        until(lambda: logs_bytes(tmp_path) < 0.8 * before)
        server.kill()
        server.start()
        reader = connect(server.pulsar_url).create_reader(kept, pulsar.MessageId.earliest)
        bodies = [reader.read_next(RECEIVE_MS).data() for _ in range(COUNT)]
        assert [int(body.split()[0]) for body in bodies] == list(range(COUNT))
