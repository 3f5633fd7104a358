"""Floods that aim at memory: whatever many peers do together, the server stays within its budget,
and those who behave notice little.

Peers here do not read, stop in the middle of what they send, or all send at once.
"""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack, suppress

import httpx
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import magnetar
from interop_tests.hostile.conftest import MIB, rss
from interop_tests.hostile.test_kafka_bytes import Peer
from interop_tests.raw import Raw
from magnetar.wire.kafka.messages.basics import MetadataRequest, MetadataRequestTopic
from magnetar.wire.kafka.messages.records import FetchPartition, FetchRequest, FetchTopic
from magnetar.wire.kafka.tests.frame import framed
from magnetar.wire.pulsar.tests import peer

BUDGET = 256 * MIB
"""The default of `limits.memory_budget_mb`."""
FETCHERS = 100
BACKLOG = 96 * MIB
FEW_SECONDS = 20.0
TOPIC = "persistent://public/default/p"


@pytest.fixture
def server():
    with magnetar.standalone() as server:
        yield server


def fill(server, topic, size=BACKLOG):
    """A backlog of megabytes, in batches of 256 KiB."""
    producer = Producer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "batch.size": 256 * 1024,
            "message.max.bytes": 2 * MIB,
            "queue.buffering.max.messages": 100_000,
        }
    )
    value = bytes(255 * 1024)
    for _ in range(size // len(value)):
        producer.produce(topic, value, partition=0)
        producer.poll(0)
        while len(producer) > 200:
            producer.poll(0.1)
    assert producer.flush(60) == 0


def everything(topic):
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**31 - 1)
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=2**31 - 1,
        topics=[FetchTopic(topic=topic, partitions=[part])],
    )


class Highest:
    """The most that the server has had of memory."""

    def __init__(self, server):
        self._server = server
        self.idle = self.most = rss(server)

    def look(self):
        self.most = max(self.most, rss(self._server))

    def look_for(self, seconds, meanwhile=lambda: time.sleep(0.02)):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look()
            meanwhile()

    @property
    def grown(self):
        return self.most - self.idle


def comes_back(server, idle, within_seconds=60.0, to=100 * MIB):
    """After the flood memory is the system's again."""
    end = time.monotonic() + within_seconds
    while rss(server) > idle + to:
        assert time.monotonic() < end, f"{(rss(server) - idle) / MIB:.0f} MiB are kept"
        time.sleep(0.5)


def test_fetchers_that_never_read(server):
    highest = Highest(server)
    fill(server, "t")
    with ExitStack() as stack:
        steady = Steady(server)
        stack.callback(steady.close)
        quiet = steady.slowest_of(50)
        for _ in range(FETCHERS):
            flood = stack.enter_context(Peer(server))
            flood.say(framed(everything("t"), 12))
            highest.look()
        slowest = 0.0

        def works():
            nonlocal slowest
            slowest = max(slowest, steady.slowest_of(5))

        highest.look_for(5.0, works)
        assert slowest < max(20 * quiet, 0.5), "who behaves is served as before"
        assert read_all(server, "t") > BACKLOG * 0.9, "and who comes later, too"
        highest.look()
    assert highest.grown < BUDGET, f"{highest.grown / MIB:.0f} MiB"
    comes_back(server, highest.idle)


class Steady:
    """A producer and a consumer of small records, at work all the time."""

    def __init__(self, server):
        servers = {"bootstrap.servers": server.bootstrap_servers}
        self._producer = Producer({**servers, "linger.ms": 0})
        self._consumer = Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest"})
        self._producer.produce("steady", b"x", partition=0)
        self._producer.flush()
        self._consumer.assign([TopicPartition("steady", 0, 0)])
        assert self._consumer.poll(FEW_SECONDS).value() == b"x"

    def slowest_of(self, count):
        """Seconds from a produce until it is read, at most."""
        slowest = 0.0
        for number in range(count):
            begun = time.monotonic()
            self._producer.produce("steady", b"%d" % number, partition=0)
            assert self._producer.flush(FEW_SECONDS) == 0
            found = self._consumer.poll(FEW_SECONDS)
            assert found is not None
            assert found.value() == b"%d" % number
            slowest = max(slowest, time.monotonic() - begun)
        return slowest

    def close(self):
        self._consumer.close()


def read_all(server, topic):
    """How many bytes a client that has just come reads from the beginning."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": "newcomer",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    size = 0
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = consumer.poll(1.0)
        if found is None:
            continue
        if found.error():
            break
        size += len(found.value())
    consumer.close()
    return size


def test_consumers_that_never_read(server, connect):
    """Each has its own subscription, and room for everything. They come again, and find all of it
    from the beginning.
    """
    producer = connect(server.pulsar_url).create_producer("p", max_pending_messages=50)
    steady = connect(server.pulsar_url).subscribe("other", "s")
    other = connect(server.pulsar_url).create_producer("other")
    highest = Highest(server)
    for _ in range(2):
        with ExitStack() as stack:
            for number in range(4 * FETCHERS):
                stack.enter_context(consumer_that_never_reads(server, TOPIC, f"s{number}"))
            for _ in range(100):
                producer.send(bytes(MIB))
                highest.look()
            for _ in range(20):
                other.send(b"x")
                steady.acknowledge(steady.receive(15_000))
                highest.look()
        assert highest.grown < BUDGET, f"{highest.grown / MIB:.0f} MiB"
        comes_back(server, highest.idle)


def test_consumers_that_fell_behind_never_read(server, connect):
    """What each reads from the disk ahead of its consumer is bounded for all of them together, and
    nothing of it is held when they have gone.
    """
    producer = connect(server.pulsar_url).create_producer("p", max_pending_messages=50)
    for number in range(4 * FETCHERS):
        with consumer_that_never_reads(server, TOPIC, f"s{number}"):
            pass
    for _ in range(200):
        producer.send(bytes(MIB))
    highest = Highest(server)
    with ExitStack() as stack:
        for number in range(4 * FETCHERS):
            stack.enter_context(consumer_that_never_reads(server, TOPIC, f"s{number}"))
        highest.look_for(3.0)
    highest.look_for(2.0)
    assert highest.grown < BUDGET // 2, f"{highest.grown / MIB:.0f} MiB"
    comes_back(server, highest.idle)


def test_who_acknowledges_little_is_served_beside_them(server, connect):
    """A few small messages never prove that somebody reads; what it acknowledges does. Without that
    each round waits until some of the others are closed, which takes more than two seconds.
    """
    quiet = connect(server.pulsar_url)
    steady, other = quiet.subscribe("other", "s"), quiet.create_producer("other")
    slowest = 0.0

    def go_round() -> None:
        nonlocal slowest
        begun = time.monotonic()
        other.send(b"x")
        steady.acknowledge(steady.receive(15_000))
        slowest = max(slowest, time.monotonic() - begun)

    go_round()
    producer = connect(server.pulsar_url).create_producer("p", block_if_queue_full=True)
    with ExitStack() as stack:
        for number in range(6 * FETCHERS):
            stack.enter_context(consumer_that_never_reads(server, TOPIC, f"s{number}"))
        for _ in range(300):
            producer.send_async(bytes(MIB // 10), lambda *_: None)
        producer.flush()
        for _ in range(200):
            go_round()
    assert slowest < 1.5


def consumer_that_never_reads(server, topic, subscription) -> Raw:
    """On a bare socket. It waits until it is attached, as permits that come earlier are ignored."""
    raw = Raw(server).introduce()
    assert raw.ask(peer.subscribe(1, 1, topic, subscription)).kind == "SUCCESS"
    return raw.say(peer.flow(1, 2**31 - 1))


@pytest.mark.heavy
def test_publishers_that_stop_in_the_middle(server):
    """Each has sent most of a megabyte of one batch. A producer of large batches gets through."""
    highest = Highest(server)
    known = Producer({"bootstrap.servers": server.bootstrap_servers, "message.max.bytes": 4 * MIB})
    known.produce("t", b"x", partition=0)
    assert known.flush(FEW_SECONDS) == 0
    frame = (1_000_000).to_bytes(4) + bytes.fromhex("0000000900000001ffffffffffff")
    with ExitStack() as stack:
        for _ in range(3 * FETCHERS):
            flood = stack.enter_context(Peer(server))
            flood.socket.settimeout(0.015)
            with suppress(OSError):  # it is not read any more, or was closed
                flood.socket.sendall(frame + bytes(900_000 - len(frame)))
            highest.look()
        begun = time.monotonic()
        for _ in range(20):
            known.produce("t", bytes(MIB), partition=0)
        assert known.flush(FEW_SECONDS) == 0
        assert time.monotonic() - begun < 5, "who has written before is served as before"
        highest.look()
        fill(server, "t", 20 * MIB)  # who comes later, too
        highest.look()
    assert highest.grown < BUDGET, f"{highest.grown / MIB:.0f} MiB"
    comes_back(server, highest.idle)


def test_large_batches_from_many_are_all_stored(server):
    """Six producers with thirty batches of 900 KiB each under way: librdkafka does not send again
    what it is told is throttled.
    """
    highest = Highest(server)
    lost, stored = [], []
    producers = [
        Producer(
            {
                "bootstrap.servers": server.bootstrap_servers,
                "batch.size": 900 * 1024,
                "message.max.bytes": 2 * MIB,
                "queue.buffering.max.kbytes": 200_000,
                "max.in.flight.requests.per.connection": 100,
            }
        )
        for _ in range(6)
    ]
    value = bytes(899 * 1024)
    for number in range(30):
        for place, producer in enumerate(producers):
            producer.produce(
                f"large-{place}",
                value,
                key=b"%d" % number,
                partition=0,
                on_delivery=lambda error, _: (lost if error else stored).append(error),
            )
            producer.poll(0)
    for producer in producers:
        assert producer.flush(60) == 0
        highest.look()
    assert not lost
    assert len(stored) == 180
    assert highest.grown < BUDGET


def half_a_body(server, size):
    host, _, port = server.http_url.removeprefix("http://").rpartition(":")
    one = socket.create_connection((host, int(port)), FEW_SECONDS)
    path = "/admin/v2/persistent/public/default/t/subscription/s/position"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    one.sendall(f"{head}Content-Length: {size}\r\n\r\n".encode())
    one.settimeout(0.05)
    with suppress(OSError):  # it is not read any more
        one.sendall(b" " * (size - 1))
    return one


def test_bodies_that_stop_before_their_end(server):
    assert httpx.get(f"{server.http_url}/readyz").status_code == 200
    highest = Highest(server)
    with ExitStack() as stack:
        for _ in range(60):
            stack.callback(half_a_body(server, 16 * MIB).close)
            highest.look()
        requested = httpx.put(f"{server.http_url}/admin/v2/persistent/public/default/new", json={})
        assert requested.status_code == 204, "small bodies are always taken"
        highest.look()
    assert highest.grown < BUDGET, f"{highest.grown / MIB:.0f} MiB"
    comes_back(server, highest.idle)


def asked_and_not_read(server, path, highest, seconds=2.0):
    """Many ask, and do not read what they are answered."""
    host, _, port = server.http_url.removeprefix("http://").rpartition(":")
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    with ExitStack() as stack:
        for _ in range(FETCHERS):
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.settimeout(FEW_SECONDS)
            one.connect((host, int(port)))
            one.sendall(request)
            highest.look()
        answered = httpx.get(f"{server.http_url}/readyz", timeout=FEW_SECONDS)
        assert answered.status_code == 200
        highest.look_for(seconds)


def test_answers_that_nobody_reads(server):
    """A list of many topics, asked for by many, none of whom reads it."""
    url = f"{server.http_url}/admin/v2/persistent/public/default"
    with httpx.Client() as client:
        client.put(f"{url}/{'many' * 40}/partitions", json=2_000).raise_for_status()
        expected = client.get(url).content
    assert len(expected) > 256 * 1024
    highest = Highest(server)
    asked_and_not_read(server, "/admin/v2/persistent/public/default", highest)
    assert highest.grown < BUDGET, f"{highest.grown / MIB:.0f} MiB"
    comes_back(server, highest.idle)
    assert httpx.get(url, timeout=FEW_SECONDS).content == expected


@pytest.mark.parametrize("what", ["partitioned-stats", "partitioned-internalStats"])
def test_statistics_of_many_partitions_that_nobody_reads(server, what):
    """They take several times as much while they are made."""
    path = f"/admin/v2/persistent/public/default/{'many' * 40}"
    with httpx.Client(base_url=server.http_url, timeout=60) as client:
        client.put(f"{path}/partitions", json=2_000).raise_for_status()
        expected = client.get(f"{path}/{what}").json()
    highest = Highest(server)
    asked_and_not_read(server, f"{path}/{what}", highest, seconds=10.0)
    assert highest.grown < BUDGET / 2, f"{highest.grown / MIB:.0f} MiB"
    found = httpx.get(f"{server.http_url}{path}/{what}", timeout=60).json()
    assert found["partitions"].keys() == expected["partitions"].keys()


def test_lists_of_open_transactions_that_nobody_reads(server):
    """A list of many megabytes is made as it is received."""
    count, at_once = 20_000, 100
    with Raw(server) as raw:
        raw.introduce()
        for begin in range(0, count, at_once):
            ids = range(begin, begin + at_once)
            raw.say(b"".join(peer.new_txn(each, ttl_ms=600_000) for each in ids))
            begun = [raw.receive().body for _ in ids]
            txns = [(each.txnid_most_bits, each.txnid_least_bits) for each in begun]
            for each, txn in zip(ids, txns, strict=True):
                raw.say(peer.add_partitions(each, txn, TOPIC))
            assert {raw.receive().kind for _ in ids} == {"ADD_PARTITION_TO_TXN_RESPONSE"}
    highest = Highest(server)
    path = "/admin/v3/transactions/slowTransactions/0"
    asked_and_not_read(server, path, highest)
    assert highest.grown < BUDGET / 2, f"{highest.grown / MIB:.0f} MiB"
    found = httpx.get(f"{server.http_url}{path}", timeout=FEW_SECONDS).json()
    assert len(found) == count
    assert list(found[f"(0,{txns[-1][1]})"]["producedPartitions"]) == [TOPIC]


def test_large_requests_behind_one_that_waits(server):
    """Each has many times its size when it is taken apart."""
    fill(server, "t", MIB)
    topics = [MetadataRequestTopic(name=f"x{number}") for number in range(100_000)]
    large = framed(MetadataRequest(topics=topics), 9)
    part = FetchPartition(partition=0, fetch_offset=4, partition_max_bytes=MIB)
    waits = FetchRequest(
        max_wait_ms=20_000,
        min_bytes=1,
        max_bytes=MIB,
        topics=[FetchTopic(topic="t", partitions=[part])],
    )
    highest = Highest(server)
    with ExitStack() as stack:
        for _ in range(30):
            flood = stack.enter_context(Peer(server))
            flood.socket.settimeout(0.1)
            with suppress(OSError):  # it is closed
                flood.socket.sendall(framed(waits, 12) + 20 * large)
            highest.look()
    assert highest.grown < BUDGET, f"{highest.grown / MIB:.0f} MiB"
    comes_back(server, highest.idle)
