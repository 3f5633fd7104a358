"""Bytes that are no requests, requests that are out of place, batches that are not what they say.

Each gets Kafka's own answer, or a closed connection and one line in the log; a bystander of another
protocol notices nothing, and nothing is kept of what was announced and never came.
"""

from __future__ import annotations

import gzip
import random
import socket
from contextlib import suppress
from struct import pack, unpack

import pytest

from magnetar.wire.kafka import apis
from magnetar.wire.kafka.apis import APIS
from magnetar.wire.kafka.codec.decoder import decoder
from magnetar.wire.kafka.messages.basics import MetadataRequest, MetadataRequestTopic
from magnetar.wire.kafka.messages.records import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)
from magnetar.wire.kafka.messages.tests.samples import full, sparse
from magnetar.wire.kafka.session.versions import SERVED
from magnetar.wire.kafka.tests.batch import batch, headed, record
from magnetar.wire.kafka.tests.frame import framed

from .conftest import MIB, rss

SECONDS = 15.0


class Peer:
    """A client of Kafka's protocol on a bare socket."""

    def __init__(self, server, source=""):
        """`source`: the address that it comes from."""
        host, _, port = server.bootstrap_servers.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), SECONDS, (source, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def say(self, data):
        with suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)  # that the server closes meanwhile is no error here
        return self

    def is_closed(self):
        """Wait until the server closes; what it says before is thrown away."""
        try:
            while self.socket.recv(65536):
                continue
        except ConnectionResetError:
            pass
        return True

    def ask(self, request, version):
        return self.say(framed(request, version)).hear(request.KEY, version)

    def hear(self, key, version):
        """The next response, which is of that kind."""
        (size,) = unpack(">i", self._take(4))
        data = self._take(size)
        at = 4 + (1 if apis._has_tags(key, version) else 0)
        api = APIS[key]
        found, _ = decoder(api.response, version, api.is_flexible(version))(data, at)
        return found

    def _take(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            assert part, "the server closed the connection"
            data += part
        return data


METADATA = framed(MetadataRequest(topics=[]), 9)
CLOSING = {
    "another protocol": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "negative size": pack(">i", -1) + bytes(100),
    "huge": pack(">i", 0x7FFFFFFF) + bytes(100),
    "too large": pack(">i", 101 * MIB) + bytes(100),
    "many words without records": pack(">ihhih", 50 * MIB, 3, 9, 1, -1) + bytes(100),
    "no header": pack(">i", 2) + b"\0\0",
    "unknown api": pack(">ihhih", 10, 999, 0, 1, -1),
    "not for clients": pack(">ihhih", 10, 4, 0, 1, -1) + bytes(4),
    "unknown version": pack(">ihhih", 10, 3, 99, 1, -1),
    "produce of old": pack(">ihhih", 10, 0, 2, 1, -1),
    "client id too long": pack(">ihhih", 10, 3, 0, 1, 1000),
    "client id is no text": pack(">ihhih", 12, 3, 0, 1, 2) + b"\xff\xfe",
    "cut off": METADATA[:4] + METADATA[4:-1] + b"",
    "a billion topics": pack(">ihhihi", 14, 3, 1, 1, -1, 0x3FFFFFFF),
    "minus two topics": pack(">ihhihi", 14, 3, 1, 1, -1, -2),
}


@pytest.mark.parametrize("what", CLOSING)
def test_what_ends_the_connection(magnetar_module, bystander, what):
    with Peer(magnetar_module) as one:
        one.say(CLOSING[what])
        one.socket.shutdown(socket.SHUT_WR)
        assert one.is_closed()
    bystander.works()


def test_versions_of_tomorrow_are_answered(magnetar_module, bystander):
    """ApiVersions in a version that nobody knows yet: so that the client comes down to ours."""
    with Peer(magnetar_module) as one:
        one.say(pack(">ihhih", 13, 18, 77, 5, 2) + b"me\0")
        (size,) = unpack(">i", one._take(4))
        number, code, count = unpack(">ihi", one._take(size)[:10])
        assert (number, code, count) == (5, 35, len(SERVED))


@pytest.mark.parametrize("key", sorted(SERVED))
def test_requests_full_of_nonsense_are_answered(magnetar_module, bystander, key):
    """Every request that there is, in every version, with values that mean nothing together."""
    api, (low, high) = APIS[key], SERVED[key]
    for version in range(max(low, api.request.VERSIONS[0]), high + 1):
        for made in (full, sparse):
            request = made(api.request, version)
            if key == 0:
                request.acks = 1
            if key == 1:
                request.max_wait_ms = 0
            if key == 11:
                request.session_timeout_ms = request.rebalance_timeout_ms = 6000
            with Peer(magnetar_module) as one:
                assert one.ask(request, version) is not None
    bystander.works()


def test_cut_anywhere(magnetar_module, bystander):
    for end in range(1, len(METADATA)):
        with Peer(magnetar_module) as one:
            one.say(METADATA[:end])
    bystander.works()


def test_random_bytes(magnetar_module, bystander):
    chance = random.Random(7)
    for _ in range(200):
        with Peer(magnetar_module) as one:
            one.say(pack(">i", 60) + chance.randbytes(60))
    bystander.works()


def test_one_wrong_byte(magnetar_module, bystander):
    """A request that was nearly right: an answer, or the end."""
    good = framed(full(APIS[1].request, 12), 12)
    for at in range(8, len(good), 3):
        bad = bytearray(good)
        bad[at] ^= 0x55
        with Peer(magnetar_module) as one:
            one.say(bytes(bad))
            one.socket.shutdown(socket.SHUT_WR)
    bystander.works()


@pytest.fixture
def written(magnetar_module, topic):
    """A topic of Kafka's with one record."""

    def produce(records, version=9, acks=-1, name=topic):
        part = ProducePartition(index=0, records=records)
        data = [ProduceTopic(name=name, partition_data=[part])]
        request = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=data)
        with Peer(magnetar_module) as one:
            results = one.ask(request, version)
            return results.responses[0].partition_responses[0].error_code

    with Peer(magnetar_module) as one:
        requested = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        assert one.ask(requested, 9).topics[0].error_code == 3  # and it is made
        assert one.ask(requested, 9).topics[0].error_code == 0
    assert produce(batch(b"first")) == 0
    return produce


GOOD = batch(b"a", b"b")


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (None, 2),
        (b"", 2),
        (GOOD[:30], 2),
        (GOOD[:-1] + b"\xff", 2),
        (GOOD + GOOD, 87),
        (GOOD[:16] + b"\1" + GOOD[17:], 87),
        (bytes(200), 87),
        (batch(b"x", attributes=32), 87),
        (batch(b"x", attributes=16), 87),
        (batch(b"x", attributes=16, producer=(99_999, 0, 0)), 48),
        (batch(b"x", producer=(5, 0, -1)), 87),
        (headed(record(0, b"x"), 2), 87),
        (headed(record(0, b"x") + record(2, b"y"), 2), 87),
        (headed(b"garbage", 1, attributes=1), 87),
        (headed(gzip.compress(record(0, b"x")[:-1] + b"\x02"), 1, attributes=1), 87),
        (headed(gzip.compress(bytes(80 * MIB)), 1, attributes=1), 10),
        (bytes(2 * MIB), 10),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "records",
)
def test_batches_that_are_not_what_they_say(magnetar_module, bystander, written, records, code):
    assert written(records) == code
    assert written(batch(b"next")) == 0
    bystander.works()


def test_zombies(magnetar_module, bystander, written):
    assert written(batch(b"x", producer=(77, 3, 0))) == 0
    assert written(batch(b"x", producer=(77, 2, 1))) == 47
    assert written(batch(b"x", producer=(77, 3, 9))) == 45
    assert written(batch(b"x", producer=(77, 4, 5))) == 45
    assert written(batch(b"x", producer=(77, 3, 1))) == 0


def test_announcing_costs_nothing(magnetar_module, bystander):
    """Hundreds of peers each announce the largest produce there may be, and send nothing of it."""
    before = rss(magnetar_module)
    peers = [Peer(magnetar_module) for _ in range(300)]
    for one in peers:
        one.say(pack(">ihhih", 100 * MIB, 0, 9, 1, -1))
    bystander.works()
    assert rss(magnetar_module) - before < 32 * MIB
    for one in peers:
        one.socket.close()
    bystander.works()


def test_who_asks_for_much_and_reads_nothing(magnetar_module, bystander, written, topic):
    """Fetches of all that there is, and nobody reads: one or two answers are made, few begun."""
    large = batch(*[b"x" * 60] * 60)
    for _ in range(100):
        assert written(large) == 0
    before = rss(magnetar_module)
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=50 * MIB)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=topic, partitions=[part])]
    )
    with Peer(magnetar_module) as one:
        one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.socket.settimeout(1)
        with suppress(TimeoutError):  # it is not read any more
            one.socket.sendall(b"".join(framed(request, 12, number) for number in range(20_000)))
        bystander.works()
        assert rss(magnetar_module) - before < 64 * MIB
    bystander.works()


def test_who_waits_and_goes(magnetar_module, bystander, topic, written):
    """Fetches that would wait for weeks go with their connection."""
    part = FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1000)
    request = FetchRequest(
        max_wait_ms=2**31 - 1, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[part])]
    )
    before = rss(magnetar_module)
    for _ in range(500):
        with Peer(magnetar_module) as one:
            one.say(framed(request, 12) * 20)
    bystander.works()
    assert rss(magnetar_module) - before < 32 * MIB
