"""`readFrom=gateway`: the same rows as from bookies, by the server alone."""

import time

import httpx
import pulsar
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from msgspec.structs import replace

from magnetar import standalone
from magnetar.spark_connector import options
from magnetar.spark_connector.errors import DataLossError, ServiceError
from magnetar.spark_connector.planning import planner
from magnetar.spark_connector.reading.range_reader import batches

ADMIN = "/admin/v2/persistent/public/default"


def rows(server, topic: str, **given: str) -> list[dict]:
    chosen = options.parse({"service.url": server.http_url, "topic": topic, **given})
    tasks = planner.batch(chosen, 2)
    return [row for task in tasks for batch in batches(task) for row in batch.to_pylist()]


def test_the_same_rows_as_from_bookies(lending, connect, topic) -> None:
    client = connect(lending.pulsar_url)
    batched = client.create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=20, block_if_queue_full=True
    )
    for number in range(3_000):
        batched.send_async(b"%d" % number * 100, lambda *_: None, partition_key=f"k{number}")
    batched.flush()
    large = client.create_producer(topic, chunking_enabled=True)
    large.send(bytes(range(256)) * 70_000)
    where = {"bootstrap.servers": lending.bootstrap_servers, "transactional.id": topic}
    for commits in (True, False, True):
        writer = Producer(where)
        writer.init_transactions(60)
        writer.begin_transaction()
        for number in range(10):
            writer.produce(topic, b"t%d" % number)
        (writer.commit_transaction if commits else writer.abort_transaction)(60)
    ours = rows(lending, topic, readFrom="gateway")
    assert ours == rows(lending, topic)
    assert len(ours) == 3_000 + 1 + 20
    some = {"startingOffsets": f'{{"{topic}": 100}}', "endingOffsets": f'{{"{topic}": 2900}}'}
    assert [row["offset"] for row in rows(lending, topic, readFrom="gateway", **some)] == list(
        range(100, 2_900)
    )


def test_what_compaction_left(tmp_path, topic) -> None:
    """Both ways; a ledger that has been compacted is stored somewhere else, with gaps."""
    compact = {"cleanup.policy": "compact", "segment.ms": "50", "min.cleanable.dirty.ratio": "0.01"}
    with standalone(tmp_path, broker={"housekeeping_interval_seconds": 0.02}) as server:
        where = {"bootstrap.servers": server.bootstrap_servers}
        admin = AdminClient(where)
        admin.create_topics([NewTopic(topic, 1, 1, config=compact)])[topic].result(60)
        producer = Producer(where)
        for number in range(500):
            producer.produce(topic, b"%d" % number, b"k%d" % (number % 7))
        producer.flush(60)
        plans = f"{server.http_url}/admin/v2/reading/topics"
        kept: list[str] = []
        while not any(kept):
            time.sleep(0.02)
            producer.produce(topic, b"end", b"end")  # in another ledger, now and then
            producer.flush(60)
            (plan,) = httpx.post(plans, json={"topics": [topic]}).json()["topics"].values()
            kept = [one.get("kept", "") for one in plan["ledgers"]]
    with standalone(tmp_path, bookie_port=0) as server:  # in which nothing is compacted meanwhile
        from_bookies = rows(server, topic)
        assert rows(server, topic, readFrom="gateway") == from_bookies
        last = {row["key"]: row["value"] for row in from_bookies}
        del last[b"end"]
        assert last == {b"k%d" % (number % 7): b"%d" % number for number in range(493, 500)}
        assert len([row for row in from_bookies if row["key"] != b"end"]) < 500


def test_a_server_that_lends_nothing(magnetar, connect, topic) -> None:
    """No port of a bookie is open."""
    connect(magnetar.pulsar_url).create_producer(topic).send(b"a")
    assert [row["value"] for row in rows(magnetar, topic, readFrom="gateway")] == [b"a"]


def test_a_topic_that_goes_away(lending, connect, topic) -> None:
    client = connect(lending.pulsar_url)
    client.create_producer(topic).send(b"a")
    given = {"service.url": lending.http_url, "topic": topic, "readFrom": "gateway"}
    (task,) = planner.batch(options.parse(given), 1)
    (lenient,) = planner.batch(options.parse({**given, "failOnDataLoss": "false"}), 1)
    client.close()
    httpx.delete(f"{lending.http_url}{ADMIN}/{topic}?force=true").raise_for_status()
    with pytest.raises(DataLossError, match="0 to 0"):
        list(batches(task))
    assert list(batches(lenient)) == []


def test_a_server_that_stops_is_waited_for(topic) -> None:
    with standalone() as server:
        client = pulsar.Client(server.pulsar_url)
        client.create_producer(topic).send(b"a")
        client.close()
        given = {"service.url": server.http_url, "topic": topic, "readFrom": "gateway"}
        (task,) = planner.batch(options.parse(given), 1)
        server.stop()
        with pytest.raises(ServiceError, match="does not answer"):
            list(batches(replace(task, timeout_seconds=0.3)))
        server.start()
        (batch,) = batches(task)
        assert batch.column("value").to_pylist() == [b"a"]
