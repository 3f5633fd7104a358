"""Floods of Kafka's Produce that cost the server much more than whoever sends them.

Peers here send batches that expand to a gigabyte, or have ever new producer ids, or are for a topic
that is not there.
"""

from __future__ import annotations

import itertools
import zlib

import cramjam
import pytest

import magnetar
from interop_tests.hostile.conftest import MIB
from interop_tests.hostile.flood import Ask, Flood
from interop_tests.hostile.test_kafka_bytes import Peer
from interop_tests.hostile.test_memory import BUDGET
from magnetar.wire.kafka.messages.basics import MetadataRequest, MetadataRequestTopic
from magnetar.wire.kafka.messages.records import ProducePartition, ProduceRequest, ProduceTopic
from magnetar.wire.kafka.tests.batch import batch, headed, record
from magnetar.wire.kafka.tests.frame import framed

GZIP, ZSTD = 1, 4
GZIP_WINDOW = 31
FEW, MANY = 8, 30
"""Peers."""
TOGETHER = 50
WAIT_SECONDS_MAX = 1.0


@pytest.fixture
def server():
    with magnetar.standalone() as server, Peer(server) as one:
        one.ask(
            MetadataRequest(
                topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=True
            ),
            9,
        )
        yield server


def produce(records: bytes, topic: str = "t") -> bytes:
    part = ProducePartition(index=0, records=records)
    requested = ProduceTopic(name=topic, partition_data=[part])
    return framed(ProduceRequest(acks=1, timeout_ms=9_000, topic_data=[requested]), 9)


def again(requested: bytes) -> Ask:
    return lambda _number, _turn: requested


def gzipped(size: int) -> bytes:
    made = zlib.compressobj(9, zlib.DEFLATED, GZIP_WINDOW)
    return made.compress(bytes(size)) + made.flush()


def zstd(data: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(data))


@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(lambda: headed(zstd(bytes(1024 * MIB)), 1, attributes=ZSTD), id="zstd"),
        pytest.param(
            lambda: headed(gzipped(256 * MIB), 1, attributes=GZIP),
            id="gzip",
            marks=pytest.mark.heavy,
        ),
        pytest.param(
            lambda: headed(zstd(record(0, b"") * 5_000_000), 5_000_000, attributes=ZSTD),
            id="records",
            marks=pytest.mark.heavy,
        ),
        pytest.param(
            lambda: headed(zstd(record(0, bytes(15 * MIB))), 1, attributes=ZSTD), id="valid"
        ),
    ],
)
def test_batches_that_expand(server, bomb):
    came = Flood(server, server.bootstrap_servers, MANY, again(produce(bomb())))
    assert came.answers
    assert came.grown < BUDGET, str(came)
    assert came.slowest < WAIT_SECONDS_MAX, str(came)


def test_ever_new_producer_ids(server):
    numbers = itertools.count(1_000_000)

    def ask(_number: int, _turn: int) -> bytes:
        ids = itertools.islice(numbers, TOGETHER)
        return b"".join(produce(batch(b"x", producer=(each, 0, 0))) for each in ids)

    came = Flood(server, server.bootstrap_servers, FEW, ask)
    assert came.answers > 1_000
    assert came.grown < BUDGET, str(came)
    assert came.slowest < WAIT_SECONDS_MAX, str(came)


def test_topics_that_are_not_there(server):
    came = Flood(server, server.bootstrap_servers, FEW, again(TOGETHER * produce(batch(b"x"), "u")))
    assert came.answers > 1_000
    assert came.grown < BUDGET, str(came)
    assert came.slowest < WAIT_SECONDS_MAX, str(came)
